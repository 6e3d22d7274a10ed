//! `approvals`: the plans that have not expired, or one of them as it is to be decided on, with what has changed since the checkpoint.
use std::path::Path;

use jiff::Timestamp;
use rewind_core::{
    Decision, Error, FileDiff, KnownPlan, Plan, PlanEnd, Verdict,
    diff::PATHS_COMPARED,
    plan::{Decides, Effect},
    text,
};
use serde::Serialize;

use super::{
    approve::shown,
    diff,
    recover::{self, Desk},
};
use crate::{
    interrupt::Interrupt,
    output::{self, Output},
    session::{self, Session},
    table::{is_drawn, moment, table},
    wrap::prose,
};

/// Characters of the name of who asks.
const NAME_SHOWN: usize = 200;

/// More paths of one plan than these are counted, not listed.
const PATHS_SHOWN: usize = 3;

/// One plan, for scripts.
#[derive(Serialize)]
struct Row {
    plan_id: String,
    status: &'static str,
    kind: Kind,
    /// The MCP client as it named itself, or the program.
    asked_by: Option<String>,
    vm: String,
    vpg: String,
    checkpoint: String,
    tag: Option<String>,
    /// What is looked for, or what is placed where.
    paths: Vec<String>,
    destinations: Vec<String>,
    made_at: String,
    expires_at: String,
    digest: String,
    decision: Option<Decision>,
    /// What a person decides on, in words.
    summary: String,
    /// Where it was asked for: each file and folder, compared with now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    diff: Vec<Compared>,
}

/// What is decided. Of a plan that does several, what weighs most; its destinations say which is which.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// To look into the checkpoint, to recover what is found there.
    Preview,
    /// To look into the checkpoint, to compare what is found there.
    Comparison,
    /// To recover to this host.
    Host,
    /// To put a file next to the present one in the guest.
    Beside,
    /// To replace a file in the guest.
    Replace,
}

