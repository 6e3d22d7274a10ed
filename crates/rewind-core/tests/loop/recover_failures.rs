use crate::support::{Recovered, World, call, recovered, recovery};
use rewind_core::{Call, Destination, Done, Error, ErrorCode, Patience, RecoverRequest, Rewind};
use std::{fs, path::Path, time::Duration};
use zvm_sim::{
    Fault, FlrState, Outcome, Scenario, Spread,
    switches::{Damage, DownloadUrl, Mount, SingleFile, Unmount, Vanishes},
};

async fn recover(world: &World, request: RecoverRequest) -> Result<Recovered, Error> {
    recovered(&world.rewind, request, &call()).await
}

async fn pinned() -> (World, String) {
    let world = World::new().await;
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    (world, tag)
}

fn hosts(tag: &str) -> RecoverRequest {
    recovery("jp-ubuntu", "/etc/hosts", tag)
}

/// Nothing is open on the ZVM and nothing was left on the host.
fn assert_clean(world: &World) {
    assert_eq!(world.sim.flr_sessions(), []);
    assert!(
        !world.recover_dir().exists(),
        "{:?}",
        fs::read_dir(world.recover_dir())
            .unwrap()
            .collect::<Vec<_>>()
    );
}

fn assert_closed(error: &Error) {
    assert!(
        matches!(
            error.done.as_slice(),
            [Done::SessionOpened { closed: true, .. }]
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn what_can_not_be_a_path_is_refused_before_the_zvm_is_asked() {
    let world = World::new().await;
    for path in [
        "",
        "/",
        "/etc/../shadow",
        "/etc/./x",
        "/a\0b",
        "C:",
        r"C:\..\x",
        &format!("/{}", "x".repeat(10_000)),
    ] {
        let error = recover(&world, recovery("jp-ubuntu", path, "1"))
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument, "{path:?}");
    }
    for checkpoint in ["", " ", &"9".repeat(40)] {
        let error = recover(&world, hosts(checkpoint)).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument, "{checkpoint:?}");
    }
    assert!(world.sim.requests().is_empty());
}

#[tokio::test]
async fn destinations_that_can_not_be_are_refused_before_the_mount() {
    let (world, tag) = pinned().await;
    fs::create_dir_all(world.recover_dir().join("taken")).unwrap();
    fs::write(world.recover_dir().join("taken/hosts"), "mine").unwrap();
    fs::write(world.folder().join("file"), "").unwrap();
    let inside = |path: &str| Destination::InRecoverDir(Some(path.into()));
    for (destination, code) in [
        (inside("../out"), ErrorCode::InvalidArgument),
        (inside("/etc/out"), ErrorCode::InvalidArgument),
        (inside("taken"), ErrorCode::DestinationExists),
        (inside("taken/hosts"), ErrorCode::DestinationExists),
        (inside("taken/hosts/x"), ErrorCode::DestinationUnusable),
        (
            Destination::Folder(world.folder().join("file")),
            ErrorCode::DestinationUnusable,
        ),
        (
            Destination::Folder("/proc/nowhere".into()),
            ErrorCode::DestinationUnusable,
        ),
        (
            Destination::Folder("/dev/full/x".into()),
            ErrorCode::DestinationUnusable,
        ),
    ] {
        let error = recover(
            &world,
            RecoverRequest {
                destination: destination.clone(),
                ..hosts(&tag)
            },
        )
        .await
        .unwrap_err();
        assert_eq!(error.code, code, "{destination:?}: {error}");
    }
    assert_eq!(world.count("POST", "/flrs"), 0);
    assert_eq!(
        fs::read_to_string(world.recover_dir().join("taken/hosts")).unwrap(),
        "mine"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_out_of_the_recovery_folder_is_refused() {
    let (world, tag) = pinned().await;
    let out = tempfile::tempdir().unwrap();
    fs::create_dir_all(world.recover_dir()).unwrap();
    std::os::unix::fs::symlink(out.path(), world.recover_dir().join("out")).unwrap();
    let destination = Destination::InRecoverDir(Some("out/hosts".into()));
    let error = recover(
        &world,
        RecoverRequest {
            destination,
            ..hosts(&tag)
        },
    )
    .await
    .unwrap_err();
    assert_eq!(error.code, ErrorCode::DestinationUnusable);
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn paths_that_are_not_there_or_can_not_be_carried_are_told() {
    let (world, tag) = pinned().await;
    for (path, code, said) in [
        ("/etc/nothing", ErrorCode::PathNotFound, "partition#0 Ext4"),
        ("/etc/HOSTS", ErrorCode::PathNotFound, ""),
        ("/etc/hosts/x", ErrorCode::PathNotFound, ""),
        ("partition#9 Ext4/etc/hosts", ErrorCode::PathNotFound, ""),
        (r"C:\etc\hosts", ErrorCode::PathNotFound, ""),
        (
            "/etc/mtab",
            ErrorCode::NotDownloadable,
            "Links are not supported",
        ),
        (
            "/etc/nginx/sites-enabled/app/x",
            ErrorCode::PathNotFound,
            "",
        ),
    ] {
        let error = recover(&world, recovery("jp-ubuntu", path, &tag))
            .await
            .unwrap_err();
        assert_eq!(error.code, code, "{path}: {error}");
        assert!(error.message.contains(said), "{path}: {error}");
        assert_closed(&error);
        assert_clean(&world);
    }
}

#[tokio::test]
async fn a_mount_that_fails_is_told_and_cleaned_up() {
    for (mount, said) in [
        (
            Mount::Fails,
            "\"The disks could not be mounted.\" (its state is MountFailed)",
        ),
        (Mount::Hangs, "not mounted after"),
    ] {
        let (world, tag) = pinned().await;
        world.sim.update(|switches| switches.mount = mount);
        let error = recover(&world, hosts(&tag)).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::FlrFailed, "{mount:?}");
        assert!(error.message.contains(said), "{error}");
        assert_closed(&error);
        assert_clean(&world);
    }
    let (world, tag) = pinned().await;
    world.sim.add_fault(Fault {
        text: "FLR is not licensed.".into(),
        ..Fault::answer("POST", "/v1/flrs", 400, Outcome::Message)
    });
    let error = recover(&world, hosts(&tag)).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::FlrFailed);
    assert!(error.message.contains("FLR is not licensed."), "{error}");
    assert_clean(&world);
}

#[tokio::test]
async fn a_session_that_vanishes_is_told() {
    for vanishes in [
        Vanishes::WhenMounted,
        Vanishes::AtBrowse,
        Vanishes::AtDownload,
    ] {
        let (world, tag) = pinned().await;
        world
            .sim
            .update(|switches| switches.session_vanishes = vanishes);
        let error = recover(&world, hosts(&tag)).await.unwrap_err();
        assert!(
            matches!(error.code, ErrorCode::FlrFailed | ErrorCode::ZvmError),
            "{vanishes:?}: {error:?}"
        );
        assert_closed(&error);
        assert_clean(&world);
    }
}

#[tokio::test]
async fn a_session_of_others_is_refused_and_never_touched() {
    let (world, tag) = pinned().await;
    let other = world.elsewhere();
    world
        .sim
        .update(|switches| switches.mount_duration = Some(Spread::millis(1_500, 1_500)));
    let theirs = call();
    let request = RecoverRequest {
        destination: Destination::Folder(world.folder().join("theirs")),
        ..hosts(&tag)
    };
    let their_recovery = recovered(&other, request, &theirs);
    let ours = async {
        world.sim.wait_for(|view| view.sessions().len() == 1).await;
        let error = recover(&world, hosts(&tag)).await.unwrap_err();
        assert_eq!(world.sim.flr_sessions().len(), 1);
        error
    };
    let (theirs, error) = tokio::join!(their_recovery, ours);
    assert_eq!(error.code, ErrorCode::FlrBusy);
    assert!(error.message.contains("not ours"), "{error}");
    theirs.unwrap();
    assert_eq!(world.count("DELETE", "/flrs"), 1);
    assert_clean(&world);
}

#[tokio::test]
async fn another_recovery_of_the_same_user_is_told_apart() {
    let (world, tag) = pinned().await;
    world
        .sim
        .update(|switches| switches.mount_duration = Some(Spread::millis(1_000, 1_000)));
    let (other, theirs) = (world.beside(), call());
    let request = RecoverRequest {
        destination: Destination::Folder(world.folder().join("theirs")),
        ..hosts(&tag)
    };
    let their_recovery = recovered(&other, request, &theirs);
    let ours = async {
        world.sim.wait_for(|view| view.sessions().len() == 1).await;
        recover(&world, hosts(&tag)).await.unwrap_err()
    };
    let (theirs, error) = tokio::join!(their_recovery, ours);
    theirs.unwrap();
    assert_eq!(error.code, ErrorCode::FlrBusy);
    assert!(
        error.message.contains("another recovery of this user"),
        "{error}"
    );
}

#[tokio::test]
async fn a_mount_whose_answer_was_lost_is_found_used_and_unmounted() {
    let (world, tag) = pinned().await;
    world.sim.add_fault(Fault::cut_after("POST", "/v1/flrs"));
    let recovery = recover(&world, hosts(&tag)).await.unwrap();
    assert!(Path::new(&recovery.local_path).exists());
    assert_eq!(
        world.count("POST", "/v1/flrs") - world.count("POST", "/v1/flrs/"),
        1
    );
    assert_eq!(world.sim.flr_sessions(), []);
}

#[tokio::test]
async fn a_mount_that_never_arrived_is_told_and_not_repeated() {
    let (world, tag) = pinned().await;
    world.sim.add_fault(Fault::cut_before("POST", "/v1/flrs"));
    let error = recover(&world, hosts(&tag)).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::ZvmError);
    assert_eq!(world.count("POST", "/flrs"), 1);
    assert_clean(&world);
}

#[tokio::test]
async fn damaged_downloads_are_never_kept() {
    for damage in [Damage::Truncated, Damage::Cut, Damage::Longer] {
        for single_file in [SingleFile::Raw, SingleFile::Zip] {
            if damage == Damage::Longer && single_file == SingleFile::Zip {
                // What follows a whole zip changes nothing in it: its member is checked by size and checksum.
                continue;
            }
            let (world, tag) = pinned().await;
            world.sim.update(|switches| {
                switches.download_damage = damage;
                switches.single_file = single_file;
            });
            let error = recover(&world, recovery("jp-ubuntu", "/srv/app/app.db", &tag))
                .await
                .expect_err(&format!("{damage:?} {single_file:?}"));
            assert_eq!(
                error.code,
                ErrorCode::DownloadIncomplete,
                "{damage:?} {single_file:?}: {error}"
            );
            assert_closed(&error);
            assert_clean(&world);
            // One more try, with a URL of its own.
            assert_eq!(world.count("POST", "/download"), 2);
        }
    }
}

#[tokio::test]
async fn a_damaged_folder_is_never_kept() {
    for damage in [Damage::Truncated, Damage::Cut] {
        let (world, tag) = pinned().await;
        world
            .sim
            .update(|switches| switches.download_damage = damage);
        let error = recover(&world, recovery("jp-ubuntu", "/srv", &tag))
            .await
            .unwrap_err();
        assert_eq!(
            error.code,
            ErrorCode::DownloadIncomplete,
            "{damage:?}: {error}"
        );
        assert_clean(&world);
    }
}

#[tokio::test]
async fn a_download_that_breaks_once_is_tried_again() {
    let (world, tag) = pinned().await;
    world.sim.add_fault(Fault {
        effect: true,
        outcome: Outcome::CutBody,
        ..Fault::on("GET", "/v1/downloads/*")
    });
    let recovery = recover(&world, recovery("jp-ubuntu", "/srv/app/app.db", &tag))
        .await
        .unwrap();
    assert_eq!(recovery.bytes, 64 * 1024);
    assert_eq!(world.count("POST", "/download"), 2);
}

#[tokio::test]
async fn a_download_from_another_host_is_refused_with_its_name() {
    let (world, tag) = pinned().await;
    world
        .sim
        .update(|switches| switches.download_url = DownloadUrl::Foreign);
    let error = recover(&world, hosts(&tag)).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::ZvmError);
    assert!(error.message.contains("192.0.2.10"), "{error}");
    assert_clean(&world);
}

