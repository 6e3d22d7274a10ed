use crate::support::{Heard, World, call, request};
use rewind_core::{Call, ErrorCode, GuardRequest, tag};
use std::time::Duration;
use zvm_sim::{Scenario, Spread};

#[tokio::test]
async fn one_vpg_is_pinned_with_the_tag_as_written() {
    let world = World::new().await;
    let receipt = world.guard("JP-UBUNTU").await.unwrap();
    assert_eq!(
        (receipt.vm.as_str(), receipt.agent.as_str()),
        ("jp-ubuntu", "claude")
    );
    assert_eq!(receipt.change_id, "chg-412");
    assert!(receipt.tag.starts_with(
        "ai:claude | edit /home/justin/app-config.yaml | vm=jp-ubuntu | change=chg-412 | 2"
    ));
    let [pin] = receipt.pins.as_slice() else {
        panic!("{:?}", receipt.pins)
    };
    assert_eq!(
        (pin.vpg.as_str(), pin.tag.as_str(), pin.inserts),
        ("jp-ubuntu", receipt.tag.as_str(), 1)
    );
    let journal = world.sim.journal("jp-ubuntu");
    assert_eq!(journal.len(), 1);
    assert_eq!(
        (&journal[0].id, &journal[0].tag),
        (&pin.checkpoint, &receipt.tag)
    );
    assert!(pin.expected_until.as_ref().unwrap() > &pin.time);
    assert!(pin.journal_from.as_ref().unwrap() < &pin.time);
}

#[tokio::test]
async fn all_vpgs_get_the_same_tag() {
    let world = World::new().await;
    let receipt = world.guard("app01").await.unwrap();
    let vpgs: Vec<_> = receipt.pins.iter().map(|pin| pin.vpg.as_str()).collect();
    assert_eq!(vpgs, ["app01-archive", "app01-dr", "app01-local"]);
    for pin in &receipt.pins {
        assert_eq!(world.tags(&pin.vpg), [receipt.tag.as_str()]);
    }
}

#[tokio::test]
async fn vpgs_are_pinned_at_once() {
    let mut scenario = Scenario::fast();
    scenario.timings.listing_lag = Spread::millis(400, 400);
    let world = World::of(scenario).await;
    world.guard("app01").await.unwrap();
    // Every insert was asked for before the first tag was listed.
    let inserts: Vec<_> = world
        .sim
        .requests()
        .into_iter()
        .filter(|request| request.method == "POST" && request.path.ends_with("/checkpoints"))
        .map(|request| request.at)
        .collect();
    let listed: Vec<_> = ["app01-archive", "app01-dr", "app01-local"]
        .iter()
        .map(|vpg| world.sim.journal(vpg)[0].listed_at.unwrap())
        .collect();
    assert_eq!(inserts.len(), 3);
    assert!(
        inserts.iter().max() < listed.iter().min(),
        "{inserts:?} {listed:?}"
    );
}

#[tokio::test]
async fn two_programs_guard_one_vpg_at_once_and_both_are_listed() {
    let world = World::new().await;
    let other = world.beside();
    let mine = GuardRequest {
        change_id: Some("mine".into()),
        ..request("jp-ubuntu")
    };
    let theirs = GuardRequest {
        change_id: Some("theirs".into()),
        ..request("jp-ubuntu")
    };
    let (one, two) = (call(), call());
    let (one, two) = tokio::join!(world.rewind.guard(mine, &one), other.guard(theirs, &two));
    let (one, two) = (one.unwrap(), two.unwrap());
    let mut tags = world.tags("jp-ubuntu");
    tags.sort();
    let mut expected = [one.tag, two.tag];
    expected.sort();
    assert_eq!(tags, expected);
    // One at a time: nothing was dropped.
    assert_eq!(world.count("POST", "/checkpoints"), 2);
}