impl Kind {
    fn of(plan: &Plan) -> Self {
        let writes = |effect: &Effect| matches!(effect, Effect::Write { .. });
        if plan.is_comparison() {
            Self::Comparison
        } else if plan.is_preview() {
            Self::Preview
        } else if plan.effects().iter().any(Effect::replaces) {
            Self::Replace
        } else if plan.effects().iter().any(writes) {
            Self::Beside
        } else {
            Self::Host
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::Preview => "look for",
            Self::Comparison => "look, to compare",
            Self::Host => "recover to this host",
            Self::Beside => "put beside in the guest",
            Self::Replace => "replace in the guest",
        }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Compared {
    Diff(Box<FileDiff>),
    /// It is neither in the checkpoint nor there now.
    Neither(Box<Error>),
}

/// Lists them, newest first.
///
/// # Errors
///
/// `plan_foreign`, those of the configuration and the state, and for the differences those of `diff`.
pub async fn run(
    config: Option<&Path>,
    (id, diff): (Option<&str>, bool),
    output: Output,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let rewind = session::open(config)?;
    if let Some(id) = id {
        let known = session::telling(&rewind, rewind.plan(id)).await?;
        let mut row = row(&known);
        if diff {
            let session = Session::with(rewind, interrupt);
            row.diff = compared(&session, &known, interrupt).await?;
            let still_open = row.diff.iter().find_map(|path| match path {
                Compared::Diff(diff) => diff.still_open.as_ref(),
                Compared::Neither(_) => None,
            });
            // A person is told beside the comparison.
            if output.is_json() {
                recover::still_open(still_open);
            }
        }
        output.result(&row, |row| whole(row, &known));
        return Ok(());
    }
    let plans = session::telling(&rewind, rewind.plans()).await?;
    let rows: Vec<Row> = plans.iter().map(row).collect();
    output.result(&rows, |rows| {
        if rows.is_empty() {
            return "No plan waits for a decision.".to_owned();
        }
        if is_drawn() {
            let headings = ["Plan", "Status", "Until (UTC)", "What"];
            return table(headings, rows.iter().map(narrow));
        }
        let headings = [
            "Plan",
            "Status",
            "Until (UTC)",
            "Asked by",
            "VM",
            "Checkpoint",
            "Kind",
            "What",
        ];
        table(headings, rows.iter().map(wide))
    });
    Ok(())
}

/// Each file and folder of the plan, once the person at the terminal has agreed to look into the checkpoint.
async fn compared(
    session: &Session,
    known: &KnownPlan,
    interrupt: &Interrupt,
) -> Result<Vec<Compared>, Error> {
    let preview = session
        .run(async |rewind, call| rewind.plan_diff_of(known, &call).await)
        .await?;
    if let Some(preview) = preview
        && !preview.approved()?
    {
        Desk::new(false, interrupt)
            .decide(session, &preview)
            .await?;
    }
    let compared = session
        .run(async |rewind, call| rewind.diff_of(known, &call).await)
        .await?;
    let rows = compared.into_iter().map(|path| match path {
        Ok(diff) => Compared::Diff(Box::new(diff)),
        Err(error) => Compared::Neither(Box::new(error)),
    });
    Ok(rows.collect())
}

/// One plan for a person, with the differences where they were asked for.
fn whole(row: &Row, known: &KnownPlan) -> String {
    let lapsed = known.expired && !known.begun;
    let status = decided(
        known.decision.as_ref(),
        known.end,
        lapsed.then_some(known.plan.expires_at),
    );
    let asked_by = row.asked_by.as_deref().map_or_else(String::new, |client| {
        format!("asked for by {}; ", text::named(client, NAME_SHOWN))
    });
    let status = prose(&format!("{asked_by}{status}"));
    let mut text = format!("{}\n\n{status}", shown(known));
    for path in &row.diff {
        let path = match path {
            Compared::Diff(path) => diff::show(path),
            Compared::Neither(error) => output::lines(&error.message),
        };
        text.push_str(&format!("\n\n{path}"));
    }
    let more = row.paths.len().saturating_sub(PATHS_COMPARED);
    if !row.diff.is_empty() && more > 0 {
        text.push_str(&format!("\n\n… and {more} more, which were not compared"));
    }
    text
}

/// What was decided, and what has become of it. `lapsed`: it was not begun before it expired then.
fn decided(decision: Option<&Decision>, end: Option<PlanEnd>, lapsed: Option<Timestamp>) -> String {
    let decision = decision.map(ToString::to_string);
    let nobody = || "nobody has decided on it".to_owned();
    match (decision, end, lapsed) {
        (decision, Some(end), _) => format!("{}; it {end}", decision.unwrap_or_else(nobody)),
        (None, None, Some(at)) => format!("it expired at {at:.0}; nobody had decided on it"),
        (Some(decision), None, Some(at)) => format!("{decision}; it expired at {at:.0}"),
        (decision, None, None) => decision.unwrap_or_else(nobody),
    }
}

fn wide(row: &Row) -> [String; 8] {
    let mut what = row
        .paths
        .iter()
        .take(PATHS_SHOWN)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if let Some(more @ 1..) = row.paths.len().checked_sub(PATHS_SHOWN) {
        what.push_str(&format!(", and {more} more"));
    }
    let asked_by = row.asked_by.as_deref().unwrap_or("-");
    [
        row.plan_id.clone(),
        row.status.to_owned(),
        moment(&row.expires_at),
        asked_by.to_owned(),
        row.vm.clone(),
        row.checkpoint.clone(),
        row.kind.in_words().to_owned(),
        what,
    ]
}

/// For a screen: what gives way is the text.
fn narrow(row: &Row) -> [String; 4] {
    let [id, status, until, asked_by, vm, checkpoint, kind, what] = wide(row);
    let what = format!("{kind}: {what}\non {vm}, checkpoint {checkpoint}\nasked for by {asked_by}");
    [id, status, until, what]
}

fn row(known: &KnownPlan) -> Row {
    let plan = &known.plan;
    let written = |path: &String| text::path(path);
    let (paths, destinations) = match &plan.decides {
        Decides::Preview { looks_for, .. } => (looks_for.iter().map(written).collect(), Vec::new()),
        Decides::Effects { effects } => effects
            .iter()
            .map(|effect| {
                let to = match effect {
                    Effect::Place { to, .. } => text::display(to, text::PATH_MAX_LEN),
                    Effect::Write { in_guest, .. } => format!("guest:{}", written(&in_guest.to)),
                    Effect::Omit { code, .. } => format!("none ({})", code.as_str()),
                };
                (written(&effect.source().path), to)
            })
            .unzip(),
    };
    Row {
        plan_id: plan.id.clone(),
        status: status(known),
        kind: Kind::of(plan),
        asked_by: known.asked_by.clone(),
        vm: plan.vm.clone(),
        vpg: plan.vpg.clone(),
        checkpoint: plan.checkpoint.clone(),
        tag: plan.tag.clone(),
        paths,
        destinations,
        made_at: plan.made_at.to_string(),
        expires_at: plan.expires_at.to_string(),
        digest: known.digest.clone(),
        decision: known.decision.clone(),
        summary: plan.summary(&known.digest),
        diff: Vec::new(),
    }
}

fn status(known: &KnownPlan) -> &'static str {
    match &known.decision {
        _ if known.begun => match known.end {
            None => "under way",
            Some(PlanEnd::Done) => "carried out",
            Some(PlanEnd::NotAll) => "partly failed",
            Some(PlanEnd::Failed) => "failed",
            Some(PlanEnd::Interrupted) => "interrupted",
        },
        _ if known.outdated => "counts no more",
        Some(decision) if decision.verdict == Verdict::Approved => "approved",
        Some(_) => "declined",
        None if known.expired => "expired",
        None => "waiting",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rewind_core::How;

    #[test]
    fn a_plan_that_expired_says_so_whatever_was_decided() {
        let at: Timestamp = "2026-11-30T10:02:07.5Z".parse().unwrap();
        let decision = Decision {
            verdict: Verdict::Approved,
            how: How::Approve,
            by: "cli/ana".into(),
            at,
        };
        for (decision, end, lapsed, said) in [
            (None, None, None, "nobody has decided on it"),
            (
                None,
                None,
                Some(at),
                "it expired at 2026-11-30T10:02:07Z; nobody had decided on it",
            ),
            (
                Some(&decision),
                None,
                None,
                "approved, by cli/ana at 2026-11-30T10:02:07Z",
            ),
            (
                Some(&decision),
                None,
                Some(at),
                "approved, by cli/ana at 2026-11-30T10:02:07Z; it expired at 2026-11-30T10:02:07Z",
            ),
            (
                Some(&decision),
                Some(PlanEnd::Done),
                None,
                "approved, by cli/ana at 2026-11-30T10:02:07Z; it was carried out",
            ),
        ] {
            assert_eq!(decided(decision, end, lapsed), said);
        }
    }
}
