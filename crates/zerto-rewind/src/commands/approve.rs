//! `approve` and `deny`: a person decides on a plan of an agent's. The decision is only written down; who carries the plan out is
//! another matter.
use std::path::Path;

use owo_colors::OwoColorize as _;
use rewind_core::{Decision, Error, ErrorCode, How, KnownPlan, Verdict};
use serde::Serialize;

use crate::{
    interrupt::Interrupt,
    output,
    output::{Output, ours},
    permit, session, terminal,
    wrap::{fitting, prose},
};

/// What was decided.
#[derive(Serialize)]
struct Report {
    plan_id: String,
    digest: String,
    #[serde(flatten)]
    decision: Decision,
}

/// Shows the plan, asks, and writes the answer down.
///
/// # Errors
///
/// `confirmation_required` without a terminal, `declined`, `passphrase_refused`, `plan_foreign`, `plan_expired`, `plan_decided`,
/// `plan_used`, and those of the configuration and the state.
pub async fn approve(
    config: Option<&Path>,
    id: &str,
    output: Output,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let rewind = session::open(config)?;
    let known = session::telling(&rewind, rewind.plan(id)).await?;
    if known.approved()? {
        return Err(decided(&known));
    }
    show(&known);
    if !terminal::is_there() {
        return Err(Error::new(
            ErrorCode::ConfirmationRequired,
            "a person has to agree to this at a terminal (stdin and stderr); nothing was decided",
        )
        .with_next("Run the command in a terminal, and read there what it is about.")
        .with_plan(&known.plan.id));
    }
    permit::may_be_tried(&rewind.config().state_dir)?;
    let agrees = tokio::select! {
        agrees = terminal::agrees("Approve this?") => agrees,
        () = interrupt.token().cancelled_owned() => return Err(undecided()),
    };
    if !agrees {
        return Err(Error::new(
            ErrorCode::Declined,
            "you did not agree; nothing was decided",
        )
        .with_next(format!(
            "To say no for good: `zerto-rewind deny {}`. Else the plan expires by itself.",
            known.plan.id
        )));
    }
    permit::passphrase_until(&rewind.config().state_dir, interrupt).await?;
    let decision = rewind
        .decide(&known, Verdict::Approved, How::Approve, &session::caller())
        .await?;
    report(output, &known, decision, |known| {
        let id = &known.plan.id;
        let what = match (known.plan.is_comparison(), known.plan.is_preview()) {
            (true, _) => {
                "The agent may compare with this checkpoint now, for ten minutes.".to_owned()
            }
            (_, true) => {
                "The agent may look into the checkpoint now; what it finds is asked about again."
                    .to_owned()
            }
            _ => ours(&format!(
                "The agent can carry it out now, or you: `zerto-rewind recover --plan {id}`. Once, until {:.0}.",
                known.plan.expires_at
            )),
        };
        format!("{} {id}\n{}", "Approved".green().bold(), prose(&what))
    });
    Ok(())
}

/// Writes down a no. It needs no terminal: nothing happens by it.
///
/// # Errors
///
/// `plan_foreign`, `plan_expired`, `plan_decided`, `plan_used`, and those of the configuration and the state.
pub async fn deny(config: Option<&Path>, id: &str, output: Output) -> Result<(), Error> {
    let rewind = session::open(config)?;
    let known = session::telling(&rewind, rewind.plan(id)).await?;
    let decision = rewind
        .decide(&known, Verdict::Declined, How::Approve, &session::caller())
        .await?;
    report(output, &known, decision, |known| {
        format!("{} {}, for good", "Denied".yellow().bold(), known.plan.id)
    });
    Ok(())
}

/// The plan, as it is shown to whoever decides on it.
pub fn show(known: &KnownPlan) {
    output::note(&shown(known));
}

/// The plan as text for a terminal.
pub fn shown(known: &KnownPlan) -> String {
    fitting(&output::lines(&known.plan.summary(&known.digest)))
}

fn report(
    output: Output,
    known: &KnownPlan,
    decision: Decision,
    text: impl FnOnce(&KnownPlan) -> String,
) {
    let report = Report {
        plan_id: known.plan.id.clone(),
        digest: known.digest.clone(),
        decision,
    };
    output.result(&report, |_| text(known));
}

fn decided(known: &KnownPlan) -> Error {
    let decision = known.decision.as_ref().map(ToString::to_string);
    Error::new(
        ErrorCode::PlanDecided,
        format!(
            "plan {} was decided already: {}",
            known.plan.id,
            decision.unwrap_or_default()
        ),
    )
    .with_next(match known.plan.is_preview() {
        true => "Nothing has to be done: the agent may look already.".to_owned(),
        false => format!(
            "Nothing has to be done: it waits to be carried out, by the agent, or by you: `zerto-rewind recover --plan {}`.",
            known.plan.id
        ),
    })
}

fn undecided() -> Error {
    Error::new(ErrorCode::Cancelled, "the plan was not decided on")
        .with_next("Run it again; the plan expires by itself.")
}
