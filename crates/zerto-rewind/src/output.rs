//! What a command prints: its result on stdout, its error on stderr; with `--json`, both on stdout.
use std::{
    fmt::Write as _,
    io::{self, IsTerminal as _, Write as _},
    sync::atomic::{AtomicBool, Ordering},
};

use owo_colors::OwoColorize as _;
use rewind_core::{Error, ErrorCode, text};
use rewind_mcp::advice;
use serde::Serialize;
use serde_json::json;

use crate::{person, wrap::hanging};

/// Where results and errors go.
#[derive(Clone, Copy)]
pub struct Output {
    json: bool,
}

impl Output {
    /// For people, or as JSON for scripts.
    pub fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether it is for scripts.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// A command's result: itself as JSON, or as `text` puts it.
    pub fn result<T: Serialize>(&self, result: &T, text: impl FnOnce(&T) -> String) {
        if self.json {
            print(&to_json(result));
        } else {
            print(&text(result));
        }
    }

    /// A command's end with an error, and the exit code for it.
    pub fn error(&self, error: &Error) -> u8 {
        let error = advice::completed(&person::told(error));
        if self.json {
            print(&to_json(&json!({ "error": error })));
        } else {
            note(&describe(&error));
        }
        error.code.exit_code()
    }
}

/// Whether something that was to be read could not be written.
static LOST: AtomicBool = AtomicBool::new(false);

/// A question stands on the terminal's last line, and nobody has ended that.
static ASKED: AtomicBool = AtomicBool::new(false);

/// Writes a question to stderr, and stays on its line.
pub fn ask(question: &str) -> io::Result<()> {
    let mut out = anstream::stderr();
    write!(out, "{question} ")?;
    out.flush()?;
    ASKED.store(true, Ordering::Relaxed);
    Ok(())
}

/// The answer has ended the question's line.
pub fn answered() {
    ASKED.store(false, Ordering::Relaxed);
}

/// What is said next has a line of its own, also after a question that was not answered (Ctrl-C, Ctrl-D).
fn leave_question() {
    if ASKED.swap(false, Ordering::Relaxed)
        && let Err(error) = writeln!(anstream::stderr())
    {
        tracing::debug!(%error, "stderr is closed");
    }
}

/// To stdout. Styles go where they are wanted: not into pipes, and not against `NO_COLOR`. A reader that has gone
/// (`| head`) is no error.
pub fn print(text: &str) {
    leave_question();
    let mut out = anstream::stdout().lock();
    match writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            tracing::debug!(%error, "stdout is closed");
        }
        Err(error) => {
            LOST.store(true, Ordering::Relaxed);
            note(&format!("error: the result can't be written: {error}"));
        }
        Ok(()) => {}
    }
}

/// The exit code, which is 1 instead of 0 where a result could not be written.
pub fn exit_code(code: u8) -> u8 {
    match code {
        0 if LOST.load(Ordering::Relaxed) => 1,
        code => code,
    }
}

/// To stderr.
pub fn note(text: &str) {
    leave_question();
    let mut out = anstream::stderr().lock();
    if let Err(error) = writeln!(out, "{}", text.trim_end()) {
        tracing::debug!(%error, "stderr is closed");
    }
}

/// Something that is no error, and that a person should know; to stderr.
pub fn warning(text: &str) {
    note(&headed(
        "warning",
        &"warning".yellow().bold().to_string(),
        text,
    ));
}

/// An error for a person: what happened, what was done, what to do next.
fn describe(error: &Error) -> String {
    let mut text = String::new();
    let code = error.code.as_str();
    let what = match error.code {
        ErrorCode::Cancelled => format!("interrupted[{code}]"),
        _ => format!("error[{code}]"),
    };
    let styled = match error.code {
        ErrorCode::Cancelled => what.yellow().bold().to_string(),
        _ => what.red().bold().to_string(),
    };
    let _ = writeln!(text, "{}", headed(&what, &styled, &error.message));
    section(
        &mut text,
        "candidates",
        error.candidates.iter().map(|candidate| lines(candidate)),
    );
    section(
        &mut text,
        "done before",
        error
            .done
            .iter()
            .map(|done| lines(&rewind_mcp::text::done(done))),
    );
    let next = headed("next", &"next".bold().to_string(), &error.next);
    let _ = writeln!(text, "{next}");
    text
}

/// `text` after its heading. A screen would break it in the middle of words; elsewhere its lines stay as they are.
fn headed(heading: &str, styled: &str, text: &str) -> String {
    let plain = format!("{heading}: {}", ours(text));
    let shown = match io::stderr().is_terminal() {
        true => hanging(&plain, ""),
        false => plain,
    };
    // Styles have no width, so they come last.
    shown.replacen(heading, styled, 1)
}

fn section(text: &mut String, heading: &str, items: impl Iterator<Item = String>) {
    let mut items = items.peekable();
    if items.peek().is_some() {
        let _ = writeln!(text, "{}:", heading.bold());
    }
    for item in items {
        let _ = writeln!(text, "  - {item}");
    }
}

/// Text from outside, cleaned line by line: nothing in it reaches the terminal but what can be read. Its spaces stay, so
/// that what is aligned stays aligned.
pub fn lines(text: &str) -> String {
    let line = |line: &str| {
        let words: Vec<_> = line.split(' ').map(text::one_line).collect();
        words.join(" ").trim_end().to_owned()
    };
    let lines: Vec<_> = text.lines().map(line).collect();
    lines.join("\n")
}

/// One line of JSON to stdout, which can't steer a terminal either.
pub fn print_line(value: &serde_json::Value) {
    print(&safe(&value.to_string()));
}

/// A text of ours as it is shown: with the commands that it names as they have to be typed here, and cleaned.
pub fn ours(text: &str) -> String {
    lines(&advice::complete(text))
}

/// Pretty JSON whose strings can't steer a terminal: what `text` would clean away is written as an escape instead,
/// so that the value stays the same.
fn to_json(value: &impl Serialize) -> String {
    // Results are plain data with string keys: they always serialise.
    safe(&serde_json::to_string_pretty(value).unwrap_or_default())
}

fn safe(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n'
            || c == ' '
            || c.is_ascii_graphic()
            || text::one_line(c.encode_utf8(&mut [0; 4])).contains(c)
        {
            safe.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_spaces_and_nothing_that_steers() {
        assert_eq!(
            lines("  VM      a\u{1b}[31mb\n\u{202e}tag  c\r\n"),
            "  VM      a [31mb\ntag  c"
        );
    }

    #[test]
    fn json_keeps_the_value_and_cannot_steer_a_terminal() {
        let value = json!({ "name": "caf\u{e9} \u{202e}\u{9b}31m\u{1b}[0m\u{7f} \u{e0041} 日本" });
        let printed = to_json(&value);
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&printed).unwrap(),
            value
        );
        assert!(
            printed.contains("café") && printed.contains("日本"),
            "{printed}"
        );
        for c in ['\u{202e}', '\u{9b}', '\u{1b}', '\u{7f}', '\u{e0041}'] {
            assert!(!printed.contains(c), "{c:?} in {printed:?}");
        }
    }
}
