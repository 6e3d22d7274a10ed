//! Clocks that are wrong by hours on either side, or are set at the worst moment.
use crate::support::{World, call, recovered, recovery, request};
use jiff::{SignedDuration, Timestamp};
use rewind_core::{
    Clock, Receipt, Rewind,
    state::{FlrMount, State},
    tag::{self, Parsed},
};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::task::JoinSet;
use zvm_sim::{Fault, Scenario};

/// One small VM.
async fn world() -> World {
    let mut scenario = Scenario::fast();
    scenario.timings.auto_checkpoint = Duration::from_secs(5);
    scenario.vms.retain(|vm| vm.name == "jp-ubuntu");
    scenario.vpgs.retain(|vpg| vpg.name == "jp-ubuntu");
    World::of(scenario).await
}

const HOURS: SignedDuration = SignedDuration::from_hours(5);

/// A host's clock that is wrong by so much.
#[derive(Debug)]
struct Wrong(Mutex<SignedDuration>);

impl Wrong {
    fn by(ahead: SignedDuration) -> Arc<Self> {
        Arc::new(Self(Mutex::new(ahead)))
    }
}

impl Clock for Wrong {
    fn now(&self) -> Timestamp {
        Timestamp::now() + *self.0.lock().unwrap()
    }
}

fn at(tag: &str) -> Timestamp {
    match tag::parse(tag) {
        Parsed::Ours(tag) => tag.at(),
        other => panic!("{tag}: {other:?}"),
    }
}

fn near(a: Timestamp, b: Timestamp) -> bool {
    a.duration_since(b).abs() < SignedDuration::from_secs(10)
}

/// The receipt is right by the ZVM's clock, and what it names is found again.
async fn holds(world: &World, rewind: &Rewind, receipt: &Receipt, zvm: &[Timestamp]) {
    let said = at(&receipt.tag);
    assert!(zvm.iter().any(|&zvm| near(said, zvm)), "{said} {zvm:?}");
    assert!(
        (0.0..600.0).contains(&receipt.seconds),
        "{}",
        receipt.seconds
    );
    let pin = &receipt.pins[0];
    let time: Timestamp = pin.time.parse().unwrap();
    assert!(zvm.iter().any(|&zvm| near(time, zvm)), "{time} {zvm:?}");
    let listed = world.sim.journal("jp-ubuntu");
    let carrying = listed.iter().filter(|entry| entry.tag == receipt.tag);
    assert_eq!(carrying.count(), 1, "{listed:?}");

    let list = rewind
        .checkpoints("jp-ubuntu", None, None, &call())
        .await
        .unwrap();
    assert_eq!(list.checkpoints[0].tag, receipt.tag);
    let by_tag = recovery("jp-ubuntu", "/etc/hosts", &receipt.tag);
    let plan = rewind.plan_recovery(&by_tag, &call()).await.unwrap();
    assert_eq!(plan.plan.checkpoint, pin.checkpoint);
}

#[tokio::test]
async fn a_zvm_whose_clock_is_hours_off() {
    for ahead in [HOURS, -HOURS] {
        let world = world().await;
        world.set_zvm_clock(ahead);
        let receipt = world.guard("jp-ubuntu").await.unwrap();
        holds(&world, &world.rewind, &receipt, &[world.zvm_now()]).await;
        let recovery = recovery("jp-ubuntu", "/etc/hosts", &receipt.tag);
        let one = recovered(&world.rewind, recovery, &call()).await.unwrap();
        assert!(one.timing.total < 600.0, "{:?}", one.timing);
        assert_eq!(world.sim.flr_sessions(), []);
    }
}

#[tokio::test]
async fn a_host_whose_clock_is_hours_off() {
    for ahead in [HOURS, -HOURS] {
        let world = world().await;
        let rewind = world.with_clock(Wrong::by(ahead));
        let receipt = rewind.guard(request("jp-ubuntu"), &call()).await.unwrap();
        holds(&world, &rewind, &receipt, &[world.zvm_now()]).await;
    }
}

/// As if the ZVM's clock was set, or this host slept for hours, when the nth request of a guard was under way. None: there was no such
/// request.
async fn jump_at(nth: u32) -> Option<()> {
    let world = world().await;
    let ahead = if nth.is_multiple_of(2) { HOURS } else { -HOURS };
    world.sim.add_fault(Fault {
        skip: nth,
        ..Fault::hold("", "/**")
    });
    let before = world.zvm_now();
    let jump = async {
        world.sim.wait_for(|view| view.held().count() == 1).await;
        world.set_zvm_clock(ahead);
        world.sim.let_go();
    };
    let guard = world.guard("jp-ubuntu");
    tokio::pin!(guard);
    let receipt = tokio::select! {
        biased;
        receipt = &mut guard => { receipt.unwrap(); return None }
        () = jump => guard.await.unwrap(),
    };
    holds(&world, &world.rewind, &receipt, &[before, world.zvm_now()]).await;
    Some(())
}