#[tokio::test]
async fn an_unmount_that_fails_is_told_with_its_reason_and_done_later() {
    for (unmount, said) in [
        (Unmount::Refused, "the ZVM answered 400: "),
        (
            Unmount::Fails,
            "\"The disks could not be unmounted.\" (its state is UnmountFailed)",
        ),
        (Unmount::Hangs, "still unmounting it after 2 s"),
    ] {
        let (world, tag) = pinned().await;
        world.sim.update(|switches| switches.unmount = unmount);
        let recovery = recover(&world, hosts(&tag)).await.unwrap();
        assert!(Path::new(&recovery.local_path).exists());
        let open = recovery.still_open.unwrap();
        assert!(open.why.contains(said), "{unmount:?}: {}", open.why);
        let [session] = world.sim.flr_sessions().try_into().unwrap();
        assert_eq!(open.session, session.id);
        if unmount != Unmount::Hangs {
            world
                .sim
                .update(|switches| switches.unmount = Unmount::Succeeds);
            // By whoever comes next, though its owner lives.
            assert_eq!(world.beside().clean_up_orphans().await.unwrap(), 1);
            assert_eq!(world.sim.flr_sessions(), []);
        }
    }
}

#[tokio::test]
async fn a_definite_refusal_to_unmount_is_not_waited_out() {
    let world = World::new().await;
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    world
        .sim
        .update(|switches| switches.unmount = Unmount::Refused);
    let patient = Patience {
        unmount: Duration::from_secs(90),
        ..Patience::default()
    };
    let rewind = Rewind::with_patience(world.rewind.config().clone(), patient).unwrap();
    let recovery = recovered(&rewind, hosts(&tag), &call()).await.unwrap();
    assert!(recovery.still_open.is_some());
    assert!(recovery.timing.unmount < 30.0, "{:?}", recovery.timing);
}

