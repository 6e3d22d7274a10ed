use crate::{
    stage::{self, enforcer, inserts, is_unlisted, listed, observed, refused, stage},
    support::World,
};
use rewind_core::{
    ErrorCode,
    enforce::{Enforcer, ObservedCall, Verdict},
};
use serde_json::{Value, json};
use std::fs;

#[tokio::test]
async fn without_a_good_catalog_nothing_starts() {
    let world = World::new().await;
    let error = Enforcer::new(world.rewind.clone()).unwrap_err();
    assert_eq!(error.code, ErrorCode::Configuration);
    assert!(error.message.contains("`catalog`") && error.next.contains("`catalog`"));

    let world = stage().await;
    let file = world.folder().join("catalog.toml");
    for broken in ["version = 1\n[[guard]]\ntol = \"x\"\n", ""] {
        fs::write(&file, broken).unwrap();
        let error = Enforcer::new(world.rewind.clone()).unwrap_err();
        assert_eq!(error.code, ErrorCode::CatalogUnusable);
        assert!(error.message.contains("catalog.toml:"), "{error}");
    }
    fs::remove_file(&file).unwrap();
    let error = Enforcer::new(world.rewind.clone()).unwrap_err();
    assert_eq!(error.code, ErrorCode::CatalogUnusable);
    // An empty catalog is one that lists nothing.
    fs::write(&file, "version = 1\n").unwrap();
    let enforcer = Enforcer::new(world.rewind.clone()).unwrap();
    assert!(!enforcer.may_be_listed(None, "vm_delete"));
}

#[tokio::test]
async fn what_is_not_listed_passes_and_leaves_no_trace() {
    let world = stage().await;
    let enforcer = enforcer(&world);
    let bash = json!({ "command": "ls -l /tmp/xapp01" });
    let dry = json!({ "vm": "app01", "dry_run": true });
    let vm = json!({ "vm": "app01" });
    for (server, tool, arguments, may_be) in [
        (Some("vmware"), "list_vms", &vm, false),
        (Some("proxmox"), "vm_stop", &vm, false),
        (Some("vmware"), "VM_stop", &vm, false),
        (Some("vmware"), "vm_stop", &dry, true),
        (Some("builtin"), "Bash", &bash, true),
        (None, "Bash", &bash, true),
    ] {
        let call = ObservedCall {
            server,
            tool,
            arguments,
        };
        assert_eq!(enforcer.may_be_listed(server, tool), may_be, "{tool}");
        assert!(is_unlisted(&enforcer, &call), "{tool}");
    }
    assert!(world.sim.requests().is_empty());
    assert!(!world.folder().join("state").exists());
}

#[tokio::test]
async fn a_verdict_alone_does_nothing() {
    let world = stage().await;
    let enforcer = enforcer(&world);
    let arguments = json!({ "vm": "jp-ubuntu" });
    drop(listed(&enforcer, &observed("vm_stop", &arguments)));
    drop(enforcer);
    assert!(world.sim.requests().is_empty());
    assert!(stage::texts(&world, "SELECT tool FROM listed_call").is_empty());
}

#[tokio::test]
async fn what_is_denied_or_names_no_vm_is_refused() {
    let world = stage().await;
    let enforcer = enforcer(&world);
    let error = refused(&enforcer, &observed("vm_delete_all", &json!({})));
    assert_eq!(error.code, ErrorCode::Denied);
    assert!(error.message.contains("catalog.toml:4"), "{error}");

    let many: Vec<String> = (0..1000).map(|number| format!("vm{number}")).collect();
    for arguments in [
        json!({}),
        json!({ "vm": null }),
        json!({ "vm": 7 }),
        json!({ "vm": " " }),
        json!({ "vm": [] }),
        json!({ "vm": ["app01", 7] }),
        json!({ "vm": many }),
        json!({ "vm": { "name": "app01" } }),
        json!({ "vm": "app01", "ticket": ["a"] }),
        Value::Null,
        json!([]),
    ] {
        let error = refused(&enforcer, &observed("vm_stop", &arguments));
        assert_eq!(error.code, ErrorCode::InvalidArgument, "{arguments}");
        assert!(error.message.contains("catalog.toml:9"), "{error}");
        assert!(error.next.contains("The call was not made"), "{error:?}");
    }
    assert_eq!(inserts(&world), 0);
    assert!(world.sim.requests().is_empty());
}

#[tokio::test]
async fn while_the_server_is_unknown_every_entry_counts() {
    let world = stage().await;
    let enforcer = enforcer(&world);
    let arguments = json!({ "vm": "jp-ubuntu" });
    for server in [None, Some(""), Some("vmware")] {
        let call = ObservedCall {
            server,
            tool: "vm_stop",
            arguments: &arguments,
        };
        assert!(enforcer.may_be_listed(server, "vm_stop"));
        assert!(matches!(enforcer.verdict(&call), Verdict::Listed(_)));
    }
}

#[tokio::test]
async fn a_state_that_cannot_be_used_refuses() {
    let world = stage().await;
    fs::write(world.folder().join("state"), "a file").unwrap();
    let enforcer = enforcer(&world);
    let arguments = json!({ "vm": "jp-ubuntu" });
    let error = refused(&enforcer, &observed("vm_stop", &arguments));
    assert_eq!(error.code, ErrorCode::State);
    assert!(is_unlisted(&enforcer, &observed("list", &arguments)));
}
