#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::time::Duration;

use common::{Zvm, column, fast, message, start};
use jiff::Timestamp;
use serde_json::{Value, json};
use zvm_sim::Scenario;
use zvm_sim::scenario::PastTag;
use zvm_sim::switches::{Insert, NotReady, TaskFate};

async fn ids(zvm: &Zvm, vpg: &str, query: &str) -> Vec<u64> {
    let rows = zvm.json(&format!("{}{query}", zvm.checkpoints(vpg))).await;
    column(&rows, "CheckpointIdentifier")
        .iter()
        .map(|id| id.parse().unwrap())
        .collect()
}

#[tokio::test]
async fn checkpoints_come_by_themselves_with_rising_ids() {
    let zvm = fast().await;
    let mut first = None;
    zvm.wait(|world| {
        let latest = world.latest_checkpoint("jp-ubuntu").unwrap();
        latest >= *first.get_or_insert(latest) + 5
    })
    .await;
    let ids = ids(&zvm, "jp-ubuntu", "").await;
    assert!(ids.windows(2).all(|pair| pair[1] == pair[0] + 1));
    // A VPG without guest disks, too.
    grows(&zvm, "web-farm-a").await;
}

/// Returns once there are more checkpoints than before. Without guest disks they come to be when somebody looks.
async fn grows(zvm: &Zvm, vpg: &str) {
    let before = ids(zvm, vpg, "").await.len();
    let more = async { while ids(zvm, vpg, "").await.len() <= before {} };
    tokio::time::timeout(Duration::from_secs(90), more)
        .await
        .expect("more checkpoints");
}

#[tokio::test]
async fn a_tag_is_listed_byte_for_byte_after_its_task() {
    let zvm = fast().await;
    zvm.sim.update(|switches| switches.hold_listing = true);
    let tag =
        "ai:claude | edit /home/ü (a=b; \"c\") | vm=jp-ubuntu | change=chg-412 | 20260921T170829Z";
    let task = zvm.insert("jp-ubuntu", tag).await;
    let (guid, site) = task.split_once('.').unwrap();
    assert_eq!((guid.len(), site.len()), (36, 36));
    let running = zvm.task(&task).await;
    assert_eq!(running["Type"], "InsertTaggedCP");
    zvm.wait(|world| world.running_tasks() == 0).await;
    let done = zvm.task(&task).await;
    assert_eq!(
        (&done["Status"]["State"], &done["Status"]["Progress"]),
        (&6.into(), &100.into())
    );
    assert_eq!(done["CompleteReason"], "");
    let tags = |rows: &Value| {
        rows.as_array()
            .unwrap()
            .iter()
            .filter(|row| row["Tag"].is_string())
            .count()
    };
    let rows = zvm.json(&zvm.checkpoints("jp-ubuntu")).await;
    assert_eq!(tags(&rows), 0, "the task has ended, the tag lags");
    zvm.sim.update(|switches| switches.hold_listing = false);
    zvm.wait(|world| world.is_listed("jp-ubuntu", tag)).await;
    let rows = zvm.json(&zvm.checkpoints("jp-ubuntu")).await;
    let row = rows
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["Tag"].is_string())
        .unwrap();
    assert_eq!(row["Tag"], tag);
    assert_eq!(row["Type"], 1);
    assert!(row["TimeStamp"].as_str().unwrap().ends_with(".000Z"));
}

#[tokio::test]
async fn back_to_back_inserts_are_silently_dropped() {
    let zvm = fast().await;
    zvm.sim.update(|switches| switches.hold_listing = true);
    zvm.insert("jp-ubuntu", "first").await;
    let task = zvm.insert("jp-ubuntu", "second").await;
    zvm.sim.update(|switches| switches.hold_listing = false);
    zvm.wait(|world| world.is_listed("jp-ubuntu", "first") && world.running_tasks() == 0)
        .await;
    assert_eq!(zvm.task(&task).await["Status"]["State"], 6);
    let tags: Vec<_> = zvm
        .sim
        .journal("jp-ubuntu")
        .into_iter()
        .map(|entry| entry.tag)
        .collect();
    assert_eq!(tags, ["first"]);
    zvm.pin("jp-ubuntu", "second").await;
}

