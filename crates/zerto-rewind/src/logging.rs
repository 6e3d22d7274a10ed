//! Logs: to stderr alone, as `RUST_LOG` says.
use std::io::{self, IsTerminal};

use tracing_subscriber::{EnvFilter, filter::LevelFilter};

/// What is logged where `RUST_LOG` says nothing.
#[derive(Clone, Copy)]
pub enum ByDefault {
    /// Nothing: commands tell people what they have to know in their own words.
    Nothing,
    /// Warnings and worse: a server has no other voice.
    Warnings,
}

/// Starts the log of this process.
pub fn start(by_default: ByDefault) {
    let wanted = std::env::var("RUST_LOG").unwrap_or_default();
    let default = match by_default {
        ByDefault::Nothing => "off",
        ByDefault::Warnings => "warn",
    };
    let mut filter = EnvFilter::try_new(if wanted.is_empty() { default } else { &wanted })
        .unwrap_or_else(|_| EnvFilter::new("warn"));
    // At debug level rmcp logs whole requests, the arguments of other tools included, and they may hold secrets.
    if filter.max_level_hint() > Some(LevelFilter::WARN)
        && !wanted.contains("rmcp")
        && let Ok(quiet) = "rmcp=warn".parse()
    {
        filter = filter.add_directive(quiet);
    }
    let started = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(
            io::stderr().is_terminal()
                && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        )
        .try_init();
    if let Err(error) = started {
        tracing::debug!(%error, "there is a log already");
    }
}
