//! Whether the ledger is what was written.

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use rusqlite::Connection;
use serde::Serialize;

use super::{
    chain::{Content, GENESIS, Hash, Link, hash, iso, shown},
    intents::{self, OpenIntents},
    kinds::{self, Kind},
};
use crate::state::{State, StateError};

/// What `verify` found.
#[derive(Clone, Debug, Serialize)]
pub struct Verification {
    /// Nothing was found.
    pub clean: bool,
    /// Rows that were looked at.
    pub rows: u64,
    /// The newest row. If it was noted elsewhere, and is not in the ledger later, then the end was cut off or the chain was made anew.
    pub newest: Option<Newest>,
    /// What is not as it was written, in the order of the ledger.
    pub findings: Vec<Finding>,
    /// Intents without an outcome.
    pub open_intents: OpenIntents,
}

/// The newest row.
#[derive(Clone, Debug, Serialize)]
pub struct Newest {
    /// Its number.
    pub row: i64,
    /// When it was written (ISO 8601, UTC, this host's clock).
    pub at: String,
    /// Its hash.
    pub hash: String,
}

/// One thing that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finding {
    /// A row, or its hash, is not what was written.
    Changed {
        /// Its number in the ledger.
        row: i64,
        /// Its table and its key there.
        what: String,
    },
    /// What a row of the ledger stands for is gone from its table.
    ContentRemoved {
        /// Its number in the ledger.
        row: i64,
        /// Its table and its key there.
        what: String,
    },
    /// Rows of the ledger are gone.
    Removed {
        /// The first number that is missing.
        from: i64,
        /// The last one.
        to: i64,
    },
    /// Nothing in the ledger follows this row, and something else follows the one before it: it was put in later.
    Inserted {
        /// Its number in the ledger.
        row: i64,
        /// Its table and its key there.
        what: String,
    },
    /// A row stands in a table of the ledger, and the ledger does not know it.
    NotInLedger {
        /// Its table and its key there.
        what: String,
    },
    /// A row was written after another one than stands before it.
    Moved {
        /// Its number in the ledger.
        row: i64,
        /// Its table and its key there.
        what: String,
        /// The number of the row that it was written after; 0: it was the first.
        written_after: i64,
    },
    /// What a row was written after is not in the ledger: the row before was changed together with its hash, or rows between the two
    /// are gone and the others have new numbers.
    Broken {
        /// Its number in the ledger.
        row: i64,
        /// Its table and its key there.
        what: String,
    },
    /// A row of a kind that this version does not know.
    UnknownKind {
        /// Its number in the ledger.
        row: i64,
        /// The kind.
        what: String,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed { row, what } => {
                write!(
                    f,
                    "row {row} ({what}) was changed: it does not match its hash"
                )
            }
            Self::ContentRemoved { row, what } => {
                write!(f, "row {row} ({what}) was removed from its table")
            }
            Self::Removed { from, to } if from == to => write!(f, "row {from} was removed"),
            Self::Removed { from, to } => write!(f, "rows {from} to {to} were removed"),
            Self::Inserted { row, what } => write!(
                f,
                "row {row} ({what}) was inserted: what follows it was written after the row before it"
            ),
            Self::NotInLedger { what } => write!(
                f,
                "{what} is in its table, and the ledger does not know it: it was inserted, or its row in the ledger was removed"
            ),
            Self::Moved {
                row,
                what,
                written_after: 0,
            } => {
                write!(f, "row {row} ({what}) was moved: it was the first")
            }
            Self::Moved {
                row,
                what,
                written_after,
            } => write!(
                f,
                "row {row} ({what}) was moved: it was written after what is row {written_after} now"
            ),
            Self::Broken { row, what } => write!(
                f,
                "row {row} ({what}) does not follow the row before it: that one was changed together with its hash, or rows between the two were removed"
            ),
            Self::UnknownKind { row, what } => write!(
                f,
                "row {row} is of a kind that this version does not know: {what}"
            ),
        }
    }
}

impl State {
    /// Looks at every row of the ledger and of its tables. Reads only, as things are at one moment.
    ///
    /// # Errors
    ///
    /// The state cannot be read.
    pub fn verify(&self) -> Result<Verification, StateError> {
        self.read(|database, dir| {
            let mut walk = Walk::default();
            walk.through(database)?;
            walk.links();
            let mut findings = walk.findings;
            not_in_ledger(database, &walk.found, &mut findings)?;
            findings.sort_by_key(Finding::place);
            Ok(Verification {
                clean: findings.is_empty(),
                rows: walk.rows.len() as u64,
                newest: walk.rows.last().map(|row| Newest {
                    row: row.seq,
                    at: iso(row.at),
                    hash: shown(&row.hash),
                }),
                findings,
                open_intents: intents::count(database, dir)?,
            })
        })
    }
}

impl Finding {
    fn place(&self) -> i64 {
        match self {
            Self::Changed { row, .. }
            | Self::ContentRemoved { row, .. }
            | Self::Inserted { row, .. }
            | Self::Moved { row, .. }
            | Self::Broken { row, .. }
            | Self::UnknownKind { row, .. }
            | Self::Removed { from: row, .. } => *row,
            Self::NotInLedger { .. } => i64::MAX,
        }
    }
}

