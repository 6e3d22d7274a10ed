//! Files that were written in guests, or were about to be.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Params, Row, Transaction, named_params, params};

use super::{State, StateError, millis, timestamp};
use crate::{
    ledger::{append, append_if, kinds},
    marker,
};

/// How a file was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestWriteKind {
    /// Next to the present one.
    Beside,
    /// In the place of the present one.
    Replace,
    /// What was replaced, back in its place.
    Undo,
}

impl GuestWriteKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Beside => "beside",
            Self::Replace => "replace",
            Self::Undo => "undo",
        }
    }

    fn of(name: &str) -> Self {
        match name {
            "beside" => Self::Beside,
            "undo" => Self::Undo,
            _ => Self::Replace,
        }
    }
}

/// One file in a guest: `source` is renamed to `target`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestWrite {
    /// What people call it.
    pub name: String,
    /// Host and port of the ZVM.
    pub zvm: String,
    /// The ZVM's identifier of the VM.
    pub vm_identifier: String,
    /// The VM's name, safe to show.
    pub vm: String,
    /// The way in, as the configuration had it.
    pub guest: String,
    /// How.
    pub kind: GuestWriteKind,
    /// The restore that is undone.
    pub undoes: Option<String>,
    /// The id of the checkpoint that the content came from.
    pub checkpoint: String,
    /// The path that was asked for.
    pub path: String,
    /// The path that gets the content.
    pub target: String,
    /// The path that it had before.
    pub source: String,
    /// That path is only ours.
    pub source_is_temporary: bool,
    /// A second name of what was at the target.
    pub copy: Option<String>,
    /// That name was there before.
    pub copy_was_there: bool,
    /// Of the content.
    pub sha256: String,
    /// Of what was at the target before.
    pub previous_sha256: Option<String>,
    /// How it ended, once it has.
    pub outcome: Option<String>,
    /// Why it ended so, where that was not as it should.
    pub why: Option<String>,
}

/// The undoing of a restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoneBy {
    /// What people call it.
    pub name: String,
    /// When it had ended, by this host's clock.
    pub at: Timestamp,
}

const SELECT: &str = "SELECT w.name, w.zvm, w.vm_identifier, w.vm, w.guest, w.kind, w.undoes, w.checkpoint_id, w.path, w.target, w.source,
     w.source_is_temporary, w.copy, w.copy_was_there, w.sha256, w.previous_sha256, e.outcome, w.owner,
     EXISTS (SELECT 1 FROM guest_write_left l WHERE l.write = w.id), e.why
     FROM guest_write w LEFT JOIN guest_write_ended e ON e.write = w.id";

impl State {
    /// Writes down that a file is about to be written, by this process.
    ///
    /// # Errors
    ///
    /// The state cannot be written; then nothing may be written in the guest.
    pub fn guest_write_begun(&self, write: &GuestWrite) -> Result<(), StateError> {
        let at = millis(self.now());
        self.with(|open| {
            let owner = open.owner()?;
            open.write(|database| {
                database.execute(
                    "INSERT INTO guest_write (at, name, zvm, vm_identifier, vm, guest, kind, undoes, checkpoint_id, path, target, source,
                         source_is_temporary, copy, copy_was_there, sha256, previous_sha256, owner, pid)
                     VALUES (:at, :name, :zvm, :vm_identifier, :vm, :guest, :kind, :undoes, :checkpoint, :path, :target, :source,
                         :temporary, :copy, :copy_was_there, :sha256, :previous, :owner, :pid)",
                    named_params! {
                        ":at": at, ":name": write.name, ":zvm": write.zvm,
                        ":vm_identifier": write.vm_identifier, ":vm": write.vm, ":guest": write.guest,
                        ":kind": write.kind.as_str(), ":undoes": write.undoes, ":checkpoint": write.checkpoint,
                        ":path": write.path, ":target": write.target, ":source": write.source,
                        ":temporary": write.source_is_temporary, ":copy": write.copy,
                        ":copy_was_there": write.copy_was_there, ":sha256": write.sha256,
                        ":previous": write.previous_sha256, ":owner": owner, ":pid": std::process::id(),
                    },
                )?;
                append(database, &kinds::GUEST_WRITE, database.last_insert_rowid(), at)
            })
        })
    }

    /// Writes down that nobody knows what has come of it: whoever reaches the guest next may look.
    ///
    /// # Errors
    ///
    /// The state cannot be written.
    pub fn guest_write_left(&self, name: &str) -> Result<(), StateError> {
        let at = millis(self.now());
        self.write(|database| match number(database, name)? {
            Some(write) => left(database, write, at),
            None => Ok(()),
        })
    }

    /// Writes down how it ended. Saying it twice is no error; the first counts.
    ///
    /// # Errors
    ///
    /// The state cannot be written.
    pub fn guest_write_ended(
        &self,
        name: &str,
        outcome: &str,
        why: Option<&str>,
    ) -> Result<(), StateError> {
        let at = millis(self.now());
        self.write_outcome(|database| {
            let Some(write) = number(database, name)? else {
                return Ok(());
            };
            let added = database.execute(
                "INSERT OR IGNORE INTO guest_write_ended (write, at, outcome, why) VALUES (?1, ?2, ?3, ?4)",
                params![write, at, outcome, why],
            )?;
            append_if(added, database, &kinds::GUEST_WRITE_ENDED, write, at)
        })
    }

    /// The one of this name on this ZVM.
    ///
    /// # Errors
    ///
    /// The state cannot be read.
    pub fn guest_write(&self, zvm: &str, name: &str) -> Result<Option<GuestWrite>, StateError> {
        self.with(|open| {
            let query = format!("{SELECT} WHERE w.zvm = ?1 AND w.name = ?2");
            open.database
                .query_row(&query, [zvm, name], row)
                .optional()
                .map_err(|source| StateError::database(&open.dir, source))
        })
    }

    /// What has undone the one of this name.
    ///
    /// # Errors
    ///
    /// The state cannot be read.
    pub fn guest_write_undone(
        &self,
        zvm: &str,
        name: &str,
    ) -> Result<Option<UndoneBy>, StateError> {
        self.with(|open| {
            open.database
                .query_row(
                    "SELECT w.name, e.at FROM guest_write w JOIN guest_write_ended e ON e.write = w.id
                     WHERE w.zvm = ?1 AND w.undoes = ?2 AND e.outcome = 'restored' ORDER BY w.id DESC LIMIT 1",
                    [zvm, name],
                    |row| {
                        Ok(UndoneBy {
                            name: row.get(0)?,
                            at: timestamp(row.get(1)?),
                        })
                    },
                )
                .optional()
                .map_err(|source| StateError::database(&open.dir, source))
        })
    }

    /// Those in this VM's guest that did not end and that nobody is busy with, oldest first.
    ///
    /// # Errors
    ///
    /// The state cannot be read.
    pub fn guest_writes_left(
        &self,
        zvm: &str,
        vm_identifier: &str,
    ) -> Result<Vec<GuestWrite>, StateError> {
        self.nobodys("w.zvm = ?1 AND w.vm_identifier = ?2", [zvm, vm_identifier])
    }

    /// As [`guest_writes_left`](Self::guest_writes_left), in all guests.
    ///
    /// # Errors
    ///
    /// The state cannot be read.
    pub fn all_guest_writes_left(&self) -> Result<Vec<GuestWrite>, StateError> {
        self.nobodys("true", [])
    }

    fn nobodys(&self, which: &str, parameters: impl Params) -> Result<Vec<GuestWrite>, StateError> {
        self.with(|open| {
            let dir = open.dir.clone();
            let read = |database: &Connection| {
                let mut query = database.prepare(&format!(
                    "{SELECT} WHERE {which} AND e.write IS NULL ORDER BY w.id"
                ))?;
                let rows = query.query_map(parameters, |found| {
                    let (owner, left): (String, bool) = (found.get(17)?, found.get(18)?);
                    Ok((
                        row(found)?,
                        left || !marker::lives(&dir, &owner).unwrap_or(true),
                    ))
                })?;
                rows.collect::<rusqlite::Result<Vec<_>>>()
            };
            let found =
                read(&open.database).map_err(|source| StateError::database(&dir, source))?;
            let nobodys = found.into_iter().filter(|(_, left)| *left);
            Ok(nobodys.map(|(write, _)| write).collect())
        })
    }
}

