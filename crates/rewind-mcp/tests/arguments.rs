//! What the published schemas don't allow is refused with words that help.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod support;

use serde_json::{Value, json};
use support::World;

#[tokio::test]
async fn each_mistake_is_named() {
    let world = World::new().await;
    let client = world.client().await;
    let find = "zerto_find_protection";
    let guard = "zerto_create_tagged_checkpoint";
    let list = "zerto_list_checkpoints";
    let recover = "zerto_recover_file";
    let long = |length: usize| Value::String("x".repeat(length));
    let mistakes = [
        (find, json!({}), vec!["`vm` is missing"]),
        (find, json!({ "vm": null }), vec!["`vm` is missing"]),
        (find, json!({ "vm": "" }), vec!["`vm` is empty"]),
        (
            find,
            json!({ "vm": 7 }),
            vec!["`vm`", "type string", "an integer"],
        ),
        (
            find,
            json!({ "vm": ["a"] }),
            vec!["`vm`", "type string", "an array"],
        ),
        (
            find,
            json!({ "vm_name": "a" }),
            vec!["\"vm_name\"", "did you mean `vm`?"],
        ),
        (
            find,
            json!({ "vm": "a", "zzz": 1 }),
            vec!["\"zzz\"", "it takes `vm`"],
        ),
        (find, json!({ "vm": long(257) }), vec!["`vm`", "257", "256"]),
        (
            find,
            json!({ "vm": "a", "\u{1b}[31m": 1 }),
            vec!["\\u{1b}[31m"],
        ),
        (guard, json!({ "vm": "a" }), vec!["`action` is missing"]),
        (
            guard,
            json!({ "vm": "a", "action": long(100_000) }),
            vec!["`action`", "100000", "4096"],
        ),
        (
            guard,
            json!({ "vm": "a", "action": "b", "changeid": "c" }),
            vec!["did you mean `change_id`?"],
        ),
        (
            guard,
            json!({ "vm": "a", "action": "b", "agent": long(33) }),
            vec!["`agent`", "33", "32"],
        ),
        (
            list,
            json!({ "vm": "a", "limit": 0 }),
            vec!["`limit` is 0", "from 1 to 500"],
        ),
        (
            list,
            json!({ "vm": "a", "limit": -1 }),
            vec!["`limit` is -1", "from 1 to 500"],
        ),
        (
            list,
            json!({ "vm": "a", "limit": 1.5 }),
            vec!["`limit`", "type integer", "a number"],
        ),
        (
            list,
            json!({ "vm": "a", "limit": "ten" }),
            vec!["`limit`", "type integer", "a string"],
        ),
        (
            list,
            json!({ "vm": "a", "since": "yesterday" }),
            vec!["`since`", "duration"],
        ),
        (
            list,
            json!({ "vm": "a", "since": "24" }),
            vec!["`since`", "unit"],
        ),
        (
            recover,
            json!({ "vm": "a", "path": long(10_000), "checkpoint": "1" }),
            vec!["`path`", "10000"],
        ),
        (
            recover,
            json!({ "vm": "a", "path": "/b", "checkpoint": "1", "confirmed": "yes" }),
            vec!["`confirmed`", "boolean"],
        ),
        (
            "zerto_guard_before_mutate",
            json!({ "tool": "t", "action": "a", "arguments": "b" }),
            vec!["`arguments`", "object"],
        ),
    ];
    for (tool, arguments, words) in mistakes {
        let error = client.err(tool, arguments.clone()).await;
        assert_eq!(error["code"], "invalid_argument", "{arguments}");
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with(tool), "{message}");
        for word in words {
            assert!(message.contains(word), "{word:?} is not in {message:?}");
        }
    }
    assert!(
        world.sim.requests().is_empty(),
        "a mistake in the arguments needs no ZVM"
    );
}

#[tokio::test]
async fn what_a_model_leaves_out_may_be_null_or_empty() {
    let world = World::new().await;
    let client = world.client().await;
    let arguments = json!({ "vm": "jp-ubuntu", "action": "edit", "agent": "", "change_id": null });
    let receipt = client.ok("zerto_create_tagged_checkpoint", arguments).await;
    assert_eq!(receipt["agent"], "test-client");
}

#[tokio::test]
async fn an_unknown_tool_is_a_protocol_error() {
    let world = World::new().await;
    let client = world.client().await;
    let request = rmcp::model::CallToolRequestParams::new("zerto_failover");
    let error = client.0.call_tool(request).await.unwrap_err();
    assert!(
        error.to_string().contains("There is no such tool"),
        "{error}"
    );
}
