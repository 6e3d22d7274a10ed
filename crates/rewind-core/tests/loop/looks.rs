//! Looks into checkpoints: whom an agreement holds for, and what the ledger has of them.
use crate::support::{Hand, World, approve, call, recovery};
use jiff::SignedDuration;
use rewind_core::{
    Call, DiffRequest, ErrorCode, How, Paths, RecoverRequest, Verdict,
    approver::Approver,
    ledger::{Entry, Filter},
};
use serde_json::json;
use std::{fs, sync::Arc};
use zvm_sim::{Fault, Outcome};

const FILE: &str = "/home/justin/app-config.yaml";

fn from(seat: &str) -> Call {
    Call {
        seat: seat.into(),
        caller: format!("client-of-{seat}"),
        ..call()
    }
}

fn diff(tag: &str, path: &str) -> DiffRequest {
    DiffRequest {
        vm: "jp-ubuntu".into(),
        path: path.into(),
        checkpoint: tag.into(),
        vpg: None,
    }
}

fn pattern(tag: &str) -> RecoverRequest {
    RecoverRequest {
        paths: Paths::Several(vec!["/etc/host*".into()]),
        ..recovery("jp-ubuntu", "", tag)
    }
}

async fn pinned(world: &World) -> String {
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    world.sim.checkpoint_now("jp-ubuntu").await.unwrap();
    tag
}

fn looks(world: &World) -> Vec<Entry> {
    let entries = world.rewind.ledger().list(&Filter::default()).unwrap();
    entries
        .into_iter()
        .filter(|entry| entry.kind == "look")
        .collect()
}

#[tokio::test]
async fn an_agreement_holds_for_who_asked_and_for_nobody_else() {
    let world = World::new().await;
    let tag = pinned(&world).await;
    let (one, other) = (from("one"), from("other"));
    let (file, request) = (diff(&tag, FILE), pattern(&tag));
    let rewind = &world.rewind;

    let known = rewind.plan_diff(&file, &one).await.unwrap().unwrap();
    let summary = known.plan.summary(&known.digest);
    assert!(summary.contains("client-of-one"), "{summary}");
    // What waits for a decision on behalf of the one is not what the other is offered.
    let others = rewind.plan_diff(&file, &other).await.unwrap().unwrap();
    assert_ne!(known.plan.id, others.plan.id);
    let again = rewind.plan_diff(&file, &one).await.unwrap().unwrap();
    assert_eq!(known.plan.id, again.plan.id);

    approve(rewind, &known).await.unwrap();
    let error = rewind.diff(&file, &other).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::ConfirmationRequired);
    let plan = rewind.plan_recovery(&request, &other).await.unwrap().plan;
    assert!(plan.is_preview());
    assert_eq!(world.mounts(), 0, "nobody has agreed to that");

    rewind.diff(&file, &one).await.unwrap();
    let plan = rewind.plan_recovery(&request, &one).await.unwrap().plan;
    assert!(!plan.is_preview());
    assert_eq!(world.mounts(), 3);
}

#[tokio::test]
async fn a_passphrase_that_is_set_ends_what_was_agreed_to_before() {
    let world = World::new().await;
    let tag = pinned(&world).await;
    let clock = Hand::new();
    let rewind = world.by(&clock, &json!({}));
    let file = diff(&tag, FILE);
    let agree = async || {
        let known = rewind.plan_diff(&file, &call()).await.unwrap().unwrap();
        approve(&rewind, &known).await.unwrap();
    };
    let holds = async || rewind.plan_diff(&file, &call()).await.unwrap().is_none();
    agree().await;
    assert!(holds().await);
    let request = recovery("jp-ubuntu", FILE, &tag);
    let known = rewind.plan_recovery(&request, &call()).await.unwrap();
    approve(&rewind, &known).await.unwrap();
    let dir = rewind.config().state_dir.clone();
    for set in [true, false] {
        clock.forward(SignedDuration::from_secs(1));
        let (dir, by_hand): (_, Arc<Hand>) = (dir.clone(), clock.clone());
        tokio::task::spawn_blocking(move || {
            let approver = Approver::with_clock(&dir, by_hand);
            match set {
                true => approver.set(&"five words of a person".into(), "cli/ana"),
                false => approver.remove("cli/ana"),
            }
        })
        .await
        .unwrap()
        .unwrap();
        assert!(!holds().await);
        let error = rewind.recover(&known.plan.id, &call()).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::PlanChanged);
        assert!(error.message.contains("passphrase"), "{error}");
        // It is told as that wherever it is met, and who asks again gets another.
        let told = rewind.plan(&known.plan.id).await.unwrap();
        assert!(told.outdated);
        let error = approve(&rewind, &told).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::PlanChanged);
        let again = rewind.plan_recovery_once(&request, &call()).await.unwrap();
        assert_ne!(again.plan.id, known.plan.id);
    }
    assert_eq!(world.mounts(), 0);
    clock.forward(SignedDuration::from_secs(1));
    agree().await;
    assert!(holds().await);
}

