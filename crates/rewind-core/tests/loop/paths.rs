//! Several paths, folders and patterns in one plan; and previews, which are a decision of their own.
use crate::support::{Hand, World, agreed, approve, call, recovery};
use jiff::SignedDuration;
use rewind_core::{
    Destination, Done, Error, ErrorCode, KnownPlan, Outcome, Paths, RecoverRequest, Recovery,
    Rewind,
};
use serde_json::json;
use std::{fs, path::Path, time::Duration};
use zvm_sim::{
    FlrState, Scenario, Spread,
    switches::{Unmount, Vanishes},
};

fn several(checkpoint: &str, paths: &[&str]) -> RecoverRequest {
    RecoverRequest {
        paths: Paths::Several(paths.iter().map(|&path| path.to_owned()).collect()),
        ..recovery("jp-ubuntu", "", checkpoint)
    }
}

/// Previews are free.
async fn free() -> World {
    World::with(Scenario::fast(), json!({ "previews": "free" })).await
}

async fn pinned(world: &World) -> String {
    world.guard("jp-ubuntu").await.unwrap().tag
}

fn outcomes(recovery: &Recovery) -> Vec<(&str, Outcome)> {
    recovery
        .all()
        .map(|path| (path.path.as_str(), path.outcome))
        .collect()
}

async fn plan(rewind: &Rewind, request: &RecoverRequest) -> Result<KnownPlan, Error> {
    rewind.plan_recovery(request, &call()).await
}

fn places(known: &KnownPlan) -> Vec<String> {
    let effects = known.plan.effects().iter();
    effects.map(|effect| effect.source().path.clone()).collect()
}

#[tokio::test]
async fn several_paths_are_one_plan_and_one_mount() {
    let world = World::new().await;
    let tag = pinned(&world).await;
    let paths = ["/etc/hosts", "/home/justin/app-config.yaml", "/etc/nginx"];
    let request = several(&tag, &paths);
    let known = plan(&world.rewind, &request).await.unwrap();
    assert!(!known.plan.is_preview(), "named paths need no preview");
    assert_eq!(world.mounts(), 0);
    let summary = known.plan.summary(&known.digest);
    assert!(paths.iter().all(|path| summary.contains(path)), "{summary}");
    approve(&world.rewind, &known).await.unwrap();
    let recovery = world.rewind.recover(&known.plan.id, &call()).await.unwrap();
    // There is a link in that folder, and FLR carries none.
    let became = [Outcome::Placed, Outcome::Placed, Outcome::Incomplete];
    let expected: Vec<_> = paths.into_iter().zip(became).collect();
    assert_eq!(outcomes(&recovery), expected);
    assert!(recovery.one.is_none());
    assert_eq!(world.mounts(), 1);
    for path in &recovery.paths {
        let original = world.sim.guest_path("jp-ubuntu", &path.path).unwrap();
        let local = Path::new(path.local_path.as_ref().unwrap());
        if path.is_folder {
            assert!(local.join("nginx.conf").is_file());
        } else {
            assert_eq!(fs::read(local).unwrap(), fs::read(original).unwrap());
        }
    }
    assert_eq!(world.sim.flr_sessions(), []);
}

#[tokio::test]
async fn each_path_has_its_own_outcome_and_the_whole_is_not_called_a_success() {
    let world = World::new().await;
    let tag = pinned(&world).await;
    let paths = ["/etc/hosts", "/etc/nothing", "/etc/hostname", "/etc/mtab"];
    let known = plan(&world.rewind, &several(&tag, &paths)).await.unwrap();
    approve(&world.rewind, &known).await.unwrap();
    world
        .sim
        .update(|switches| switches.mount_duration = Some(Spread::millis(500, 500)));
    let taken = world
        .recover_dir()
        .join("jp-ubuntu")
        .join(&known.plan.checkpoint)
        .join("etc/hostname");
    let call = call();
    let recovering = world.rewind.recover(&known.plan.id, &call);
    let meddling = async {
        let mounting = |view: &zvm_sim::View<'_>| {
            let sessions = view.sessions();
            sessions
                .iter()
                .any(|session| session.state == FlrState::Mounting)
        };
        world.sim.wait_for(mounting).await;
        fs::write(&taken, "mine").unwrap();
    };
    let recovery = tokio::join!(recovering, meddling).0.unwrap();
    assert_eq!(
        outcomes(&recovery),
        [
            ("/etc/hosts", Outcome::Placed),
            ("/etc/nothing", Outcome::Failed),
            ("/etc/hostname", Outcome::Conflict),
            ("/etc/mtab", Outcome::Failed),
        ]
    );
    assert_eq!(fs::read_to_string(&taken).unwrap(), "mine");
    let why: Vec<_> = recovery
        .paths
        .iter()
        .map(|path| path.why.clone().unwrap_or_default())
        .collect();
    assert!(
        why[0].is_empty() && why[1].starts_with("path_not_found: "),
        "{why:?}"
    );
    assert!(
        why[2].starts_with("destination_exists: ") && why[3].starts_with("not_downloadable: "),
        "{why:?}"
    );
    let error = recovery.error.unwrap();
    assert_eq!(error.code, ErrorCode::NotAllRecovered);
    assert!(error.message.contains("3 of 4"), "{error}");
    assert!(matches!(error.done.as_slice(), [Done::Placed { path, .. }] if path == "/etc/hosts"));
    assert_eq!(world.sim.flr_sessions(), []);
}

