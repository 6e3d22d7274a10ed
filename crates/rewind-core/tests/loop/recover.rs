use crate::support::{Heard, Recovered, World, call, recovered, recovery};
use rewind_core::{Destination, Error, ErrorCode, RecoverRequest};
use std::{fs, path::Path, time::Duration};
use zvm_sim::{
    Scenario, Spread,
    scenario::{Entry, Partition},
    switches::{
        BrowsePath, DownloadToken, DownloadUrl, FlrGet, FlrGone, Paging, SingleFile, UnmountAnswer,
    },
};

async fn recover(world: &World, request: RecoverRequest) -> Result<Recovered, Error> {
    let result = recovered(&world.rewind, request, &call()).await;
    assert_eq!(world.sim.flr_sessions(), [], "no session stays open");
    result
}

/// Guards the VM, and answers with the tag.
async fn pinned(world: &World, vm: &str) -> String {
    world.guard(vm).await.unwrap().tag
}

#[tokio::test]
async fn a_file_comes_back_as_it_was_before_the_change() {
    let world = World::new().await;
    let path = "/home/justin/app-config.yaml";
    let file = world.sim.guest_path("jp-ubuntu", path).unwrap();
    let before = fs::read(&file).unwrap();
    let tag = pinned(&world, "jp-ubuntu").await;
    fs::write(&file, "broken").unwrap();
    world.sim.checkpoint_now("jp-ubuntu").await.unwrap();

    let recovery = recover(&world, recovery("jp-ubuntu", path, &tag))
        .await
        .unwrap();
    assert_eq!(fs::read(&recovery.local_path).unwrap(), before);
    assert_eq!((recovery.bytes, recovery.is_folder), (158, false));
    assert_eq!(
        recovery.guest_path,
        "partition#0 Ext4/home/justin/app-config.yaml"
    );
    let local = world
        .recover_dir()
        .join("jp-ubuntu")
        .join(&recovery.checkpoint)
        .join("home/justin/app-config.yaml");
    assert_eq!(Path::new(&recovery.local_path), local);
    assert!(recovery.tag.as_ref().unwrap().starts_with(&tag));
    assert_eq!(recovery.files[0].sha256, support_sha256(&before));
    let timing = &recovery.timing;
    let steps = timing.find + timing.mount + timing.resolve + timing.download + timing.unmount;
    assert!(
        timing.mount > 0.0 && steps <= timing.total + 0.001,
        "{timing:?}"
    );
    assert_eq!(fs::read(file).unwrap(), b"broken");
    // Nothing else is left beside it.
    assert_eq!(fs::read_dir(local.parent().unwrap()).unwrap().count(), 1);
}

fn support_sha256(bytes: &[u8]) -> String {
    use sha2::Digest;
    rewind_core::text::hex(&sha2::Sha256::digest(bytes))
}

#[tokio::test]
async fn a_path_is_found_on_whichever_partition_it_lies() {
    let world = World::new().await;
    let tag = pinned(&world, "app01").await;
    for (path, guest_path) in [
        ("/etc/hostname", "partition#0 Ext4/etc/hostname"),
        (
            "/home/justin/app-config.yaml",
            "partition#1 Ext4/justin/app-config.yaml",
        ),
        (
            "partition#1 Ext4/justin/notes.txt",
            "partition#1 Ext4/justin/notes.txt",
        ),
        (
            "/home/justin/Meeting notes – Q3 (draft).md",
            "partition#1 Ext4/justin/Meeting notes – Q3 (draft).md",
        ),
    ] {
        let recovery = recover(&world, recovery("app01", path, &tag))
            .await
            .unwrap();
        assert_eq!(recovery.guest_path, guest_path);
    }
    let error = recover(&world, recovery("app01", "/etc/nothing", &tag))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::PathNotFound);
}

