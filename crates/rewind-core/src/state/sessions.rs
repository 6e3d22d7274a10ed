//! File-level restore sessions that we opened, and whether the process that opened them still lives.
//!
//! A mount is written down before it is asked for: when a process dies in between, the next one knows what to look for.

use jiff::Timestamp;
use rusqlite::params;

use super::{Open, State, StateError, millis, timestamp};
use crate::{
    ledger::{append, append_if, kinds},
    marker::{self, Marker},
};

pub(super) const OWNER: &str = "owner-";

/// What a session mounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlrMount {
    /// Host and port of the ZVM.
    pub zvm: String,
    /// The ZVM's identifier of the VM.
    pub vm_identifier: String,
    /// The ZVM's identifier of the VPG.
    pub vpg_identifier: String,
    /// The checkpoint's id.
    pub checkpoint_id: String,
    /// When it is asked for, by the ZVM's clock: what this host's clock does later does not matter then.
    pub zvm_at: Timestamp,
}

/// The number of a session in the state; the ZVM's own identifier is known only once it has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionId(i64);

/// A session that was not closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSession {
    /// Its number in the state.
    pub id: SessionId,
    /// What it mounts.
    pub mount: FlrMount,
    /// The ZVM's identifier of the session. Without one, the mount was about to be asked for, and may or may not have been.
    pub session_identifier: Option<String>,
    /// When the mount was about to be asked for, by this host's clock.
    pub since: Timestamp,
    /// Whether the process that opened it lives. What cannot be told counts as living.
    pub owner_lives: bool,
    /// Why its owner, or whoever tried last, could not unmount it.
    pub left: Option<String>,
}

impl OpenSession {
    /// Nobody uses it any more: its owner died, or gave up unmounting it.
    #[must_use]
    pub fn is_orphan(&self) -> bool {
        !self.owner_lives || self.left.is_some()
    }
}

