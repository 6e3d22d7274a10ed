//! Rows that were written before there was a ledger.

use std::path::Path;

use rusqlite::Transaction;

use super::{
    chain::append,
    intents,
    kinds::{self, Kind},
};

/// The tables of that time: when a row was written, and its key. Of one time, an intent comes before its outcome.
const FOUND: [(&Kind, &str); 18] = [
    (
        &kinds::TOOL_DEFINITION,
        "SELECT at, id FROM tool_definition",
    ),
    (&kinds::CERTIFICATE, "SELECT at, id FROM certificate"),
    (&kinds::LISTED_CALL, "SELECT at, id FROM listed_call"),
    (&kinds::CLAIM, "SELECT at, id FROM claim"),
    (&kinds::GUARD_INTENT, "SELECT at, id FROM guard_intent"),
    (&kinds::INSERT_SENT, "SELECT at, id FROM insert_sent"),
    (
        &kinds::INSERT_SETTLED,
        "SELECT at, insert_sent FROM insert_settled",
    ),
    (&kinds::GUARD, "SELECT ended_at, id FROM guard"),
    (
        &kinds::PIN,
        "SELECT g.ended_at, p.id FROM pin p JOIN guard g ON g.id = p.guard",
    ),
    (&kinds::CLAIM_ENDED, "SELECT at, claim FROM claim_ended"),
    (
        &kinds::CALL_HANDED_OVER,
        "SELECT at, call FROM call_handed_over",
    ),
    (&kinds::CALL_OUTCOME, "SELECT at, call FROM call_outcome"),
    (&kinds::RECOVERY_PLACE, "SELECT at, id FROM recovery_place"),
    (&kinds::FLR_SESSION, "SELECT at, id FROM flr_session"),
    (
        &kinds::FLR_SESSION_OPENED,
        "SELECT at, session FROM flr_session_opened",
    ),
    (
        &kinds::FLR_SESSION_LEFT,
        "SELECT at, id FROM flr_session_left",
    ),
    (
        &kinds::FLR_SESSION_CLOSED,
        "SELECT at, session FROM flr_session_closed",
    ),
    (
        &kinds::RECOVERY_PLACE_CLEAN,
        "SELECT at, place FROM recovery_place_clean",
    ),
];

/// Puts them into the chain, in the order of their times. What they were before, the chain does not vouch for. Nobody will close the
/// intents whose owner left no marker: they are interrupted.
pub(crate) fn adopt(database: &Transaction<'_>, dir: &Path, now: i64) -> rusqlite::Result<()> {
    let mut found = Vec::new();
    for (place, (kind, query)) in FOUND.into_iter().enumerate() {
        let mut query = database.prepare(query)?;
        let rows = query.query_map([], |row| Ok((row.get(0)?, place, row.get(1)?, kind)))?;
        for row in rows {
            found.push(row?);
        }
    }
    found.sort_by_key(|(at, place, row, _): &(i64, usize, i64, _)| (*at, *place, *row));
    found
        .into_iter()
        .try_for_each(|(at, _, row, kind)| append(database, kind, row, at))?;
    // The tables of later kinds are not there yet.
    let kinds = FOUND.into_iter().map(|(kind, _)| kind);
    intents::close_of_nobody(database, kinds, dir, now)
}