#[tokio::test]
async fn a_windows_path_is_found_on_the_ntfs_partition_that_has_it() {
    let mut scenario = Scenario::fast();
    let ntfs = |mount: &str, files: Vec<Entry>| Partition {
        mount: mount.into(),
        filesystem: "NTFS".into(),
        files,
        ..Partition::default()
    };
    scenario.vm_mut("jp-ubuntu").unwrap().partitions = vec![
        ntfs(
            "C:\\",
            vec![
                Entry::text("/Users/Ann/Notes.txt", "c"),
                Entry::text("/both.txt", "c"),
            ],
        ),
        ntfs(
            "D:\\",
            vec![
                Entry::text("/Data/Ledger.txt", "d"),
                Entry::text("/Both.txt", "d"),
            ],
        ),
    ];
    let world = World::of(scenario).await;
    let tag = pinned(&world, "jp-ubuntu").await;
    for (path, guest_path, content) in [
        (
            r"C:\Users\Ann\Notes.txt",
            "partition#0 NTFS/Users/Ann/Notes.txt",
            "c",
        ),
        (
            r"d:\DATA\ledger.TXT",
            "partition#1 NTFS/Data/Ledger.txt",
            "d",
        ),
        (
            "partition#1 NTFS/both.txt",
            "partition#1 NTFS/Both.txt",
            "d",
        ),
    ] {
        let recovery = recover(&world, recovery("jp-ubuntu", path, &tag))
            .await
            .unwrap();
        assert_eq!(recovery.guest_path, guest_path);
        assert_eq!(fs::read_to_string(recovery.local_path).unwrap(), content);
    }
    let destination = Destination::InRecoverDir(Some("both/".into()));
    let request = RecoverRequest {
        destination,
        ..recovery("jp-ubuntu", r"C:\both.txt", &tag)
    };
    let error = recover(&world, request).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::PathAmbiguous);
    assert_eq!(
        error.candidates,
        ["partition#0 NTFS/both.txt", "partition#1 NTFS/Both.txt"]
    );
}

#[tokio::test]
async fn a_deleted_file_and_odd_names_come_back() {
    let world = World::new().await;
    let names = [
        "it's \"quoted\" & 100% $HOME.txt",
        "Größe – 日本語.txt",
        " leading and trailing ",
        "a\\b;c|d",
        "#?&=+.txt",
    ];
    let folder = world.sim.guest_path("jp-ubuntu", "/srv").unwrap();
    for name in names {
        fs::write(folder.join(name), name).unwrap();
    }
    fs::write(folder.join("empty"), "").unwrap();
    let tag = pinned(&world, "jp-ubuntu").await;
    for name in names.into_iter().chain(["empty"]) {
        fs::remove_file(folder.join(name)).unwrap();
        let recovery = recover(&world, recovery("jp-ubuntu", &format!("/srv/{name}"), &tag))
            .await
            .unwrap();
        let content = fs::read_to_string(&recovery.local_path).unwrap();
        assert_eq!(content, if name == "empty" { "" } else { name });
        assert_eq!(Path::new(&recovery.local_path).file_name().unwrap(), name);
    }
}

#[tokio::test]
async fn a_folder_arrives_as_a_folder() {
    let world = World::new().await;
    let tag = pinned(&world, "jp-ubuntu").await;
    let recovery = recover(&world, recovery("jp-ubuntu", "/etc/nginx/", &tag))
        .await
        .unwrap();
    assert!(recovery.is_folder);
    let local = Path::new(&recovery.local_path);
    let mut paths: Vec<_> = recovery
        .files
        .iter()
        .map(|file| file.path.as_str())
        .collect();
    paths.sort_unstable();
    assert_eq!(paths, ["nginx.conf", "sites-available/app"]);
    for file in &recovery.files {
        let original = world
            .sim
            .guest_path("jp-ubuntu", &format!("/etc/nginx/{}", file.path))
            .unwrap();
        let bytes = fs::read(local.join(&file.path)).unwrap();
        assert_eq!(bytes, fs::read(original).unwrap());
        assert_eq!(
            (file.bytes, &file.sha256),
            (bytes.len() as u64, &support_sha256(&bytes))
        );
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(
            (mode(local), mode(&local.join("nginx.conf"))),
            (0o700, 0o600)
        );
    }
    // The link is not made and not followed, and it is told.
    assert!(
        recovery
            .skipped
            .iter()
            .any(|skipped| skipped.contains("sites-enabled/app")),
        "{:?}",
        recovery.skipped
    );
    assert!(fs::symlink_metadata(local.join("sites-enabled/app")).is_err());
}

