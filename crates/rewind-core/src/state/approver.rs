//! The hash of the approver's passphrase, and how often a wrong one was tried.

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

use super::{State, StateError, millis, timestamp};

/// Wrong passphrases that are tolerated within [`WINDOW`], counted since the last right one.
const WRONG_MAX: usize = 5;
const WINDOW: SignedDuration = SignedDuration::from_mins(10);

/// A comparison that was permitted. Without [`State::approver_was_right`] it counts as a wrong one.
#[derive(Clone, Copy, Debug)]
#[must_use = "an attempt without an outcome counts as a wrong one"]
pub(crate) struct ApproverAttempt(i64);

impl State {
    /// When the approver's passphrase was last set or removed, if ever, and its Argon2id hash, where one is set.
    pub(crate) fn approver_newest(
        &self,
    ) -> Result<Option<(Timestamp, Option<String>)>, StateError> {
        self.with(|open| {
            open.database
                .query_row(
                    "SELECT hash, at FROM approver ORDER BY id DESC LIMIT 1",
                    [],
                    |row| Ok((timestamp(row.get(1)?), row.get(0)?)),
                )
                .optional()
                .map_err(|source| StateError::database(&open.dir, source))
        })
    }

    /// From now on this hash counts; None: no passphrase is asked for.
    pub(crate) fn approver_set(
        &self,
        hash: Option<&str>,
        by: &str,
        now: Timestamp,
    ) -> Result<(), StateError> {
        self.write(|database| {
            database.execute(
                "INSERT INTO approver (at, hash, set_by) VALUES (?1, ?2, ?3)",
                params![millis(now), hash, by],
            )?;
            Ok(())
        })
    }

    /// Until when no passphrase is compared; None: one may be tried.
    pub(crate) fn approver_locked_until(
        &self,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, StateError> {
        self.read(|database, _| locked_until(database, now))
    }

    /// Permits a passphrase to be compared; else until when none is.
    pub(crate) fn approver_attempt(
        &self,
        now: Timestamp,
    ) -> Result<Result<ApproverAttempt, Timestamp>, StateError> {
        self.write(|database| {
            if let Some(until) = locked_until(database, now)? {
                return Ok(Err(until));
            }
            database.execute(
                "INSERT INTO approver_attempt (at) VALUES (?1)",
                [millis(now)],
            )?;
            Ok(Ok(ApproverAttempt(database.last_insert_rowid())))
        })
    }

    /// The passphrase was the right one.
    pub(crate) fn approver_was_right(
        &self,
        attempt: ApproverAttempt,
        now: Timestamp,
    ) -> Result<(), StateError> {
        self.write(|database| {
            database.execute(
                "INSERT INTO approver_right (attempt, at) VALUES (?1, ?2)",
                params![attempt.0, millis(now)],
            )?;
            Ok(())
        })
    }
}

fn locked_until(database: &Connection, now: Timestamp) -> rusqlite::Result<Option<Timestamp>> {
    let mut query = database.prepare_cached(
        "SELECT a.at FROM approver_attempt a
         WHERE a.at > ?1 AND a.id > (SELECT COALESCE(MAX(attempt), 0) FROM approver_right)
         ORDER BY a.at DESC",
    )?;
    let wrong: Vec<i64> = query
        .query_map([millis(now - WINDOW)], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let oldest = wrong.get(WRONG_MAX - 1);
    Ok(oldest.map(|oldest| timestamp(*oldest) + WINDOW))
}
