use crate::{
    stage::{self, beside, checkpoint, enforcer, guard, guard_with, inserts, stage},
    support::{call, request},
};
use jiff::Timestamp;
use rewind_core::{
    GuardDecision, GuardRequest, ToolCall,
    enforce::Outcome,
    state::{GuardRecord, PinRecord, State},
};
use serde_json::json;
use std::time::Duration;
use zvm_sim::Scenario;

#[tokio::test]
async fn calls_of_one_change_share_a_pin() {
    let world = stage().await;
    let proxy = enforcer(&world);
    let first = guard(&proxy, "quick_edit", "jp-ubuntu").await.unwrap();
    let pin = checkpoint(&first).to_owned();
    assert!(!first.reused);
    proxy.outcome(first, Outcome::Ok);
    // Another tool, and another process, of the same agent and change.
    let again = guard(&proxy, "quick_look", "jp-ubuntu").await.unwrap();
    let hook = enforcer(&world);
    let elsewhere = guard(&hook, "quick_edit", "jp-ubuntu").await.unwrap();
    for reused in [&again, &elsewhere] {
        assert!(reused.reused);
        assert_eq!(checkpoint(reused), pin);
    }
    assert_eq!(inserts(&world), 1);
    proxy.outcome(again, Outcome::Ok);
    hook.outcome(elsewhere, Outcome::Ok);
    // Outcomes are written beside the calls; before that, the same call seen elsewhere shares its pin whoever makes it.
    proxy.flush();
    hook.flush();

    let other_change = json!({ "vm": "jp-ubuntu", "ticket": "OPS-8" });
    let other_change = guard_with(&proxy, "quick_edit", other_change, &call()).await;
    assert!(!other_change.unwrap().reused);
    let mut other_agent = call();
    other_agent.caller = "codex".into();
    let other_agent = guard_with(
        &proxy,
        "quick_edit",
        json!({ "vm": "jp-ubuntu" }),
        &other_agent,
    );
    assert!(!other_agent.await.unwrap().reused);
    assert!(!guard(&proxy, "quick_edit", "app01").await.unwrap().reused);
    // Without `reuse`, a call takes its own pin.
    assert!(!guard(&proxy, "vm_stop", "jp-ubuntu").await.unwrap().reused);
}

#[tokio::test]
async fn calls_that_come_at_once_share_it_too() {
    let world = stage().await;
    let proxy = enforcer(&world);
    let calls = ["quick_a", "quick_b", "quick_c"].map(|tool| guard(&proxy, tool, "app01"));
    let guarded = futures::future::try_join_all(calls).await.unwrap();
    assert_eq!(guarded.iter().filter(|guarded| guarded.reused).count(), 2);
    assert_eq!(inserts(&world), 3);
    let tags: Vec<_> = guarded
        .iter()
        .map(|guarded| &guarded.receipts[0].tag)
        .collect();
    assert!(tags.iter().all(|tag| *tag == tags[0]), "{tags:?}");
}

#[tokio::test]
async fn a_pin_that_was_asked_for_is_reused_by_calls_and_by_asking_again() {
    let world = stage().await;
    let pin = GuardRequest {
        agent: None,
        change_id: Some("OPS-7".into()),
        ..request("jp-ubuntu")
    };
    let receipt = world.rewind.guard(pin, &call()).await.unwrap();
    let arguments = json!({ "vm": "jp-ubuntu", "ticket": "OPS-7" });
    let proxy = enforcer(&world);
    let guarded = guard_with(&proxy, "quick_edit", arguments.clone(), &call())
        .await
        .unwrap();
    assert!(guarded.reused);
    assert_eq!(guarded.receipts[0].tag, receipt.tag);
    let ask = ToolCall {
        server: Some("vmware".into()),
        tool: "quick_edit".into(),
        action: "edit".into(),
        vm: None,
        arguments: Some(arguments),
        agent: None,
        change_id: None,
    };
    let decision = beside(&world).guard_tool_call(ask, &call()).await.unwrap();
    let GuardDecision::Guarded { receipts, .. } = decision else {
        panic!("{decision:?}")
    };
    assert_eq!(receipts[0].tag, receipt.tag);
    assert_eq!(inserts(&world), 1);
}

#[tokio::test]
async fn a_pin_that_is_gone_is_not_reused() {
    let mut scenario = Scenario::fast();
    scenario.vpg_mut("jp-ubuntu").unwrap().history = Duration::from_secs(1);
    let world = stage::of(scenario, json!({})).await;
    let proxy = enforcer(&world);
    let first = guard(&proxy, "quick_edit", "jp-ubuntu").await.unwrap();
    world
        .sim
        .wait_for(|view| view.journal("jp-ubuntu").is_empty())
        .await;
    let second = guard(&proxy, "quick_edit", "jp-ubuntu").await.unwrap();
    assert!(!second.reused);
    assert_ne!(checkpoint(&first), checkpoint(&second));
}

#[tokio::test]
async fn pins_on_other_vpgs_than_the_vms_are_not_enough() {
    let world = stage().await;
    let proxy = enforcer(&world);
    let first = guard(&proxy, "quick_edit", "app01").await.unwrap();
    let receipt = &first.receipts[0];
    // As if it had been in fewer, more, or other VPGs at the time.
    let pin = |index: usize| {
        let pin = &receipt.pins[index];
        PinRecord {
            vpg_identifier: pin.vpg_identifier.clone(),
            vpg_name: pin.vpg.clone(),
            checkpoint_id: pin.checkpoint.clone(),
            checkpoint_at: pin.time.parse().unwrap(),
        }
    };
    let other = PinRecord {
        vpg_identifier: "another".into(),
        ..pin(0)
    };
    let state = State::open(world.folder().join("state")).unwrap();
    for pins in [
        vec![pin(0), pin(1)],
        vec![pin(0), pin(1), pin(2), other.clone()],
        vec![pin(0), pin(1), other],
        vec![],
    ] {
        let now = Timestamp::now();
        let guard = GuardRecord {
            zvm: world.rewind.config().zvm(),
            agent: receipt.agent.clone(),
            client: None,
            change: receipt.change_id.clone(),
            vm_identifier: receipt.vm_identifier.clone(),
            vm_name: receipt.vm.clone(),
            tag: receipt.tag.clone(),
            call: None,
            started: now,
            ended: now,
            pins,
            failure: None,
        };
        state.record_guard(&guard).unwrap();
    }
    // The one that is good is found behind them.
    let second = guard(&proxy, "quick_edit", "app01").await.unwrap();
    assert!(second.reused);
    assert_eq!(second.receipts[0].pins.len(), 3);
    assert_eq!(inserts(&world), 3);
}
