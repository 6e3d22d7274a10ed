#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::io::Read;
use std::time::Duration;

use common::{Zvm, column, fast, message, paths, start};
use serde_json::{Value, json};
use zvm_sim::scenario::{Entry, Partition};
use zvm_sim::switches::{
    BrowsePath, Damage, DownloadToken, DownloadUrl, FlrGet, FlrGone, Mount, Paging, SingleFile,
    Unmount, UnmountAnswer, UnmountRepeat, Vanishes,
};
use zvm_sim::{FlrState, Scenario};

const CONFIG: &str = "partition#0 Ext4/home/justin/app-config.yaml";

/// jp-ubuntu mounted at a fresh tag; answers with the session's path.
async fn mounted(zvm: &Zvm) -> String {
    let id = zvm.pin("jp-ubuntu", "before").await;
    zvm.mount("jp-ubuntu", "jp-ubuntu", &id).await
}

#[tokio::test]
async fn the_file_comes_back_as_it_was_when_the_tag_was_inserted() {
    let zvm = fast().await;
    let file = zvm
        .sim
        .guest_path("jp-ubuntu", "/home/justin/app-config.yaml")
        .unwrap();
    assert_eq!(std::fs::read(&file).unwrap().len(), 158);
    std::fs::write(&file, "edited once\n").unwrap();
    let id = zvm.pin("jp-ubuntu", "before the bad edit").await;
    std::fs::write(&file, "edited twice, badly\n").unwrap();
    zvm.sim.checkpoint_now("jp-ubuntu").await.unwrap();
    std::fs::remove_file(&file).unwrap();
    let without = zvm.sim.checkpoint_now("jp-ubuntu").await.unwrap();

    let session = zvm.mount("jp-ubuntu", "jp-ubuntu", &id).await;
    assert_eq!(zvm.download(&session, &[CONFIG]).await, b"edited once\n");
    zvm.delete(&session).await;
    zvm.wait(|world| world.sessions().is_empty()).await;

    let session = zvm.mount("jp-ubuntu", "jp-ubuntu", &without).await;
    let answer = zvm
        .post(
            &format!("{session}/download"),
            json!({ "pathList": [CONFIG] }),
        )
        .await;
    assert_eq!(message(answer).await.0, 404);
}

#[tokio::test]
async fn the_vpgs_of_a_vm_share_its_disks() {
    let zvm = fast().await;
    let file = zvm
        .sim
        .guest_path("app01", "/home/justin/notes.txt")
        .unwrap();
    std::fs::write(&file, "one").unwrap();
    let first = zvm.pin("app01-local", "one").await;
    std::fs::write(&file, "two").unwrap();
    let second = zvm.pin("app01-archive", "two").await;
    for (vpg, id, expected) in [
        ("app01-archive", &second, "two"),
        ("app01-local", &first, "one"),
    ] {
        let session = zvm.mount("app01", vpg, id).await;
        let bytes = zvm
            .download(&session, &["partition#1 Ext4/justin/notes.txt"])
            .await;
        assert_eq!(bytes, expected.as_bytes());
        zvm.delete(&session).await;
        zvm.wait(|world| world.sessions().is_empty()).await;
    }
}

#[tokio::test]
async fn browsing_goes_from_partitions_down() {
    let zvm = fast().await;
    let id = zvm.pin("app01-dr", "here").await;
    let session = zvm.mount("app01", "app01-dr", &id).await;
    let root = zvm.browse(&session, "").await;
    assert_eq!(root["MainPathItem"]["Type"], "Partition");
    assert_eq!(root["MainPathItem"]["Path"], "");
    assert_eq!(paths(&root), ["partition#0 Ext4", "partition#1 Ext4"]);
    let etc = zvm.browse(&session, "partition#0 Ext4/etc").await;
    assert_eq!(etc["MainPathItem"]["Type"], "Folder");
    let item = |name: &str| {
        let path = format!("partition#0 Ext4/etc/{name}");
        let items = etc["PathItems"].as_array().unwrap();
        items
            .iter()
            .find(|item| item["Path"] == path.as_str())
            .unwrap()
            .clone()
    };
    assert_eq!(
        (&item("hosts")["Type"], &item("hosts")["IsBrowsable"]),
        (&json!("File"), &json!(false))
    );
    assert_eq!(item("hosts")["DownloadInformation"]["IsDownloadable"], true);
    assert!(item("hosts")["SizeInBytes"].as_u64().unwrap() > 0);
    assert_eq!(
        (&item("nginx")["Type"], &item("nginx")["SizeInBytes"]),
        (&json!("Folder"), &Value::Null)
    );
    let link = item("mtab");
    assert_eq!(link["IsBrowsable"], false);
    assert_eq!(link["SizeInBytes"], Value::Null);
    assert_eq!(
        link["DownloadInformation"],
        json!({ "IsDownloadable": false, "AdditionalInformation": "Cannot restore. Links are not supported." })
    );
    let second = zvm.browse(&session, "partition#1 Ext4").await;
    assert!(paths(&second).contains(&"partition#1 Ext4/justin"));
}

