//! Which certificate each ZVM is known by, where no authority vouches for it.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params, types::Type};
use zvm_client::Fingerprint;

use super::{State, StateError, millis, timestamp};
use crate::ledger::{append, kinds};

/// The certificate that a ZVM is known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownCertificate {
    /// Its fingerprint.
    pub sha256: Fingerprint,
    /// Since when.
    pub since: Timestamp,
    /// Who accepted it; None where it was remembered at the first use.
    pub accepted_by: Option<String>,
}

impl State {
    /// The certificate that `zvm` (host and port) is known by. Reads only, and so never waits for a writer.
    ///
    /// # Errors
    ///
    /// The state cannot be read.
    pub fn certificate(&self, zvm: &str) -> Result<Option<KnownCertificate>, StateError> {
        self.with(|open| {
            latest(&open.database, zvm).map_err(|source| StateError::database(&open.dir, source))
        })
    }

    /// Remembers a certificate as the first one of `zvm`, unless one is known by now: of all processes that come at once, the first
    /// decides. Returns the one that is known then, and whether this call remembered it.
    ///
    /// # Errors
    ///
    /// The state cannot be read or written.
    pub fn certificate_first_seen(
        &self,
        zvm: &str,
        shown: Fingerprint,
    ) -> Result<(Fingerprint, bool), StateError> {
        let at = millis(self.now());
        self.write(|database| {
            if let Some(known) = latest(database, zvm)? {
                return Ok((known.sha256, false));
            }
            insert(database, (zvm, shown), "first", None, at)?;
            Ok((shown, true))
        })
    }

    /// Writes down that a person accepted this certificate for `zvm`: it counts from now on.
    ///
    /// # Errors
    ///
    /// The state cannot be written.
    pub fn certificate_accepted(
        &self,
        zvm: &str,
        accepted: Fingerprint,
        by: &str,
    ) -> Result<(), StateError> {
        let at = millis(self.now());
        self.write(|database| insert(database, (zvm, accepted), "accepted", Some(by), at))
    }
}

fn latest(database: &Connection, zvm: &str) -> rusqlite::Result<Option<KnownCertificate>> {
    database
        .prepare_cached(
            "SELECT sha256, at, accepted_by FROM certificate WHERE zvm = ?1 ORDER BY id DESC LIMIT 1",
        )?
        .query_row([zvm], read)
        .optional()
}

fn read(row: &Row<'_>) -> rusqlite::Result<KnownCertificate> {
    let sha256 = row.get::<_, String>(0)?.parse().map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(error))
    })?;
    Ok(KnownCertificate {
        sha256,
        since: timestamp(row.get(1)?),
        accepted_by: row.get(2)?,
    })
}

fn insert(
    database: &Transaction<'_>,
    (zvm, sha256): (&str, Fingerprint),
    event: &str,
    by: Option<&str>,
    at: i64,
) -> rusqlite::Result<()> {
    database.execute(
        "INSERT INTO certificate (at, zvm, sha256, event, accepted_by) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![at, zvm, sha256.to_string(), event, by],
    )?;
    append(
        database,
        &kinds::CERTIFICATE,
        database.last_insert_rowid(),
        at,
    )
}
