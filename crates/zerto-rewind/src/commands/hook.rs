//! `zerto-rewind hook`: the guard as a hook of an agent harness.
//!
//! A harness runs the hook before a tool and after it, with an event on standard input. The catalog decides. An unlisted call gets no
//! decision at all; a listed one is guarded first; and every failure of ours denies, in the form that this harness honours, since most
//! of them run the tool when a hook fails in any other way.
mod answer;
mod claude;
mod copilot;
mod cursor;
mod docker;
mod event;
mod fields;
mod format;
mod gate;
mod gemini;
mod judge;
mod names;
mod understood;
mod watch;

pub use answer::Output;
pub use event::BUILTIN;
pub use format::Format;
pub use gate::{Caller, Gate, Pinned, Verdict};
pub(crate) use judge::{PROOF_REASON, PROOF_SERVER, PROOF_TOOL};
pub use understood::Understood;
pub use watch::answer;

use gate::CatalogGate;
use std::{io, panic, path::PathBuf, process::ExitCode, time::Duration};
use tokio_util::sync::CancellationToken;

/// Below the shortest default time-out of a harness, 30 s. `install` writes a longer one together with the harness's own.
const DEFAULT_DEADLINE: &str = "25s";

/// Decide on a harness's tool call (reads the event on standard input).
#[derive(Debug, clap::Args)]
pub struct HookArgs {
    /// Whose event it is; recognised when not given.
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Deny what is not decided within this time. Keep it below the harness's own time-out.
    #[arg(long, value_name = "TIME", default_value = DEFAULT_DEADLINE, value_parser = rewind_core::duration::parse)]
    deadline: Duration,
}

/// Runs the hook once.
#[must_use]
pub fn run(args: HookArgs, config: Option<PathBuf>) -> ExitCode {
    // What a panic says goes into the denial; standard error is read by the harness.
    panic::set_hook(Box::new(|_| {}));
    let cancel = CancellationToken::new();
    let cancelled = cancel.clone();
    watch::answer(
        io::stdin(),
        args.format,
        args.deadline,
        &cancel,
        move || CatalogGate::open(crate::session::load(config.as_deref())?, cancelled),
    )
    .say()
}