#[tokio::test]
async fn inserts_at_different_vpgs_do_not_disturb_each_other() {
    let zvm = fast().await;
    zvm.sim.update(|switches| switches.hold_listing = true);
    for vpg in ["app01-local", "app01-dr", "app01-archive"] {
        zvm.insert(vpg, "same").await;
    }
    zvm.sim.update(|switches| switches.hold_listing = false);
    for vpg in ["app01-local", "app01-dr", "app01-archive"] {
        zvm.wait(|world| world.is_listed(vpg, "same")).await;
    }
}

#[tokio::test]
async fn a_window_is_all_that_comes() {
    let zvm = fast().await;
    zvm.sim.update(|switches| switches.auto_checkpoints = false);
    let all = ids(&zvm, "web-farm-a", "").await;
    let stats = zvm
        .json(&format!("{}/stats", zvm.checkpoints("web-farm-a")))
        .await;
    let from: Timestamp = stats["Earliest"]["TimeStamp"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let at = |seconds: i64| (from + jiff::SignedDuration::from_secs(seconds)).to_string();
    let query = |start: &str, end: &str| format!("?startdate={start}&ENDDATE={end}");
    // One every five seconds; what is compared is the time as it is shown, ends included.
    assert_eq!(
        ids(&zvm, "web-farm-a", &query(&at(0), &at(10))).await,
        all[..3]
    );
    assert_eq!(
        ids(&zvm, "web-farm-a", &query(&at(1), &at(4))).await,
        Vec::<u64>::new()
    );
    assert_eq!(
        ids(&zvm, "web-farm-a", &query(&at(10), &at(0))).await,
        Vec::<u64>::new()
    );
    zvm.sim.update(|switches| switches.window_inclusive = false);
    assert_eq!(
        ids(&zvm, "web-farm-a", &query(&at(0), &at(10))).await,
        all[1..2]
    );
    let answer = zvm
        .get(&format!("{}?startDate=soon", zvm.checkpoints("web-farm-a")))
        .await;
    assert_eq!(message(answer).await.0, 400);
}

#[tokio::test]
async fn the_journal_rolls_off_tags_too() {
    let zvm = fast().await;
    let id = zvm.pin("jp-ubuntu", "short-lived").await;
    let keep = |history| {
        zvm.sim
            .update(|switches| switches.vpg_mut("jp-ubuntu").history = Some(history));
    };
    keep(Duration::from_secs(1));
    zvm.wait(|world| world.journal("jp-ubuntu").is_empty())
        .await;
    keep(Duration::from_secs(3600));
    assert_eq!(
        zvm.sim.journal("jp-ubuntu"),
        [],
        "what is gone does not come back"
    );
    zvm.sim.checkpoint_now("jp-ubuntu").await.unwrap();
    let stats = zvm
        .json(&format!("{}/stats", zvm.checkpoints("jp-ubuntu")))
        .await;
    let earliest: u64 = stats["Earliest"]["CheckpointIdentifier"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!(earliest > id.parse().unwrap());
    let (status, text) = message(zvm.post_mount("jp-ubuntu", "jp-ubuntu", &id).await).await;
    assert_eq!(status, 400);
    assert!(text.contains(&id), "{text}");
}

#[tokio::test]
async fn half_a_million_past_checkpoints_cost_nothing() {
    let mut scenario = Scenario::fast().with_past("jp-ubuntu", 500_000);
    scenario.vpg_mut("jp-ubuntu").unwrap().tagged = vec![PastTag {
        tag: "old one".to_owned(),
        age: Duration::from_secs(20 * 24 * 3600),
    }];
    let zvm = start(scenario).await;
    let stats = zvm
        .json(&format!("{}/stats", zvm.checkpoints("jp-ubuntu")))
        .await;
    let id = |name: &str| {
        stats[name]["CheckpointIdentifier"]
            .as_str()
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    assert!(id("Latest") - id("Earliest") >= 499_999);
    let tagged = &zvm.sim.journal("jp-ubuntu")[0];
    let at = |seconds: i64| (tagged.time + jiff::SignedDuration::from_secs(seconds)).to_string();
    let window = format!("?startDate={}&endDate={}", at(-60), at(60));
    zvm.sim.clear_requests();
    let rows = zvm
        .json(&format!("{}{window}", zvm.checkpoints("jp-ubuntu")))
        .await;
    assert!(
        rows.as_array()
            .unwrap()
            .iter()
            .any(|row| row["Tag"] == "old one")
    );
    assert!(zvm.sim.requests()[0].response_bytes < 5_000);
    // And what is on its disks is what was there at the start.
    let session = zvm.mount("jp-ubuntu", "jp-ubuntu", &tagged.id).await;
    let bytes = zvm
        .download(&session, &["partition#0 Ext4/srv/app/VERSION"])
        .await;
    assert_eq!(bytes, b"2.4.1\n");
}

#[tokio::test]
async fn cloud_and_paused_vpgs_refuse() {
    let zvm = fast().await;
    for (vpg, part) in [
        ("cloud01", "AWS"),
        ("paused01", "ReplicationPausedUserInitiated"),
    ] {
        let answer = zvm
            .post(&zvm.checkpoints(vpg), json!({ "checkpointName": "x" }))
            .await;
        let (status, text) = message(answer).await;
        assert_eq!(status, 400);
        assert!(text.contains(part), "{text}");
    }
    let before = ids(&zvm, "paused01", "").await;
    grows(&zvm, "web-farm-a").await;
    assert_eq!(
        ids(&zvm, "paused01", "").await,
        before,
        "nor are there automatic ones"
    );
}

#[tokio::test]
async fn a_vpg_that_is_not_ready_can_also_drop_or_fail() {
    let zvm = fast().await;
    zvm.sim
        .update(|switches| switches.not_ready = NotReady::Dropped);
    let task = zvm.insert("paused01", "x").await;
    zvm.wait(|world| world.running_tasks() == 0).await;
    assert_eq!(zvm.task(&task).await["Status"]["State"], 6);
    zvm.sim
        .update(|switches| switches.not_ready = NotReady::TaskFails);
    let task = zvm.insert("paused01", "x").await;
    zvm.wait(|world| world.running_tasks() == 0).await;
    let task = zvm.task(&task).await;
    assert_eq!(task["Status"]["State"], 4);
    assert!(
        task["CompleteReason"]
            .as_str()
            .unwrap()
            .contains("paused01")
    );
    assert!(zvm.sim.journal("paused01").is_empty());
}

#[tokio::test]
async fn a_vpg_that_resumes_takes_checkpoints_from_then_on() {
    let zvm = fast().await;
    let before = ids(&zvm, "paused01", "").await.len();
    let resumed = Timestamp::now().as_millisecond();
    zvm.sim.update(|switches| {
        switches.whole_seconds = false;
        switches.vpg_mut("paused01").sub_status = Some("None".into());
    });
    grows(&zvm, "paused01").await;
    let rows = zvm.json(&zvm.checkpoints("paused01")).await;
    let times = column(&rows, "TimeStamp");
    let first_new: Timestamp = times[before].parse().unwrap();
    assert!(
        first_new.as_millisecond() >= resumed,
        "the pause is not filled in afterwards"
    );
    zvm.pin("paused01", "works").await;
}

#[tokio::test]
async fn bodies_and_names() {
    let zvm = fast().await;
    let path = zvm.checkpoints("jp-ubuntu");
    for body in [
        json!({}),
        json!({ "checkpointName": "  " }),
        json!({ "checkpointName": null }),
    ] {
        assert_eq!(message(zvm.post(&path, body).await).await.0, 400);
    }
    let nonsense = zvm.request(reqwest::Method::POST, &path).body("{not json");
    assert_eq!(message(nonsense.send().await.unwrap()).await.0, 400);
    let unknown = zvm
        .post(
            "/v1/vpgs/none/checkpoints",
            json!({ "checkpointName": "x" }),
        )
        .await;
    assert_eq!(message(unknown).await.0, 404);
    zvm.posted(
        &path.replace("checkpoints", "Checkpoints"),
        json!({ "CHECKPOINTNAME": "x".repeat(400) }),
    )
    .await;
    zvm.wait(|world| world.is_listed("jp-ubuntu", &"x".repeat(400)))
        .await;
}

#[tokio::test]
async fn one_vpg_of_three_can_fail() {
    let zvm = fast().await;
    zvm.sim.update(|switches| {
        switches.insert_message = "No.".to_owned();
        switches.vpg_mut("app01-dr").insert = Some(Insert::Refused);
        switches.vpg_mut("app01-archive").task = Some(TaskFate::Fails);
    });
    zvm.pin("app01-local", "x").await;
    let answer = zvm
        .post(
            &zvm.checkpoints("app01-dr"),
            json!({ "checkpointName": "x" }),
        )
        .await;
    assert_eq!(message(answer).await, (400, "No.".to_owned()));
    let task = zvm.insert("app01-archive", "x").await;
    zvm.wait(|world| world.running_tasks() == 0).await;
    let task = zvm.task(&task).await;
    assert_eq!(task["Status"]["State"], 4);
    assert!(!task["CompleteReason"].as_str().unwrap().is_empty());
    assert!(zvm.sim.journal("app01-archive").is_empty());
}

#[tokio::test]
async fn a_number_of_inserts_can_be_dropped() {
    let zvm = fast().await;
    zvm.sim.update(|switches| switches.drop_next = 2);
    for attempt in 0..2 {
        zvm.insert("jp-ubuntu", &format!("dropped {attempt}")).await;
        zvm.wait(|world| world.running_tasks() == 0).await;
    }
    zvm.pin("jp-ubuntu", "kept").await;
    assert_eq!(zvm.sim.journal("jp-ubuntu").len(), 1);
    zvm.sim.update(|switches| switches.tag_never_shows = true);
    zvm.insert("jp-ubuntu", "never").await;
    zvm.wait(|world| world.running_tasks() == 0).await;
    assert_eq!(zvm.sim.journal("jp-ubuntu").len(), 1);
}

#[tokio::test]
async fn tasks_can_hang_disappear_or_be_late() {
    let zvm = fast().await;
    zvm.sim
        .update(|switches| switches.task = TaskFate::NeverEnds);
    let hanging = zvm.insert("jp-ubuntu", "a").await;
    zvm.wait(|world| world.is_listed("jp-ubuntu", "a")).await;
    assert_eq!(zvm.task(&hanging).await["Status"]["State"], 1);
    assert_eq!(zvm.task(&hanging).await["Completed"], Value::Null);

    zvm.sim
        .update(|switches| switches.task = TaskFate::Disappears);
    let gone = zvm.insert("jp-ubuntu", "b").await;
    zvm.wait(|world| world.is_listed("jp-ubuntu", "b")).await;
    assert_eq!(zvm.get(&format!("/v1/tasks/{gone}")).await.status(), 404);

    zvm.sim.update(|switches| {
        switches.task = TaskFate::Completes;
        switches.task_unknown_for = Duration::from_secs(3600);
    });
    let hidden = zvm.insert("jp-ubuntu", "c").await;
    assert_eq!(zvm.get(&format!("/v1/tasks/{hidden}")).await.status(), 404);
}

#[tokio::test]
async fn a_fixed_lag_can_be_set_for_one_vpg() {
    let zvm = fast().await;
    zvm.sim.update(|switches| {
        switches.vpg_mut("jp-ubuntu").listing_lag = Some(Duration::from_secs(3600).into());
    });
    zvm.insert("jp-ubuntu", "later").await;
    zvm.wait(|world| !world.journal("jp-ubuntu").is_empty() && world.running_tasks() == 0)
        .await;
    assert!(zvm.sim.journal("jp-ubuntu")[0].listed_at.is_none());
    zvm.pin("app01-dr", "now").await;
}

#[tokio::test]
async fn tasks_are_listed_and_filtered() {
    let zvm = fast().await;
    zvm.pin("jp-ubuntu", "a").await;
    let id = zvm.pin("jp-ubuntu", "b").await;
    zvm.mount("jp-ubuntu", "jp-ubuntu", &id).await;
    let count = async |query: &str| {
        zvm.json(&format!("/v1/tasks{query}"))
            .await
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(count("").await, 3);
    assert_eq!(count("?type=inserttaggedcp").await, 2);
    assert_eq!(count("?status=Completed").await, 3);
    assert_eq!(count("?status=4").await, 0);
    assert_eq!(count("?startedAfterDate=2001-01-01T00:00:00Z").await, 3);
    assert_eq!(count("?completedBeforeDate=2001-01-01T00:00:00Z").await, 0);
    let types = zvm.json("/v1/tasks/types").await;
    assert!(
        types
            .as_array()
            .unwrap()
            .contains(&"FlrJournalMount".into())
    );
    zvm.sim.restart();
}

#[tokio::test]
async fn points_in_time_say_whether_they_can_be_mounted() {
    let zvm = fast().await;
    zvm.pin("app01-dr", "here").await;
    let path = format!("/v1/vms/{}/pointsInTime", zvm.vm("app01"));
    assert_eq!(message(zvm.get(&path).await).await.0, 400, "which VPG?");
    let query = format!("?vpgIdentifier={}", zvm.vpg("app01-dr"));
    let points = zvm.json(&format!("{path}{query}")).await;
    let point = points
        .as_array()
        .unwrap()
        .iter()
        .find(|point| point["Checkpoint"]["Tag"] == "here")
        .unwrap();
    assert_eq!(
        point["CanMount"],
        json!({ "IsAllowed": true, "Reason": null })
    );
    zvm.sim
        .update(|switches| switches.vpg_mut("app01-dr").can_mount = Some(false));
    let stats = zvm.json(&format!("{path}/stats{query}")).await;
    assert_eq!(stats["Latest"]["CanMount"]["IsAllowed"], false);
    assert!(stats["Latest"]["CanMount"]["Reason"].is_string());
}

#[tokio::test]
async fn a_restart_forgets_tasks_but_not_the_journal() {
    let mut zvm = fast().await;
    zvm.sim.update(|switches| switches.hold_listing = true);
    let task = zvm.insert("jp-ubuntu", "x").await;
    zvm.sim.restart();
    zvm.sim.update(|switches| switches.hold_listing = false);
    zvm.login().await;
    assert_eq!(zvm.get(&format!("/v1/tasks/{task}")).await.status(), 404);
    zvm.wait(|world| world.is_listed("jp-ubuntu", "x")).await;
}

#[tokio::test]
async fn a_checkpoint_can_be_taken_at_will() {
    let zvm = fast().await;
    zvm.sim.update(|switches| switches.auto_checkpoints = false);
    let id = zvm.sim.checkpoint_now("jp-ubuntu").await.unwrap();
    zvm.wait(|world| world.latest_checkpoint("jp-ubuntu") >= Some(id.parse().unwrap()))
        .await;
    assert!(zvm.sim.checkpoint_now("nobody").await.is_err());
}
