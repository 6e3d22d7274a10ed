//! The database file and its tables.

use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use rusqlite::{Connection, OpenFlags, Transaction};

use super::StateError;
use crate::{ledger, private};

pub(super) const FILE: &str = "state.db";

/// Held while the tables are made, so that processes that start at once don't do it twice.
const LOCK: &str = "schema.lock";

/// How long a call waits for another process.
const BUSY: Duration = Duration::from_secs(5);
/// SQLite's own way of waiting looks ever more seldom, up to ten times so: who waits like that while others write one row after another
/// may not get its turn in all that time.
const LOOK_AGAIN_MAX: Duration = Duration::from_millis(10);

/// What is written before an outside effect must survive a power cut.
pub(super) const SURVIVES: &str = "FULL";
/// The end of what was written may be lost in a power cut, and nothing before it; in no other way.
pub(super) const MAY_BE_LOST: &str = "NORMAL";

/// Prepared statements that are kept.
const STATEMENTS: usize = 128;

/// One step per version; a step that was released is never changed.
const MIGRATIONS: &[Step] = &[
    Step::of(include_str!("schema_1.sql")),
    Step::of(include_str!("schema_2.sql")),
    Step::of(include_str!("schema_3.sql")),
    Step::of(include_str!("schema_4.sql")),
    Step::of(include_str!("schema_5.sql")),
    Step::of(include_str!("schema_6.sql")),
    Step::of(include_str!("schema_7.sql")),
    Step::with_rows(include_str!("schema_8.sql"), ledger::adopt),
    Step::of(include_str!("schema_9.sql")),
    Step::of(include_str!("schema_10.sql")),
    Step::of(include_str!("schema_11.sql")),
];

/// The database, its folder, and the time in milliseconds since 1970.
type Rows = fn(&Transaction<'_>, &Path, i64) -> rusqlite::Result<()>;

struct Step {
    tables: &'static str,
    /// What SQL alone does not do.
    rows: Option<Rows>,
}

impl Step {
    const fn of(tables: &'static str) -> Self {
        Self { tables, rows: None }
    }

    const fn with_rows(tables: &'static str, rows: Rows) -> Self {
        Self {
            tables,
            rows: Some(rows),
        }
    }
}

pub(super) fn open(dir: &Path, now: i64) -> Result<Connection, StateError> {
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
        migrate(&mut database, found, dir, now).map_err(failed)?;
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
    let mut database = Connection::open_with_flags(dir.join(FILE), flags)?;
    database.busy_handler(Some(waits()))?;
    database.pragma_update(None, "foreign_keys", true)?;
    database.pragma_update(None, "synchronous", SURVIVES)?;
    database.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(database)
}

/// Whether to try once more, asked with the number of tries.
fn waits() -> impl FnMut(i32) -> bool + Send {
    let mut until = Instant::now();
    move |tries| {
        if tries == 0 {
            until = Instant::now() + BUSY;
        }
        thread::sleep(LOOK_AGAIN_MAX.min(Duration::from_millis(1 << tries.clamp(0, 4))));
        Instant::now() < until
    }
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

fn migrate(database: &mut Connection, found: i64, dir: &Path, now: i64) -> rusqlite::Result<()> {
    // Stays in the file.
    database.pragma_update(None, "journal_mode", "WAL")?;
    for (step, version) in MIGRATIONS.iter().zip(1_i64..) {
        if version > found {
            let transaction = database.transaction()?;
            transaction.execute_batch(step.tables)?;
            if let Some(rows) = step.rows {
                rows(&transaction, dir, now)?;
            }
            transaction.pragma_update(None, "user_version", version)?;
            transaction.commit()?;
        }
    }
    Ok(())
}
