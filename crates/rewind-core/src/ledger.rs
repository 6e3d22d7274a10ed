//! The ledger: what was asked for, decided, done and refused, so that it can be read and checked afterwards.
//!
//! It is a chain over rows of the [state](crate::state): each says which row of which table was written next, and carries a hash over
//! that row and the hash before. What happened stands in one place only, in its own table. What is about to be done outside is
//! written down before as an *intent*, with the marker of its process; a later row closes it. `docs/ledger.md` has the format, and what
//! the chain can't show.

mod adopt;
mod chain;
mod entries;
mod intents;
mod journal;
pub(crate) mod kinds;
mod known;
mod verify;

use std::path::Path;

use sha2::{Digest, Sha256};

pub(crate) use adopt::adopt;
pub(crate) use chain::append;
pub use entries::{Entry, Filter, Shown};
pub use intents::OpenIntents;
pub(crate) use intents::{close_all_of, give_up, has_open};
pub(crate) use journal::compare;
pub use journal::{ComparedJournal, Comparison, JournalFinding};
pub use known::{Known, ListedPin, RecordedCall, RecordedGuard, RecordedRecovery, RecoveryKind};
pub use verify::{Finding, Newest, Verification};

use crate::{Error, ErrorCode, RecoveredFile, state::State};
use kinds::Kind;

/// The ledger of a state folder, to be read.
#[derive(Clone, Debug)]
pub struct Ledger {
    state: State,
}

impl Ledger {
    /// The ledger of the state folder `dir`.
    #[must_use]
    pub fn of(dir: &Path) -> Self {
        Self {
            state: State::new(dir),
        }
    }

    /// The entries that `filter` lets through, newest first.
    ///
    /// # Errors
    ///
    /// `state`.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Entry>, Error> {
        Ok(self.state.entries(filter)?)
    }

    /// All that is known of one row.
    ///
    /// # Errors
    ///
    /// `not_found`, `state`.
    pub fn show(&self, row: i64) -> Result<Shown, Error> {
        self.state.entry(row)?.ok_or_else(|| {
            Error::new(ErrorCode::NotFound, format!("the ledger has no row {row}"))
                .with_next("Give a row's number as `zerto-rewind audit list` shows it.")
        })
    }

    /// Hands every row that `filter` lets through to `each`, oldest first: what its hash is made of, its number and the hash.
    ///
    /// # Errors
    ///
    /// `state`.
    pub fn export(
        &self,
        filter: &Filter,
        each: impl FnMut(serde_json::Value),
    ) -> Result<(), Error> {
        Ok(self.state.export(filter, each)?)
    }

    /// Looks at every row.
    ///
    /// # Errors
    ///
    /// `state`.
    pub fn verify(&self) -> Result<Verification, Error> {
        Ok(self.state.verify()?)
    }
}

/// As [`append`], where a row was inserted and not passed over because there was one already.
pub(crate) fn append_if(
    inserted: usize,
    database: &rusqlite::Transaction<'_>,
    kind: &Kind,
    row: i64,
    at: i64,
) -> rusqlite::Result<()> {
    if inserted == 0 {
        return Ok(());
    }
    append(database, kind, row, at)
}

/// The digest of what a recovery placed. Of a file, its own; of a folder, that of its list of files, by path: for each the digest, two
/// spaces, the path and a line feed, as `sha256sum -z` has it, which escapes no name.
#[must_use]
pub fn list_digest(files: &[RecoveredFile], is_folder: bool) -> String {
    if let ([file], false) = (files, is_folder) {
        return file.sha256.clone();
    }
    let mut files: Vec<_> = files.iter().collect();
    files.sort_unstable_by(|a, b| a.path.as_bytes().cmp(b.path.as_bytes()));
    let mut hash = Sha256::new();
    for file in files {
        hash.update(format!("{}  {}\n", file.sha256, file.path));
    }
    chain::shown(&hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_a_folder_is_that_of_its_list() {
        let file = |path: &str, sha256: &str| RecoveredFile {
            path: path.to_owned(),
            bytes: 1,
            sha256: sha256.to_owned(),
        };
        assert_eq!(list_digest(&[file("a", "11")], false), "11");
        let folder = list_digest(&[file("b/c", "22"), file("B", "33")], true);
        let list = Sha256::digest("33  B\n22  b/c\n");
        assert_eq!(folder, chain::shown(&list.into()));
        assert_ne!(list_digest(&[file("a", "11")], true), "11");
    }
}
