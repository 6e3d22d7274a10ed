use crate::support::{Heard, World, call, request};
use rewind_core::{Call, Done, Error, ErrorCode};
use serde_json::json;
use zvm_sim::{
    Fault, Outcome, Scenario, Spread,
    switches::{Insert, NotReady, TaskFate},
};

const INSERT: &str = "/v1/vpgs/*/checkpoints";

/// A guard that loses no time over what never comes.
async fn impatient() -> World {
    World::with(
        Scenario::fast(),
        json!({ "guard": { "listed_timeout": "600ms", "attempts": 3, "deadline": "20s" } }),
    )
    .await
}

fn pinned(error: &Error) -> Vec<&str> {
    error
        .done
        .iter()
        .filter_map(|done| match done {
            Done::Pinned { vpg, .. } => Some(vpg.as_str()),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn a_dropped_insert_is_made_again() {
    let world = impatient().await;
    for drops in [1, 2] {
        world.sim.update(|switches| switches.drop_next = drops);
        let receipt = world.guard("jp-ubuntu").await.unwrap();
        assert_eq!(receipt.pins[0].inserts, drops + 1);
        assert_eq!(
            world
                .tags("jp-ubuntu")
                .iter()
                .filter(|tag| **tag == receipt.tag)
                .count(),
            1
        );
    }
}

#[tokio::test]
async fn a_tag_that_never_shows_fails_the_guard() {
    let world = impatient().await;
    world.sim.update(|switches| switches.tag_never_shows = true);
    let error = world.guard("jp-ubuntu").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NotListed);
    assert_eq!(world.count("POST", "/checkpoints"), 3);
    assert!(
        matches!(error.done.as_slice(), [Done::InsertedNotListed { vpg, .. }] if vpg == "jp-ubuntu")
    );
}

#[tokio::test]
async fn a_late_first_insert_is_the_pin() {
    let world = impatient().await;
    world.sim.update(|switches| {
        switches.listing_lag = Some(Spread::millis(900, 900));
        switches.drop_back_to_back = false;
    });
    let receipt = world.guard("jp-ubuntu").await.unwrap();
    assert_eq!(
        receipt.pins[0].checkpoint,
        world.sim.journal("jp-ubuntu")[0].id
    );
}

#[tokio::test]
async fn a_lost_answer_is_no_reason_to_insert_twice() {
    let world = impatient().await;
    world.sim.add_fault(Fault::cut_after("POST", INSERT));
    let receipt = world.guard("jp-ubuntu").await.unwrap();
    assert_eq!(receipt.pins[0].inserts, 1);
    assert_eq!(world.count("POST", "/checkpoints"), 1);
    assert_eq!(world.tags("jp-ubuntu"), [receipt.tag]);
}

#[tokio::test]
async fn a_lost_request_is_made_again_once_the_journal_shows_nothing() {
    for fault in [
        Fault::cut_before("POST", INSERT),
        Fault::answer("POST", INSERT, 504, Outcome::Html),
    ] {
        let world = impatient().await;
        world.sim.add_fault(fault);
        let receipt = world.guard("jp-ubuntu").await.unwrap();
        assert_eq!(receipt.pins[0].inserts, 2);
        assert_eq!(world.tags("jp-ubuntu"), [receipt.tag]);
    }
}

#[tokio::test]
async fn nothing_is_inserted_again_while_the_journal_can_not_be_read() {
    let world = impatient().await;
    world.sim.update(|switches| switches.drop_next = 1);
    // The look before the insert passes.
    world.sim.add_fault(Fault {
        skip: 1,
        times: 0,
        ..Fault::answer("GET", INSERT, 500, Outcome::Message)
    });
    let error = world.guard("jp-ubuntu").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::ZvmError);
    assert_eq!(world.count("POST", "/checkpoints"), 1);
    assert!(matches!(
        error.done.as_slice(),
        [Done::InsertedNotListed { .. }]
    ));
}

#[tokio::test]
async fn a_journal_that_answers_with_rubbish_for_a_while_is_looked_at_again() {
    for outcome in [Outcome::Html, Outcome::Empty, Outcome::TruncatedJson] {
        let world = World::new().await;
        world.sim.add_fault(Fault {
            skip: 1,
            times: 2,
            ..Fault::answer("GET", INSERT, 200, outcome)
        });
        let receipt = world.guard("jp-ubuntu").await.unwrap();
        assert_eq!(world.tags("jp-ubuntu"), [receipt.tag], "{outcome:?}");
    }
}

#[tokio::test]
async fn a_refused_insert_is_told_in_the_zvms_words() {
    let world = impatient().await;
    world
        .sim
        .update(|switches| switches.insert = Insert::Refused);
    let error = world.guard("jp-ubuntu").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::InsertRefused);
    assert!(
        error
            .message
            .contains("The checkpoint could not be inserted."),
        "{}",
        error.message
    );
    assert!(matches!(error.done.as_slice(), [Done::NotPinned { .. }]));
    assert_eq!(world.count("POST", "/checkpoints"), 1);
}