/// A row of the ledger.
struct Walked {
    seq: i64,
    at: i64,
    kind: Option<&'static Kind>,
    row_id: i64,
    prev: Hash,
    hash: Hash,
    /// What its hash should be, where its content is there.
    should_be: Option<Hash>,
}

impl Walked {
    fn what(&self) -> String {
        match self.kind {
            Some(kind) => format!("{} {}", kind.table, self.row_id),
            None => format!("row {} of a table that is not known", self.row_id),
        }
    }
}

#[derive(Default)]
struct Walk {
    rows: Vec<Walked>,
    findings: Vec<Finding>,
    /// How many rows of each kind were found.
    found: HashMap<&'static str, i64>,
}

impl Walk {
    /// Reads everything, and compares each row with its hash.
    fn through(&mut self, database: &Connection) -> rusqlite::Result<()> {
        let mut contents: HashMap<&str, Content<'_>> = HashMap::new();
        let mut canonical = Vec::new();
        let mut query = database
            .prepare("SELECT seq, at, kind, row_id, closes, prev, hash FROM ledger ORDER BY seq")?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            let table: String = row.get(2)?;
            let kind = kinds::named(&table);
            let mut walked = Walked {
                seq: row.get(0)?,
                at: row.get(1)?,
                kind,
                row_id: row.get(3)?,
                // A hash of another length is no hash of ours.
                prev: row.get(5).unwrap_or([0xff; 32]),
                hash: row.get(6).unwrap_or([0xff; 32]),
                should_be: None,
            };
            if let Some(kind) = kind {
                let content = match contents.entry(kind.table) {
                    std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
                    std::collections::hash_map::Entry::Vacant(new) => {
                        new.insert(Content::of(database, kind)?)
                    }
                };
                let link = Link {
                    at: walked.at,
                    kind: kind.table,
                    closes: row.get(4)?,
                    prev: walked.prev,
                };
                canonical.clear();
                if content.write(&link, walked.row_id, &mut canonical)? {
                    *self.found.entry(kind.table).or_default() += 1;
                    walked.should_be = Some(hash(&canonical));
                }
            }
            self.compare(&walked, table);
            self.rows.push(walked);
        }
        Ok(())
    }

    fn compare(&mut self, walked: &Walked, table: String) {
        let row = walked.seq;
        let what = walked.what();
        match (walked.kind, walked.should_be) {
            (None, _) => self
                .findings
                .push(Finding::UnknownKind { row, what: table }),
            (Some(_), None) => self.findings.push(Finding::ContentRemoved { row, what }),
            (Some(_), Some(should_be)) if should_be != walked.hash => {
                self.findings.push(Finding::Changed { row, what });
            }
            _ => {}
        }
    }

    /// Whether each row follows the one that it was written after.
    fn links(&mut self) {
        let mut places = None;
        let mut before: Option<&Walked> = None;
        let mut before_that: Hash = GENESIS;
        for row in &self.rows {
            let expected = before.map_or(1, |before| before.seq + 1);
            if row.seq != expected {
                self.findings.push(Finding::Removed {
                    from: expected,
                    to: row.seq - 1,
                });
            }
            let follows = match before {
                // A hash that was changed is told of its own row, once.
                Some(before) => row.prev == before.hash || Some(row.prev) == before.should_be,
                None => row.prev == GENESIS,
            };
            if !follows && row.seq == expected {
                let (hashes, prevs) = places.get_or_insert_with(|| index(&self.rows));
                let what = row.what();
                let finding = match before {
                    Some(inserted)
                        if row.prev == before_that && !prevs.contains(&inserted.hash) =>
                    {
                        Finding::Inserted {
                            row: inserted.seq,
                            what: inserted.what(),
                        }
                    }
                    _ => match hashes.get(&row.prev) {
                        Some(written_after) => Finding::Moved {
                            row: row.seq,
                            what,
                            written_after: *written_after,
                        },
                        None => Finding::Broken { row: row.seq, what },
                    },
                };
                self.findings.push(finding);
            }
            before_that = before.map_or(GENESIS, |before| before.hash);
            before = Some(row);
        }
    }
}

/// The rows by their hashes, and the hashes that something follows.
fn index(rows: &[Walked]) -> (HashMap<Hash, i64>, HashSet<Hash>) {
    let mut hashes: HashMap<Hash, i64> = rows.iter().map(|row| (row.hash, row.seq)).collect();
    hashes.insert(GENESIS, 0);
    (hashes, rows.iter().map(|row| row.prev).collect())
}

/// Rows of the tables that are not in the ledger.
fn not_in_ledger(
    database: &Connection,
    found: &HashMap<&'static str, i64>,
    findings: &mut Vec<Finding>,
) -> rusqlite::Result<()> {
    for Kind { table, key, .. } in kinds::ALL {
        let count: i64 =
            database.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| {
                row.get(0)
            })?;
        if found.get(table).copied().unwrap_or_default() == count {
            continue;
        }
        let mut query = database.prepare(&format!(
            "SELECT t.{key} FROM {table} t WHERE NOT EXISTS (SELECT 1 FROM ledger WHERE kind = '{table}' AND row_id = t.{key})"
        ))?;
        let rows = query.query_map([], |row| row.get::<_, i64>(0))?;
        for row in rows {
            findings.push(Finding::NotInLedger {
                what: format!("{table} {}", row?),
            });
        }
    }
    Ok(())
}
