//! Inserts that were sent to a VPG and whose tag was not seen in its journal: until it is, what is inserted after it is dropped.

use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{OptionalExtension, params};

use super::{State, StateError, millis, timestamp};
use crate::ledger::{append, append_if, kinds};

/// The number of an insert in the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InsertId(i64);

/// What became of an insert, once that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsertOutcome {
    /// Its tag is in the journal.
    Listed,
    /// It was not sent after all, or the ZVM said that it failed: nothing will appear.
    NotTaken,
}

/// An insert that was sent, as far as is known, and of which nothing more is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentInsert {
    /// Its number in the state.
    pub id: InsertId,
    /// The tag.
    pub tag: String,
    /// When it was about to be sent, by this host's clock.
    pub at: Timestamp,
}

impl InsertOutcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Listed => "listed",
            Self::NotTaken => "not_taken",
        }
    }
}

impl State {
    /// Writes down that `tag` is about to be inserted into a VPG. The caller holds the VPG's lock.
    ///
    /// # Errors
    ///
    /// The state cannot be written; then nothing may be inserted.
    pub fn insert_sending(
        &self,
        zvm: &str,
        vpg_identifier: &str,
        tag: &str,
    ) -> Result<InsertId, StateError> {
        let at = millis(self.now());
        self.with(|open| {
            let owner = open.owner()?;
            open.write(|database| {
                database.execute(
                    "INSERT INTO insert_sent (at, zvm, vpg_identifier, tag, owner) VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![at, zvm, vpg_identifier.to_lowercase(), tag, owner],
                )?;
                let id = database.last_insert_rowid();
                append(database, &kinds::INSERT_SENT, id, at)?;
                Ok(InsertId(id))
            })
        })
    }

    /// Writes down what became of an insert. The first outcome counts.
    ///
    /// # Errors
    ///
    /// The state cannot be written.
    pub fn insert_settled(
        &self,
        insert: InsertId,
        outcome: InsertOutcome,
    ) -> Result<(), StateError> {
        let at = millis(self.now());
        self.write_outcome(|database| {
            let added = database.execute(
                "INSERT OR IGNORE INTO insert_settled (insert_sent, at, outcome) VALUES (?1, ?2, ?3)",
                params![insert.0, at, outcome.as_str()],
            )?;
            append_if(added, database, &kinds::INSERT_SETTLED, insert.0, at)
        })
    }

    /// The newest insert into a VPG of the time `within` whose outcome is not known, unless a later one was listed: one at a time is
    /// on its way, so whatever was sent before that one is no longer.
    ///
    /// # Errors
    ///
    /// The state cannot be read.
    pub fn unsettled_insert(
        &self,
        zvm: &str,
        vpg_identifier: &str,
        within: Duration,
    ) -> Result<Option<SentInsert>, StateError> {
        let within = i64::try_from(within.as_millis()).unwrap_or(i64::MAX);
        let from = millis(self.now()).saturating_sub(within);
        self.with(|open| {
            open.database
                .query_row(
                    "SELECT s.id, s.tag, s.at
                     FROM insert_sent s LEFT JOIN insert_settled o ON o.insert_sent = s.id
                     WHERE s.zvm = ?1 AND s.vpg_identifier = ?2 AND s.at > ?3 AND o.outcome IS NULL
                       AND NOT EXISTS (SELECT 1 FROM insert_sent later JOIN insert_settled l ON l.insert_sent = later.id
                           WHERE later.zvm = ?1 AND later.vpg_identifier = ?2 AND later.id > s.id AND l.outcome = 'listed')
                     ORDER BY s.id DESC LIMIT 1",
                    params![zvm, vpg_identifier.to_lowercase(), from],
                    |row| {
                        Ok(SentInsert {
                            id: InsertId(row.get(0)?),
                            tag: row.get(1)?,
                            at: timestamp(row.get(2)?),
                        })
                    },
                )
                .optional()
                .map_err(|source| StateError::database(&open.dir, source))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITHIN: Duration = Duration::from_secs(60);

    struct Journal {
        state: State,
        _dir: tempfile::TempDir,
    }

    impl Journal {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            Self {
                state: State::new(dir.path().join("state")),
                _dir: dir,
            }
        }

        fn send(&self, tag: &str) -> InsertId {
            self.state.insert_sending("zvm:443", "VPG-1", tag).unwrap()
        }

        fn settle(&self, insert: InsertId, outcome: InsertOutcome) {
            self.state.insert_settled(insert, outcome).unwrap();
        }

        fn unsettled(&self) -> Option<String> {
            let sent = self.state.unsettled_insert("zvm:443", "vpg-1", WITHIN);
            sent.unwrap().map(|sent| sent.tag)
        }
    }

    #[test]
    fn an_insert_is_unsettled_until_its_outcome_is_known() {
        for outcome in [InsertOutcome::Listed, InsertOutcome::NotTaken] {
            let journal = Journal::new();
            assert_eq!(journal.unsettled(), None);
            let insert = journal.send("a");
            assert_eq!(journal.unsettled().as_deref(), Some("a"));
            journal.settle(insert, outcome);
            assert_eq!(journal.unsettled(), None, "{outcome:?}");
        }
    }

    #[test]
    fn an_insert_that_was_not_taken_hides_none_that_may_have_been() {
        let journal = Journal::new();
        journal.send("a");
        let second = journal.send("b");
        journal.settle(second, InsertOutcome::NotTaken);
        assert_eq!(journal.unsettled().as_deref(), Some("a"));
        let third = journal.send("c");
        journal.settle(third, InsertOutcome::Listed);
        assert_eq!(journal.unsettled(), None, "nothing is on its way any more");
    }

    #[test]
    fn other_vpgs_and_what_is_long_past_do_not_count() {
        let journal = Journal::new();
        journal.send("a");
        let unsettled = |zvm: &str, vpg: &str, within| {
            let sent = journal.state.unsettled_insert(zvm, vpg, within);
            sent.unwrap()
        };
        assert_eq!(unsettled("other:443", "vpg-1", WITHIN), None);
        assert_eq!(unsettled("zvm:443", "vpg-2", WITHIN), None);
        assert_eq!(unsettled("zvm:443", "vpg-1", Duration::ZERO), None);
        assert_eq!(
            unsettled("zvm:443", "vpg-1", Duration::MAX).unwrap().tag,
            "a"
        );
    }
}