#[tokio::test]
async fn a_failed_task_is_told_in_the_zvms_words() {
    let world = impatient().await;
    world.sim.update(|switches| switches.task = TaskFate::Fails);
    let error = world.guard("jp-ubuntu").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::InsertRefused);
    assert!(
        error.message.contains("The VRA did not answer in time."),
        "{}",
        error.message
    );
    assert_eq!(world.count("POST", "/checkpoints"), 1);
}

#[tokio::test]
async fn a_task_that_says_nothing_leaves_it_to_the_journal() {
    for fate in [TaskFate::Disappears, TaskFate::NeverEnds] {
        let world = World::with(
            Scenario::fast(),
            json!({ "guard": { "listed_timeout": "10s" } }),
        )
        .await;
        world.sim.update(|switches| switches.task = fate);
        let receipt = world.guard("jp-ubuntu").await.unwrap();
        assert_eq!(world.tags("jp-ubuntu"), [receipt.tag], "{fate:?}");
        assert_eq!(receipt.pins[0].inserts, 1, "{fate:?}");
    }
    let world = World::new().await;
    world
        .sim
        .update(|switches| switches.task_unknown_for = std::time::Duration::from_millis(700));
    assert_eq!(world.guard("jp-ubuntu").await.unwrap().pins[0].inserts, 1);
}

#[tokio::test]
async fn one_of_three_that_fails_fails_the_guard_and_the_others_are_told() {
    let world = impatient().await;
    world
        .sim
        .update(|switches| switches.vpg_mut("app01-dr").insert = Some(Insert::Refused));
    let error = world.guard("app01").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::InsertRefused);
    assert!(
        error.message.contains("1 of 3 VPGs") && error.message.contains("app01-dr"),
        "{}",
        error.message
    );
    assert_eq!(pinned(&error), ["app01-archive", "app01-local"]);
    assert!(
        error
            .done
            .iter()
            .any(|done| matches!(done, Done::NotPinned { vpg, .. } if vpg == "app01-dr"))
    );
    assert_eq!(world.tags("app01-local").len(), 1);
    assert!(world.tags("app01-dr").is_empty());
}

#[tokio::test]
async fn a_vpg_that_takes_no_checkpoints_is_refused_before_any_insert() {
    let world = World::new().await;
    assert_eq!(
        world.guard("paused01").await.unwrap_err().code,
        ErrorCode::VpgNotReady
    );
    let error = world.guard("cloud01").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::ProtectedSiteIsCloud);
    assert!(error.next.contains("vSphere"), "{}", error.next);
    for sub_status in [
        "BitmapSync",
        "InitialSync",
        "NeedsConfiguration",
        "DisconnectedFromPeerNoRecoveryPoints",
    ] {
        world
            .sim
            .update(|switches| switches.vpg_mut("app01-dr").sub_status = Some(sub_status.into()));
        let error = world.guard("app01").await.unwrap_err();
        assert_eq!(error.code, ErrorCode::VpgNotReady, "{sub_status}");
        assert!(error.message.contains(sub_status), "{}", error.message);
    }
    assert_eq!(world.count("POST", "/checkpoints"), 0);
}

