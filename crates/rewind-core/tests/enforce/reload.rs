use crate::stage::{
    CATALOG, enforcer, guard, is_unlisted, listed, observed, refused, stage, until,
};
use rewind_core::{
    ErrorCode,
    enforce::{ObservedCall, Verdict},
};
use serde_json::json;
use std::fs;

const MORE: &str = r#"
[[guard]]
tool = "disk_*"
vm = { arg = "/vm" }
action = "{{ tool }}"
"#;

#[tokio::test]
async fn a_changed_catalog_is_in_force_without_a_restart() {
    let world = stage().await;
    let file = world.folder().join("catalog.toml");
    let enforcer = enforcer(&world);
    let other = enforcer.clone();
    let arguments = json!({ "vm": "jp-ubuntu" });
    let disk = observed("disk_grow", &arguments);
    assert!(is_unlisted(&enforcer, &disk) && !enforcer.may_be_listed(None, "disk_grow"));
    fs::write(&file, format!("{CATALOG}{MORE}")).unwrap();
    until(|| enforcer.may_be_listed(None, "disk_grow")).await;
    listed(&other, &disk);

    // Replaced as editors do, by one of the same length.
    let next = world.folder().join("next.toml");
    fs::write(
        &next,
        format!("{CATALOG}{}", MORE.replace("disk_", "data_")),
    )
    .unwrap();
    fs::rename(&next, &file).unwrap();
    until(|| enforcer.may_be_listed(None, "data_grow")).await;
    assert!(is_unlisted(&enforcer, &disk));
}

#[tokio::test]
async fn the_tables_of_a_catalog_are_followed_too() {
    let world = stage().await;
    let enforcer = enforcer(&world);
    let arguments = json!({ "command": "ssh db01 reboot" });
    let call = ObservedCall {
        server: Some("builtin"),
        ..observed("Bash", &arguments)
    };
    assert!(is_unlisted(&enforcer, &call));
    fs::write(
        world.folder().join("hosts.toml"),
        "\"db01\" = \"jp-ubuntu\"\n",
    )
    .unwrap();
    until(|| matches!(enforcer.verdict(&call), Verdict::Listed(_))).await;
}

#[tokio::test]
async fn a_broken_change_keeps_the_last_good_catalog_and_is_told_until_it_is_mended() {
    let world = stage().await;
    let file = world.folder().join("catalog.toml");
    let enforcer = enforcer(&world);
    let warned = async || {
        let guarded = guard(&enforcer, "quick_edit", "jp-ubuntu").await.unwrap();
        guarded.warnings.first().cloned()
    };
    assert_eq!(warned().await, None);

    for broken in ["version = 1\n[[guard]]\ntol = \"x\"\n", "", "vers"] {
        fs::write(&file, broken).unwrap();
        let mut warning = None;
        while warning.is_none() {
            warning = warned().await;
        }
        let warning = warning.unwrap();
        assert!(
            warning.contains("last good catalog") && warning.contains("catalog.toml:"),
            "{warning}"
        );
        // What was refused still is.
        let error = refused(&enforcer, &observed("vm_delete", &json!({})));
        assert_eq!(error.code, ErrorCode::Denied);
    }
    fs::remove_file(&file).unwrap();
    while !warned().await.unwrap().contains("no such file") {}

    fs::write(&file, format!("{CATALOG}{MORE}")).unwrap();
    until(|| enforcer.may_be_listed(None, "disk_grow")).await;
    assert_eq!(warned().await, None);

    // A table can be what is broken.
    let hosts = world.folder().join("hosts.toml");
    let text = fs::read_to_string(&hosts).unwrap();
    fs::write(&hosts, "app 01 = 7").unwrap();
    while warned().await.is_none() {}
    fs::write(&hosts, text).unwrap();
    while warned().await.is_some() {}
}
