//! `recover`: a file or folder out of a checkpoint, after the person at the terminal has agreed.
use std::path::Path;

use owo_colors::OwoColorize as _;
use rewind_core::{Destination, Error, ErrorCode, RecoverRequest, Recovery, text};

use crate::{
    cli,
    interrupt::Interrupt,
    output::{self, Output},
    session::Session,
    table::moment,
    terminal,
    wrap::hanging,
};

/// More files than these are counted, not listed.
const FILES_SHOWN: usize = 20;

pub async fn run(
    config: Option<&Path>,
    arguments: cli::Recover,
    output: Output,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    if !terminal::is_there() {
        return Err(no_terminal(arguments.yes));
    }
    let session = Session::open(config, interrupt)?;
    let mut request = RecoverRequest {
        vm: arguments.vm,
        path: arguments.path,
        checkpoint: arguments.at,
        vpg: arguments.vpg,
        destination: match arguments.to {
            Some(folder) => Destination::Folder(folder),
            None => Destination::InRecoverDir(None),
        },
        confirmed: false,
    };
    let plan = session
        .run(async |rewind, call| rewind.plan_recovery(&request, &call).await)
        .await?;
    output::note(&hanging(&output::lines(&plan.summary), ""));
    if !arguments.yes && !agrees(interrupt).await? {
        return Err(Error::new(
            ErrorCode::Declined,
            "nothing was recovered: you did not agree",
        )
        .with_next("Run it again to be asked again."));
    }
    // Exactly what was agreed to, whatever the journal has by now.
    request.checkpoint = plan.checkpoint;
    request.vpg = Some(plan.vpg_identifier);
    request.confirmed = true;
    let recovery = session
        .run(async |rewind, call| rewind.recover(request.clone(), &call).await)
        .await?;
    output.result(&recovery, show);
    if let Some(open) = &recovery.still_open {
        let warning = "warning".yellow().bold().to_string();
        output::note(&format!("{warning}: {}", output::lines(&open.to_string())));
        output::note(&format!("{}: {}", "next".bold(), output::ours(&open.next)));
    }
    Ok(())
}

fn no_terminal(yes: bool) -> Error {
    let why = if yes {
        "`--yes` says that a person has agreed, and"
    } else {
        "a person has to agree, and"
    };
    Error::new(
        ErrorCode::ConfirmationRequired,
        format!("nothing was mounted: {why} there is no terminal here (stdin and stderr)"),
    )
    .with_next("Run the command in a terminal, and read there what it is going to do.")
}

async fn agrees(interrupt: &Interrupt) -> Result<bool, Error> {
    tokio::select! {
        agrees = terminal::agrees("Recover this?") => Ok(agrees),
        () = interrupt.token().cancelled_owned() => Err(Error::new(ErrorCode::Cancelled, "nothing was mounted")),
    }
}

/// What was recovered, for a person. The digests are as `sha256sum` prints them.
fn show(recovery: &Recovery) -> String {
    let files = recovery.files.iter().take(FILES_SHOWN);
    let files: String = files
        .map(|file| format!("{}  {}\n", file.sha256, text::one_line(&file.path)))
        .collect();
    let more = match recovery.files.len().saturating_sub(FILES_SHOWN) {
        0 => String::new(),
        more => format!("… and {more} more files\n"),
    };
    let left_out = recovery.skipped.iter().take(FILES_SHOWN);
    let more_left_out = match recovery.skipped.len().saturating_sub(FILES_SHOWN) {
        0 => None,
        more => Some(format!("… and {more} more left out")),
    };
    let notes: String = left_out
        .map(|skipped| format!("left out: {skipped}"))
        .chain(more_left_out)
        .chain(recovery.notes.iter().cloned())
        .map(|note| format!("{}\n", output::lines(&note)))
        .collect();
    let timing = &recovery.timing;
    format!(
        "{} {}\n  of {}, checkpoint {} of VPG {}, {} (UTC)\n  {} bytes, to {}\n\n{files}{more}{notes}\n{}",
        "Recovered".green().bold(),
        output::lines(&recovery.guest_path).bold(),
        output::lines(&recovery.vm),
        recovery.checkpoint,
        output::lines(&recovery.vpg),
        moment(&recovery.checkpoint_time),
        recovery.bytes,
        output::lines(&recovery.local_path).bold(),
        format!(
            "find {:.1} s, mount {:.1} s, resolve {:.1} s, download {:.1} s, unmount {:.1} s: {:.1} s in all",
            timing.find, timing.mount, timing.resolve, timing.download, timing.unmount, timing.total
        )
        .dimmed()
    )
}
