use crate::support::{World, call, recovery, request};
use rewind_core::{CheckpointList, Error, ErrorCode, GuardRequest};
use std::time::Duration;
use zvm_sim::{Scenario, scenario::PastTag};

const HOUR: Duration = Duration::from_secs(3_600);

async fn list(
    world: &World,
    vm: &str,
    since: Option<Duration>,
    limit: Option<usize>,
) -> Result<CheckpointList, Error> {
    world.rewind.checkpoints(vm, since, limit, &call()).await
}

fn tags(list: &CheckpointList) -> Vec<&str> {
    list.checkpoints
        .iter()
        .map(|checkpoint| checkpoint.tag.as_str())
        .collect()
}

/// A VPG with tags of the last days, some of them not ours.
fn with_old_tags() -> Scenario {
    let mut scenario = Scenario::fast().with_past("jp-ubuntu", 60_000);
    scenario.vpg_mut("jp-ubuntu").unwrap().tagged = [
        ("before upgrade", 1),
        ("ai:claude:chg-7:20260101T000000Z", 20),
        ("nightly", 30),
        ("nightly", 54),
        (
            "ai:x | edit | vm=jp-ubuntu | change=c | 20260101T000000Z; Used for File Level Restore",
            60,
        ),
    ]
    .map(|(tag, hours)| PastTag {
        tag: tag.into(),
        age: HOUR * hours,
    })
    .into();
    scenario
}

#[tokio::test]
async fn guards_of_all_vpgs_are_listed_newest_first() {
    let world = World::new().await;
    let first = world.guard("app01").await.unwrap();
    world
        .rewind
        .guard(
            GuardRequest {
                action: "restart".into(),
                ..request("app01")
            },
            &call(),
        )
        .await
        .unwrap();
    let list = list(&world, "app01", None, None).await.unwrap();
    assert_eq!(
        (list.vm.as_str(), list.checkpoints.len(), list.truncated),
        ("app01", 6, false)
    );
    let times: Vec<_> = list
        .checkpoints
        .iter()
        .map(|checkpoint| &checkpoint.time)
        .collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
    let oldest = list
        .checkpoints
        .iter()
        .find(|checkpoint| checkpoint.tag == first.tag)
        .unwrap();
    assert!(oldest.ours && !oldest.used_for_flr);
    assert_eq!(oldest.agent.as_deref(), Some("claude"));
    assert_eq!(
        oldest.action.as_deref(),
        Some("edit /home/justin/app-config.yaml")
    );
    assert_eq!(oldest.tagged_vm.as_deref(), Some("app01"));
    assert_eq!(oldest.change_id.as_deref(), Some("chg-412"));
    let pin = first.pins.iter().find(|pin| pin.vpg == oldest.vpg).unwrap();
    assert_eq!(
        (&pin.checkpoint, &pin.time, &pin.expected_until),
        (&oldest.checkpoint, &oldest.time, &oldest.expected_until)
    );
}

#[tokio::test]
async fn a_listing_goes_back_until_since() {
    let world = World::of(with_old_tags()).await;
    let day = list(&world, "jp-ubuntu", None, None).await.unwrap();
    assert_eq!(
        tags(&day),
        ["before upgrade", "ai:claude:chg-7:20260101T000000Z"]
    );
    assert!(!day.checkpoints[0].ours && day.checkpoints[0].agent.is_none());
    assert!(day.checkpoints[1].ours);
    assert_eq!(day.checkpoints[1].change_id.as_deref(), Some("chg-7"));

    let all = list(&world, "jp-ubuntu", Some(HOUR * 24 * 365), None)
        .await
        .unwrap();
    assert_eq!(all.checkpoints.len(), 5);
    assert!(all.checkpoints[4].used_for_flr);
    assert_eq!(all.checkpoints[4].agent.as_deref(), Some("x"));
    // A day at a time, and no more than a day beyond each end of the journal, in case a clock was set.
    let windows = world.count("GET", "/checkpoints") - 1;
    assert!(windows <= 7, "{windows} windows");
}

#[tokio::test]
async fn a_listing_stops_at_its_limit() {
    let world = World::of(with_old_tags()).await;
    let two = list(&world, "jp-ubuntu", Some(HOUR * 1_000), Some(2))
        .await
        .unwrap();
    assert_eq!(
        tags(&two),
        ["before upgrade", "ai:claude:chg-7:20260101T000000Z"]
    );
    assert!(two.truncated);
    assert!(world.count("GET", "/checkpoints") <= 3);
    let all = list(&world, "jp-ubuntu", Some(HOUR * 1_000), Some(5))
        .await
        .unwrap();
    assert!(!all.truncated);
    for limit in [0, 501] {
        let error = list(&world, "jp-ubuntu", None, Some(limit))
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument);
    }
}

/// The id and VPG that a plan chose.
async fn chosen(
    world: &World,
    vm: &str,
    checkpoint: &str,
    vpg: Option<&str>,
) -> Result<(String, String), Error> {
    let request = rewind_core::RecoverRequest {
        vpg: vpg.map(str::to_owned),
        ..recovery(vm, "/etc/hosts", checkpoint)
    };
    let plan = world.rewind.plan_recovery(&request, &call()).await?.plan;
    Ok((plan.checkpoint, plan.vpg))
}

