//! What a ZVM zips: unpacked below one folder, or refused.
use std::{
    collections::BTreeSet,
    fs,
    io::{Seek as _, Write as _},
    path::Path,
};

use rewind_core::unpack::{Limits, folder};

use crate::{driver::Target, text::is_readable};

const TARGET: Target = Target {
    name: "zip",
    words: &[
        "PK\u{1}\u{2}",
        "PK\u{3}\u{4}",
        "PK\u{5}\u{6}",
        "PK\u{6}\u{6}",
        "PK\u{6}\u{7}",
        "PK\u{7}\u{8}",
        "../",
        "/etc/",
        "a/",
        "a.txt",
        "\\",
        "CON",
        "\u{0}\u{0}\u{0}\u{0}",
    ],
    // The reader's and the copy's buffers; a directory entry is some hundred bytes in memory.
    memory: (2 << 20, 64),
};
const LIMITS: Limits = Limits {
    members: 100,
    bytes: 256 << 10,
    listed: None,
};

#[test]
fn an_archive_stays_below_its_folder() {
    // Every file that is unpacked is synced: in memory, where there is such a place.
    let shared = Path::new("/dev/shm");
    let root = match shared.is_dir() {
        true => tempfile::tempdir_in(shared).unwrap(),
        false => tempfile::tempdir().unwrap(),
    };
    let into = root.path().join("into");
    let top = ["a", "a.txt", "app", "d", "empty"].map(str::to_owned);
    TARGET.run(|input| {
        let mut archive = tempfile::tempfile_in(root.path()).unwrap();
        archive.write_all(input).unwrap();
        archive.rewind().unwrap();
        fs::create_dir(&into).unwrap();
        let unpacked = folder(&archive, &into, "partition#0 Ext4/etc/app", &top, LIMITS);
        let (mut files, mut bytes) = (BTreeSet::new(), 0);
        walk(&into, "", &mut files, &mut bytes);
        assert!(
            bytes <= LIMITS.bytes && files.len() <= LIMITS.members,
            "{bytes} bytes, {} files",
            files.len()
        );
        let beside: Vec<_> = fs::read_dir(root.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(beside, ["into"]);
        fs::remove_dir_all(&into).unwrap();
        match unpacked {
            Ok(unpacked) => {
                let told: BTreeSet<_> = unpacked
                    .files
                    .iter()
                    .map(|file| (file.path.clone(), file.bytes))
                    .collect();
                assert_eq!(told, files);
                let skipped: BTreeSet<String> = unpacked
                    .skipped
                    .iter()
                    .map(|skipped| {
                        assert!(
                            is_readable(skipped) && skipped.chars().count() < 400,
                            "{skipped:?}"
                        );
                        skipped.rsplit(' ').next().unwrap().to_owned()
                    })
                    .collect();
                (files.len().min(4), skipped, String::new())
            }
            Err(error) => {
                assert!(
                    is_readable(&error.message) && error.message.len() < 1_000,
                    "{error:?}"
                );
                let kind = error
                    .message
                    .chars()
                    .filter(|c| c.is_alphabetic())
                    .skip(40)
                    .take(40)
                    .collect();
                (0, BTreeSet::new(), kind)
            }
        }
    });
}

/// Plain files and folders, and nothing else.
fn walk(folder: &Path, below: &str, files: &mut BTreeSet<(String, u64)>, bytes: &mut u64) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{below}{}", entry.file_name().to_str().unwrap());
        let metadata = fs::symlink_metadata(entry.path()).unwrap();
        if metadata.is_dir() {
            walk(&entry.path(), &format!("{name}/"), files, bytes);
        } else {
            assert!(metadata.is_file(), "{name} is no plain file");
            *bytes += metadata.len();
            files.insert((name, metadata.len()));
        }
    }
}
