//! Files of a checkpoint back in the guest, over a real OpenSSH server on loopback.
use crate::{
    sshd::{HOST, Sshd},
    support::{World, agreed, approve, call, recovery},
};
use rewind_core::{
    Error, ErrorCode, Outcome, Paths, RecoverRequest, Recovery,
    guest::Restore,
    state::{GuestWrite, GuestWriteKind, State},
    stop::Stop,
};
use serde_json::json;
use std::{fs, path::PathBuf};
use zvm_sim::{
    Fault, Scenario,
    scenario::{Entry, Partition, Vm, Vpg},
};

const FILE: &str = "/home/justin/app-config.yaml";

fn restore(path: &str, checkpoint: &str, how: Restore) -> RecoverRequest {
    RecoverRequest {
        restore: Some(how),
        ..recovery("jp-ubuntu", path, checkpoint)
    }
}

fn on_host(world: &World, path: &str) -> PathBuf {
    world.sim.guest_path("jp-ubuntu", path).unwrap()
}

/// A world with a way into the guest, and the tag of a pin from before its file was broken.
async fn broken() -> Option<(World, Sshd, String, Vec<u8>)> {
    let mut world = World::new().await;
    let sshd = Sshd::start(&[("/", &on_host(&world, "/"))])?;
    world.rewind = world.with_config(&json!({ "guests": { "jp-ubuntu": sshd.guest() } }));
    let before = fs::read(on_host(&world, FILE)).unwrap();
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    fs::write(on_host(&world, FILE), "broken").unwrap();
    Some((world, sshd, tag, before))
}

async fn restored(world: &World, request: RecoverRequest) -> Result<Recovery, Error> {
    let result = agreed(&world.rewind, &request, &call()).await;
    assert_eq!(world.sim.flr_sessions(), [], "no session stays open");
    let left = fs::read_dir(world.recover_dir()).map_or(0, |entries| entries.count());
    assert_eq!(left, 0, "nothing stays on this host");
    result
}

async fn planned_notes(world: &World, request: &RecoverRequest) -> Vec<String> {
    let known = world.rewind.plan_recovery(request, &call()).await.unwrap();
    known.plan.notes
}

