//! Where recoveries make files and folders that are not complete yet.

use std::path::PathBuf;

use rusqlite::{Connection, Transaction, params};

use super::{State, StateError, millis};
use crate::ledger::{append, append_if, kinds};

/// The number of a place in the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlaceId(i64);

/// A folder in which a recovery works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkPlace {
    pub folder: PathBuf,
    /// What the names begin with of what is not complete.
    pub mark: String,
    /// The outermost of the folders that have to be made for it.
    pub made: Option<PathBuf>,
}

impl State {
    /// Writes down where this process is about to work. A path that is no Unicode is left out: what a crash leaves there stays for a
    /// day.
    pub(crate) fn places_begun(
        &self,
        places: Vec<WorkPlace>,
    ) -> Result<Vec<(PlaceId, WorkPlace)>, StateError> {
        let at = millis(self.now());
        self.with(|open| {
            let owner = open.owner()?;
            open.write(|database| {
                let mut noted = Vec::new();
                for place in places {
                    let made = place.made.as_ref().map(|made| made.to_str());
                    let (Some(folder), false) = (place.folder.to_str(), made == Some(None)) else {
                        continue;
                    };
                    database.execute(
                        "INSERT INTO recovery_place (at, owner, folder, mark, made) VALUES (?1, ?2, ?3, ?4, ?5)",
                        params![at, owner, folder, place.mark, made.flatten()],
                    )?;
                    let id = database.last_insert_rowid();
                    append(database, &kinds::RECOVERY_PLACE, id, at)?;
                    noted.push((PlaceId(id), place));
                }
                Ok(noted)
            })
        })
    }

    /// Writes down that nothing incomplete is left there.
    pub(crate) fn places_clean(&self, places: Vec<PlaceId>) -> Result<(), StateError> {
        let at = millis(self.now());
        self.write_outcome(|database| {
            places
                .into_iter()
                .try_for_each(|place| clean(database, place, at))
        })
    }

    /// Where a process worked that has ended, and may have left something.
    pub(crate) fn places_left(&self, owner: &str) -> Result<Vec<WorkPlace>, StateError> {
        self.with(|open| {
            left(&open.database, owner).map_err(|source| StateError::database(&open.dir, source))
        })
    }
}

/// Closes those of a process that died. The caller has removed what was left there.
pub(super) fn close_places(
    database: &Transaction<'_>,
    owner: &str,
    now: i64,
) -> rusqlite::Result<()> {
    let mut query = database.prepare_cached("SELECT id FROM recovery_place WHERE owner = ?1")?;
    for place in query.query_map([owner], |row| row.get(0).map(PlaceId))? {
        clean(database, place?, now)?;
    }
    Ok(())
}

fn clean(database: &Transaction<'_>, place: PlaceId, now: i64) -> rusqlite::Result<()> {
    let added = database.execute(
        "INSERT OR IGNORE INTO recovery_place_clean (place, at) VALUES (?1, ?2)",
        params![place.0, now],
    )?;
    append_if(added, database, &kinds::RECOVERY_PLACE_CLEAN, place.0, now)
}

fn left(database: &Connection, owner: &str) -> rusqlite::Result<Vec<WorkPlace>> {
    let mut query = database.prepare_cached(
        "SELECT folder, mark, made FROM recovery_place p WHERE owner = ?1
           AND NOT EXISTS (SELECT 1 FROM recovery_place_clean c WHERE c.place = p.id)",
    )?;
    let places = query.query_map([owner], |row| {
        Ok(WorkPlace {
            folder: PathBuf::from(row.get::<_, String>(0)?),
            mark: row.get(1)?,
            made: row.get::<_, Option<String>>(2)?.map(PathBuf::from),
        })
    })?;
    places.collect()
}
