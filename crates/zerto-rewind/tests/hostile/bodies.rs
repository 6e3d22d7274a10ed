//! Bodies that are too much: too large, too many, too deep, of another kind than they say.
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use zvm_sim::{Fault, Outcome};

use crate::{
    faces::{model, script},
    support::{World, stdio::Server},
};

const VM: &str = "11111111-2222-3333-4444-555555555555.vm-7";

fn lists(world: &World, path: &str, body: String) {
    world.sim.clear_faults();
    world.sim.add_fault(Fault {
        times: 0,
        text: body,
        ..Fault::answer("GET", path, 200, Outcome::Text)
    });
}

/// By both faces, within a known time.
async fn is_answered(world: &World, what: &str) -> String {
    let began = Instant::now();
    let found = model(world, "zerto_find_protection", json!({ "vm": "jp-ubuntu" })).await;
    script(world, &["find", "jp-ubuntu"]).await;
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "{what}: {:?}",
        began.elapsed()
    );
    found.code().to_owned()
}

#[tokio::test]
async fn enormous_numbers_strings_and_lists_are_bounded() {
    let world = World::new().await;
    let row = |name: &str, vpg: &str| json!({ "VmIdentifier": VM, "VmName": name, "VpgIdentifier": vpg, "VpgName": name });
    lists(
        &world,
        "/v1/vms",
        json!([row(&"x".repeat(2_000_000), "v")]).to_string(),
    );
    assert_eq!(is_answered(&world, "a name of 2 MB").await, "vm_not_found");

    let many: Vec<Value> = (0..5_000)
        .map(|vpg| row("jp-ubuntu", &format!("vpg-{vpg}")))
        .collect();
    lists(&world, "/v1/vms", Value::from(many).to_string());
    assert_eq!(is_answered(&world, "5000 VPGs").await, "zvm_error");
    assert!(
        world
            .sim
            .requests()
            .iter()
            .all(|request| !request.path.contains("vpg-1")),
        "none of them is asked for"
    );

    let many: Vec<Value> = (0..5_000)
        .map(|vm| json!({ "VmIdentifier": format!("s.vm-{vm}"), "VmName": "jp-ubuntu", "VpgIdentifier": "v", "VpgName": "v".repeat(500) }))
        .collect();
    lists(&world, "/v1/vms", Value::from(many).to_string());
    assert_eq!(
        is_answered(&world, "5000 VMs of one name").await,
        "vm_ambiguous"
    );

    let vpg = world.sim.vpg_id("jp-ubuntu").unwrap().to_owned();
    for number in [
        "1e999",
        "-1",
        "18446744073709551616",
        "9223372036854775807",
        "0.1",
        "\"99999999999999999999\"",
    ] {
        let body = format!(
            r#"{{"VpgIdentifier":"{vpg}","VpgName":"jp-ubuntu","Status":{number},"SubStatus":{number},"ActualRPO":{number},"HistoryStatusApi":{{"ConfiguredHistoryInMinutes":{number},"EarliestCheckpoint":{{"Time":"/Date({})/"}}}}}}"#,
            number.trim_matches('"')
        );
        lists(&world, "/v1/vpgs/*", body);
        is_answered(&world, number).await;
    }
}

/// The server answers and has not grown by more than a list of this size may cost.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_list_of_countless_rows_does_not_eat_the_host() {
    let world = World::new().await;
    let mut server = Server::initialized(&world.config(), "2025-11-25").await;
    for row in [
        "null,",
        "{},",
        r#"{"VmIdentifier":"a","VpgIdentifier":"b"},"#,
    ] {
        lists(
            &world,
            "/v1/vms",
            format!("[{}null]", row.repeat((40 << 20) / row.len())),
        );
        let answer = server
            .call("zerto_find_protection", json!({ "vm": "jp-ubuntu" }))
            .await;
        assert_eq!(
            answer["structuredContent"]["error"]["code"], "zvm_error",
            "{answer}"
        );
        let peak = peak_kib(server.child.id().unwrap());
        assert!(peak < 400 * 1024, "{row}: {peak} KiB");
    }
}

#[cfg(target_os = "linux")]
fn peak_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn deep_json_is_an_error_and_the_server_lives_on() {
    let world = World::new().await;
    let mut server = Server::initialized(&world.config(), "2025-11-25").await;
    let deep = "[".repeat(300_000);
    for body in [
        deep.clone(),
        format!("{{\"Message\":{deep}"),
        format!("[{{\"VmIdentifier\":{deep}{}}}]", "]".repeat(300_000)),
        "{\"a\":".repeat(300_000),
    ] {
        lists(&world, "/v1/vms", body.clone());
        let answer = server
            .call("zerto_find_protection", json!({ "vm": "jp-ubuntu" }))
            .await;
        assert_eq!(answer["isError"], true, "{answer}");
        script(&world, &["find", "jp-ubuntu"]).await;
        world.sim.clear_faults();
        world.sim.add_fault(Fault {
            times: 0,
            text: body,
            ..Fault::answer("GET", "/v1/vms", 400, Outcome::Text)
        });
        script(&world, &["find", "jp-ubuntu"]).await;
    }
    world.sim.clear_faults();
    let answer = server
        .call("zerto_find_protection", json!({ "vm": "jp-ubuntu" }))
        .await;
    assert_eq!(answer["structuredContent"]["vm"], "jp-ubuntu", "{answer}");
}

#[tokio::test]
async fn a_content_type_says_nothing_and_the_body_is_judged() {
    let world = World::new().await;
    let kind = |kind: &str| [("content-type".to_owned(), kind.to_owned())].into();
    for (said, body, code) in [
        (
            "application/json",
            "<html><title>Sign in</title>",
            "zvm_error",
        ),
        ("text/html", "[]", "vm_not_found"),
        ("application/zip", "[]", "vm_not_found"),
        ("text/plain; charset=utf-16", "[]", "vm_not_found"),
        ("application/json", "PK\u{3}\u{4}", "zvm_error"),
        ("application/json", "", "zvm_error"),
    ] {
        world.sim.clear_faults();
        world.sim.add_fault(Fault {
            times: 0,
            text: body.into(),
            headers: kind(said),
            ..Fault::answer("GET", "/v1/vms", 200, Outcome::Text)
        });
        assert_eq!(is_answered(&world, said).await, code, "{said}: {body}");
    }
}
