//! What the ledger knows of the checkpoints that a journal lists.
mod recoveries;

use rusqlite::{CachedStatement, Connection, OptionalExtension, params};
use schemars::JsonSchema;
use serde::Serialize;

use self::recoveries::Recoveries;
pub use self::recoveries::{RecordedRecovery, RecoveryKind};
use super::chain::iso;
use crate::{
    state::{State, StateError},
    tag,
};

/// The guard that a checkpoint belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RecordedGuard {
    /// Its row in the ledger (`zerto-rewind audit show ROW`).
    pub row: i64,
    /// When that was written (ISO 8601, UTC, the clock of this host).
    pub at: String,
    /// The MCP client as it named itself, or the program that asked.
    pub client: Option<String>,
    /// `pinned`: this checkpoint is a pin of it. `inserted_again`: it has the guard's tag, and another one is the pin. `failed`,
    /// `interrupted` (its process died), `under_way`.
    pub outcome: String,
    /// The tool calls that it covers. None: it was asked for without one.
    pub calls: Vec<RecordedCall>,
}

/// A tool call that a guard covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RecordedCall {
    /// The MCP server's name, where it is known.
    pub server: Option<String>,
    /// The tool's name.
    pub tool: String,
    /// SHA-256 of the arguments; they themselves are not kept.
    pub arguments_sha256: String,
    /// `ok`, `is_error` (its result says so), `protocol_error`, `lost`, `not_forwarded`, `interrupted` (who watched it died),
    /// `not_told` (the harness did not tell), `under_way`, `not_observed` (the agent asked for the guard, and made the call by itself).
    pub outcome: String,
}

/// A checkpoint as a journal lists it.
#[derive(Clone, Debug)]
pub struct ListedPin {
    /// The ZVM's identifier of the VPG.
    pub vpg_identifier: String,
    /// The checkpoint's id.
    pub checkpoint_id: String,
    /// Its tag.
    pub tag: String,
}

/// What is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// The guard, where there is one.
    pub guard: Option<RecordedGuard>,
    /// Oldest first.
    pub recoveries: Vec<RecordedRecovery>,
}

impl State {
    /// What the ledger knows of checkpoints of a VM, in the same order.
    ///
    /// # Errors
    ///
    /// The state cannot be read.
    pub fn known(
        &self,
        zvm: &str,
        vm_identifier: &str,
        listed: &[ListedPin],
    ) -> Result<Vec<Known>, StateError> {
        let vm_identifier = vm_identifier.to_lowercase();
        self.read(|database, _| {
            let mut lookup = Lookup::new(database, zvm, &vm_identifier)?;
            listed.iter().map(|pin| lookup.known(pin)).collect()
        })
    }
}

/// The pin's guard: `?1` checkpoint, `?2` ZVM, `?3` VPG in lower case.
const BY_PIN: &str = "
    SELECT g.id, l.seq, l.at, g.client, 'pinned', g.server, g.tool, g.arguments_digest
    FROM pin p JOIN guard g ON g.id = p.guard JOIN ledger l ON l.kind = 'guard' AND l.row_id = g.id
    WHERE p.checkpoint_id = ?1 AND g.zvm = ?2 AND lower(p.vpg_identifier) = ?3";

/// The guard that was to insert a tag: `?1` ZVM, `?2` VM in lower case, `?3` the tag.
const BY_TAG: &str = "
    SELECT g.id, coalesce(e.seq, l.seq), coalesce(e.at, l.at), g.client,
        CASE WHEN g.failure LIKE 'interrupted:%' THEN 'interrupted' WHEN g.failure IS NOT NULL THEN 'failed'
             WHEN g.id IS NOT NULL THEN 'inserted_again' ELSE coalesce(c.outcome, 'under_way') END,
        g.server, g.tool, g.arguments_digest
    FROM guard_intent i JOIN ledger l ON l.kind = 'guard_intent' AND l.row_id = i.id
    LEFT JOIN ledger e ON e.closes = l.seq
    LEFT JOIN guard g ON e.kind = 'guard' AND g.id = e.row_id
    LEFT JOIN intent_closed c ON e.kind = 'intent_closed' AND c.id = e.row_id
    WHERE i.zvm = ?1 AND i.vm_identifier = ?2 AND i.tag = ?3
    ORDER BY e.seq DESC";

