//! `approvals`: the plans that have not expired, or one of them as it is to be decided on.
use std::path::Path;

use rewind_core::{
    Decision, Error, KnownPlan, PlanEnd, Verdict,
    plan::{Decides, Effect},
    text,
};
use serde::Serialize;

use super::approve::shown;
use crate::{
    output::Output,
    session,
    table::{moment, table},
};

const PATH_MAX_LEN: usize = 4096;

/// One plan, for scripts.
#[derive(Serialize)]
struct Row {
    plan_id: String,
    status: &'static str,
    kind: &'static str,
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
}

/// Lists them, newest first.
///
/// # Errors
///
/// `plan_foreign`, and those of the configuration and the state.
pub async fn run(config: Option<&Path>, id: Option<&str>, output: Output) -> Result<(), Error> {
    let rewind = session::open(config)?;
    if let Some(id) = id {
        let known = rewind.plan(id).await?;
        let mut status = known
            .decision
            .as_ref()
            .map_or("nobody has decided on it".to_owned(), ToString::to_string);
        if let Some(end) = known.end {
            status = format!("{status}; it {end}");
        }
        output.result(&row(&known), |_| format!("{}\n\n{status}", shown(&known)));
        return Ok(());
    }
    let plans = rewind.plans().await?;
    let rows: Vec<Row> = plans.iter().map(row).collect();
    output.result(&rows, |rows| {
        if rows.is_empty() {
            return "No plan waits for a decision.".to_owned();
        }
        let cells = rows.iter().map(|row| {
            [
                row.plan_id.clone(),
                row.status.to_owned(),
                moment(&row.expires_at),
                row.vm.clone(),
                row.checkpoint.clone(),
                row.paths.join(", "),
            ]
        });
        table(
            ["Plan", "Status", "Until (UTC)", "VM", "Checkpoint", "What"],
            cells,
        )
    });
    Ok(())
}

fn row(known: &KnownPlan) -> Row {
    let plan = &known.plan;
    let written = |path: &String| text::exact(path, PATH_MAX_LEN);
    let (paths, destinations) = match &plan.decides {
        Decides::Preview { looks_for } => (looks_for.iter().map(written).collect(), Vec::new()),
        Decides::Effects { effects } => effects
            .iter()
            .map(|Effect::Place { source, to, .. }| {
                (written(&source.path), text::display(to, PATH_MAX_LEN))
            })
            .unzip(),
    };
    Row {
        plan_id: plan.id.clone(),
        status: status(known),
        kind: match plan.is_preview() {
            true => "preview",
            false => "effects",
        },
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
        Some(decision) if decision.verdict == Verdict::Approved => "approved",
        Some(_) => "declined",
        None if known.expired => "expired",
        None => "waiting",
    }
}