#[tokio::test]
async fn paths_that_lead_nowhere() {
    let zvm = fast().await;
    let session = mounted(&zvm).await;
    for path in [
        "partition#0 Ext4/none",
        "partition#0 Ext4/etc/hosts/x",
        "partition#0 Ext4/etc/../etc",
        "partition#0 Ext4\\etc",
        "partition#0 Ext4//etc",
        "partition#7 Ext4/etc",
        "/etc",
        "partition#0 Ext4/etc/nginx/sites-enabled/app/x",
        "partition#0 Ext4/ETC",
    ] {
        let answer = zvm
            .post(&format!("{session}/browse"), json!({ "path": path }))
            .await;
        let (status, text) = message(answer).await;
        assert_eq!(status, 404, "{path}");
        assert!(text.contains(path.trim_start_matches('/')), "{text}");
    }
    let file = zvm
        .post(&format!("{session}/browse"), json!({ "path": CONFIG }))
        .await;
    assert_eq!(message(file).await.0, 400);
    for paths in [json!([]), json!([""]), json!(["partition#0 Ext4/etc/mtab"])] {
        let answer = zvm
            .post(&format!("{session}/download"), json!({ "pathList": paths }))
            .await;
        assert_eq!(message(answer).await.0, 400, "{paths}");
    }
}

#[tokio::test]
async fn pages() {
    let zvm = fast().await;
    let session = mounted(&zvm).await;
    let page = async |body: Value| {
        let body = zvm.posted(&format!("{session}/browse"), body).await;
        paths(&body)
            .iter()
            .map(|&path| path.to_owned())
            .collect::<Vec<_>>()
    };
    let path = "partition#0 Ext4/etc";
    let all = page(json!({ "path": path })).await;
    assert!(all.len() > 4);
    assert_eq!(
        page(json!({ "path": path, "pageSize": 3, "pageNumber": 1 })).await,
        all[..3]
    );
    assert_eq!(
        page(json!({ "Path": path, "PAGESIZE": 3, "pagenumber": 2 })).await,
        all[3..6]
    );
    assert!(
        page(json!({ "path": path, "pageSize": 3, "pageNumber": 99 }))
            .await
            .is_empty()
    );
    zvm.sim.update(|switches| switches.browse_page_base = 0);
    assert_eq!(
        page(json!({ "path": path, "pageSize": 3, "pageNumber": 1 })).await,
        all[3..6]
    );
    zvm.sim.update(|switches| switches.browse_page_max = 2);
    assert_eq!(
        page(json!({ "path": path, "pageSize": 100, "pageNumber": 0 })).await,
        all[..2]
    );
    zvm.sim.update(|switches| {
        switches.browse_page_max = 1000;
        switches.browse_page_size = Some(1);
    });
    assert_eq!(page(json!({ "path": path })).await, all[..1]);
    zvm.sim
        .update(|switches| switches.browse_paging = Paging::Ignored);
    assert_eq!(
        page(json!({ "path": path, "pageSize": 3, "pageNumber": 7 })).await,
        all
    );
}

