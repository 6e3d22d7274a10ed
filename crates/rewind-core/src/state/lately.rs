//! What was interrupted lately, for who only looks: nothing is closed here.

use std::path::PathBuf;

use jiff::Timestamp;
use rusqlite::{Row, Transaction};

use super::{
    GuestWrite, InterruptedGuard, State, StateError,
    interrupted::{closed_guards, open_guards},
    millis, timestamp,
};
use crate::plan::PlanEnd;

/// A recovery whose process died before it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InterruptedRecovery {
    /// The name of its plan.
    pub plan: String,
    /// The VM's name, safe to show.
    pub vm: String,
    /// When it was begun, by this host's clock.
    pub at: Timestamp,
    /// A later command has written down that it was interrupted, and cleaned up after it.
    pub is_closed: bool,
}

/// What ended because its process did.
#[derive(Debug, Default)]
pub(crate) struct InterruptedLately {
    /// Whether or not they are closed by now.
    pub guards: Vec<InterruptedGuard>,
    /// Whether or not they are closed by now.
    pub recoveries: Vec<InterruptedRecovery>,
    /// Files in guests that nobody has looked after yet.
    pub restores: Vec<GuestWrite>,
    /// Where something incomplete may be left on this host.
    pub folders: Vec<PathBuf>,
}

const RECOVERY: &str = "SELECT p.name, p.vm_name, b.at, e.plan IS NOT NULL
     FROM plan_begun b JOIN plan p ON p.id = b.plan LEFT JOIN plan_ended e ON e.plan = b.plan";

impl State {
    /// Guards and recoveries since then, and what is not cleaned up of any time.
    pub(crate) fn interrupted_since(
        &self,
        since: Timestamp,
    ) -> Result<InterruptedLately, StateError> {
        let mut lately = InterruptedLately::default();
        for owner in self.dead_owners()? {
            self.read(|database, _| {
                let open = open_guards(database, &owner)?.into_iter();
                lately.guards.extend(open.map(|guard| InterruptedGuard {
                    at: timestamp(guard.at),
                    tag: guard.tag,
                }));
                lately.recoveries.extend(open_recoveries(database, &owner)?);
                Ok(())
            })?;
            let places = self.places_left(&owner)?.into_iter();
            lately.folders.extend(places.map(|place| place.folder));
        }
        self.read(|database, _| {
            lately
                .guards
                .extend(closed_guards(database, millis(since))?);
            lately
                .recoveries
                .extend(closed_recoveries(database, millis(since))?);
            Ok(())
        })?;
        lately.restores = self.all_guest_writes_left()?;
        lately.folders.sort();
        lately.folders.dedup();
        Ok(lately)
    }
}

fn open_recoveries(
    database: &Transaction<'_>,
    owner: &str,
) -> rusqlite::Result<Vec<InterruptedRecovery>> {
    let mut query = database.prepare_cached(&format!(
        "{RECOVERY} WHERE b.owner = ?1 AND e.plan IS NULL ORDER BY p.id"
    ))?;
    query.query_map([owner], recovery)?.collect()
}

fn closed_recoveries(
    database: &Transaction<'_>,
    since: i64,
) -> rusqlite::Result<Vec<InterruptedRecovery>> {
    let mut query = database.prepare_cached(&format!(
        "{RECOVERY} WHERE e.outcome = '{}' AND e.at >= ?1 ORDER BY p.id",
        PlanEnd::Interrupted.as_str()
    ))?;
    query.query_map([since], recovery)?.collect()
}

fn recovery(row: &Row<'_>) -> rusqlite::Result<InterruptedRecovery> {
    Ok(InterruptedRecovery {
        plan: row.get(0)?,
        vm: row.get(1)?,
        at: timestamp(row.get(2)?),
        is_closed: row.get(3)?,
    })
}
