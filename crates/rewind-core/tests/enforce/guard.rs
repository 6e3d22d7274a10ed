use crate::{
    stage::{
        self, Heard, checkpoint, enforcer, guard, guard_with, inserts, observed, outcomes, stage,
        texts,
    },
    support::call,
};
use rewind_core::{
    Done, ErrorCode,
    enforce::{ObservedCall, Outcome},
};
use serde_json::json;
use zvm_sim::{Scenario, switches::Insert};

#[tokio::test]
async fn a_listed_call_is_pinned_as_its_entry_says() {
    let world = stage().await;
    let enforcer = enforcer(&world);
    let arguments = json!({ "vm": "APP01", "ticket": "OPS-7" });
    let guarded = guard_with(&enforcer, "vm_stop", arguments, &call())
        .await
        .unwrap();
    assert!(!guarded.reused && guarded.warnings.is_empty());
    let [receipt] = guarded.receipts.as_slice() else {
        panic!("{guarded:?}")
    };
    assert_eq!((receipt.vm.as_str(), receipt.pins.len()), ("app01", 3));
    assert!(
        receipt
            .tag
            .starts_with("ai:test-client | vm_stop APP01 | vm=app01 | change=OPS-7 | "),
        "{}",
        receipt.tag
    );
    assert_eq!(world.tags("app01-dr"), [receipt.tag.as_str()]);
    enforcer.outcome(guarded, Outcome::Ok);
    let guarded = guard(&enforcer, "vm_start", "jp-ubuntu").await.unwrap();
    assert_eq!(guarded.receipts[0].change_id, "session-1");
    enforcer.outcome(guarded, Outcome::ProtocolError);
    // The last clone waits until they are written.
    drop(enforcer);
    assert_eq!(outcomes(&world), ["ok", "protocol_error"]);
    assert_eq!(
        texts(
            &world,
            "SELECT g.tool || ' ' || o.outcome FROM call_outcome o JOIN claim c ON c.call = o.call
             JOIN claim_ended e ON e.claim = c.id JOIN guard g ON g.id = e.guard ORDER BY g.id"
        ),
        ["vm_stop ok", "vm_start protocol_error"]
    );
}

#[tokio::test]
async fn a_guarded_call_whose_end_is_not_told_is_lost() {
    let world = stage().await;
    let enforcer = enforcer(&world);
    let guarded = guard(&enforcer, "vm_stop", "jp-ubuntu").await.unwrap();
    let told = guard(&enforcer, "vm_start", "jp-ubuntu").await.unwrap();
    enforcer.flush();
    assert!(outcomes(&world).is_empty());
    enforcer.outcome(told, Outcome::NotForwarded);
    enforcer.flush();
    assert_eq!(outcomes(&world), ["not_forwarded"]);
    drop(enforcer);
    // The last one of all waits, too.
    drop(guarded);
    assert_eq!(outcomes(&world), ["lost", "not_forwarded"]);
}

#[tokio::test]
async fn every_vm_of_a_call_is_guarded() {
    let world = stage().await;
    let enforcer = enforcer(&world);
    let arguments = json!({ "command": "ssh app01 uptime && ssh app01 true; ssh ubuntu reboot" });
    let observed = ObservedCall {
        server: Some("builtin"),
        ..observed("Bash", &arguments)
    };
    let guarded = enforcer
        .guard(stage::listed(&enforcer, &observed), &call())
        .await
        .unwrap();
    let mut vms: Vec<_> = guarded.receipts.iter().map(|receipt| &receipt.vm).collect();
    vms.sort_unstable();
    assert_eq!(vms, ["app01", "jp-ubuntu"]);
    assert_eq!(inserts(&world), 4);
}

#[tokio::test]
async fn one_vm_that_fails_refuses_the_call_and_the_pins_are_told() {
    let world = stage().await;
    let enforcer = enforcer(&world);
    let both = json!({ "vm": ["app01", "jp-ubuntu"] });
    world
        .sim
        .update(|switches| switches.vpg_mut("jp-ubuntu").insert = Some(Insert::Refused));
    let error = guard_with(&enforcer, "vm_stop", both.clone(), &call())
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::InsertRefused);
    let pinned = |done: &&Done| matches!(done, Done::Pinned { .. });
    assert_eq!(error.done.iter().filter(pinned).count(), 3);
    assert_eq!(error.done.len(), 4);

    // Called again, nothing of it is used: the pins are older than they seem.
    world
        .sim
        .update(|switches| switches.vpg_mut("jp-ubuntu").insert = None);
    world.sim.clear_requests();
    let next = stage::enforcer(&world);
    drop(enforcer);
    let guarded = guard_with(&next, "vm_stop", both, &call()).await.unwrap();
    assert!(!guarded.reused);
    assert_eq!(inserts(&world), 4);
    drop(guarded);
    drop(next);
    assert_eq!(outcomes(&world), ["not_forwarded", "lost"]);
}

