//! What is wrong with the arguments, as it is told: clap's words on stderr, and with `--json` the same as JSON on stdout.
use std::ffi::OsString;

use clap::{
    CommandFactory as _, Parser as _,
    error::{ContextKind, ContextValue, ErrorKind},
};
use rewind_core::{Error, ErrorCode};

use crate::{
    cli::{Cli, Command},
    output::Output,
};

/// The arguments, or why there is nothing to do and the exit code for it: 0 after help and version.
pub fn parse(arguments: &[OsString]) -> Result<Cli, u8> {
    let mistake = match Cli::try_parse_from(arguments).and_then(refuse_json) {
        Ok(cli) => return Ok(cli),
        Err(mistake) => discreet(mistake, arguments),
    };
    print(&mistake);
    if mistake.use_stderr() && wants_json(arguments) {
        Output::new(true).error(&as_error(&mistake));
    }
    Err(exit_code(&mistake))
}

/// Without what may be a secret: people give one where only an option stands that says where it is.
fn discreet(mut mistake: clap::Error, arguments: &[OsString]) -> clap::Error {
    const VALUE: &str = "…";
    let is_secret = |argument: &OsString| {
        let argument = argument.to_string_lossy();
        argument == "init"
            || (argument.starts_with('-') && argument.contains("pass"))
            || argument.contains("secret")
    };
    if !arguments.iter().any(is_secret) {
        return mistake;
    }
    for kind in [ContextKind::InvalidArg, ContextKind::InvalidValue] {
        let shown = match mistake.get(kind) {
            Some(ContextValue::String(shown)) => shown.clone(),
            _ => continue,
        };
        let is_option = kind == ContextKind::InvalidArg && shown.starts_with(['-', '<']);
        if !is_option {
            mistake.insert(kind, ContextValue::String(VALUE.to_owned()));
        }
    }
    mistake
}

/// Help and version on stdout, a mistake on stderr.
pub fn print(mistake: &clap::Error) {
    // Where nobody reads it, there is nobody to tell.
    let _ = mistake.print();
}

/// 0 after help and version, 2 after a mistake.
pub fn exit_code(mistake: &clap::Error) -> u8 {
    u8::try_from(mistake.exit_code()).unwrap_or(2)
}

/// Some commands have no result that could be JSON: less than was asked for would go unnoticed.
fn refuse_json(cli: Cli) -> Result<Cli, clap::Error> {
    let command = match &cli.command {
        Command::Mcp => "mcp",
        Command::Proxy(_) => "proxy",
        Command::Hook(_) => "hook",
        Command::Run(_) => "run",
        Command::Install(_) => "install",
        Command::Uninstall(_) => "uninstall",
        Command::Completions { .. } => "completions",
        #[cfg(feature = "demo")]
        Command::Demo(_) => "demo",
        _ => return Ok(cli),
    };
    if !cli.json {
        return Ok(cli);
    }
    let message = format!("`{command}` has no JSON output: leave --json out");
    Err(Cli::command().error(ErrorKind::ArgumentConflict, message))
}

/// As far as that can be told of arguments that can't be read: what follows `--` is no option.
fn wants_json(arguments: &[OsString]) -> bool {
    arguments
        .iter()
        .take_while(|argument| *argument != "--")
        .any(|argument| argument == "--json")
}

fn as_error(mistake: &clap::Error) -> Error {
    let text = mistake.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    // The rest is the usage line and where help is.
    let (message, next) = text.split_once("\n\nUsage:").unwrap_or((text, ""));
    let words: Vec<_> = message.split_whitespace().collect();
    let usage = next.lines().next().unwrap_or_default().trim();
    let error = Error::new(ErrorCode::InvalidArgument, words.join(" "));
    if usage.is_empty() {
        return error.with_next("For the usage of a command, run `zerto-rewind COMMAND --help`.");
    }
    error.with_next(format!("Usage: {usage}. For more, add --help."))
}
