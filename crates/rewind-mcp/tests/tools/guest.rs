//! Comparing with the guest, and files back in it, as an MCP client meets them.
use std::fs;

use rewind_core::{How, Verdict};
use serde_json::{Value, json};

use crate::{
    sshd::{HOST, Sshd},
    support::{Client, Era, World, says, text, types},
};

const GUARD: &str = "zerto_create_tagged_checkpoint";
const RECOVER: &str = "zerto_recover_file";
const DIFF: &str = "zerto_diff_file";
const PATH: &str = "/home/justin/app-config.yaml";

/// A world with a way into its guest, what to ask for, and what the broken file was.
async fn broken() -> Option<(World, Sshd, Value, Vec<u8>)> {
    let world = World::new().await;
    let on_host = |path| world.sim.guest_path("jp-ubuntu", path).unwrap();
    let sshd = Sshd::start(&[("/", &on_host("/"))])?;
    let file = on_host(PATH);
    let world = world.configured(json!({ "guests": { "jp-ubuntu": sshd.guest() } }));
    let edit = json!({ "vm": "jp-ubuntu", "action": "edit" });
    let receipt = world.client().await.ok(GUARD, edit).await;
    let checkpoint = &receipt["pins"][0]["checkpoint"];
    let wanted = json!({ "vm": "jp-ubuntu", "path": PATH, "checkpoint": checkpoint });
    let before = fs::read(&file).unwrap();
    fs::write(&file, "broken\n").unwrap();
    Some((world, sshd, wanted, before))
}

#[tokio::test]
async fn a_comparison_is_agreed_to_once_and_says_what_it_compares_with() {
    for era in [Era::Old, Era::Current] {
        let Some((world, _sshd, wanted, _)) = broken().await else {
            return;
        };
        let client = Client::with_forms(world.server(), era, types("jp-ubuntu")).await;
        let result = client.call(DIFF, wanted.clone()).await;
        assert_eq!(result.is_error, Some(false), "{era:?}: {}", text(&result));
        let diff = result.structured_content.clone().unwrap();
        assert_eq!(
            (&diff["change"], &diff["kind"]),
            (&json!("changed"), &json!("text"))
        );
        assert_eq!(diff["now"], json!({ "source": "guest", "guest": HOST }));
        let unified = diff["unified"].as_str().unwrap();
        assert!(
            unified.contains("\n+broken\n") && text(&result).contains(unified.trim_end()),
            "{unified}"
        );
        client.ok(DIFF, wanted.clone()).await;
        assert_eq!(client.forms().len(), 1, "{era:?}: nobody is asked twice");
        assert!(world.sim.flr_sessions().is_empty());
    }
}

#[tokio::test]
async fn a_comparison_that_nobody_agreed_to_mounts_nothing() {
    let Some((world, _sshd, wanted, _)) = broken().await else {
        return;
    };
    let no = says(rmcp::model::ElicitationAction::Decline);
    let client = Client::with_forms(world.server(), Era::Old, no).await;
    assert_eq!(client.err(DIFF, wanted.clone()).await["code"], "declined");
    // Out of band; `confirmed` decides nothing.
    let client = world.client().await;
    let mut sure = wanted.clone();
    sure["confirmed"] = json!(true);
    for _ in 0..9 {
        assert_eq!(
            client.err(DIFF, sure.clone()).await["code"],
            "confirmation_required"
        );
    }
    let error = client.err(DIFF, wanted).await;
    let id = error["plan_id"].as_str().unwrap();
    let mounts = |world: &World| {
        let requests = world.sim.requests();
        requests
            .iter()
            .filter(|request| request.method == "POST" && request.path.ends_with("/v1/flrs"))
            .count()
    };
    assert_eq!(mounts(&world), 0);
    assert_eq!(
        client.err(DIFF, json!({ "plan_id": id })).await["code"],
        "confirmation_required"
    );
    let rewind = world.beside();
    let known = rewind.plan(id).await.unwrap();
    rewind
        .decide(&known, Verdict::Approved, How::Approve, "cli/ana")
        .await
        .unwrap();
    let diff = client.ok(DIFF, json!({ "plan_id": id })).await;
    assert_eq!(diff["change"], "changed");
}

#[tokio::test]
async fn a_replaced_file_is_told_to_be_another_one_now() {
    let Some((world, _sshd, mut wanted, before)) = broken().await else {
        return;
    };
    wanted["restore"] = json!("replace");
    let file = world.sim.guest_path("jp-ubuntu", PATH).unwrap();
    let client = Client::with_forms(world.server(), Era::Current, types("jp-ubuntu")).await;
    let result = client.call(RECOVER, wanted).await;
    assert_eq!(result.is_error, Some(false), "{}", text(&result));
    let recovery = result.structured_content.clone().unwrap();
    assert_eq!(recovery["outcome"], "restored");
    assert_eq!(fs::read(&file).unwrap(), before);
    let told = text(&result);
    for said in [
        "Restored in the guest",
        "zerto-replaced-",
        "undo-restore r-",
        "no longer",
        "Guarded first",
    ] {
        assert!(told.contains(said), "{said:?} is not in {told}");
    }
    let [form] = client.forms().try_into().unwrap();
    assert!(
        form.message.contains("written to") && form.message.contains(HOST),
        "{}",
        form.message
    );
}

#[tokio::test]
async fn a_way_that_does_not_exist_is_no_argument() {
    let world = World::new().await;
    let client = world.client().await;
    let wanted =
        json!({ "vm": "jp-ubuntu", "path": PATH, "checkpoint": "1", "restore": "overwrite" });
    assert_eq!(
        client.err(RECOVER, wanted).await["code"],
        "invalid_argument"
    );
    let both = json!({ "vm": "jp-ubuntu", "path": PATH, "checkpoint": "1", "restore": "beside", "destination": "x" });
    assert_eq!(client.err(RECOVER, both).await["code"], "invalid_argument");
}
