//! What the loop leaves in the ledger.
use crate::support::{World, agreed, approve, call, recovered, recovery, request};
use jiff::{SignedDuration, Timestamp};
use rewind_core::{
    Call, ErrorCode, GuardRequest, Paths,
    ledger::{Comparison, Entry, Filter, JournalFinding, OpenIntents, Verification},
    state::{GuardRecord, PinRecord, State},
};
use serde_json::{Value, json};
use std::{fs, time::Duration};
use zvm_sim::Scenario;

const PATH: &str = "/home/justin/app-config.yaml";

fn verified(world: &World) -> Verification {
    let verified = world.rewind.ledger().verify().unwrap();
    assert!(verified.clean, "{:?}", verified.findings);
    verified
}

fn rows(world: &World) -> Vec<Value> {
    let mut rows = Vec::new();
    let ledger = world.rewind.ledger();
    ledger
        .export(&Filter::default(), |row| rows.push(row))
        .unwrap();
    rows
}

fn kinds(world: &World) -> Vec<String> {
    rows(world)
        .iter()
        .map(|row| row["kind"].as_str().unwrap().to_owned())
        .collect()
}

fn headlines(world: &World) -> Vec<Entry> {
    world.rewind.ledger().list(&Filter::default()).unwrap()
}

#[tokio::test]
async fn a_guard_and_a_recovery_are_told_step_by_step_with_their_hashes() {
    let world = World::new().await;
    let receipt = world.guard("jp-ubuntu").await.unwrap();
    let file = world.sim.guest_path("jp-ubuntu", PATH).unwrap();
    let content = fs::read_to_string(file).unwrap();
    let request = recovery("jp-ubuntu", PATH, &receipt.tag);
    let recovered = recovered(&world.rewind, request, &call()).await.unwrap();

    assert_eq!(verified(&world).open_intents, OpenIntents::default());
    assert_eq!(
        kinds(&world),
        [
            "guard_intent",
            "insert_sent",
            "insert_settled",
            "pin",
            "guard",
            "plan",
            "plan_decision",
            "recovery_place",
            "plan_begun",
            "recovery",
            "flr_session",
            "flr_session_opened",
            "placing",
            "placed",
            "recovery_ended",
            "flr_unmount",
            "flr_session_closed",
            "plan_ended",
            "recovery_place_clean",
        ]
    );
    let rows = rows(&world);
    let of = |kind: &str| &rows.iter().find(|row| row["kind"] == kind).unwrap()["row"];
    let guard = of("guard");
    assert_eq!(
        (&guard["agent"], &guard["client"]),
        (&json!("claude"), &json!("test-client"))
    );
    assert_eq!(
        (&guard["tag"], &guard["change_id"]),
        (&json!(receipt.tag), &json!("chg-412"))
    );
    assert_eq!(of("pin")["checkpoint_id"], receipt.pins[0].checkpoint);
    let asked = of("recovery");
    assert_eq!(
        (&asked["path"], &asked["checkpoint_id"]),
        (&json!(PATH), &json!(recovered.checkpoint))
    );
    assert_eq!(of("placing")["destination"], recovered.local_path);
    assert_eq!(
        of("placed"),
        &json!({"placing": 1, "files": 1, "bytes": 158, "sha256": recovered.files[0].sha256})
    );
    // Whoever reads the list knows the VM by its name, in the rows of the clean-up, too.
    let everything = Filter {
        everything: true,
        ..Filter::default()
    };
    let entries = world.rewind.ledger().list(&everything).unwrap();
    for kind in ["flr_session", "flr_unmount", "flr_session_closed"] {
        let entry = entries.iter().find(|entry| entry.kind == kind).unwrap();
        assert_eq!(entry.vms, ["jp-ubuntu"], "{entry:?}");
    }
    let text: String = rows.iter().map(Value::to_string).collect();
    let line = content.lines().find(|line| line.len() > 10).unwrap();
    assert!(!text.contains(line), "contents are not kept");
}

#[tokio::test]
async fn a_folder_is_remembered_by_its_list() {
    let world = World::new().await;
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    let request = recovery("jp-ubuntu", "/home/justin", &tag);
    let recovered = recovered(&world.rewind, request, &call()).await.unwrap();
    let rows = rows(&world);
    let placed = &rows.iter().find(|row| row["kind"] == "placed").unwrap()["row"];
    assert_eq!(
        placed["sha256"],
        rewind_core::ledger::list_digest(&recovered.files, true)
    );
    assert_eq!(placed["files"], recovered.files.len());
    assert_eq!(placed["bytes"], recovered.bytes);
}

