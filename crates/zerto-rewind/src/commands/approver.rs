//! `approver`: the passphrase that is asked for wherever a person's word counts.
use std::path::{Path, PathBuf};

use rewind_core::{Error, ErrorCode, approver, config};
use secrecy::ExposeSecret as _;
use serde::Serialize;

use super::stop::named_state_dir;
use crate::{cli, interrupt::Interrupt, output::Output, permit, session, terminal};

/// What holds now.
#[derive(Serialize)]
struct Report {
    /// Whether one is asked for, by this state folder's own setting or the user's.
    set: bool,
    /// It was set for all programs of this user, whatever their state folder.
    of_user: bool,
    state_dir: PathBuf,
}

/// Sets or removes it. Where one is set, it is asked for first.
///
/// # Errors
///
/// `confirmation_required` without a terminal, `passphrase_refused`, `invalid_argument`, `declined`, and those of the state.
pub async fn run(
    config: Option<&Path>,
    command: &cli::Approver,
    output: Output,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let folder = named_state_dir(config)?;
    if !terminal::is_there() {
        return Err(Error::new(
            ErrorCode::ConfirmationRequired,
            "the passphrase is typed at a terminal, and there is none here (stdin and stderr)",
        )
        .with_next("Run the command in a terminal."));
    }
    permit::passphrase_until(&folder, interrupt).await?;
    let approver = approver::Approver::of(&folder);
    match command {
        cli::Approver::Remove => approver.remove(&session::caller())?,
        cli::Approver::Set => {
            let new = tokio::select! {
                new = new_passphrase() => new?,
                () = interrupt.token().cancelled_owned() => {
                    return Err(Error::new(ErrorCode::Cancelled, "the passphrase is as it was"));
                }
            };
            approver.set(&new, &session::caller())?;
        }
    }
    let report = Report {
        set: approver.is_set()?,
        of_user: config::default_state_dir().is_some_and(|users| users == folder),
        state_dir: folder,
    };
    output.result(&report, show);
    Ok(())
}

async fn new_passphrase() -> Result<secrecy::SecretString, Error> {
    let new = typed("New passphrase:").await?;
    let again = typed("Once more:").await?;
    if new.expose_secret() != again.expose_secret() {
        return Err(Error::new(
            ErrorCode::InvalidArgument,
            "the two are not the same; the passphrase is as it was",
        )
        .with_next("Run it again."));
    }
    Ok(new)
}

async fn typed(question: &str) -> Result<secrecy::SecretString, Error> {
    let problem = match terminal::secret(question).await {
        Some(Ok(typed)) => return Ok(typed),
        Some(Err(problem)) => format!("what was typed {problem}"),
        None => "no passphrase was typed".to_owned(),
    };
    Err(Error::new(
        ErrorCode::Declined,
        format!("{problem}; the passphrase is as it was"),
    ))
}

fn show(report: &Report) -> String {
    let what = match (report.set, report.of_user) {
        (true, true) => "The approver's passphrase is asked for, in all programs of this user.",
        (true, false) => {
            "The approver's passphrase is asked for, in programs with this state folder."
        }
        (false, _) => "No passphrase is asked for.",
    };
    format!("{what}\n{}", report.state_dir.display())
}
