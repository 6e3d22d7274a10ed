//! `zerto-rewind run`: guard, then run a command. For people, cron and CI.
//!
//! The exit code is the command's (128 + n where signal n ended it). Not guarded means not run, and exit code 125, which a command has
//! no reason to use; 126 and 127 are given where it cannot be executed or found, as `env` and `timeout` do.
use crate::{output, progress::Bar, session};
use rewind_core::{
    Call, Error, ErrorCode, GuardRequest, Receipt, Rewind, config::withhold_secrets, stop::Stops,
};
use std::{
    ffi::OsString,
    io,
    path::PathBuf,
    process::{ExitCode, ExitStatus},
};
use tokio::{process::Command, runtime::Runtime};
use tokio_util::sync::CancellationToken;

const NOT_RUN: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Pin a checkpoint on every VPG of a VM, then run a command.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// The VM that the command changes: its name, hostname or identifier.
    #[arg(long)]
    vm: String,
    /// What the command is about to do, for the tag.
    #[arg(long, value_name = "TEXT")]
    action: String,
    /// The change that this belongs to.
    #[arg(long, value_name = "ID")]
    change: Option<String>,
    /// Pin a second checkpoint when the command has ended, whatever its exit code.
    #[arg(long)]
    after: bool,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Takes pins. Implemented by the ZVM's facade; tests have a scripted one.
pub trait Pinner {
    /// Pins every VPG of the VM, or fails.
    ///
    /// # Errors
    ///
    /// Not every VPG was pinned.
    fn pin(
        &self,
        request: GuardRequest,
        call: &Call,
    ) -> impl Future<Output = Result<Receipt, Error>>;
}

impl Pinner for Rewind {
    async fn pin(&self, request: GuardRequest, call: &Call) -> Result<Receipt, Error> {
        self.guard(request, call).await
    }
}

/// A runtime for one guard: a single thread is enough.
pub(crate) fn runtime() -> Result<Runtime, Error> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            Error::new(
                ErrorCode::State,
                format!("no runtime could be started: {error}"),
            )
            .with_next("See that the limits of open files and processes are not reached.")
        })
}

/// Guards and runs.
#[must_use]
pub fn run(args: RunArgs, config: Option<PathBuf>) -> ExitCode {
    let opened = session::open(config.as_deref()).and_then(|rewind| {
        let stop = Stops::of(&rewind.config().state_dir);
        Ok((rewind, stop, runtime()?))
    });
    match opened {
        Ok((rewind, stop, runtime)) => {
            let code = runtime.block_on(guarded(args, &rewind, &stop));
            session::warn(&rewind);
            ExitCode::from(code)
        }
        Err(error) => ExitCode::from(not_run(&error)),
    }
}

/// As `run`, with what takes the pins and what may forbid it; returns the exit code.
pub async fn guarded(args: RunArgs, pinner: &impl Pinner, stop: &Stops) -> u8 {
    let mut signals = match signals::Signals::listen() {
        Ok(signals) => signals,
        Err(error) => {
            return not_run(&Error::new(
                ErrorCode::State,
                format!("no signals can be received: {error}"),
            ));
        }
    };
    let call = Call {
        progress: None,
        cancel: CancellationToken::new(),
        caller: session::caller(),
        session_change_id: rewind_mcp::new_change_id(),
        seat: session::caller(),
    };
    let request = |action: String, change_id: Option<String>| GuardRequest {
        vm: args.vm.clone(),
        action,
        agent: None,
        change_id,
    };
    let first = match stop.check() {
        Ok(()) => {
            let wanted = request(args.action.clone(), args.change.clone());
            pin(pinner, wanted, &call, &mut signals).await
        }
        Err(error) => Err(error),
    };
    let change = match first {
        Ok(receipt) => receipt.change_id,
        Err(error) => return not_run(&error),
    };
    let code = execute(&args.command, &mut signals).await;
    if !args.after {
        return code;
    }
    // The command is over, and what its end looks like is worth a checkpoint whatever the exit code says.
    let wanted = request(format!("after: {}", args.action), Some(change));
    let call = Call {
        cancel: CancellationToken::new(),
        ..call
    };
    match pin(pinner, wanted, &call, &mut signals).await {
        Ok(_) => code,
        Err(error) => {
            say(&format!("the checkpoint after the command failed: {error}"));
            explain(&error);
            code.max(1)
        }
    }
}

async fn pin(
    pinner: &impl Pinner,
    request: GuardRequest,
    call: &Call,
    signals: &mut signals::Signals,
) -> Result<Receipt, Error> {
    let shown = Call {
        progress: Some(Bar::new()),
        ..call.clone()
    };
    let result = wait(pinner.pin(request, &shown), &shown, signals).await;
    // The bar is gone before anything is said.
    drop(shown);
    if let Ok(receipt) = &result {
        for pin in &receipt.pins {
            say(&format!(
                "pinned VPG {} at checkpoint {}: {}",
                pin.vpg, pin.checkpoint, pin.tag
            ));
        }
    }
    result
}