#[tokio::test]
async fn what_is_about_to_be_done_is_written_before_it_is_done() {
    let world = World::new().await;
    world.sim.update(|switches| switches.hold_listing = true);
    let rewind = world.beside();
    let guarding = tokio::spawn(async move { rewind.guard(request("jp-ubuntu"), &call()).await });
    world
        .sim
        .wait_for(|zvm| zvm.answered("POST", "/checkpoints") == 1)
        .await;
    assert_eq!(kinds(&world), ["guard_intent", "insert_sent"]);
    assert_eq!(verified(&world).open_intents.under_way, 2);
    world.sim.update(|switches| switches.hold_listing = false);
    guarding.await.unwrap().unwrap();
    assert_eq!(verified(&world).open_intents, OpenIntents::default());
}

#[tokio::test]
async fn a_guard_that_fails_or_is_cancelled_leaves_no_intent_open() {
    let world = World::new().await;
    world.sim.update(|switches| switches.hold_listing = true);
    let error = world.guard("jp-ubuntu").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NotListed);
    let inserts = kinds(&world)
        .iter()
        .filter(|kind| *kind == "insert_sent")
        .count();
    assert_eq!(inserts, 3);
    let guard = headlines(&world)
        .into_iter()
        .find(|entry| entry.kind == "guard")
        .unwrap();
    assert!(
        guard.what.starts_with("failed: not_listed: "),
        "{}",
        guard.what
    );
    assert_eq!(verified(&world).open_intents, OpenIntents::default());

    let call = call();
    let (cancel, rewind) = (call.cancel.clone(), world.beside());
    let guarding = tokio::spawn(async move { rewind.guard(request("app01"), &call).await });
    world
        .sim
        .wait_for(|zvm| zvm.answered("POST", "/checkpoints") >= 6)
        .await;
    cancel.cancel();
    assert_eq!(
        guarding.await.unwrap().unwrap_err().code,
        ErrorCode::Cancelled
    );
    assert_eq!(verified(&world).open_intents, OpenIntents::default());
}

#[tokio::test]
async fn a_recovery_that_fails_or_is_cancelled_leaves_no_intent_open() {
    let world = World::new().await;
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    let fails = recovery("jp-ubuntu", "/no/such/file", &tag);
    let error = agreed(&world.rewind, &fails, &call()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::PathNotFound);
    let entry = headlines(&world)
        .into_iter()
        .find(|entry| entry.kind == "recovery")
        .unwrap();
    assert!(
        entry.what.ends_with(": failed: path_not_found"),
        "{}",
        entry.what
    );
    assert_eq!(verified(&world).open_intents, OpenIntents::default());

    let wanted = recovery("jp-ubuntu", PATH, &tag);
    let known = world.rewind.plan_recovery(&wanted, &call()).await.unwrap();
    approve(&world.rewind, &known).await.unwrap();
    let asked = call();
    asked.cancel.cancel();
    let cancelled = world.rewind.recover(&known.plan.id, &asked).await;
    assert_eq!(cancelled.unwrap_err().code, ErrorCode::Cancelled);
    assert_eq!(verified(&world).open_intents, OpenIntents::default());
}

#[tokio::test]
async fn refusals_are_kept_with_their_codes_and_without_arguments() {
    let world = World::new().await;
    let ask = |vm: &str| GuardRequest {
        action: "drop the table".into(),
        ..request(vm)
    };
    world
        .rewind
        .guard(ask("no-such-vm"), &call())
        .await
        .unwrap_err();
    world
        .rewind
        .guard(ask("paused01"), &call())
        .await
        .unwrap_err();
    let gone = recovery("jp-ubuntu", PATH, "999999");
    world
        .rewind
        .plan_recovery(&gone, &call())
        .await
        .unwrap_err();
    // Who has to ask first, and who gives up, was not refused.
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    let wanted = recovery("jp-ubuntu", PATH, &tag);
    let known = world.rewind.plan_recovery(&wanted, &call()).await.unwrap();
    let undecided = world.rewind.recover(&known.plan.id, &call()).await;
    assert_eq!(undecided.unwrap_err().code, ErrorCode::ConfirmationRequired);
    let cancelled = Call { ..call() };
    cancelled.cancel.cancel();
    world
        .rewind
        .guard(request("app01"), &cancelled)
        .await
        .unwrap_err();

    let refusals: Vec<_> = rows(&world)
        .into_iter()
        .filter(|row| row["kind"] == "refusal")
        .collect();
    let brief: Vec<_> = refusals
        .iter()
        .map(|row| ["asked", "code", "vm"].map(|name| row["row"][name].as_str().unwrap()))
        .collect();
    assert_eq!(
        brief,
        [
            ["guard", "vm_not_found", "no-such-vm"],
            ["guard", "vpg_not_ready", "paused01"],
            ["recovery", "checkpoint_gone", "jp-ubuntu"],
        ]
    );
    assert_eq!(refusals[0]["row"]["client"], "test-client");
    assert_eq!(refusals[0]["row"]["agent"], "claude");
    assert!(
        !refusals
            .iter()
            .any(|row| row.to_string().contains("drop the table"))
    );
    verified(&world);
}

