//! What has to be remembered between processes, in `state.db` (SQLite, WAL) in the state folder.
//!
//! Rows are only added; the database itself refuses to change or remove one. An outcome is a new row. Times are milliseconds since
//! 1970 by this host's clock, except where a field says that it is the ZVM's. The rows are those of the [ledger](crate::ledger):
//! whoever inserts one appends it there in the same transaction. Only logins are not in it.
//!
//! The calls are synchronous, take milliseconds, and may wait some seconds for another process: async code runs them with
//! `tokio::task::spawn_blocking`.

mod approver;
pub(crate) mod calls;
mod certificates;
mod error;
pub(crate) mod folder;
mod guards;
mod guest_writes;
mod inserts;
pub(crate) mod interrupted;
pub(crate) mod lately;
mod logins;
mod looks;
mod outcomes;
pub(crate) mod places;
mod plans;
mod recoveries;
mod refusals;
mod schema;
mod sessions;
pub(crate) mod tools;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;
use rusqlite::{Connection, Transaction, TransactionBehavior};

pub use certificates::KnownCertificate;
pub use error::StateError;
pub use folder::FolderError;
pub(crate) use guards::{EarlierGuard, digest};
pub use guards::{GuardRecord, PinRecord, ToolCall, arguments_digest};
pub use guest_writes::{GuestWrite, GuestWriteKind, UndoneBy};
pub use inserts::{InsertId, InsertOutcome, SentInsert};
pub use interrupted::{Interrupted, InterruptedGuard, InterruptedPlan};
pub use logins::{LoginAttempt, LoginBlocked, LoginError, LoginOutcome};
pub(crate) use looks::{LookId, LookRecord};
pub(crate) use plans::{Asker, Begun, Decided, PlanForm, PlanRow};
pub use recoveries::{Placed, PlacingId, RecoveryId, RecoveryRecord};
pub use refusals::{Asked, Refusal};
pub use sessions::{FlrMount, OpenSession, SessionId};

use crate::{
    clock::{Clock, SystemClock},
    ledger::has_open,
    marker::Marker,
};

/// The state folder's database. Clones share one connection.
///
/// Nothing is touched before the first call that needs the database.
#[derive(Clone)]
pub struct State {
    inner: Arc<Inner>,
}

struct Inner {
    dir: PathBuf,
    clock: Arc<dyn Clock>,
    open: Mutex<Option<Open>>,
}

pub(crate) struct Open {
    /// The folder, resolved and checked.
    pub dir: PathBuf,
    pub database: Connection,
    /// Says that this process lives, once it owns something.
    owner: Option<Marker>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("dir", &self.inner.dir)
            .finish_non_exhaustive()
    }
}

impl State {
    /// The state in `dir`, which is created (mode 0700) at the first use.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self::with_clock(dir, Arc::new(SystemClock))
    }

    /// As [`new`](Self::new), by another clock than the system's.
    #[must_use]
    pub fn with_clock(dir: impl Into<PathBuf>, clock: Arc<dyn Clock>) -> Self {
        Self {
            inner: Arc::new(Inner {
                dir: dir.into(),
                clock,
                open: Mutex::new(None),
            }),
        }
    }

    /// The state in `dir`, opened now.
    ///
    /// # Errors
    ///
    /// The folder cannot be made, is a symlink, belongs to another user or is open to others; the database cannot be opened, or a newer
    /// version of this program wrote it.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self, StateError> {
        let state = Self::new(dir);
        state.with(|_| Ok(()))?;
        Ok(state)
    }

    /// Whether there is a state in `dir`. Makes nothing.
    ///
    /// # Errors
    ///
    /// It can't be told.
    pub fn is_in(dir: &Path) -> Result<bool, StateError> {
        use std::io::ErrorKind::{NotADirectory, NotFound};
        match std::fs::symlink_metadata(dir.join(schema::FILE)) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(false),
            Err(source) => Err(FolderError::Io {
                dir: dir.to_owned(),
                source,
            }
            .into()),
        }
    }

    /// The folder, as it was given.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.inner.dir
    }

    /// What this host takes for the time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// Writes to the database, and leaves it as it was: only so is it seen that it takes something.
    pub(crate) fn try_to_write(&self) -> Result<(), StateError> {
        self.write(|database| {
            let same: i64 = database.pragma_query_value(None, "user_version", |row| row.get(0))?;
            database.pragma_update(None, "user_version", same)
        })
    }

    pub(crate) fn with<T>(
        &self,
        work: impl FnOnce(&mut Open) -> Result<T, StateError>,
    ) -> Result<T, StateError> {
        let mut slot = self
            .inner
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let open = match &mut *slot {
            Some(open) => open,
            empty => empty.insert(Open::new(&self.inner.dir, self.now())?),
        };
        work(open)
    }

    /// Runs `work` in a transaction that excludes every other writer from its start.
    pub(crate) fn write<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StateError> {
        self.with(|open| open.write(work))
    }

    /// As [`write`](Self::write), for what may be lost in a power cut.
    pub(crate) fn write_outcome<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StateError> {
        self.with(|open| open.write_outcome(work))
    }

    /// Runs `work` on the database and its folder as they are at one moment; waits for no writer.
    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>, &Path) -> rusqlite::Result<T>,
    ) -> Result<T, StateError> {
        self.with(|open| {
            open.database
                .transaction()
                .and_then(|transaction| work(&transaction, &open.dir))
                .map_err(|source| StateError::database(&open.dir, source))
        })
    }
}

impl Open {
    fn new(dir: &Path, now: Timestamp) -> Result<Self, StateError> {
        let dir = folder::prepare(dir)?;
        let database = schema::open(&dir, millis(now))?;
        Ok(Self {
            dir,
            database,
            owner: None,
        })
    }

    pub(crate) fn write<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StateError> {
        let run = |database: &mut Connection| {
            let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = work(&transaction)?;
            transaction.commit()?;
            Ok(value)
        };
        run(&mut self.database).map_err(|source| StateError::database(&self.dir, source))
    }

    /// Without waiting for the disk. An outcome that is lost leaves its intent open, so nothing is taken to be done that was not.
    pub(crate) fn write_outcome<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StateError> {
        self.synchronous(schema::MAY_BE_LOST)?;
        let result = self.write(work);
        self.synchronous(schema::SURVIVES)?;
        result
    }

    fn synchronous(&self, mode: &str) -> Result<(), StateError> {
        self.database
            .pragma_update(None, "synchronous", mode)
            .map_err(|source| StateError::database(&self.dir, source))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(owner) = self.owner.take()
            && has_open(&self.database, owner.name()).unwrap_or(true)
        {
            // The next process closes what this one has begun.
            owner.leave();
        }
    }
}

/// Milliseconds since 1970.
fn millis(at: Timestamp) -> i64 {
    at.as_millisecond()
}

/// The time of milliseconds since 1970, as near as it can be told.
pub(crate) fn timestamp(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap_or(if millis < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    })
}