#[tokio::test]
async fn in_a_doubtful_state_the_listing_decides() {
    for (fate, code) in [
        (NotReady::Refused, ErrorCode::InsertRefused),
        (NotReady::TaskFails, ErrorCode::InsertRefused),
        (NotReady::Dropped, ErrorCode::NotListed),
    ] {
        let world = impatient().await;
        world.sim.update(|switches| {
            switches.not_ready = fate;
            switches.vpg_mut("jp-ubuntu").sub_status = Some("VolumeInitialSync".into());
        });
        match world.guard("jp-ubuntu").await {
            Ok(receipt) => assert_eq!(world.tags("jp-ubuntu"), [receipt.tag]),
            Err(error) => assert_eq!(error.code, code, "{fate:?}"),
        }
    }
}

#[tokio::test]
async fn cancelling_stops_the_waiting_and_says_what_was_inserted() {
    let world = World::new().await;
    world
        .sim
        .update(|switches| switches.listing_lag = Some(Spread::millis(60_000, 60_000)));
    let call = call();
    let guard = world.rewind.guard(request("app01"), &call);
    let cancel = async {
        world
            .sim
            .wait_for(|view| view.answered("POST", "/checkpoints") == 3)
            .await;
        call.cancel.cancel();
    };
    let (result, ()) = tokio::join!(guard, cancel);
    let error = result.unwrap_err();
    assert_eq!(error.code, ErrorCode::Cancelled);
    assert_eq!(error.done.len(), 3);
    assert!(
        error
            .done
            .iter()
            .all(|done| matches!(done, Done::InsertedNotListed { .. })),
        "{:?}",
        error.done
    );
}

#[tokio::test]
async fn a_guard_that_is_dropped_lets_the_next_one_in() {
    let world = World::new().await;
    world.sim.update(|switches| switches.tag_never_shows = true);
    {
        let call = call();
        let guard = world.rewind.guard(request("jp-ubuntu"), &call);
        let inserted = world
            .sim
            .wait_for(|view| view.answered("POST", "/checkpoints") == 1);
        tokio::select! { _ = guard => panic!("it can't end"), () = inserted => {} }
    }
    world
        .sim
        .update(|switches| switches.tag_never_shows = false);
    world
        .beside()
        .guard(request("jp-ubuntu"), &call())
        .await
        .unwrap();
}

#[tokio::test]
async fn the_deadline_holds_for_the_whole_guard() {
    let world = World::with(
        Scenario::fast(),
        json!({ "guard": { "listed_timeout": "1s", "attempts": 3, "deadline": "1500ms" } }),
    )
    .await;
    world.sim.update(|switches| switches.tag_never_shows = true);
    let started = std::time::Instant::now();
    let error = world.guard("jp-ubuntu").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NotListed);
    assert!(started.elapsed().as_secs_f64() < 5.0);
    assert!(world.count("POST", "/checkpoints") <= 2);
}

#[tokio::test]
async fn a_token_that_is_revoked_in_the_middle_is_replaced() {
    let world = World::new().await;
    world
        .sim
        .update(|switches| switches.listing_lag = Some(Spread::millis(700, 700)));
    let call: Call = call();
    let guard = world.rewind.guard(request("app01"), &call);
    let revoke = async {
        world
            .sim
            .wait_for(|view| view.answered("POST", "/checkpoints") == 3)
            .await;
        world.sim.revoke_tokens();
    };
    let (receipt, ()) = tokio::join!(guard, revoke);
    assert_eq!(receipt.unwrap().pins.len(), 3);
}

/// A guard that is stopped as soon as its insert was answered: killed (its future is gone), or cancelled.
async fn interrupted(world: &World, cancelled: bool) {
    let call = call();
    let guard = world.rewind.guard(request("jp-ubuntu"), &call);
    let inserted = world
        .sim
        .wait_for(|view| view.answered("POST", "/checkpoints") == 1);
    if cancelled {
        let cancel = async {
            inserted.await;
            call.cancel.cancel();
        };
        let (result, ()) = tokio::join!(guard, cancel);
        assert_eq!(result.unwrap_err().code, ErrorCode::Cancelled);
    } else {
        tokio::select! { _ = guard => panic!("it can't end"), () = inserted => {} }
    }
}