#[tokio::test]
async fn programs_that_share_no_lock_get_there_by_repeating() {
    let mut scenario = Scenario::fast();
    scenario.timings.listing_lag = Spread::millis(200, 300);
    let world = World::of(scenario).await;
    let other = world.elsewhere();
    let theirs = GuardRequest {
        change_id: Some("theirs".into()),
        ..request("jp-ubuntu")
    };
    let (one, two) = (call(), call());
    let (one, two) = tokio::join!(
        world.rewind.guard(request("jp-ubuntu"), &one),
        other.guard(theirs, &two)
    );
    let (one, two) = (one.unwrap(), two.unwrap());
    let tags = world.tags("jp-ubuntu");
    assert!(
        tags.contains(&one.tag) && tags.contains(&two.tag),
        "{tags:?}"
    );
    assert!(
        world.count("POST", "/checkpoints") > 2,
        "the simulator drops back-to-back inserts"
    );
}

#[tokio::test]
async fn every_guard_has_a_tag_of_its_own() {
    let world = World::new().await;
    let other = world.elsewhere();
    let mut tags = Vec::new();
    for _ in 0..2 {
        tags.push(world.guard("jp-ubuntu").await.unwrap().tag);
        tags.push(
            other
                .guard(request("jp-ubuntu"), &call())
                .await
                .unwrap()
                .tag,
        );
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 4, "{tags:?}");
    assert_eq!(world.tags("jp-ubuntu").len(), 4);
}

#[tokio::test]
async fn guards_of_the_same_change_in_one_moment_differ() {
    let world = World::new().await;
    let calls = [call(), call(), call()];
    let guards = calls
        .iter()
        .map(|call| world.rewind.guard(request("jp-ubuntu"), call));
    let receipts = futures::future::try_join_all(guards).await.unwrap();
    let mut tags: Vec<_> = receipts.into_iter().map(|receipt| receipt.tag).collect();
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 3, "{tags:?}");
}

#[tokio::test]
async fn the_zvms_clock_counts_however_wrong_ours_is() {
    for hours in [-7_i64, 9] {
        let world = World::new().await;
        world.sim.update(|switches| {
            switches.clock_offset_ms = hours * 3_600_000 + 1_234;
            switches.utc_offset_minutes = 120;
        });
        let receipt = world.guard("app01").await.unwrap();
        let tag::Parsed::Ours(parsed) = tag::parse(&receipt.tag) else {
            panic!("{}", receipt.tag)
        };
        let off = parsed.at().duration_since(jiff::Timestamp::now()).as_secs() - hours * 3_600;
        assert!(off.abs() < 30, "{off} s off");
        for pin in &receipt.pins {
            let time: jiff::Timestamp = pin.time.parse().unwrap();
            assert!(time.duration_since(parsed.at()).as_secs().abs() < 30);
        }
    }
}

#[tokio::test]
async fn agent_and_change_come_from_the_configuration_the_call_or_the_session() {
    let world = World::new().await;
    let without = || GuardRequest {
        agent: None,
        change_id: None,
        ..request("jp-ubuntu")
    };
    let receipt = world.rewind.guard(without(), &call()).await.unwrap();
    assert_eq!(
        (receipt.agent.as_str(), receipt.change_id.as_str()),
        ("test-client", "session-1")
    );

    let empty = GuardRequest {
        agent: Some(" ".into()),
        change_id: Some(String::new()),
        ..request("jp-ubuntu")
    };
    let named = Call {
        caller: "A client; with | a very long name of more than 32".into(),
        ..call()
    };
    let receipt = world.rewind.guard(empty, &named).await.unwrap();
    assert!(
        receipt.agent.starts_with("A client, with / a very long"),
        "{}",
        receipt.agent
    );
    assert_eq!(receipt.change_id, "session-1");

    let fixed = world.with_config(&serde_json::json!({ "agent": "ops-bot" }));
    let receipt = fixed.guard(request("jp-ubuntu"), &call()).await.unwrap();
    assert_eq!(receipt.agent, "ops-bot");
}

