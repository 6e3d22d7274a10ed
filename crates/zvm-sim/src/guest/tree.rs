//! What is on a guest's partition at the start.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Component, Path, PathBuf};

use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};
use sha2::{Digest, Sha256};

use super::GuestError;
use crate::scenario::{Entry, Partition, ScenarioError};

/// Makes the folder and fills it.
pub(super) fn plant(vm: &str, partition: &Partition, folder: &Path) -> Result<(), GuestError> {
    fs::create_dir_all(folder).map_err(failed(folder))?;
    for entry in &partition.files {
        let path = folder.join(inside(vm, entry)?);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed(parent))?;
        }
        make(entry, &path).map_err(failed(&path))?;
        if let Some(mode) = &entry.mode {
            let bits = u32::from_str_radix(mode, 8)
                .map_err(|_| bad(vm, entry, "its mode is not octal"))?;
            set_mode(&path, bits).map_err(failed(&path))?;
        }
    }
    Ok(())
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> GuestError {
    let path = path.to_owned();
    |source| GuestError::Folder { path, source }
}

fn bad(vm: &str, entry: &Entry, reason: &str) -> ScenarioError {
    ScenarioError::BadEntry {
        vm: vm.to_owned(),
        path: entry.path.clone(),
        reason: reason.to_owned(),
    }
}

/// The path below the partition's folder, which it may not leave.
fn inside(vm: &str, entry: &Entry) -> Result<PathBuf, ScenarioError> {
    let relative = PathBuf::from(entry.path.trim_start_matches('/'));
    let plain = relative
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if relative.as_os_str().is_empty() || !plain {
        return Err(bad(
            vm,
            entry,
            "a path below the partition is needed, without . and ..",
        ));
    }
    let kinds = [
        entry.text.is_some(),
        entry.bytes.is_some(),
        entry.link.is_some(),
        entry.folder,
    ];
    if kinds.into_iter().filter(|&kind| kind).count() > 1 {
        return Err(bad(
            vm,
            entry,
            "only one of text, bytes, link and folder can be given",
        ));
    }
    Ok(relative)
}

fn make(entry: &Entry, path: &Path) -> io::Result<()> {
    if entry.folder {
        fs::create_dir_all(path)
    } else if let Some(target) = &entry.link {
        link(target, path)
    } else if let Some(size) = entry.bytes {
        fill(path, &entry.path, size)
    } else {
        fs::write(path, entry.text.as_deref().unwrap_or_default())
    }
}

/// Bytes that follow from the guest path alone.
fn fill(path: &Path, seed: &str, size: u64) -> io::Result<()> {
    let mut rng = StdRng::from_seed(Sha256::digest(seed).into());
    let mut file = BufWriter::new(fs::File::create(path)?);
    let mut piece = vec![0; 64 * 1024];
    let mut left = size;
    while left > 0 {
        rng.fill_bytes(&mut piece);
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
        file.write_all(piece.get(..length).unwrap_or_default())?;
        left -= length as u64;
    }
    file.flush()
}

#[cfg(unix)]
fn link(target: &str, path: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, path)
}

#[cfg(not(unix))]
fn link(_target: &str, _path: &Path) -> io::Result<()> {
    // Without privileges there are no links on such a host; the guest goes without.
    Ok(())
}

#[cfg(unix)]
fn set_mode(path: &Path, bits: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(bits))
}

#[cfg(not(unix))]
fn set_mode(_path: &Path, _bits: u32) -> io::Result<()> {
    Ok(())
}
