//! What changed between a checkpoint and now.
use crate::{
    sshd::{HOST, Sshd},
    support::{World, approve, call, recovery},
};
use rewind_core::{
    DiffRequest, Error, ErrorCode, FileDiff, Paths, RecoverRequest,
    diff::{Change, Kind, Now},
};
use serde_json::json;
use std::{fs, path::PathBuf};
use zvm_sim::Scenario;

const FILE: &str = "/home/justin/app-config.yaml";

fn request(path: &str, checkpoint: &str) -> DiffRequest {
    DiffRequest {
        vm: "jp-ubuntu".into(),
        path: path.into(),
        checkpoint: checkpoint.into(),
        vpg: None,
    }
}

async fn diff(world: &World, path: &str, checkpoint: &str) -> Result<FileDiff, Error> {
    let request = request(path, checkpoint);
    if let Some(known) = world.rewind.plan_diff(&request, &call()).await? {
        approve(&world.rewind, &known).await?;
    }
    let result = world.rewind.diff(&request, &call()).await;
    assert_eq!(world.sim.flr_sessions(), [], "no session stays open");
    let left = fs::read_dir(world.recover_dir()).map_or(0, |entries| entries.count());
    assert_eq!(left, 0, "nothing is placed");
    result
}

fn on_host(world: &World, path: &str) -> PathBuf {
    world.sim.guest_path("jp-ubuntu", path).unwrap()
}

/// A world with a way into the guest.
async fn with_guest() -> Option<(World, Sshd)> {
    let mut world = World::new().await;
    let root = on_host(&world, "/");
    let sshd = Sshd::start(&[("/", &root)])?;
    world.rewind = world.with_config(&json!({ "guests": { "jp-ubuntu": sshd.guest() } }));
    Some((world, sshd))
}

#[tokio::test]
async fn text_is_compared_with_the_latest_checkpoint_where_there_is_no_way_into_the_guest() {
    let world = World::new().await;
    let before = fs::read_to_string(on_host(&world, FILE)).unwrap();
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    let changed = before.replacen('\n', "\nadded: \u{202e}line\n", 1);
    fs::write(on_host(&world, FILE), &changed).unwrap();
    world.sim.checkpoint_now("jp-ubuntu").await.unwrap();

    let found = diff(&world, FILE, &tag).await.unwrap();
    assert_eq!((found.change, found.kind), (Change::Changed, Kind::Text));
    assert!(
        matches!(&found.now, Now::LatestCheckpoint { checkpoint, .. } if *checkpoint != found.checkpoint)
    );
    let unified = found.unified.unwrap();
    assert!(
        unified.contains("\n+added: \\u{202e}line\n") && unified.contains("@@"),
        "{unified}"
    );
    let (then, now) = (found.then.unwrap(), found.current.unwrap());
    assert_eq!(
        (then.bytes, now.bytes),
        (Some(before.len() as u64), Some(changed.len() as u64))
    );
    assert!(then.sha256.is_some() && then.sha256 != now.sha256);
    assert_eq!(world.mounts(), 2, "one after the other");

    // The same content is no change.
    let found = diff(&world, "/etc/hostname", &tag).await.unwrap();
    assert_eq!((found.change, found.unified), (Change::Unchanged, None));
}

#[tokio::test]
async fn nothing_is_mounted_without_an_agreement() {
    let world = World::new().await;
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    let request = request(FILE, &tag);
    let error = world.rewind.diff(&request, &call()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::ConfirmationRequired);
    assert!(
        error.message.contains(FILE) && error.message.contains("latest checkpoint"),
        "{error}"
    );
    assert_eq!(world.count("POST", "/flrs"), 0);
    // One agreement is for all comparisons with this checkpoint.
    let known = world
        .rewind
        .plan_diff(&request, &call())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(Some(known.plan.id.clone()), error.plan_id.map(String::from));
    approve(&world.rewind, &known).await.unwrap();
    assert!(
        world
            .rewind
            .plan_diff(&request, &call())
            .await
            .unwrap()
            .is_none()
    );
    world.sim.checkpoint_now("jp-ubuntu").await.unwrap();
    let other = DiffRequest {
        path: "/etc/hosts".into(),
        ..request
    };
    world.rewind.diff(&other, &call()).await.unwrap();
}

#[tokio::test]
async fn what_is_not_there_on_one_side_was_added_or_removed() {
    let world = World::new().await;
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    fs::remove_file(on_host(&world, FILE)).unwrap();
    fs::write(on_host(&world, "/home/justin/new.txt"), "new\n").unwrap();
    world.sim.checkpoint_now("jp-ubuntu").await.unwrap();
    let gone = diff(&world, FILE, &tag).await.unwrap();
    assert_eq!((gone.change, gone.kind), (Change::Removed, Kind::Text));
    assert!(gone.current.is_none() && gone.unified.unwrap().contains("\n-"));
    let new = diff(&world, "/home/justin/new.txt", &tag).await.unwrap();
    assert_eq!((new.change, new.then), (Change::Added, None));
    assert!(new.unified.unwrap().ends_with("+new\n"));
    let error = diff(&world, "/nowhere/at/all", &tag).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::PathNotFound);
}