#[tokio::test]
async fn the_list_of_checkpoints_joins_the_journal_with_the_ledger() {
    let world = World::new().await;
    let first = world.guard("app01").await.unwrap();
    // Another user's.
    world
        .elsewhere()
        .guard(request("app01"), &call())
        .await
        .unwrap();
    let pin = &first.pins[1];
    let mut request = recovery("app01", "/etc/hosts", &pin.checkpoint);
    request.vpg = Some(pin.vpg.clone());
    let recovered = recovered(&world.rewind, request.clone(), &call())
        .await
        .unwrap();
    request.paths = Paths::One("/no/such/file".into());
    agreed(&world.rewind, &request, &call()).await.unwrap_err();

    let list = world
        .rewind
        .checkpoints("app01", None, None, &call())
        .await
        .unwrap();
    assert_eq!(list.checkpoints.len(), 6);
    for listed in &list.checkpoints {
        let is_first = first
            .pins
            .iter()
            .any(|pin| pin.vpg == listed.vpg && pin.checkpoint == listed.checkpoint);
        let guard = listed.guard.as_ref();
        assert_eq!(guard.is_some(), is_first, "{listed:?}");
        if let Some(guard) = guard {
            assert_eq!(
                (&*guard.outcome, guard.client.as_deref()),
                ("pinned", Some("test-client"))
            );
            assert!(guard.calls.is_empty());
            assert_eq!(
                world.rewind.ledger().show(guard.row).unwrap().entry.kind,
                "guard"
            );
        }
        let is_recovered = listed.vpg == pin.vpg && listed.checkpoint == pin.checkpoint;
        assert_eq!(listed.recoveries.len(), if is_recovered { 2 } else { 0 });
        if let [done, failed] = listed.recoveries.as_slice() {
            assert_eq!((&*done.outcome, &*failed.outcome), ("recovered", "failed"));
            assert_eq!(done.path, recovered.guest_path);
            assert_eq!(done.sha256.as_ref(), Some(&recovered.files[0].sha256));
            assert_eq!(done.destination.as_ref(), Some(&recovered.local_path));
            assert_eq!((&*failed.path, &failed.sha256), ("/no/such/file", &None));
        }
    }
}

#[tokio::test]
async fn a_checkpoint_that_is_no_pin_is_known_by_its_tag() {
    let world = World::new().await;
    world.sim.update(|switches| switches.hold_listing = true);
    world.guard("jp-ubuntu").await.unwrap_err();
    world.sim.update(|switches| switches.hold_listing = false);
    world
        .sim
        .wait_for(|zvm| {
            zvm.journal("jp-ubuntu")
                .iter()
                .any(|entry| entry.listed_at.is_some())
        })
        .await;
    let list = world
        .rewind
        .checkpoints("jp-ubuntu", None, None, &call())
        .await
        .unwrap();
    let guard = list.checkpoints[0].guard.as_ref().unwrap();
    assert_eq!(guard.outcome, "failed");
}

async fn compare(world: &World, vm: Option<&str>, since: Option<Duration>) -> Comparison {
    world
        .rewind
        .compare_with_journals(vm, since, &call())
        .await
        .unwrap()
}

#[tokio::test]
async fn a_ledger_and_its_journals_agree_after_a_loop() {
    let world = World::new().await;
    assert!(
        compare(&world, None, None).await.journals.is_empty(),
        "nothing is known yet"
    );
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    world.guard("app01").await.unwrap();
    // Its suffix does not make it another tag.
    agreed(&world.rewind, &recovery("jp-ubuntu", PATH, &tag), &call())
        .await
        .unwrap();
    let compared = compare(&world, None, None).await;
    assert!(compared.clean, "{compared:?}");
    let names: Vec<_> = compared
        .journals
        .iter()
        .map(|journal| (&*journal.vpg, journal.listed))
        .collect();
    assert_eq!(names.len(), 4);
    assert!(
        names.contains(&("jp-ubuntu", 1)) && names.contains(&("app01-dr", 1)),
        "{names:?}"
    );
    let one = compare(&world, Some("jp-ubuntu"), None).await;
    assert_eq!(one.journals.len(), 1);
}

