//! What is answered, and in which bytes.
use super::{Format, claude, copilot, cursor, docker, gemini};
use rewind_core::text;
use rewind_mcp::advice;
use serde_json::Value;
use std::{
    io::{self, Write},
    process::ExitCode,
};

/// Harnesses cap what they read from a hook; ten thousand characters is the smallest cap that is known.
const MAX_TEXT: usize = 4_000;

/// What is said about a call.
#[derive(Debug)]
pub(super) enum Answer {
    /// Nothing: the harness does what it would do without us.
    Neutral,
    /// It may run, as far as we are concerned; the note says what was pinned.
    Guarded(String),
    /// It must not run, for this reason.
    Deny(String),
}

impl Answer {
    /// A denial with a reason that is one bounded line and never empty.
    pub fn deny(reason: &str) -> Self {
        let reason = text::sentence(&one_line(&advice::complete(reason)));
        // A stop says by itself whose it is.
        if reason.starts_with("zerto-rewind ") {
            return Self::Deny(reason);
        }
        Self::Deny(format!("zerto-rewind: {reason}"))
    }

    /// The answer of this harness's form. `event` is the name of its event, empty where it has none or could not be read.
    pub fn output(&self, format: Option<Format>, event: &str) -> Output {
        match format {
            Some(Format::Claude | Format::Codex) => claude::answer(event, self),
            Some(Format::Gemini) => gemini::answer(self),
            Some(Format::Cursor) => cursor::answer(self),
            Some(Format::Copilot) => copilot::answer(self),
            Some(Format::Docker) => docker::answer(self),
            None => match self {
                // Exit 2 with a reason on standard error is what most of them honour.
                Self::Deny(reason) => Output::silent().and_exit_2(reason),
                Self::Neutral | Self::Guarded(_) => Output::silent(),
            },
        }
    }
}

/// One readable line of bounded length.
pub(super) fn one_line(line: &str) -> String {
    text::display(line, MAX_TEXT)
}

/// Lines as sentences of one line.
pub(super) fn sentences(lines: &str) -> String {
    let lines: Vec<String> = lines.lines().map(text::sentence).collect();
    lines.join(" ")
}

/// The whole of what a hook tells its harness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The exit code.
    pub code: u8,
}

impl Output {
    pub(super) fn silent() -> Self {
        Self {
            stdout: String::new(),
            stderr: String::new(),
            code: 0,
        }
    }

    pub(super) fn json(value: &Value) -> Self {
        Self {
            stdout: format!("{value}\n"),
            ..Self::silent()
        }
    }

    /// The second channel of a denial.
    pub(super) fn and_exit_2(self, reason: &str) -> Self {
        Self {
            stderr: format!("{reason}\n"),
            code: 2,
            ..self
        }
    }

    /// Says it. What cannot be said has to block all the same: exit 2.
    pub(super) fn say(&self) -> ExitCode {
        let said = write_all(io::stdout(), &self.stdout);
        let explained = write_all(io::stderr(), &self.stderr);
        if said.is_err() || (self.code != 0 && explained.is_err()) {
            return ExitCode::from(2);
        }
        ExitCode::from(self.code)
    }
}

fn write_all(mut to: impl Write, text: &str) -> io::Result<()> {
    to.write_all(text.as_bytes())?;
    to.flush()
}