fn number(database: &Transaction<'_>, name: &str) -> rusqlite::Result<Option<i64>> {
    database
        .prepare_cached("SELECT id FROM guest_write WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()
}

fn left(database: &Transaction<'_>, write: i64, at: i64) -> rusqlite::Result<()> {
    let added = database.execute(
        "INSERT OR IGNORE INTO guest_write_left (write, at) VALUES (?1, ?2)",
        params![write, at],
    )?;
    append_if(added, database, &kinds::GUEST_WRITE_LEFT, write, at)
}

/// Those of a process that it has neither ended nor left.
fn open_of(database: &Connection, owner: &str) -> rusqlite::Result<Vec<GuestWrite>> {
    let mut query = database.prepare_cached(&format!(
        "{SELECT} WHERE w.owner = ?1 AND e.write IS NULL
           AND NOT EXISTS (SELECT 1 FROM guest_write_left l WHERE l.write = w.id) ORDER BY w.id"
    ))?;
    let writes = query.query_map([owner], row)?;
    writes.collect()
}

/// Those of a process in the guest of a plan's VM, from the plan's checkpoint, since it was begun.
pub(super) fn of_plan(
    database: &Connection,
    owner: &str,
    plan: i64,
) -> rusqlite::Result<Vec<GuestWrite>> {
    let mut query = database.prepare_cached(&format!(
        "{SELECT} JOIN plan p ON p.id = ?2 JOIN plan_begun b ON b.plan = p.id
         WHERE w.owner = ?1 AND w.zvm = p.zvm AND w.vm_identifier = p.vm_identifier
           AND w.checkpoint_id = p.checkpoint_id AND w.kind <> 'undo' AND w.at >= b.at ORDER BY w.id"
    ))?;
    let writes = query.query_map(params![owner, plan], row)?;
    writes.collect()
}

/// Leaves those of a process that is no more to whoever reaches the guest next.
pub(super) fn leave_those_of(
    database: &Transaction<'_>,
    owner: &str,
    now: i64,
) -> rusqlite::Result<Vec<GuestWrite>> {
    let open = open_of(database, owner)?;
    for write in &open {
        if let Some(write) = number(database, &write.name)? {
            left(database, write, now)?;
        }
    }
    Ok(open)
}

fn row(row: &Row<'_>) -> rusqlite::Result<GuestWrite> {
    Ok(GuestWrite {
        name: row.get(0)?,
        zvm: row.get(1)?,
        vm_identifier: row.get(2)?,
        vm: row.get(3)?,
        guest: row.get(4)?,
        kind: GuestWriteKind::of(&row.get::<_, String>(5)?),
        undoes: row.get(6)?,
        checkpoint: row.get(7)?,
        path: row.get(8)?,
        target: row.get(9)?,
        source: row.get(10)?,
        source_is_temporary: row.get(11)?,
        copy: row.get(12)?,
        copy_was_there: row.get(13)?,
        sha256: row.get(14)?,
        previous_sha256: row.get(15)?,
        outcome: row.get(16)?,
        why: row.get(19)?,
    })
}