#[tokio::test]
async fn item_paths_can_be_names_or_have_backslashes() {
    let zvm = fast().await;
    let session = mounted(&zvm).await;
    zvm.sim.update(|switches| {
        switches.browse_path = BrowsePath::Name;
        switches.link_type = "SymbolicLink".to_owned();
    });
    let etc = zvm.browse(&session, "partition#0 Ext4/etc").await;
    assert!(paths(&etc).contains(&"hosts"));
    assert!(column(&etc["PathItems"], "Type").contains(&"SymbolicLink"));
    zvm.sim
        .update(|switches| switches.browse_path = BrowsePath::Backslash);
    let etc = zvm.browse(&session, "partition#0 Ext4/etc").await;
    assert!(paths(&etc).contains(&"partition#0 Ext4\\etc\\hosts"));
}

#[tokio::test]
async fn names_in_any_script() {
    let mut scenario = Scenario::fast();
    let names = [
        "with space",
        "quote\"and'",
        "ünïcödé ☃",
        "back\\slash",
        "per%20cent",
        "plus+&=#?",
    ];
    let partition = &mut scenario.vm_mut("jp-ubuntu").unwrap().partitions[0];
    for name in names {
        partition
            .files
            .push(Entry::text(&format!("/odd/{name}"), name));
    }
    let zvm = start(scenario).await;
    let session = mounted(&zvm).await;
    let browsed = zvm.browse(&session, "partition#0 Ext4/odd").await;
    for name in names {
        let path = format!("partition#0 Ext4/odd/{name}");
        assert!(paths(&browsed).contains(&path.as_str()), "{name}");
        assert_eq!(zvm.download(&session, &[&path]).await, name.as_bytes());
    }
}

#[tokio::test]
async fn a_windows_guest_has_ntfs_partitions() {
    let mut scenario = Scenario::fast();
    let vm = scenario.vm_mut("jp-ubuntu").unwrap();
    vm.guest_os = "Microsoft Windows Server 2022 (64-bit)".to_owned();
    vm.partitions = vec![Partition {
        mount: "C:\\".to_owned(),
        filesystem: "NTFS".to_owned(),
        number: Some(1),
        folder: Some("C".to_owned()),
        files: vec![Entry::text("/Users/Justin/app.config", "x=1\r\n")],
        ..Partition::default()
    }];
    let zvm = start(scenario).await;
    let host = zvm
        .sim
        .guest_path("jp-ubuntu", "C:\\Users\\Justin\\app.config")
        .unwrap();
    assert!(host.ends_with("jp-ubuntu/C/Users/Justin/app.config"));
    assert_eq!(std::fs::read(host).unwrap(), b"x=1\r\n");
    let session = mounted(&zvm).await;
    assert_eq!(paths(&zvm.browse(&session, "").await), ["partition#1 NTFS"]);
    let bytes = zvm
        .download(&session, &["partition#1 NTFS/Users/Justin/app.config"])
        .await;
    assert_eq!(bytes, b"x=1\r\n");
}

#[tokio::test]
async fn a_single_file_is_sent_as_it_is_without_a_length() {
    let zvm = fast().await;
    let session = mounted(&zvm).await;
    let url = zvm.download_url(&session, &[CONFIG]).await;
    assert!(url.starts_with("v1/downloads/"), "{url}");
    let answer = zvm.fetch(&url).await;
    assert_eq!(answer.headers()["transfer-encoding"], "chunked");
    assert!(answer.headers().get("content-length").is_none());
    let disposition = answer.headers()["content-disposition"].to_str().unwrap();
    assert!(
        disposition.contains("filename=\"app-config.yaml\""),
        "{disposition}"
    );
    assert_eq!(answer.bytes().await.unwrap().len(), 158);
    zvm.sim.update(|switches| switches.download_length = true);
    let url = zvm.download_url(&session, &[CONFIG]).await;
    assert_eq!(zvm.fetch(&url).await.headers()["content-length"], "158");
}

fn unzip(bytes: Vec<u8>) -> Vec<(String, Vec<u8>)> {
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(bytes)).unwrap();
    (0..archive.len())
        .map(|index| {
            let mut member = archive.by_index(index).unwrap();
            let mut content = Vec::new();
            member.read_to_end(&mut content).unwrap();
            (member.name().unwrap().into_owned(), content)
        })
        .collect()
}

