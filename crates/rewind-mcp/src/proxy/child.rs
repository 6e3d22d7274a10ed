//! The server as a child process.
use std::{
    ffi::OsString,
    io::{self, PipeReader, PipeWriter},
    process::ExitStatus,
};

use rewind_core::config::withhold_secrets;
use tokio::process::Command;

/// A running server, with the two ends of its pipes. Its standard error is ours.
pub struct Child {
    process: tokio::process::Child,
}

/// A server that could not be started.
#[derive(Debug, thiserror::Error)]
#[error("{} could not be started: {source}", program.display())]
pub struct NotStarted {
    program: OsString,
    source: io::Error,
}

impl NotStarted {
    /// The exit code that shells have for it: 127 where there is no such program, else 126.
    pub fn exit_code(&self) -> u8 {
        if self.source.kind() == io::ErrorKind::NotFound {
            127
        } else {
            126
        }
    }
}

impl Child {
    /// Starts a server. It ends with its `Child` at the latest.
    ///
    /// # Errors
    /// Where the program can't be started.
    pub fn start(
        program: OsString,
        arguments: Vec<OsString>,
    ) -> Result<(Self, PipeWriter, PipeReader), NotStarted> {
        let start = || -> io::Result<_> {
            // Pipes of our own, as blocking ones: the relay's threads read and write them without a reactor between.
            let (its_stdin, stdin) = io::pipe()?;
            let (stdout, its_stdout) = io::pipe()?;
            let mut command = Command::new(&program);
            withhold_secrets(command.as_std_mut());
            let process = command
                .args(arguments)
                .stdin(its_stdin)
                .stdout(its_stdout)
                .kill_on_drop(true)
                .spawn()?;
            Ok((Self { process }, stdin, stdout))
        };
        start().map_err(|source| NotStarted { program, source })
    }

    /// Waits until it has ended. Its exit code, or 128 and the number of the signal that ended it.
    ///
    /// # Errors
    /// Those of the system.
    pub async fn ended(&mut self) -> io::Result<u8> {
        self.process.wait().await.map(exit_code)
    }

    /// Asks it to end.
    #[cfg(unix)]
    pub fn signal(&self, signal: rustix::process::Signal) {
        let id = self
            .process
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(rustix::process::Pid::from_raw);
        if let Some(id) = id
            && let Err(error) = rustix::process::kill_process(id, signal)
        {
            tracing::debug!(%error, "the server was not signalled");
        }
    }

    /// Ends it.
    pub fn kill(&mut self) {
        if let Err(error) = self.process.start_kill() {
            tracing::debug!(%error, "the server was not killed");
        }
    }
}

fn exit_code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return u8::try_from(128 + signal).unwrap_or(u8::MAX);
    }
    status
        .code()
        .map_or(1, |code| u8::try_from(code).unwrap_or(1))
}
