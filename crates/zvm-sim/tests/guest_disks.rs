//! Guest disks: what was in the live folder is what the image shows, at every point, and e2fsck finds nothing to repair.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

#[path = "guest_disks/history.rs"]
mod history;
#[path = "guest_disks/speed.rs"]
mod speed;
#[path = "guest_disks/support.rs"]
mod support;

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::Path;
use std::time::Instant;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use support::{Lab, content, descriptors_in, live, noise, set_modified, shown};
use zvm_sim::disk::{
    DiskError, DiskOptions, DiskView, EntryKind, FileReader, GuestDisk, SkipReason,
};

#[test]
fn every_point_of_a_random_history_reads_back_and_is_clean() {
    for seed in 0..4 {
        history::play(seed, 25);
    }
}

#[test]
fn before_the_first_sync_there_is_the_base_state() {
    let mut lab = Lab::with(64 << 20, |live| {
        fs::create_dir(live.join("etc")).unwrap();
        fs::write(live.join("etc/hosts"), "127.0.0.1 localhost\n").unwrap();
    });
    let base = live(&lab.live);
    lab.write("etc/hosts", "changed");
    lab.disk.sync(1000).unwrap();
    lab.check_shown(i64::MIN, &base);
    lab.check_shown(999, &base);
    lab.check_shown(1000, &live(&lab.live));
    lab.check_shown(i64::MAX, &live(&lab.live));
}

#[test]
fn a_sync_without_changes_writes_nothing() {
    let mut lab = Lab::new();
    lab.write("file", noise(1, 10_000));
    let first = lab.disk.sync(1).unwrap();
    assert!(first.changed && first.blocks_written > 0);
    for point in 2..10 {
        let report = lab.disk.sync(point).unwrap();
        assert!(!report.changed);
        assert_eq!((report.entries_written, report.blocks_written), (0, 0));
    }
}

#[test]
fn syncs_that_share_a_point_show_the_last_and_points_never_fall() {
    let mut lab = Lab::new();
    lab.write("file", "one");
    lab.disk.sync(50).unwrap();
    lab.write("file", "two");
    lab.disk.sync(50).unwrap();
    assert_eq!(content(&lab.disk.at(50).unwrap(), "file"), b"two");
    lab.write("file", "three");
    lab.disk.sync(10).unwrap();
    assert_eq!(content(&lab.disk.at(50).unwrap(), "file"), b"three");
    assert!(lab.disk.at(49).unwrap().open("file").is_err());
}

#[test]
fn an_edit_right_after_a_sync_is_seen_even_if_size_and_times_hide_it() {
    let mut lab = Lab::new();
    for point in 0..60 {
        lab.write("file", [b'a' + (point % 26) as u8; 100]);
        set_modified(&lab.path("file"), 1_000_000_000, 0);
        lab.disk.sync(point).unwrap();
    }
    for point in 0..60 {
        let expected = [b'a' + (point % 26) as u8; 100];
        assert_eq!(
            content(&lab.disk.at(point).unwrap(), "file"),
            expected,
            "at {point}"
        );
    }
}

#[test]
fn modes_owners_and_times_survive_to_the_nanosecond() {
    let mut lab = Lab::new();
    for (name, mode, seconds) in [
        ("setuid", 0o4755, 0),
        ("setgid", 0o2640, -1),
        ("secret", 0o600, -1_500_000_000),
        ("late", 0o644, 4_000_000_000),
        ("later", 0o7777, 9_000_000_000),
    ] {
        lab.write(name, name);
        fs::set_permissions(lab.path(name), fs::Permissions::from_mode(mode)).unwrap();
        set_modified(&lab.path(name), seconds, 123_456_789);
    }
    fs::create_dir(lab.path("sticky")).unwrap();
    fs::set_permissions(lab.path("sticky"), fs::Permissions::from_mode(0o1777)).unwrap();
    let is_root = lchown(lab.path("secret"), Some(70_000), Some(1 << 31)).is_ok();
    lab.disk.sync(1).unwrap();
    lab.check_shown(1, &live(&lab.live));
    let view = lab.disk.at(1).unwrap();
    let entry = view.entry("later").unwrap();
    assert_eq!(entry.mode, 0o7777);
    assert_eq!(entry.modified.to_string(), "2255-03-14T16:00:00.123456789Z");
    assert_eq!(view.entry("sticky").unwrap().mode, 0o1777);
    if is_root {
        assert_eq!(
            (
                view.entry("secret").unwrap().uid,
                view.entry("secret").unwrap().gid
            ),
            (70_000, 1 << 31)
        );
    }
    // Nothing but the mode changes.
    fs::set_permissions(lab.path("secret"), fs::Permissions::from_mode(0o640)).unwrap();
    let report = lab.disk.sync(2).unwrap();
    assert_eq!(report.entries_written, 1);
    lab.check_shown(2, &live(&lab.live));
    lab.check_clean(2);
}