#[tokio::test]
async fn a_folder_is_sent_as_a_zip_without_its_links() {
    let zvm = fast().await;
    let session = mounted(&zvm).await;
    let members = unzip(
        zvm.download(&session, &["partition#0 Ext4/home/justin"])
            .await,
    );
    let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.contains(&"justin/app-config.yaml"));
    assert!(names.contains(&"justin/bin/deploy.sh"));
    assert!(names.contains(&"justin/Meeting notes – Q3 (draft).md"));
    assert!(!names.iter().any(|name| name.contains("current-config")));
    let (_, content) = members
        .iter()
        .find(|(name, _)| name == "justin/app-config.yaml")
        .unwrap();
    assert_eq!(content.len(), 158);
}

#[tokio::test]
async fn several_files_are_sent_as_a_zip() {
    let zvm = fast().await;
    let session = mounted(&zvm).await;
    let items = [
        CONFIG,
        "partition#0 Ext4/etc/hostname",
        "partition#0 Ext4/srv",
    ];
    let members = unzip(zvm.download(&session, &items).await);
    let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    for name in [
        "app-config.yaml",
        "hostname",
        "srv/app/app.db",
        "srv/backup/",
    ] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    zvm.sim
        .update(|switches| switches.single_file = SingleFile::Zip);
    let members = unzip(zvm.download(&session, &[CONFIG]).await);
    assert_eq!(members[0].0, "app-config.yaml");
}

#[tokio::test]
async fn a_download_url_works_once() {
    let zvm = fast().await;
    let session = mounted(&zvm).await;
    let url = zvm.download_url(&session, &[CONFIG]).await;
    assert_eq!(zvm.fetch(&url).await.status(), 200);
    assert_eq!(zvm.fetch(&url).await.status(), 404);
    zvm.sim
        .update(|switches| switches.download_single_use = false);
    let url = zvm.download_url(&session, &[CONFIG]).await;
    for _ in 0..2 {
        assert_eq!(zvm.fetch(&url).await.status(), 200);
    }
    zvm.sim
        .update(|switches| switches.download_lifetime = Duration::ZERO);
    let url = zvm.download_url(&session, &[CONFIG]).await;
    assert_eq!(zvm.fetch(&url).await.status(), 404);
}

#[tokio::test]
async fn a_download_url_has_many_forms() {
    let zvm = fast().await;
    let session = mounted(&zvm).await;
    let own = format!("{}/v1/downloads/", zvm.sim.url());
    for (form, start) in [
        (DownloadUrl::Relative, "v1/downloads/"),
        (DownloadUrl::LeadingSlash, "/v1/downloads/"),
        (DownloadUrl::Backslash, "v1\\downloads\\"),
        (DownloadUrl::Absolute, own.as_str()),
        (DownloadUrl::Foreign, "https://192.0.2.10/v1/downloads/"),
    ] {
        zvm.sim.update(|switches| switches.download_url = form);
        let url = zvm.download_url(&session, &[CONFIG]).await;
        assert!(url.starts_with(start), "{url}");
    }
}

#[tokio::test]
async fn a_download_url_can_want_the_token() {
    let zvm = fast().await;
    let session = mounted(&zvm).await;
    zvm.sim
        .update(|switches| switches.download_token = DownloadToken::Needed);
    let url = zvm.download_url(&session, &[CONFIG]).await;
    assert_eq!(zvm.fetch(&url).await.status(), 401);
    assert_eq!(zvm.get(&format!("/{url}")).await.status(), 200);
}

#[tokio::test]
async fn downloads_can_be_damaged() {
    let zvm = fast().await;
    let session = mounted(&zvm).await;
    let whole = zvm.download(&session, &[CONFIG]).await;
    for (damage, length) in [
        (Damage::Truncated, 157),
        (Damage::Longer, 159),
        (Damage::Wrong, 158),
    ] {
        zvm.sim.update(|switches| switches.download_damage = damage);
        let bytes = zvm.download(&session, &[CONFIG]).await;
        assert_eq!(bytes.len(), length);
        assert_ne!(bytes, whole);
    }
    zvm.sim
        .update(|switches| switches.download_damage = Damage::Cut);
    let url = zvm.download_url(&session, &[CONFIG]).await;
    assert!(zvm.fetch(&url).await.bytes().await.is_err());
    zvm.sim
        .update(|switches| switches.download_damage = Damage::Stalls);
    let url = zvm.download_url(&session, &[CONFIG]).await;
    let stalled =
        tokio::time::timeout(Duration::from_millis(200), zvm.fetch(&url).await.bytes()).await;
    assert!(stalled.is_err());
}