#[tokio::test]
async fn what_the_journal_lost_and_what_no_row_knows_is_told() {
    let mut scenario = Scenario::fast().with_past("jp-ubuntu", 60);
    scenario.vpg_mut("jp-ubuntu").unwrap().history = Duration::from_secs(24 * 3600);
    let world = World::of(scenario).await;
    let mine = world.guard("jp-ubuntu").await.unwrap();
    let theirs = world
        .elsewhere()
        .guard(request("jp-ubuntu"), &call())
        .await
        .unwrap();
    let plain = world.sim.checkpoint_now("jp-ubuntu").await.unwrap();

    let now = Timestamp::now();
    let ago = |seconds| now - SignedDuration::from_secs(seconds);
    let pin = |id: &str, at| PinRecord {
        vpg_identifier: world.sim.vpg_id("jp-ubuntu").unwrap().to_uppercase(),
        vpg_name: "jp-ubuntu".into(),
        checkpoint_id: id.into(),
        checkpoint_at: at,
    };
    let gone = PinRecord {
        vpg_identifier: "no-such-vpg".into(),
        vpg_name: "old".into(),
        ..pin("1", now)
    };
    let record = GuardRecord {
        zvm: world.rewind.config().zvm(),
        agent: "claude".into(),
        client: None,
        change: "c".into(),
        vm_identifier: mine.vm_identifier.clone(),
        vm_name: "jp-ubuntu".into(),
        tag: "a tag".into(),
        call: None,
        started: now,
        ended: now,
        pins: vec![
            pin("900001", ago(30 * 86_400)),
            pin("900002", ago(7_200)),
            pin("900003", ago(1)),
            pin(&plain, now),
            gone,
        ],
        failure: None,
    };
    State::new(&world.rewind.config().state_dir)
        .record_guard(&record)
        .unwrap();

    let compared = compare(&world, None, None).await;
    assert!(!compared.clean);
    let of = |vpg: &str| {
        compared
            .journals
            .iter()
            .find(|journal| journal.vpg == vpg)
            .unwrap()
    };
    assert_eq!(of("old").findings, [JournalFinding::VpgGone { pins: 1 }]);
    let journal = of("jp-ubuntu");
    assert_eq!(
        (journal.listed, journal.aged_out, journal.not_looked_at),
        (1, 1, 0)
    );
    let brief: Vec<_> = journal
        .findings
        .iter()
        .map(|finding| match finding {
            JournalFinding::LeftEarly {
                checkpoint,
                expected_until: Some(_),
                ..
            } => ("left early", checkpoint.as_str()),
            JournalFinding::Missing { checkpoint, .. } => ("missing", checkpoint.as_str()),
            JournalFinding::OtherTag { checkpoint, .. } => ("other tag", checkpoint.as_str()),
            JournalFinding::UnknownTag {
                checkpoint, tag, ..
            } => {
                assert_eq!(tag, &theirs.tag);
                ("unknown", checkpoint.as_str())
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let theirs = theirs.pins[0].checkpoint.as_str();
    assert_eq!(
        brief,
        [
            ("left early", "900002"),
            ("missing", "900003"),
            ("other tag", &plain),
            ("unknown", theirs)
        ]
    );
    for finding in &journal.findings {
        assert!(finding.to_string().contains("checkpoint "), "{finding}");
    }

    let lately = compare(&world, Some("jp-ubuntu"), Some(Duration::ZERO)).await;
    let journal = &lately.journals[0];
    assert!(journal.not_looked_at > 0, "{journal:?}");
}

/// What was done is true all the same; but who looks afterwards will read that it was interrupted, so a person is told now.
#[tokio::test]
async fn an_outcome_that_can_not_be_written_down_is_a_warning() {
    let world = World::new().await;
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    assert_eq!(world.rewind.take_warnings(), [""; 0]);
    let state = rusqlite::Connection::open(world.folder().join("state/state.db")).unwrap();
    for table in ["guard", "plan_ended"] {
        state
            .execute_batch(&format!(
                "CREATE TRIGGER {table}_full BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'disk full'); END;"
            ))
            .unwrap();
    }
    world.guard("jp-ubuntu").await.unwrap();
    let request = recovery("jp-ubuntu", PATH, &tag);
    recovered(&world.rewind, request, &call()).await.unwrap();
    let warnings = world.rewind.take_warnings();
    let said = ["how this guard ended", "how this recovery ended"];
    assert_eq!(warnings.len(), said.len(), "{warnings:?}");
    for (warning, said) in warnings.iter().zip(said) {
        assert!(warning.starts_with(said), "{warning}");
        assert!(warning.contains("can't be written down"), "{warning}");
    }
}
