//! The commands, a file each.
use rewind_core::Error;

use crate::{
    cli::{Cli, Command},
    interrupt::Interrupt,
    output::Output,
    session,
};

mod approvals;
mod approve;
mod approver;
pub mod audit;
pub mod catalog;
mod checkpoints;
mod completions;
#[cfg(feature = "demo")]
pub mod demo;
mod diff;
mod doctor;
mod find;
mod guard;
pub mod hook;
pub mod init;
pub mod install;
pub mod mcp;
pub mod proxy;
mod recover;
pub mod run;
pub mod stop;
mod trust;
mod undo_restore;

/// Runs a command to its exit code.
pub async fn run(cli: Cli, interrupt: Interrupt) -> u8 {
    let config = cli.config.as_deref();
    let output = Output::new(cli.json);
    let result: Result<(), Error> = match cli.command {
        Command::Mcp => {
            let config = cli.config;
            return mcp::run(move || session::load(config.as_deref()), interrupt).await;
        }
        #[cfg(feature = "demo")]
        Command::Demo(arguments) => return demo::run(arguments, interrupt).await,
        Command::Init(arguments) => init::run(config, arguments, output, &interrupt).await,
        Command::Doctor => match doctor::run(config, output, &interrupt).await {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Command::Find { vm } => find::run(config, &vm, output, &interrupt).await,
        Command::Guard(arguments) => guard::run(config, arguments, output, &interrupt).await,
        Command::Checkpoints(arguments) => {
            checkpoints::run(config, arguments, output, &interrupt).await
        }
        Command::Recover(arguments) => {
            match recover::run(config, arguments, output, &interrupt).await {
                Ok(code) => return code,
                Err(error) => Err(error),
            }
        }
        Command::Approve { id } => approve::approve(config, &id, output, &interrupt).await,
        Command::Deny { id } => approve::deny(config, &id, output).await,
        Command::Approvals { id, diff } => {
            approvals::run(config, (id.as_deref(), diff), output, &interrupt).await
        }
        Command::Approver(command) => approver::run(config, &command, output, &interrupt).await,
        Command::Audit(command) => {
            return match audit::run(config, command, output, &interrupt).await {
                Ok(code) => code,
                Err(error) => output.error(&error),
            };
        }
        Command::Diff(arguments) => diff::run(config, arguments, output, &interrupt).await,
        Command::UndoRestore(arguments) => {
            undo_restore::run(config, arguments, output, &interrupt).await
        }
        Command::Trust => trust::run(config, output, &interrupt).await,
        Command::Catalog(command) => catalog::run(config, command, output, &interrupt).await,
        Command::Completions { shell } => completions::run(shell),
        // `crate::run` has taken these.
        Command::Install(_)
        | Command::Uninstall(_)
        | Command::Hook(_)
        | Command::Proxy(_)
        | Command::Run(_)
        | Command::Stop(_)
        | Command::Resume(_) => Ok(()),
    };
    match result {
        Ok(()) => 0,
        Err(error) => output.error(&error),
    }
}