#[tokio::test]
async fn an_empty_folder_and_a_deep_one_come_back() {
    let world = World::new().await;
    let deep = world
        .sim
        .guest_path("jp-ubuntu", "/srv")
        .unwrap()
        .join("srv/srv/x/y/z");
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("file"), "deep").unwrap();
    let tag = pinned(&world, "jp-ubuntu").await;
    let empty = recover(&world, recovery("jp-ubuntu", "/srv/backup", &tag))
        .await
        .unwrap();
    assert!(Path::new(&empty.local_path).is_dir() && empty.files.is_empty());
    let all = RecoverRequest {
        destination: Destination::InRecoverDir(Some("all".into())),
        ..recovery("jp-ubuntu", "/srv", &tag)
    };
    let all = recover(&world, all).await.unwrap();
    assert_eq!(
        fs::read_to_string(Path::new(&all.local_path).join("srv/srv/x/y/z/file")).unwrap(),
        "deep"
    );
}

#[tokio::test]
async fn a_destination_inside_of_the_recovery_folder_is_honoured() {
    let world = World::new().await;
    let tag = pinned(&world, "jp-ubuntu").await;
    for (destination, lands) in [
        ("before/", "before/hosts"),
        ("before", "before/hosts.1"),
        ("a/b/c.txt", "a/b/c.txt"),
    ] {
        let inside = if destination == "before" {
            "before/hosts.1"
        } else {
            destination
        };
        let request = RecoverRequest {
            destination: Destination::InRecoverDir(Some(inside.into())),
            ..recovery("jp-ubuntu", "/etc/hosts", &tag)
        };
        let recovery = recover(&world, request).await.unwrap();
        assert_eq!(
            Path::new(&recovery.local_path),
            world.recover_dir().join(lands)
        );
    }
    let to = world.folder().join("anywhere");
    let request = RecoverRequest {
        destination: Destination::Folder(to.clone()),
        ..recovery("jp-ubuntu", "/etc/hosts", &tag)
    };
    assert_eq!(
        Path::new(&recover(&world, request).await.unwrap().local_path),
        to.join("hosts")
    );
}

#[tokio::test]
async fn every_plausible_zvm_is_understood() {
    let world = World::new().await;
    let tag = pinned(&world, "jp-ubuntu").await;
    let request = || recovery("jp-ubuntu", "/home/justin/app-config.yaml", &tag);
    let expected = fs::read(
        world
            .sim
            .guest_path("jp-ubuntu", "/home/justin/app-config.yaml")
            .unwrap(),
    )
    .unwrap();
    let changes: [fn(&mut zvm_sim::Switches); 12] = [
        |switches| switches.flr_get = FlrGet::Object,
        |switches| switches.browse_path = BrowsePath::Name,
        |switches| switches.browse_path = BrowsePath::Backslash,
        |switches| switches.browse_paging = Paging::Ignored,
        |switches| switches.browse_page_base = 0,
        |switches| switches.download_url = DownloadUrl::Absolute,
        |switches| switches.download_url = DownloadUrl::Backslash,
        |switches| switches.download_token = DownloadToken::Needed,
        |switches| switches.single_file = SingleFile::Zip,
        |switches| switches.unmount_answer = UnmountAnswer::NoContent,
        |switches| switches.flr_gone = FlrGone::EmptyList,
        |switches| switches.mounting_status = Some("SomethingNew".into()),
    ];
    for (index, change) in changes.into_iter().enumerate() {
        world.sim.update(|switches| {
            *switches = zvm_sim::Switches::default();
            change(switches);
        });
        let destination = Destination::InRecoverDir(Some(format!("{index}/")));
        let recovery = recover(
            &world,
            RecoverRequest {
                destination,
                ..request()
            },
        )
        .await
        .unwrap();
        assert_eq!(
            fs::read(recovery.local_path).unwrap(),
            expected,
            "change {index}"
        );
    }
}

