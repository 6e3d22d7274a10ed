use super::*;
use zip::{ZipWriter, write::SimpleFileOptions};

const LIMITS: Limits = Limits {
    members: 100,
    bytes: 1_000_000,
    listed: None,
};

enum Member<'a> {
    File(&'a str, &'a [u8]),
    Folder(&'a str),
    Link(&'a str, &'a str),
}
use Member::{File as Plain, Folder, Link};

fn archive(members: &[Member<'_>]) -> File {
    let file = tempfile::tempfile().unwrap();
    let mut zip = ZipWriter::new(file.try_clone().unwrap());
    let options = SimpleFileOptions::default();
    for member in members {
        match member {
            Plain(name, bytes) => {
                zip.start_file(*name, options).unwrap();
                zip.write_all(bytes).unwrap();
            }
            Folder(name) => zip.add_directory(*name, options).unwrap(),
            Link(name, target) => zip.add_symlink(*name, *target, options).unwrap(),
        }
    }
    zip.finish().unwrap();
    file
}

fn unpack(members: &[Member<'_>], top: &[&str]) -> (tempfile::TempDir, Result<Unpacked, Error>) {
    let into = tempfile::tempdir().unwrap();
    let top: Vec<String> = top.iter().map(|&name| name.to_owned()).collect();
    let result = folder(
        &archive(members),
        into.path(),
        "partition#0 Ext4/etc/app",
        &top,
        LIMITS,
    );
    (into, result)
}

fn paths(unpacked: &Unpacked) -> Vec<&str> {
    unpacked
        .files
        .iter()
        .map(|file| file.path.as_str())
        .collect()
}

#[test]
fn members_land_below_the_folder_however_they_are_named() {
    for front in ["", "app/", "partition#0 Ext4/etc/app/"] {
        let (one, two, empty) = (
            format!("{front}a.txt"),
            format!("{front}d/ü b.txt"),
            format!("{front}empty/"),
        );
        let (into, unpacked) = unpack(
            &[Plain(&one, b"one"), Plain(&two, b""), Folder(&empty)],
            &["a.txt", "d", "empty"],
        );
        let unpacked = unpacked.unwrap();
        assert_eq!(paths(&unpacked), ["a.txt", "d/ü b.txt"], "{front}");
        assert_eq!(fs::read(into.path().join("a.txt")).unwrap(), b"one");
        assert!(into.path().join("empty").is_dir());
        assert_eq!(
            unpacked.files[0].sha256,
            "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
        );
    }
}

#[test]
fn a_folder_in_a_folder_of_the_same_name_stays() {
    let (_into, unpacked) = unpack(&[Plain("app/x", b"1")], &["app"]);
    assert_eq!(paths(&unpacked.unwrap()), ["app/x"]);
    let (_into, unpacked) = unpack(&[Plain("app/app/x", b"1")], &["app"]);
    assert_eq!(paths(&unpacked.unwrap()), ["app/x"]);
}

#[test]
fn members_that_would_leave_are_left_out() {
    let outside = [
        "../evil",
        "a/../../evil",
        "/evil",
        "a//evil",
        "./evil",
        "a/..",
        "evil\0x",
    ];
    for name in outside {
        let (into, unpacked) = unpack(&[Plain(name, b"x"), Plain("good", b"y")], &["good"]);
        let unpacked = unpacked.unwrap();
        assert_eq!(paths(&unpacked), ["good"], "{name}");
        assert_eq!(unpacked.skipped.len(), 1, "{name}");
        assert_eq!(fs::read_dir(into.path()).unwrap().count(), 1, "{name}");
        assert!(!into.path().parent().unwrap().join("evil").exists());
    }
}

#[test]
fn links_are_not_made_and_not_followed() {
    let members = [Link("out", "/etc"), Plain("good", b"y")];
    let (into, unpacked) = unpack(&members, &["out", "good"]);
    let unpacked = unpacked.unwrap();
    assert_eq!(unpacked.skipped, ["out is a link"]);
    assert_eq!(fs::read_dir(into.path()).unwrap().count(), 1);
    // Something below a link becomes a folder of its own.
    let (into, _) = unpack(&[Link("out", "/tmp"), Plain("out/file", b"y")], &["out"]);
    assert!(!into.path().join("out").is_symlink());
    assert!(into.path().join("out/file").is_file());
}

#[test]
fn one_name_twice_is_refused() {
    let (_into, unpacked) = unpack(&[Plain("a", b"x"), Plain("a/b", b"y")], &["a"]);
    assert_eq!(unpacked.unwrap_err().code, ErrorCode::DownloadIncomplete);
}

#[test]
fn too_many_and_too_large_are_refused() {
    let bomb = vec![0; 2_000_000];
    let (into, unpacked) = unpack(&[Plain("bomb", &bomb)], &["bomb"]);
    assert_eq!(unpacked.unwrap_err().code, ErrorCode::DestinationUnusable);
    assert_eq!(fs::read_dir(into.path()).unwrap().count(), 0);
    let names: Vec<String> = (0..101).map(|n| n.to_string()).collect();
    let members: Vec<_> = names.iter().map(|name| Plain(name, b"")).collect();
    assert_eq!(
        unpack(&members, &[]).1.unwrap_err().code,
        ErrorCode::DownloadIncomplete
    );
}

#[test]
fn more_than_the_zvm_lists_is_refused() {
    let into = tempfile::tempdir().unwrap();
    let limits = Limits {
        listed: Some(1_000),
        ..LIMITS
    };
    let file = archive(&[Plain("bomb", &[0; 1_001])]);
    let error = folder(&file, into.path(), "p/app", &[], limits).unwrap_err();
    assert_eq!(error.code, ErrorCode::DownloadIncomplete);
    assert!(error.message.contains("more than the ZVM lists"), "{error}");
    let file = archive(&[Plain("fits", &[0; 1_000])]);
    folder(&file, into.path(), "p/app", &[], limits).unwrap();
}

#[test]
fn names_that_are_one_to_the_file_system_are_refused() {
    // As where case or composition of letters make no difference.
    let into = tempfile::tempdir().unwrap();
    fs::write(into.path().join("a.txt"), "the first one").unwrap();
    let file = archive(&[Plain("a.txt", b"the second one")]);
    let error = folder(&file, into.path(), "p/app", &[], LIMITS).unwrap_err();
    assert!(error.message.contains("two members of one name"), "{error}");
    let kept = fs::read_to_string(into.path().join("a.txt")).unwrap();
    assert_eq!(kept, "the first one");
}

#[test]
fn what_lies_too_deep_is_left_out() {
    let (deep, most) = ("d/".repeat(200) + "x", "e/".repeat(199) + "x");
    let (_into, unpacked) = unpack(&[Plain(&deep, b"1"), Plain(&most, b"2")], &["d", "e"]);
    let unpacked = unpacked.unwrap();
    assert_eq!(paths(&unpacked), [most]);
    assert!(
        unpacked.skipped[0].ends_with("lies too deep"),
        "{:?}",
        unpacked.skipped
    );
}

#[test]
fn a_directory_that_says_more_than_there_is_is_refused_before_it_is_read() {
    use std::os::unix::fs::FileExt;
    let file = archive(&[Plain("a", b"some bytes")]);
    let length = file.metadata().unwrap().len();
    // The number of members, in the record at the end.
    file.write_all_at(&[0xff, 0xff, 0xff, 0xff], length - 22 + 8)
        .unwrap();
    let into = tempfile::tempdir().unwrap();
    let error = folder(&file, into.path(), "p/app", &[], LIMITS).unwrap_err();
    assert_eq!(error.code, ErrorCode::DownloadIncomplete);
}

#[test]
fn a_damaged_archive_is_refused() {
    let file = archive(&[Plain("a", &[7; 10_000])]);
    file.set_len(file.metadata().unwrap().len() - 10).unwrap();
    let into = tempfile::tempdir().unwrap();
    let error = folder(&file, into.path(), "p/app", &["a".into()], LIMITS).unwrap_err();
    assert_eq!(error.code, ErrorCode::DownloadIncomplete);

    let file = archive(&[Plain("a", b"some bytes")]);
    std::os::unix::fs::FileExt::write_at(&file, b"X", 33).unwrap();
    assert!(folder(&file, into.path(), "p/app", &["a".into()], LIMITS).is_err());
}

#[test]
fn a_single_file_comes_out_only_if_it_is_the_one() {
    let take = |members: &[Member<'_>], size| {
        let mut out = tempfile::tempfile().unwrap();
        single(
            &archive(members),
            "f.txt",
            size,
            &mut out,
            Path::new("f.txt"),
        )
        .unwrap()
        .map(|(bytes, _)| bytes)
    };
    assert_eq!(take(&[Plain("f.txt", b"12345")], Some(5)), Some(5));
    assert_eq!(
        take(&[Plain("partition#0 Ext4/etc/f.txt", b"12345")], Some(5)),
        Some(5)
    );
    assert_eq!(take(&[Plain("f.txt", b"12345")], None), Some(5));
    assert_eq!(take(&[Plain("f.txt", b"12345")], Some(6)), None);
    assert_eq!(take(&[Plain("g.txt", b"12345")], Some(5)), None);
    assert_eq!(
        take(&[Plain("f.txt", b"12345"), Plain("g", b"")], Some(5)),
        None
    );
    assert_eq!(take(&[Link("f.txt", "12345")], Some(5)), None);
}