#[test]
fn names_in_any_utf8_survive_and_others_are_reported() {
    let mut lab = Lab::new();
    let longest = format!("{}x", "é".repeat(127));
    for name in [
        "with space",
        "quote\"'`",
        "naïve ✓ 日本語 🎈",
        "-rf",
        "back\\slash",
        "new\nline",
        longest.as_str(),
    ] {
        lab.write(name, name);
    }
    let expected = live(&lab.live);
    let bad = std::os::unix::ffi::OsStringExt::from_vec(b"bad\xff".to_vec());
    let is_possible = fs::write(lab.live.join::<std::ffi::OsString>(bad), "x").is_ok();
    let report = lab.disk.sync(1).unwrap();
    if is_possible {
        let [skipped] = &report.skipped[..] else {
            panic!("{:?}", report.skipped)
        };
        assert_eq!(skipped.reason, SkipReason::NameNotUtf8);
    }
    let mut shown = shown(&lab.disk.at(1).unwrap());
    shown.remove("");
    assert!(
        shown
            .keys()
            .eq(expected.keys().filter(|path| !path.is_empty()))
    );
    assert_eq!(
        content(&lab.disk.at(1).unwrap(), &longest),
        longest.as_bytes()
    );
    lab.check_clean(1);
}

#[test]
fn links_are_carried_and_never_followed() {
    let mut lab = Lab::new();
    let outside = lab.temp.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "secret").unwrap();
    symlink(&outside, lab.path("escape")).unwrap();
    symlink(outside.join("secret"), lab.path("file")).unwrap();
    for length in [1, 59, 60, 61, 4000] {
        symlink("t".repeat(length), lab.path(&format!("link{length}"))).unwrap();
    }
    lab.disk.sync(1).unwrap();
    lab.check_shown(1, &live(&lab.live));
    lab.check_clean(1);
    let view = lab.disk.at(1).unwrap();
    assert!(matches!(
        view.list("escape"),
        Err(DiskError::NotAFolder { .. })
    ));
    assert!(matches!(
        view.entry("escape/secret"),
        Err(DiskError::NotFound { .. })
    ));
    assert!(matches!(view.open("file"), Err(DiskError::NotAFile { .. })));
    // A new target is a new link.
    fs::remove_file(lab.path("link60")).unwrap();
    symlink("elsewhere", lab.path("link60")).unwrap();
    lab.disk.sync(2).unwrap();
    assert_eq!(
        lab.disk
            .at(2)
            .unwrap()
            .entry("link60")
            .unwrap()
            .link_target
            .as_deref(),
        Some("elsewhere")
    );
    lab.check_clean(2);
}

#[test]
fn one_thing_becomes_another() {
    let mut lab = Lab::new();
    lab.write("x", "file");
    lab.write("keep", noise(3, 100_000));
    lab.disk.sync(1).unwrap();
    let file = live(&lab.live);
    fs::remove_file(lab.path("x")).unwrap();
    fs::create_dir_all(lab.path("x/y/z")).unwrap();
    fs::rename(lab.path("keep"), lab.path("x/y/z/kept")).unwrap();
    lab.disk.sync(2).unwrap();
    let folder = live(&lab.live);
    // What has moved out comes from a folder whose place something else takes.
    fs::rename(lab.path("x/y/z/kept"), lab.path("kept")).unwrap();
    fs::remove_dir_all(lab.path("x")).unwrap();
    symlink("kept", lab.path("x")).unwrap();
    lab.disk.sync(3).unwrap();
    for (point, tree) in [(1, &file), (2, &folder), (3, &live(&lab.live))] {
        lab.check_shown(point, tree);
        lab.check_clean(point);
    }
}