/// Names beside the file that are ours.
fn beside(world: &World) -> Vec<String> {
    let folder = on_host(world, "/home/justin");
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("zerto-"))
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_file_is_replaced_after_a_guard_and_the_restore_can_be_undone() {
    let Some((world, _sshd, tag, before)) = broken().await else {
        return;
    };
    let request = restore(FILE, &tag, Restore::Replace);
    let known = world.rewind.plan_recovery(&request, &call()).await.unwrap();
    let summary = known.plan.summary(&known.digest);
    for said in [
        HOST,
        FILE,
        "app-config.yaml.zerto-replaced-",
        "6 bytes",
        "mode 06",
        "access control lists",
        "guarded first",
        "(looked at 20",
    ] {
        assert!(summary.contains(said), "{said:?} is not in: {summary}");
    }
    assert_eq!(
        fs::read(on_host(&world, FILE)).unwrap(),
        b"broken",
        "a plan writes nothing"
    );
    assert_eq!(world.tags("jp-ubuntu").len(), 1);
    approve(&world.rewind, &known).await.unwrap();
    let recovery = world.rewind.recover(&known.plan.id, &call()).await.unwrap();
    let one = recovery.one.as_ref().unwrap();
    assert_eq!(one.outcome, Outcome::Restored);
    assert_eq!(fs::read(on_host(&world, FILE)).unwrap(), before);
    let file = one.restored.as_ref().unwrap();
    assert_eq!(file.path, FILE);
    assert_eq!(
        fs::read(on_host(&world, file.kept.as_ref().unwrap())).unwrap(),
        b"broken"
    );
    assert!(
        recovery.notes.iter().any(|note| note.contains("no longer")),
        "{:?}",
        recovery.notes
    );
    assert_eq!(one.local_path, None);
    let tags = world.tags("jp-ubuntu");
    assert_eq!(tags.len(), 2);
    assert!(
        tags.iter()
            .any(|tag| tag.contains("restore /home/justin/app-config.yaml")),
        "{tags:?}"
    );

    // Undone, and the undoing undone.
    let id = file.restore_id.clone().unwrap();
    let plan = world.rewind.plan_undo(&id, &call()).await.unwrap();
    assert!(
        plan.summary.contains(FILE) && plan.summary.contains("zerto-undone-"),
        "{}",
        plan.summary
    );
    let undone = world.rewind.undo_restore(&plan, &call()).await.unwrap();
    assert_eq!(fs::read(on_host(&world, FILE)).unwrap(), b"broken");
    assert_eq!(
        fs::read(on_host(&world, undone.file.kept.as_ref().unwrap())).unwrap(),
        before
    );
    assert_eq!(world.tags("jp-ubuntu").len(), 3, "a guard of its own");
    let again = undone.file.restore_id.unwrap();
    let plan = world.rewind.plan_undo(&again, &call()).await.unwrap();
    world.rewind.undo_restore(&plan, &call()).await.unwrap();
    assert_eq!(fs::read(on_host(&world, FILE)).unwrap(), before);
    // What was undone is not there to be undone once more.
    for (id, by) in [(&id, Some(&again)), (&again, None)] {
        for error in [
            world.rewind.plan_undo(id, &call()).await.unwrap_err(),
            world.rewind.may_be_undone(id).await.unwrap_err(),
        ] {
            assert_eq!(error.code, ErrorCode::InvalidArgument, "{error}");
            let said = format!("restore {id} was already undone at 2");
            assert!(error.message.starts_with(&said), "{error}");
            assert!(by.is_none_or(|by| error.next.contains(by)), "{error:?}");
        }
    }
}

#[tokio::test]
async fn a_file_is_put_beside_without_a_guard() {
    let Some((world, _sshd, tag, before)) = broken().await else {
        return;
    };
    let recovery = restored(&world, restore(FILE, &tag, Restore::Beside))
        .await
        .unwrap();
    let one = recovery.one.unwrap();
    assert_eq!(one.outcome, Outcome::Beside);
    let file = one.restored.unwrap();
    assert_eq!(file.path, format!("{FILE}.zerto-{}", recovery.checkpoint));
    assert_eq!(fs::read(on_host(&world, &file.path)).unwrap(), before);
    assert_eq!(fs::read(on_host(&world, FILE)).unwrap(), b"broken");
    assert_eq!(world.tags("jp-ubuntu").len(), 1);
    let error = world
        .rewind
        .plan_undo(&file.restore_id.unwrap(), &call())
        .await
        .unwrap_err();
    assert!(error.message.contains("replaced nothing"), "{error}");
    // Once more: it is there already.
    let again = restored(&world, restore(FILE, &tag, Restore::Beside))
        .await
        .unwrap();
    assert_eq!(again.one.unwrap().outcome, Outcome::Unchanged);
}

#[tokio::test]
async fn a_file_that_changed_after_the_plan_is_a_conflict_and_stays() {
    let Some((world, _sshd, tag, _)) = broken().await else {
        return;
    };
    let request = restore(FILE, &tag, Restore::Replace);
    let known = world.rewind.plan_recovery(&request, &call()).await.unwrap();
    approve(&world.rewind, &known).await.unwrap();
    fs::write(on_host(&world, FILE), "BROKEN").unwrap();
    let error = world
        .rewind
        .recover(&known.plan.id, &call())
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::GuestConflict);
    assert_eq!(fs::read(on_host(&world, FILE)).unwrap(), b"BROKEN");
    assert_eq!(beside(&world), [""; 0]);
    assert_eq!(world.sim.flr_sessions(), []);
}

