//! File-level restore.

use std::{sync::Arc, time::Duration};

use zvm_client::{
    CheckpointId, Error, FlrSessionId, FlrStatus, NoLoginGate, PathKind, Timeouts, Zvm, ZvmConfig,
};
use zvm_sim::{
    Fault, Sim,
    switches::{
        BrowsePath, Damage, DownloadToken, DownloadUrl, FlrGet, FlrGone, Mount, Paging, SingleFile,
        Unmount, UnmountAnswer, UnmountRepeat,
    },
};

use crate::{config, sim, until, zvm};

const CONFIG: &str = "partition#0 Ext4/home/justin/app-config.yaml";

/// A mounted session of `jp-ubuntu`, of a checkpoint that was just taken.
async fn mounted(sim: &Sim, zvm: &Zvm) -> FlrSessionId {
    let (vm, vpg) = (
        sim.vm_id("jp-ubuntu").unwrap(),
        sim.vpg_id("jp-ubuntu").unwrap(),
    );
    let checkpoint: CheckpointId = sim
        .checkpoint_now("jp-ubuntu")
        .await
        .unwrap()
        .parse()
        .unwrap();
    let id = zvm.mount(vm, vpg, checkpoint).await.unwrap();
    let session = until(async || {
        let session = zvm.flr_session(&id).await.unwrap().expect("a session");
        assert!(session.id.same_as(&id));
        (session.status == FlrStatus::Ready).then_some(session)
    })
    .await;
    assert_eq!(session.checkpoint, Some(checkpoint));
    assert_eq!(
        (
            session.vm_identifier.as_deref(),
            session.vpg_identifier.as_deref()
        ),
        (Some(vm), Some(vpg))
    );
    assert!(session.mount_time.is_some());
    id
}

async fn unmounted(zvm: &Zvm, id: &FlrSessionId) {
    zvm.unmount(id).await.unwrap();
    until(async || zvm.flr_session(id).await.unwrap().is_none().then_some(())).await;
}