#[tokio::test]
async fn a_zip_that_was_asked_for_stays_a_zip() {
    let world = World::new().await;
    let archive = world
        .sim
        .guest_path("jp-ubuntu", "/srv")
        .unwrap()
        .join("data.zip");
    let mut zip = zip::ZipWriter::new(fs::File::create(&archive).unwrap());
    zip.start_file("data.zip", zip::write::SimpleFileOptions::default())
        .unwrap();
    zip.finish().unwrap();
    let bytes = fs::read(&archive).unwrap();
    let tag = pinned(&world, "jp-ubuntu").await;
    for (single_file, to) in [(SingleFile::Raw, "raw/"), (SingleFile::Zip, "zip/")] {
        world
            .sim
            .update(|switches| switches.single_file = single_file);
        let destination = Destination::InRecoverDir(Some(to.into()));
        let request = RecoverRequest {
            destination,
            ..recovery("jp-ubuntu", "/srv/data.zip", &tag)
        };
        assert_eq!(
            fs::read(recover(&world, request).await.unwrap().local_path).unwrap(),
            bytes
        );
    }
}

#[tokio::test]
async fn recoveries_one_after_another_wait_for_the_unmount() {
    let world = World::new().await;
    world
        .sim
        .update(|switches| switches.unmount_duration = Some(Spread::millis(300, 300)));
    let tag = pinned(&world, "jp-ubuntu").await;
    for path in ["/etc/hosts", "/etc/hostname"] {
        recover(&world, recovery("jp-ubuntu", path, &tag))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn progress_is_told_while_a_recovery_waits() {
    let world = World::new().await;
    world
        .sim
        .update(|switches| switches.mount_duration = Some(Spread::millis(1_500, 1_500)));
    let tag = pinned(&world, "jp-ubuntu").await;
    let (heard, call) = Heard::call();
    let request = recovery("jp-ubuntu", "/etc/hosts", &tag);
    recovered(&world.rewind, request, &call).await.unwrap();
    let messages = heard.messages();
    for said in ["mounted", "downloading hosts", "unmounting"] {
        assert!(
            messages.iter().any(|message| message.contains(said)),
            "{said}: {messages:?}"
        );
    }
    let updates = heard.0.lock().unwrap();
    assert!(
        updates
            .windows(2)
            .all(|pair| pair[1].done - pair[0].done < Duration::from_secs(2).as_secs_f64())
    );
}

#[tokio::test]
async fn files_of_one_name_in_two_folders_do_not_meet() {
    let world = World::new().await;
    let paths = ["/etc/app.conf", "/srv/app/app.conf"];
    for path in paths {
        fs::write(world.sim.guest_path("jp-ubuntu", path).unwrap(), path).unwrap();
    }
    let tag = world.guard("jp-ubuntu").await.unwrap().tag;
    for path in paths {
        let recovery = recover(&world, recovery("jp-ubuntu", path, &tag))
            .await
            .unwrap();
        assert_eq!(fs::read_to_string(recovery.local_path).unwrap(), path);
    }
    let error = recover(&world, recovery("jp-ubuntu", paths[0], &tag))
        .await
        .unwrap_err();
    assert_eq!(error.code, rewind_core::ErrorCode::DestinationExists);
}