#[tokio::test]
async fn a_vm_is_mounted_once() {
    let zvm = fast().await;
    let id = zvm.pin("app01-local", "x").await;
    let other = zvm.pin("app01-dr", "x").await;
    let session = zvm.mount("app01", "app01-local", &id).await;
    let (status, text) = message(zvm.post_mount("app01", "app01-dr", &other).await).await;
    assert_eq!(status, 400);
    assert!(text.contains("already mounted"), "{text}");
    let rows = zvm
        .json(&format!("/v1/flrs?vmIdentifier={}", zvm.vm("app01")))
        .await;
    assert_eq!(column(&rows, "CheckpointIdentifier"), [id]);
    assert_eq!(
        column(&rows, "FlrSessionStatus"),
        ["MountCompletedSuccessfully"]
    );
    assert_eq!(
        zvm.json(&format!("/v1/flrs?vmIdentifier={}", zvm.vm("jp-ubuntu")))
            .await,
        json!([])
    );
    zvm.sim.update(|switches| switches.one_mount_per_vm = false);
    zvm.mount("app01", "app01-dr", &other).await;
    assert_eq!(zvm.sim.flr_sessions().len(), 2);
    zvm.delete(&session).await;
    zvm.wait(|world| world.sessions().len() == 1).await;
}

#[tokio::test]
async fn what_can_not_be_mounted() {
    let zvm = fast().await;
    let id = zvm.pin("jp-ubuntu", "x").await;
    assert_eq!(
        message(zvm.post_mount("jp-ubuntu", "jp-ubuntu", "999999999").await)
            .await
            .0,
        400
    );
    let (_, text) = message(zvm.post_mount("jp-ubuntu", "jp-ubuntu", "soon").await).await;
    assert_eq!(text, "failed parsing as a valid CheckPoint Identifier");
    assert_eq!(
        message(zvm.post_mount("app01", "jp-ubuntu", &id).await)
            .await
            .0,
        400
    );
    let web = zvm.pin("web-farm-a", "x").await;
    assert_eq!(
        message(zvm.post_mount("web-a", "web-farm-a", &web).await)
            .await
            .0,
        400,
        "no disk"
    );
    for body in [json!({}), json!({ "jflr": {} }), json!({ "bflr": null })] {
        assert_eq!(message(zvm.post("/v1/flrs", body).await).await.0, 400);
    }
    zvm.sim
        .update(|switches| switches.vpg_mut("jp-ubuntu").flr_enabled = Some(false));
    let rows = zvm.json("/v1/vms?vmName=jp-ubuntu").await;
    assert_eq!(rows[0]["EnabledActions"]["IsFlrEnabled"], false);
    assert_eq!(
        message(zvm.post_mount("jp-ubuntu", "jp-ubuntu", &id).await)
            .await
            .0,
        400
    );
}

