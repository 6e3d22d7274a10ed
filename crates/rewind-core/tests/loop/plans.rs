//! What a person agrees to is what is done: once, in time, and only if everything is as it was.
use crate::support::{Hand, World, agreed, approve, call, config, recovery};
use futures::future;
use jiff::SignedDuration;
use rewind_core::{
    Destination, Error, ErrorCode, How, KnownPlan, Paths, RecoverRequest, Rewind, Verdict,
};
use serde_json::json;
use std::{fs, path::Path, time::Duration};
use zvm_sim::{Fault, FlrState, Scenario, Sim, Spread};

const MINUTE: SignedDuration = SignedDuration::from_mins(1);

async fn pinned(world: &World) -> RecoverRequest {
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    recovery("jp-ubuntu", "/etc/hosts", &tag)
}

async fn planned(world: &World) -> KnownPlan {
    let request = pinned(world).await;
    world.rewind.plan_recovery(&request, &call()).await.unwrap()
}

async fn recover(rewind: &Rewind, known: &KnownPlan) -> Result<(), Error> {
    rewind.recover(&known.plan.id, &call()).await.map(|_| ())
}

async fn refused(world: &World, rewind: &Rewind, known: &KnownPlan, code: ErrorCode) -> Error {
    let before = world.mounts();
    let error = recover(rewind, known).await.unwrap_err();
    assert_eq!(error.code, code, "{error}");
    assert_eq!(world.mounts(), before, "nothing was mounted for it");
    error
}

#[tokio::test]
async fn nothing_is_mounted_before_somebody_has_agreed() {
    let world = World::new().await;
    let known = planned(&world).await;
    let error = refused(
        &world,
        &world.rewind,
        &known,
        ErrorCode::ConfirmationRequired,
    )
    .await;
    assert_eq!(error.plan_id.as_deref(), Some(known.plan.id.as_str()));
    assert!(!world.recover_dir().exists());
    let summary = known.plan.summary(&known.digest);
    for said in [
        "jp-ubuntu",
        &known.plan.checkpoint,
        &known.plan.checkpoint_time,
        known.plan.tag.as_deref().unwrap(),
        "/etc/hosts",
        &format!("s before this plan was made at {:.0}", known.plan.made_at),
        "an estimate",
        world.recover_dir().to_str().unwrap(),
        &known.plan.id,
        &known.digest[..16],
    ] {
        assert!(summary.contains(said), "{said} is not in: {summary}");
    }
}

#[tokio::test]
async fn what_was_agreed_to_is_done_once() {
    let world = World::new().await;
    let known = planned(&world).await;
    approve(&world.rewind, &known).await.unwrap();
    let recovery = world.rewind.recover(&known.plan.id, &call()).await.unwrap();
    assert_eq!(recovery.plan_id, known.plan.id);
    assert_eq!(world.mounts(), 1);
    // A replay, whoever tries it, and even where the place is free again.
    fs::remove_file(recovery.one.unwrap().local_path.unwrap()).unwrap();
    for rewind in [&world.rewind, &world.beside()] {
        refused(&world, rewind, &known, ErrorCode::PlanUsed).await;
    }
    let decided = approve(&world.rewind, &known).await.unwrap_err();
    assert_eq!(decided.code, ErrorCode::PlanDecided);
}

#[tokio::test]
async fn a_no_is_final() {
    let world = World::new().await;
    for verdict in [Verdict::Declined, Verdict::Cancelled, Verdict::Mistyped] {
        let known = planned(&world).await;
        let said = world.rewind.decide(&known, verdict, How::Form, "claude");
        assert_eq!(said.await.unwrap().verdict, verdict);
        let error = approve(&world.beside(), &known).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::PlanDecided);
        // With what is known by now, too.
        let now = world.rewind.plan(&known.plan.id).await.unwrap();
        assert_eq!(
            approve(&world.rewind, &now).await.unwrap_err().code,
            ErrorCode::PlanDecided
        );
        refused(&world, &world.rewind, &known, ErrorCode::Declined).await;
    }
}

#[tokio::test]
async fn of_decisions_that_race_one_counts() {
    let world = World::new().await;
    for _ in 0..5 {
        let known = planned(&world).await;
        let (here, there) = (world.beside(), world.beside());
        let (yes, no) = tokio::join!(
            here.decide(&known, Verdict::Approved, How::Approve, "cli/ana"),
            there.decide(&known, Verdict::Approved, How::Approve, "cli/bo"),
        );
        let late = match (&yes, &no) {
            (Ok(_), Err(late)) | (Err(late), Ok(_)) => late,
            both => panic!("{both:?}"),
        };
        assert_eq!(late.code, ErrorCode::PlanDecided);
        let first = yes.as_ref().or(no.as_ref()).unwrap();
        assert!(late.message.contains(&first.by), "{late}");
        let stored = world.rewind.plan(&known.plan.id).await.unwrap();
        assert_eq!(stored.decision.unwrap().by, first.by);
    }
}