#[tokio::test]
async fn each_of_several_paths_has_an_outcome_of_its_own() {
    let Some((world, _sshd, tag, before)) = broken().await else {
        return;
    };
    let notes = "/home/justin/notes.txt";
    let same = "/etc/hosts";
    let request = RecoverRequest {
        paths: Paths::Several(vec![FILE.into(), notes.into(), same.into()]),
        ..restore(FILE, &tag, Restore::Replace)
    };
    let known = world.rewind.plan_recovery(&request, &call()).await.unwrap();
    approve(&world.rewind, &known).await.unwrap();
    fs::write(on_host(&world, notes), "changed after the plan").unwrap();
    let recovery = world.rewind.recover(&known.plan.id, &call()).await.unwrap();
    let outcomes: Vec<_> = recovery.paths.iter().map(|path| path.outcome).collect();
    assert_eq!(
        outcomes,
        [Outcome::Restored, Outcome::Conflict, Outcome::Unchanged]
    );
    assert_eq!(recovery.error.unwrap().code, ErrorCode::NotAllRecovered);
    assert_eq!(fs::read(on_host(&world, FILE)).unwrap(), before);
    assert_eq!(
        fs::read(on_host(&world, notes)).unwrap(),
        b"changed after the plan"
    );
    assert_eq!(
        world.tags("jp-ubuntu").len(),
        2,
        "one guard for all of them"
    );
}

#[tokio::test]
async fn a_file_that_was_deleted_comes_back_and_goes_again() {
    let Some((world, _sshd, tag, before)) = broken().await else {
        return;
    };
    fs::remove_file(on_host(&world, FILE)).unwrap();
    let recovery = restored(&world, restore(FILE, &tag, Restore::Replace))
        .await
        .unwrap();
    assert_eq!(fs::read(on_host(&world, FILE)).unwrap(), before);
    let file = recovery.one.unwrap().restored.unwrap();
    assert_eq!(file.kept, None);
    let plan = world
        .rewind
        .plan_undo(&file.restore_id.unwrap(), &call())
        .await
        .unwrap();
    let undone = world.rewind.undo_restore(&plan, &call()).await.unwrap();
    assert!(!on_host(&world, FILE).exists());
    // Nothing was put in its place, so there is nothing to undo in that.
    let database = world.folder().join("state/state.db");
    let id: String = rusqlite::Connection::open(database)
        .unwrap()
        .query_row(
            "SELECT name FROM guest_write WHERE kind = 'undo'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    let error = world.rewind.may_be_undone(&id).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument);
    assert!(
        error.message.contains("moved a restored file away"),
        "{error}"
    );
    assert_eq!(
        fs::read(on_host(&world, undone.file.kept.as_ref().unwrap())).unwrap(),
        before
    );
}

#[tokio::test]
async fn what_a_broken_connection_left_is_removed_at_the_next_one() {
    let Some((world, sshd, tag, before)) = broken().await else {
        return;
    };
    let request = restore(FILE, &tag, Restore::Replace);
    let known = world.rewind.plan_recovery(&request, &call()).await.unwrap();
    approve(&world.rewind, &known).await.unwrap();
    sshd.asked();
    // A first run says which request puts it in its place.
    let recovery = world.rewind.recover(&known.plan.id, &call()).await.unwrap();
    let id = recovery.one.unwrap().restored.unwrap().restore_id.unwrap();
    let asked = sshd.asked();
    let rename = 1 + asked
        .iter()
        .position(|line| line.contains("posix-rename"))
        .unwrap();
    let plan = world.rewind.plan_undo(&id, &call()).await.unwrap();
    world.rewind.undo_restore(&plan, &call()).await.unwrap();
    for name in beside(&world) {
        fs::remove_file(on_host(&world, "/home/justin").join(name)).unwrap();
    }

    for (lost, in_place) in [("lose-request", false), ("lose-reply", true)] {
        let known = world.rewind.plan_recovery(&request, &call()).await.unwrap();
        approve(&world.rewind, &known).await.unwrap();
        sshd.control(&format!("{lost} {rename}\n"));
        let error = world
            .rewind
            .recover(&known.plan.id, &call())
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::GuestUnreachable, "{lost}: {error}");
        sshd.control("");
        let now = fs::read(on_host(&world, FILE)).unwrap();
        assert_eq!(
            now,
            if in_place {
                before.clone()
            } else {
                b"broken".to_vec()
            },
            "{lost}"
        );
        let temporary = |names: &[String]| {
            names
                .iter()
                .filter(|name| name.starts_with(".zerto-"))
                .count()
        };
        assert_eq!(
            temporary(&beside(&world)),
            usize::from(!in_place),
            "{lost}: {:?}",
            beside(&world)
        );
        // Whoever comes next cleans up, and says so.
        let next = restore("/etc/hosts", &tag, Restore::Beside);
        let notes = planned_notes(&world, &next).await;
        assert!(
            notes.iter().any(|note| note.contains("interrupted")),
            "{lost}: {notes:?}"
        );
        assert_eq!(temporary(&beside(&world)), 0, "{lost}");
        assert_eq!(
            beside(&world).len(),
            usize::from(in_place),
            "{lost}: {:?}",
            beside(&world)
        );
        let again = planned_notes(&world, &next).await;
        assert!(
            !again.iter().any(|note| note.contains("interrupted")),
            "it is said once"
        );
    }
}

