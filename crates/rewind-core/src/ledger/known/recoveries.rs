//! The recoveries from a checkpoint: to this host, into the guest, and what was undone there.
use std::collections::HashMap;

use rusqlite::{CachedStatement, Connection, OptionalExtension, params};
use schemars::JsonSchema;
use serde::Serialize;

use super::{ListedPin, iso};
use crate::{
    guest::Restore,
    plan::{Effect, Plan},
    text,
};

/// A recovery from a checkpoint, or the undoing of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RecordedRecovery {
    /// Its row in the ledger (`zerto-rewind audit show ROW`).
    pub row: i64,
    /// When it began (ISO 8601, UTC, the clock of this host).
    pub at: String,
    /// Where it was to end.
    pub kind: RecoveryKind,
    /// The path in the guest.
    pub path: String,
    /// `recovered` (to the host), `incomplete` (a folder without some of what is in it), `restored`, `beside`, `unchanged` (the guest had exactly this already), `conflict`, `failed`,
    /// `interrupted` (its process died), `under_way`.
    pub outcome: String,
    /// Where it was placed, or was to be placed.
    pub destination: Option<String>,
    /// SHA-256 of the file; of a folder, of its list of files.
    pub sha256: Option<String>,
}

/// Where a recovery ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryKind {
    /// On this host.
    Host,
    /// In the guest, next to the present file.
    Beside,
    /// In the guest, in the place of the present file.
    Replace,
    /// What was replaced in the guest is put back.
    Undo,
}

impl RecoveryKind {
    /// Of a file that was written in a guest, as the state has it.
    fn written(name: &str) -> Self {
        match name {
            "beside" => Self::Beside,
            "undo" => Self::Undo,
            _ => Self::Replace,
        }
    }
}

impl RecordedRecovery {
    /// Whether what was wanted is there.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(
            &*self.outcome,
            "recovered" | "restored" | "beside" | "unchanged"
        )
    }
}

/// `?1` checkpoint, `?2` ZVM, `?3` VPG in lower case. What was placed counts more than how the recovery ended.
const RECOVERIES: &str = "
    SELECT l.seq, l.at, coalesce(p.guest_path, r.path), p.destination, d.sha256,
        CASE WHEN d.sha256 IS NOT NULL AND e.failure = 'not_all_recovered' THEN 'incomplete'
             WHEN d.sha256 IS NOT NULL THEN 'recovered' WHEN d.failure IS NOT NULL OR e.failure IS NOT NULL THEN 'failed'
             WHEN EXISTS (SELECT 1 FROM ledger q WHERE q.closes = l.seq AND q.kind = 'intent_closed') THEN 'interrupted'
             ELSE 'under_way' END,
        r.id, r.plan, begins.seq, ends.seq
    FROM recovery r JOIN ledger l ON l.kind = 'recovery' AND l.row_id = r.id
    LEFT JOIN placing p ON p.recovery = r.id LEFT JOIN placed d ON d.placing = p.id
    LEFT JOIN ledger begins ON begins.kind = 'placing' AND begins.row_id = p.id
    LEFT JOIN ledger ends ON ends.kind = 'placed' AND ends.row_id = d.placing
    LEFT JOIN recovery_ended e ON e.recovery = r.id
    WHERE r.checkpoint_id = ?1 AND r.zvm = ?2 AND lower(r.vpg_identifier) = ?3
    ORDER BY r.id, p.id";

/// `?1` ZVM, `?2` VM in lower case.
const WRITES: &str = "
    SELECT l.seq, l.at, w.name, w.kind, w.undoes, w.checkpoint_id, w.path, w.target, w.vm, w.sha256, e.outcome,
        EXISTS (SELECT 1 FROM guest_write_left g WHERE g.write = w.id)
    FROM guest_write w JOIN ledger l ON l.kind = 'guest_write' AND l.row_id = w.id
    LEFT JOIN guest_write_ended e ON e.write = w.id
    WHERE w.zvm = ?1 AND lower(w.vm_identifier) = ?2
    ORDER BY w.id";

/// A file that was written in the guest.
struct Write {
    row: i64,
    at: i64,
    name: String,
    kind: RecoveryKind,
    undoes: Option<String>,
    checkpoint: String,
    path: String,
    target: String,
    vm: String,
    sha256: String,
    outcome: Option<String>,
    left: bool,
}

/// What a plan was to do with one path.
struct Planned {
    kind: RecoveryKind,
    path: String,
}

/// A row of [`RECOVERIES`].
struct Row {
    recovery: RecordedRecovery,
    id: i64,
    plan: String,
    begins: Option<i64>,
    ends: Option<i64>,
}

/// Looks for recoveries, checkpoint by checkpoint.
pub(super) struct Recoveries<'a> {
    zvm: &'a str,
    recoveries: CachedStatement<'a>,
    plan: CachedStatement<'a>,
    writes: Vec<Write>,
}