#[test]
fn what_is_neither_file_folder_nor_link_is_reported() {
    let mut lab = Lab::new();
    let _socket = std::os::unix::net::UnixListener::bind(lab.path("socket")).unwrap();
    fs::create_dir(lab.path("lost+found")).unwrap();
    lab.write("lost+found/mine", "mine");
    lab.write("file", "file");
    let report = lab.disk.sync(1).unwrap();
    let mut skipped: Vec<_> = report
        .skipped
        .iter()
        .map(|skipped| (skipped.path.as_str(), &skipped.reason))
        .collect();
    skipped.sort_by_key(|(path, _)| *path);
    assert_eq!(
        skipped,
        [
            ("lost+found", &SkipReason::Reserved),
            ("socket", &SkipReason::Special)
        ]
    );
    let view = lab.disk.at(1).unwrap();
    let names: Vec<_> = view
        .list("/")
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names, ["file", "lost+found"]);
    assert_eq!(view.list("lost+found").unwrap(), []);
    assert!(!lab.disk.sync(2).unwrap().changed);
}

#[test]
fn a_move_and_a_small_edit_of_a_large_file_cost_a_few_blocks() {
    let mut lab = Lab::new();
    fs::create_dir(lab.path("from")).unwrap();
    lab.write("from/large", noise(1, 20 << 20));
    lab.disk.sync(1).unwrap();
    let before = live(&lab.live);
    fs::rename(lab.path("from"), lab.path("to")).unwrap();
    let moved = lab.disk.sync(2).unwrap();
    assert!(moved.changed && moved.blocks_written < 20, "{moved:?}");
    let mut file = fs::File::options()
        .write(true)
        .open(lab.path("to/large"))
        .unwrap();
    file.seek(SeekFrom::Start(9 << 20)).unwrap();
    file.write_all(b"small").unwrap();
    let after_move = live(&lab.live);
    let edited = lab.disk.sync(3).unwrap();
    assert!(edited.changed && edited.blocks_written < 20, "{edited:?}");
    lab.check_shown(1, &before);
    lab.check_shown(3, &after_move);
    for point in 1..=3 {
        lab.check_clean(point);
    }
}

#[test]
fn holes_stay_holes() {
    let mut lab = Lab::new();
    let length = 40 << 30;
    let file = fs::File::create(lab.path("sparse")).unwrap();
    file.set_len(length).unwrap();
    let mut file = file;
    file.seek(SeekFrom::Start(20 << 30)).unwrap();
    file.write_all(b"in the middle").unwrap();
    let report = lab.disk.sync(1).unwrap();
    assert!(report.blocks_written < 1100, "{report:?}");
    let view = lab.disk.at(1).unwrap();
    assert_eq!(view.entry("sparse").unwrap().size, length);
    let mut reader = view.open("sparse").unwrap();
    let mut buffer = vec![1; 1 << 20];
    reader.read_exact(&mut buffer).unwrap();
    assert!(buffer.iter().all(|byte| *byte == 0));
    // A middle-sized one is compared as a whole.
    let mut content = vec![0; 9 << 20];
    content[5 << 20..][..4].copy_from_slice(b"data");
    lab.write("small", &content);
    fs::remove_file(lab.path("sparse")).unwrap();
    lab.disk.sync(2).unwrap();
    lab.check_shown(2, &live(&lab.live));
    content.truncate(5 << 20);
    content.resize(8 << 20, 0);
    lab.write("small", &content);
    lab.disk.sync(3).unwrap();
    lab.check_shown(3, &live(&lab.live));
    for point in 1..=3 {
        lab.check_clean(point);
    }
}

