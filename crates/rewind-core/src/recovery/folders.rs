//! Folders and names on this host, as far as the standard library leaves it to us.
use crate::state::places::WorkPlace;
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

/// What begins the names of files and folders that are not complete yet.
pub(super) const TEMPORARY: &str = ".zerto-rewind-";
/// No download that still runs leaves its file untouched for so long. Only what the state knows nothing of gets this old.
pub(super) const STALE: Duration = Duration::from_secs(24 * 60 * 60);

/// Removes what a crash left of earlier recoveries.
pub(super) fn remove_stale(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(TEMPORARY);
        let touched = entry.metadata().and_then(|metadata| metadata.modified());
        let is_stale = touched.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > STALE));
        if is_ours && is_stale {
            remove(&entry.path());
        }
    }
}

/// Removes what a process left of a recovery that died with it, and the folders that it had made for nothing.
pub(super) fn remove_marked(place: &WorkPlace) {
    for path in marked(place) {
        remove(&path);
    }
    let Some(made) = &place.made else { return };
    for folder in place.folder.ancestors() {
        // Only an empty one goes.
        if !folder.starts_with(made) || fs::remove_dir(folder).is_err() {
            return;
        }
    }
}

/// Whether anything of this recovery is there that is not complete.
pub(super) fn has_marked(place: &WorkPlace) -> bool {
    marked(place).next().is_some()
}

fn marked(place: &WorkPlace) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(&place.folder).into_iter().flatten().flatten();
    let is_marked = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        name.to_string_lossy().starts_with(&place.mark)
    };
    entries.filter(is_marked).map(|entry| entry.path())
}

/// What can't be removed stays; it is in nobody's way.
fn remove(path: &Path) {
    let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
}

/// Makes a folder and what is missing above it, and adds what it made to `created`, outermost first.
pub(super) fn make_folders(folder: &Path, created: &mut Vec<PathBuf>) -> io::Result<()> {
    for path in missing(folder).into_iter().rev() {
        match private_folder(path) {
            Ok(()) => created.push(path.to_owned()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    if folder.is_dir() {
        Ok(())
    } else {
        Err(io::Error::from(io::ErrorKind::NotADirectory))
    }
}

/// The folder and those above it that are not there, outermost last.
pub(super) fn missing(folder: &Path) -> Vec<&Path> {
    folder
        .ancestors()
        .take_while(|path| !path.exists())
        .collect()
}

/// Makes one folder that only this user can look into.
pub(super) fn private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Takes a folder of ours from others' sight.
#[cfg(unix)]
pub(super) fn make_private(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o700))
}

#[cfg(not(unix))]
pub(super) fn make_private(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Renames a folder, unless something is there already.
#[cfg(target_os = "linux")]
pub(super) fn rename_noreplace(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some file systems can't promise it.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => rename_if_free(from, to),
        result => Ok(result?),
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn rename_noreplace(from: &Path, to: &Path) -> io::Result<()> {
    rename_if_free(from, to)
}

/// A folder that appears in between is replaced only where it is empty.
fn rename_if_free(from: &Path, to: &Path) -> io::Result<()> {
    match fs::symlink_metadata(to) {
        Ok(_) => Err(io::Error::from(io::ErrorKind::AlreadyExists)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::rename(from, to),
        Err(error) => Err(error),
    }
}

/// Makes what was placed in a folder survive a power cut.
#[cfg(unix)]
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
pub(super) fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Bytes that can still be written in this folder, where that can be told.
#[cfg(unix)]
pub(super) fn free_bytes(folder: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(folder).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(not(unix))]
pub(super) fn free_bytes(_: &Path) -> Option<u64> {
    None
}
