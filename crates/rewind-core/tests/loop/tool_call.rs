use crate::support::{World, call, request};
use rewind_core::{Done, Error, ErrorCode, GuardDecision, Receipt, ToolCall};
use serde_json::{Value, json};
use zvm_sim::{Scenario, switches::Insert};

const CATALOG: &str = r#"
version = 1

[[guard]]
tool = "vm_delete*"
vm = { arg = "/vm_name" }
action = "delete {{ args.vm_name }}"
mode = "deny"

[[guard]]
server = "vmware"
tool = "vm_*"
vm = { arg = "/vm_name" }
action = "{{ tool }} {{ args.vm_name }}"
change = { arg = "/ticket" }
when = [{ arg = "/dry_run", not_equals = true }]

[[guard]]
server = "builtin"
tool = "Bash"
vm = { arg = "/command", hosts = "hosts.toml" }
action = "{{ args.command }}"

[[guard]]
tool = "lenient"
vm = { arg = "/vm" }
action = "lenient"
unprotected = "pass"
"#;

const HOSTS: &str = r#"
"app01.example.com" = "app01"
"app01" = "app01"
"ubuntu" = "jp-ubuntu"
"gone" = "nowhere"
"#;

async fn world() -> World {
    let world = World::with(Scenario::fast(), json!({ "catalog": "catalog.toml" })).await;
    std::fs::write(world.folder().join("catalog.toml"), CATALOG).unwrap();
    std::fs::write(world.folder().join("hosts.toml"), HOSTS).unwrap();
    world
}

fn tool(server: &str, tool: &str, arguments: Value) -> ToolCall {
    ToolCall {
        server: Some(server.into()),
        tool: tool.into(),
        action: "resize the disk".into(),
        vm: None,
        arguments: Some(arguments),
        agent: Some("claude".into()),
        change_id: None,
    }
}

async fn decide(world: &World, request: ToolCall) -> Result<GuardDecision, Error> {
    world.rewind.guard_tool_call(request, &call()).await
}

async fn receipts(world: &World, request: ToolCall) -> Vec<Receipt> {
    match decide(world, request).await.unwrap() {
        GuardDecision::Guarded {
            entry, receipts, ..
        } => {
            assert!(entry.unwrap().starts_with("catalog.toml:"));
            receipts
        }
        passed => panic!("{passed:?}"),
    }
}

#[tokio::test]
async fn what_is_not_listed_passes_and_the_zvm_is_not_asked() {
    let world = world().await;
    for request in [
        tool("vmware", "list_vms", json!({})),
        tool("VMware", "vm_resize", json!({ "vm_name": "app01" })),
        tool("proxmox", "vm_resize", json!({ "vm_name": "app01" })),
        tool(
            "vmware",
            "vm_resize",
            json!({ "vm_name": "app01", "dry_run": true }),
        ),
        tool("builtin", "Bash", json!({ "command": "ls -l" })),
        tool("builtin", "Bash", json!({ "command": "ssh myapp01x" })),
    ] {
        let decision = decide(&world, request.clone()).await.unwrap();
        assert!(
            matches!(decision, GuardDecision::PassThrough { .. }),
            "{request:?}: {decision:?}"
        );
    }
    let without = World::new().await;
    let decision = decide(&without, tool("vmware", "vm_resize", json!({})))
        .await
        .unwrap();
    assert!(matches!(decision, GuardDecision::PassThrough { .. }));
    assert!(world.sim.requests().is_empty() && without.sim.requests().is_empty());
}

#[tokio::test]
async fn what_is_listed_is_guarded_by_the_entrys_rule() {
    let world = world().await;
    let arguments = json!({ "vm_name": "APP01", "ticket": "OPS-7" });
    let receipts = receipts(&world, tool("vmware", "vm_resize", arguments)).await;
    let [receipt] = receipts.as_slice() else {
        panic!("{receipts:?}")
    };
    assert_eq!((receipt.vm.as_str(), receipt.pins.len()), ("app01", 3));
    assert_eq!(
        (receipt.action.as_str(), receipt.change_id.as_str()),
        ("resize the disk", "OPS-7")
    );
    assert_eq!(world.tags("app01-dr"), [receipt.tag.as_str()]);
}

#[tokio::test]
async fn the_callers_words_and_change_win_and_the_entry_stands_in() {
    let world = world().await;
    let arguments = json!({ "vm_name": "jp-ubuntu" });
    let silent = ToolCall {
        action: " \n".into(),
        change_id: Some("mine".into()),
        ..tool("vmware", "vm_resize", arguments.clone())
    };
    let receipts_of_silent = receipts(&world, silent).await;
    assert_eq!(receipts_of_silent[0].action, "vm_resize jp-ubuntu");
    assert_eq!(receipts_of_silent[0].change_id, "mine");
    let without = receipts(&world, tool("vmware", "vm_resize", arguments)).await;
    assert_eq!(without[0].change_id, "session-1");
}

#[tokio::test]
async fn an_unknown_server_matches_every_entry() {
    let world = world().await;
    let request = ToolCall {
        server: None,
        ..tool("", "vm_resize", json!({ "vm_name": "jp-ubuntu" }))
    };
    assert_eq!(receipts(&world, request).await.len(), 1);
}

