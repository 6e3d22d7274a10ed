//! The MCP server on its own, configured by `ZERTO_REWIND_CONFIG` alone.
use std::process::ExitCode;

fn main() -> ExitCode {
    zerto_rewind::run_server(std::env::args_os())
}
