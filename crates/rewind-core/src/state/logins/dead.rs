//! Logins that processes were at when they died.

use std::path::Path;

use rusqlite::named_params;

use super::{Login, PENDING, millis_of};
use crate::{marker, state::millis};

impl Login<'_> {
    /// Nobody will tell the outcome of an attempt whose process is no more, and nobody waits for it.
    pub(super) fn settle_dead(&self, dir: &Path) -> rusqlite::Result<()> {
        let mut query = self.database.prepare_cached(
            "SELECT a.id, a.owner FROM login a LEFT JOIN login o ON o.refers = a.id
             WHERE a.zvm = :zvm AND a.account = :account AND a.event = 'attempt' AND o.id IS NULL
               AND a.owner IS NOT NULL AND abs(a.at - :now) < :pending",
        )?;
        let pending = query.query_map(
            named_params! {
                ":zvm": self.zvm, ":account": self.account,
                ":now": millis(self.now), ":pending": millis_of(PENDING),
            },
            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)),
        )?;
        let pending: Vec<_> = pending.collect::<rusqlite::Result<_>>()?;
        for (attempt, owner) in pending {
            // What is no marker of ours says nothing: such an attempt is waited for.
            if !marker::lives(dir, &owner).unwrap_or(true) {
                // Dated as the attempt was: when the realm saw it counts, and not when that was found out.
                self.database.execute(
                    "INSERT OR IGNORE INTO login (at, zvm, account, secret, event, refers)
                     SELECT at, zvm, account, secret, 'unknown', id FROM login WHERE id = ?1",
                    [attempt],
                )?;
            }
        }
        Ok(())
    }
}
