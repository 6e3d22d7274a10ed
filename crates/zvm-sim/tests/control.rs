#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use common::{Zvm, column, with};
use reqwest::Method;
use serde_json::{Value, json};
use zvm_sim::{Scenario, Sim};

async fn controlled() -> Zvm {
    let builder = Sim::builder().scenario(Scenario::fast()).control(true);
    let mut zvm = with(builder.start().await.unwrap()).await;
    // The controls need no login.
    zvm.token = String::new();
    zvm
}

async fn patch(zvm: &Zvm, body: Value) -> (u16, Value) {
    let answer = zvm
        .request(Method::PATCH, "/sim/switches")
        .json(&body)
        .send()
        .await
        .unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test]
async fn switches_are_read_and_patched() {
    let mut zvm = controlled().await;
    assert_eq!(zvm.json("/sim/switches").await["casing"], "pascal");
    let (status, now) = patch(
        &zvm,
        json!({ "casing": "camel", "vpg": { "app01-dr": { "insert": "refused" } } }),
    )
    .await;
    assert_eq!(status, 200);
    assert_eq!(
        (&now["casing"], &now["token_lifetime"]),
        (&json!("camel"), &json!(300))
    );
    let (_, now) = patch(
        &zvm,
        json!({ "casing": null, "vpg": { "app01-dr": { "drop_next": 1 } } }),
    )
    .await;
    assert_eq!(now["casing"], "pascal", "null is the default");
    assert_eq!(
        now["vpg"]["app01-dr"]["insert"], "refused",
        "what is left out stays"
    );
    zvm.login().await;
    let answer = zvm
        .post(
            &zvm.checkpoints("app01-dr"),
            json!({ "checkpointName": "x" }),
        )
        .await;
    assert_eq!(answer.status(), 400);
}

#[tokio::test]
async fn a_mistake_in_a_patch_changes_nothing() {
    let zvm = controlled().await;
    for wrong in [
        json!({ "casing": "camel", "no_such_switch": 1 }),
        json!({ "casing": "shouting" }),
        json!({ "casing": "camel", "vpg": { "no-such-vpg": {} } }),
        json!({ "casing": "camel", "vpg": { "app01-dr": { "sub_status": "Nonsense" } } }),
    ] {
        let (status, body) = patch(&zvm, wrong.clone()).await;
        assert_eq!(status, 400, "{wrong}");
        assert!(body["Message"].is_string());
    }
    assert_eq!(zvm.json("/sim/switches").await["casing"], "pascal");
}

#[tokio::test]
async fn faults_are_added_and_removed() {
    let mut zvm = controlled().await;
    let fault =
        json!({ "method": "GET", "path": "/v1/vms", "then": "empty", "status": 502, "times": 0 });
    zvm.posted("/sim/faults", fault).await;
    assert_eq!(column(&zvm.json("/sim/faults").await, "then"), ["empty"]);
    zvm.login().await;
    assert_eq!(zvm.get("/v1/vms").await.status(), 502);
    assert_eq!(zvm.delete("/sim/faults").await.status(), 200);
    assert_eq!(zvm.get("/v1/vms").await.status(), 200);
    assert_eq!(
        zvm.post("/sim/faults", json!({ "then": "explode" }))
            .await
            .status(),
        400
    );
}

#[tokio::test]
async fn journal_requests_and_sessions_are_shown() {
    let mut zvm = controlled().await;
    zvm.login().await;
    let id = zvm.pin("jp-ubuntu", "shown").await;
    zvm.mount("jp-ubuntu", "jp-ubuntu", &id).await;
    let journal = zvm.json("/sim/journal/jp-ubuntu").await;
    assert_eq!(
        column(&journal, "tag"),
        ["shown; Used for File Level Restore"]
    );
    assert!(journal[0]["listed_at"].is_string());
    assert_eq!(zvm.get("/sim/journal/nobody").await.status(), 404);
    assert_eq!(zvm.json("/sim/sessions").await[0]["state"], "mounted");
    let requests = zvm.json("/sim/requests").await;
    let insert = requests
        .as_array()
        .unwrap()
        .iter()
        .find(|own| own["method"] == "POST" && own["bearer"] == true);
    let insert = insert.unwrap();
    assert_eq!(insert["body"], r#"{"checkpointName":"shown"}"#);
    assert_eq!(insert["status"], 200);
    assert!(!requests.to_string().contains("simulated-password"));
    assert!(!requests.to_string().contains("/sim/"));
    zvm.delete("/sim/requests").await;
    assert_eq!(zvm.json("/sim/requests").await, json!([]));
}

#[tokio::test]
async fn checkpoints_restarts_and_logins_are_made_to_happen() {
    let mut zvm = controlled().await;
    let taken = zvm
        .posted("/sim/checkpoint", json!({ "vpg": "jp-ubuntu" }))
        .await;
    assert!(taken["id"].as_str().unwrap().parse::<u64>().is_ok());
    assert_eq!(
        zvm.post("/sim/checkpoint", json!({ "vpg": "nobody" }))
            .await
            .status(),
        404
    );
    for control in ["/sim/restart", "/sim/revoke-tokens"] {
        zvm.login().await;
        assert_eq!(zvm.get("/v1/vms").await.status(), 200);
        zvm.posted(control, json!({})).await;
        assert_eq!(zvm.get("/v1/vms").await.status(), 401);
    }
    for _ in 0..5 {
        zvm.password("wrong").await;
    }
    assert_eq!(zvm.password("simulated-password").await.0, 401);
    zvm.posted("/sim/unlock", json!({})).await;
    assert_eq!(zvm.password("simulated-password").await.0, 200);
    assert_eq!(zvm.get("/sim/nothing").await.status(), 404);
}
