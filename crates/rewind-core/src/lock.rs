//! One insert at a time into one VPG, across all processes of this user.
//!
//! Tagged inserts fired back to back at one VPG are silently dropped (measured on a 10.x ZVM), so an insert holds the VPG's lock file
//! until its tag is listed. Those that wait stand in a queue, oldest first, each with a file of its own that is locked while it waits.
//! The lock alone keeps inserts apart; the queue only orders them. Both are released by the system when a process ends, however it
//! ends. Lock files are never removed: another process may be about to lock one.
//!
//! There is no event for a lock of another process to await without a thread that could not be cancelled, so waiting means looking
//! again, the less often the further back in the queue.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use sha2::{Digest, Sha256};

use crate::{
    marker::{self, Marker},
    private::{self, ForeignFile},
    state::{FolderError, folder},
};

/// How often the first in the queue looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(25);
/// How seldom the others do at most.
const LOOK_SELDOM: Duration = Duration::from_millis(500);

/// The locks in a state folder.
#[derive(Debug, Clone)]
pub struct Locks {
    dir: PathBuf,
}

/// The lock of one VPG, held until it is dropped.
#[derive(Debug)]
#[must_use = "the lock is released when this is dropped"]
pub struct VpgLock {
    file: File,
}

impl Drop for VpgLock {
    fn drop(&mut self) {
        // Closing the file would not do while a child process that is just being started still shares it.
        let _ = self.file.unlock();
    }
}

/// Why a lock could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// The state folder is not safe to use.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A lock file, or one of the queue, is not this user's own.
    #[error(transparent)]
    File(#[from] ForeignFile),
    /// The lock file cannot be locked.
    #[error("{}: cannot be locked: {source}: check the disk, and that its file system can lock files", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The program is ending, and with it the wait.
    #[error("the program is ending: the lock is no longer waited for")]
    Ending,
}

impl Locks {
    /// The locks in the state folder `dir`, which is created (mode 0700) at the first use.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// Waits for the lock of a VPG on `zvm` (host and port), in the order of asking.
    ///
    /// `place` is told the place in the queue when it is known and whenever it changes: 1 is the next to get the lock. Dropping the
    /// future leaves the queue. There is no deadline: callers have their own.
    ///
    /// # Errors
    ///
    /// The state folder is not safe to use, or a file cannot be opened or locked.
    pub async fn acquire(
        &self,
        zvm: &str,
        vpg_identifier: &str,
        mut place: impl FnMut(usize) + Send,
    ) -> Result<VpgLock, LockError> {
        let name = name(zvm, vpg_identifier);
        let dir = self.dir.clone();
        let mut waiting = blocking(move || Waiting::begin(&dir, name)).await?;
        let mut told = None;
        loop {
            let turn;
            (waiting, turn) = blocking(move || waiting.look()).await?;
            let now = match turn {
                Turn::Ours(lock) => return Ok(lock),
                Turn::Behind(now) => now,
            };
            if told.replace(now) != Some(now) {
                place(now);
            }
            let steps = u32::try_from(now).unwrap_or(u32::MAX);
            tokio::time::sleep(LOOK_AGAIN.saturating_mul(steps).min(LOOK_SELDOM)).await;
        }
    }
}

enum Turn {
    Ours(VpgLock),
    /// The place in the queue, from 1.
    Behind(usize),
}

/// One that waits for a lock.
struct Waiting {
    dir: PathBuf,
    lock: PathBuf,
    queue: String,
    marker: Marker,
}

impl Waiting {
    fn begin(dir: &Path, name: String) -> Result<Self, LockError> {
        let dir = folder::prepare(dir)?;
        let lock = dir.join(format!("{name}.lock"));
        let queue = format!("{name}.wait-");
        let marker = Marker::create(&dir, &queue)?;
        Ok(Self {
            dir,
            lock,
            queue,
            marker,
        })
    }

    /// Takes the lock if nobody is before us.
    fn look(self) -> Result<(Self, Turn), LockError> {
        let failed = |source| LockError::Io {
            file: self.lock.clone(),
            source,
        };
        let before = self.before()?;
        if before > 0 {
            return Ok((self, Turn::Behind(before + 1)));
        }
        let file = private::open(&self.lock, OpenOptions::new().create(true))?;
        match file.try_lock() {
            Ok(()) => Ok((self, Turn::Ours(VpgLock { file }))),
            Err(TryLockError::WouldBlock) => Ok((self, Turn::Behind(1))),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    /// How many stand before us. Only the first of them is asked whether it lives: it is the one that everybody waits for.
    fn before(&self) -> Result<usize, LockError> {
        let mut before = marker::list(&self.dir, &self.queue).map_err(|source| LockError::Io {
            file: self.lock.clone(),
            source,
        })?;
        before.retain(|name| name.as_str() < self.marker.name());
        for (dead, name) in before.iter().enumerate() {
            if marker::lives(&self.dir, name)? {
                return Ok(before.len() - dead);
            }
        }
        Ok(0)
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LockError> + Send + 'static,
) -> Result<T, LockError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err(LockError::Ending),
    }
}

/// A file name for a VPG: readable, and its own whatever the identifiers contain. Identifiers differ in letter case between sources.
fn name(zvm: &str, vpg_identifier: &str) -> String {
    let (zvm, vpg) = (
        zvm.to_ascii_lowercase(),
        vpg_identifier.to_ascii_lowercase(),
    );
    let hash = Sha256::new()
        .chain_update(&zvm)
        .chain_update([0])
        .chain_update(&vpg)
        .finalize();
    let hash: String = hash
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let readable: String = vpg
        .chars()
        .take(40)
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    format!("vpg-{hash}-{readable}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_and_differ_with_what_they_stand_for() {
        let plain = name("zvm:443", "AAAA-bbbb");
        assert!(plain.starts_with("vpg-") && plain.ends_with("-aaaa-bbbb"));
        assert_eq!(name("ZVM:443", "aaaa-BBBB"), plain);
        for (zvm, vpg) in [
            ("zvm:444", "aaaa-bbbb"),
            ("zvm:443", "aaaa/bbbb"),
            ("zvm:443a", "aaa-bbbb"),
            ("", ""),
        ] {
            assert_ne!(name(zvm, vpg), plain);
        }
        for hostile in ["../../etc/passwd", "a\0b", "ü\u{202E}", &"x".repeat(10_000)] {
            let name = name("zvm", hostile);
            assert!(
                name.len() < 80
                    && name
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'),
                "{name}"
            );
        }
    }
}
