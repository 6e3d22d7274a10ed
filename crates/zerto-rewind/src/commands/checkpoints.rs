//! `checkpoints`: the tagged checkpoints of a VM, newest first.
use std::path::Path;

use owo_colors::OwoColorize as _;
use rewind_core::{CheckpointList, Error, ListedCheckpoint, text};

use crate::{
    cli,
    interrupt::Interrupt,
    output::Output,
    session::Session,
    table::{is_drawn, moment, table},
    wrap::prose,
};

pub async fn run(
    config: Option<&Path>,
    arguments: cli::Checkpoints,
    output: Output,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let session = Session::open(config, interrupt)?;
    let limit = arguments
        .limit
        .and_then(|limit| usize::try_from(limit).ok());
    let list = session
        .run(async |rewind, call| {
            rewind
                .checkpoints(&arguments.vm, arguments.since, limit, &call)
                .await
        })
        .await?;
    output.result(&list, show);
    Ok(())
}

fn show(list: &CheckpointList) -> String {
    let vm = text::one_line(&list.vm);
    let since = moment(&list.since);
    if list.checkpoints.is_empty() {
        return format!(
            "{} has no tagged checkpoint since {since} (UTC).",
            vm.bold()
        );
    }
    let table = if is_drawn() {
        table(
            ["Checkpoint", "Time (UTC)", "VPG", "Tag"],
            list.checkpoints.iter().map(narrow),
        )
    } else {
        let headings = [
            "Checkpoint",
            "Time (UTC)",
            "VPG",
            "Until (UTC, estimate)",
            "Tag",
            "Ledger",
        ];
        table(headings, list.checkpoints.iter().map(wide))
    };
    let more = if list.truncated {
        "\nThere may be more: raise --limit."
    } else {
        ""
    };
    format!(
        "{} since {since} (UTC)\n\n{table}\n{more}\n{}",
        vm.bold(),
        prose(&list.note).dimmed()
    )
}

/// For a screen: what gives way is the tag.
fn narrow(checkpoint: &ListedCheckpoint) -> [String; 4] {
    let [id, time, vpg, until, tag, record] = wide(checkpoint);
    let record = match &*record {
        "" => record,
        known => format!("\n{known}"),
    };
    let tag = format!("{tag}\nuntil {until} (estimate){record}");
    [id, time, vpg, tag]
}

fn wide(checkpoint: &ListedCheckpoint) -> [String; 6] {
    let until = checkpoint
        .expected_until
        .as_deref()
        .map_or_else(|| "?".into(), moment);
    [
        checkpoint.checkpoint.clone(),
        moment(&checkpoint.time),
        checkpoint.vpg.clone(),
        until,
        checkpoint.tag.clone(),
        // The last one is not padded, and this one may be long or empty.
        rewind_mcp::text::record(checkpoint),
    ]
}
