//! Listed calls, and who takes the pins for them.
//!
//! A hook and a proxy may see one and the same call: by its server, tool, arguments and VM. The one that comes second uses the
//! first one's guard (two hooks only where their harness says that it is one call; two proxies never), and while that is on its way, waits for it. Which of them is the second is decided in one transaction. A first
//! one that died, failed, or is past its time holds nobody up: whether its process lives is told by the lock on its marker.

use std::{path::Path, time::Duration};

use jiff::Timestamp;
use rusqlite::{Row, Transaction, named_params, params};

use super::{EarlierGuard, State, StateError, ToolCall, millis};
use crate::{
    ledger::{append, append_if, kinds},
    marker,
};

/// How long a guard stands for the same call, once it was taken.
const SAME_CALL: Duration = Duration::from_secs(2 * 60);

/// The number of a listed call in the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CallId(pub(super) i64);

/// The number of a claim in the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ClaimId(pub(super) i64);

/// Who sees a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SeenBy {
    /// Each call that it sees is one of its own.
    Proxy,
    /// A harness may show a hook one call several times, and says by its own id that it is the same.
    Hook,
}

impl SeenBy {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Proxy => "proxy",
            Self::Hook => "hook",
        }
    }
}

/// A listed call, about to be guarded.
#[derive(Debug, Clone)]
pub(crate) struct NewCall {
    /// Host and port of the ZVM.
    pub zvm: String,
    /// Who saw the call. One observer sees a call once: what it sees again is another call.
    pub observer: String,
    pub seen_by: SeenBy,
    /// The harness's id of the call, where a hook was told one.
    pub correlation: Option<String>,
    pub call: ToolCall,
    /// As in the tag.
    pub agent: String,
    /// As in the tag.
    pub change: String,
}

/// One VM of a listed call.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub vm_identifier: String,
    /// How long a guard of the same agent, VM and change stands.
    pub reuse: Option<Duration>,
    /// How long a guard may take. One that takes longer is not waited for.
    pub patience: Duration,
    /// Guards that were looked at and won't do.
    pub not: Vec<i64>,
}

/// How a VM of a listed call is to be covered.
#[derive(Debug)]
pub(crate) enum Claim {
    /// By a guard of its own.
    Pin(ClaimId),
    /// By this earlier one, if it is still good.
    Use(ClaimId, EarlierGuard),
    /// By one that is on its way: ask again shortly.
    Wait,
}

impl State {
    /// Writes down a listed call, with this process as the owner.
    pub(crate) fn call_begun(&self, new: &NewCall) -> Result<CallId, StateError> {
        let at = millis(self.now());
        self.with(|open| {
            let owner = open.owner()?;
            open.write(|database| {
                database.execute(
                    "INSERT INTO listed_call
                         (at, zvm, observer, owner, server, tool, arguments_digest, agent, change_id, seen_by, correlation)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                    params![
                        at,
                        new.zvm,
                        new.observer,
                        owner,
                        new.call.server,
                        new.call.tool,
                        new.call.arguments_digest,
                        new.agent,
                        new.change,
                        new.seen_by.as_str(),
                        new.correlation,
                    ],
                )?;
                let id = database.last_insert_rowid();
                append(database, &kinds::LISTED_CALL, id, at)?;
                Ok(CallId(id))
            })
        })
    }

    /// Decides how a VM of a call is covered, and writes it down unless the answer is to wait.
    pub(crate) fn claim(&self, call: CallId, wanted: &Wanted) -> Result<Claim, StateError> {
        self.claim_at(call, wanted, || self.now())
    }

    /// The clock is read once the others are excluded, so that no claim that was waited for lies ahead of it.
    fn claim_at(
        &self,
        call: CallId,
        wanted: &Wanted,
        now: impl FnOnce() -> Timestamp,
    ) -> Result<Claim, StateError> {
        self.with(|open| {
            let dir = open.dir.clone();
            open.write(|database| {
                let vm = wanted.vm_identifier.to_lowercase();
                Claiming {
                    database,
                    dir: &dir,
                    call,
                    wanted,
                    vm: &vm,
                    now: millis(now()),
                }
                .decide()
            })
        })
    }

    /// Writes down which guard covers a claim; None where none does.
    pub(crate) fn claim_ended(&self, claim: ClaimId, guard: Option<i64>) -> Result<(), StateError> {
        let at = millis(self.now());
        self.write_outcome(|database| claim_ended(database, claim, guard, at))
    }

