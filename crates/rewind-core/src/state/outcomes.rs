//! How listed calls ended.

use rusqlite::{Transaction, named_params, params};

use super::{
    State, StateError, ToolCall,
    calls::{CallId, same_name},
    millis,
};
use crate::{
    enforce::Outcome,
    ledger::{append_if, kinds},
};

/// A call that was handed over longer ago than this, in milliseconds, is not asked for by its arguments any more.
const LONGEST_CALL: i64 = 24 * 60 * 60 * 1000;

impl State {
    /// Writes down how a call ended. The first word counts.
    pub(crate) fn call_ended(&self, call: CallId, outcome: Outcome) -> Result<(), StateError> {
        let at = millis(self.now());
        self.write_outcome(|database| ended(database, call, outcome, at))
    }

    /// Writes down that another process will tell how a call ended.
    pub(crate) fn call_handed_over(
        &self,
        call: CallId,
        correlation: Option<&str>,
    ) -> Result<(), StateError> {
        let at = millis(self.now());
        self.write(|database| {
            let added = database.execute(
                "INSERT OR IGNORE INTO call_handed_over (call, at, correlation) VALUES (?1, ?2, ?3)",
                params![call.0, at, correlation],
            )?;
            append_if(added, database, &kinds::CALL_HANDED_OVER, call.0, at)
        })
    }

    /// Writes down how a call ended that was handed over: the one with this correlation, else the oldest with the same tool and
    /// arguments. One that was not guarded, or whose outcome is known, is passed over.
    pub(crate) fn handed_over_ended(
        &self,
        zvm: &str,
        call: &ToolCall,
        correlation: Option<&str>,
        outcome: Outcome,
    ) -> Result<(), StateError> {
        let at = millis(self.now());
        self.write_outcome(|database| {
            if let Some(correlation) = correlation {
                let known = correlated(database, zvm, correlation)?;
                if !known.is_empty() {
                    return known
                        .into_iter()
                        .try_for_each(|call| ended(database, call, outcome, at));
                }
            }
            match alike(database, zvm, call, correlation, at)? {
                Some(call) => ended(database, call, outcome, at),
                None => Ok(()),
            }
        })
    }
}

pub(super) fn ended(
    database: &Transaction<'_>,
    call: CallId,
    outcome: Outcome,
    now: i64,
) -> rusqlite::Result<()> {
    let added = database.execute(
        "INSERT OR IGNORE INTO call_outcome (call, at, outcome) VALUES (?1, ?2, ?3)",
        params![call.0, now, outcome.as_str()],
    )?;
    append_if(added, database, &kinds::CALL_OUTCOME, call.0, now)
}

fn correlated(
    database: &Transaction<'_>,
    zvm: &str,
    correlation: &str,
) -> rusqlite::Result<Vec<CallId>> {
    let mut query = database.prepare_cached(
        "SELECT l.id FROM call_handed_over h JOIN listed_call l ON l.id = h.call
         WHERE h.correlation = ?1 AND l.zvm = ?2",
    )?;
    let calls = query.query_map([correlation, zvm], |row| row.get(0).map(CallId))?;
    calls.collect()
}

fn alike(
    database: &Transaction<'_>,
    zvm: &str,
    call: &ToolCall,
    correlation: Option<&str>,
    now: i64,
) -> rusqlite::Result<Option<CallId>> {
    let mut query = database.prepare_cached(
        "SELECT l.id, l.server FROM call_handed_over h JOIN listed_call l ON l.id = h.call
         WHERE l.arguments_digest = :digest AND l.tool = :tool AND l.zvm = :zvm AND h.at > :from
           AND (h.correlation IS NULL OR :correlation IS NULL)
           AND NOT EXISTS (SELECT 1 FROM call_outcome o WHERE o.call = l.id)
         ORDER BY l.id",
    )?;
    let calls = query.query_map(
        named_params! {
            ":digest": call.arguments_digest, ":tool": call.tool, ":zvm": zvm, ":correlation": correlation,
            ":from": now.saturating_sub(LONGEST_CALL),
        },
        |row| Ok((CallId(row.get(0)?), row.get::<_, Option<String>>(1)?)),
    )?;
    for row in calls {
        let (id, server) = row?;
        match (&server, &call.server) {
            (Some(a), Some(b)) if !same_name(a, b) => {}
            _ => return Ok(Some(id)),
        }
    }
    Ok(None)
}
