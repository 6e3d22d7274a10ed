//! `zerto-rewind stop` and `resume`: refuse every listed call of this user, at once and until a person lifts it.
use crate::{output::Output, permit, session, wrap::prose};
use rewind_core::{
    Error, ErrorCode,
    config::{self, Config},
    stop::{Stop, StopNote, Stops},
};
use rewind_mcp::advice;
use serde::Serialize;
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Refuse every listed call from now on, in every proxy, hook, run and MCP server of this user.
#[derive(Debug, clap::Args)]
pub struct StopArgs {
    /// Why; whoever is refused reads it. A new reason replaces an earlier one
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Lift the stop.
#[derive(Debug, clap::Args)]
pub struct ResumeArgs {}

/// What is in force now, and what was before.
#[derive(Serialize)]
struct Report {
    stopped: Option<StopNote>,
    before: Option<StopNote>,
    /// It holds for all programs of this user, whatever their state folder.
    of_user: bool,
    /// The file that holds it.
    file: PathBuf,
}

/// Stops and says what is in force.
#[must_use]
pub fn stop(args: StopArgs, config: Option<PathBuf>, json: bool) -> ExitCode {
    let engage = |stop: &Stop| {
        let before = stop.in_force()?;
        let note = stop.engage(args.reason.as_deref(), &session::caller())?;
        Ok((Some(note), before))
    };
    report(named_state_dir(config.as_deref()), json, engage, |report| {
        let note = report
            .stopped
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        let again = match report.before {
            Some(_) => "It was stopped before; the time is of the first stop.\n",
            None => "",
        };
        format!(
            "{note}\n{again}{} refused until {}. Unlisted calls still pass.\n{}",
            match report.of_user {
                true => "Every listed call of this user is",
                false => "Every listed call of programs with this state folder is",
            },
            advice::complete("`zerto-rewind resume`"),
            report.file.display()
        )
    })
}

/// Lifts the stop and says what was in force.
#[must_use]
pub fn resume(_args: ResumeArgs, config: Option<PathBuf>, json: bool) -> ExitCode {
    // A person who says so means both: the state folder's stop, and the user's.
    let lift = |stop: &Stop| {
        let folder = stop.path().parent().unwrap_or(Path::new("."));
        permit::blocking(folder)?;
        let mut before = None;
        for stop in Stops::of(folder).iter() {
            before = stop.lift()?.or(before);
        }
        Ok((None, before))
    };
    report(
        state_dir(config.as_deref()),
        json,
        lift,
        |report| match &report.before {
            Some(note) => format!("resumed; it was {note}"),
            None => "not stopped: nothing to resume".to_owned(),
        },
    )
}

fn report(
    folder: Result<PathBuf, Error>,
    json: bool,
    act: impl FnOnce(&Stop) -> Result<(Option<StopNote>, Option<StopNote>), Error>,
    text: impl FnOnce(&Report) -> String,
) -> ExitCode {
    let output = Output::new(json);
    let done = folder.and_then(|folder| {
        let stop = Stop::at(&folder);
        let (stopped, before) = act(&stop)?;
        let file = stop.path().to_owned();
        Ok(Report {
            of_user: config::default_state_dir().is_some_and(|users| users == folder),
            stopped,
            before,
            file,
        })
    });
    match done {
        Ok(report) => {
            output.result(&report, |report| prose(&text(report)));
            ExitCode::SUCCESS
        }
        Err(error) => ExitCode::from(output.error(&error)),
    }
}

/// Of the configuration that is named; else the user's own, which holds for every configuration and waits for none to be read.
pub(super) fn named_state_dir(config: Option<&Path>) -> Result<PathBuf, Error> {
    match Config::named(config) {
        Some(file) => Ok(Config::state_dir_of(&file)?),
        None => of_user(),
    }
}

/// Of the configuration that is named or found; else the user's own.
pub(super) fn state_dir(config: Option<&Path>) -> Result<PathBuf, Error> {
    match Config::locate(config) {
        Ok(file) => Ok(Config::state_dir_of(&file)?),
        Err(_) => of_user(),
    }
}

/// The platform's state folder.
fn of_user() -> Result<PathBuf, Error> {
    config::default_state_dir().ok_or_else(|| {
        let why = "no configuration file is named, and this user has no home folder";
        Error::new(ErrorCode::Configuration, why).with_next("Name one: --config FILE.")
    })
}
