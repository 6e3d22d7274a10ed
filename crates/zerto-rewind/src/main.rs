//! The command-line program.
use std::process::ExitCode;

fn main() -> ExitCode {
    zerto_rewind::run(std::env::args_os())
}