#[tokio::test]
async fn a_refusal_to_unmount_that_passes_is_no_failure() {
    let (world, tag) = pinned().await;
    world.sim.add_fault(Fault {
        times: 2,
        text: "The session is busy.".into(),
        ..Fault::answer("DELETE", "/v1/flrs/*", 400, Outcome::Message)
    });
    let recovery = recover(&world, hosts(&tag)).await.unwrap();
    assert!(recovery.still_open.is_none(), "{:?}", recovery.still_open);
    assert_eq!(world.sim.flr_sessions(), []);
}

#[tokio::test]
async fn what_was_left_behind_is_told_as_that_while_it_can_not_be_unmounted() {
    let (world, tag) = pinned().await;
    world
        .sim
        .update(|switches| switches.unmount = Unmount::Refused);
    recover(&world, hosts(&tag)).await.unwrap();
    let elsewhere = |request| RecoverRequest {
        destination: Destination::Folder(world.folder().join("again")),
        ..request
    };
    for rewind in [&world.rewind, &world.beside()] {
        let error = recovered(rewind, elsewhere(hosts(&tag)), &call())
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::FlrBusy);
        assert!(
            error.message.contains("left behind by an earlier recovery")
                && error.message.contains("the ZVM answered 400"),
            "{}",
            error.message
        );
        assert!(error.next.contains("unmount the session"), "{}", error.next);
    }
    world
        .sim
        .update(|switches| switches.unmount = Unmount::Succeeds);
    recover(&world, elsewhere(hosts(&tag))).await.unwrap();
    assert_eq!(world.sim.flr_sessions(), []);
}

