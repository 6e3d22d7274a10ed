//! The commands that an advice names, as they have to be typed: by the configuration that this one was given with `--config`.
//!
//! Without it they would look at another ZVM, where there is a default configuration. The texts themselves are made where nothing is
//! known of a command line.
use std::{borrow::Cow, path::Path, sync::OnceLock};

use rewind_core::{Error, config::word};

/// What the commands begin with where a text names one.
const NAMED: &str = "`zerto-rewind ";

static GIVEN: OnceLock<String> = OnceLock::new();

/// From now on this is the configuration that was given.
pub fn go_by(config: &Path) {
    let file = std::path::absolute(config).unwrap_or_else(|_| config.to_owned());
    // The command line is read once.
    let _ = GIVEN.set(word(&file));
}

/// The text, with the configuration in each command that it names.
pub fn complete(text: &str) -> Cow<'_, str> {
    match GIVEN.get() {
        Some(file) if text.contains(NAMED) => Cow::Owned(with(text, file)),
        _ => Cow::Borrowed(text),
    }
}

/// An error as it is told, with the configuration in each command that it names. What a person is to agree to stays word for word:
/// it names none.
#[must_use]
pub fn completed(error: &Error) -> Error {
    let mut error = error.clone();
    if error.plan_id.is_none() {
        error.message = complete(&error.message).into_owned();
    }
    error.next = complete(&error.next).into_owned();
    error
}

fn with(text: &str, file: &str) -> String {
    let mut pieces = text.split(NAMED);
    let mut completed = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        completed.push_str(NAMED);
        if goes_by_one(piece) {
            completed.push_str("--config ");
            completed.push_str(file);
            completed.push(' ');
        }
        completed.push_str(piece);
    }
    completed
}

/// Whether the command that this begins with needs a configuration, and none is named.
fn goes_by_one(command: &str) -> bool {
    let first = command
        .split(|c: char| c.is_whitespace() || c == '`')
        .next()
        .unwrap_or_default();
    !matches!(
        first,
        "" | "--config" | "uninstall" | "completions" | "demo" | "COMMAND"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_that_goes_by_a_configuration_names_it() {
        for (text, completed) in [
            (
                "accept it: `zerto-rewind trust`; or run `zerto-rewind find VM`.",
                "accept it: `zerto-rewind --config /c.json trust`; or run `zerto-rewind --config /c.json find VM`.",
            ),
            (
                "run `zerto-rewind --config /d.json doctor`",
                "run `zerto-rewind --config /d.json doctor`",
            ),
            ("`zerto-rewind uninstall`", "`zerto-rewind uninstall`"),
            (
                "zerto-rewind is stopped; `zerto-rewind",
                "zerto-rewind is stopped; `zerto-rewind",
            ),
            (
                "`env -u X zerto-rewind stop`",
                "`env -u X zerto-rewind stop`",
            ),
        ] {
            assert_eq!(with(text, "/c.json"), completed);
        }
    }
}
