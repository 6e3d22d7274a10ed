//! Tagged checkpoints.

use jiff::{SignedDuration, Timestamp};
use zvm_client::{Error, TaskState, Window};
use zvm_sim::{
    Fault, Outcome, Scenario, Sim,
    switches::{Insert, TaskFate},
};

use crate::{ended, sim_without_disks, until, without_disks, zvm};

fn around(time: Timestamp) -> Window {
    Window {
        from: time - SignedDuration::from_mins(1),
        to: time + SignedDuration::from_mins(1),
    }
}

#[tokio::test]
async fn a_tag_comes_back_as_it_was_sent() {
    let sim = sim_without_disks().await;
    let zvm = zvm(&sim);
    let vpg = sim.vpg_id("jp-ubuntu").unwrap();
    for tag in [
        "ai:claude | edit /home/justin/app-config.yaml | vm=jp-ubuntu | change=chg-412 | 20260921T170829Z",
        "quotes \" ' \\ and (a=b) 100 %41 + &",
        "ünïcode 漢字 \u{1f600}",
        &"long ".repeat(50),
    ] {
        let task = zvm.insert_checkpoint(vpg, tag).await.unwrap();
        let task = ended(&zvm, &task).await;
        assert_eq!(
            (task.state, task.kind.as_deref()),
            (TaskState::Completed, Some("InsertTaggedCP"))
        );
        sim.wait_for(|world| world.is_listed("jp-ubuntu", tag))
            .await;
        let now = zvm.server_time().await.unwrap();
        let listed = zvm.checkpoints(vpg, around(now)).await.unwrap();
        let found: Vec<_> = listed
            .iter()
            .filter(|checkpoint| checkpoint.tag.as_deref() == Some(tag))
            .collect();
        assert_eq!(found.len(), 1, "{tag}");
        assert_eq!(
            found[0].id.to_string(),
            sim.journal("jp-ubuntu").last().unwrap().id
        );
    }
}

#[tokio::test]
async fn an_insert_whose_answer_is_lost_is_not_sent_again() {
    let sim = sim_without_disks().await;
    let zvm = zvm(&sim);
    let vpg = sim.vpg_id("jp-ubuntu").unwrap();
    zvm.vpgs().await.unwrap();

    sim.add_fault(Fault::cut_after("POST", "/v1/vpgs/*/checkpoints"));
    let error = zvm.insert_checkpoint(vpg, "happened").await.unwrap_err();
    assert!(matches!(error, Error::Unknown { .. }), "{error}");
    sim.wait_for(|world| world.is_listed("jp-ubuntu", "happened"))
        .await;

    sim.add_fault(Fault::cut_before("POST", "/v1/vpgs/*/checkpoints"));
    let error = zvm
        .insert_checkpoint(vpg, "did not happen")
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Unknown { .. }), "{error}");

    for outcome in [Outcome::CutBody, Outcome::Html, Outcome::TruncatedJson] {
        sim.add_fault(Fault {
            effect: true,
            ..Fault::answer("POST", "/v1/vpgs/*/checkpoints", 200, outcome)
        });
        let error = zvm.insert_checkpoint(vpg, "odd").await.unwrap_err();
        assert!(
            matches!(error, Error::Unknown { .. }),
            "{outcome:?}: {error}"
        );
    }
    for status in [502, 503, 504] {
        sim.add_fault(Fault::answer(
            "POST",
            "/v1/vpgs/*/checkpoints",
            status,
            Outcome::Html,
        ));
        let error = zvm.insert_checkpoint(vpg, "odd").await.unwrap_err();
        assert!(matches!(error, Error::Unknown { .. }), "{status}: {error}");
    }
    sim.wait_for(|world| world.received("POST", "/checkpoints") == 8)
        .await;
    assert!(
        sim.journal("jp-ubuntu")
            .iter()
            .all(|entry| entry.tag != "did not happen")
    );
}

#[tokio::test]
async fn a_refused_insert_and_a_failed_task_say_why() {
    let sim = sim_without_disks().await;
    let zvm = zvm(&sim);
    let vpg = sim.vpg_id("jp-ubuntu").unwrap();
    sim.update(|switches| switches.insert = Insert::Refused);
    let error = zvm.insert_checkpoint(vpg, "tag").await.unwrap_err();
    let Error::Refused {
        status: 400,
        message,
        ..
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!(message, "\"The checkpoint could not be inserted.\"");
    assert!(
        zvm.insert_checkpoint(sim.vpg_id("paused01").unwrap(), "tag")
            .await
            .is_err()
    );
    assert!(
        zvm.insert_checkpoint(sim.vpg_id("cloud01").unwrap(), "tag")
            .await
            .is_err()
    );

    sim.update(|switches| {
        switches.insert = Insert::Accepted;
        switches.task = TaskFate::Fails;
    });
    let task = zvm.insert_checkpoint(vpg, "tag").await.unwrap();
    let task = ended(&zvm, &task).await;
    assert_eq!(task.state, TaskState::Failed);
    assert!(task.reason.unwrap().contains("The VRA did not answer"));
}

#[tokio::test]
async fn a_task_may_not_be_known_yet_or_any_more() {
    let sim = sim_without_disks().await;
    let zvm = zvm(&sim);
    let vpg = sim.vpg_id("jp-ubuntu").unwrap();
    sim.update(|switches| switches.task = TaskFate::Disappears);
    let task = zvm.insert_checkpoint(vpg, "tag").await.unwrap();
    until(async || zvm.task(&task).await.unwrap().is_none().then_some(())).await;
    let error = zvm
        .insert_checkpoint("no-such-vpg", "tag")
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::NotFound { .. } | Error::Refused { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_window_of_a_huge_journal_is_small() {
    let scenario = without_disks(Scenario::fast()).with_past("jp-ubuntu", 500_000);
    let sim = Sim::start(scenario).await.unwrap();
    let zvm = zvm(&sim);
    let vpg = sim.vpg_id("jp-ubuntu").unwrap();
    let stats = zvm.journal_stats(vpg).await.unwrap();
    let (earliest, latest) = (stats.earliest.unwrap(), stats.latest.unwrap());
    assert!(latest.id.0 - earliest.id.0 >= 499_999);
    let middle = earliest.time + SignedDuration::from_secs(5 * 250_000);
    let window = Window {
        from: middle,
        to: middle + SignedDuration::from_secs(60),
    };
    let listed = zvm.checkpoints(vpg, window).await.unwrap();
    assert!((11..=14).contains(&listed.len()), "{}", listed.len());
    assert!(
        listed
            .iter()
            .all(|one| one.time >= window.from && one.time <= window.to)
    );
    assert!(listed.is_sorted_by_key(|one| one.id));
}