#[tokio::test]
async fn a_failure_says_why_its_session_is_still_mounted() {
    let (world, tag) = pinned().await;
    world
        .sim
        .update(|switches| switches.unmount = Unmount::Refused);
    let error = recover(&world, recovery("jp-ubuntu", "/etc/nothing", &tag))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::PathNotFound);
    assert!(
        matches!(
            error.done.as_slice(),
            [Done::SessionOpened { closed: false, why: Some(why), .. }] if why.contains("the ZVM answered 400")
        ),
        "{:?}",
        error.done
    );
}

#[tokio::test]
async fn an_unmount_whose_answer_is_lost_is_seen_through() {
    for fault in [
        Fault::cut_after("DELETE", "/v1/flrs/*"),
        Fault::cut_before("DELETE", "/v1/flrs/*"),
        Fault::answer("DELETE", "/v1/flrs/*", 500, Outcome::Html),
    ] {
        let (world, tag) = pinned().await;
        world.sim.add_fault(fault);
        let recovery = recover(&world, hosts(&tag)).await.unwrap();
        assert!(recovery.still_open.is_none());
        assert_eq!(world.sim.flr_sessions(), []);
    }
}

/// Runs a recovery until the ZVM is in a certain state, and then does something to it.
async fn when_mounting(
    world: &World,
    call: &Call,
    then: impl FnOnce(),
) -> Result<Recovered, Error> {
    world
        .sim
        .update(|switches| switches.mount_duration = Some(Spread::millis(500, 500)));
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    let recovery = recovered(&world.rewind, hosts(&tag), call);
    let act = async {
        world
            .sim
            .wait_for(|view| {
                view.sessions()
                    .iter()
                    .any(|session| session.state == FlrState::Mounting)
            })
            .await;
        then();
    };
    tokio::join!(recovery, act).0
}

