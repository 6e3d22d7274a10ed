use crate::support::{World, call, config_text, recovered, recovery, request};
use rewind_core::{
    Rewind,
    doctor::{self, Check, Status},
    state::{FlrMount, State},
};
use zvm_sim::{FlrState, Spread};

/// What a process leaves behind that died with a session open: its state says so, and it no longer lives.
struct Dead {
    state: State,
}

impl Dead {
    fn of(rewind: &Rewind) -> Self {
        Self {
            state: State::open(&rewind.config().state_dir).unwrap(),
        }
    }

    fn mount(&self, world: &World, rewind: &Rewind, checkpoint: &str) -> FlrMount {
        FlrMount {
            zvm: rewind.config().zvm(),
            vm_identifier: world.sim.vm_id("jp-ubuntu").unwrap().into(),
            vpg_identifier: world.sim.vpg_id("jp-ubuntu").unwrap().into(),
            checkpoint_id: checkpoint.into(),
            zvm_at: world.zvm_now(),
        }
    }
}

/// Mounts in the name of nobody, as a person at the ZVM's own interface would, and answers with session and checkpoint.
async fn mounted(world: &World) -> (String, String) {
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    world
        .sim
        .update(|switches| switches.unmount = zvm_sim::switches::Unmount::Refused);
    let request = recovery("jp-ubuntu", "/etc/hosts", &tag);
    recovered(&world.elsewhere(), request, &call())
        .await
        .unwrap();
    world
        .sim
        .update(|switches| switches.unmount = zvm_sim::switches::Unmount::Succeeds);
    let sessions = world.sim.flr_sessions();
    assert_eq!((sessions.len(), sessions[0].state), (1, FlrState::Mounted));
    (sessions[0].id.clone(), sessions[0].checkpoint.clone())
}

#[tokio::test]
async fn what_a_dead_process_left_behind_is_unmounted() {
    let world = World::new().await;
    let (session, checkpoint) = mounted(&world).await;
    {
        let dead = Dead::of(&world.rewind);
        let number = dead
            .state
            .session_opening(&dead.mount(&world, &world.rewind, &checkpoint))
            .unwrap();
        dead.state.session_opened(number, &session).unwrap();
        // Its owner lives: it is left alone.
        assert_eq!(world.beside().clean_up_orphans().await.unwrap(), 0);
        assert_eq!(world.sim.flr_sessions().len(), 1);
    }
    assert_eq!(world.beside().clean_up_orphans().await.unwrap(), 1);
    assert_eq!(world.sim.flr_sessions(), []);
    assert_eq!(world.beside().clean_up_orphans().await.unwrap(), 0);
    assert_eq!(
        world.count("DELETE", &session),
        1 + refused(&world, &session)
    );
}

/// Unmounts that the simulator was told to refuse.
fn refused(world: &World, session: &str) -> usize {
    world
        .sim
        .requests()
        .iter()
        .filter(|request| request.is("DELETE", session) && request.status == Some(400))
        .count()
}

#[tokio::test]
async fn a_mount_that_died_before_its_answer_is_found_by_what_it_mounts() {
    let world = World::new().await;
    // Written before the mount is asked for, by a process that dies right after.
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    let checkpoint = world.sim.journal("jp-ubuntu")[0].id.clone();
    {
        let dead = Dead::of(&world.rewind);
        dead.state
            .session_opening(&dead.mount(&world, &world.rewind, &checkpoint))
            .unwrap();
    }
    world
        .sim
        .update(|switches| switches.unmount = zvm_sim::switches::Unmount::Refused);
    let request = recovery("jp-ubuntu", "/etc/hosts", &tag);
    recovered(&world.elsewhere(), request, &call())
        .await
        .unwrap();
    world
        .sim
        .update(|switches| switches.unmount = zvm_sim::switches::Unmount::Succeeds);
    assert_eq!(world.sim.flr_sessions().len(), 1);
    assert_eq!(world.rewind.clean_up_orphans().await.unwrap(), 1);
    assert_eq!(world.sim.flr_sessions(), []);
}

#[tokio::test]
async fn a_session_of_others_is_never_unmounted() {
    let world = World::new().await;
    let (_, checkpoint) = mounted(&world).await;
    {
        // We died while we mounted another checkpoint.
        let dead = Dead::of(&world.rewind);
        let other = (checkpoint.parse::<u64>().unwrap() - 1).to_string();
        dead.state
            .session_opening(&dead.mount(&world, &world.rewind, &other))
            .unwrap();
    }
    let before = world.count("DELETE", "/flrs/");
    assert_eq!(world.rewind.clean_up_orphans().await.unwrap(), 0);
    assert_eq!(world.sim.flr_sessions().len(), 1);
    assert_eq!(world.count("DELETE", "/flrs/"), before);
}

#[tokio::test]
async fn what_was_left_behind_does_not_stand_in_the_way_of_a_recovery() {
    let world = World::new().await;
    world
        .sim
        .update(|switches| switches.unmount_duration = Some(Spread::millis(200, 200)));
    let (session, checkpoint) = mounted(&world).await;
    {
        let dead = Dead::of(&world.rewind);
        let number = dead
            .state
            .session_opening(&dead.mount(&world, &world.rewind, &checkpoint))
            .unwrap();
        dead.state.session_opened(number, &session).unwrap();
    }
    let request = rewind_core::RecoverRequest {
        destination: rewind_core::Destination::Folder(world.folder().join("mine")),
        ..recovery("jp-ubuntu", "/etc/hosts", &checkpoint)
    };
    recovered(&world.rewind, request, &call()).await.unwrap();
    assert_eq!(world.sim.flr_sessions(), []);
}

