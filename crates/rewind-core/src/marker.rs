//! Files that say that somebody lives: locked while they do, and unlocked by the system however they end.
//!
//! Unlike a process id, a lock cannot be mistaken for another process's after a restart, and it is seen across containers that share
//! the folder.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
};

use uuid::Uuid;

use crate::private::{self, ForeignFile};

/// A file that this process holds locked, and removes when it is dropped.
#[derive(Debug)]
pub(crate) struct Marker {
    name: String,
    path: PathBuf,
    file: File,
}

impl Marker {
    /// Creates `<prefix><time>-<id>` in `dir`; the names sort by time.
    pub(crate) fn create(dir: &Path, prefix: &str) -> Result<Self, ForeignFile> {
        loop {
            let now = jiff::Timestamp::now().as_nanosecond();
            let name = format!("{prefix}{now:020}-{}", Uuid::new_v4().simple());
            let path = dir.join(&name);
            let file = private::open(&path, OpenOptions::new().create_new(true))?;
            // Between its creation and the lock, somebody may have taken the file for a dead one's and removed it.
            match file.lock().and_then(|()| path.try_exists()) {
                Ok(true) => return Ok(Self { name, path, file }),
                Ok(false) => {}
                Err(source) => return Err(ForeignFile::Io { file: path, source }),
            }
        }
    }

    /// The file's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Marker {
    fn drop(&mut self) {
        // Where this fails, the next one that looks finds the file unlocked and removes it.
        let _ = fs::remove_file(&self.path);
        // Closing the file would not do while a child process that is just being started still shares it.
        let _ = self.file.unlock();
    }
}

/// Whether the one that made the marker lives. The marker of a dead one is removed. What cannot be told counts as living.
///
/// # Errors
/// It is no marker of ours: somebody else put it there, and nobody will ever take it away.
pub(crate) fn lives(dir: &Path, name: &str) -> Result<bool, ForeignFile> {
    let path = dir.join(name);
    let file = match private::open(&path, &mut OpenOptions::new()) {
        Ok(file) => file,
        Err(ForeignFile::Io { source, .. }) => {
            return Ok(source.kind() != io::ErrorKind::NotFound);
        }
        Err(foreign) => return Err(foreign),
    };
    match file.try_lock_shared() {
        Ok(()) => {
            // While the lock is held, so that a marker is never removed after its owner locked and checked it.
            let _ = fs::remove_file(&path);
            Ok(false)
        }
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => Ok(true),
    }
}

/// The names of the markers with this prefix, oldest first.
pub(crate) fn list(dir: &Path, prefix: &str) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        if let Ok(name) = entry?.file_name().into_string()
            && name.starts_with(prefix)
        {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_lives_as_long_as_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let marker = Marker::create(dir.path(), "m-").unwrap();
        let name = marker.name().to_owned();
        assert!(lives(dir.path(), &name).unwrap());
        assert_eq!(list(dir.path(), "m-").unwrap(), std::slice::from_ref(&name));
        drop(marker);
        assert!(!lives(dir.path(), &name).unwrap());
        assert!(list(dir.path(), "m-").unwrap().is_empty());
    }

    #[test]
    fn the_marker_of_a_dead_one_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("m-dead"), "").unwrap();
        assert!(!lives(dir.path(), "m-dead").unwrap());
        assert!(!dir.path().join("m-dead").exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_planted_symlink_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("target"), "").unwrap();
        std::os::unix::fs::symlink(dir.path().join("target"), dir.path().join("m-link")).unwrap();
        let error = lives(dir.path(), "m-link").unwrap_err().to_string();
        assert!(error.contains("m-link: is a link"), "{error}");
        assert!(dir.path().join("target").exists());
    }

    #[test]
    fn markers_rise_with_time() {
        let dir = tempfile::tempdir().unwrap();
        let markers: Vec<_> = (0..50)
            .map(|_| Marker::create(dir.path(), "m-").unwrap())
            .collect();
        let names: Vec<_> = markers
            .iter()
            .map(|marker| marker.name().to_owned())
            .collect();
        assert_eq!(list(dir.path(), "m-").unwrap(), names);
    }
}