/// A restore whose process died: it is written down, and its temporary name and second name are in the guest.
fn died(world: &World, name: &str) -> String {
    let config = world.rewind.config();
    let temporary = format!("/home/justin/.zerto-rewind-{name}");
    let copy = format!("{FILE}.zerto-replaced-000000000000");
    fs::write(on_host(world, &temporary), "half").unwrap();
    fs::hard_link(on_host(world, FILE), on_host(world, &copy)).unwrap();
    let state = State::open(&config.state_dir).unwrap();
    state
        .guest_write_begun(&GuestWrite {
            name: name.into(),
            zvm: config.zvm(),
            vm_identifier: world.sim.vm_id("jp-ubuntu").unwrap().into(),
            vm: "jp-ubuntu".into(),
            guest: HOST.into(),
            kind: GuestWriteKind::Replace,
            undoes: None,
            checkpoint: "1".into(),
            path: FILE.into(),
            target: FILE.into(),
            source: temporary.clone(),
            source_is_temporary: true,
            copy: Some(copy),
            copy_was_there: false,
            sha256: "0".repeat(64),
            previous_sha256: Some("1".repeat(64)),
            outcome: None,
            why: None,
        })
        .unwrap();
    temporary
}

#[tokio::test]
async fn what_a_process_that_died_left_is_told_by_the_next_and_removed_by_whoever_reaches_the_guest()
 {
    let Some((world, _sshd, _, _)) = broken().await else {
        return;
    };
    let temporary = died(&world, "r-dead");
    // A command that has nothing to do with the guest tells it, once, and says what to do.
    world.rewind.find("app01", &call()).await.unwrap();
    let warnings = world.rewind.take_warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    for said in [FILE, "jp-ubuntu", "undo-restore r-dead", "interrupted"] {
        assert!(warnings[0].contains(said), "{said:?}: {warnings:?}");
    }
    world.rewind.find("app01", &call()).await.unwrap();
    assert_eq!(world.rewind.take_warnings(), Vec::<String>::new());
    assert!(on_host(&world, &temporary).exists());
    // Who wants to undo it finds nothing to undo, and what was left is gone.
    let error = world.rewind.plan_undo("r-dead", &call()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument);
    for said in [
        "interrupted before",
        "removed",
        "restore r-dead failed (interrupted): there is nothing to undo",
    ] {
        assert!(error.message.contains(said), "{said:?}: {error}");
    }
    assert_eq!(beside(&world), [""; 0]);
    assert_eq!(fs::read(on_host(&world, FILE)).unwrap(), b"broken");
}

