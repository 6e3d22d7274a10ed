//! The six tools on a simulated ZVM, as an MCP client meets them. Every answer is held against the tool's schema.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod confirmation;
#[cfg(unix)]
mod guest;
#[cfg(unix)]
#[path = "../../../rewind-core/tests/sshd/mod.rs"]
mod sshd;
#[path = "../support/mod.rs"]
mod support;
mod upstream;

use std::{fs, time::Duration};

use serde_json::{Value, json};
use support::{Client, World, text};
use zvm_sim::{Scenario, Spread};

const GUARD: &str = "zerto_create_tagged_checkpoint";

#[tokio::test]
async fn finds_the_vpgs_of_a_vm() {
    let world = World::new().await;
    let client = world.client().await;
    let result = client
        .call("zerto_find_protection", json!({ "vm": "app01" }))
        .await;
    let found = result.structured_content.clone().unwrap();
    assert_eq!(found["vm"], "app01");
    let vpgs: Vec<_> = found["vpgs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|vpg| &vpg["vpg"])
        .collect();
    assert_eq!(vpgs, ["app01-archive", "app01-dr", "app01-local"]);
    for word in ["app01", "3 VPGs", "app01-dr", "can be inserted"] {
        assert!(text(&result).contains(word), "{}", text(&result));
    }
}

#[tokio::test]
async fn names_the_candidates_of_an_ambiguous_vm() {
    let world = World::new().await;
    let client = world.client().await;
    let error = client
        .err("zerto_find_protection", json!({ "vm": "web" }))
        .await;
    assert_eq!(error["code"], "vm_ambiguous");
    assert_eq!(error["candidates"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn guards_a_vm_on_all_its_vpgs() {
    let world = World::new().await;
    let client = world.client().await;
    let result = client
        .call(
            GUARD,
            json!({ "vm": "app01", "action": "edit /etc/hosts", "change_id": "CHG-412" }),
        )
        .await;
    let receipt = result.structured_content.clone().unwrap();
    let tag = receipt["tag"].as_str().unwrap();
    assert!(
        tag.starts_with("ai:test-client | edit /etc/hosts | vm=app01 | change=CHG-412 | "),
        "{tag}"
    );
    assert_eq!(receipt["pins"].as_array().unwrap().len(), 3);
    for pin in receipt["pins"].as_array().unwrap() {
        assert_eq!(pin["tag"], tag);
        let journal = world.sim.journal(pin["vpg"].as_str().unwrap());
        assert!(
            journal
                .iter()
                .any(|entry| entry.id == pin["checkpoint"] && entry.tag == tag)
        );
    }
    let text = text(&result);
    for word in [tag, "CHG-412", "app01-dr", "estimate", "Crash-consistent"] {
        assert!(text.contains(word), "{word:?} is not in {text}");
    }
}

#[tokio::test]
async fn the_agent_is_the_calls_else_the_clients_and_the_configurations_before_both() {
    let world = World::new().await;
    let agent = async |client: &Client, arguments: Value| {
        client.ok(GUARD, arguments).await["agent"].clone()
    };
    let plain = json!({ "vm": "jp-ubuntu", "action": "edit" });
    let named = json!({ "vm": "jp-ubuntu", "action": "edit", "agent": "claude" });

    let client = world.client().await;
    assert_eq!(agent(&client, plain.clone()).await, "test-client");
    assert_eq!(agent(&client, named.clone()).await, "claude");
    let modern = Client::modern(world.server(), "modern-client").await;
    assert_eq!(agent(&modern, plain.clone()).await, "modern-client");
    let long = Client::of(world.server(), &"very-long-client-name-".repeat(4)).await;
    let cut = agent(&long, plain.clone()).await;
    assert!(
        cut.as_str()
            .unwrap()
            .starts_with("very-long-client-name-very"),
        "{cut}"
    );

    let world = world.configured(json!({ "agent": "ops" }));
    let client = world.client().await;
    assert_eq!(agent(&client, plain).await, "ops");
    assert_eq!(agent(&client, named).await, "ops");
}

#[tokio::test]
async fn guards_of_one_session_share_a_change_id() {
    let world = World::new().await;
    let change = async |client: &Client| {
        let receipt = client
            .ok(GUARD, json!({ "vm": "jp-ubuntu", "action": "edit" }))
            .await;
        receipt["change_id"].as_str().unwrap().to_owned()
    };
    let (first, second) = (world.client().await, world.client().await);
    let id = change(&first).await;
    assert_eq!(change(&first).await, id);
    assert_ne!(change(&second).await, id);
    assert!(id.starts_with("chg-") && id.len() <= 16, "{id}");
}

#[tokio::test]
async fn an_unlisted_tool_passes_through_without_a_word_to_the_zvm() {
    let world = World::new().await;
    let catalog = world.folder.path().join("catalog.toml");
    fs::write(
        &catalog,
        "version = 1\n[[guard]]\nserver = \"vmware\"\ntool = \"vm_reconfigure*\"\nvm = { arg = \"/vm_name\" }\naction = \"reconfigure {{ args.vm_name }}\"\n",
    )
    .unwrap();
    let world = world.configured(json!({ "catalog": catalog }));
    let client = world.client().await;
    let before = "zerto_guard_before_mutate";
    let unlisted = client
        .ok(
            before,
            json!({ "server": "vmware", "tool": "vm_list", "action": "look" }),
        )
        .await;
    assert_eq!(unlisted["decision"], "pass_through");
    assert!(world.sim.requests().is_empty());

    let listed = json!({
        "server": "vmware", "tool": "vm_reconfigure_cpu", "action": "two more CPUs", "arguments": { "vm_name": "jp-ubuntu" },
    });
    let guarded = client.ok(before, listed).await;
    assert_eq!(guarded["decision"], "guarded");
    assert_eq!(guarded["receipts"][0]["vm"], "jp-ubuntu");
}

#[tokio::test]
async fn lists_what_was_pinned_newest_first() {
    let world = World::new().await;
    let client = world.client().await;
    for action in ["first", "second"] {
        client
            .ok(GUARD, json!({ "vm": "jp-ubuntu", "action": action }))
            .await;
    }
    let result = client
        .call("zerto_list_checkpoints", json!({ "vm": "jp-ubuntu" }))
        .await;
    let list = result.structured_content.clone().unwrap();
    let actions: Vec<_> = list["checkpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["action"])
        .collect();
    assert_eq!(actions, ["second", "first"]);
    assert!(text(&result).contains("estimate"), "{}", text(&result));
    let one = client
        .ok(
            "zerto_list_checkpoints",
            json!({ "vm": "jp-ubuntu", "since": "1h", "limit": 1 }),
        )
        .await;
    assert_eq!(one["checkpoints"].as_array().unwrap().len(), 1);
    assert_eq!(one["truncated"], true);
}

/// A ZVM that takes a while to list a tag.
fn slow(lag: Duration) -> Scenario {
    let mut scenario = Scenario::fast();
    scenario.timings.listing_lag = Spread::fixed(lag);
    scenario
}

#[tokio::test]
async fn progress_rises_and_comes_at_least_every_two_seconds() {
    let world = World::with(slow(Duration::from_secs(5))).await;
    let client = world.client().await;
    let begun = std::time::Instant::now();
    client
        .ok(GUARD, json!({ "vm": "jp-ubuntu", "action": "edit" }))
        .await;
    let progress = client.progress();
    let mut last = (begun, 0.0);
    for (moment, update) in &progress {
        let pause = moment.duration_since(last.0);
        assert!(pause < Duration::from_secs(2), "{pause:?} without a word");
        assert!(
            update.progress > last.1,
            "{} after {}",
            update.progress,
            last.1
        );
        assert!(
            update
                .message
                .as_ref()
                .is_some_and(|message| !message.is_empty())
        );
        last = (*moment, update.progress);
    }
    assert!(progress.len() >= 3, "{progress:?}");
}

#[tokio::test]
async fn calls_run_side_by_side() {
    let world = World::new().await;
    // No guard ends before this is lifted.
    world.sim.update(|switches| switches.hold_listing = true);
    let client = world.client().await;
    let (first, second, ()) = tokio::join!(
        client.ok(GUARD, json!({ "vm": "jp-ubuntu", "action": "edit" })),
        client.ok(GUARD, json!({ "vm": "app01", "action": "edit" })),
        async {
            // Both have inserted on each of their VPGs.
            world
                .sim
                .wait_for(|zvm| zvm.answered("POST", "/checkpoints") == 4)
                .await;
            client
                .ok("zerto_find_protection", json!({ "vm": "jp-ubuntu" }))
                .await;
            world.sim.update(|switches| switches.hold_listing = false);
        }
    );
    assert_eq!(
        first["pins"].as_array().unwrap().len() + second["pins"].as_array().unwrap().len(),
        4
    );
}

#[tokio::test]
async fn a_cancelled_call_lets_go_of_the_vpg() {
    let world = World::new()
        .await
        .configured(json!({ "guard": { "listed_timeout": "2s" } }));
    world.sim.update(|switches| switches.tag_never_shows = true);
    let client = world.client().await;
    let guard = json!({ "vm": "jp-ubuntu", "action": "edit" });
    tokio::select! {
        result = client.call(GUARD, guard.clone()) => panic!("{result:?}"),
        // Dropping the call sends `notifications/cancelled`.
        () = world.sim.wait_for(|zvm| zvm.answered("POST", "/checkpoints") == 1) => {}
    }
    world
        .sim
        .update(|switches| switches.tag_never_shows = false);
    client.ok(GUARD, guard).await;
}