#[test]
fn a_folder_of_five_thousand_entries() {
    let mut lab = Lab::new();
    fs::create_dir(lab.path("many")).unwrap();
    for number in 0..5000 {
        lab.write(
            &format!("many/a file with the number {number}"),
            number.to_string(),
        );
    }
    lab.disk.sync(1).unwrap();
    let names = |view: &DiskView, folder: &str| {
        view.list(folder)
            .unwrap()
            .into_iter()
            .map(|entry| entry.name)
            .collect::<Vec<_>>()
    };
    let view = lab.disk.at(1).unwrap();
    assert_eq!(names(&view, "many").len(), 5000);
    assert_eq!(content(&view, "many/a file with the number 4321"), b"4321");
    lab.check_clean(1);
    for number in (0..5000).filter(|number| number % 5 != 0) {
        fs::remove_file(lab.path(&format!("many/a file with the number {number}"))).unwrap();
    }
    fs::rename(lab.path("many"), lab.path("fewer")).unwrap();
    lab.disk.sync(2).unwrap();
    lab.check_shown(2, &live(&lab.live));
    lab.check_clean(2);
    assert_eq!(names(&view, "many").len(), 5000);
}

#[test]
fn a_view_stays_as_it_is_while_syncs_go_on_and_history_is_forgotten() {
    let mut lab = Lab::new();
    let first = noise(0, 3 << 20);
    lab.write("file", &first);
    lab.disk.sync(0).unwrap();
    let view = lab.disk.at(0).unwrap();
    let mut streaming = view.open("file").unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            loop {
                let is_last = is_over.load(std::sync::atomic::Ordering::Relaxed);
                assert!(content(&view, "file") == first);
                if is_last {
                    break;
                }
            }
        });
        for point in 1..40 {
            lab.write("file", noise(point as u64, 3 << 20));
            lab.write(&format!("more{point}"), noise(point as u64, 10_000));
            lab.disk.sync(point).unwrap();
            lab.disk.forget_before(point).unwrap();
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let mut all = Vec::new();
    streaming.read_to_end(&mut all).unwrap();
    assert!(all == first);
    assert_eq!(view.list("").unwrap().len(), 2);
}

#[test]
fn forgotten_points_are_refused_and_their_space_is_freed() {
    let mut lab = Lab::new();
    for point in 1..=6 {
        lab.write("file", noise(point as u64, 20 << 20));
        lab.disk.sync(point * 10).unwrap();
    }
    let before = descriptors_in(lab.temp.path());
    lab.disk.forget_before(45).unwrap();
    assert!(descriptors_in(lab.temp.path()) < before);
    assert!(matches!(
        lab.disk.at(39),
        Err(DiskError::PointGone {
            point: 39,
            oldest: 40
        })
    ));
    assert!(lab.disk.export(39, &lab.temp.path().join("gone")).is_err());
    for point in 4..=6 {
        assert!(
            content(&lab.disk.at(point * 10 + 5).unwrap(), "file") == noise(point as u64, 20 << 20)
        );
        lab.check_clean(point * 10);
    }
}

#[test]
fn thousands_of_small_syncs_keep_few_descriptors() {
    let mut lab = Lab::with(64 << 20, |_| {});
    for point in 0..2000 {
        lab.write("file", format!("{point:08}"));
        assert!(lab.disk.sync(point).unwrap().changed, "at {point}");
    }
    let descriptors = descriptors_in(lab.temp.path());
    assert!(descriptors <= 8, "{descriptors} descriptors");
    for point in (0..2000).step_by(97) {
        assert_eq!(
            content(&lab.disk.at(point).unwrap(), "file"),
            format!("{point:08}").as_bytes()
        );
    }
    lab.check_clean(1000);
}