#[tokio::test]
async fn what_has_left_the_journal_in_the_middle_is_called_expired() {
    let world = World::new().await;
    let tag = pinned(&world).await;
    let paths = ["/etc/hosts", "/etc/hostname"];
    let known = plan(&world.rewind, &several(&tag, &paths)).await.unwrap();
    approve(&world.rewind, &known).await.unwrap();
    world.sim.update(|switches| {
        switches.mount_duration = Some(Spread::millis(500, 500));
        switches.session_vanishes = Vanishes::AtBrowse;
    });
    let call = call();
    let recovering = world.rewind.recover(&known.plan.id, &call);
    let ageing = async {
        world.sim.wait_for(|view| !view.sessions().is_empty()).await;
        world.sim.update(|switches| {
            let vpg = switches.vpg.entry("jp-ubuntu".into()).or_default();
            vpg.history = Some(Duration::from_millis(1));
        });
        world.sim.checkpoint_now("jp-ubuntu").await.unwrap();
    };
    let recovery = tokio::join!(recovering, ageing).0.unwrap();
    assert_eq!(
        outcomes(&recovery),
        paths.map(|path| (path, Outcome::Expired))
    );
    assert_eq!(recovery.error.unwrap().code, ErrorCode::NotAllRecovered);
}

#[tokio::test]
async fn a_pattern_becomes_the_paths_that_it_matches_and_those_are_agreed_to() {
    let world = free().await;
    let folder = world.sim.guest_path("jp-ubuntu", "/srv").unwrap();
    for name in ["a.conf", "b [x].conf", "c.txt"] {
        fs::write(folder.join(name), name).unwrap();
    }
    let tag = pinned(&world).await;
    // What comes later is not in the checkpoint.
    fs::write(folder.join("d.conf"), "later").unwrap();
    let request = several(&tag, &["/srv/*.conf", "/etc/hosts", "/etc/ho*s"]);
    let known = plan(&world.rewind, &request).await.unwrap();
    assert_eq!(world.mounts(), 1);
    assert_eq!(world.sim.flr_sessions(), []);
    assert_eq!(
        places(&known),
        ["/srv/a.conf", "/srv/b [x].conf", "/etc/hosts"]
    );
    let summary = known.plan.summary(&known.digest);
    assert!(
        summary.contains("\"/srv/b [x].conf\", 10 bytes") && !summary.contains('*'),
        "{summary}"
    );
    assert!(!summary.contains("known only once"), "{summary}");
    approve(&world.rewind, &known).await.unwrap();
    let recovery = world.rewind.recover(&known.plan.id, &call()).await.unwrap();
    assert!(recovery.error.is_none(), "{recovery:?}");
    assert_eq!(recovery.paths.len(), 3);
    let local = recovery.paths[1].local_path.as_ref().unwrap();
    assert_eq!(fs::read_to_string(local).unwrap(), "b [x].conf");
    assert!(local.ends_with("/srv/b [x].conf"), "{local}");
}

#[tokio::test]
async fn something_of_just_that_name_is_no_pattern() {
    let world = free().await;
    let folder = world.sim.guest_path("jp-ubuntu", "/srv").unwrap();
    for name in ["[ab].txt", "a.txt"] {
        fs::write(folder.join(name), name).unwrap();
    }
    let tag = pinned(&world).await;
    let known = plan(&world.rewind, &several(&tag, &["/srv/[ab].txt"]))
        .await
        .unwrap();
    assert_eq!(places(&known), ["/srv/[ab].txt"]);
    // And asked for as one path, a name is a name.
    let one = recovery("jp-ubuntu", "/srv/[ab].txt", &tag);
    assert!(
        plan(&world.rewind, &one)
            .await
            .unwrap()
            .plan
            .effects()
            .len()
            == 1
    );
}

