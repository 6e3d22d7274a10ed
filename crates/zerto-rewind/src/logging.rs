//! Logs: to stderr alone, as `RUST_LOG` says, warnings and worse by default.
use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

/// Starts the log of this process.
pub fn start() {
    let wanted = std::env::var("RUST_LOG").unwrap_or_default();
    let mut filter = EnvFilter::try_new(if wanted.is_empty() { "warn" } else { &wanted })
        .unwrap_or_else(|_| EnvFilter::new("warn"));
    // At debug level rmcp logs whole requests, the arguments of other tools included, and they may hold secrets.
    if !wanted.contains("rmcp")
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