#[tokio::test]
async fn the_zvms_clock_is_set_at_any_moment_of_a_guard() {
    let mut moments = JoinSet::new();
    for nth in 0..16 {
        moments.spawn(jump_at(nth));
    }
    let reached = moments.join_all().await;
    let count = reached.iter().flatten().count();
    assert!((6..16).contains(&count), "{count} moments");
}

/// What is left of a mount that was asked for when its process died.
async fn died_mounting(world: &World) {
    let receipt = world.guard("jp-ubuntu").await.unwrap();
    let config = world.rewind.config();
    let dead = State::open(&config.state_dir).unwrap();
    dead.session_opening(&FlrMount {
        zvm: config.zvm(),
        vm_identifier: world.sim.vm_id("jp-ubuntu").unwrap().into(),
        vpg_identifier: world.sim.vpg_id("jp-ubuntu").unwrap().into(),
        checkpoint_id: receipt.pins[0].checkpoint.clone(),
        zvm_at: world.zvm_now(),
    })
    .unwrap();
}

async fn mounts(world: &World) {
    let checkpoint = &world.sim.journal("jp-ubuntu")[0].id;
    world
        .sim
        .mount("jp-ubuntu", "jp-ubuntu", checkpoint)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_mount_of_a_dead_process_is_found_although_clocks_were_set_since() {
    for (host, zvm) in [
        (HOURS, SignedDuration::ZERO),
        (-HOURS, SignedDuration::ZERO),
        (SignedDuration::ZERO, HOURS),
        (SignedDuration::ZERO, -HOURS),
        (HOURS, -HOURS),
    ] {
        let world = world().await;
        died_mounting(&world).await;
        mounts(&world).await;
        world.set_zvm_clock(zvm);
        let next = world.with_clock(Wrong::by(host));
        assert_eq!(next.clean_up_orphans().await.unwrap(), 1, "{host} {zvm}");
        assert_eq!(world.sim.flr_sessions(), [], "{host} {zvm}");
    }
}

#[tokio::test]
async fn a_mount_that_began_too_late_to_be_ours_is_somebody_elses() {
    let world = world().await;
    died_mounting(&world).await;
    let minutes = SignedDuration::from_mins(3);
    // Three minutes pass on both sides.
    world.set_zvm_clock(minutes);
    let next = world.with_clock(Wrong::by(minutes));
    mounts(&world).await;
    assert_eq!(next.clean_up_orphans().await.unwrap(), 0);
    assert_eq!(world.sim.flr_sessions().len(), 1);
    // It never began: that is not looked for any more.
    let open = "SELECT count(*) FROM flr_session s
                WHERE NOT EXISTS (SELECT 1 FROM flr_session_closed c WHERE c.session = s.id)";
    assert_eq!(world.state(open), 0);
}

#[tokio::test]
async fn while_a_mount_may_still_begin_it_is_looked_for() {
    let world = world().await;
    died_mounting(&world).await;
    assert_eq!(world.beside().clean_up_orphans().await.unwrap(), 0);
    // The dead one's request is carried out late.
    mounts(&world).await;
    assert_eq!(world.beside().clean_up_orphans().await.unwrap(), 1);
    assert_eq!(world.sim.flr_sessions(), []);
}

#[tokio::test]
async fn an_interrupted_insert_keeps_nobody_for_longer_because_a_clock_was_set() {
    for ahead in [HOURS, -HOURS] {
        let world = world().await;
        let state = State::open(&world.rewind.config().state_dir).unwrap();
        let vpg = world.sim.vpg_id("jp-ubuntu").unwrap();
        let zvm = world.rewind.config().zvm();
        state.insert_sending(&zvm, vpg, "never sent").unwrap();
        let next = world.with_clock(Wrong::by(ahead));
        let begun = std::time::Instant::now();
        let receipt = next.guard(request("jp-ubuntu"), &call()).await.unwrap();
        // The listed_timeout of these tests is 2 s.
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "{:?}",
            begun.elapsed()
        );
        assert_eq!(receipt.pins[0].inserts, 1);
    }
}
