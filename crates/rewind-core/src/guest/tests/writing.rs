use super::*;
use sshd::{is_root, skipped};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

fn chmod(file: &Path, mode: u32) {
    fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn a_file_is_put_beside_the_present_one_with_its_owner_and_mode() {
    let Some(room) = room() else { return };
    room.put("/srv/app.yaml", b"now");
    chmod(&room.host("/srv/app.yaml"), 0o640);
    let connection = room.connect().await;
    let planned = planned(&connection, "/srv/app.yaml", Restore::Beside)
        .await
        .unwrap();
    assert_eq!(planned.to, "/srv/app.yaml.zerto-1197");
    assert_eq!(planned.present.as_ref().unwrap().sha256, sha256(b"now"));
    let placed = place(&connection, &planned, &content(b"then"))
        .await
        .unwrap();
    assert!(!placed.unchanged && placed.notes.is_empty(), "{placed:?}");
    let beside = room.host("/srv/app.yaml.zerto-1197");
    assert_eq!(room.files("/srv").len(), 2);
    assert_eq!(
        (room.read("/srv/app.yaml"), fs::read(&beside).unwrap()),
        (b"now".to_vec(), b"then".to_vec())
    );
    assert_eq!(attributes(&beside), attributes(&room.host("/srv/app.yaml")));
    assert_eq!(modified(&beside), 1_700_000_000);
    // The same once more is no change, and something else there stays.
    assert!(
        place(&connection, &planned, &content(b"then"))
            .await
            .unwrap()
            .unchanged
    );
    let error = place(&connection, &planned, &content(b"else"))
        .await
        .unwrap_err();
    assert!(matches!(error, GuestError::Conflict(_)), "{error}");
    assert_eq!(fs::read(&beside).unwrap(), b"then");
}

#[tokio::test]
async fn a_file_is_replaced_and_what_was_there_is_kept_as_it_was() {
    let Some(room) = room() else { return };
    room.put("/srv/app.yaml", b"now");
    let file = room.host("/srv/app.yaml");
    chmod(&file, 0o4640);
    let (inode, before) = (fs::metadata(&file).unwrap().ino(), attributes(&file));
    let connection = room.connect().await;
    let planned = planned(&connection, "/srv/app.yaml", Restore::Replace)
        .await
        .unwrap();
    let kept = planned.kept.clone().unwrap();
    assert!(kept.starts_with("/srv/app.yaml.zerto-replaced-"), "{kept}");
    place(&connection, &planned, &content(b"then"))
        .await
        .unwrap();
    assert_eq!(room.read("/srv/app.yaml"), b"then");
    assert_eq!(
        (attributes(&file), modified(&file)),
        (before, 1_700_000_000)
    );
    assert_eq!(room.read(&kept), b"now");
    // The very file: with its attributes, its other names, and whatever else belongs to it.
    assert_eq!(fs::metadata(room.host(&kept)).unwrap().ino(), inode);
    assert_eq!(room.files("/srv").len(), 2);
}

#[tokio::test]
async fn without_hard_links_a_copy_is_kept() {
    let Some(room) = room() else { return };
    room.put("/srv/app.yaml", &vec![7; 300_000]);
    chmod(&room.host("/srv/app.yaml"), 0o600);
    room.sshd.control("without hardlink@openssh.com\n");
    let connection = room.connect().await;
    let planned = planned(&connection, "/srv/app.yaml", Restore::Replace)
        .await
        .unwrap();
    let kept = planned.kept.clone().unwrap();
    place(&connection, &planned, &content(b"then"))
        .await
        .unwrap();
    assert_eq!(
        (room.read("/srv/app.yaml"), room.read(&kept)),
        (b"then".to_vec(), vec![7; 300_000])
    );
    assert_eq!(attributes(&room.host(&kept)).mode, 0o600);
}

#[tokio::test]
async fn what_a_server_lacks_is_said() {
    let Some(room) = room() else { return };
    room.put("/srv/app.yaml", b"now");
    room.sshd
        .control("without posix-rename@openssh.com\nwithout fsync@openssh.com\n");
    let connection = room.connect().await;
    let error = planned(&connection, "/srv/app.yaml", Restore::Replace)
        .await
        .unwrap_err();
    assert!(matches!(error, GuestError::Unsupported(_)), "{error}");
    let beside = planned(&connection, "/srv/app.yaml", Restore::Beside)
        .await
        .unwrap();
    let placed = place(&connection, &beside, &content(b"then"))
        .await
        .unwrap();
    assert!(
        placed.notes.iter().any(|note| note.contains("power cut")),
        "{placed:?}"
    );
}

#[tokio::test]
async fn a_file_that_is_gone_comes_back_for_its_folders_owner_alone() {
    let Some(room) = room() else { return };
    let connection = room.connect().await;
    let planned = planned(&connection, "/srv/gone.conf", Restore::Replace)
        .await
        .unwrap();
    assert_eq!(
        (planned.present.as_ref(), planned.kept.as_ref()),
        (None, None)
    );
    let folder = attributes(&room.host("/srv"));
    assert_eq!(
        planned.attributes,
        Attributes {
            mode: 0o600,
            ..folder
        }
    );
    place(&connection, &planned, &content(b"then"))
        .await
        .unwrap();
    assert_eq!(room.read("/srv/gone.conf"), b"then");
    assert_eq!(attributes(&room.host("/srv/gone.conf")), planned.attributes);
    // What has appeared meanwhile is not overwritten.
    let error = place(&connection, &planned, &content(b"other"))
        .await
        .unwrap_err();
    assert!(matches!(error, GuestError::Conflict(_)), "{error}");
}

#[tokio::test]
async fn what_has_changed_since_it_was_agreed_to_is_a_conflict() {
    let Some(room) = room() else { return };
    let file = room.host("/srv/app.yaml");
    let connection = room.connect().await;
    let changes: [(&str, &dyn Fn()); 5] = [
        ("content of the same size", &|| {
            room.put("/srv/app.yaml", b"NOW")
        }),
        ("other size", &|| {
            room.put("/srv/app.yaml", b"now, and more")
        }),
        ("other mode", &|| chmod(&file, 0o666)),
        ("gone", &|| fs::remove_file(&file).unwrap()),
        ("a link", &|| {
            fs::remove_file(&file).unwrap();
            std::os::unix::fs::symlink("/etc/passwd", &file).unwrap();
        }),
    ];
    for (what, change) in changes {
        let _ = fs::remove_file(&file);
        room.put("/srv/app.yaml", b"now");
        chmod(&file, 0o644);
        let planned = planned(&connection, "/srv/app.yaml", Restore::Replace)
            .await
            .unwrap();
        change();
        let before = (
            fs::symlink_metadata(&file)
                .ok()
                .map(|found| found.file_type()),
            fs::read(&file).ok(),
        );
        let error = place(&connection, &planned, &content(b"then"))
            .await
            .unwrap_err();
        assert!(matches!(error, GuestError::Conflict(_)), "{what}: {error}");
        let after = (
            fs::symlink_metadata(&file)
                .ok()
                .map(|found| found.file_type()),
            fs::read(&file).ok(),
        );
        assert_eq!(before, after, "{what}");
        let left: Vec<_> = room
            .files("/srv")
            .into_keys()
            .filter(|name| name != "app.yaml")
            .collect();
        assert!(left.is_empty(), "{what}: {left:?}");
    }
}

#[tokio::test]
async fn links_folders_and_devices_are_in_the_way() {
    let Some(room) = room() else { return };
    room.put("/srv/real", b"x");
    std::os::unix::fs::symlink("real", room.host("/srv/link")).unwrap();
    std::os::unix::fs::symlink("srv", room.host("/other")).unwrap();
    fs::create_dir(room.host("/srv/folder")).unwrap();
    let connection = room.connect().await;
    for path in [
        "/srv/link",
        "/srv/folder",
        "/other/real",
        "/nowhere/real",
        "/srv/real/x",
    ] {
        for restore in [Restore::Beside, Restore::Replace] {
            let error = planned(&connection, path, restore).await.unwrap_err();
            assert!(matches!(error, GuestError::Conflict(_)), "{path}: {error}");
        }
    }
}

#[tokio::test]
async fn no_shell_sees_a_name() {
    let Some(room) = room() else { return };
    let connection = room.connect().await;
    for name in [
        "with space",
        "-rf",
        "--",
        "it's",
        "\"quoted\"",
        "$(touch x)",
        "`touch x`",
        "a;touch x",
        "new\nline",
        "tab\tand \\ back",
        "*",
        "ü ☃ 日本",
        "~",
        "#x",
        "{a,b}",
    ] {
        let path = format!("/srv/{name}");
        room.put(&path, b"now");
        let replace = planned(&connection, &path, Restore::Replace).await.unwrap();
        place(&connection, &replace, &content(b"then"))
            .await
            .unwrap();
        assert_eq!(room.read(&path), b"then", "{name:?}");
        assert_eq!(
            room.read(replace.kept.as_ref().unwrap()),
            b"now",
            "{name:?}"
        );
        let beside = planned(&connection, &path, Restore::Beside).await.unwrap();
        place(&connection, &beside, &content(b"beside"))
            .await
            .unwrap();
        assert_eq!(room.read(&beside.to), b"beside", "{name:?}");
        for file in [&path, &beside.to, replace.kept.as_ref().unwrap()] {
            fs::remove_file(room.host(file)).unwrap();
        }
        assert!(
            room.files("/srv").is_empty(),
            "{name:?}: {:?}",
            room.files("/srv").keys()
        );
    }
}

#[tokio::test]
async fn a_long_name_is_cut_where_something_is_added() {
    let Some(room) = room() else { return };
    let path = format!("/srv/{}", "n".repeat(255));
    room.put(&path, b"now");
    let connection = room.connect().await;
    for restore in [Restore::Beside, Restore::Replace] {
        let planned = planned(&connection, &path, restore).await.unwrap();
        place(&connection, &planned, &content(b"then"))
            .await
            .unwrap();
    }
    assert_eq!(room.files("/srv").len(), 3);
}

#[tokio::test]
async fn large_and_sparse_files_arrive_whole() {
    let Some(room) = room() else { return };
    let connection = room.connect().await;
    // An odd size, so that the last piece is a short one.
    let large: Vec<u8> = (0..3_000_001_u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    room.put("/srv/large", &large);
    let planned_large = planned(&connection, "/srv/large", Restore::Beside)
        .await
        .unwrap();
    assert_eq!(
        planned_large.present.as_ref().unwrap().sha256,
        sha256(&large)
    );
    let other: Vec<u8> = large.iter().rev().copied().collect();
    place(&connection, &planned_large, &content(&other))
        .await
        .unwrap();
    assert_eq!(room.read(&planned_large.to), other);

    let (size, middle) = (64 * 1024 * 1024, 20 * 1024 * 1024);
    let mut sparse = vec![0; size];
    sparse[middle] = 1;
    let planned = planned(&connection, "/srv/sparse", Restore::Replace)
        .await
        .unwrap();
    place(&connection, &planned, &content(&sparse))
        .await
        .unwrap();
    assert!(room.read("/srv/sparse") == sparse);
    let blocks = fs::metadata(room.host("/srv/sparse")).unwrap().blocks() * 512;
    assert!(blocks < size as u64 / 8, "{blocks} bytes on the disk");
    place(
        &connection,
        &planned_empty(&connection).await,
        &content(b""),
    )
    .await
    .unwrap();
    assert_eq!(room.read("/srv/empty"), b"");
}

async fn planned_empty(connection: &Connection) -> InGuest {
    planned(connection, "/srv/empty", Restore::Replace)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_write_that_finds_no_room_leaves_nothing() {
    let Some(room) = room() else { return };
    room.put("/srv/app.yaml", b"now");
    // A limit on the size of files breaks a write in the middle, as a full disk does.
    room.sshd
        .server(Some("trap '' XFSZ; ulimit -f 64; exec \"$SERVER\""));
    let connection = room.connect().await;
    for restore in [Restore::Beside, Restore::Replace] {
        let planned = planned(&connection, "/srv/app.yaml", restore)
            .await
            .unwrap();
        let error = place(&connection, &planned, &content(&vec![1; 2_000_000]))
            .await
            .unwrap_err();
        assert!(matches!(error, GuestError::Failed(_)), "{error}");
        assert_eq!(
            room.files("/srv").into_iter().collect::<Vec<_>>(),
            [("app.yaml".to_owned(), b"now".to_vec())]
        );
    }
}

#[tokio::test]
async fn a_full_disk_is_named_before_anything_is_written() {
    let Some(room) = room() else { return };
    let full = room.host("/full");
    fs::create_dir(&full).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k", "none"])
        .arg(&full)
        .output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        return skipped("a full disk, because nothing can be mounted here");
    }
    struct Unmounted(PathBuf);
    impl Drop for Unmounted {
        fn drop(&mut self) {
            let _ = std::process::Command::new("umount").arg(&self.0).status();
        }
    }
    let _unmounted = Unmounted(full);
    room.put("/full/app.yaml", b"now");
    let connection = room.connect().await;
    let planned = planned(&connection, "/full/app.yaml", Restore::Replace)
        .await
        .unwrap();
    let error = place(&connection, &planned, &content(&vec![1; 400_000]))
        .await
        .unwrap_err();
    assert!(matches!(error, GuestError::NoRoom(_)), "{error}");
    assert_eq!(room.files("/full").len(), 1);
    // With less than a piece left, a failed write is known for what it is.
    room.put("/full/filler", &vec![1; 200_000]);
    room.sshd.control("without statvfs@openssh.com\n");
    let blind = room.connect().await;
    let error = place(&blind, &planned, &content(&vec![1; 90_000]))
        .await
        .unwrap_err();
    assert!(matches!(error, GuestError::Failed(_)), "{error}");
    assert_eq!(room.files("/full").len(), 2);
    assert_eq!(room.read("/full/app.yaml"), b"now");
}

#[tokio::test]
async fn without_permission_nothing_is_touched() {
    let Some(room) = room() else { return };
    room.put("/srv/app.yaml", b"now");
    chmod(room.disk.path(), 0o755);
    if is_root() {
        // Whoever may do everything has to become somebody else.
        room.sshd.server(Some(
            "exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$SERVER\"",
        ));
    } else {
        chmod(&room.host("/srv"), 0o555);
    }
    let connection = room.connect().await;
    for restore in [Restore::Beside, Restore::Replace] {
        let planned = planned(&connection, "/srv/app.yaml", restore)
            .await
            .unwrap();
        let error = place(&connection, &planned, &content(b"then"))
            .await
            .unwrap_err();
        assert!(matches!(error, GuestError::Denied(_)), "{error}");
        assert!(crate::Error::from(error).next.contains("sudo"));
    }
    chmod(&room.host("/srv/app.yaml"), 0o000);
    let error = planned(&connection, "/srv/app.yaml", Restore::Beside)
        .await
        .unwrap_err();
    assert!(matches!(error, GuestError::Denied(_)), "{error}");
    chmod(&room.host("/srv"), 0o755);
    assert_eq!(room.files("/srv").len(), 1);
}

#[tokio::test]
async fn who_cannot_give_a_file_away_keeps_a_copy_private_and_replaces_nothing() {
    let Some(room) = room() else { return };
    if !is_root() {
        return skipped("files of another user, because only root can make them");
    }
    room.put("/srv/app.yaml", b"now");
    chmod(&room.host("/srv/app.yaml"), 0o664);
    chmod(room.disk.path(), 0o755);
    chmod(&room.host("/srv"), 0o777);
    room.sshd.server(Some(
        "exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$SERVER\"",
    ));
    let connection = room.connect().await;
    let replace = planned(&connection, "/srv/app.yaml", Restore::Replace)
        .await
        .unwrap();
    let error = place(&connection, &replace, &content(b"then"))
        .await
        .unwrap_err();
    assert!(matches!(error, GuestError::Denied(_)), "{error}");
    assert_eq!(
        room.files("/srv").into_iter().collect::<Vec<_>>(),
        [("app.yaml".to_owned(), b"now".to_vec())]
    );
    let beside = planned(&connection, "/srv/app.yaml", Restore::Beside)
        .await
        .unwrap();
    let placed = place(&connection, &beside, &content(b"then"))
        .await
        .unwrap();
    assert!(
        placed
            .notes
            .iter()
            .any(|note| note.contains("nobody else may read it")),
        "{placed:?}"
    );
    let made = attributes(&room.host(&beside.to));
    assert_eq!((made.owner, made.mode), (65534, 0o600));
}

#[tokio::test]
async fn a_file_of_somebody_else_stays_theirs() {
    let Some(room) = room() else { return };
    if !is_root() {
        return skipped("files of another user, because only root can make them");
    }
    room.put("/srv/app.yaml", b"now");
    let file = room.host("/srv/app.yaml");
    std::os::unix::fs::chown(&file, Some(65534), Some(1)).unwrap();
    chmod(&file, 0o6751);
    let before = attributes(&file);
    let connection = room.connect().await;
    for restore in [Restore::Beside, Restore::Replace] {
        let planned = planned(&connection, "/srv/app.yaml", restore)
            .await
            .unwrap();
        place(&connection, &planned, &content(b"then"))
            .await
            .unwrap();
        assert_eq!(attributes(&room.host(&planned.to)), before, "{restore:?}");
        if let Some(kept) = &planned.kept {
            assert_eq!(attributes(&room.host(kept)), before);
        }
    }
}

#[tokio::test]
async fn the_systems_own_sudo_is_asked_for_no_password() {
    let Some(room) = room() else { return };
    let sudo = std::process::Command::new("sudo")
        .args(["-n", "true"])
        .output();
    if !sudo.is_ok_and(|output| output.status.success()) {
        return skipped("the system's own sudo, because it wants a password or is not there");
    }
    // Behind it are the paths of this host.
    let folder = fs::canonicalize(room.host("/srv")).unwrap();
    let path = format!("{}/app.yaml", folder.display());
    room.put("/srv/app.yaml", b"now");
    let with_sudo = Guest {
        sudo: true,
        ..guest(&room.sshd)
    };
    let connection = Connection::open(&with_sudo).await.unwrap();
    let planned = planned(&connection, &path, Restore::Replace).await.unwrap();
    place(&connection, &planned, &content(b"then"))
        .await
        .unwrap();
    assert_eq!(room.read("/srv/app.yaml"), b"then");
    assert_eq!(fs::read(planned.kept.unwrap()).unwrap(), b"now");
}

#[tokio::test]
async fn with_sudo_the_server_is_run_by_it() {
    let Some(room) = room() else { return };
    room.put("/srv/app.yaml", b"now");
    let said = room.sshd.folder().join("sudo-said");
    let server = room.sshd.program(
        "test-sftp-server",
        &format!("#!/bin/sh\n{}", room.sshd.server_line()),
    );
    room.sshd.program(
        "sudo",
        &format!(
            "#!/bin/sh\nprintf '%s\\n' \"$@\" >>{}\nshift 2\nexec \"$@\"\n",
            said.display()
        ),
    );
    let with_sudo = Guest {
        sudo: true,
        sftp_server: Some(server.to_str().unwrap().to_owned()),
        ..guest(&room.sshd)
    };
    let connection = Connection::open(&with_sudo).await.unwrap();
    let planned = planned(&connection, "/srv/app.yaml", Restore::Replace)
        .await
        .unwrap();
    place(&connection, &planned, &content(b"then"))
        .await
        .unwrap();
    assert_eq!(room.read("/srv/app.yaml"), b"then");
    assert_eq!(
        fs::read_to_string(&said).unwrap(),
        format!("-n\n--\n{}\n", server.display())
    );
    // Where no path is configured, the usual ones are tried.
    fs::remove_file(&said).unwrap();
    let usual = Guest {
        sftp_server: None,
        ..with_sudo
    };
    Connection::open(&usual).await.unwrap();
    assert!(fs::read_to_string(&said).unwrap().contains("sftp-server"));
    // A sudo that wants a password is no way in.
    room.sshd.program(
        "sudo",
        "#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n",
    );
    let error = Connection::open(&usual).await.err().unwrap();
    assert!(matches!(error, GuestError::Sudo(_)), "{error}");
}
