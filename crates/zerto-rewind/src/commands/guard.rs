//! `guard`: pins on every VPG that protects a VM.
use std::path::Path;

use owo_colors::OwoColorize as _;
use rewind_core::{Error, GuardRequest, Receipt, text};

use crate::{
    cli,
    interrupt::Interrupt,
    output::{self, Output},
    session::Session,
    table::{moment, table},
    wrap::prose,
};

pub async fn run(
    config: Option<&Path>,
    arguments: cli::Guard,
    output: Output,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let session = Session::open(config, interrupt)?;
    if let Err(error) = session.rewind().catalog().await {
        output::warning(&format!(
            "the catalog can't be used: {}\nThis guard does not need it, but an agent's tool calls are refused until it is mended.",
            error.message
        ));
    }
    let request = GuardRequest {
        vm: arguments.vm,
        action: arguments.action,
        agent: arguments.agent,
        change_id: arguments.change,
    };
    let receipt = session
        // Who pins is about to make a change, or lets a script make it.
        .run(async |rewind, call| rewind.guard_unless_stopped(request.clone(), &call).await)
        .await?;
    output.result(&receipt, show);
    Ok(())
}

/// A receipt for a person.
fn show(receipt: &Receipt) -> String {
    let rows = receipt.pins.iter().map(|pin| {
        let until = pin
            .expected_until
            .as_deref()
            .map_or_else(|| "?".into(), moment);
        [
            pin.checkpoint.clone(),
            moment(&pin.time),
            until,
            pin.vpg.clone(),
        ]
    });
    let headings = ["Checkpoint", "Time (UTC)", "Until (UTC, estimate)", "VPG"];
    let tag = text::one_line(&receipt.tag);
    let change = text::one_line(&receipt.change_id);
    format!(
        "{} {} in {:.1} s. The change may be made.\n\n{}\n\n{}\n\n{}",
        "Guarded".green().bold(),
        text::one_line(&receipt.vm).bold(),
        receipt.seconds,
        prose(&format!("Tag        {tag}\nChange id  {change}")),
        table(headings, rows),
        prose(&receipt.note).dimmed()
    )
}