#[tokio::test]
async fn a_mount_takes_its_time_and_shows_in_a_task_and_in_the_tag() {
    let zvm = fast().await;
    zvm.sim.update(|switches| {
        switches.mount = Mount::Hangs;
        switches.mounting_status = Some("PreparingDisks".to_owned());
    });
    let id = zvm.pin("jp-ubuntu", "mine").await;
    let session: String = zvm
        .post_mount("jp-ubuntu", "jp-ubuntu", &id)
        .await
        .json()
        .await
        .unwrap();
    let path = format!("/v1/flrs/{session}");
    let shown = zvm.json(&path).await;
    assert_eq!(shown[0]["FlrSessionStatus"], "PreparingDisks");
    assert_eq!(shown[0]["FlrSessionType"], "jflr");
    assert_eq!(shown[0]["CheckpointIdentifier"], id);
    let early = zvm
        .post(&format!("{path}/browse"), json!({ "path": "" }))
        .await;
    assert_eq!(message(early).await.0, 400);
    let tasks = zvm.json("/v1/tasks?type=FlrJournalMount").await;
    assert_eq!(tasks[0]["Status"]["State"], 1);
    let related = tasks[0]["RelatedEntities"]["FlrSessions"][0]["identifier"]
        .as_str()
        .unwrap();
    assert_eq!(session.split('.').next(), Some(related));
    assert_eq!(
        zvm.delete(&path).await.status(),
        200,
        "a mount can be given up"
    );
    zvm.wait(|world| world.sessions().is_empty()).await;
    assert_eq!(
        zvm.sim.journal("jp-ubuntu")[0].tag,
        "mine",
        "it was never used"
    );

    zvm.sim.update(|switches| switches.mount = Mount::Succeeds);
    zvm.mount("jp-ubuntu", "jp-ubuntu", &id).await;
    let rows = zvm.json(&zvm.checkpoints("jp-ubuntu")).await;
    let row = rows
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["CheckpointIdentifier"] == id.as_str());
    assert_eq!(row.unwrap()["Tag"], "mine; Used for File Level Restore");
}

#[tokio::test]
async fn a_mount_can_fail() {
    let zvm = fast().await;
    zvm.sim.update(|switches| {
        switches.vpg_mut("jp-ubuntu").mount = Some(Mount::Fails);
        switches.flr_get = FlrGet::Object;
    });
    let id = zvm.pin("jp-ubuntu", "x").await;
    let session: String = zvm
        .post_mount("jp-ubuntu", "jp-ubuntu", &id)
        .await
        .json()
        .await
        .unwrap();
    zvm.wait(|world| {
        world
            .sessions()
            .iter()
            .any(|own| own.state == FlrState::MountFailed)
    })
    .await;
    let shown = zvm.json(&format!("/v1/flrs/{session}")).await;
    assert_eq!(shown["FlrSessionStatus"], "MountFailed");
    assert_eq!(
        zvm.json("/v1/tasks?type=FlrJournalMount").await[0]["Status"]["State"],
        4
    );
}

#[tokio::test]
async fn sessions_can_vanish() {
    let zvm = fast().await;
    let id = zvm.pin("jp-ubuntu", "x").await;
    for vanishes in [Vanishes::AtBrowse, Vanishes::AtDownload] {
        zvm.sim
            .update(|switches| switches.session_vanishes = vanishes);
        let session = zvm.mount("jp-ubuntu", "jp-ubuntu", &id).await;
        if vanishes == Vanishes::AtDownload {
            zvm.browse(&session, "").await;
        }
        let what = if vanishes == Vanishes::AtBrowse {
            "browse"
        } else {
            "download"
        };
        let body = json!({ "path": "", "pathList": [CONFIG] });
        assert_eq!(
            message(zvm.post(&format!("{session}/{what}"), body).await)
                .await
                .0,
            404
        );
        assert!(zvm.sim.flr_sessions().is_empty());
    }
    zvm.sim
        .update(|switches| switches.session_vanishes = Vanishes::WhenMounted);
    let answer = zvm.post_mount("jp-ubuntu", "jp-ubuntu", &id).await;
    assert_eq!(answer.status(), 200);
    zvm.wait(|world| world.sessions().is_empty()).await;
}

#[tokio::test]
async fn unmounting_is_a_task() {
    let zvm = fast().await;
    let session = mounted(&zvm).await;
    let answer = zvm.delete(&session).await;
    let task: String = answer.json().await.unwrap();
    zvm.wait(|world| world.sessions().is_empty()).await;
    assert_eq!(zvm.task(&task).await["Type"], "FlrJournalUnmount");
    assert_eq!(zvm.get(&session).await.status(), 404);
    assert_eq!(zvm.delete(&session).await.status(), 404);
    zvm.sim.update(|switches| {
        switches.flr_gone = FlrGone::EmptyList;
        switches.unmount_repeat = UnmountRepeat::Accepted;
    });
    assert_eq!(zvm.json(&session).await, json!([]));
    assert_eq!(zvm.delete(&session).await.status(), 200);
}