#[tokio::test]
async fn an_id_is_found_in_a_journal_of_half_a_million_with_few_requests() {
    let mut scenario = Scenario::fast().with_past("jp-ubuntu", 500_000);
    scenario.timings.auto_checkpoint = Duration::from_secs(5);
    scenario.vpg_mut("jp-ubuntu").unwrap().first_checkpoint = Some(1_000);
    let world = World::of(scenario).await;
    for id in ["1000", "1001", "123456", "250000", "500998"] {
        world.sim.clear_requests();
        assert_eq!(chosen(&world, "jp-ubuntu", id, None).await.unwrap().0, id);
        let requests = world.sim.requests();
        let bytes: u64 = requests.iter().map(|request| request.response_bytes).sum();
        assert!(
            requests.len() <= 12 && bytes < 64 * 1024,
            "{id}: {} requests, {bytes} bytes",
            requests.len()
        );
    }
    for id in ["999", "0", "600000", "18446744073709551615"] {
        let error = chosen(&world, "jp-ubuntu", id, None).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::CheckpointGone, "{id}");
    }
}

#[tokio::test]
async fn an_id_in_several_vpgs_stops_with_the_candidates() {
    let mut scenario = Scenario::fast();
    for vpg in ["app01-local", "app01-dr", "app01-archive"] {
        scenario.vpg_mut(vpg).unwrap().first_checkpoint = Some(5_000);
    }
    let world = World::of(scenario).await;
    let error = chosen(&world, "app01", "5100", None).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::CheckpointAmbiguous);
    assert_eq!(error.candidates.len(), 3);
    assert!(
        error.candidates[0].starts_with("app01-archive: 5100 20"),
        "{:?}",
        error.candidates
    );
    for vpg in [
        "app01-dr",
        "APP01-DR",
        world.sim.vpg_id("app01-dr").unwrap(),
    ] {
        assert_eq!(
            chosen(&world, "app01", "5100", Some(vpg)).await.unwrap().1,
            "app01-dr"
        );
    }
    let error = chosen(&world, "app01", "5100", Some("jp-ubuntu"))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument);
    assert_eq!(error.candidates.len(), 3);
}

#[tokio::test]
async fn a_tag_means_the_newest_pin_that_can_be_mounted() {
    let world = World::new().await;
    let receipt = world.guard("app01").await.unwrap();
    let newest = receipt.pins.iter().map(|pin| &pin.time).max().unwrap();
    let (id, vpg) = chosen(&world, "app01", &receipt.tag, None).await.unwrap();
    let pin = receipt.pins.iter().find(|pin| pin.vpg == vpg).unwrap();
    assert_eq!((&pin.checkpoint, &pin.time), (&id, newest));
    // Whoever copies it from the journal copies Zerto's suffix, too.
    let with_suffix = format!("{}; Used for File Level Restore", receipt.tag);
    assert_eq!(
        chosen(&world, "app01", &with_suffix, None).await.unwrap().0,
        id
    );

    world
        .sim
        .update(|switches| switches.vpg_mut(&vpg).can_mount = Some(false));
    let (_, other) = chosen(&world, "app01", &receipt.tag, None).await.unwrap();
    assert_ne!(other, vpg);
    world.sim.update(|switches| {
        switches.vpg.clear();
        switches.can_mount = false;
    });
    let error = chosen(&world, "app01", &receipt.tag, None)
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::FlrFailed);
}

#[tokio::test]
async fn a_tag_of_others_is_looked_for_day_by_day() {
    let world = World::of(with_old_tags()).await;
    let all = list(&world, "jp-ubuntu", Some(HOUR * 1_000), None)
        .await
        .unwrap();
    let newest_nightly = all
        .checkpoints
        .iter()
        .find(|checkpoint| checkpoint.tag == "nightly")
        .unwrap();
    assert_eq!(
        chosen(&world, "jp-ubuntu", "nightly", None)
            .await
            .unwrap()
            .0,
        newest_nightly.checkpoint
    );
    for gone in [
        "night",
        "ai:claude | x | vm=jp-ubuntu | change=c | 20200101T000000Z",
    ] {
        let error = chosen(&world, "jp-ubuntu", gone, None).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::CheckpointGone, "{gone}");
    }
}

#[tokio::test]
async fn a_pin_that_has_aged_out_is_gone() {
    let mut scenario = Scenario::fast();
    scenario.vpg_mut("jp-ubuntu").unwrap().history = Duration::from_secs(1);
    let world = World::of(scenario).await;
    let receipt = world.guard("jp-ubuntu").await.unwrap();
    world
        .sim
        .wait_for(|view| view.journal("jp-ubuntu").is_empty())
        .await;
    for checkpoint in [&receipt.tag, &receipt.pins[0].checkpoint] {
        let error = chosen(&world, "jp-ubuntu", checkpoint, None)
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::CheckpointGone);
    }
}
