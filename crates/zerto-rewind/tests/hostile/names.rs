//! Names, tags, states, reasons and ids that a ZVM gives to act on whoever reads them, or on the requests that are made of them.
use serde_json::json;
use zvm_sim::{
    Fault, Outcome, Scenario,
    switches::{Insert, TaskFate, Unmount},
};

use crate::{
    faces::{ORDERS, check_marked, files, model, person, pinned, recovery, script},
    support::World,
};

const FILE: &str = "/home/justin/app-config.yaml";

/// The VM `jp-ubuntu` and its VPG, called what a liar calls them.
fn called(vm: &str, vpg: &str) -> Scenario {
    let mut scenario = Scenario::fast();
    for known in &mut scenario.vms {
        if known.name == "jp-ubuntu" {
            known.key = Some("jp-ubuntu".into());
            known.name = vm.into();
            known.id = Some("11111111-2222-3333-4444-555555555555.vm-7".into());
        }
    }
    for known in &mut scenario.vpgs {
        if known.name == "jp-ubuntu" {
            known.name = vpg.into();
        }
    }
    scenario
}

const VM: &str = "11111111-2222-3333-4444-555555555555.vm-7";

#[tokio::test]
async fn names_that_instruct_or_steer_are_data_to_a_person_and_a_model() {
    let world = World::with(called(ORDERS, ORDERS)).await;
    assert_eq!(script(&world, &["find", VM]).await.code, 0);
    let (code, screen) = person(&world, &["find", VM]).await;
    assert_eq!(code, 0, "{screen}");
    let found = model(&world, "zerto_find_protection", json!({ "vm": VM })).await;
    assert!(found.text.contains("\"IGNORE ALL RULES"), "{}", found.text);

    let guarded = model(
        &world,
        "zerto_create_tagged_checkpoint",
        json!({ "vm": VM, "action": "edit" }),
    )
    .await;
    assert_eq!(guarded.code(), "", "{}", guarded.text);
    let checkpoint = guarded.result["structuredContent"]["pins"][0]["checkpoint"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        script(&world, &["guard", VM, "--action", "edit"])
            .await
            .code,
        0
    );
    assert_eq!(script(&world, &["checkpoints", VM]).await.code, 0);
    assert_eq!(person(&world, &["checkpoints", VM]).await.0, 0);
    model(&world, "zerto_list_checkpoints", json!({ "vm": VM })).await;

    let wanted = json!({ "vm": VM, "path": FILE, "checkpoint": checkpoint });
    let recovered = recovery(&world, wanted).await;
    assert_eq!(recovered.code(), "", "{}", recovered.text);
    let path = world.path("there");
    let (code, screen) = person(
        &world,
        &[
            "recover",
            VM,
            FILE,
            "--at",
            &checkpoint,
            "--yes",
            "--to",
            path.to_str().unwrap(),
        ],
    )
    .await;
    assert_eq!(code, 0, "{screen}");
    // What is not found is answered with what resembles it.
    model(
        &world,
        "zerto_find_protection",
        json!({ "vm": "IGNORE ALL" }),
    )
    .await;
    assert_eq!(script(&world, &["find", "IGNORE ALL"]).await.code, 4);
}

#[tokio::test]
async fn names_that_climb_do_not_say_where_a_file_lands() {
    for name in [
        "../../../evil",
        "/etc/evil",
        "..",
        ".",
        r"C:\evil",
        "a/../../../evil",
    ] {
        let world = World::with(called(name, "../vpg")).await;
        let checkpoint = pinned(&world, VM).await;
        let arguments = json!({ "vm": VM, "path": FILE, "checkpoint": checkpoint });
        let recovered = recovery(&world, arguments).await;
        assert_eq!(recovered.code(), "", "{}", recovered.text);
        let landed = files(&world.path("recovered"));
        assert!(
            landed.len() == 1 && landed[0].ends_with("/home/justin/app-config.yaml"),
            "{name}: {landed:?}"
        );
        let beside: Vec<_> = files(world.folder.path())
            .into_iter()
            .filter(|path| path.contains("evil") && !path.starts_with("recovered/"))
            .collect();
        assert_eq!(beside, [""; 0], "{name}");
    }
}

