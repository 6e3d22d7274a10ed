//! What processes had under way when they died, closed by the next one that comes.
//!
//! A process that owns something has a marker, which it removes when it ends with nothing open. A marker that nobody holds any more is
//! therefore all that has to be looked for.

use jiff::Timestamp;
use rusqlite::{Connection, Transaction, named_params, params};

use super::{
    GuestWrite, Open, State, StateError, guest_writes, millis, sessions::OWNER, timestamp,
};
use crate::{
    marker,
    plan::PlanEnd,
    tag::{self, Parsed},
};

/// Why such a guard failed.
const FAILURE: &str = "interrupted: its process ended before the guard did";

/// A guard whose process died before it ended. Whether its tag is in the journals is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InterruptedGuard {
    pub tag: String,
    /// When it was about to insert the tag, by this host's clock.
    pub at: Timestamp,
}

/// What a process that died had begun and left open.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Interrupted {
    pub guards: Vec<InterruptedGuard>,
    /// The ids of the plans that it was carrying out.
    pub plans: Vec<String>,
    /// Files that it was writing in guests.
    pub guest_writes: Vec<GuestWrite>,
}

impl State {
    /// The markers of processes that are no more.
    pub(crate) fn dead_owners(&self) -> Result<Vec<String>, StateError> {
        self.with(|open| {
            let owners = marker::list(&open.dir, OWNER).map_err(|source| StateError::Lock {
                dir: open.dir.clone(),
                source,
            })?;
            let mut dead = Vec::new();
            for owner in owners {
                if !marker::lives(&open.dir, &owner)? {
                    dead.push(owner);
                }
            }
            Ok(dead)
        })
    }

    /// Closes what a process that is no more had open, and removes its marker. Its FLR sessions are another matter: they are open
    /// until the ZVM has unmounted them.
    pub(crate) fn close_interrupted(&self, owner: &str) -> Result<Interrupted, StateError> {
        let now = millis(self.now());
        self.with(|open| {
            let closed = open.write(|database| {
                close_calls(database, owner, now)?;
                close_places(database, owner, now)?;
                Ok(Interrupted {
                    guest_writes: guest_writes::leave_those_of(database, owner, now)?,
                    plans: close_plans(database, owner, now)?,
                    guards: close_guards(database, owner, now)?,
                })
            })?;
            marker::bury(&open.dir, owner)?;
            Ok(closed)
        })
    }
}

impl Open {
    /// Whether this process, which ends, has not closed all that it began.
    pub(super) fn leaves_something_open(&self, owner: &str) -> rusqlite::Result<bool> {
        Ok(self.leaves_places(owner)?
            || has_open_calls(&self.database, owner)?
            || guest_writes::has_open(&self.database, owner)?
            || !open_plans(&self.database, owner)?.is_empty()
            || !open_guards(&self.database, owner)?.is_empty())
    }
}

struct OpenGuard {
    at: i64,
    zvm: String,
    vm_identifier: String,
    tag: String,
}

fn open_guards(database: &Connection, owner: &str) -> rusqlite::Result<Vec<OpenGuard>> {
    let mut query = database.prepare_cached(
        "SELECT at, zvm, vm_identifier, tag FROM guard_intent i WHERE owner = ?1
           AND NOT EXISTS (SELECT 1 FROM guard g
               WHERE g.tag = i.tag AND g.zvm = i.zvm AND lower(g.vm_identifier) = i.vm_identifier)",
    )?;
    let guards = query.query_map([owner], |row| {
        Ok(OpenGuard {
            at: row.get(0)?,
            zvm: row.get(1)?,
            vm_identifier: row.get(2)?,
            tag: row.get(3)?,
        })
    })?;
    guards.collect()
}