#[tokio::test]
async fn the_ledger_has_each_look_with_who_looked_for_what() {
    let world = World::new().await;
    let tag = pinned(&world).await;
    let rewind = &world.rewind;
    let file = diff(&tag, FILE);
    let one = from("one");
    let known = rewind.plan_diff(&file, &one).await.unwrap().unwrap();
    approve(rewind, &known).await.unwrap();
    let found = rewind.diff(&file, &one).await.unwrap();
    rewind.plan_recovery(&pattern(&tag), &one).await.unwrap();
    let nowhere = diff(&tag, "/etc/shadow-of-nobody");
    rewind.diff(&nowhere, &one).await.unwrap_err();
    world
        .sim
        .add_fault(Fault::answer("POST", "/v1/flrs", 400, Outcome::Message));
    rewind.diff(&file, &one).await.unwrap_err();

    let looks = looks(&world);
    let agreed = format!("as agreed with {}", known.plan.id);
    let checkpoint = &found.checkpoint;
    for (look, (path, compared, ended)) in looks.iter().zip([
        (FILE, true, "failed: flr_failed"),
        ("/etc/shadow-of-nobody", true, "done"),
        ("/etc/host*", false, "done"),
        (FILE, true, "done"),
    ]) {
        let looked = format!("{path} looked for in checkpoint {checkpoint} of jp-ubuntu, ");
        let rest = look.what.strip_prefix(&looked).unwrap();
        let rest = match compared {
            true => {
                let with = rest.strip_prefix("compared with checkpoint ").unwrap();
                with.trim_start_matches(|digit: char| digit.is_ascii_digit())
                    .trim_start_matches(", ")
            }
            false => rest,
        };
        assert_eq!(rest, format!("{agreed}: {ended}"));
        assert_eq!(look.agent.as_deref(), Some("client-of-one"));
        assert_eq!(look.vms, ["jp-ubuntu"]);
    }
    assert_eq!(looks.len(), 4);
    assert!(world.rewind.ledger().verify().unwrap().clean);
}

#[tokio::test]
async fn nothing_is_looked_into_that_can_not_be_written_down() {
    let mut world = World::new().await;
    world.rewind = world.with_config(&json!({ "previews": "free" }));
    let tag = pinned(&world).await;
    let state = rusqlite::Connection::open(world.folder().join("state/state.db")).unwrap();
    state
        .execute_batch(
            "CREATE TRIGGER full BEFORE INSERT ON look BEGIN SELECT RAISE(ABORT, 'disk full'); END;",
        )
        .unwrap();
    for error in [
        world.rewind.diff(&diff(&tag, FILE), &call()).await.err(),
        world
            .rewind
            .plan_recovery(&pattern(&tag), &call())
            .await
            .err(),
    ] {
        assert_eq!(error.unwrap().code, ErrorCode::State);
    }
    assert_eq!(world.mounts(), 0);
    let left = fs::read_dir(world.recover_dir()).map_or(0, |entries| entries.count());
    assert_eq!(left, 0);
}

#[tokio::test]
async fn what_is_refused_is_told_with_who_asked_of_which_vm_by_which_plan() {
    let world = World::new().await;
    let tag = pinned(&world).await;
    let rewind = &world.rewind;
    let one = from("one");
    let request = recovery("jp-ubuntu", FILE, &tag);
    let known = rewind.plan_recovery(&request, &one).await.unwrap();
    let no = rewind.decide(&known, Verdict::Declined, How::Approve, "cli/ana");
    no.await.unwrap();
    let id = known.plan.id.as_str();
    let error = rewind.recover(id, &one).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Declined);
    rewind.plan_refused("p-00000000", &one, &error).await;
    for wrong in [diff(&tag, "not/absolute"), diff("99999999", FILE)] {
        rewind.plan_diff(&wrong, &one).await.unwrap_err();
        rewind.diff(&wrong, &one).await.unwrap_err();
    }
    let entries = rewind.ledger().list(&Filter {
        agent: Some("client-of-one".into()),
        ..Filter::default()
    });
    let refusals: Vec<_> = entries
        .unwrap()
        .into_iter()
        .filter(|entry| entry.kind == "refusal")
        .map(|entry| (entry.what, entry.vms))
        .collect();
    let vm = vec!["jp-ubuntu".to_owned()];
    let look = |code: &str| (format!("look: {code}"), vm.clone());
    assert_eq!(
        refusals,
        [
            look("checkpoint_gone"),
            look("checkpoint_gone"),
            look("invalid_argument"),
            look("invalid_argument"),
            ("recovery by plan p-00000000: declined".to_owned(), vec![]),
            (format!("recovery by plan {id}: declined"), vm.clone()),
        ]
    );
    assert!(rewind.ledger().verify().unwrap().clean);
}