#[tokio::test]
async fn a_second_name_that_may_be_the_only_one_is_never_removed() {
    let Some((world, _sshd, tag, _)) = broken().await else {
        return;
    };
    died(&world, "r-dead");
    // Somebody has put another file there since.
    let new = on_host(&world, "/home/justin/new");
    fs::write(&new, "somebody's").unwrap();
    fs::rename(&new, on_host(&world, FILE)).unwrap();
    let next = restore("/etc/hosts", &tag, Restore::Beside);
    let notes = planned_notes(&world, &next).await;
    let left = beside(&world);
    assert!(
        notes
            .iter()
            .any(|note| note.contains(&left[0]) && note.contains("stays")),
        "{notes:?}"
    );
    let kept = on_host(&world, "/home/justin").join(&left[0]);
    assert_eq!(
        (left.len(), fs::read(kept).unwrap()),
        (1, b"broken".to_vec())
    );
}

#[tokio::test]
async fn without_a_way_into_the_guest_nothing_is_planned() {
    let world = World::new().await;
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    let request = restore(FILE, &tag, Restore::Replace);
    let error = world
        .rewind
        .plan_recovery(&request, &call())
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::GuestNotConfigured);
    assert!(error.next.contains("`guests`"), "{error:?}");
}

#[tokio::test]
async fn paths_that_are_none_of_a_running_posix_guest_are_not_written() {
    let Some((world, _sshd, tag, _)) = broken().await else {
        return;
    };
    let partition = restore("partition#0 Ext4/etc/hosts", &tag, Restore::Beside);
    let error = world
        .rewind
        .plan_recovery(&partition, &call())
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument);
    // A file of a Windows guest is downloaded only, and the plan says so.
    let windows = restore("C:\\inetpub\\web.config", &tag, Restore::Replace);
    let known = world.rewind.plan_recovery(&windows, &call()).await.unwrap();
    assert!(
        known.plan.notes.iter().any(|note| note.contains("Windows")),
        "{:?}",
        known.plan.notes
    );
    assert!(
        known
            .plan
            .summary(&known.digest)
            .contains("downloaded to this host")
    );
    // A folder has to be named by its files.
    let folder = restore("/home/justin", &tag, Restore::Replace);
    let error = world
        .rewind
        .plan_recovery(&folder, &call())
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::GuestConflict);
    assert!(error.message.contains("folder"), "{error}");
}

#[tokio::test]
async fn a_file_of_a_windows_guest_is_downloaded_and_the_answer_says_so() {
    let mut scenario = Scenario::fast();
    scenario.vms.push(Vm {
        name: "win01".into(),
        guest_os: "Microsoft Windows Server 2022 (64-bit)".into(),
        partitions: vec![Partition {
            mount: "C:\\".into(),
            filesystem: "NTFS".into(),
            files: vec![Entry {
                path: "/inetpub/web.config".into(),
                text: Some("<configuration/>".into()),
                ..Entry::default()
            }],
            ..Partition::default()
        }],
        ..Vm::default()
    });
    scenario.vpgs.push(Vpg::of("win01", &["win01"]));
    let mut world = World::of(scenario).await;
    // It is never gone to.
    world.rewind =
        world.with_config(&json!({ "guests": { "win01": { "ssh": "nowhere.invalid" } } }));
    let tag = world.guard("win01").await.unwrap().tag;
    let request = RecoverRequest {
        restore: Some(Restore::Replace),
        ..recovery("win01", "C:\\inetpub\\web.config", &tag)
    };
    let recovery = agreed(&world.rewind, &request, &call()).await.unwrap();
    let one = recovery.one.unwrap();
    assert_eq!(one.outcome, Outcome::Placed);
    assert_eq!(
        fs::read(one.local_path.unwrap()).unwrap(),
        b"<configuration/>"
    );
    assert!(
        recovery.notes.iter().any(|note| note.contains("Windows")),
        "{:?}",
        recovery.notes
    );
    assert_eq!(world.tags("win01").len(), 1, "nothing is guarded for it");
}