    /// The newest guard of this agent, VM and change that was taken within `reuse` and is none of `not`.
    pub(crate) fn guard_to_reuse(
        &self,
        zvm: &str,
        agent: &str,
        change: &str,
        wanted: &Wanted,
    ) -> Result<Option<EarlierGuard>, StateError> {
        let Some(reuse) = wanted.reuse else {
            return Ok(None);
        };
        let now = millis(self.now());
        self.write(|database| reusable(database, (zvm, agent, change), wanted, reuse, now))
    }
}

pub(super) fn claim_ended(
    database: &Transaction<'_>,
    claim: ClaimId,
    guard: Option<i64>,
    now: i64,
) -> rusqlite::Result<()> {
    let added = database.execute(
        "INSERT OR IGNORE INTO claim_ended (claim, at, guard) VALUES (?1, ?2, ?3)",
        params![claim.0, now, guard],
    )?;
    append_if(added, database, &kinds::CLAIM_ENDED, claim.0, now)
}

fn reusable(
    database: &Transaction<'_>,
    (zvm, agent, change): (&str, &str, &str),
    wanted: &Wanted,
    reuse: Duration,
    now: i64,
) -> rusqlite::Result<Option<EarlierGuard>> {
    let mut query = database.prepare_cached(
        "SELECT id FROM guard
         WHERE zvm = :zvm AND ended_at BETWEEN :from AND :now AND agent = :agent AND change_id = :change
           AND lower(vm_identifier) = :vm AND failure IS NULL
         ORDER BY id DESC",
    )?;
    let guards = query.query_map(
        named_params! {
            ":zvm": zvm, ":agent": agent, ":change": change, ":vm": wanted.vm_identifier.to_lowercase(),
            ":from": now.saturating_sub(length(reuse)), ":now": now,
        },
        |row| row.get(0),
    )?;
    for id in guards {
        let id = id?;
        if !wanted.not.contains(&id) {
            return EarlierGuard::read(database, id);
        }
    }
    Ok(None)
}

/// One VM of a call that looks for its guard, in a transaction that excludes all others.
struct Claiming<'a> {
    database: &'a Transaction<'a>,
    dir: &'a Path,
    call: CallId,
    wanted: &'a Wanted,
    vm: &'a str,
    now: i64,
}

/// The claim of another.
struct Other {
    claim: i64,
    at: i64,
    owner: String,
    server: Option<String>,
    our_server: Option<String>,
    /// When it ended, and the guard that it ended with.
    ended: Option<(i64, Option<i64>)>,
}

