//! Plans, what was decided about them, and which were begun.

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Row, Transaction, named_params, params, types::Type};

use super::{State, StateError, millis, timestamp};
use crate::{
    ledger::{append, append_if, kinds},
    plan::{Decision, How, Plan, PlanEnd, Verdict},
};

/// So many plans are listed at most.
const LISTED_MAX: i64 = 200;

/// What a plan is written down as.
pub(crate) struct PlanForm {
    pub body: String,
    pub digest: String,
    pub substance: String,
}

/// Who asked for a plan.
pub(crate) struct Asker {
    /// The MCP client as it named itself, or the program.
    pub client: Option<String>,
    /// The change id of its session.
    pub change: String,
    /// See [`Call::seat`](crate::Call::seat).
    pub seat: String,
}

/// A plan as it was written down; whether it is still what it was is for the reader to see.
pub(crate) struct PlanRow {
    pub body: String,
    pub digest: String,
    /// With the digest of what was decided on.
    pub decision: Option<(Decision, String)>,
    pub begun: bool,
    /// Where it was begun and has ended.
    pub end: Option<PlanEnd>,
    /// Who asked for it.
    pub client: Option<String>,
}

/// Whether a plan may be carried out now. Only one asker ever gets `Now`.
pub(crate) enum Begun {
    Now,
    Before,
    NotApproved,
}

/// Whether a decision was written down. Of one plan, only one ever is.
pub(crate) enum Decided {
    Now,
    Before(Decision),
    /// There is no plan of this name and digest.
    NoSuchPlan,
}

const SELECT: &str = "SELECT p.body, p.digest, d.verdict, d.how, d.decided_by, d.at, d.digest,
     EXISTS (SELECT 1 FROM plan_begun b WHERE b.plan = p.id), e.outcome, p.client
     FROM plan p LEFT JOIN plan_decision d ON d.plan = p.id LEFT JOIN plan_ended e ON e.plan = p.id";