#[tokio::test]
async fn of_executions_that_race_one_mounts() {
    let world = World::new().await;
    world
        .sim
        .update(|switches| switches.one_mount_per_vm = false);
    let known = planned(&world).await;
    approve(&world.rewind, &known).await.unwrap();
    let others: Vec<Rewind> = (0..4).map(|_| world.beside()).collect();
    let all = futures::future::join_all(others.iter().map(|rewind| recover(rewind, &known))).await;
    assert_eq!(
        all.iter().filter(|result| result.is_ok()).count(),
        1,
        "{all:?}"
    );
    assert_eq!(world.mounts(), 1);
    for error in all.into_iter().filter_map(Result::err) {
        assert_eq!(error.code, ErrorCode::PlanUsed, "{error:?}");
    }
}

/// Two callers with one plan, of whom one is held at its nth request. False once it sends no more than that.
async fn two_callers(
    world: &World,
    pinned: &RecoverRequest,
    nth: u32,
    meets_a_session: bool,
) -> bool {
    let place = format!("{meets_a_session}-{nth}");
    let request = RecoverRequest {
        destination: Destination::InRecoverDir(Some(place)),
        ..pinned.clone()
    };
    let call = call();
    let plan = world.rewind.plan_recovery(&request, &call);
    let known = plan.await.unwrap();
    approve(&world.rewind, &known).await.unwrap();
    let mounts_before = world.mounts();
    world.sim.add_fault(Fault {
        skip: nth,
        ..Fault::hold("", "/**")
    });
    // With a login of its own.
    let other = world.beside();
    let held = recover(&other, &known);
    tokio::pin!(held);
    tokio::select! {
        result = &mut held => {
            result.unwrap();
            world.sim.clear_faults();
            return false;
        }
        () = world.sim.wait_for(|view| view.held().count() > 0) => {}
    }
    if meets_a_session && world.mounts() > mounts_before {
        // It has begun by now, so the other one opens none.
        world.sim.let_go();
        held.await.unwrap();
        return false;
    }
    let mounts = Some(Spread::millis(300, 300)).filter(|_| meets_a_session);
    world
        .sim
        .update(|switches| switches.mount_duration = mounts);
    let free = async {
        let recovering = recover(&world.rewind, &known);
        tokio::pin!(recovering);
        tokio::select! {
            result = &mut recovering => {
                world.sim.let_go();
                result
            }
            () = world.sim.wait_for(|view| !view.sessions().is_empty()), if meets_a_session => {
                world.sim.let_go();
                recovering.await
            }
        }
    };
    let used = match tokio::join!(held, free) {
        (Ok(()), Err(used)) | (Err(used), Ok(())) => used,
        both => panic!("request {nth}: {both:?}"),
    };
    assert_eq!(used.code, ErrorCode::PlanUsed, "request {nth}: {used:?}");
    assert_eq!(world.mounts(), mounts_before + 1, "request {nth}");
    true
}

#[tokio::test]
async fn of_two_callers_one_carries_the_plan_out_and_the_other_is_told_that_it_is_used() {
    // They wait most of the time, so several worlds share the requests between them.
    const WORLDS: u32 = 6;
    let requests = future::join_all((0..WORLDS).map(|first| async move {
        let world = World::new().await;
        let pinned = pinned(&world).await;
        let mut held = 0;
        for meets_a_session in [false, true] {
            let mut nth = first;
            while two_callers(&world, &pinned, nth, meets_a_session).await {
                nth += WORLDS;
                held += 1;
            }
        }
        held
    }));
    let requests: u32 = requests.await.into_iter().sum();
    assert!(requests > 16, "more than {requests} are sent");
}

#[tokio::test]
async fn a_plan_expires_after_ten_minutes_approved_or_not() {
    let world = World::new().await;
    let request = pinned(&world).await;
    let clock = Hand::new();
    let rewind = world.by(&clock, &json!({}));
    let plan = async || rewind.plan_recovery(&request, &call()).await.unwrap();

    let undecided = plan().await;
    let approved = plan().await;
    clock.forward(MINUTE * 9);
    approve(&rewind, &approved).await.unwrap();
    clock.forward(MINUTE);
    assert_eq!(
        approve(&rewind, &undecided).await.unwrap_err().code,
        ErrorCode::PlanExpired
    );
    for known in [&undecided, &approved] {
        refused(&world, &rewind, known, ErrorCode::PlanExpired).await;
    }
    // A clock that is set back does not help.
    let known = plan().await;
    approve(&rewind, &known).await.unwrap();
    clock.forward(-MINUTE * 5);
    refused(&world, &rewind, &known, ErrorCode::PlanExpired).await;
}