#[tokio::test]
async fn what_a_pattern_cannot_carry_is_told_before_anybody_agrees() {
    let world = free().await;
    let tag = pinned(&world).await;
    let known = plan(&world.rewind, &several(&tag, &["/etc/mt*", "/etc/host*"])).await;
    let error = known.unwrap_err();
    assert_eq!(error.code, ErrorCode::PathNotFound);
    assert!(
        error.message.contains("left out: /etc/mtab: ")
            && error.message.contains("Links are not supported"),
        "{error}"
    );
    let known = plan(&world.rewind, &several(&tag, &["/etc/{mtab,hosts}"]))
        .await
        .unwrap();
    assert_eq!(places(&known), ["/etc/hosts"]);
    let summary = known.plan.summary(&known.digest);
    assert!(summary.contains("left out: /etc/mtab"), "{summary}");
    for (paths, code) in [
        (&["/srv/*.nothing"][..], ErrorCode::PathNotFound),
        (&["/nowhere/*"], ErrorCode::PathNotFound),
        (&["/etc/["], ErrorCode::InvalidArgument),
        (&["/etc/hosts", "etc/hosts"], ErrorCode::InvalidArgument),
        (&[], ErrorCode::InvalidArgument),
    ] {
        let error = plan(&world.rewind, &several(&tag, paths))
            .await
            .unwrap_err();
        assert_eq!(error.code, code, "{paths:?}: {error}");
        assert_eq!(world.sim.flr_sessions(), []);
    }
}

#[tokio::test]
async fn paths_that_would_land_on_one_another_are_refused() {
    let world = World::new().await;
    let tag = pinned(&world).await;
    let error = plan(
        &world.rewind,
        &several(&tag, &["/etc/nginx", "/etc/nginx/nginx.conf"]),
    )
    .await
    .unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument);
    let names = ["/etc/app.conf", "/srv/app.conf"];
    let together = RecoverRequest {
        destination: Destination::InRecoverDir(Some("back".into())),
        ..several(&tag, &names)
    };
    let error = plan(&world.rewind, &together).await.unwrap_err();
    assert!(
        error.message.contains("would land at the same place"),
        "{error}"
    );
    assert_eq!(
        plan(&world.rewind, &several(&tag, &names))
            .await
            .unwrap()
            .plan
            .effects()
            .len(),
        2
    );
    // The same twice is the same.
    let twice = several(&tag, &["/etc/hosts", "/etc//hosts/"]);
    assert_eq!(
        places(&plan(&world.rewind, &twice).await.unwrap()),
        ["/etc/hosts"]
    );
}

#[tokio::test]
async fn a_preview_is_asked_for_once_per_checkpoint_and_holds_ten_minutes() {
    let world = World::new().await;
    let tag = pinned(&world).await;
    let clock = Hand::new();
    let rewind = world.by(&clock, &json!({}));
    let request = several(&tag, &["/etc/host*"]);

    let preview = plan(&rewind, &request).await.unwrap();
    assert!(preview.plan.is_preview());
    assert_eq!(
        world.mounts(),
        0,
        "nothing is mounted before somebody has agreed"
    );
    let summary = preview.plan.summary(&preview.digest);
    assert!(
        summary.starts_with("Look into a checkpoint") && summary.contains("/etc/host*"),
        "{summary}"
    );
    // It is not what is carried out.
    approve(&rewind, &preview).await.unwrap();
    let error = rewind.recover(&preview.plan.id, &call()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::ConfirmationRequired);

    let effects = plan(&rewind, &request).await.unwrap();
    assert_eq!(places(&effects), ["/etc/hostname", "/etc/hosts"]);
    let error = rewind.recover(&effects.plan.id, &call()).await.unwrap_err();
    assert_eq!(
        error.code,
        ErrorCode::ConfirmationRequired,
        "an agreement to look is none to place"
    );
    // Another pattern in the same checkpoint, at the end of the time.
    clock.forward(SignedDuration::from_secs(599));
    assert!(
        !plan(&rewind, &several(&tag, &["/srv/*"]))
            .await
            .unwrap()
            .plan
            .is_preview()
    );
    assert!(
        rewind
            .plan(&preview.plan.id)
            .await
            .unwrap()
            .approved()
            .unwrap()
    );
    // Another checkpoint is another decision.
    let other = pinned(&world).await;
    assert!(
        plan(&rewind, &several(&other, &["/etc/host*"]))
            .await
            .unwrap()
            .plan
            .is_preview()
    );
    clock.forward(SignedDuration::from_secs(2));
    let again = plan(&rewind, &request).await.unwrap();
    assert!(again.plan.is_preview());
    // A no does not open it.
    rewind
        .decide(
            &again,
            rewind_core::Verdict::Declined,
            rewind_core::How::Approve,
            "cli/ana",
        )
        .await
        .unwrap();
    assert!(plan(&rewind, &request).await.unwrap().plan.is_preview());
}

#[tokio::test]
async fn a_preview_that_stays_mounted_is_told_in_the_plan() {
    let world = free().await;
    let tag = pinned(&world).await;
    world
        .sim
        .update(|switches| switches.unmount = Unmount::Refused);
    let known = plan(&world.rewind, &several(&tag, &["/etc/host*"]))
        .await
        .unwrap();
    let summary = known.plan.summary(&known.digest);
    assert!(summary.contains("is still mounted"), "{summary}");
}