/// What is known of an interrupted guard is what its tag says.
fn close_guards(
    database: &Transaction<'_>,
    owner: &str,
    now: i64,
) -> rusqlite::Result<Vec<InterruptedGuard>> {
    let mut closed = Vec::new();
    for guard in open_guards(database, owner)? {
        let parsed = tag::parse(&guard.tag);
        let (agent, change, vm) = match &parsed {
            Parsed::Ours(tag) => (tag.agent(), tag.change(), tag.vm()),
            _ => ("unknown", "unknown", "unknown"),
        };
        database.execute(
            "INSERT INTO guard (zvm, agent, change_id, vm_identifier, vm_name, tag, started_at, ended_at, failure)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                guard.zvm,
                agent,
                change,
                guard.vm_identifier,
                vm,
                guard.tag,
                guard.at,
                now,
                FAILURE
            ],
        )?;
        closed.push(InterruptedGuard {
            at: timestamp(guard.at),
            tag: guard.tag,
        });
    }
    Ok(closed)
}

/// Calls that nobody will tell the outcome of: not those that were handed over to another process.
const OPEN_CALLS: &str = "FROM listed_call l WHERE l.owner = :owner
    AND NOT EXISTS (SELECT 1 FROM call_outcome o WHERE o.call = l.id)
    AND NOT EXISTS (SELECT 1 FROM call_handed_over h WHERE h.call = l.id)";

fn has_open_calls(database: &Connection, owner: &str) -> rusqlite::Result<bool> {
    database
        .prepare_cached(&format!("SELECT EXISTS (SELECT 1 {OPEN_CALLS})"))?
        .query_row(named_params! {":owner": owner}, |row| row.get(0))
}

/// Whether such a call reached its server is not known.
fn close_calls(database: &Transaction<'_>, owner: &str, now: i64) -> rusqlite::Result<()> {
    database.execute(
        "INSERT OR IGNORE INTO claim_ended (claim, at, guard)
         SELECT c.id, :now, NULL FROM claim c JOIN listed_call l ON l.id = c.call WHERE l.owner = :owner
           AND NOT EXISTS (SELECT 1 FROM claim_ended e WHERE e.claim = c.id)",
        named_params! {":owner": owner, ":now": now},
    )?;
    database.execute(
        &format!(
            "INSERT INTO call_outcome (call, at, outcome) SELECT l.id, :now, 'lost' {OPEN_CALLS}"
        ),
        named_params! {":owner": owner, ":now": now},
    )?;
    Ok(())
}

struct OpenPlan {
    id: i64,
    name: String,
}

fn open_plans(database: &Connection, owner: &str) -> rusqlite::Result<Vec<OpenPlan>> {
    let mut query = database.prepare_cached(
        "SELECT p.id, p.name FROM plan_begun b JOIN plan p ON p.id = b.plan WHERE b.owner = ?1
           AND NOT EXISTS (SELECT 1 FROM plan_ended e WHERE e.plan = b.plan) ORDER BY p.id",
    )?;
    let plans = query.query_map([owner], |row| {
        Ok(OpenPlan {
            id: row.get(0)?,
            name: row.get(1)?,
        })
    })?;
    plans.collect()
}

/// What of such a plan is complete stays.
fn close_plans(database: &Transaction<'_>, owner: &str, now: i64) -> rusqlite::Result<Vec<String>> {
    let mut closed = Vec::new();
    for plan in open_plans(database, owner)? {
        database.execute(
            "INSERT INTO plan_ended (plan, at, outcome) VALUES (?1, ?2, ?3)",
            params![plan.id, now, PlanEnd::Interrupted.as_str()],
        )?;
        closed.push(plan.name);
    }
    Ok(closed)
}

/// The caller has removed what was left there.
fn close_places(database: &Transaction<'_>, owner: &str, now: i64) -> rusqlite::Result<()> {
    database.execute(
        "INSERT OR IGNORE INTO recovery_place_clean (place, at)
         SELECT id, :now FROM recovery_place WHERE owner = :owner",
        named_params! {":owner": owner, ":now": now},
    )?;
    Ok(())
}
