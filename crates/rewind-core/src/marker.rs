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
    stays: bool,
}

impl Marker {
    /// Creates `<prefix><number>-<id>` in `dir`. The number is one more than the highest that is there, so that names sort in the order
    /// of creation, whatever becomes of the clock.
    pub(crate) fn create(dir: &Path, prefix: &str) -> Result<Self, ForeignFile> {
        loop {
            let number = next_number(dir, prefix).map_err(|source| ForeignFile::Io {
                file: dir.to_owned(),
                source,
            })?;
            let name = format!("{prefix}{number:020}-{}", Uuid::new_v4().simple());
            let path = dir.join(&name);
            let file = private::open(&path, OpenOptions::new().create_new(true))?;
            // Between its creation and the lock, somebody may have taken the file for a dead one's and removed it.
            match file.lock().and_then(|()| path.try_exists()) {
                Ok(true) => {
                    return Ok(Self {
                        name,
                        path,
                        file,
                        stays: false,
                    });
                }
                Ok(false) => {}
                Err(source) => return Err(ForeignFile::Io { file: path, source }),
            }
        }
    }

    /// The file's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Ends as a dead one does: the file stays, for the next one that looks.
    pub(crate) fn leave(mut self) {
        self.stays = true;
    }
}

fn next_number(dir: &Path, prefix: &str) -> io::Result<u64> {
    let number = |name: &String| {
        name.get(prefix.len()..)?
            .split('-')
            .next()?
            .parse::<u64>()
            .ok()
    };
    let highest = list(dir, prefix)?.iter().filter_map(number).max();
    Ok(highest.map_or(0, |highest| highest.saturating_add(1)))
}

impl Drop for Marker {
    fn drop(&mut self) {
        if !self.stays {
            // Where this fails, the next one that looks finds the file unlocked and removes it.
            let _ = fs::remove_file(&self.path);
        }
        // Closing the file would not do while a child process that is just being started still shares it.
        let _ = self.file.unlock();
    }
}

/// Whether the one that made the marker lives. What cannot be told counts as living.
///
/// # Errors
/// It is no marker of ours: somebody else put it there, and nobody will ever take it away.
pub(crate) fn lives(dir: &Path, name: &str) -> Result<bool, ForeignFile> {
    look(dir, name, false)
}

/// Removes the marker of a dead one. False: it lives, as far as can be told.
///
/// # Errors
/// As [`lives`].
pub(crate) fn bury(dir: &Path, name: &str) -> Result<bool, ForeignFile> {
    look(dir, name, true).map(|lives| !lives)
}

fn look(dir: &Path, name: &str, bury: bool) -> Result<bool, ForeignFile> {
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
            if bury {
                // While the lock is held, so that a marker is never removed after its owner locked and checked it.
                let _ = fs::remove_file(&path);
            }
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
    fn the_marker_of_a_dead_one_is_removed_when_it_is_buried() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("m-dead"), "").unwrap();
        assert!(!lives(dir.path(), "m-dead").unwrap());
        assert!(dir.path().join("m-dead").exists());
        assert!(bury(dir.path(), "m-dead").unwrap());
        assert!(!dir.path().join("m-dead").exists());
        assert!(bury(dir.path(), "m-dead").unwrap(), "it is gone");
    }

    #[test]
    fn a_marker_that_is_left_is_a_dead_ones() {
        let dir = tempfile::tempdir().unwrap();
        let marker = Marker::create(dir.path(), "m-").unwrap();
        let name = marker.name().to_owned();
        assert!(!bury(dir.path(), &name).unwrap());
        marker.leave();
        assert!(dir.path().join(&name).exists());
        assert!(!lives(dir.path(), &name).unwrap());
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
    fn a_later_marker_comes_after_all_that_are_there() {
        let dir = tempfile::tempdir().unwrap();
        // As by a clock that was ahead, and by nobody.
        for name in ["m-01790010509000000000-x", "m-not-ours", "m-"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let markers: Vec<_> = (0..20)
            .map(|_| Marker::create(dir.path(), "m-").unwrap())
            .collect();
        let mut names = vec!["m-".to_owned(), "m-01790010509000000000-x".to_owned()];
        names.extend(markers.iter().map(|marker| marker.name().to_owned()));
        names.push("m-not-ours".to_owned());
        assert_eq!(list(dir.path(), "m-").unwrap(), names);
        drop(markers);
        fs::remove_file(dir.path().join("m-01790010509000000000-x")).unwrap();
        assert!(
            Marker::create(dir.path(), "m-")
                .unwrap()
                .name()
                .starts_with("m-00000000000000000000-")
        );
    }
}
