//! `diff`: what changed between a checkpoint and now, after the person at the terminal has agreed to look.
use std::path::Path;

use owo_colors::OwoColorize as _;
use rewind_core::{DiffRequest, Error, FileDiff};

use super::recover::Desk;
use crate::{
    cli,
    interrupt::Interrupt,
    output::{self, Output},
    session::Session,
};

pub async fn run(
    config: Option<&Path>,
    arguments: cli::Diff,
    output: Output,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let session = Session::open(config, interrupt)?;
    let request = DiffRequest {
        vm: arguments.vm,
        path: arguments.path,
        checkpoint: arguments.at,
        vpg: arguments.vpg,
    };
    let plan = session
        .run(async |rewind, call| rewind.plan_diff(&request, &call).await)
        .await?;
    if let Some(known) = plan
        && !known.approved()?
    {
        Desk::new(arguments.yes, interrupt)
            .decide(&session, &known)
            .await?;
    }
    let diff = session
        .run(async |rewind, call| rewind.diff(&request, &call).await)
        .await?;
    output.result(&diff, show);
    still_open(&diff);
    Ok(())
}

/// Says so where the checkpoint could not be unmounted.
pub(super) fn still_open(diff: &FileDiff) {
    if let Some(open) = &diff.still_open {
        output::warning(&format!("{open}\n{}", open.next));
    }
}

/// As the tool says it, with the diff's colours.
pub(super) fn show(diff: &FileDiff) -> String {
    let text = rewind_mcp::text::diff(diff);
    let lines: Vec<String> = text
        .lines()
        .map(|line| match line.as_bytes().first() {
            Some(b'+') if diff.unified.is_some() => line.green().to_string(),
            Some(b'-') if diff.unified.is_some() && !line.starts_with("- ") => {
                line.red().to_string()
            }
            Some(b'@') => line.cyan().to_string(),
            _ => line.to_owned(),
        })
        .collect();
    lines.join("\n")
}