#[tokio::test]
async fn every_vm_of_a_call_is_guarded_once() {
    let world = world().await;
    let command = "ssh app01 uptime && ssh app01.example.com true; ssh ubuntu reboot";
    let receipts = receipts(
        &world,
        tool("builtin", "Bash", json!({ "command": command })),
    )
    .await;
    let mut vms: Vec<_> = receipts.iter().map(|receipt| receipt.vm.as_str()).collect();
    vms.sort_unstable();
    assert_eq!(vms, ["app01", "jp-ubuntu"]);
    assert_eq!(world.count("POST", "/checkpoints"), 4);
}

#[tokio::test]
async fn one_vm_that_fails_fails_the_call_and_the_pins_are_told() {
    let world = world().await;
    let reboot = |hosts: &str| {
        tool(
            "builtin",
            "Bash",
            json!({ "command": format!("ssh {hosts} reboot") }),
        )
    };
    world
        .sim
        .update(|switches| switches.vpg_mut("jp-ubuntu").insert = Some(Insert::Refused));
    let error = decide(&world, reboot("app01 ubuntu")).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::InsertRefused);
    let pins = error
        .done
        .iter()
        .filter(|done| matches!(done, Done::Pinned { .. }))
        .count();
    assert_eq!((pins, error.done.len()), (3, 4));
    // A VM that can't be found is noticed before anything is inserted.
    world.sim.clear_requests();
    assert_eq!(
        decide(&world, reboot("app01 gone")).await.unwrap_err().code,
        ErrorCode::VmNotFound
    );
    assert_eq!(world.count("POST", "/checkpoints"), 0);
}

#[tokio::test]
async fn a_named_vm_must_be_the_one_of_the_arguments() {
    let world = world().await;
    let named = |vm: &str| ToolCall {
        vm: Some(vm.into()),
        ..tool("vmware", "vm_resize", json!({ "vm_name": "jp-ubuntu" }))
    };
    let id = world.sim.vm_id("jp-ubuntu").unwrap().to_owned();
    for same in ["jp-ubuntu", "JP-Ubuntu.example.com", &id] {
        assert_eq!(receipts(&world, named(same)).await[0].vm, "jp-ubuntu");
    }
    world.sim.clear_requests();
    let error = decide(&world, named("app01")).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument);
    assert_eq!(world.count("POST", "/checkpoints"), 0);
}

#[tokio::test]
async fn a_call_whose_arguments_are_not_told_is_guarded_by_the_named_vm_or_refused() {
    let world = world().await;
    let without = |server: &str, name: &str, vm: Option<&str>| ToolCall {
        vm: vm.map(str::to_owned),
        arguments: None,
        ..tool(server, name, Value::Null)
    };
    assert_eq!(
        receipts(&world, without("vmware", "vm_resize", Some("jp-ubuntu"))).await[0].vm,
        "jp-ubuntu"
    );
    assert_eq!(
        receipts(&world, without("builtin", "Bash", Some("jp-ubuntu"))).await[0].vm,
        "jp-ubuntu"
    );
    for (server, name) in [("vmware", "vm_resize"), ("builtin", "Bash")] {
        let error = decide(&world, without(server, name, None))
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument, "{name}");
    }
}

#[tokio::test]
async fn what_is_denied_is_refused_without_the_zvm() {
    let world = world().await;
    for arguments in [Some(json!({ "vm_name": "app01" })), None] {
        let request = ToolCall {
            arguments,
            ..tool("any", "vm_delete_now", Value::Null)
        };
        assert_eq!(
            decide(&world, request).await.unwrap_err().code,
            ErrorCode::Denied
        );
    }
    assert!(world.sim.requests().is_empty());
}

#[tokio::test]
async fn an_unprotected_vm_passes_only_where_the_entry_says_so() {
    let world = world().await;
    let error = decide(
        &world,
        tool("vmware", "vm_resize", json!({ "vm_name": "lonely" })),
    )
    .await
    .unwrap_err();
    assert_eq!(error.code, ErrorCode::VmNotProtected);
    let decision = decide(&world, tool("x", "lenient", json!({ "vm": "lonely" })))
        .await
        .unwrap();
    assert!(matches!(decision, GuardDecision::PassThrough { reason } if reason.contains("lonely")));
    let error = decide(&world, tool("x", "lenient", json!({ "vm": "nobody" })))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::VmNotFound);
}

#[tokio::test]
async fn a_broken_catalog_refuses_and_names_the_line() {
    let world = world().await;
    std::fs::write(
        world.folder().join("catalog.toml"),
        "version = 1\n[[guard]]\ntol = \"x\"\n",
    )
    .unwrap();
    let error = decide(&world, tool("vmware", "vm_resize", json!({})))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::CatalogUnusable);
    assert!(
        error.message.contains("catalog.toml:3"),
        "{}",
        error.message
    );
    // It is read again once it is corrected.
    std::fs::write(world.folder().join("catalog.toml"), CATALOG).unwrap();
    decide(&world, tool("vmware", "list", json!({})))
        .await
        .unwrap();
    // A guard that is asked for outright needs no catalog.
    world
        .rewind
        .guard(request("jp-ubuntu"), &call())
        .await
        .unwrap();
}
