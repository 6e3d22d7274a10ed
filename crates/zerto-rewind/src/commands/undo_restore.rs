//! `undo-restore`: what a restore has replaced in a guest, put back after the person at the terminal has agreed.
use std::path::Path;

use owo_colors::OwoColorize as _;
use rewind_core::{Error, ErrorCode, guest::Undone, text};

use super::recover::Desk;
use crate::{
    cli,
    interrupt::Interrupt,
    output::{self, Output},
    session::Session,
    wrap::{beside, hanging, prose},
};

pub async fn run(
    config: Option<&Path>,
    arguments: cli::UndoRestore,
    output: Output,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let session = Session::open(config, interrupt)?;
    // Nobody is asked about what can't be.
    session.rewind().may_be_undone(&arguments.id).await?;
    let mut desk = Desk::for_what("nothing was undone", arguments.yes, interrupt);
    desk.is_there()?;
    let plan = session
        .run(async |rewind, call| rewind.plan_undo(&arguments.id, &call).await)
        .await?;
    for note in &plan.notes {
        output::note(&hanging(&output::lines(note), ""));
    }
    output::note(&hanging(&output::lines(&plan.summary), ""));
    if !desk.agrees(&session, "Undo this restore?").await? {
        return Err(
            Error::new(ErrorCode::Declined, "nothing was undone: you did not agree")
                .with_next("Run it again to be asked again."),
        );
    }
    let undone = session
        .run(async |rewind, call| rewind.undo_restore(&plan, &call).await)
        .await?;
    output.result(&undone, show);
    Ok(())
}

/// What was put back, for a person.
fn show(undone: &Undone) -> String {
    let file = &undone.file;
    let mut lines = vec![
        beside(
            &"Undone".green().bold().to_string(),
            &text::path(&file.path).bold().to_string(),
        ),
        prose(&format!("  on {}", output::lines(&undone.vm))),
        beside(
            &format!("  {}, SHA-256", text::bytes(file.bytes)),
            &file.sha256,
        ),
    ];
    lines.extend(
        file.kept
            .iter()
            .map(|kept| beside("  kept:", &text::path(kept))),
    );
    let tag = output::lines(&undone.guard.tag);
    lines.push(prose(&format!("  guarded first: {tag}")));
    let notes = undone.notes.iter().chain(&file.notes);
    lines.extend(notes.map(|note| prose(&output::ours(note))));
    lines.join("\n")
}
