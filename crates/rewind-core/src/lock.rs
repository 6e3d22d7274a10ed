//! One insert at a time into one VPG, across all processes of this user.
//!
//! Tagged inserts fired back to back at one VPG are silently dropped (measured on a 10.x ZVM), so an insert holds the VPG's lock file
//! until its tag is listed. Those that wait stand in a queue, oldest first, each with a file of its own that is locked while it waits.
//! The lock alone keeps inserts apart; the queue only orders them. Both are released by the system when a process ends, however it
//! ends. Lock files are never removed: another process may be about to lock one.
//!
//! A process may also be stopped (Ctrl-Z). One that holds the lock may have an insert under way, so the others go on waiting, and are told
//! who it is. One that only waits has no right to block: the next ones pass it over when it leaves a free lock alone.
//!
//! There is no event for a lock of another process to await without a thread that could not be cancelled, so waiting means looking
//! again, the less often the further back in the queue.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::{
    marker::{self, Marker},
    private::{self, ForeignFile},
    state::{FolderError, folder},
    text,
};

/// How often the first in the queue looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(25);
/// How seldom the others do at most.
const LOOK_SELDOM: Duration = Duration::from_millis(500);
/// For so long the first in the queue may leave a free lock alone before the second takes it; for twice as long before the third does.
const PASS_OVER: Duration = Duration::from_secs(3);
/// Of what a holder says of itself.
const HOLDER_MAX: u64 = 100;
const PREFIX: &str = "vpg-";
const WAITING: &str = ".wait-";

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
        let _ = self.file.set_len(0);
        // Closing the file would not do while a child process that is just being started still shares it.
        let _ = self.file.unlock();
    }
}

/// The process that holds a lock, as it says itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// Its id, on its own host or in its own container.
    pub pid: u32,
    /// When it got the lock, by this host's clock.
    pub since: Timestamp,
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

    /// Who holds the lock of a VPG now, as far as that can be told.
    #[must_use]
    pub fn holder(&self, zvm: &str, vpg_identifier: &str) -> Option<Holder> {
        let dir = fs::canonicalize(&self.dir).ok()?;
        let lock = lock_file(&dir, &name(zvm, vpg_identifier));
        let file = private::open(&lock, OpenOptions::new().create(true)).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Holder::read(&file),
            _ => None,
        }
    }

    /// Removes what processes left behind that died while they waited for a lock.
    pub(crate) fn forget_dead(&self) -> Result<(), LockError> {
        let dir = folder::prepare(&self.dir)?;
        let failed = |source| LockError::Io {
            file: dir.clone(),
            source,
        };
        for name in marker::list(&dir, PREFIX).map_err(failed)? {
            if name.contains(WAITING) {
                marker::bury(&dir, &name)?;
            }
        }
        Ok(())
    }
}

impl Holder {
    fn write(mut file: &File) -> io::Result<()> {
        file.set_len(0)?;
        let pid = std::process::id();
        file.write_all(format!("{pid} {}\n", Timestamp::now()).as_bytes())
    }

    fn read(file: &File) -> Option<Self> {
        let mut text = String::new();
        file.take(HOLDER_MAX).read_to_string(&mut text).ok()?;
        let (pid, since) = text.trim_end().split_once(' ')?;
        Some(Self {
            pid: pid.parse().ok()?,
            since: since.parse().ok()?,
        })
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
    /// The first in the queue, and since when it leaves a free lock alone.
    idle: Option<(String, Instant)>,
}

impl Waiting {
    fn begin(dir: &Path, name: String) -> Result<Self, LockError> {
        let dir = folder::prepare(dir)?;
        let lock = lock_file(&dir, &name);
        let queue = format!("{name}{WAITING}");
        let marker = Marker::create(&dir, &queue)?;
        Ok(Self {
            dir,
            lock,
            queue,
            marker,
            idle: None,
        })
    }

    /// Takes the lock if it is our turn.
    fn look(mut self) -> Result<(Self, Turn), LockError> {
        let turn = self.turn()?;
        Ok((self, turn))
    }

    fn turn(&mut self) -> Result<Turn, LockError> {
        let before = self.before()?;
        let behind = Turn::Behind(before.len() + 1);
        let file = private::open(&self.lock, OpenOptions::new().create(true))?;
        if let Some(first) = before.first() {
            let patience =
                PASS_OVER.saturating_mul(u32::try_from(before.len()).unwrap_or(u32::MAX));
            let idle = self.idle_for(first, &file);
            if idle.map_err(|source| self.failed(source))? < patience {
                return Ok(behind);
            }
        }
        match file.try_lock() {
            Ok(()) => {
                // Who can't say who it is holds the lock all the same.
                let _ = Holder::write(&file);
                Ok(Turn::Ours(VpgLock { file }))
            }
            Err(TryLockError::WouldBlock) => Ok(behind),
            Err(TryLockError::Error(source)) => Err(self.failed(source)),
        }
    }

    fn failed(&self, source: io::Error) -> LockError {
        LockError::Io {
            file: self.lock.clone(),
            source,
        }
    }

    /// For how long the first in the queue has left a free lock alone.
    fn idle_for(&mut self, first: &str, lock: &File) -> io::Result<Duration> {
        match lock.try_lock_shared() {
            Ok(()) => lock.unlock()?,
            Err(TryLockError::WouldBlock) => {
                self.idle = None;
                return Ok(Duration::ZERO);
            }
            Err(TryLockError::Error(source)) => return Err(source),
        }
        match &self.idle {
            Some((known, since)) if known == first => Ok(since.elapsed()),
            _ => {
                self.idle = Some((first.to_owned(), Instant::now()));
                Ok(Duration::ZERO)
            }
        }
    }

    /// Those who stand before us, oldest first. Only the first of them is asked whether it lives: it is the one that everybody waits for.
    fn before(&self) -> Result<Vec<String>, LockError> {
        let before = marker::list(&self.dir, &self.queue);
        let mut before = before.map_err(|source| self.failed(source))?;
        before.retain(|name| name.as_str() < self.marker.name());
        let mut dead = 0;
        for name in &before {
            if !marker::bury(&self.dir, name)? {
                break;
            }
            dead += 1;
        }
        Ok(before.split_off(dead))
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
    let hash = text::hex(hash.get(..8).unwrap_or_default());
    let readable: String = vpg
        .chars()
        .take(40)
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    format!("{PREFIX}{hash}-{readable}")
}

fn lock_file(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.lock"))
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