#[tokio::test]
async fn unmounting_is_answered_in_many_ways() {
    let zvm = fast().await;
    let id = zvm.pin("jp-ubuntu", "x").await;
    for (answer, status, body) in [
        (UnmountAnswer::EmptyString, 200, "\"\""),
        (UnmountAnswer::Empty, 200, ""),
        (UnmountAnswer::NoContent, 204, ""),
    ] {
        zvm.sim.update(|switches| switches.unmount_answer = answer);
        let session = zvm.mount("jp-ubuntu", "jp-ubuntu", &id).await;
        let got = zvm.delete(&session).await;
        assert_eq!(got.status(), status);
        assert_eq!(got.text().await.unwrap(), body);
        zvm.wait(|world| world.sessions().is_empty()).await;
    }
}

#[tokio::test]
async fn unmounting_can_be_refused_fail_or_hang() {
    let zvm = fast().await;
    let session = mounted(&zvm).await;
    zvm.sim
        .update(|switches| switches.unmount = Unmount::Refused);
    assert_eq!(message(zvm.delete(&session).await).await.0, 400);
    zvm.sim.update(|switches| switches.unmount = Unmount::Fails);
    assert_eq!(zvm.delete(&session).await.status(), 200);
    zvm.wait(|world| world.sessions()[0].state == FlrState::UnmountFailed)
        .await;
    zvm.sim.update(|switches| switches.unmount = Unmount::Hangs);
    assert_eq!(zvm.delete(&session).await.status(), 200);
    assert_eq!(
        zvm.json(&session).await[0]["FlrSessionStatus"],
        "UnmountInProgress"
    );
}

#[tokio::test]
async fn a_restart_forgets_sessions() {
    let mut zvm = fast().await;
    let session = mounted(&zvm).await;
    zvm.sim.restart();
    zvm.login().await;
    assert_eq!(zvm.get(&session).await.status(), 404);
}

#[tokio::test]
async fn a_session_keeps_its_view_while_the_journal_moves_on() {
    let zvm = fast().await;
    let before = std::fs::read(zvm.sim.guest_path("jp-ubuntu", "/etc/hostname").unwrap()).unwrap();
    let session = mounted(&zvm).await;
    std::fs::write(
        zvm.sim.guest_path("jp-ubuntu", "/etc/hostname").unwrap(),
        "other\n",
    )
    .unwrap();
    zvm.sim.update(|switches| {
        switches.vpg_mut("jp-ubuntu").history = Some(Duration::from_millis(1));
    });
    zvm.wait(|world| world.journal("jp-ubuntu").is_empty())
        .await;
    zvm.sim.checkpoint_now("jp-ubuntu").await.unwrap();
    assert_eq!(
        zvm.download(&session, &["partition#0 Ext4/etc/hostname"])
            .await,
        before
    );
}

#[tokio::test]
async fn a_running_download_is_counted_and_ends_with_its_client() {
    let zvm = fast().await;
    // More than what waits in buffers between disk and client.
    let content = [7, 1, 3, 0].repeat(4 * 1024 * 1024);
    let host = zvm.sim.guest_path("jp-ubuntu", "/srv/large").unwrap();
    std::fs::write(host, &content).unwrap();
    let session = mounted(&zvm).await;
    let url = zvm
        .download_url(&session, &["partition#0 Ext4/srv/large"])
        .await;
    let answer = zvm.fetch(&url).await;
    zvm.wait(|world| world.sessions()[0].downloads == 1).await;
    assert_eq!(
        zvm.json(&session).await[0]["NumberOfRelatedRunningTasks"],
        1
    );
    drop(answer);
    zvm.wait(|world| world.sessions()[0].downloads == 0).await;
    let bytes = zvm
        .download(&session, &["partition#0 Ext4/srv/large"])
        .await;
    assert!(bytes == content);
    let record = zvm
        .sim
        .requests()
        .into_iter()
        .rfind(|own| own.is("GET", "/v1/downloads"))
        .unwrap();
    assert_eq!(record.response_bytes, 16 * 1024 * 1024);
}
