//! What the server is to a client: in each protocol revision, before the first call, and with nothing to work with.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod support;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use rewind_core::{Error, ErrorCode, config::Config};
use serde_json::json;
use support::{Client, World, server};

const TOOLS: [&str; 6] = [
    "zerto_find_protection",
    "zerto_create_tagged_checkpoint",
    "zerto_guard_before_mutate",
    "zerto_list_checkpoints",
    "zerto_diff_file",
    "zerto_recover_file",
];

async fn names(client: &Client) -> Vec<String> {
    let tools = client.0.list_all_tools().await.unwrap();
    tools.into_iter().map(|tool| tool.name.into()).collect()
}

#[tokio::test]
async fn says_who_it_is_and_how_to_use_it() {
    let world = World::new().await;
    let client = world.client().await;
    let info = client.0.peer_info().unwrap();
    let implementation = info.server_info.as_ref().unwrap();
    assert_eq!(implementation.name, "zerto-rewind");
    assert_eq!(implementation.version, env!("CARGO_PKG_VERSION"));
    let instructions = info.instructions.as_ref().unwrap();
    for tool in [
        "zerto_guard_before_mutate",
        "zerto_create_tagged_checkpoint",
        "zerto_recover_file",
    ] {
        assert!(instructions.contains(tool), "{instructions}");
    }
}

#[tokio::test]
async fn lists_the_same_tools_in_both_eras_and_sends_nothing_before_the_first_call() {
    let world = World::new().await;
    let old = world.client().await;
    let new = Client::modern(world.server(), "test-client").await;
    assert_eq!(names(&old).await, TOOLS);
    assert_eq!(names(&new).await, TOOLS);
    assert!(world.sim.requests().is_empty());
    assert!(
        !world.folder.path().join("state").exists(),
        "nothing is opened, either"
    );

    let found = old
        .ok("zerto_find_protection", json!({ "vm": "jp-ubuntu" }))
        .await;
    assert_eq!(
        found,
        new.ok("zerto_find_protection", json!({ "vm": "jp-ubuntu" }))
            .await
    );
}

#[tokio::test]
async fn an_unusable_configuration_is_the_answer_until_it_is_mended() {
    let world = World::new().await;
    let mended = Arc::new(AtomicBool::new(false));
    let (config, file) = (
        world.config().to_string(),
        world.folder.path().join("config.json"),
    );
    let open = {
        let mended = mended.clone();
        move || {
            if mended.load(Ordering::SeqCst) {
                Ok(Config::parse(&config, &file).unwrap())
            } else {
                Err(Error::new(
                    ErrorCode::Configuration,
                    "config.json: `password`: is missing",
                ))
            }
        }
    };
    let client = Client::of(server(open), "test-client").await;
    assert_eq!(names(&client).await, TOOLS);
    let arguments = json!({
        "zerto_find_protection": { "vm": "jp-ubuntu" },
        "zerto_create_tagged_checkpoint": { "vm": "jp-ubuntu", "action": "edit" },
        "zerto_guard_before_mutate": { "tool": "edit", "action": "edit" },
        "zerto_list_checkpoints": { "vm": "jp-ubuntu" },
        "zerto_diff_file": { "vm": "jp-ubuntu", "path": "/etc/hosts", "checkpoint": "1" },
        "zerto_recover_file": { "vm": "jp-ubuntu", "path": "/etc/hosts", "checkpoint": "1" },
    });
    for tool in TOOLS {
        let error = client.err(tool, arguments[tool].clone()).await;
        assert_eq!(error["code"], "configuration");
        assert!(error["message"].as_str().unwrap().contains("`password`"));
    }
    mended.store(true, Ordering::SeqCst);
    client
        .ok("zerto_find_protection", json!({ "vm": "jp-ubuntu" }))
        .await;
}

#[tokio::test]
async fn an_unreachable_zvm_is_an_error_of_the_call() {
    let world = World::new().await;
    // A port that nobody listens on: it was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", free.local_addr().unwrap());
    drop(free);
    let world = world.configured(json!({ "zerto_url": url }));
    let client = world.client().await;
    assert_eq!(names(&client).await, TOOLS);
    let error = client
        .err("zerto_find_protection", json!({ "vm": "jp-ubuntu" }))
        .await;
    assert_eq!(error["code"], "zvm_unreachable", "{error}");
}
