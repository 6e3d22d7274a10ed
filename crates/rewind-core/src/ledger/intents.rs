//! Intents: what a process is about to do outside, and what became of those whose process died.

use std::path::Path;

use rusqlite::{Connection, Transaction, params};

use super::{
    chain::append,
    kinds::{self, Kind},
};
use crate::marker;

const INTERRUPTED: &str = "interrupted";
const UNKNOWN: &str = "unknown";

/// An intent that no row closes.
struct OpenIntent {
    seq: i64,
    /// The marker of its process.
    owner: Option<String>,
}

/// How many intents are not closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct OpenIntents {
    /// Their process lives: they are under way.
    pub under_way: usize,
    /// Their process died: the next start of the program closes them as interrupted.
    pub interrupted: usize,
}

/// Whether an intent of this process is open.
pub(crate) fn has_open(database: &Connection, owner: &str) -> rusqlite::Result<bool> {
    Ok(!open_of(database, owner)?.is_empty())
}

/// Closes the intents of a process that died, where nothing else closed them.
pub(crate) fn close_all_of(
    database: &Transaction<'_>,
    owner: &str,
    now: i64,
) -> rusqlite::Result<()> {
    for intent in open_of(database, owner)? {
        close(database, intent, INTERRUPTED, now)?;
    }
    Ok(())
}

/// Closes the intents of processes that left no marker, so that nobody comes to close them.
pub(super) fn close_of_nobody(
    database: &Transaction<'_>,
    kinds: impl Iterator<Item = &'static Kind>,
    dir: &Path,
    now: i64,
) -> rusqlite::Result<()> {
    for intent in open_intents(database, kinds)? {
        // What can't be told may be somebody's.
        let marked = |owner: &String| dir.join(owner).try_exists().unwrap_or(true);
        if !intent.owner.as_ref().is_some_and(marked) {
            close(database, intent.seq, INTERRUPTED, now)?;
        }
    }
    Ok(())
}

/// Closes an intent whose outcome nobody will tell.
fn close(database: &Transaction<'_>, intent: i64, outcome: &str, now: i64) -> rusqlite::Result<()> {
    database.execute(
        "INSERT INTO intent_closed (intent, outcome) VALUES (?1, ?2)",
        params![intent, outcome],
    )?;
    let id = database.last_insert_rowid();
    append(database, &kinds::INTENT_CLOSED, id, now)
}

/// Closes an intent as one whose outcome its owner does not know, where nothing else closed it.
pub(crate) fn give_up(
    database: &Transaction<'_>,
    kind: &Kind,
    row: i64,
    now: i64,
) -> rusqlite::Result<()> {
    let mut query = database.prepare_cached(
        "SELECT seq FROM ledger l WHERE kind = ?1 AND row_id = ?2
         AND NOT EXISTS (SELECT 1 FROM ledger c WHERE c.closes = l.seq)",
    )?;
    let open = query.query_map(params![kind.table, row], |row| row.get(0))?;
    for intent in open {
        close(database, intent?, UNKNOWN, now)?;
    }
    Ok(())
}

pub(super) fn count(database: &Connection, dir: &Path) -> rusqlite::Result<OpenIntents> {
    let mut count = OpenIntents::default();
    for intent in open_intents(database, kinds::ALL.iter().copied())? {
        match intent.owner.filter(|owner| is_alive(dir, owner)) {
            Some(_) => count.under_way += 1,
            None => count.interrupted += 1,
        }
    }
    Ok(count)
}

/// What is no marker of ours says nothing: its intents stay open.
fn is_alive(dir: &Path, owner: &str) -> bool {
    marker::lives(dir, owner).unwrap_or(true)
}

fn open_intents(
    database: &Connection,
    kinds: impl Iterator<Item = &'static Kind>,
) -> rusqlite::Result<Vec<OpenIntent>> {
    let mut open = Vec::new();
    for kind in kinds.filter(|kind| kind.intent) {
        let mut query = database.prepare(&open_rows("l.seq, t.owner", kind, "true"))?;
        let rows = query.query_map([], |row| {
            Ok(OpenIntent {
                seq: row.get(0)?,
                owner: row.get(1)?,
            })
        })?;
        for row in rows {
            open.push(row?);
        }
    }
    open.sort_unstable_by_key(|intent| intent.seq);
    Ok(open)
}

fn open_of(database: &Connection, owner: &str) -> rusqlite::Result<Vec<i64>> {
    let mut open = Vec::new();
    for kind in kinds::ALL.iter().filter(|kind| kind.intent) {
        let mut query = database.prepare_cached(&open_rows("l.seq", kind, "t.owner = ?1"))?;
        for seq in query.query_map([owner], |row| row.get(0))? {
            open.push(seq?);
        }
    }
    open.sort_unstable();
    Ok(open)
}

/// A query for the rows of a kind that nothing closes.
fn open_rows(what: &str, Kind { table, key, .. }: &Kind, which: &str) -> String {
    format!(
        "SELECT {what} FROM {table} t JOIN ledger l ON l.kind = '{table}' AND l.row_id = t.{key}
         WHERE {which} AND NOT EXISTS (SELECT 1 FROM ledger c WHERE c.closes = l.seq)"
    )
}