#[tokio::test]
async fn a_folder_that_went_or_came_or_became_a_file_is_told_with_what_is_in_it() {
    let world = World::new().await;
    let (gone, new, other) = ("/srv/gone", "/srv/new", "/srv/other");
    fs::create_dir(on_host(&world, gone)).unwrap();
    fs::write(on_host(&world, "/srv/gone/a.txt"), "a\n").unwrap();
    fs::write(on_host(&world, other), "a file\n").unwrap();
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    fs::remove_dir_all(on_host(&world, gone)).unwrap();
    for folder in [new, other] {
        match fs::remove_file(on_host(&world, folder)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{error}"),
            _ => fs::create_dir(on_host(&world, folder)).unwrap(),
        }
        fs::write(on_host(&world, &format!("{folder}/b.txt")), "b\n").unwrap();
    }
    world.sim.checkpoint_now("jp-ubuntu").await.unwrap();
    let found = diff(&world, gone, &tag).await.unwrap();
    assert_eq!((found.change, found.kind), (Change::Removed, Kind::Folder));
    assert_eq!(found.folder.unwrap().removed, ["a.txt"]);
    let found = diff(&world, new, &tag).await.unwrap();
    assert_eq!((found.change, found.kind), (Change::Added, Kind::Folder));
    assert_eq!(found.folder.unwrap().added, ["b.txt"]);
    let found = diff(&world, other, &tag).await.unwrap();
    assert_eq!(
        (found.change, found.kind),
        (Change::Changed, Kind::Different)
    );
    assert_eq!(found.notes, ["It was a file then, and is a folder now."]);
}