#[tokio::test]
async fn a_plan_of_another_user_or_zvm_is_refused() {
    let world = World::new().await;
    let known = planned(&world).await;
    approve(&world.rewind, &known).await.unwrap();
    refused(&world, &world.elsewhere(), &known, ErrorCode::PlanForeign).await;
    let other = Sim::start(Scenario::fast()).await.unwrap();
    let other_zvm = Rewind::new(config(&other, world.folder(), "state", &json!({}))).unwrap();
    refused(&world, &other_zvm, &known, ErrorCode::PlanForeign).await;
    assert!(other.requests().is_empty());
    for id in ["", "p-00000000", "x' OR 1=1", "../../state.db"] {
        let error = world.rewind.plan(id).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::PlanForeign, "{id:?}");
    }
    // As a person may type it.
    let typed = format!(" {} ", known.plan.id.to_uppercase());
    assert_eq!(world.rewind.plan(&typed).await.unwrap().plan, known.plan);
}

#[tokio::test]
async fn a_checkpoint_that_has_left_the_journal_is_not_recovered_from() {
    let world = World::new().await;
    let known = planned(&world).await;
    approve(&world.rewind, &known).await.unwrap();
    let short = |switches: &mut zvm_sim::Switches| {
        let vpg = switches.vpg.entry("jp-ubuntu".into()).or_default();
        vpg.history = Some(Duration::from_millis(1));
    };
    world.sim.update(short);
    world.sim.checkpoint_now("jp-ubuntu").await.unwrap();
    let error = refused(&world, &world.rewind, &known, ErrorCode::CheckpointGone).await;
    assert!(error.message.contains(&known.plan.checkpoint), "{error}");
}

#[tokio::test]
async fn what_changed_since_is_a_new_plan() {
    let world = World::new().await;
    let known = planned(&world).await;
    approve(&world.rewind, &known).await.unwrap();
    let longer = |switches: &mut zvm_sim::Switches| {
        let vpg = switches.vpg.entry("jp-ubuntu".into()).or_default();
        vpg.history = Some(Duration::from_secs(90 * 24 * 60 * 60));
    };
    world.sim.update(longer);
    let error = refused(&world, &world.rewind, &known, ErrorCode::PlanChanged).await;
    assert!(error.message.contains("stay in the journal"), "{error}");
}

#[tokio::test]
async fn a_tag_that_somebody_has_looked_into_is_the_same_tag() {
    let world = World::new().await;
    let first = planned(&world).await;
    let elsewhere = RecoverRequest {
        destination: Destination::InRecoverDir(Some("elsewhere".into())),
        ..first.plan.asked.clone()
    };
    approve(&world.rewind, &first).await.unwrap();
    agreed(&world.rewind, &elsewhere, &call()).await.unwrap();
    recover(&world.rewind, &first).await.unwrap();
}

#[tokio::test]
async fn a_place_that_is_taken_by_now_is_left_alone_and_does_not_use_the_plan_up() {
    let world = World::new().await;
    let known = planned(&world).await;
    approve(&world.rewind, &known).await.unwrap();
    let place = world
        .recover_dir()
        .join("jp-ubuntu")
        .join(&known.plan.checkpoint)
        .join("etc/hosts");
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(&place, "mine").unwrap();
    refused(&world, &world.rewind, &known, ErrorCode::DestinationExists).await;
    assert_eq!(fs::read_to_string(&place).unwrap(), "mine");
    fs::remove_file(&place).unwrap();
    recover(&world.rewind, &known).await.unwrap();
    assert_ne!(fs::read_to_string(&place).unwrap(), "mine");
}

#[tokio::test]
async fn a_vm_that_is_busy_does_not_use_the_plan_up() {
    let world = World::new().await;
    let known = planned(&world).await;
    approve(&world.rewind, &known).await.unwrap();
    world
        .sim
        .update(|switches| switches.mount_duration = Some(Spread::millis(1_500, 1_500)));
    let request = RecoverRequest {
        destination: Destination::Folder(world.folder().join("theirs")),
        ..known.plan.asked.clone()
    };
    let (other, theirs) = (world.elsewhere(), call());
    let their_recovery = agreed(&other, &request, &theirs);
    let ours = async {
        world.sim.wait_for(|view| view.sessions().len() == 1).await;
        refused(&world, &world.rewind, &known, ErrorCode::FlrBusy).await;
    };
    tokio::join!(their_recovery, ours).0.unwrap();
    recover(&world.rewind, &known).await.unwrap();
}

