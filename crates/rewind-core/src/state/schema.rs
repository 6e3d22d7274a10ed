//! The database file and its tables.

use std::{fs, path::Path, time::Duration};

use rusqlite::{Connection, OpenFlags};

use super::StateError;
use crate::private;

pub(super) const FILE: &str = "state.db";

/// Held while the tables are made, so that processes that start at once don't do it twice.
const LOCK: &str = "schema.lock";

/// How long a call waits for another process.
const BUSY: Duration = Duration::from_secs(5);

/// One step per version; a step that was released is never changed.
const MIGRATIONS: &[&str] = &[
    include_str!("schema_1.sql"),
    include_str!("schema_2.sql"),
    include_str!("schema_3.sql"),
    include_str!("schema_4.sql"),
    include_str!("schema_5.sql"),
    include_str!("schema_6.sql"),
    include_str!("schema_7.sql"),
];

pub(super) fn open(dir: &Path) -> Result<Connection, StateError> {
    let failed = |source| StateError::database(dir, source);
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    // SQLite follows no link, and does not look whose file it is.
    drop(private::open(
        &dir.join(FILE),
        fs::OpenOptions::new().create(true),
    )?);
    for beside in ["-wal", "-shm", "-journal"] {
        private::check_file(&dir.join(format!("{FILE}{beside}")))?;
    }
    let mut database = connect(dir).map_err(failed)?;
    let mut found = version(&database).map_err(failed)?;
    if found < known {
        let lock = lock(dir)?;
        found = version(&database).map_err(failed)?;
        migrate(&mut database, found).map_err(failed)?;
        drop(lock);
        found = version(&database).map_err(failed)?;
    }
    if found > known {
        return Err(StateError::Newer {
            file: dir.join(FILE),
            found,
            known,
        });
    }
    Ok(database)
}

fn connect(dir: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let database = Connection::open_with_flags(dir.join(FILE), flags)?;
    database.busy_timeout(BUSY)?;
    database.pragma_update(None, "foreign_keys", true)?;
    // What is written before an outside effect must survive a power cut.
    database.pragma_update(None, "synchronous", "FULL")?;
    Ok(database)
}

fn version(database: &Connection) -> rusqlite::Result<i64> {
    database.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn lock(dir: &Path) -> Result<fs::File, StateError> {
    let file = private::open(&dir.join(LOCK), fs::OpenOptions::new().create(true))?;
    file.lock().map_err(|source| StateError::Lock {
        dir: dir.to_owned(),
        source,
    })?;
    Ok(file)
}

fn migrate(database: &mut Connection, found: i64) -> rusqlite::Result<()> {
    // Stays in the file.
    database.pragma_update(None, "journal_mode", "WAL")?;
    for (step, version) in MIGRATIONS.iter().zip(1_i64..) {
        if version > found {
            let transaction = database.transaction()?;
            transaction.execute_batch(step)?;
            transaction.pragma_update(None, "user_version", version)?;
            transaction.commit()?;
        }
    }
    Ok(())
}