impl<'a> Recoveries<'a> {
    pub fn new(
        database: &'a Connection,
        zvm: &'a str,
        vm_identifier: &str,
    ) -> rusqlite::Result<Self> {
        let mut writes = database.prepare_cached(WRITES)?;
        let writes = writes.query_map([zvm, vm_identifier], write)?;
        Ok(Self {
            zvm,
            recoveries: database.prepare_cached(RECOVERIES)?,
            plan: database.prepare_cached("SELECT body FROM plan WHERE name = ?1")?,
            writes: writes.collect::<rusqlite::Result<_>>()?,
        })
    }

    /// Those from this checkpoint, oldest first.
    pub fn of(&mut self, pin: &ListedPin, vpg: &str) -> rusqlite::Result<Vec<RecordedRecovery>> {
        let asked = params![pin.checkpoint_id, self.zvm, vpg];
        let rows = self.recoveries.query_map(asked, row)?;
        let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
        let mut plans: HashMap<String, (i64, Vec<Planned>)> = HashMap::new();
        let mut written: Vec<String> = Vec::new();
        let mut found = Vec::new();
        for Row {
            mut recovery,
            id,
            plan,
            begins,
            ends,
        } in rows
        {
            // A plan's recoveries are written down together, in the order of its effects.
            if !plans.contains_key(&plan) {
                let planned = self.planned(&plan)?;
                plans.insert(plan.clone(), (id, planned));
            }
            let planned = plans.get(&plan).and_then(|(first, planned)| {
                planned.get(usize::try_from(id.checked_sub(*first)?).ok()?)
            });
            if let Some(Planned { kind, path }) = planned
                && *kind != RecoveryKind::Host
            {
                recovery.kind = *kind;
                recovery.path = text::path(path);
                let write = self.writes.iter().find(|write| {
                    write.kind == *kind
                        && (&write.checkpoint, &write.path) == (&pin.checkpoint_id, path)
                        && begins.is_some_and(|begins| write.row > begins)
                        && ends.is_none_or(|ends| write.row < ends)
                });
                if let Some(write) = write {
                    written.push(write.name.clone());
                    if let Some(outcome) = &write.outcome {
                        recovery.outcome.clone_from(outcome);
                        recovery.sha256 = Some(write.sha256.clone());
                    }
                }
            }
            found.push(recovery);
        }
        // Those of an undo may be undone as well; each comes after what it undoes.
        for write in &self.writes {
            let Some(undoes) = &write.undoes else {
                continue;
            };
            if written.contains(undoes) {
                written.push(write.name.clone());
                found.push(write.undo());
            }
        }
        found.sort_by_key(|recovery| recovery.row);
        Ok(found)
    }

    /// Nothing where the plan is not known any more, or can't be read: its recoveries are told all the same.
    fn planned(&mut self, plan: &str) -> rusqlite::Result<Vec<Planned>> {
        let body: Option<String> = self.plan.query_row([plan], |row| row.get(0)).optional()?;
        let plan = body.and_then(|body| serde_json::from_str::<Plan>(&body).ok());
        let effects = plan.iter().flat_map(Plan::effects).map(|effect| {
            let (restore, path) = match effect {
                Effect::Place { source, .. } => (None, &source.path),
                Effect::Write { in_guest, .. } => (Some(in_guest.restore), &in_guest.path),
                Effect::Omit { source, .. } => {
                    let restore = plan.as_ref().and_then(|plan| plan.asked.restore);
                    (restore, &source.path)
                }
            };
            Planned {
                kind: match restore {
                    None => RecoveryKind::Host,
                    Some(Restore::Beside) => RecoveryKind::Beside,
                    Some(Restore::Replace) => RecoveryKind::Replace,
                },
                path: path.clone(),
            }
        });
        Ok(effects.collect())
    }
}

impl Write {
    fn undo(&self) -> RecordedRecovery {
        let otherwise = match self.left {
            true => "interrupted",
            false => "under_way",
        };
        RecordedRecovery {
            row: self.row,
            at: iso(self.at),
            kind: self.kind,
            path: text::path(&self.path),
            outcome: self.outcome.as_deref().unwrap_or(otherwise).to_owned(),
            destination: Some(format!(
                "{} in the guest of {}",
                text::path(&self.target),
                self.vm
            )),
            sha256: Some(self.sha256.clone()),
        }
    }
}

fn row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    Ok(Row {
        recovery: RecordedRecovery {
            row: row.get(0)?,
            at: iso(row.get(1)?),
            kind: RecoveryKind::Host,
            path: row.get(2)?,
            destination: row.get(3)?,
            sha256: row.get(4)?,
            outcome: row.get(5)?,
        },
        id: row.get(6)?,
        plan: row.get(7)?,
        begins: row.get(8)?,
        ends: row.get(9)?,
    })
}

fn write(row: &rusqlite::Row<'_>) -> rusqlite::Result<Write> {
    Ok(Write {
        row: row.get(0)?,
        at: row.get(1)?,
        name: row.get(2)?,
        kind: RecoveryKind::written(&row.get::<_, String>(3)?),
        undoes: row.get(4)?,
        checkpoint: row.get(5)?,
        path: row.get(6)?,
        target: row.get(7)?,
        vm: row.get(8)?,
        sha256: row.get(9)?,
        outcome: row.get(10)?,
        left: row.get(11)?,
    })
}