#[tokio::test]
async fn a_death_between_the_word_and_the_deed_loses_nothing_and_repeats_nothing() {
    let world = World::new().await;
    let known = planned(&world).await;
    {
        // It dies right after the decision was written down.
        let process = world.beside();
        approve(&process, &known).await.unwrap();
    }
    world
        .sim
        .update(|switches| switches.mount_duration = Some(Spread::millis(60_000, 60_000)));
    {
        // And the next one in the middle of it.
        let process = world.beside();
        let call = call();
        let recovering = process.recover(&known.plan.id, &call);
        let mounting = world.sim.wait_for(|view| {
            view.sessions()
                .iter()
                .any(|session| session.state == FlrState::Mounting)
        });
        tokio::select! {
            result = recovering => panic!("{result:?}"),
            () = mounting => {}
        }
    }
    world.sim.wait_for(|view| view.sessions().is_empty()).await;
    world.sim.update(|switches| switches.mount_duration = None);
    let error = refused(&world, &world.rewind, &known, ErrorCode::PlanUsed).await;
    // Until it has unmounted, it lives.
    let dead_or_dying = [
        "its process ended before it was done",
        "being carried out already",
    ];
    assert!(
        dead_or_dying
            .iter()
            .any(|said| error.message.contains(said)),
        "{error}"
    );
    assert!(!world.recover_dir().join("jp-ubuntu").exists());
}

#[tokio::test]
async fn a_plan_that_was_changed_in_the_state_is_not_carried_out() {
    let world = World::new().await;
    for column in ["plan.body", "plan.digest", "plan_decision.digest"] {
        let known = planned(&world).await;
        approve(&world.rewind, &known).await.unwrap();
        let (table, column) = column.split_once('.').unwrap();
        let state = rusqlite::Connection::open(world.folder().join("state/state.db")).unwrap();
        let key = if table == "plan" { "id" } else { "plan" };
        state
            .execute_batch(&format!(
                "DROP TRIGGER IF EXISTS {table}_kept;
                 UPDATE {table} SET {column} = replace({column}, substr({column}, 20, 3), 'xyz')
                 WHERE {key} = (SELECT max(id) FROM plan);"
            ))
            .unwrap();
        refused(&world, &world.rewind, &known, ErrorCode::State).await;
    }
}

#[tokio::test]
async fn who_asks_again_meanwhile_gets_the_same_plan() {
    let world = World::new().await;
    let request = pinned(&world).await;
    let clock = Hand::new();
    let rewind = world.by(&clock, &json!({}));
    let once = async |request: &RecoverRequest| {
        let known = rewind.plan_recovery_once(request, &call()).await.unwrap();
        known.plan.id
    };
    let first = once(&request).await;
    clock.forward(MINUTE * 4);
    assert_eq!(once(&request).await, first);
    let other = RecoverRequest {
        paths: Paths::One("/etc/hostname".into()),
        ..request.clone()
    };
    assert_ne!(once(&other).await, first);
    // Too late to decide in peace.
    clock.forward(MINUTE * 2);
    let second = once(&request).await;
    assert_ne!(second, first);
    // One that was approved is not asked about again, as long as it can be carried out.
    approve(&rewind, &rewind.plan(&second).await.unwrap())
        .await
        .unwrap();
    clock.forward(MINUTE * 9);
    assert_eq!(once(&request).await, second);
    let known = rewind.plan(&second).await.unwrap();
    recover(&rewind, &known).await.unwrap();
    // A decision on the one is none on the next.
    let place = world.recover_dir().join("jp-ubuntu");
    fs::rename(&place, world.folder().join("away")).unwrap();
    let third = rewind.plan_recovery_once(&request, &call()).await.unwrap();
    assert_ne!(third.plan.id, second);
    assert!(third.decision.is_none());
}

#[tokio::test]
async fn open_plans_are_listed_newest_first() {
    let world = World::new().await;
    let request = pinned(&world).await;
    let clock = Hand::new();
    let rewind = world.by(&clock, &json!({}));
    let first = rewind.plan_recovery(&request, &call()).await.unwrap();
    clock.forward(MINUTE * 9);
    let second = rewind.plan_recovery(&request, &call()).await.unwrap();
    approve(&rewind, &second).await.unwrap();
    let listed = rewind.plans().await.unwrap();
    let ids: Vec<_> = listed.iter().map(|known| &known.plan.id).collect();
    assert_eq!(ids, [&second.plan.id, &first.plan.id]);
    assert!(listed[0].decision.is_some() && listed[1].decision.is_none());
    clock.forward(MINUTE);
    assert_eq!(rewind.plans().await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_key_that_seals_is_this_users_alone() {
    let world = World::new().await;
    let key = world.rewind.seal_key().await.unwrap();
    assert_eq!(key.len(), 32);
    assert_eq!(world.beside().seal_key().await.unwrap(), key);
    assert_ne!(world.elsewhere().seal_key().await.unwrap(), key);
    assert!(Path::new(&world.folder().join("state")).exists());
}