async fn bytes(zvm: &Zvm, id: &FlrSessionId, paths: &[&str]) -> Result<Vec<u8>, Error> {
    let mut download = zvm.download(id, paths).await?;
    let mut bytes = Vec::new();
    while let Some(chunk) = download.chunk().await? {
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

fn original(sim: &Sim) -> Vec<u8> {
    std::fs::read(
        sim.guest_path("jp-ubuntu", "/home/justin/app-config.yaml")
            .unwrap(),
    )
    .unwrap()
}

#[tokio::test]
async fn a_file_comes_back_whatever_the_shape_of_the_answers() {
    let sim = sim().await;
    let zvm = zvm(&sim);
    for (get, gone, answer, repeat) in [
        (
            FlrGet::Array,
            FlrGone::NotFound,
            UnmountAnswer::TaskId,
            UnmountRepeat::NotFound,
        ),
        (
            FlrGet::Object,
            FlrGone::EmptyList,
            UnmountAnswer::EmptyString,
            UnmountRepeat::Accepted,
        ),
        (
            FlrGet::Array,
            FlrGone::EmptyList,
            UnmountAnswer::Empty,
            UnmountRepeat::NotFound,
        ),
        (
            FlrGet::Object,
            FlrGone::NotFound,
            UnmountAnswer::NoContent,
            UnmountRepeat::NotFound,
        ),
    ] {
        sim.update(|switches| {
            switches.flr_get = get;
            switches.flr_gone = gone;
            switches.unmount_answer = answer;
            switches.unmount_repeat = repeat;
        });
        let id = mounted(&sim, &zvm).await;
        let sessions = zvm
            .flr_sessions(sim.vm_id("jp-ubuntu").unwrap())
            .await
            .unwrap();
        assert_eq!((sessions.len(), &sessions[0].id), (1, &id));
        assert!(
            zvm.flr_sessions(sim.vm_id("app01").unwrap())
                .await
                .unwrap()
                .is_empty()
        );
        assert_eq!(bytes(&zvm, &id, &[CONFIG]).await.unwrap(), original(&sim));
        unmounted(&zvm, &id).await;
        zvm.unmount(&id).await.unwrap();
        assert!(sim.flr_sessions().is_empty());
    }
}

#[tokio::test]
async fn download_urls_of_every_shape_lead_to_the_bytes_and_a_foreign_one_nowhere() {
    let sim = sim().await;
    let zvm = zvm(&sim);
    let id = mounted(&sim, &zvm).await;
    for token in [DownloadToken::NotNeeded, DownloadToken::Needed] {
        for url in [
            DownloadUrl::Relative,
            DownloadUrl::LeadingSlash,
            DownloadUrl::Backslash,
            DownloadUrl::Absolute,
        ] {
            for length in [true, false] {
                sim.update(|switches| {
                    switches.download_token = token;
                    switches.download_url = url;
                    switches.download_length = length;
                });
                assert_eq!(
                    bytes(&zvm, &id, &[CONFIG]).await.unwrap(),
                    original(&sim),
                    "{token:?} {url:?}"
                );
                let download = zvm.download(&id, &[CONFIG]).await.unwrap();
                assert_eq!(download.length, length.then_some(158));
                assert_eq!(download.file_name.as_deref(), Some("app-config.yaml"));
            }
        }
    }
    sim.update(|switches| switches.download_url = DownloadUrl::Foreign);
    let error = bytes(&zvm, &id, &[CONFIG]).await.unwrap_err();
    assert!(
        matches!(&error, Error::ForeignHost { host, .. } if host == "192.0.2.10"),
        "{error}"
    );
}

#[tokio::test]
async fn several_paths_and_folders_come_as_a_zip() {
    let sim = sim().await;
    let zvm = zvm(&sim);
    let id = mounted(&sim, &zvm).await;
    for paths in [
        &["partition#0 Ext4/etc/nginx"][..],
        &["partition#0 Ext4/etc/hosts", CONFIG],
    ] {
        assert!(
            bytes(&zvm, &id, paths)
                .await
                .unwrap()
                .starts_with(b"PK\x03\x04")
        );
    }
    sim.update(|switches| switches.single_file = SingleFile::Zip);
    assert!(
        bytes(&zvm, &id, &[CONFIG])
            .await
            .unwrap()
            .starts_with(b"PK\x03\x04")
    );
    let error = bytes(&zvm, &id, &["partition#0 Ext4/no/such"])
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::NotFound { .. } | Error::Refused { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn damaged_downloads_are_told_where_the_connection_shows_it() {
    let sim = sim().await;
    let patient = zvm(&sim);
    let id = mounted(&sim, &patient).await;
    let timeouts = Timeouts {
        idle: Duration::from_secs(2),
        ..Timeouts::default()
    };
    let config = ZvmConfig {
        timeouts,
        ..config(&sim)
    };
    let zvm = Zvm::new(config, Arc::new(NoLoginGate)).unwrap();
    for (damage, length) in [
        (Damage::Cut, true),
        (Damage::Cut, false),
        (Damage::Stalls, true),
    ] {
        sim.update(|switches| {
            switches.download_damage = damage;
            switches.download_length = length;
        });
        let error = bytes(&zvm, &id, &[CONFIG]).await.unwrap_err();
        // Where the first bytes were lost as well, there was no answer.
        assert!(
            matches!(error, Error::Unreadable { .. } | Error::Unreachable { .. }),
            "{damage:?}: {error}"
        );
    }
    // Where the answer ends cleanly, only its size and content can tell: that is for the caller.
    for (damage, size) in [
        (Damage::Truncated, 157),
        (Damage::Longer, 159),
        (Damage::Wrong, 158),
    ] {
        sim.update(|switches| {
            switches.download_damage = damage;
            switches.download_length = false;
        });
        assert_eq!(
            bytes(&patient, &id, &[CONFIG]).await.unwrap().len(),
            size,
            "{damage:?}"
        );
    }
}

#[tokio::test]
async fn a_folder_is_listed_once_and_whole_however_it_is_paged() {
    let sim = sim().await;
    let folder = sim.guest_path("jp-ubuntu", "/srv/many").unwrap();
    std::fs::create_dir(&folder).unwrap();
    let mut expected: Vec<String> = (0..250)
        .map(|number| format!("partition#0 Ext4/srv/many/file {number:03} #é\"'%41+&.txt"))
        .chain([
            "partition#0 Ext4/srv/many/a\\b".into(),
            "partition#0 Ext4/srv/many/many".into(),
        ])
        .collect();
    for path in &expected {
        let name = path.rsplit_once('/').unwrap().1;
        std::fs::write(folder.join(name), name).unwrap();
    }
    expected.sort();
    let zvm = zvm(&sim);
    let id = mounted(&sim, &zvm).await;
    for paging in [Paging::Honoured, Paging::Ignored] {
        for base in [0, 1] {
            for most in [100, 126, 252, 1000] {
                for form in [BrowsePath::Full, BrowsePath::Name] {
                    sim.update(|switches| {
                        switches.browse_paging = paging;
                        switches.browse_page_base = base;
                        switches.browse_page_max = most;
                        switches.browse_path = form;
                    });
                    let items = zvm
                        .browse(&id, "partition#0 Ext4/srv/many", 1000)
                        .await
                        .unwrap();
                    let mut paths: Vec<_> = items.iter().map(|item| item.path.clone()).collect();
                    paths.sort();
                    assert_eq!(
                        paths, expected,
                        "{paging:?}, base {base}, at most {most}, {form:?}"
                    );
                    assert!(
                        items
                            .iter()
                            .all(|item| item.kind == PathKind::File && item.downloadable)
                    );
                }
            }
        }
    }
    let error = zvm
        .browse(&id, "partition#0 Ext4/srv/many", 100)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "list the folder partition#0 Ext4/srv/many: the answer is larger than 100 items"
    );
    for path in [
        "partition#0 Ext4/srv/many/file 007 #é\"'%41+&.txt",
        "partition#0 Ext4/srv/many/a\\b",
    ] {
        let name = path.rsplit_once('/').unwrap().1;
        assert_eq!(bytes(&zvm, &id, &[path]).await.unwrap(), name.as_bytes());
    }
}

#[tokio::test]
async fn a_disk_is_walked_in_every_form_of_path() {
    let sim = sim().await;
    let zvm = zvm(&sim);
    let id = mounted(&sim, &zvm).await;
    for form in [BrowsePath::Full, BrowsePath::Name, BrowsePath::Backslash] {
        sim.update(|switches| switches.browse_path = form);
        let mut path = String::new();
        for part in ["partition#0 Ext4", "home", "justin", "app-config.yaml"] {
            let items = zvm.browse(&id, &path, 1000).await.unwrap();
            let item = items
                .iter()
                .find(|item| item.path.rsplit('/').next() == Some(part))
                .unwrap();
            path.clone_from(&item.path);
            let file = part == "app-config.yaml";
            assert_eq!(item.size, file.then_some(158));
            assert_eq!(item.browsable, !file);
            assert_eq!(item.modified.is_some(), part != "partition#0 Ext4");
        }
        assert_eq!(path, CONFIG);
        assert_eq!(bytes(&zvm, &id, &[&path]).await.unwrap(), original(&sim));
    }
    sim.update(|switches| switches.link_type = "SymbolicLink".into());
    let items = zvm.browse(&id, "partition#0 Ext4/etc", 1000).await.unwrap();
    let link = items
        .iter()
        .find(|item| item.path.ends_with("/mtab"))
        .unwrap();
    assert_eq!(
        (&link.kind, link.downloadable, link.size),
        (&PathKind::Other("SymbolicLink".into()), false, None)
    );
    assert_eq!(
        link.reason.as_deref(),
        Some("Cannot restore. Links are not supported.")
    );
    let error = zvm
        .browse(&id, "partition#0 Ext4/no/such", 10)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
}

#[tokio::test]
async fn mounts_that_fail_and_unmounts_that_do_not_end() {
    let sim = sim().await;
    let zvm = zvm(&sim);
    let (vm, vpg) = (
        sim.vm_id("jp-ubuntu").unwrap(),
        sim.vpg_id("jp-ubuntu").unwrap(),
    );
    let error = zvm.mount(vm, vpg, CheckpointId(1)).await.unwrap_err();
    assert!(
        matches!(error, Error::NotFound { .. } | Error::Refused { .. }),
        "{error}"
    );

    let id = mounted(&sim, &zvm).await;
    let latest = CheckpointId(
        sim.checkpoint_now("jp-ubuntu")
            .await
            .unwrap()
            .parse()
            .unwrap(),
    );
    let error = zvm.mount(vm, vpg, latest).await.unwrap_err();
    assert!(
        matches!(error, Error::Refused { .. }),
        "a second mount: {error}"
    );

    sim.update(|switches| switches.unmount = Unmount::Refused);
    let error = zvm.unmount(&id).await.unwrap_err();
    assert!(
        matches!(error, Error::Refused { status: 400, .. }),
        "{error}"
    );
    sim.update(|switches| switches.unmount = Unmount::Hangs);
    zvm.unmount(&id).await.unwrap();
    let session = until(async || {
        let session = zvm.flr_session(&id).await.unwrap().unwrap();
        (session.status != FlrStatus::Ready).then_some(session)
    })
    .await;
    assert_eq!(
        (session.status, session.status_text.as_str()),
        (FlrStatus::Unmounting, "UnmountInProgress")
    );
    sim.restart();
    assert!(zvm.flr_session(&id).await.unwrap().is_none());

    sim.update(|switches| {
        switches.mount = Mount::Fails;
        switches.mounting_status = Some("PreparingSomethingNew".into());
    });
    let id = zvm.mount(vm, vpg, latest).await.unwrap();
    let session = until(async || {
        let session = zvm.flr_session(&id).await.unwrap().unwrap();
        (session.status != FlrStatus::Pending).then_some(session)
    })
    .await;
    assert_eq!(
        (session.status, session.status_text.as_str()),
        (FlrStatus::Failed, "MountFailed")
    );

    sim.update(|switches| switches.unmount = Unmount::Succeeds);
    zvm.unmount(&id).await.unwrap();
    sim.wait_for(|world| world.sessions().is_empty()).await;
    sim.update(|switches| switches.mount = Mount::Succeeds);
    sim.add_fault(Fault::cut_after("POST", "/v1/flrs"));
    let error = zvm.mount(vm, vpg, latest).await.unwrap_err();
    assert!(matches!(error, Error::Unknown { .. }), "{error}");
    assert_eq!(zvm.flr_sessions(vm).await.unwrap().len(), 1, "it happened");
}

#[tokio::test]
async fn a_token_that_expires_between_the_download_url_and_its_use_is_replaced() {
    let sim = sim().await;
    let zvm = zvm(&sim);
    let id = mounted(&sim, &zvm).await;
    sim.update(|switches| switches.download_token = DownloadToken::Needed);
    sim.add_fault(Fault::hold("GET", "/v1/downloads/*"));
    let expire = async {
        sim.wait_for(|view| view.held().count() == 1).await;
        sim.revoke_tokens();
        sim.let_go();
    };
    let (bytes, ()) = tokio::join!(bytes(&zvm, &id, &[CONFIG]), expire);
    assert_eq!(bytes.unwrap().len(), 158);
    unmounted(&zvm, &id).await;
}
