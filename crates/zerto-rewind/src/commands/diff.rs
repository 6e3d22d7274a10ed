//! `diff`: what changed between a checkpoint and now, after the person at the terminal has agreed to look.
use std::path::Path;

use owo_colors::OwoColorize as _;
use rewind_core::{DiffRequest, Error, FileDiff};

use super::recover::{Desk, still_open};
use crate::{cli, interrupt::Interrupt, output::Output, session::Session, wrap::prose};

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
    if output.is_json() {
        still_open(diff.still_open.as_ref());
    }
    Ok(())
}

/// As the tool says it, with the diff's colours. Its lines stay as long as they are.
pub(super) fn show(diff: &FileDiff) -> String {
    let text = rewind_mcp::text::diff(diff);
    let unified = diff.unified.as_deref().map_or("", str::trim_end);
    let said = match (unified, text.strip_suffix(unified)) {
        ("", _) | (_, None) => return prose(&text),
        (_, Some(said)) => prose(said.trim_end()),
    };
    let coloured = unified.lines().map(|line| match line.as_bytes().first() {
        Some(b'+') => line.green().to_string(),
        Some(b'-') => line.red().to_string(),
        Some(b'@') => line.cyan().to_string(),
        _ => line.to_owned(),
    });
    format!("{said}\n\n{}", coloured.collect::<Vec<_>>().join("\n"))
}