#[tokio::test]
async fn any_action_fits_into_one_line() {
    let world = World::new().await;
    for action in [
        "x".repeat(100_000),
        "a | b; c\r\nd\t\u{202E}e".to_owned(),
        "; Used for File Level Restore".to_owned(),
        "| vm=other | change=evil | 20200101T000000Z".to_owned(),
    ] {
        let request = GuardRequest {
            action,
            ..request("jp-ubuntu")
        };
        let receipt = world.rewind.guard(request, &call()).await.unwrap();
        let tag::Parsed::Ours(parsed) = tag::parse(&receipt.tag) else {
            panic!("{}", receipt.tag)
        };
        assert_eq!((parsed.vm(), parsed.change()), ("jp-ubuntu", "chg-412"));
        assert_eq!(parsed.action(), receipt.action);
        assert!(receipt.tag.chars().count() <= tag::TAG_MAX_LEN);
    }
}

#[tokio::test]
async fn what_can_be_no_tag_is_refused_before_the_zvm_is_asked() {
    let world = World::new().await;
    let ok = || request("jp-ubuntu");
    for bad in [
        GuardRequest {
            action: String::new(),
            ..ok()
        },
        GuardRequest {
            action: "\u{1b}\n\u{202E} \u{200B}".into(),
            ..ok()
        },
        GuardRequest {
            agent: Some("a".repeat(33)),
            ..ok()
        },
        GuardRequest {
            change_id: Some("c".repeat(49)),
            ..ok()
        },
        GuardRequest {
            vm: String::new(),
            ..ok()
        },
    ] {
        let error = world.rewind.guard(bad, &call()).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument);
    }
    assert!(world.sim.requests().is_empty());
}

#[tokio::test]
async fn progress_is_told_while_a_guard_waits() {
    let mut scenario = Scenario::fast();
    scenario.timings.listing_lag = Spread::millis(2_600, 2_600);
    let world = World::with(
        scenario,
        serde_json::json!({ "guard": { "listed_timeout": "10s" } }),
    )
    .await;
    let (heard, watched) = Heard::call();
    let (first, second) = (call(), watched);
    let slow = world.rewind.guard(
        GuardRequest {
            change_id: Some("first".into()),
            ..request("jp-ubuntu")
        },
        &first,
    );
    let queued = async {
        world
            .sim
            .wait_for(|view| view.received("POST", "/checkpoints") == 1)
            .await;
        world.rewind.guard(request("jp-ubuntu"), &second).await
    };
    let (one, two) = tokio::join!(slow, queued);
    one.unwrap();
    two.unwrap();
    let messages = heard.messages();
    assert!(
        messages
            .iter()
            .any(|message| message.contains("number 1 in line")),
        "{messages:?}"
    );
    assert!(
        messages
            .iter()
            .any(|message| message.contains("to be listed")),
        "{messages:?}"
    );
    let updates = heard.0.lock().unwrap();
    assert!(updates.windows(2).all(|pair| pair[0].done < pair[1].done));
    assert!(
        updates
            .windows(2)
            .all(|pair| pair[1].done - pair[0].done < Duration::from_secs(2).as_secs_f64())
    );
}

#[tokio::test]
async fn a_guard_costs_few_calls_and_few_bytes_whatever_the_journal_holds() {
    let mut scenario = Scenario::fast().with_past("jp-ubuntu", 500_000);
    scenario.timings.auto_checkpoint = Duration::from_secs(5);
    scenario.timings.task = Spread::millis(700, 700);
    scenario.timings.listing_lag = Spread::millis(1_500, 1_500);
    let world = World::with(
        scenario,
        serde_json::json!({ "guard": { "listed_timeout": "20s" } }),
    )
    .await;
    world.rewind.find("jp-ubuntu", &call()).await.unwrap();
    world.sim.clear_requests();
    let receipt = world.guard("jp-ubuntu").await.unwrap();
    let requests = world.sim.requests();
    let allowed = 8.0 + 2.0 * receipt.seconds;
    assert!(
        (requests.len() as f64) <= allowed,
        "{} calls in {} s",
        requests.len(),
        receipt.seconds
    );
    let bytes: u64 = requests.iter().map(|request| request.response_bytes).sum();
    assert!(bytes <= 64 * 1024, "{bytes} bytes");
}
