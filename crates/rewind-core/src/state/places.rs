//! Where recoveries make files and folders that are not complete yet.

use std::path::PathBuf;

use rusqlite::{Connection, params};

use super::{Open, State, StateError, millis};

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
                    noted.push((PlaceId(database.last_insert_rowid()), place));
                }
                Ok(noted)
            })
        })
    }

    /// Writes down that nothing incomplete is left there.
    pub(crate) fn places_clean(&self, places: Vec<PlaceId>) -> Result<(), StateError> {
        let at = millis(self.now());
        self.write(|database| {
            for place in places {
                database.execute(
                    "INSERT OR IGNORE INTO recovery_place_clean (place, at) VALUES (?1, ?2)",
                    params![place.0, at],
                )?;
            }
            Ok(())
        })
    }

    /// Where a process worked that has ended, and may have left something.
    pub(crate) fn places_left(&self, owner: &str) -> Result<Vec<WorkPlace>, StateError> {
        self.with(|open| {
            left(&open.database, owner).map_err(|source| StateError::database(&open.dir, source))
        })
    }
}

impl Open {
    pub(super) fn leaves_places(&self, owner: &str) -> rusqlite::Result<bool> {
        Ok(!left(&self.database, owner)?.is_empty())
    }
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
