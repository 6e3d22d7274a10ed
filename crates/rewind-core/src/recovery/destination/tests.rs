use super::{super::folders::STALE, *};

const SOURCE: Naming<'static> = Naming {
    vm: "app01",
    checkpoint: 7,
    folders: &[],
    name: "hosts",
    several: false,
};

fn inside(root: &Path, destination: Option<&str>) -> Result<PathBuf, Error> {
    let target = Target::new(
        &Destination::InRecoverDir(destination.map(str::to_owned)),
        root,
        &SOURCE,
    )?;
    Ok(target.path().strip_prefix(root).unwrap().to_owned())
}

#[test]
fn the_default_names_vm_and_checkpoint() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(
        inside(root.path(), None).unwrap(),
        Path::new("app01/7/hosts")
    );
    let odd = Naming {
        vm: "../a/b\u{202E}:c ",
        ..SOURCE
    };
    let target = Target::new(&Destination::InRecoverDir(None), root.path(), &odd).unwrap();
    assert_eq!(target.path(), root.path().join("_a_b_c/7/hosts"));
}

#[test]
fn the_default_keeps_the_guests_folders_apart() {
    let root = tempfile::tempdir().unwrap();
    let lands = |folders: &[&str]| {
        let folders: Vec<String> = folders.iter().map(|&name| name.to_owned()).collect();
        let source = Naming {
            folders: &folders,
            ..SOURCE
        };
        let target = Target::new(&Destination::InRecoverDir(None), root.path(), &source).unwrap();
        target.path().strip_prefix(root.path()).unwrap().to_owned()
    };
    assert_eq!(lands(&["etc", ".d"]), Path::new("app01/7/etc/.d/hosts"));
    assert_eq!(
        lands(&["partition#0 Ext4", "a\n", ".."]),
        Path::new("app01/7/partition#0 Ext4/a_/_/hosts")
    );
}

#[test]
fn a_destination_is_a_folder_or_a_new_name() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("there")).unwrap();
    for (destination, path) in [
        ("new/", "new/hosts"),
        ("there", "there/hosts"),
        ("a/b", "a/b"),
        ("a//ü b", "a/ü b"),
        (" ", "app01/7/hosts"),
    ] {
        assert_eq!(
            inside(root.path(), Some(destination)).unwrap(),
            Path::new(path),
            "{destination}"
        );
    }
}

#[test]
fn nothing_leads_out_of_the_recovery_folder() {
    let root = tempfile::tempdir().unwrap();
    for destination in [
        "..",
        "../x",
        "a/../../x",
        "/etc/x",
        "C:x",
        "a\\..\\b",
        "./x",
        "a\nb",
    ] {
        let error = inside(root.path(), Some(destination)).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument, "{destination}");
    }
    let long = "x".repeat(300);
    assert!(inside(root.path(), Some(&long)).is_err());
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_out_is_refused() {
    let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::os::unix::fs::symlink(other.path(), root.path().join("out")).unwrap();
    fs::create_dir(root.path().join("real")).unwrap();
    std::os::unix::fs::symlink(root.path().join("real"), root.path().join("in")).unwrap();
    std::os::unix::fs::symlink("nowhere", root.path().join("broken")).unwrap();
    for destination in ["out/x", "out/", "out/a/b", "broken/x"] {
        let error = inside(root.path(), Some(destination)).unwrap_err();
        assert_eq!(error.code, ErrorCode::DestinationUnusable, "{destination}");
    }
    assert!(inside(root.path(), Some("in/x")).is_ok());
    assert_eq!(
        inside(root.path(), Some("broken")).unwrap_err().code,
        ErrorCode::DestinationExists
    );
}

#[test]
fn what_exists_is_never_replaced() {
    let root = tempfile::tempdir().unwrap();
    let target = |name: &str| {
        Target::new(
            &Destination::Folder(root.path().to_owned()),
            root.path(),
            &Naming { name, ..SOURCE },
        )
    };
    fs::write(root.path().join("hosts"), "mine").unwrap();
    assert_eq!(
        target("hosts").unwrap_err().code,
        ErrorCode::DestinationExists
    );

    // Somebody is quicker.
    let mut place = target("late").unwrap().prepare().unwrap();
    let file = tempfile::NamedTempFile::new_in(place.folder()).unwrap();
    fs::write(root.path().join("late"), "mine").unwrap();
    assert_eq!(
        place.keep_file(file).unwrap_err().code,
        ErrorCode::DestinationExists
    );
    assert_eq!(
        fs::read_to_string(root.path().join("late")).unwrap(),
        "mine"
    );

    drop(place);

    let mut place = target("folder").unwrap().prepare().unwrap();
    let folder = tempfile::tempdir_in(place.folder()).unwrap();
    fs::create_dir(root.path().join("folder")).unwrap();
    assert_eq!(
        place.keep_folder(folder).unwrap_err().code,
        ErrorCode::DestinationExists
    );
    drop(place);
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 3);
}

