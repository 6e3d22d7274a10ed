//! Guards and their pins.

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Row, Transaction, params};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{State, StateError, millis, timestamp};
use crate::{
    ledger::{append, append_if, give_up, kinds},
    text,
};

/// A guard that has ended, well or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardRecord {
    /// Host and port of the ZVM.
    pub zvm: String,
    /// The agent, as in the tag.
    pub agent: String,
    /// The MCP client as it named itself, or the program that asked.
    pub client: Option<String>,
    /// The change id, as in the tag.
    pub change: String,
    /// The ZVM's identifier of the VM.
    pub vm_identifier: String,
    /// The VM's name, as the ZVM reported it.
    pub vm_name: String,
    /// The tag.
    pub tag: String,
    /// The tool call that was guarded, where there was one.
    pub call: Option<ToolCall>,
    /// When the guard began, by this host's clock.
    pub started: Timestamp,
    /// When it ended, by this host's clock.
    pub ended: Timestamp,
    /// The pins that were taken; all of them, or the guard failed.
    pub pins: Vec<PinRecord>,
    /// Why it failed, where it did.
    pub failure: Option<String>,
}

/// The tool call that was guarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The MCP server's name, where it is known.
    pub server: Option<String>,
    /// The tool's name.
    pub tool: String,
    /// What [`arguments_digest`] makes of the arguments; they themselves are not kept.
    pub arguments_digest: String,
}

/// One pin of a guard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinRecord {
    /// The ZVM's identifier of the VPG.
    pub vpg_identifier: String,
    /// The VPG's name.
    pub vpg_name: String,
    /// The checkpoint's id, unique within its VPG only.
    pub checkpoint_id: String,
    /// The checkpoint's time, by the ZVM's clock.
    pub checkpoint_at: Timestamp,
}

impl State {
    /// Writes down that a guard is about to insert `tag` for a VM. False: a guard of this user had this very tag already, and
    /// nothing is written.
    ///
    /// # Errors
    ///
    /// The state cannot be written; then nothing may be inserted.
    pub fn guard_intended(
        &self,
        zvm: &str,
        vm_identifier: &str,
        tag: &str,
    ) -> Result<bool, StateError> {
        let at = millis(self.now());
        self.with(|open| {
            let owner = open.owner()?;
            open.write(|database| {
                let added = database.execute(
                    "INSERT OR IGNORE INTO guard_intent (at, zvm, vm_identifier, tag, owner) VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![at, zvm, vm_identifier.to_lowercase(), tag, owner],
                )?;
                let id = database.last_insert_rowid();
                append_if(added, database, &kinds::GUARD_INTENT, id, at)?;
                Ok(added > 0)
            })
        })
    }

    /// A pin of this VPG that a guard of this user has taken: the one with this tag, or with this checkpoint id.
    ///
    /// # Errors
    ///
    /// The state cannot be read.
    pub fn pin(
        &self,
        zvm: &str,
        vpg_identifier: &str,
        tag_or_id: &str,
    ) -> Result<Option<PinRecord>, StateError> {
        self.with(|open| {
            let pin = open
                .database
                .prepare_cached(
                    "SELECT vpg_identifier, vpg_name, checkpoint_id, checkpoint_at FROM pin
                     WHERE guard IN (SELECT id FROM guard WHERE tag = ?3 AND zvm = ?1) AND lower(vpg_identifier) = lower(?2)
                     UNION ALL
                     SELECT vpg_identifier, vpg_name, checkpoint_id, checkpoint_at FROM pin JOIN guard ON guard.id = pin.guard
                     WHERE vpg_identifier = ?2 AND checkpoint_id = ?3 AND zvm = ?1
                     LIMIT 1",
                )
                .and_then(|mut query| {
                    let parameters = [zvm, vpg_identifier, tag_or_id];
                    query.query_row(parameters, PinRecord::read).optional()
                });
            pin.map_err(|source| StateError::database(&open.dir, source))
        })
    }