/// A signal ends the waiting in good order: the guard still says what it has done.
async fn wait(
    work: impl Future<Output = Result<Receipt, Error>>,
    call: &Call,
    signals: &mut signals::Signals,
) -> Result<Receipt, Error> {
    tokio::pin!(work);
    loop {
        tokio::select! {
            result = &mut work => return result,
            _ = signals.next() => call.cancel.cancel(),
        }
    }
}

async fn execute(command: &[OsString], signals: &mut signals::Signals) -> u8 {
    let Some((program, arguments)) = command.split_first() else {
        return NOT_RUN;
    };
    let mut command = Command::new(program);
    withhold_secrets(command.as_std_mut());
    let mut child = match command.args(arguments).spawn() {
        Ok(child) => child,
        Err(error) => {
            say(&format!("{}: {error}", program.display()));
            return match error.kind() {
                io::ErrorKind::NotFound => NOT_FOUND,
                _ => NOT_EXECUTABLE,
            };
        }
    };
    let id = child.id();
    loop {
        tokio::select! {
            ended = child.wait() => return match ended {
                Ok(status) => code(status),
                Err(error) => {
                    say(&format!("the command's end cannot be awaited: {error}"));
                    1
                }
            },
            signal = signals.next() => signal.pass_on(id),
        }
    }
}

fn code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return u8::try_from(signal + 128).unwrap_or(u8::MAX);
    }
    status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(1)
}

fn not_run(error: &Error) -> u8 {
    say(&format!("not run: {error}"));
    explain(error);
    NOT_RUN
}

fn explain(error: &Error) {
    for candidate in &error.candidates {
        say(&format!("candidate: {candidate}"));
    }
    for done in &error.done {
        say(&format!("done before: {}", rewind_mcp::text::done(done)));
    }
    say(&error.next);
}

/// Standard output is the command's.
fn say(text: &str) {
    output::note(&format!("zerto-rewind: {}", output::ours(text)));
}

#[cfg(unix)]
mod signals {
    use rustix::process::{Pid, Signal, getpgrp, kill_process};
    use std::{fs::File, io};
    use tokio::signal::unix::{self, SignalKind};

    /// The signals that end a command, which must reach it and leave us to tell its exit code.
    pub(super) struct Signals {
        interrupt: unix::Signal,
        quit: unix::Signal,
        terminate: unix::Signal,
    }

    pub(super) struct Received {
        signal: Signal,
        from_keyboard: bool,
    }

    impl Signals {
        pub(super) fn listen() -> io::Result<Self> {
            Ok(Self {
                interrupt: unix::signal(SignalKind::interrupt())?,
                quit: unix::signal(SignalKind::quit())?,
                terminate: unix::signal(SignalKind::terminate())?,
            })
        }

        pub(super) async fn next(&mut self) -> Received {
            let (signal, from_keyboard) = tokio::select! {
                _ = self.interrupt.recv() => (Signal::INT, true),
                _ = self.quit.recv() => (Signal::QUIT, true),
                _ = self.terminate.recv() => (Signal::TERM, false),
            };
            Received {
                signal,
                from_keyboard,
            }
        }
    }

    impl Received {
        /// What a terminal sends, it sends to the whole foreground group, and so to the command, too. Twice would be once too often:
        /// many programs take a second Ctrl-C for "at once".
        pub(super) fn pass_on(&self, child: Option<u32>) {
            if self.from_keyboard && in_foreground() {
                return;
            }
            let pid = child
                .and_then(|id| i32::try_from(id).ok())
                .and_then(Pid::from_raw);
            if let Some(pid) = pid {
                // The command may have ended just now.
                let _ = kill_process(pid, self.signal);
            }
        }
    }

    fn in_foreground() -> bool {
        File::open("/dev/tty")
            .ok()
            .and_then(|terminal| rustix::termios::tcgetpgrp(terminal).ok())
            .is_some_and(|group| group == getpgrp())
    }
}

#[cfg(not(unix))]
mod signals {
    use std::io;

    /// Ctrl-C, which the console sends to the command, too.
    pub(super) struct Signals;

    pub(super) struct Received;

    impl Signals {
        pub(super) fn listen() -> io::Result<Self> {
            Ok(Self)
        }

        pub(super) async fn next(&mut self) -> Received {
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
            Received
        }
    }

    impl Received {
        pub(super) fn pass_on(&self, _child: Option<u32>) {}
    }
}
