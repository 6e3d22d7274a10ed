//! Recoveries: what was asked for, and what was placed where. Contents are not kept, only their digests.

use jiff::Timestamp;
use rusqlite::{Transaction, params};

use super::{State, StateError, millis};
use crate::ledger::{append, append_if, kinds};

/// A path that is about to be recovered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryRecord {
    /// The plan's id.
    pub plan: String,
    /// Host and port of the ZVM.
    pub zvm: String,
    /// The ZVM's identifier of the VM.
    pub vm_identifier: String,
    /// The VM's name, as the ZVM reported it.
    pub vm_name: String,
    /// The ZVM's identifier of the VPG.
    pub vpg_identifier: String,
    /// The VPG's name.
    pub vpg_name: String,
    /// The checkpoint's id.
    pub checkpoint_id: String,
    /// The checkpoint's time, by the ZVM's clock.
    pub checkpoint_at: Timestamp,
    /// Its tag, if it has one.
    pub tag: Option<String>,
    /// The MCP client as it named itself, or the program that asked.
    pub client: Option<String>,
    /// The change id of the session that asked.
    pub change: String,
    /// The path in the guest, as it was asked for.
    pub path: String,
}

/// The number of a recovery in the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecoveryId(i64);

/// The number of a placing in the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PlacingId(i64);

/// What is at its destination, complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// How many files.
    pub files: u64,
    /// Their bytes together.
    pub bytes: u64,
    /// SHA-256, hexadecimal: of the file; of a folder, of its list of files (see [`list_digest`](crate::ledger::list_digest)).
    pub sha256: String,
}

impl State {
    /// Writes down that these are about to begin.
    ///
    /// # Errors
    ///
    /// The state cannot be written; then nothing may be mounted.
    pub fn recoveries_beginning(
        &self,
        recoveries: &[RecoveryRecord],
    ) -> Result<Vec<RecoveryId>, StateError> {
        let at = millis(self.now());
        self.with(|open| {
            let owner = open.owner()?;
            open.write(|database| {
                let recoveries = recoveries.iter();
                recoveries
                    .map(|recovery| beginning(database, recovery, &owner, at))
                    .collect()
            })
        })
    }

    /// Writes down how a recovery ended: with the code of a failure, or well. The first word counts.
    ///
    /// # Errors
    ///
    /// The state cannot be written.
    pub fn recovery_ended(
        &self,
        recovery: RecoveryId,
        failure: Option<&str>,
    ) -> Result<(), StateError> {
        let at = millis(self.now());
        self.write_outcome(|database| {
            let added = database.execute(
                "INSERT OR IGNORE INTO recovery_ended (recovery, failure) VALUES (?1, ?2)",
                params![recovery.0, failure],
            )?;
            append_if(added, database, &kinds::RECOVERY_ENDED, recovery.0, at)
        })
    }

    /// Writes down that a file or folder of a recovery is about to be downloaded to `destination`.
    ///
    /// # Errors
    ///
    /// The state cannot be written; then nothing may be downloaded.
    pub fn placing(
        &self,
        recovery: RecoveryId,
        guest_path: &str,
        destination: &str,
    ) -> Result<PlacingId, StateError> {
        let at = millis(self.now());
        self.with(|open| {
            let owner = open.owner()?;
            open.write(|database| {
                database.execute(
                    "INSERT INTO placing (recovery, guest_path, destination, owner) VALUES (?1, ?2, ?3, ?4)",
                    params![recovery.0, guest_path, destination, owner],
                )?;
                let id = database.last_insert_rowid();
                append(database, &kinds::PLACING, id, at)?;
                Ok(PlacingId(id))
            })
        })
    }

    /// Writes down what was placed, or the code of the failure that kept it from being placed. The first word counts.
    ///
    /// # Errors
    ///
    /// The state cannot be written.
    pub fn placed(
        &self,
        placing: PlacingId,
        result: Result<&Placed, &str>,
    ) -> Result<(), StateError> {
        let (placed, failure) = (result.ok(), result.err());
        let at = millis(self.now());
        self.write_outcome(|database| {
            let added = database.execute(
                "INSERT OR IGNORE INTO placed (placing, files, bytes, sha256, failure) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    placing.0,
                    placed.map(|placed| whole(placed.files)),
                    placed.map(|placed| whole(placed.bytes)),
                    placed.map(|placed| &placed.sha256),
                    failure,
                ],
            )?;
            append_if(added, database, &kinds::PLACED, placing.0, at)
        })
    }
}

fn beginning(
    database: &Transaction<'_>,
    recovery: &RecoveryRecord,
    owner: &str,
    at: i64,
) -> rusqlite::Result<RecoveryId> {
    database.execute(
        "INSERT INTO recovery (plan, zvm, vm_identifier, vm_name, vpg_identifier, vpg_name, checkpoint_id, checkpoint_at, tag, client,
             change_id, path, owner)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        params![
            recovery.plan,
            recovery.zvm,
            recovery.vm_identifier,
            recovery.vm_name,
            recovery.vpg_identifier,
            recovery.vpg_name,
            recovery.checkpoint_id,
            millis(recovery.checkpoint_at),
            recovery.tag,
            recovery.client,
            recovery.change,
            recovery.path,
            owner,
        ],
    )?;
    let id = database.last_insert_rowid();
    append(database, &kinds::RECOVERY, id, at)?;
    Ok(RecoveryId(id))
}

/// SQLite has no larger numbers, and no file does.
fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