    /// Remembers a guard and its pins. What it inserted and nobody saw listed is no longer waited for. Returns the guard's number.
    ///
    /// # Errors
    ///
    /// The state cannot be written.
    pub fn record_guard(&self, guard: &GuardRecord) -> Result<i64, StateError> {
        let at = millis(self.now());
        self.write(|database| {
            let call = guard.call.as_ref();
            database.execute(
                "INSERT INTO guard (zvm, agent, client, change_id, vm_identifier, vm_name, tag, server, tool,
                     arguments_digest, started_at, ended_at, failure)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
                params![
                    guard.zvm,
                    guard.agent,
                    guard.client,
                    guard.change,
                    guard.vm_identifier,
                    guard.vm_name,
                    guard.tag,
                    call.and_then(|call| call.server.as_deref()),
                    call.map(|call| &call.tool),
                    call.map(|call| &call.arguments_digest),
                    millis(guard.started),
                    millis(guard.ended),
                    guard.failure,
                ],
            )?;
            let id = database.last_insert_rowid();
            for pin in &guard.pins {
                database.execute(
                    "INSERT INTO pin (guard, vpg_identifier, vpg_name, checkpoint_id, checkpoint_at)
                     VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![id, pin.vpg_identifier, pin.vpg_name, pin.checkpoint_id, millis(pin.checkpoint_at)],
                )?;
                append(database, &kinds::PIN, database.last_insert_rowid(), at)?;
            }
            given_up(database, guard, at)?;
            append(database, &kinds::GUARD, id, at)?;
            Ok(id)
        })
    }
}

impl PinRecord {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            vpg_identifier: row.get(0)?,
            vpg_name: row.get(1)?,
            checkpoint_id: row.get(2)?,
            checkpoint_at: timestamp(row.get(3)?),
        })
    }
}

/// Closes what the guard inserted and what was not settled.
fn given_up(database: &Transaction<'_>, guard: &GuardRecord, now: i64) -> rusqlite::Result<()> {
    let mut query =
        database.prepare_cached("SELECT id FROM insert_sent WHERE zvm = ?1 AND tag = ?2")?;
    let sent = query.query_map([&guard.zvm, &guard.tag], |row| row.get(0))?;
    for insert in sent {
        give_up(database, &kinds::INSERT_SENT, insert?, now)?;
    }
    Ok(())
}

/// A guard of which every pin was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EarlierGuard {
    pub id: i64,
    pub tag: String,
    pub pins: Vec<PinRecord>,
}

impl EarlierGuard {
    /// None where it failed.
    pub(super) fn read(database: &Transaction<'_>, id: i64) -> rusqlite::Result<Option<Self>> {
        let tag = database
            .query_row(
                "SELECT tag FROM guard WHERE id = ?1 AND failure IS NULL",
                [id],
                |row| row.get(0),
            )
            .optional()?;
        let Some(tag) = tag else {
            return Ok(None);
        };
        let mut query = database.prepare_cached(
            "SELECT vpg_identifier, vpg_name, checkpoint_id, checkpoint_at FROM pin WHERE guard = ?1",
        )?;
        let pins = query.query_map([id], PinRecord::read)?;
        let pins = pins.collect::<rusqlite::Result<_>>()?;
        Ok(Some(Self { id, tag, pins }))
    }
}

/// SHA-256 of a call's arguments, in hexadecimal. The order of keys does not count.
#[must_use]
pub fn arguments_digest(arguments: &Value) -> String {
    digest(arguments)
}

/// SHA-256 of a JSON value, in hexadecimal. The order of keys does not count.
pub(crate) fn digest(value: &Value) -> String {
    let mut hash = Sha256::new();
    feed(&mut hash, value);
    text::hex(&hash.finalize())
}

fn feed(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            hash.update(b"{");
            for (key, value) in members {
                feed(hash, &Value::from(key.as_str()));
                hash.update(b":");
                feed(hash, value);
                hash.update(b",");
            }
            hash.update(b"}");
        }
        Value::Array(items) => {
            hash.update(b"[");
            for item in items {
                feed(hash, item);
                hash.update(b",");
            }
            hash.update(b"]");
        }
        scalar => hash.update(scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_digest_depends_on_the_arguments_alone() {
        let digest = arguments_digest(&json!({"a": 1, "b": [true, null, "x"]}));
        assert_eq!(digest.len(), 64);
        let text = r#"{"b": [true, null, "x"], "a": 1}"#;
        assert_eq!(
            arguments_digest(&serde_json::from_str(text).unwrap()),
            digest
        );
        for other in [
            json!({"a": "1", "b": [true, null, "x"]}),
            json!({"a": 1, "b": [true, null], "x": {}}),
            json!({"a": 1, "b": [[true, null], "x"]}),
            json!({}),
            json!(null),
        ] {
            assert_ne!(arguments_digest(&other), digest, "{other}");
        }
    }
}