#[test]
fn a_full_disk_refuses_the_sync_and_recovers() {
    let mut lab = Lab::with(12 << 20, |_| {});
    let mut random = StdRng::seed_from_u64(7);
    let mut last = live(&lab.live);
    let mut history = vec![(0, last.clone())];
    let mut refused = 0;
    for point in 1..=25 {
        for _ in 0..random.random_range(1..=8) {
            let path = lab.path(&format!("file{}", random.random_range(0..60)));
            let size = *[1000, 4096, 9000, 60_000, 200_000, 1_000_000]
                .choose(&mut random)
                .unwrap();
            fs::write(path, noise(random.random(), size)).unwrap();
        }
        match lab.disk.sync(point) {
            Ok(_) => last = live(&lab.live),
            Err(error) => {
                refused += 1;
                assert!(matches!(error, DiskError::Full { .. }), "{error}");
                // Not tried again as long as nothing changes.
                assert_eq!(
                    lab.disk.sync(point).unwrap_err().to_string(),
                    error.to_string()
                );
                for path in history::paths(&lab.live, false).iter().step_by(3) {
                    fs::remove_file(path).unwrap();
                }
            }
        }
        history.push((point, last.clone()));
    }
    assert!(refused > 3);
    for (point, tree) in &history {
        lab.check_shown(*point, tree);
        lab.check_clean(*point);
    }
}

#[test]
fn running_out_of_inodes_is_a_full_disk() {
    let mut lab = Lab::with(12 << 20, |_| {});
    fs::create_dir(lab.path("many")).unwrap();
    lab.write("empty", "");
    for folder in 0..100 {
        fs::create_dir(lab.path(&format!("many/{folder}"))).unwrap();
        for file in 0..90 {
            // On the disk each is a file of its own.
            let link = lab.path(&format!("many/{folder}/{file}"));
            fs::hard_link(lab.path("empty"), link).unwrap();
        }
    }
    assert!(matches!(lab.disk.sync(1), Err(DiskError::Full { .. })));
    lab.check_clean(1);
    fs::remove_dir_all(lab.path("many")).unwrap();
    lab.write("file", "fits");
    lab.disk.sync(2).unwrap();
    lab.check_shown(2, &live(&lab.live));
    lab.check_clean(2);
}

#[test]
fn a_file_in_a_thousand_pieces() {
    let mut lab = Lab::with(64 << 20, |_| {});
    fs::create_dir(lab.path("small")).unwrap();
    lab.write("block", noise(1, 4096));
    for number in 0..3000 {
        // On the disk each is a file of its own.
        fs::hard_link(lab.path("block"), lab.path(&format!("small/{number}"))).unwrap();
    }
    lab.disk.sync(1).unwrap();
    // The rest is filled but for a few blocks, then every other block is freed.
    lab.write("fill", noise(1_000_000, 12_700 * 4096));
    lab.disk.sync(2).unwrap();
    for number in (0..3000).step_by(2) {
        fs::remove_file(lab.path(&format!("small/{number}"))).unwrap();
    }
    lab.disk.sync(3).unwrap();
    lab.write("pieces", noise(1_000_001, 1450 * 4096));
    lab.disk.sync(4).unwrap();
    lab.check_shown(4, &live(&lab.live));
    fs::File::options()
        .write(true)
        .open(lab.path("pieces"))
        .unwrap()
        .set_len(700 * 4096 + 1)
        .unwrap();
    lab.disk.sync(5).unwrap();
    fs::rename(lab.path("pieces"), lab.path("small/pieces")).unwrap();
    lab.write("fill", "");
    lab.disk.sync(6).unwrap();
    fs::remove_dir_all(lab.path("small")).unwrap();
    lab.disk.sync(7).unwrap();
    lab.check_shown(7, &live(&lab.live));
    for point in [4, 5, 7] {
        lab.check_clean(point);
    }
}

#[test]
fn a_folder_that_changes_all_the_time_never_fails_a_sync() {
    let mut lab = Lab::new();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = StdRng::seed_from_u64(11);
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                rewrite(&lab.live, &mut random);
            }
        });
        let start = Instant::now();
        let mut point = 0;
        while point < 30 || start.elapsed().as_millis() < 500 {
            point += 1;
            lab.disk.sync(point).unwrap();
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    lab.disk.sync(1_000_000).unwrap();
    lab.check_shown(1_000_000, &live(&lab.live));
    lab.check_clean(15);
    lab.check_clean(1_000_000);
}