#[tokio::test]
async fn folders_of_several_paths_come_whole() {
    let world = free().await;
    let tag = pinned(&world).await;
    let request = RecoverRequest {
        destination: Destination::InRecoverDir(Some("back".into())),
        ..several(&tag, &["/etc/n*", "/srv/app"])
    };
    let recovery = agreed(&world.rewind, &request, &call()).await.unwrap();
    let error = recovery.error.as_ref().unwrap();
    assert!(
        error.message.contains("/etc/nginx, 1 was left out")
            && !error.message.contains("not recovered"),
        "{error}"
    );
    let nginx = world.recover_dir().join("back/nginx");
    assert!(
        nginx.join("nginx.conf").is_file() && world.recover_dir().join("back/app/app.db").is_file()
    );
    let folder = recovery
        .paths
        .iter()
        .find(|path| path.path == "/etc/nginx")
        .unwrap();
    assert!(
        folder.is_folder && folder.files.len() == 2 && folder.skipped.len() == 1,
        "{folder:?}"
    );
}

#[tokio::test]
async fn a_named_path_that_is_missing_is_told_as_failed_also_where_another_is_a_pattern() {
    let world = free().await;
    let tag = pinned(&world).await;
    let paths = ["/etc/nothing", "/etc/ho*s", "/etc/mtab"];
    let known = plan(&world.rewind, &several(&tag, &paths)).await.unwrap();
    let summary = known.plan.summary(&known.digest);
    for said in [
        "/etc/hosts",
        "is left out  path_not_found: /etc/nothing is not on",
        "is left out  not_downloadable: ",
        "the path is downloaded",
    ] {
        assert!(summary.contains(said), "{said:?} is not in: {summary}");
    }
    approve(&world.rewind, &known).await.unwrap();
    let recovery = world.rewind.recover(&known.plan.id, &call()).await.unwrap();
    assert_eq!(
        outcomes(&recovery),
        [
            ("/etc/hosts", Outcome::Placed),
            ("/etc/nothing", Outcome::Failed),
            ("/etc/mtab", Outcome::Failed),
        ]
    );
    let why: Vec<_> = recovery.paths.iter().map(|path| &path.why).collect();
    let begins = |why: &Option<String>, code| why.as_ref().unwrap().starts_with(code);
    assert!(
        begins(why[1], "path_not_found: ") && begins(why[2], "not_downloadable: "),
        "{why:?}"
    );
    let error = recovery.error.unwrap();
    assert_eq!(error.code, ErrorCode::NotAllRecovered);
    assert!(error.message.contains("2 of 3"), "{error}");
    // Each is accounted for in the ledger.
    let failed = "SELECT count(*) FROM recovery_ended WHERE failure IS NOT NULL";
    assert_eq!(world.state(failed), 2);

    // Where nothing is left, that is no plan.
    for path in ["/etc/nothing*", "/etc/nothing"] {
        let error = plan(&world.rewind, &several(&tag, &["/etc/[n]othing", path])).await;
        assert_eq!(error.unwrap_err().code, ErrorCode::PathNotFound);
    }
    assert_eq!(world.sim.flr_sessions(), []);
}

#[tokio::test]
async fn a_folder_with_what_is_not_carried_is_incomplete() {
    let world = World::new().await;
    let folder = world.sim.guest_path("jp-ubuntu", "/srv/links").unwrap();
    fs::create_dir(&folder).unwrap();
    for name in ["a", "b", "c", "d"] {
        std::os::unix::fs::symlink("/etc/hosts", folder.join(name)).unwrap();
    }
    let tag = pinned(&world).await;
    let request = recovery("jp-ubuntu", "/srv/links", &tag);
    let recovery = agreed(&world.rewind, &request, &call()).await.unwrap();
    let one = recovery.one.as_ref().unwrap();
    assert_eq!(
        (one.outcome, one.bytes, one.skipped.len()),
        (Outcome::Incomplete, 0, 4)
    );
    let error = recovery.error.as_ref().unwrap();
    assert_eq!(error.code, ErrorCode::NotAllRecovered);
    for said in ["/srv/links", "4 were left out", "a: ", "and 1 more"] {
        assert!(error.message.contains(said), "{said:?}: {error}");
    }
    assert!(error.next.contains("not carried"), "{error:?}");
    let said = "SELECT count(*) FROM recovery_ended WHERE failure = 'not_all_recovered'";
    assert_eq!(world.state(said), 1);
    let ended = "SELECT count(*) FROM plan_ended WHERE outcome = 'not_all'";
    assert_eq!(world.state(ended), 1);
}
