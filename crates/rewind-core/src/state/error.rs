//! What can go wrong with the state.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::{folder::FolderError, schema};
use crate::private::ForeignFile;

/// Why something could not be remembered or looked up. What must be remembered before it is done is then not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The state folder is not safe to use.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A file in it is not this user's own.
    #[error(transparent)]
    File(#[from] ForeignFile),
    /// The database does not do what was asked.
    #[error("{}: {source}: check the disk and the file's permissions; a file that is damaged can be moved aside", file.display())]
    Database {
        /// The database.
        file: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// Another process held the database too long.
    #[error("{}: another process keeps the database busy: try again, or end that process", file.display())]
    Busy {
        /// The database.
        file: PathBuf,
    },
    /// The database belongs to a newer version of this program.
    #[error("{}: a newer version of zerto-rewind wrote it (schema {found}, this version knows {known}): update this program", file.display())]
    Newer {
        /// The database.
        file: PathBuf,
        /// The schema's version in the file.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// A lock file could not be made and locked.
    #[error("{}: no file can be created and locked there: {source}: check the disk, and that its file system can lock files", dir.display())]
    Lock {
        /// The state folder.
        dir: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl StateError {
    /// What to do about it; none where nothing fits better than the advice for any trouble with the state.
    #[must_use]
    pub fn next(&self) -> Option<String> {
        match self {
            Self::Folder(error) => Some(error.next()),
            Self::File(error) => error.next(),
            Self::Busy { .. } => {
                Some("Try again; or end the process that keeps it busy.".to_owned())
            }
            Self::Newer { .. } => Some("Update this program.".to_owned()),
            Self::Database { file, source } if is_damaged(source) => Some(damaged(file)),
            Self::Database { .. } | Self::Lock { .. } => None,
        }
    }

    /// What happened and what to do, where a text has room for one line alone.
    pub(crate) fn advice(&self) -> String {
        match self.next() {
            Some(next) => format!("{self}. {next}"),
            None => self.to_string(),
        }
    }

    pub(super) fn database(dir: &Path, source: rusqlite::Error) -> Self {
        let file = dir.join(schema::FILE);
        match source.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
                Self::Busy { file }
            }
            _ => Self::Database { file, source },
        }
    }
}

fn is_damaged(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(
        error.sqlite_error_code(),
        Some(DatabaseCorrupt | NotADatabase)
    )
}

/// With what is beside it: SQLite would take what is in an old log for a part of the new database.
fn damaged(file: &Path) -> String {
    format!(
        "The file is damaged. End what uses it (MCP servers, proxies), then move it aside with what belongs to it: \
         `mkdir -p {1} && mv {0}* {1}/`; a new one is made. What was in it is lost: which certificates are known (the next ones are accepted \
         as first ones), refused logins (three more are tried), guards and calls, accepted tools, and which FLR sessions are open (see in \
         the ZVM's own interface that none was left mounted).",
        crate::config::word(file),
        crate::config::word(&file.with_file_name("damaged")),
    )
}