#[tokio::test]
async fn cancelling_unmounts_and_says_so() {
    let world = World::new().await;
    let call = call();
    let error = when_mounting(&world, &call, || call.cancel.cancel())
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::Cancelled);
    assert_closed(&error);
    assert_clean(&world);
}

#[tokio::test]
async fn cancelling_while_the_mount_is_asked_for_unmounts_too() {
    let (world, tag) = pinned().await;
    world.sim.add_fault(Fault {
        delay: Duration::from_millis(300),
        effect: true,
        outcome: Outcome::Answer,
        ..Fault::on("POST", "/v1/flrs")
    });
    let call = call();
    let recovery = recovered(&world.rewind, hosts(&tag), &call);
    let cancel = async {
        world
            .sim
            .wait_for(|view| view.received("POST", "/v1/flrs") == 1)
            .await;
        call.cancel.cancel();
    };
    let error = tokio::join!(recovery, cancel).0.unwrap_err();
    assert_eq!(error.code, ErrorCode::Cancelled);
    assert_closed(&error);
    assert_clean(&world);
}

#[tokio::test]
async fn cancelling_a_download_unmounts_and_leaves_nothing() {
    let (world, tag) = pinned().await;
    world
        .sim
        .update(|switches| switches.download_damage = Damage::Stalls);
    let call = call();
    let recovery = recovered(&world.rewind, hosts(&tag), &call);
    let cancel = async {
        world
            .sim
            .wait_for(|view| view.answered("GET", "/downloads/") == 1)
            .await;
        call.cancel.cancel();
    };
    let error = tokio::join!(recovery, cancel).0.unwrap_err();
    assert_eq!(error.code, ErrorCode::Cancelled);
    assert_closed(&error);
    assert_clean(&world);
}

#[tokio::test]
async fn a_recovery_that_is_dropped_is_unmounted_all_the_same() {
    let (world, tag) = pinned().await;
    world
        .sim
        .update(|switches| switches.mount_duration = Some(Spread::millis(60_000, 60_000)));
    for asked in [false, true] {
        let call = call();
        let recovery = recovered(&world.rewind, hosts(&tag), &call);
        let seen = world.sim.wait_for(|view| {
            if asked {
                view.sessions().len() == 1
            } else {
                view.received("POST", "/v1/flrs") == 1
            }
        });
        tokio::select! { _ = recovery => panic!("it can't end"), () = seen => {} }
        world
            .sim
            .wait_for(|view| view.answered("DELETE", "/flrs/") >= 1 && view.sessions().is_empty())
            .await;
        world.sim.clear_requests();
    }
    assert_clean(&world);
}

#[tokio::test]
async fn a_token_that_is_revoked_in_the_middle_is_replaced() {
    let world = World::new().await;
    let recovery = when_mounting(&world, &call(), || world.sim.revoke_tokens())
        .await
        .unwrap();
    assert!(Path::new(&recovery.local_path).exists());
}

#[tokio::test]
async fn a_zvm_that_forgets_everything_in_the_middle_is_told() {
    let world = World::new().await;
    let error = when_mounting(&world, &call(), || world.sim.restart())
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::FlrFailed);
    assert_closed(&error);
    assert_clean(&world);
}

#[tokio::test]
async fn a_vm_without_disks_to_mount_is_told() {
    let world = World::of(Scenario::fast()).await;
    world.sim.update(|switches| switches.flr_enabled = false);
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    let error = recover(&world, hosts(&tag)).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::FlrFailed);
    assert_clean(&world);
}