#[tokio::test]
async fn data_is_told_by_size_times_and_hash_and_large_files_too() {
    let world = World::new().await;
    let file = on_host(&world, "/home/justin/data.bin");
    fs::write(&file, vec![0; 5_000]).unwrap();
    fs::write(
        on_host(&world, "/home/justin/large.log"),
        "x\n".repeat(700_000),
    )
    .unwrap();
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    fs::write(&file, vec![1; 5_000]).unwrap();
    fs::write(
        on_host(&world, "/home/justin/large.log"),
        "y\n".repeat(700_000),
    )
    .unwrap();
    world.sim.checkpoint_now("jp-ubuntu").await.unwrap();
    for path in ["/home/justin/data.bin", "/home/justin/large.log"] {
        let found = diff(&world, path, &tag).await.unwrap();
        assert_eq!(
            (found.change, found.kind, found.unified),
            (Change::Changed, Kind::Data, None),
            "{path}"
        );
        let (then, now) = (found.then.unwrap(), found.current.unwrap());
        assert!(
            then.bytes == now.bytes && then.sha256.is_some() && then.sha256 != now.sha256,
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_folder_is_summed_up() {
    let world = World::new().await;
    fs::write(on_host(&world, "/home/justin/same.txt"), "same").unwrap();
    fs::write(on_host(&world, "/home/justin/gone.txt"), "gone").unwrap();
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    fs::write(on_host(&world, FILE), "changed").unwrap();
    fs::remove_file(on_host(&world, "/home/justin/gone.txt")).unwrap();
    fs::create_dir(on_host(&world, "/home/justin/sub")).unwrap();
    fs::write(on_host(&world, "/home/justin/sub/new.txt"), "new").unwrap();
    world.sim.checkpoint_now("jp-ubuntu").await.unwrap();
    let found = diff(&world, "/home/justin", &tag).await.unwrap();
    assert_eq!((found.change, found.kind), (Change::Changed, Kind::Folder));
    let folder = found.folder.unwrap();
    assert_eq!(folder.added, ["sub/new.txt"]);
    assert_eq!(folder.removed, ["gone.txt"]);
    assert_eq!(folder.changed.len(), 1, "{folder:?}");
    assert!(
        folder.changed[0].starts_with("app-config.yaml (158 bytes, now 7)"),
        "{folder:?}"
    );
    assert!(folder.unchanged_count >= 1);
}

#[tokio::test]
async fn over_ssh_the_guest_itself_is_the_present() {
    let Some((world, sshd)) = with_guest().await else {
        return;
    };
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    fs::write(on_host(&world, FILE), "changed just now\n").unwrap();
    fs::write(on_host(&world, "/home/justin/new.txt"), "new").unwrap();
    let found = diff(&world, FILE, &tag).await.unwrap();
    assert_eq!(found.now, Now::Guest { guest: HOST.into() });
    assert!(found.unified.unwrap().contains("\n+changed just now\n"));
    assert_eq!(found.current.unwrap().bytes, Some(17));
    let folder = diff(&world, "/home/justin", &tag)
        .await
        .unwrap()
        .folder
        .unwrap();
    assert_eq!(
        (folder.added.as_slice(), folder.changed_count),
        (["new.txt".to_owned()].as_slice(), 1),
        "{folder:?}"
    );
    // What is the same by size and time is the same over both ways.
    assert_eq!(
        diff(&world, "/etc", &tag).await.unwrap().change,
        Change::Unchanged
    );
    fs::remove_file(on_host(&world, FILE)).unwrap();
    assert_eq!(
        diff(&world, FILE, &tag).await.unwrap().change,
        Change::Removed
    );
    // Opened, looked at, read, listed, resolved; and what the server can do.
    let reads = [
        "3",
        "4",
        "5",
        "7",
        "8",
        "11",
        "12",
        "16",
        "limits@openssh.com",
    ];
    for asked in sshd.asked() {
        let what = asked.split(' ').nth(1).unwrap();
        assert!(reads.contains(&what), "more than reading: {asked}");
    }
    let error = diff(&world, "/nowhere/at/all", &tag).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::PathNotFound);
}

#[tokio::test]
async fn a_guest_that_cannot_be_reached_is_an_error_and_not_something_else() {
    let Some((world, sshd)) = with_guest().await else {
        return;
    };
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    fs::write(sshd.known_hosts(), "").unwrap();
    let error = diff(&world, FILE, &tag).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::GuestUnreachable);
    assert!(
        error.message.contains(HOST) && error.message.contains("not known"),
        "{error}"
    );
    assert_eq!(
        world.count("POST", "/flrs"),
        0,
        "nothing is mounted in vain"
    );
}

#[tokio::test]
async fn a_name_that_two_vms_have_leads_into_neither() {
    let mut scenario = Scenario::fast();
    let with_disk = scenario.vms.iter().find(|vm| vm.name == "jp-ubuntu");
    let partitions = with_disk.unwrap().partitions.clone();
    for vm in scenario.vms.iter_mut().filter(|vm| vm.name == "web") {
        vm.partitions = partitions.clone();
    }
    let mut world = World::of(scenario).await;
    world.rewind = world.with_config(&json!({ "guests": { "web": { "ssh": "nowhere.invalid" } } }));
    let web = world.sim.vm_id("web-a").unwrap().to_owned();
    let tag = world.guard(&web).await.unwrap().tag;
    let request = DiffRequest {
        vm: web,
        ..request("/etc/hosts", &tag)
    };
    let error = world.rewind.plan_diff(&request, &call()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::VmAmbiguous);
    assert!(
        error.message.contains("`guests`") && error.next.contains("identifier"),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_link_is_refused_as_a_recovery_refuses_it_and_keeps_no_other_path_from_being_compared() {
    let world = World::with(Scenario::fast(), json!({ "previews": "free" })).await;
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    fs::write(on_host(&world, "/etc/hosts"), "changed").unwrap();
    world.sim.checkpoint_now("jp-ubuntu").await.unwrap();
    let error = diff(&world, "/etc/mtab", &tag).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NotDownloadable, "{error}");
    assert!(
        error.message.contains("/etc/mtab\" can't be downloaded")
            && error.message.contains("Links are not supported"),
        "{error}"
    );
    assert_eq!(world.mounts(), 1, "the present is not looked at in vain");
    let wanted = RecoverRequest {
        paths: Paths::Several(vec!["/etc/mtab".into(), "/etc/hosts".into()]),
        ..recovery("jp-ubuntu", "", &tag)
    };
    let known = world.rewind.plan_recovery(&wanted, &call()).await.unwrap();
    let diffs = world.rewind.diff_of(&known, &call()).await.unwrap();
    let codes = diffs.iter().map(|diff| match diff {
        Ok(diff) => Ok(diff.change),
        Err(error) => Err(error.code),
    });
    assert_eq!(
        codes.collect::<Vec<_>>(),
        [Err(ErrorCode::NotDownloadable), Ok(Change::Changed)]
    );
    let asked = world.sim.requests();
    let links = asked
        .iter()
        .filter(|request| request.path.contains("/download") && request.body.contains("mtab"));
    assert_eq!(links.count(), 0, "no download of it is asked for");
}

#[tokio::test]
async fn a_pattern_is_not_expanded_and_a_name_that_looks_like_one_is_a_name() {
    let world = World::with(Scenario::fast(), json!({ "previews": "free" })).await;
    let name = "/etc/a[1]*.conf";
    fs::write(on_host(&world, name), "then").unwrap();
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    fs::write(on_host(&world, name), "now").unwrap();
    world.sim.checkpoint_now("jp-ubuntu").await.unwrap();
    let found = diff(&world, name, &tag).await.unwrap();
    assert_eq!(found.change, Change::Changed);
    for pattern in ["/etc/*", "/etc/host?", "/e{tc,nv}/hosts", "/etc/["] {
        let error = diff(&world, pattern, &tag).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::PathNotFound, "{pattern}");
        assert!(
            error.message.contains("does not expand patterns") && error.next.contains("the folder"),
            "{error:?}"
        );
    }
    let error = diff(&world, "/etc/nothing", &tag).await.unwrap_err();
    assert!(!error.message.contains("patterns"), "{error}");
}