#[tokio::test]
async fn a_guard_lets_the_insert_of_an_interrupted_one_be_listed_first() {
    for cancelled in [false, true] {
        let world = World::with(
            Scenario::fast(),
            json!({ "guard": { "listed_timeout": "20s" } }),
        )
        .await;
        world.sim.update(|switches| switches.hold_listing = true);
        interrupted(&world, cancelled).await;
        world.sim.clear_requests();

        let next = world.with_config(&json!({ "guard": { "listed_timeout": "20s" } }));
        let (heard, watched) = Heard::call();
        let guard = next.guard(request("jp-ubuntu"), &watched);
        let listing = async {
            // Its own tag was chosen, and the other one was looked for over more than a second.
            world
                .sim
                .wait_for(|view| view.answered("GET", "/checkpoints") >= 5)
                .await;
            assert_eq!(world.count("POST", "/checkpoints"), 0);
            world.sim.update(|switches| switches.hold_listing = false);
        };
        let (receipt, ()) = tokio::join!(guard, listing);
        assert_eq!(receipt.unwrap().pins[0].inserts, 1, "nothing was dropped");
        assert_eq!(world.count("POST", "/checkpoints"), 1);
        assert_eq!(world.tags("jp-ubuntu").len(), 2);
        let messages = heard.messages();
        assert!(
            messages
                .iter()
                .any(|message| message.contains("interrupted guard to be listed")),
            "{messages:?}"
        );
    }
}

#[tokio::test]
async fn an_insert_that_never_shows_is_waited_for_no_longer_than_its_own_guard_would() {
    let world = World::with(
        Scenario::fast(),
        json!({ "guard": { "listed_timeout": "2500ms" } }),
    )
    .await;
    world.sim.update(|switches| switches.drop_next = 1);
    interrupted(&world, false).await;
    for waits in [true, false] {
        let (heard, watched) = Heard::call();
        let receipt = world.rewind.guard(request("jp-ubuntu"), &watched).await;
        assert_eq!(receipt.unwrap().pins[0].inserts, 1);
        let behind = |message: &String| message.contains("interrupted guard");
        assert_eq!(heard.messages().iter().any(behind), waits);
    }
}

#[tokio::test]
async fn what_was_not_inserted_is_not_waited_for() {
    let world = World::with(
        Scenario::fast(),
        json!({ "guard": { "listed_timeout": "20s" } }),
    )
    .await;
    for fail in [Insert::Refused, Insert::Accepted] {
        world.sim.update(|switches| {
            switches.insert = fail;
            switches.task = TaskFate::Fails;
        });
        let error = world.guard("jp-ubuntu").await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InsertRefused);
        world.sim.update(|switches| {
            switches.insert = Insert::Accepted;
            switches.task = TaskFate::Completes;
        });
        world.sim.clear_requests();
        let receipt = world.guard("jp-ubuntu").await.unwrap();
        assert!(receipt.seconds < 10.0, "{} s", receipt.seconds);
    }
}

#[tokio::test]
async fn a_zvm_that_stops_in_the_middle_leaves_no_doubt_about_what_was_inserted() {
    let world = impatient().await;
    world
        .sim
        .update(|switches| switches.listing_lag = Some(Spread::millis(60_000, 60_000)));
    let call = call();
    let guard = world.rewind.guard(request("app01"), &call);
    let stop = async {
        world
            .sim
            .wait_for(|view| view.answered("POST", "/checkpoints") == 3)
            .await;
        world.sim.add_fault(Fault {
            times: 0,
            ..Fault::cut_before("", "/**")
        });
    };
    let (result, ()) = tokio::join!(guard, stop);
    let error = result.unwrap_err();
    assert_eq!(error.code, ErrorCode::ZvmUnreachable);
    assert!(
        error
            .done
            .iter()
            .all(|done| matches!(done, Done::InsertedNotListed { .. })),
        "{:?}",
        error.done
    );
    assert!(
        error.next.starts_with("Don't make the change") && !error.next.contains("Nothing was"),
        "{}",
        error.next
    );
    for vpg in ["app01-archive", "app01-dr", "app01-local"] {
        let said = format!("the tag was inserted into VPG {vpg}");
        assert!(error.message.contains(&said), "{}", error.message);
        let identifier = world.sim.vpg_id(vpg).unwrap();
        assert!(!error.message.contains(identifier), "{}", error.message);
    }
}