#[test]
fn folders_that_were_made_for_nothing_go_again() {
    let root = tempfile::tempdir().unwrap();
    let recover_dir = root.path().join("recovered/here");
    let place = || {
        Target::new(&Destination::InRecoverDir(None), &recover_dir, &SOURCE)
            .unwrap()
            .prepare()
            .unwrap()
    };
    drop(place());
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    let mut kept = place();
    let path = kept
        .keep_file(tempfile::NamedTempFile::new_in(kept.folder()).unwrap())
        .unwrap();
    drop(kept);
    assert!(path.is_file());
}

#[cfg(unix)]
#[test]
fn what_is_made_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let root = tempfile::tempdir().unwrap();
    let mut place = Target::new(&Destination::InRecoverDir(None), root.path(), &SOURCE)
        .unwrap()
        .prepare()
        .unwrap();
    let path = place
        .keep_file(tempfile::NamedTempFile::new_in(place.folder()).unwrap())
        .unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(place.folder()), 0o700);
}

#[test]
fn what_a_crash_left_behind_is_removed_after_a_day() {
    let root = tempfile::tempdir().unwrap();
    let old = std::time::SystemTime::now() - 2 * STALE;
    for (name, age) in [
        (".zerto-rewind-old", Some(old)),
        (".zerto-rewind-new", None),
        ("old", Some(old)),
    ] {
        let file = fs::File::create(root.path().join(name)).unwrap();
        if let Some(at) = age {
            file.set_modified(at).unwrap();
        }
    }
    Target::new(
        &Destination::Folder(root.path().to_owned()),
        root.path(),
        &SOURCE,
    )
    .unwrap()
    .prepare()
    .unwrap();
    let mut left: Vec<_> = fs::read_dir(root.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, [".zerto-rewind-new", "old"]);
}

#[cfg(unix)]
#[test]
fn a_folder_that_can_not_be_is_unusable() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("file"), "").unwrap();
    std::os::unix::fs::symlink("nowhere", root.path().join("broken")).unwrap();
    for name in ["file", "file/below", "broken", "broken/below"] {
        let folder = Destination::Folder(root.path().join(name));
        let error = Target::new(&folder, root.path(), &SOURCE).unwrap_err();
        assert_eq!(error.code, ErrorCode::DestinationUnusable, "{name}");
    }
}

#[cfg(unix)]
#[test]
fn a_folder_that_can_not_be_written_to_is_unusable() {
    use std::os::unix::fs::PermissionsExt;
    if rustix::process::getuid().is_root() {
        eprintln!("skipped: root may write everywhere");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o500)).unwrap();
    for name in ["", "new/below"] {
        let folder = Destination::Folder(root.path().join(name));
        let error = Target::new(&folder, root.path(), &SOURCE).unwrap_err();
        assert_eq!(error.code, ErrorCode::DestinationUnusable, "{name}");
    }
}

#[test]
fn a_tilde_is_not_expanded_and_says_so() {
    let root = tempfile::tempdir().unwrap();
    for name in ["~", "~/back", "~justin/back"] {
        let folder = Destination::Folder(name.into());
        let error = Target::new(&folder, root.path(), &SOURCE).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument, "{name}");
        assert!(error.message.contains('~'), "{}", error.message);
        let error = inside(root.path(), Some(name)).unwrap_err();
        assert!(error.message.contains('~'), "{}", error.message);
    }
    assert!(inside(root.path(), Some("a/~")).is_ok());
}

#[cfg(unix)]
#[test]
fn a_folder_is_shown_whole() {
    let root = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(root.path()).unwrap();
    fs::create_dir_all(root.join("a/b")).unwrap();
    std::os::unix::fs::symlink(root.join("a/b"), root.join("link")).unwrap();
    for (folder, shown) in [
        ("a/b/..", "a/hosts"),
        ("a/./b/../../new/../c", "c/hosts"),
        ("link/..", "a/hosts"),
        ("link", "link/hosts"),
    ] {
        let folder = Destination::Folder(root.join(folder));
        let target = Target::new(&folder, &root, &SOURCE).unwrap();
        assert_eq!(target.path(), root.join(shown));
    }
}

#[test]
fn of_several_paths_the_destination_is_the_folder() {
    let root = tempfile::tempdir().unwrap();
    let several = Naming {
        several: true,
        ..SOURCE
    };
    for destination in ["back", "back/"] {
        let destination = Destination::InRecoverDir(Some(destination.to_owned()));
        let target = Target::new(&destination, root.path(), &several).unwrap();
        assert_eq!(target.path(), root.path().join("back/hosts"));
    }
}

#[test]
fn a_place_that_was_agreed_to_is_checked_again() {
    let root = tempfile::tempdir().unwrap();
    let place = root.path().join("app01/7/hosts");
    let agreed = || Target::agreed(&place, Some(root.path()));
    assert_eq!(agreed().unwrap().path(), place);
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(&place, "mine").unwrap();
    assert_eq!(agreed().unwrap_err().code, ErrorCode::DestinationExists);
    #[cfg(unix)]
    {
        let out = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(out.path(), root.path().join("out")).unwrap();
        let led_out = Target::agreed(&root.path().join("out/hosts"), Some(root.path()));
        assert_eq!(led_out.unwrap_err().code, ErrorCode::DestinationUnusable);
    }
    assert!(Target::agreed(Path::new("/"), None).is_err());
}
