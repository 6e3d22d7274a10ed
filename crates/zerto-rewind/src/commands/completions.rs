//! `completions`: a script for a shell.
use clap::CommandFactory as _;
use clap_complete::Shell;
use rewind_core::Error;

use crate::{cli::Cli, output};

pub fn run(shell: Shell) -> Result<(), Error> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "zerto-rewind", &mut script);
    output::print(&String::from_utf8_lossy(&script));
    Ok(())
}