impl Claiming<'_> {
    fn decide(&self) -> rusqlite::Result<Claim> {
        for other in self.of_the_same_call()? {
            match other.ended {
                _ if !other.same_server() => {}
                None if self.is_under_way(&other) => return Ok(Claim::Wait),
                Some((at, Some(guard)))
                    if self.within(at, SAME_CALL) && !self.wanted.not.contains(&guard) =>
                {
                    if let Some(guard) = EarlierGuard::read(self.database, guard)? {
                        return Ok(Claim::Use(self.insert(Some(other.claim))?, guard));
                    }
                }
                _ => {}
            }
        }
        if let Some(reuse) = self.wanted.reuse {
            let (zvm, agent, change): (String, String, String) = self.database.query_row(
                "SELECT zvm, agent, change_id FROM listed_call WHERE id = ?1",
                [self.call.0],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )?;
            let ours = (zvm.as_str(), agent.as_str(), change.as_str());
            if let Some(guard) = reusable(self.database, ours, self.wanted, reuse, self.now)? {
                return Ok(Claim::Use(self.insert(None)?, guard));
            }
            let others = self.of_the_same_change()?;
            if others.iter().any(|other| self.is_under_way(other)) {
                return Ok(Claim::Wait);
            }
        }
        Ok(Claim::Pin(self.insert(None)?))
    }

    fn insert(&self, joins: Option<i64>) -> rusqlite::Result<ClaimId> {
        self.database.execute(
            "INSERT INTO claim (call, at, vm_identifier, joins) VALUES (?1, ?2, ?3, ?4)",
            params![self.call.0, self.now, self.vm, joins],
        )?;
        let id = self.database.last_insert_rowid();
        append(self.database, &kinds::CLAIM, id, self.now)?;
        Ok(ClaimId(id))
    }

    /// Claims of others that saw a call like this one, oldest first: a hook where this is a proxy and the other way round; or another
    /// hook that was told the same id of the call, or, where one of the two was told none, is of the same session. None of it was told an outcome, and this observer has not used them, or later ones,
    /// for an earlier call like this one.
    fn of_the_same_call(&self) -> rusqlite::Result<Vec<Other>> {
        self.others(
            "SELECT c.id, c.at, l.owner, l.server, me.server, e.at, e.guard
             FROM listed_call me
             JOIN listed_call l ON l.arguments_digest = me.arguments_digest AND l.tool = me.tool AND l.zvm = me.zvm
                  AND l.observer <> me.observer
                  AND (l.seen_by <> me.seen_by
                       OR l.seen_by = 'hook' AND CASE
                           WHEN l.correlation IS NULL OR me.correlation IS NULL
                           THEN l.agent = me.agent AND l.change_id = me.change_id
                           ELSE l.correlation = me.correlation END)
             JOIN claim c ON c.call = l.id AND c.vm_identifier = :vm AND c.joins IS NULL
             LEFT JOIN claim_ended e ON e.claim = c.id
             WHERE me.id = :call AND l.at >= :from
               AND NOT EXISTS (SELECT 1 FROM claim j JOIN call_outcome o ON o.call = j.call
                               WHERE j.id = c.id OR j.joins = c.id)
               AND c.id > (SELECT coalesce(max(j.joins), 0) FROM listed_call s JOIN claim j ON j.call = s.id
                           WHERE s.arguments_digest = me.arguments_digest AND s.tool = me.tool AND s.zvm = me.zvm
                             AND s.observer = me.observer AND j.vm_identifier = :vm)
             ORDER BY c.id",
        )
    }

    /// Claims of calls of the same agent and change that have not ended.
    fn of_the_same_change(&self) -> rusqlite::Result<Vec<Other>> {
        self.others(
            "SELECT c.id, c.at, l.owner, l.server, me.server, NULL, NULL
             FROM listed_call me
             JOIN listed_call l ON l.zvm = me.zvm AND l.agent = me.agent AND l.change_id = me.change_id AND l.id <> me.id
             JOIN claim c ON c.call = l.id AND c.vm_identifier = :vm AND c.joins IS NULL
             WHERE me.id = :call AND l.at >= :from
               AND NOT EXISTS (SELECT 1 FROM claim_ended e WHERE e.claim = c.id)
               AND NOT EXISTS (SELECT 1 FROM call_outcome o WHERE o.call = l.id)
             ORDER BY c.id",
        )
    }

    fn others(&self, query: &str) -> rusqlite::Result<Vec<Other>> {
        let longest = self.wanted.patience.saturating_add(SAME_CALL);
        let mut query = self.database.prepare_cached(query)?;
        let others = query.query_map(
            named_params! {
                ":call": self.call.0, ":vm": self.vm,
                // A call may guard several VMs one after another.
                ":from": self.now.saturating_sub(length(longest.saturating_mul(2))),
            },
            Other::read,
        )?;
        others.collect()
    }

    fn is_under_way(&self, other: &Other) -> bool {
        other.ended.is_none()
            && self.within(other.at, self.wanted.patience)
            // What is no marker of ours is waited for by nobody.
            && marker::lives(self.dir, &other.owner).unwrap_or(false)
    }

    /// A time in the future is of a clock that was set back: nothing is known of it.
    fn within(&self, at: i64, limit: Duration) -> bool {
        (0..=length(limit)).contains(&self.now.saturating_sub(at))
    }
}

impl Other {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let ended_at: Option<i64> = row.get(5)?;
        let guard = row.get(6)?;
        Ok(Self {
            claim: row.get(0)?,
            at: row.get(1)?,
            owner: row.get(2)?,
            server: row.get(3)?,
            our_server: row.get(4)?,
            ended: ended_at.map(|at| (at, guard)),
        })
    }

    /// Harnesses write a server's name with other punctuation than it has; where one side doesn't know it, any will do.
    fn same_server(&self) -> bool {
        match (&self.server, &self.our_server) {
            (Some(a), Some(b)) => same_name(a, b),
            _ => true,
        }
    }
}

/// Whether two names of a server are the same but for letter case and punctuation.
pub(super) fn same_name(a: &str, b: &str) -> bool {
    fn folded(name: &str) -> impl Iterator<Item = char> {
        name.chars()
            .flat_map(char::to_lowercase)
            .map(|c| if c.is_alphanumeric() { c } else { '_' })
    }
    folded(a).eq(folded(b))
}

fn length(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
