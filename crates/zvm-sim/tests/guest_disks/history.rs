//! Histories of random edits.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::support::{Lab, Tree, live, noise, set_modified};

/// Makes random edits, syncs after every few of them, and checks every point.
pub fn play(seed: u64, steps: i64) {
    let mut lab = Lab::new();
    let mut random = StdRng::seed_from_u64(seed);
    let mut history: Vec<(i64, Tree)> = vec![(0, live(&lab.live))];
    for step in 1..=steps {
        for _ in 0..random.random_range(1..=20) {
            edit(&lab, &mut random);
        }
        let report = lab
            .disk
            .sync(step * 10)
            .unwrap_or_else(|error| panic!("seed {seed}, step {step}: {error}"));
        assert_eq!(report.skipped, []);
        let tree = live(&lab.live);
        lab.check_shown(step * 10, &tree);
        history.push((step * 10, tree));
    }
    for (point, tree) in &history {
        lab.check_shown(*point, tree);
        lab.check_shown(point + 9, tree);
        lab.check_clean(*point);
    }
}

/// Every path below the live folder that is a folder, or every other one.
pub fn paths(live: &Path, folders: bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![live.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            let is_folder = entry.file_type().unwrap().is_dir();
            if is_folder {
                open.push(entry.path());
            }
            if is_folder == folders {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

/// One edit of the kind that programs make.
fn edit(lab: &Lab, random: &mut StdRng) {
    let others = paths(&lab.live, false);
    let mut folders = paths(&lab.live, true);
    let any_folder = folders.choose(random).cloned();
    folders.push(lab.live.clone());
    let folder = folders.choose(random).unwrap().clone();
    let names = [
        "a",
        "b.conf",
        "Ünïcødé ✓",
        "with 'quotes' and \"spaces\"",
        &"long".repeat(63),
        "c",
        "d",
        "e",
        "f",
        "g",
    ];
    let new = folder.join(names.choose(random).unwrap());
    let existing = others.choose(random);
    let file = others
        .iter()
        .filter(|path| fs::symlink_metadata(path).unwrap().is_file())
        .collect::<Vec<_>>();
    let file = file.choose(random);
    let size = *[0, 1, 100, 4095, 4096, 4097, 8192, 60_000, 300_000]
        .choose(random)
        .unwrap();
    match random.random_range(0..22) {
        0..=3 | 18..=21 if !new.is_dir() => {
            let _ = fs::remove_file(&new);
            fs::write(new, noise(random.random(), size)).unwrap();
        }
        4 if !new.exists() && fs::symlink_metadata(&new).is_err() => fs::create_dir(new).unwrap(),
        5 => {
            let long = "target/".repeat(500);
            let length = *[1, 30, 59, 60, 61, 3500].choose(random).unwrap();
            let target = &long[..length];
            if fs::symlink_metadata(&new).is_err() {
                symlink(target, new).unwrap();
            }
        }
        6 => {
            if let Some(path) = existing {
                fs::remove_file(path).unwrap();
            }
        }
        7 => {
            if let Some(path) = any_folder
                && others.len() > 40
            {
                fs::remove_dir_all(path).unwrap();
            }
        }
        8 | 9 => {
            // Errors are the ones that programs meet: into itself, onto something else.
            let from = if random.random_bool(0.5) {
                any_folder
            } else {
                existing.cloned()
            };
            if let Some(from) = from {
                let _ = fs::rename(from, new);
            }
        }
        10 => {
            if let Some(path) = file {
                let length = fs::metadata(path).unwrap().len();
                fs::File::options()
                    .write(true)
                    .open(path)
                    .unwrap()
                    .set_len(random.random_range(0..=length + 9000))
                    .unwrap();
            }
        }
        11 | 12 => {
            if let Some(path) = file {
                // In place, the size stays.
                let length = fs::metadata(path).unwrap().len();
                let mut file = fs::File::options().write(true).open(path).unwrap();
                let start = random.random_range(0..=length);
                file.seek(SeekFrom::Start(start)).unwrap();
                file.write_all(&noise(random.random(), (length - start).min(5000) as usize))
                    .unwrap();
            }
        }
        13 => {
            if let Some(path) = file {
                fs::File::options()
                    .append(true)
                    .open(path)
                    .unwrap()
                    .write_all(&noise(random.random(), size))
                    .unwrap();
            }
        }
        14 => {
            if let Some(path) = file.copied().or(any_folder.as_ref()) {
                let mode = *[0o600, 0o644, 0o755, 0o4755, 0o2770, 0o1777, 0o400]
                    .choose(random)
                    .unwrap();
                fs::set_permissions(path, fs::Permissions::from_mode(mode | 0o700)).unwrap();
            }
        }
        15 => {
            if let Some(path) = existing.or(any_folder.as_ref()) {
                // Needs root; elsewhere nothing changes.
                let _ = lchown(path, Some(random.random_range(0..200_000)), Some(100_000));
            }
        }
        16 => {
            if let Some(path) = file {
                set_modified(
                    path,
                    random.random_range(-1_000_000_000..5_000_000_000),
                    random.random_range(0..1_000_000_000),
                );
            }
        }
        17 => {
            if let Some(path) = file
                && fs::symlink_metadata(&new).is_err()
            {
                fs::hard_link(path, new).unwrap();
            }
        }
        _ => {}
    }
}