#[tokio::test]
async fn a_persons_stop_holds_replacing_and_undoing() {
    let Some((world, _sshd, tag, _)) = broken().await else {
        return;
    };
    let request = restore(FILE, &tag, Restore::Replace);
    let known = world.rewind.plan_recovery(&request, &call()).await.unwrap();
    approve(&world.rewind, &known).await.unwrap();
    let stop = Stop::at(&world.folder().join("state"));
    stop.engage(Some("looking at it"), "test").unwrap();
    let error = world
        .rewind
        .recover(&known.plan.id, &call())
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::Stopped);
    assert_eq!(fs::read(on_host(&world, FILE)).unwrap(), b"broken");
}

fn among(checkpoint: &str, paths: &[&str]) -> RecoverRequest {
    RecoverRequest {
        paths: Paths::Several(paths.iter().map(|&path| path.to_owned()).collect()),
        ..restore("", checkpoint, Restore::Beside)
    }
}

/// Looking into checkpoints is free.
async fn seen() -> Option<(World, Sshd, String)> {
    let (mut world, sshd, tag, _) = broken().await?;
    let keys = json!({ "previews": "free", "guests": { "jp-ubuntu": sshd.guest() } });
    world.rewind = world.with_config(&keys);
    Some((world, sshd, tag))
}

async fn planned(world: &World, request: &RecoverRequest) -> Result<(Vec<String>, String), Error> {
    let known = world.rewind.plan_recovery(request, &call()).await?;
    let effects = known.plan.effects().iter();
    let paths = effects.map(|effect| effect.source().path.clone()).collect();
    Ok((paths, known.plan.summary(&known.digest)))
}

#[tokio::test]
async fn folders_that_a_pattern_matches_are_left_out_of_a_restore() {
    let Some((world, _sshd, tag)) = seen().await else {
        return;
    };
    let (paths, summary) = planned(&world, &among(&tag, &["/etc/nginx/*"]))
        .await
        .unwrap();
    assert_eq!(paths, ["/etc/nginx/nginx.conf"]);
    for folder in ["sites-available", "sites-enabled"] {
        let said = format!("left out: /etc/nginx/{folder}: a folder, and only files are restored");
        assert!(summary.contains(&said), "{said:?} is not in: {summary}");
    }
    // What is in them can be meant, and then they are only on the way.
    let (paths, summary) = planned(&world, &among(&tag, &["/etc/nginx/**"]))
        .await
        .unwrap();
    assert_eq!(
        paths,
        ["/etc/nginx/nginx.conf", "/etc/nginx/sites-available/app"]
    );
    assert!(
        !summary.contains("sites-available: a folder")
            && summary.contains("left out: /etc/nginx/sites-enabled/app: "),
        "{summary}"
    );
    // Nothing is left.
    let error = planned(&world, &among(&tag, &["/etc/nginx/sites-*"]))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::PathNotFound);
    assert!(error.message.contains("a folder"), "{error}");
    // One that is named is refused.
    let named = among(&tag, &["/etc/ho*s", "/etc/nginx"]);
    let error = planned(&world, &named).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument);
    assert!(error.next.contains("/etc/nginx/*"), "{error:?}");
}

#[tokio::test]
async fn what_cannot_be_restored_does_not_keep_the_others_from_it() {
    let Some((world, _sshd, tag)) = seen().await else {
        return;
    };
    // Without a pattern, and with one.
    for paths in [
        &[FILE, "/etc/mtab", "/etc/hosts"][..],
        &[FILE, "/etc/mtab", "/etc/ho*s"],
    ] {
        let request = among(&tag, paths);
        let (planned, summary) = planned(&world, &request).await.unwrap();
        assert_eq!(planned, [FILE, "/etc/hosts", "/etc/mtab"]);
        assert!(summary.contains("is left out  "), "{summary}");
        let recovery = restored(&world, request).await.unwrap();
        let outcomes = recovery
            .paths
            .iter()
            .map(|path| path.outcome.is_recovered());
        assert_eq!(outcomes.collect::<Vec<_>>(), [true, true, false]);
        assert!(recovery.paths[2].why.is_some());
        assert_eq!(recovery.error.unwrap().code, ErrorCode::NotAllRecovered);
    }
    let error = planned(&world, &among(&tag, &["/etc/mtab"]))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::GuestConflict);
}

