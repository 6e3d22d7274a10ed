//! What processes had under way when they died, closed by the next one that comes.
//!
//! A process that owns something has a marker, which it removes when it ends with nothing open. A marker that nobody holds any more is
//! therefore all that has to be looked for.

use jiff::Timestamp;
use rusqlite::{Transaction, params};

use super::{
    GuestWrite, State, StateError,
    calls::{CallId, ClaimId, claim_ended},
    guest_writes, millis,
    outcomes::ended,
    places::close_places,
    plans::plan_ended,
    sessions::OWNER,
    timestamp,
};
use crate::{
    enforce::Outcome,
    ledger::{append, close_all_of, kinds},
    marker,
    plan::PlanEnd,
    tag::{self, Parsed},
};

/// Why such a guard failed.
const FAILURE: &str = "interrupted: its process ended before the guard did";

/// A guard whose process died before it ended. Whether its tag is in the journals is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptedGuard {
    /// The tag.
    pub tag: String,
    /// When it was about to insert the tag, by this host's clock.
    pub at: Timestamp,
}

/// A plan whose process died while it carried it out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptedPlan {
    /// What people call it.
    pub name: String,
    /// Its canonical form.
    pub body: String,
    /// What the process has written in the guest of that VM from that checkpoint since, or was about to.
    pub writes: Vec<GuestWrite>,
}

/// What a process that died had begun and left open.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Interrupted {
    /// Its guards.
    pub guards: Vec<InterruptedGuard>,
    /// The plans that it was carrying out.
    pub plans: Vec<InterruptedPlan>,
    /// Files that it was writing in guests.
    pub guest_writes: Vec<GuestWrite>,
}

impl State {
    /// The markers of processes that are no more.
    ///
    /// # Errors
    ///
    /// The state cannot be read, or something is no marker of ours.
    pub fn dead_owners(&self) -> Result<Vec<String>, StateError> {
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
    /// until the ZVM has unmounted them; and what it left in the places where it worked, the caller has removed. Intents that nothing
    /// else closes are closed as interrupted. Nothing is done where the process lives.
    ///
    /// # Errors
    ///
    /// The state cannot be written, or this is no marker of ours; then what it had open stays so.
    pub fn close_interrupted(&self, owner: &str) -> Result<Interrupted, StateError> {
        let now = millis(self.now());
        self.with(|open| {
            if marker::lives(&open.dir, owner)? {
                return Ok(Interrupted::default());
            }
            let closed = open.write(|database| {
                close_calls(database, owner, now)?;
                close_places(database, owner, now)?;
                let closed = Interrupted {
                    guest_writes: guest_writes::leave_those_of(database, owner, now)?,
                    plans: close_plans(database, owner, now)?,
                    guards: close_guards(database, owner, now)?,
                };
                close_all_of(database, owner, now)?;
                Ok(closed)
            })?;
            marker::bury(&open.dir, owner)?;
            Ok(closed)
        })
    }
}

pub(super) struct OpenGuard {
    pub(super) at: i64,
    zvm: String,
    vm_identifier: String,
    pub(super) tag: String,
}

pub(super) fn open_guards(
    database: &Transaction<'_>,
    owner: &str,
) -> rusqlite::Result<Vec<OpenGuard>> {
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

pub(super) fn closed_guards(
    database: &Transaction<'_>,
    since: i64,
) -> rusqlite::Result<Vec<InterruptedGuard>> {
    let mut query = database.prepare_cached(
        "SELECT tag, started_at FROM guard WHERE failure = ?1 AND ended_at >= ?2 ORDER BY id",
    )?;
    let guards = query.query_map(params![FAILURE, since], |row| {
        Ok(InterruptedGuard {
            tag: row.get(0)?,
            at: timestamp(row.get(1)?),
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
        append(database, &kinds::GUARD, database.last_insert_rowid(), now)?;
        closed.push(InterruptedGuard {
            at: timestamp(guard.at),
            tag: guard.tag,
        });
    }
    Ok(closed)
}

/// Whether such a call reached its server is not known. One that was handed over to another process is told by that one.
fn close_calls(database: &Transaction<'_>, owner: &str, now: i64) -> rusqlite::Result<()> {
    let mut claims = database.prepare_cached(
        "SELECT c.id FROM claim c JOIN listed_call l ON l.id = c.call WHERE l.owner = ?1
           AND NOT EXISTS (SELECT 1 FROM claim_ended e WHERE e.claim = c.id)",
    )?;
    for claim in claims.query_map([owner], |row| row.get(0).map(ClaimId))? {
        claim_ended(database, claim?, None, now)?;
    }
    let mut calls = database.prepare_cached(
        "SELECT l.id FROM listed_call l WHERE l.owner = ?1
           AND NOT EXISTS (SELECT 1 FROM call_outcome o WHERE o.call = l.id)
           AND NOT EXISTS (SELECT 1 FROM call_handed_over h WHERE h.call = l.id)",
    )?;
    for call in calls.query_map([owner], |row| row.get(0).map(CallId))? {
        ended(database, call?, Outcome::Lost, now)?;
    }
    Ok(())
}

struct OpenPlan {
    id: i64,
    name: String,
    body: String,
}

fn open_plans(database: &Transaction<'_>, owner: &str) -> rusqlite::Result<Vec<OpenPlan>> {
    let mut query = database.prepare_cached(
        "SELECT p.id, p.name, p.body FROM plan_begun b JOIN plan p ON p.id = b.plan WHERE b.owner = ?1
           AND NOT EXISTS (SELECT 1 FROM plan_ended e WHERE e.plan = b.plan) ORDER BY p.id",
    )?;
    let plans = query.query_map([owner], |row| {
        Ok(OpenPlan {
            id: row.get(0)?,
            name: row.get(1)?,
            body: row.get(2)?,
        })
    })?;
    plans.collect()
}

/// What of such a plan is complete stays.
fn close_plans(
    database: &Transaction<'_>,
    owner: &str,
    now: i64,
) -> rusqlite::Result<Vec<InterruptedPlan>> {
    let mut closed = Vec::new();
    for plan in open_plans(database, owner)? {
        plan_ended(database, plan.id, PlanEnd::Interrupted, now)?;
        closed.push(InterruptedPlan {
            writes: guest_writes::of_plan(database, owner, plan.id)?,
            name: plan.name,
            body: plan.body,
        });
    }
    Ok(closed)
}