const CALLS: &str = "
    SELECT c.server, c.tool, c.arguments_digest, coalesce(o.outcome,
        (SELECT x.outcome FROM ledger l JOIN ledger e ON e.closes = l.seq AND e.kind = 'intent_closed'
         JOIN intent_closed x ON x.id = e.row_id WHERE l.kind = 'listed_call' AND l.row_id = c.id),
        CASE WHEN h.call IS NULL THEN 'under_way' ELSE 'not_told' END)
    FROM claim_ended d JOIN claim m ON m.id = d.claim JOIN listed_call c ON c.id = m.call
    LEFT JOIN call_outcome o ON o.call = c.id LEFT JOIN call_handed_over h ON h.call = c.id
    WHERE d.guard = ?1 ORDER BY c.id";

struct Lookup<'a> {
    zvm: &'a str,
    vm_identifier: &'a str,
    by_pin: CachedStatement<'a>,
    by_tag: CachedStatement<'a>,
    calls: CachedStatement<'a>,
    recoveries: Recoveries<'a>,
}

impl<'a> Lookup<'a> {
    fn new(
        database: &'a Connection,
        zvm: &'a str,
        vm_identifier: &'a str,
    ) -> rusqlite::Result<Self> {
        Ok(Self {
            zvm,
            vm_identifier,
            by_pin: database.prepare_cached(BY_PIN)?,
            by_tag: database.prepare_cached(BY_TAG)?,
            calls: database.prepare_cached(CALLS)?,
            recoveries: Recoveries::new(database, zvm, vm_identifier)?,
        })
    }

    fn known(&mut self, pin: &ListedPin) -> rusqlite::Result<Known> {
        let vpg = pin.vpg_identifier.to_lowercase();
        Ok(Known {
            guard: self.guard(pin, &vpg)?,
            recoveries: self.recoveries.of(pin, &vpg)?,
        })
    }

    fn guard(&mut self, pin: &ListedPin, vpg: &str) -> rusqlite::Result<Option<RecordedGuard>> {
        let read = |row: &rusqlite::Row<'_>| {
            let guard = RecordedGuard {
                row: row.get(1)?,
                at: iso(row.get(2)?),
                client: row.get(3)?,
                outcome: row.get(4)?,
                calls: Vec::new(),
            };
            let tool: Option<String> = row.get(6)?;
            let asked = match tool {
                Some(tool) => Some(RecordedCall {
                    server: row.get(5)?,
                    tool,
                    arguments_sha256: row.get(7)?,
                    outcome: "not_observed".to_owned(),
                }),
                None => None,
            };
            Ok((row.get::<_, Option<i64>>(0)?, guard, asked))
        };
        let by_pin = params![pin.checkpoint_id, self.zvm, vpg];
        let mut found = self.by_pin.query_row(by_pin, read).optional()?;
        if found.is_none() {
            let tag = tag::without_suffix(&pin.tag);
            let by_tag = params![self.zvm, self.vm_identifier, tag];
            found = self.by_tag.query_row(by_tag, read).optional()?;
        }
        let Some((id, mut guard, asked)) = found else {
            return Ok(None);
        };
        if let Some(id) = id {
            guard.calls = self.calls(id)?;
        }
        if guard.calls.is_empty() {
            guard.calls.extend(asked);
        }
        Ok(Some(guard))
    }

    fn calls(&mut self, guard: i64) -> rusqlite::Result<Vec<RecordedCall>> {
        let calls = self.calls.query_map([guard], |row| {
            Ok(RecordedCall {
                server: row.get(0)?,
                tool: row.get(1)?,
                arguments_sha256: row.get(2)?,
                outcome: row.get(3)?,
            })
        })?;
        calls.collect()
    }
}
