//! Listed calls in the ledger, and beside the journal.
use crate::{
    stage::{beside, enforcer, guard, observed, of_hook, refused, stage},
    support::{World, call},
};
use rewind_core::{
    CheckpointList, ErrorCode, ToolCall,
    enforce::{Asker, Enforcer, Outcome},
    ledger::{Filter, OpenIntents},
};
use serde_json::{Value, json};

async fn list(world: &World, vm: &str) -> CheckpointList {
    world
        .rewind
        .checkpoints(vm, None, None, &call())
        .await
        .unwrap()
}

fn rows(world: &World, kind: &str) -> Vec<Value> {
    let mut rows = Vec::new();
    let ledger = world.rewind.ledger();
    ledger
        .export(&Filter::default(), |row| {
            if row["kind"] == kind {
                rows.push(row["row"].clone());
            }
        })
        .unwrap();
    rows
}

fn assert_clean(world: &World) {
    let verified = world.rewind.ledger().verify().unwrap();
    assert!(verified.clean, "{:?}", verified.findings);
    assert_eq!(verified.open_intents, OpenIntents::default());
}

/// Guards a call on jp-ubuntu and ends it so.
async fn ended(enforcer: Enforcer, tool: &str, outcome: Outcome) {
    let guarded = guard(&enforcer, tool, "jp-ubuntu").await.unwrap();
    enforcer.outcome(guarded, outcome);
}

#[tokio::test]
async fn a_checkpoint_says_for_which_call_it_was_and_how_that_ended() {
    let world = stage().await;
    ended(enforcer(&world), "vm_stop", Outcome::Ok).await;
    ended(enforcer(&world), "vm_start", Outcome::IsError).await;
    drop(
        guard(&enforcer(&world), "vm_reset", "jp-ubuntu")
            .await
            .unwrap(),
    );
    let asked = ToolCall {
        server: Some("vmware".into()),
        tool: "vm_rename".into(),
        action: "rename".into(),
        vm: None,
        arguments: Some(json!({ "vm": "jp-ubuntu" })),
        agent: None,
        change_id: None,
    };
    beside(&world)
        .guard_tool_call(asked, &call())
        .await
        .unwrap();

    let list = list(&world, "jp-ubuntu").await;
    let mut calls: Vec<_> = list
        .checkpoints
        .iter()
        .map(|checkpoint| {
            let guard = checkpoint.guard.as_ref().unwrap();
            let [call] = guard.calls.as_slice() else {
                panic!("{guard:?}")
            };
            assert_eq!(
                (call.server.as_deref(), call.arguments_sha256.len()),
                (Some("vmware"), 64)
            );
            (call.tool.as_str(), call.outcome.as_str())
        })
        .collect();
    calls.reverse();
    assert_eq!(
        calls,
        [
            ("vm_stop", "ok"),
            ("vm_start", "is_error"),
            ("vm_reset", "lost"),
            ("vm_rename", "not_observed")
        ]
    );
    assert_clean(&world);
}

#[tokio::test]
async fn a_pin_that_several_share_names_them_all() {
    let world = stage().await;
    let proxy = enforcer(&world);
    let first = guard(&proxy, "quick_a", "jp-ubuntu").await.unwrap();
    let second = guard(&proxy, "quick_b", "jp-ubuntu").await.unwrap();
    assert!(second.reused);
    proxy.outcome(first, Outcome::Ok);
    proxy.outcome(second, Outcome::IsError);
    drop(proxy);
    let list = list(&world, "jp-ubuntu").await;
    let [checkpoint] = list.checkpoints.as_slice() else {
        panic!("{list:?}")
    };
    let calls = &checkpoint.guard.as_ref().unwrap().calls;
    let calls: Vec<_> = calls
        .iter()
        .map(|call| (&*call.tool, &*call.outcome))
        .collect();
    assert_eq!(calls, [("quick_a", "ok"), ("quick_b", "is_error")]);
    assert_clean(&world);
}

#[tokio::test]
async fn a_call_that_a_hook_handed_over_is_not_interrupted() {
    let world = stage().await;
    let hook = of_hook(&world);
    let guarded = guard(&hook, "vm_stop", "jp-ubuntu").await.unwrap();
    hook.hand_over(guarded, Some("call-1"));
    drop(hook);
    assert_clean(&world);
    let call_of = |list: CheckpointList| {
        list.checkpoints[0].guard.clone().unwrap().calls[0]
            .outcome
            .clone()
    };
    assert_eq!(call_of(list(&world, "jp-ubuntu").await), "not_told");
    let arguments = json!({ "vm": "jp-ubuntu" });
    of_hook(&world)
        .outcome_of(
            &observed("vm_stop", &arguments),
            Some("call-1"),
            Outcome::Ok,
        )
        .unwrap();
    assert_eq!(call_of(list(&world, "jp-ubuntu").await), "ok");
    assert_clean(&world);
}

#[tokio::test]
async fn calls_that_are_not_let_through_are_in_the_ledger() {
    let world = stage().await;
    let proxy = enforcer(&world);
    let arguments = json!({ "vm": "jp-ubuntu", "password": "hunter2" });
    let denied = observed("vm_delete", &arguments);
    let error = refused(&proxy, &denied);
    let asker = Asker {
        client: "claude-code",
        change: "chg-1",
    };
    proxy.refused(&denied, asker, &error);
    assert_eq!(
        guard(&proxy, "vm_stop", "bare01").await.unwrap_err().code,
        ErrorCode::VmNotFound
    );
    drop(proxy);

    let refusals = rows(&world, "refusal");
    let brief: Vec<_> = refusals
        .iter()
        .map(|row| ["asked", "tool", "code", "client"].map(|name| row[name].as_str().unwrap()))
        .collect();
    assert_eq!(
        brief,
        [
            ["call", "vm_delete", "denied", "claude-code"],
            ["call", "vm_stop", "vm_not_found", "test-client"]
        ]
    );
    assert!(!refusals[0].to_string().contains("hunter2"));
    assert_eq!(refusals[1]["vm"], "bare01");
    assert_clean(&world);
}