impl State {
    /// Writes down that a mount is about to be asked for, with this process as the owner for as long as it holds this state.
    ///
    /// # Errors
    ///
    /// The state cannot be written; then nothing may be mounted.
    pub fn session_opening(&self, mount: &FlrMount) -> Result<SessionId, StateError> {
        let at = millis(self.now());
        self.with(|open| {
            let owner = open.owner()?;
            open.write(|database| {
                database.execute(
                    "INSERT INTO flr_session (at, zvm, vm_identifier, vpg_identifier, checkpoint_id, owner, pid, zvm_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                    params![
                        at,
                        mount.zvm,
                        mount.vm_identifier,
                        mount.vpg_identifier,
                        mount.checkpoint_id,
                        owner,
                        std::process::id(),
                        millis(mount.zvm_at),
                    ],
                )?;
                let id = database.last_insert_rowid();
                append(database, &kinds::FLR_SESSION, id, at)?;
                Ok(SessionId(id))
            })
        })
    }

    /// Writes down the identifier that the ZVM gave to a session.
    ///
    /// # Errors
    ///
    /// The state cannot be written.
    pub fn session_opened(
        &self,
        session: SessionId,
        session_identifier: &str,
    ) -> Result<(), StateError> {
        let at = millis(self.now());
        self.write(|database| {
            let added = database.execute(
                "INSERT OR IGNORE INTO flr_session_opened (session, at, session_identifier) VALUES (?1, ?2, ?3)",
                params![session.0, at, session_identifier],
            )?;
            append_if(added, database, &kinds::FLR_SESSION_OPENED, session.0, at)
        })
    }

    /// Writes down that this process is about to ask the ZVM to unmount a session. [`session_closed`](Self::session_closed) or
    /// [`session_left`](Self::session_left) says what became of it.
    ///
    /// # Errors
    ///
    /// The state cannot be written.
    pub fn session_closing(&self, session: SessionId) -> Result<(), StateError> {
        let at = millis(self.now());
        self.with(|open| {
            let owner = open.owner()?;
            open.write(|database| {
                database.execute(
                    "INSERT INTO flr_unmount (session, owner) VALUES (?1, ?2)",
                    params![session.0, owner],
                )?;
                let id = database.last_insert_rowid();
                append(database, &kinds::FLR_UNMOUNT, id, at)
            })
        })
    }

    /// Writes down that a session is gone, or that its mount never came to be. Saying it twice is no error.
    ///
    /// # Errors
    ///
    /// The state cannot be written.
    pub fn session_closed(&self, session: SessionId) -> Result<(), StateError> {
        let at = millis(self.now());
        self.write_outcome(|database| {
            let added = database.execute(
                "INSERT OR IGNORE INTO flr_session_closed (session, at) VALUES (?1, ?2)",
                params![session.0, at],
            )?;
            append_if(added, database, &kinds::FLR_SESSION_CLOSED, session.0, at)
        })
    }

    /// Writes down that a session could not be unmounted, and why: from now on it is anybody's to unmount.
    ///
    /// # Errors
    ///
    /// The state cannot be written.
    pub fn session_left(&self, session: SessionId, why: &str) -> Result<(), StateError> {
        let at = millis(self.now());
        self.write(|database| {
            database.execute(
                "INSERT INTO flr_session_left (session, at, why) VALUES (?1, ?2, ?3)",
                params![session.0, at, why],
            )?;
            let id = database.last_insert_rowid();
            append(database, &kinds::FLR_SESSION_LEFT, id, at)
        })
    }

    /// The sessions on this ZVM that we opened and did not close, oldest first.
    ///
    /// # Errors
    ///
    /// The state cannot be read.
    pub fn open_sessions(&self, zvm: &str) -> Result<Vec<OpenSession>, StateError> {
        self.with(|open| {
            open.open_sessions(zvm)
                .map_err(|source| StateError::database(&open.dir, source))
        })
    }

    /// The sessions among [`open_sessions`](Self::open_sessions) that nobody uses any more.
    ///
    /// # Errors
    ///
    /// The state cannot be read.
    pub fn orphaned_sessions(&self, zvm: &str) -> Result<Vec<OpenSession>, StateError> {
        let mut sessions = self.open_sessions(zvm)?;
        sessions.retain(OpenSession::is_orphan);
        Ok(sessions)
    }
}

impl Open {
    /// The name of the marker that says that this process lives.
    pub(super) fn owner(&mut self) -> Result<String, StateError> {
        let marker = match &mut self.owner {
            Some(marker) => marker,
            none => none.insert(Marker::create(&self.dir, OWNER)?),
        };
        Ok(marker.name().to_owned())
    }

    fn open_sessions(&self, zvm: &str) -> rusqlite::Result<Vec<OpenSession>> {
        let mut query = self.database.prepare(
            "SELECT s.id, s.at, s.vm_identifier, s.vpg_identifier, s.checkpoint_id, s.owner, o.session_identifier,
                 (SELECT l.why FROM flr_session_left l WHERE l.session = s.id ORDER BY l.id DESC LIMIT 1),
                 coalesce(s.zvm_at, s.at)
             FROM flr_session s LEFT JOIN flr_session_opened o ON o.session = s.id
             WHERE s.zvm = ?1 AND NOT EXISTS (SELECT 1 FROM flr_session_closed c WHERE c.session = s.id)
             ORDER BY s.id",
        )?;
        let rows = query.query_map([zvm], |row| {
            let owner: String = row.get(5)?;
            Ok(OpenSession {
                id: SessionId(row.get(0)?),
                since: timestamp(row.get(1)?),
                mount: FlrMount {
                    zvm: zvm.to_owned(),
                    vm_identifier: row.get(2)?,
                    vpg_identifier: row.get(3)?,
                    checkpoint_id: row.get(4)?,
                    zvm_at: timestamp(row.get(8)?),
                },
                // What is no marker of ours says nothing: the session is left alone.
                owner_lives: marker::lives(&self.dir, &owner).unwrap_or(true),
                session_identifier: row.get(6)?,
                left: row.get(7)?,
            })
        })?;
        rows.collect()
    }
}