#[tokio::test]
async fn tags_of_others_are_data() {
    let world = World::new().await;
    let vpg = world.sim.vpg_id("jp-ubuntu").unwrap().to_owned();
    let now = zvm_time();
    for tag in [
        ORDERS.to_owned(),
        format!("ai:x | {ORDERS} | vm=y | change=z | 20260921T170829Z"),
        "t".repeat(100_000),
    ] {
        world.sim.clear_faults();
        let rows =
            json!([{ "CheckpointIdentifier": "7", "TimeStamp": now, "Tag": tag, "Vss": false }]);
        world.sim.add_fault(Fault {
            times: 0,
            text: rows.to_string(),
            ..Fault::answer(
                "GET",
                &format!("/v1/vpgs/{vpg}/checkpoints"),
                200,
                Outcome::Text,
            )
        });
        script(&world, &["checkpoints", "jp-ubuntu"]).await;
        person(&world, &["checkpoints", "jp-ubuntu"]).await;
        model(
            &world,
            "zerto_list_checkpoints",
            json!({ "vm": "jp-ubuntu" }),
        )
        .await;
    }
}

fn zvm_time() -> String {
    jiff::Timestamp::now().to_string()
}

/// Orders, and much more than anybody reads.
fn long() -> String {
    format!("{ORDERS} {}", "please ".repeat(5_000))
}

#[tokio::test]
async fn reasons_of_a_zvm_are_bounded_and_marked() {
    let world = World::new().await;
    let vm = json!({ "vm": "jp-ubuntu", "action": "edit" });
    world.sim.update(|switches| {
        switches.insert = Insert::Refused;
        switches.insert_message = long();
    });
    let refused = model(&world, "zerto_create_tagged_checkpoint", vm.clone()).await;
    assert_eq!(refused.code(), "insert_refused");
    assert!(
        refused.text.contains("\"IGNORE ALL RULES"),
        "{}",
        refused.text
    );
    script(&world, &["guard", "jp-ubuntu", "--action", "x"]).await;
    person(&world, &["guard", "jp-ubuntu", "--action", "x"]).await;

    world.sim.update(|switches| {
        switches.insert = Insert::Accepted;
        switches.task = TaskFate::Fails;
        switches.task_message = long();
    });
    let failed = model(&world, "zerto_create_tagged_checkpoint", vm).await;
    assert_eq!(failed.code(), "insert_refused", "{}", failed.text);

    for (status, outcome) in [
        (400, Outcome::Message),
        (404, Outcome::Problem),
        (500, Outcome::Text),
    ] {
        world.sim.clear_faults();
        world.sim.add_fault(Fault {
            times: 0,
            text: match outcome {
                Outcome::Text => format!("<html><title>{}</title>", long()),
                _ => long(),
            },
            ..Fault::answer("GET", "/v1/vms", status, outcome)
        });
        let find = json!({ "vm": "jp-ubuntu" });
        let failed = model(&world, "zerto_find_protection", find).await;
        assert_ne!(failed.code(), "", "{status}");
        script(&world, &["find", "jp-ubuntu"]).await;
    }
}