#[tokio::test]
async fn a_vm_that_is_not_there_or_not_ready_refuses_before_anything_is_inserted() {
    let world = stage().await;
    let enforcer = enforcer(&world);
    for (other, code) in [
        ("nobody", ErrorCode::VmNotFound),
        ("web", ErrorCode::VmAmbiguous),
        ("lonely", ErrorCode::VmNotProtected),
        ("paused01", ErrorCode::VpgNotReady),
        ("cloud01", ErrorCode::ProtectedSiteIsCloud),
    ] {
        let arguments = json!({ "vm": ["app01", other] });
        let error = guard_with(&enforcer, "vm_stop", arguments, &call())
            .await
            .unwrap_err();
        assert_eq!(error.code, code, "{other}");
    }
    assert_eq!(inserts(&world), 0);
}

#[tokio::test]
async fn an_unprotected_vm_passes_only_where_the_entry_says_so() {
    let world = stage().await;
    let enforcer = enforcer(&world);
    let guarded = guard(&enforcer, "lenient", "lonely").await.unwrap();
    assert!(guarded.receipts.is_empty());
    assert!(
        guarded.warnings[0].contains("lonely") && guarded.warnings[0].contains("no pin"),
        "{guarded:?}"
    );
    let arguments = json!({ "vm": ["lonely", "jp-ubuntu"] });
    let guarded = guard_with(&enforcer, "lenient", arguments, &call())
        .await
        .unwrap();
    assert_eq!(guarded.receipts.len(), 1);
    assert_eq!(guarded.warnings.len(), 1);
    let error = guard(&enforcer, "lenient", "nobody").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::VmNotFound);
}

#[tokio::test]
async fn a_cancelled_call_is_not_made() {
    let world = stage().await;
    let enforcer = enforcer(&world);
    world.sim.update(|switches| switches.hold_listing = true);
    let (_, call) = Heard::call();
    let cancel = call.cancel.clone();
    let guarding = guard_with(&enforcer, "vm_stop", json!({ "vm": "jp-ubuntu" }), &call);
    let cancelling = async {
        world
            .sim
            .wait_for(|view| view.answered("POST", "/checkpoints") == 1)
            .await;
        cancel.cancel();
    };
    let (error, ()) = futures::future::join(guarding, cancelling).await;
    let error = error.unwrap_err();
    assert_eq!(error.code, ErrorCode::Cancelled);
    assert!(matches!(
        error.done.as_slice(),
        [Done::InsertedNotListed { .. }]
    ));
    drop(enforcer);
    assert_eq!(outcomes(&world), ["not_forwarded"]);
}

#[tokio::test]
async fn without_the_zvm_nothing_passes() {
    let world = stage::of(
        Scenario::fast(),
        json!({ "zerto_url": "https://127.0.0.1:9", "guard": { "listed_timeout": "2s", "deadline": "2s" } }),
    )
    .await;
    let enforcer = rewind_core::enforce::Enforcer::new(world.rewind.clone()).unwrap();
    let error = guard(&enforcer, "vm_stop", "jp-ubuntu").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::ZvmUnreachable);
}

#[tokio::test]
async fn hostile_words_stay_within_their_field() {
    let world = stage().await;
    let enforcer = enforcer(&world);
    let vm = "jp-ubuntu";
    let tool = format!("vm_{}", "a | vm=other; \u{202e}\n".repeat(1000));
    let guarded = guard(&enforcer, &tool, vm).await.unwrap();
    let tag = &guarded.receipts[0].tag;
    assert!(
        tag.chars().count() <= 250 && tag.contains("| vm=jp-ubuntu |"),
        "{tag}"
    );
    assert_eq!(tag.matches("| vm=").count(), 1, "{tag}");
    assert!(!checkpoint(&guarded).is_empty());
}