#[tokio::test]
async fn a_start_with_nothing_left_behind_asks_the_zvm_nothing() {
    let world = World::new().await;
    assert_eq!(world.rewind.clean_up_orphans().await.unwrap(), 0);
    assert!(world.sim.requests().is_empty());
}

/// A session of ours whose process died.
async fn left_behind(world: &World) {
    let (session, checkpoint) = mounted(world).await;
    let dead = Dead::of(&world.rewind);
    let number = dead
        .state
        .session_opening(&dead.mount(world, &world.rewind, &checkpoint))
        .unwrap();
    dead.state.session_opened(number, &session).unwrap();
}

#[tokio::test]
async fn every_operation_that_asks_the_zvm_cleans_up_beside() {
    let world = World::new().await;
    let rewind = world.beside();
    let checkpoint = world.guard("jp-ubuntu").await.unwrap().pins[0]
        .checkpoint
        .clone();
    for operation in ["find", "guard", "checkpoints", "plan"] {
        left_behind(&world).await;
        let call = call();
        match operation {
            "find" => drop(rewind.find("app01", &call).await.unwrap()),
            "guard" => drop(rewind.guard(request("app01"), &call).await.unwrap()),
            "checkpoints" => {
                drop(
                    rewind
                        .checkpoints("app01", None, None, &call)
                        .await
                        .unwrap(),
                );
            }
            _ => {
                let request = recovery("jp-ubuntu", "/etc/hostname", &checkpoint);
                drop(rewind.plan_recovery(&request, &call).await.unwrap());
            }
        }
        // At once, or in the background.
        world.sim.wait_for(|view| view.sessions().is_empty()).await;
        // What is left is remembering it.
        rewind.clean_up_orphans().await.unwrap();
        std::fs::remove_dir_all(world.recover_dir()).unwrap();
    }
}

#[tokio::test]
async fn a_clean_up_that_hangs_or_fails_does_not_hold_up_a_guard() {
    let world = World::new().await;
    left_behind(&world).await;
    for (method, outcome) in [
        ("GET", zvm_sim::Outcome::Answer),
        ("DELETE", zvm_sim::Outcome::Message),
    ] {
        world.sim.clear_faults();
        world.sim.add_fault(zvm_sim::Fault {
            times: 0,
            outcome,
            delay: std::time::Duration::from_secs(if method == "GET" { 60 } else { 0 }),
            ..zvm_sim::Fault::on(method, "/v1/flrs/*")
        });
        let started = std::time::Instant::now();
        world
            .beside()
            .guard(request("app01"), &call())
            .await
            .unwrap();
        assert!(started.elapsed().as_secs_f64() < 15.0, "{method}");
        assert_eq!(world.sim.flr_sessions().len(), 1);
    }
}

/// What doctor says of the sessions, with the state of the user who did not mount them or of another one.
async fn diagnosed(world: &World) -> Check {
    let file = world.folder().join("config.json");
    let text = config_text(&world.sim, world.folder(), "state", &serde_json::json!({}));
    std::fs::write(&file, text).unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let report = doctor::run(Ok(file), &call()).await.unwrap();
    let mut checks = report.checks.into_iter();
    checks
        .find(|check| check.id == doctor::id::SESSIONS)
        .unwrap()
}

#[tokio::test]
async fn doctor_tells_what_was_left_behind_and_leaves_it() {
    let world = World::new().await;
    let (session, checkpoint) = mounted(&world).await;
    let deletes = world.count("DELETE", "");
    let found = diagnosed(&world).await;
    assert_eq!(found.status, Status::Ok);
    assert!(found.message.contains("1 session of others"), "{found:?}");

    let dead = Dead::of(&world.rewind);
    let mount = dead.mount(&world, &world.rewind, &checkpoint);
    let number = dead.state.session_opening(&mount).unwrap();
    // Its owner lives.
    for opened in [false, true] {
        let found = diagnosed(&world).await;
        assert_eq!(found.status, Status::Ok, "{found:?}");
        assert!(
            found.message.contains("1 recovery is in progress"),
            "{found:?}"
        );
        assert!(!found.message.contains("of others"), "{found:?}");
        if !opened {
            dead.state.session_opened(number, &session).unwrap();
        }
    }
    dead.state.session_left(number, "it is in use").unwrap();
    let found = diagnosed(&world).await;
    assert_eq!(found.status, Status::Warning, "{found:?}");
    let details = found.details.join("\n");
    for part in [&*session, &*checkpoint, "it is in use"] {
        assert!(details.contains(part), "{part}: {details}");
    }
    assert!(found.fix.unwrap().contains("zerto-rewind find"));
    // An answer that was lost, of an owner that died.
    drop(dead);
    let dead = Dead::of(&world.rewind);
    dead.state.session_opening(&mount).unwrap();
    drop(dead);
    let found = diagnosed(&world).await;
    assert!(found.message.ends_with("2 FLR sessions"), "{found:?}");
    assert_eq!(world.count("DELETE", ""), deletes, "it was touched");
    assert_eq!(world.sim.flr_sessions().len(), 1);

    // What is not there any more was not left.
    world.sim.restart();
    let found = diagnosed(&world).await;
    assert_eq!(found.status, Status::Ok, "{found:?}");
}