#[tokio::test]
async fn the_same_restore_asked_for_again_is_the_same_plan() {
    let Some((world, _sshd, tag, _)) = broken().await else {
        return;
    };
    let request = restore(FILE, &tag, Restore::Replace);
    let first = world
        .rewind
        .plan_recovery_once(&request, &call())
        .await
        .unwrap();
    let again = world
        .rewind
        .plan_recovery_once(&request, &call())
        .await
        .unwrap();
    assert_eq!(first.plan.id, again.plan.id);
}

#[tokio::test]
async fn where_an_undo_does_not_fit_any_more_the_way_by_hand_is_named() {
    let Some((world, _sshd, tag, before)) = broken().await else {
        return;
    };
    let recovery = restored(&world, restore(FILE, &tag, Restore::Replace)).await;
    let file = recovery.unwrap().one.unwrap().restored.unwrap();
    let (id, kept) = (file.restore_id.unwrap(), file.kept.unwrap());
    let plan = world.rewind.plan_undo(&id, &call()).await.unwrap();
    fs::write(on_host(&world, FILE), "came after it").unwrap();
    for error in [
        world.rewind.plan_undo(&id, &call()).await.unwrap_err(),
        world.rewind.undo_restore(&plan, &call()).await.unwrap_err(),
    ] {
        assert_eq!(error.code, ErrorCode::GuestConflict, "{error}");
        for said in [&*kept, "by hand", "`zerto-rewind recover`"] {
            assert!(error.next.contains(said), "{said:?}: {error:?}");
        }
    }
    assert_eq!(fs::read(on_host(&world, FILE)).unwrap(), b"came after it");
    // What is not there any more as it was is not named.
    fs::write(on_host(&world, &kept), "something else").unwrap();
    fs::write(on_host(&world, FILE), before).unwrap();
    let error = world.rewind.undo_restore(&plan, &call()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::GuestConflict, "{error}");
    assert!(
        !error.next.contains(&kept) && error.next.contains("`zerto-rewind recover`"),
        "{error:?}"
    );
}

#[tokio::test]
async fn who_comes_too_late_with_a_plan_pins_nothing() {
    let Some((world, sshd, tag, before)) = broken().await else {
        return;
    };
    let request = restore(FILE, &tag, Restore::Replace);
    let known = world.rewind.plan_recovery(&request, &call()).await.unwrap();
    approve(&world.rewind, &known).await.unwrap();
    // With a login of its own, at which it is held: it has read the plan by then.
    let late = world.with_config(&json!({ "guests": { "jp-ubuntu": sshd.guest() } }));
    world.sim.add_fault(Fault::hold("", "/**"));
    let (id, call_of_late) = (known.plan.id.clone(), call());
    let held = late.recover(&id, &call_of_late);
    tokio::pin!(held);
    tokio::select! {
        result = &mut held => panic!("{result:?}"),
        () = world.sim.wait_for(|view| view.held().count() > 0) => {}
    }
    world.rewind.recover(&id, &call()).await.unwrap();
    let tags = world.tags("jp-ubuntu");
    world.sim.let_go();
    let error = held.await.unwrap_err();
    assert_eq!(error.code, ErrorCode::PlanUsed, "{error}");
    assert_eq!(error.done, [], "nothing was done");
    assert_eq!(world.tags("jp-ubuntu"), tags);
    assert_eq!(fs::read(on_host(&world, FILE)).unwrap(), before);
}
