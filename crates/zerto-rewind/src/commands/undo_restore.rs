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
    wrap::hanging,
};

const PATH_MAX_LEN: usize = 4096;

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
    let shown = |path: &str| text::exact(path, PATH_MAX_LEN);
    let file = &undone.file;
    let kept = match &file.kept {
        Some(kept) => format!("\n  kept: {}", shown(kept)),
        None => String::new(),
    };
    let notes: String = undone
        .notes
        .iter()
        .chain(&file.notes)
        .map(|note| format!("{}\n", output::lines(note)))
        .collect();
    format!(
        "{} {}\n  on {}\n  {} bytes, SHA-256 {}{kept}\n  guarded first: {}\n{notes}",
        "Undone".green().bold(),
        shown(&file.path).bold(),
        output::lines(&undone.vm),
        file.bytes,
        file.sha256,
        output::lines(&undone.guard.tag),
    )
}