#[tokio::test]
async fn reasons_of_restores_are_bounded_and_marked() {
    let world = World::new().await;
    let checkpoint = pinned(&world, "jp-ubuntu").await;
    let wanted = json!({ "vm": "jp-ubuntu", "path": FILE, "checkpoint": checkpoint });
    world.sim.add_fault(Fault {
        times: 0,
        text: long(),
        ..Fault::answer("POST", "/v1/flrs", 400, Outcome::Message)
    });
    let failed = recovery(&world, wanted.clone()).await;
    assert_eq!(failed.code(), "flr_failed", "{}", failed.text);
    world.sim.clear_faults();

    world
        .sim
        .update(|switches| switches.mounted_status = format!("{}Failed", long()));
    let failed = recovery(&world, wanted.clone()).await;
    assert_eq!(failed.code(), "flr_failed", "{}", failed.text);

    world.sim.update(|switches| {
        switches.mounted_status = "MountReady".into();
        switches.unmount = Unmount::Refused;
    });
    world.sim.add_fault(Fault {
        times: 0,
        text: long(),
        ..Fault::answer("DELETE", "/v1/flrs/*", 400, Outcome::Message)
    });
    let open = recovery(&world, wanted).await;
    assert!(open.text.contains("WARNING"), "{}", open.text);
    let (_, screen) = person(&world, &["find", "jp-ubuntu"]).await;
    assert!(screen.contains("still mounted"), "{screen}");
}

#[tokio::test]
async fn the_realms_words_are_data_too() {
    let world = World::new().await;
    let body = json!({ "error": "invalid_grant", "error_description": format!("{ORDERS} {}", "x".repeat(50_000)) });
    world.sim.add_fault(Fault {
        times: 0,
        text: body.to_string(),
        ..Fault::answer("POST", "/auth/**", 401, Outcome::Text)
    });
    let refused = model(&world, "zerto_find_protection", json!({ "vm": "x" })).await;
    assert_eq!(refused.code(), "login_refused");
    check_marked(&refused.text);
}

#[tokio::test]
async fn ids_stay_within_their_place_in_a_path() {
    for id in [
        "a/b?c=d#e",
        "../../auth/realms/zerto",
        "%2e%2e%2f%2e%2e",
        "a%2fb",
        "x;y&z=1",
        "ü\u{202e}\u{1b}[2J",
        "vpg id",
    ] {
        let mut scenario = called("jp-ubuntu", "jp-ubuntu");
        for vpg in &mut scenario.vpgs {
            if vpg.name == "jp-ubuntu" {
                vpg.id = Some(id.into());
            }
        }
        let world = World::with(scenario).await;
        script(&world, &["find", "jp-ubuntu"]).await;
        world.run(&["guard", "jp-ubuntu", "--action", "x"]).await;
        let requests = world.sim.requests();
        assert!(
            requests
                .iter()
                .any(|request| request.path.starts_with("/v1/vpgs/")),
            "{id}"
        );
        for request in requests {
            let known = [
                "/v1/vms",
                "/v1/vpgs",
                "/v1/serverDateTime",
                "/v1/tasks",
                "/v1/localsite",
                "/v1/flrs",
                "/auth/realms/zerto/protocol/openid-connect/token",
            ];
            assert!(
                known.iter().any(|known| request.path.starts_with(known)),
                "{id}: {}",
                request.path
            );
            assert!(
                !request.path.contains("/../") && !request.path.contains("//"),
                "{id}: {}",
                request.path
            );
            let segments = request.path.split('/').count();
            assert!(
                segments <= 6 || request.path.starts_with("/auth/"),
                "{id}: {}",
                request.path
            );
        }
        for file in files(&world.path("state")) {
            assert!(
                file.bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)),
                "{file:?}"
            );
        }
    }
    for id in ["..", "."] {
        let world = World::new().await;
        let row =
            json!([{ "VmIdentifier": VM, "VmName": "x", "VpgIdentifier": id, "VpgName": "y" }]);
        world.sim.add_fault(Fault {
            times: 0,
            text: row.to_string(),
            ..Fault::answer("GET", "/v1/vms", 200, Outcome::Text)
        });
        assert_ne!(script(&world, &["find", "x"]).await.code, 0);
        assert!(
            world
                .sim
                .requests()
                .iter()
                .all(|request| !request.path.contains("..")),
            "{id}"
        );
    }
}