impl State {
    /// Writes down a plan, and who asked for it.
    pub(crate) fn plan_made(
        &self,
        plan: &Plan,
        form: &PlanForm,
        asker: &Asker,
    ) -> Result<(), StateError> {
        self.write(|database| {
            database.execute(
                "INSERT INTO plan (at, expires_at, name, zvm, vm_identifier, vm_name, vpg_identifier, checkpoint_id, client, change_id,
                     seat, kind, substance, digest, body)
                 VALUES (:at, :expires, :name, :zvm, :vm, :vm_name, :vpg, :checkpoint, :client, :change, :seat, :kind, :substance, :digest, :body)",
                named_params! {
                    ":at": millis(plan.made_at), ":expires": millis(plan.expires_at), ":name": plan.id, ":zvm": plan.zvm,
                    ":vm": plan.vm_identifier, ":vm_name": plan.vm, ":vpg": plan.vpg_identifier, ":checkpoint": plan.checkpoint,
                    ":client": asker.client, ":change": asker.change, ":seat": asker.seat,
                    ":kind": if plan.is_preview() { "preview" } else { "effects" },
                    ":substance": form.substance, ":digest": form.digest, ":body": form.body,
                },
            )?;
            let id = database.last_insert_rowid();
            append(database, &kinds::PLAN, id, millis(plan.made_at))
        })
    }

    /// The plan of this name on this ZVM.
    pub(crate) fn plan_named(&self, zvm: &str, name: &str) -> Result<Option<PlanRow>, StateError> {
        self.read(|database, _| {
            database
                .prepare_cached(&format!("{SELECT} WHERE p.zvm = ?1 AND p.name = ?2"))?
                .query_row([zvm, name], row)
                .optional()
        })
    }

    /// The newest plan of this substance that was not begun and can be decided on until `until` at least, or was approved. Of previews,
    /// only the former: one that was approved and permits nothing any more is to be asked about anew.
    pub(crate) fn plan_alike(
        &self,
        zvm: &str,
        substance: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<PlanRow>, StateError> {
        self.read(|database, _| {
            database
                .prepare_cached(&format!(
                    "{SELECT} WHERE p.zvm = ?1 AND p.substance = ?2 AND p.expires_at > ?3
                       AND (p.expires_at >= ?4 AND d.verdict IS NULL OR p.kind = 'effects' AND d.verdict = 'approved')
                       AND NOT EXISTS (SELECT 1 FROM plan_begun b WHERE b.plan = p.id)
                     ORDER BY p.id DESC LIMIT 1"
                ))?
                .query_row(params![zvm, substance, millis(now), millis(until)], row)
                .optional()
        })
    }

    /// The plans on this ZVM that expire after `now`, newest first.
    pub(crate) fn plans_after(
        &self,
        zvm: &str,
        now: Timestamp,
    ) -> Result<Vec<PlanRow>, StateError> {
        self.read(|database, _| {
            let mut query = database.prepare_cached(&format!(
                "{SELECT} WHERE p.zvm = ?1 AND p.expires_at > ?2 ORDER BY p.id DESC LIMIT ?3"
            ))?;
            let rows = query.query_map(params![zvm, millis(now), LISTED_MAX], row)?;
            rows.collect()
        })
    }

    /// Writes down what was decided on exactly this digest, unless something was decided before: then that.
    pub(crate) fn plan_decided(
        &self,
        plan: &Plan,
        digest: &str,
        decision: &Decision,
    ) -> Result<Decided, StateError> {
        self.write(|database| {
            let added = database.execute(
                "INSERT OR IGNORE INTO plan_decision (plan, at, verdict, how, decided_by, digest)
                 SELECT id, ?3, ?4, ?5, ?6, ?2 FROM plan WHERE name = ?1 AND digest = ?2",
                params![
                    plan.id,
                    digest,
                    millis(decision.at),
                    decision.verdict.as_str(),
                    decision.how.as_str(),
                    decision.by
                ],
            )?;
            if added == 1 {
                let id = database.query_row(
                    "SELECT id FROM plan WHERE name = ?1",
                    [&plan.id],
                    |row| row.get(0),
                )?;
                append(database, &kinds::PLAN_DECISION, id, millis(decision.at))?;
                return Ok(Decided::Now);
            }
            let before = named(database, &plan.id)?.and_then(|row| row.decision);
            Ok(before.map_or(Decided::NoSuchPlan, |(decision, _)| {
                Decided::Before(decision)
            }))
        })
    }

    /// Writes down that an approved plan is about to be carried out, once.
    pub(crate) fn plan_begun(
        &self,
        plan: &Plan,
        digest: &str,
        now: Timestamp,
    ) -> Result<Begun, StateError> {
        self.with(|open| {
            let owner = open.owner()?;
            open.write(|database| {
            let approved = database
                .query_row(
                    "SELECT p.id FROM plan p JOIN plan_decision d ON d.plan = p.id
                     WHERE p.name = ?1 AND p.digest = ?2 AND d.digest = ?2 AND d.verdict = 'approved' AND p.expires_at > ?3",
                    params![plan.id, digest, millis(now)],
                    |row| row.get::<_, i64>(0),
                )
                .optional()?;
            let Some(id) = approved else {
                return Ok(Begun::NotApproved);
            };
            let added = database.execute(
                "INSERT OR IGNORE INTO plan_begun (plan, at, owner) VALUES (?1, ?2, ?3)",
                params![id, millis(now), owner],
            )?;
            if added == 0 {
                return Ok(Begun::Before);
            }
            append(database, &kinds::PLAN_BEGUN, id, millis(now))?;
            Ok(Begun::Now)
            })
        })
    }

    /// Writes down how a plan ended that was begun.
    pub(crate) fn plan_ended(&self, name: &str, end: PlanEnd) -> Result<(), StateError> {
        let now = millis(self.now());
        self.write_outcome(|database| {
            let begun =
                "SELECT b.plan FROM plan_begun b JOIN plan p ON p.id = b.plan WHERE p.name = ?1";
            let plan = database
                .query_row(begun, [name], |row| row.get(0))
                .optional()?;
            plan.map_or(Ok(()), |plan| plan_ended(database, plan, end, now))
        })
    }

    /// The newest preview of this plan's checkpoint that was asked for from this seat, or is the named one, and was approved at `since` or later: its name.
    pub(crate) fn preview_approved(
        &self,
        plan: &Plan,
        seat: &str,
        name: Option<&str>,
        since: Timestamp,
        now: Timestamp,
    ) -> Result<Option<String>, StateError> {
        self.read(|database, _| {
            database
                .prepare_cached(
                    "SELECT p.name FROM plan p JOIN plan_decision d ON d.plan = p.id AND d.digest = p.digest
                     WHERE p.zvm = :zvm AND p.vm_identifier = :vm AND p.vpg_identifier = :vpg AND p.checkpoint_id = :checkpoint
                       AND (p.seat = :seat OR p.name = :name) AND p.kind = 'preview' AND d.verdict = 'approved' AND d.at BETWEEN :since AND :now
                     ORDER BY d.at DESC LIMIT 1",
                )?
                .query_row(
                    named_params! {
                        ":zvm": plan.zvm, ":vm": plan.vm_identifier, ":vpg": plan.vpg_identifier,
                        ":checkpoint": plan.checkpoint, ":seat": seat, ":name": name, ":since": millis(since), ":now": millis(now),
                    },
                    |row| row.get(0),
                )
                .optional()
        })
    }

    /// The key that what goes through a client is sealed with; this user's alone.
    pub(crate) fn seal_key(&self) -> Result<Vec<u8>, StateError> {
        self.read(|database, _| database.query_row("SELECT key FROM seal", [], |row| row.get(0)))
    }
}

/// The first word counts.
pub(super) fn plan_ended(
    database: &Transaction<'_>,
    plan: i64,
    end: PlanEnd,
    now: i64,
) -> rusqlite::Result<()> {
    let added = database.execute(
        "INSERT OR IGNORE INTO plan_ended (plan, at, outcome) VALUES (?1, ?2, ?3)",
        params![plan, now, end.as_str()],
    )?;
    append_if(added, database, &kinds::PLAN_ENDED, plan, now)
}

fn named(database: &Transaction<'_>, name: &str) -> rusqlite::Result<Option<PlanRow>> {
    database
        .prepare_cached(&format!("{SELECT} WHERE p.name = ?1"))?
        .query_row([name], row)
        .optional()
}

fn row(row: &Row<'_>) -> rusqlite::Result<PlanRow> {
    let unknown = |column| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, "not a known word".into())
    };
    let decision = match row.get::<_, Option<String>>(2)? {
        None => None,
        Some(verdict) => {
            let decision = Decision {
                verdict: Verdict::parse(&verdict).ok_or_else(|| unknown(2))?,
                how: How::parse(&row.get::<_, String>(3)?).ok_or_else(|| unknown(3))?,
                by: row.get(4)?,
                at: timestamp(row.get(5)?),
            };
            Some((decision, row.get(6)?))
        }
    };
    Ok(PlanRow {
        body: row.get(0)?,
        digest: row.get(1)?,
        decision,
        begun: row.get(7)?,
        end: match row.get::<_, Option<String>>(8)? {
            None => None,
            Some(end) => Some(PlanEnd::parse(&end).ok_or_else(|| unknown(8))?),
        },
        client: row.get(9)?,
    })
}