/// What may vanish, grow, shrink or become something else between two looks at it.
fn rewrite(folder: &Path, random: &mut StdRng) {
    let path = folder.join(format!("x{}", random.random_range(0..6)));
    let _ = match random.random_range(0..6) {
        0 => fs::remove_file(&path),
        1 => fs::remove_dir_all(&path),
        2 => fs::create_dir(&path),
        // To a place of this test's own: the next one that writes here writes there.
        3 => symlink("../outside", &path),
        _ => fs::write(
            &path,
            noise(random.random(), random.random_range(0..2_000_000)),
        ),
    };
}

#[test]
fn a_folder_that_is_gone_is_an_error_and_no_empty_disk() {
    let mut lab = Lab::new();
    lab.write("file", "content");
    lab.disk.sync(1).unwrap();
    fs::rename(&lab.live, lab.temp.path().join("away")).unwrap();
    assert!(matches!(lab.disk.sync(2), Err(DiskError::Folder { .. })));
    assert_eq!(content(&lab.disk.at(2).unwrap(), "file"), b"content");
    fs::rename(lab.temp.path().join("away"), &lab.live).unwrap();
    lab.disk.sync(3).unwrap();
    lab.check_shown(3, &live(&lab.live));
    let missing = GuestDisk::create(
        &lab.path("none"),
        &lab.temp.path().join("other"),
        DiskOptions::default(),
    );
    assert!(matches!(missing, Err(DiskError::Folder { .. })));
}

#[test]
fn paths_are_looked_up_without_tricks() {
    let mut lab = Lab::new();
    fs::create_dir(lab.path("folder")).unwrap();
    lab.write("folder/file", "content");
    lab.disk.sync(1).unwrap();
    let view = lab.disk.at(1).unwrap();
    for root in ["", "/", "//", "."] {
        assert_eq!(
            view.entry(root).unwrap().kind,
            EntryKind::Folder,
            "{root:?}"
        );
    }
    for path in ["folder/file", "/folder/file", "folder//./file/"] {
        assert_eq!(view.entry(path).unwrap().name, "file", "{path:?}");
    }
    let too_long = "x".repeat(256);
    for path in [
        "folder/../folder/file",
        "..",
        "none",
        "folder/none",
        "folder/file/none",
        "nul\0",
        too_long.as_str(),
    ] {
        assert!(
            matches!(view.entry(path), Err(DiskError::NotFound { .. })),
            "{path:?}"
        );
    }
    assert!(matches!(
        view.open("folder"),
        Err(DiskError::NotAFile { .. })
    ));
    assert!(matches!(
        view.list("folder/file"),
        Err(DiskError::NotAFolder { .. })
    ));
}

#[test]
fn another_reader_sees_the_same() {
    let mut lab = Lab::new();
    fs::create_dir_all(lab.path("a/b")).unwrap();
    lab.write("a/b/file", noise(5, 5_000_000));
    symlink("l".repeat(100), lab.path("a/link")).unwrap();
    lab.disk.sync(1).unwrap();
    let image = lab.temp.path().join("image");
    lab.disk.export(1, &image).unwrap();
    let other = ext4_view::Ext4::load_from_path(&image).unwrap();
    assert!(other.read("/a/b/file").unwrap() == noise(5, 5_000_000));
    assert_eq!(
        other.read_link("/a/link").unwrap().to_str().unwrap(),
        "l".repeat(100)
    );
    let metadata = other.metadata("/a/b/file").unwrap();
    let live = fs::metadata(lab.path("a/b/file")).unwrap();
    assert_eq!(metadata.modified().seconds(), live.mtime());
    assert_eq!(
        i64::from(metadata.modified().nanoseconds()),
        live.mtime_nsec()
    );
    assert_eq!(other.label().to_str().unwrap(), "lab");
}

#[test]
fn disks_and_views_can_be_handed_between_threads() {
    fn is_send<T: Send + 'static>() {}
    fn is_shared<T: Send + Sync + Clone + 'static>() {}
    is_send::<GuestDisk>();
    is_send::<FileReader>();
    is_shared::<DiskView>();
}
