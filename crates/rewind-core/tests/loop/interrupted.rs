//! What a process had under way when it died.
use crate::support::{World, approve, call, recovery, request};
use rewind_core::{
    ErrorCode, PlanEnd, Rewind,
    ledger::{Filter, OpenIntents},
    state::State,
};

const TAG: &str = "ai:claude | edit /etc/hosts | vm=jp-ubuntu | change=chg-1 | 20260921T170829Z";

/// A process that is about to guard.
fn about_to_guard(world: &World, tag: &str) -> State {
    let config = world.rewind.config();
    let state = State::open(&config.state_dir).unwrap();
    let vm = world.sim.vm_id("jp-ubuntu").unwrap();
    assert!(state.guard_intended(&config.zvm(), vm, tag).unwrap());
    state
}

/// What the ledger says of guards that failed.
fn told(rewind: &Rewind) -> Vec<String> {
    let ledger = rewind.ledger();
    let verified = ledger.verify().unwrap();
    assert!(verified.clean, "{:?}", verified.findings);
    assert_eq!(verified.open_intents, OpenIntents::default());
    let guards = ledger.list(&Filter::default()).unwrap().into_iter();
    guards
        .filter(|entry| entry.kind == "guard" && entry.closes.is_some())
        .filter_map(|entry| {
            let failure = entry.what.strip_prefix("failed: ")?;
            Some(failure.split(':').next()?.to_owned())
        })
        .collect()
}

const INTERRUPTED: &str = "SELECT count(*) FROM guard
    WHERE failure LIKE 'interrupted: %' AND agent = 'claude' AND change_id = 'chg-1' AND vm_name = 'jp-ubuntu'";

#[tokio::test]
async fn a_guard_whose_process_died_is_closed_and_told_once() {
    let world = World::new().await;
    let living = about_to_guard(&world, TAG);
    let next = world.beside();
    next.find("app01", &call()).await.unwrap();
    assert_eq!(
        next.take_warnings(),
        Vec::<String>::new(),
        "its process lives"
    );
    assert_eq!(world.state(INTERRUPTED), 0);

    drop(living);
    next.find("app01", &call()).await.unwrap();
    let warnings = next.take_warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("interrupted") && warnings[0].contains(TAG),
        "{warnings:?}"
    );
    assert_eq!(world.state(INTERRUPTED), 1);

    next.find("app01", &call()).await.unwrap();
    assert_eq!(next.take_warnings(), Vec::<String>::new());
    assert_eq!(world.state(INTERRUPTED), 1);
    assert_eq!(told(&next), ["interrupted"]);
    // Its tag stays its own: whether it was inserted is not known.
    let vm = world.sim.vm_id("jp-ubuntu").unwrap();
    let state = State::open(&next.config().state_dir).unwrap();
    let again = state.guard_intended(&next.config().zvm(), vm, TAG);
    assert!(!again.unwrap());
}

#[tokio::test]
async fn who_ends_in_good_order_leaves_nothing_to_close() {
    let world = World::new().await;
    let one = world.beside();
    one.guard(request("jp-ubuntu"), &call()).await.unwrap();
    drop(one);
    let owners = || {
        let names = std::fs::read_dir(world.folder().join("state")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("owner-")).count()
    };
    assert_eq!(owners(), 0);
    drop(about_to_guard(&world, TAG));
    assert_eq!(owners(), 1, "what is open is left to the next one");
    world.beside().find("app01", &call()).await.unwrap();
    assert_eq!(owners(), 0);
}

/// The state as a process leaves it that dies while it carries a plan out.
fn dies_in_the_middle(world: &World, plan: &str) {
    let folder = world.folder().join("state");
    let owner = "owner-00000000000000000099-dead";
    let database = rusqlite::Connection::open(folder.join("state.db")).unwrap();
    let begun = database.execute(
        "INSERT INTO plan_begun (plan, at, owner) SELECT id, at, ?2 FROM plan WHERE name = ?1",
        [plan, owner],
    );
    assert_eq!(begun.unwrap(), 1);
    // Nobody holds it.
    std::fs::write(folder.join(owner), "").unwrap();
}

#[tokio::test]
async fn a_recovery_whose_process_died_is_closed_and_told_once() {
    let world = World::new().await;
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    let wanted = recovery("jp-ubuntu", "/etc/hosts", &tag);
    let known = world.rewind.plan_recovery(&wanted, &call()).await.unwrap();
    approve(&world.rewind, &known).await.unwrap();
    let id = &known.plan.id;
    dies_in_the_middle(&world, id);

    // It is used up, and that is said with the reason.
    let next = world.beside();
    let error = next.recover(id, &call()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::PlanUsed);
    assert!(error.message.contains("its process ended"), "{error}");
    let warnings = next.take_warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("interrupted") && warnings[0].contains(id),
        "{warnings:?}"
    );
    let known = next.plan(id).await.unwrap();
    assert_eq!((known.begun, known.end), (true, Some(PlanEnd::Interrupted)));

    next.find("app01", &call()).await.unwrap();
    assert_eq!(next.take_warnings(), Vec::<String>::new());
}

#[tokio::test]
async fn how_a_plan_ended_is_known() {
    let world = World::new().await;
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    for (path, end) in [
        ("/etc/hosts", PlanEnd::Done),
        ("/etc/nothing", PlanEnd::Failed),
    ] {
        let wanted = recovery("jp-ubuntu", path, &tag);
        let known = world.rewind.plan_recovery(&wanted, &call()).await.unwrap();
        approve(&world.rewind, &known).await.unwrap();
        let recovered = world.rewind.recover(&known.plan.id, &call()).await;
        assert_eq!(recovered.is_ok(), end == PlanEnd::Done);
        let known = world.rewind.plan(&known.plan.id).await.unwrap();
        assert_eq!(known.end, Some(end));
    }
    let open = "SELECT count(*) FROM plan_begun b WHERE NOT EXISTS (SELECT 1 FROM plan_ended e WHERE e.plan = b.plan)";
    assert_eq!(world.state(open), 0);
}
