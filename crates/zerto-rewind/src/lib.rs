//! The programs `zerto-rewind` and `zerto-rewind-mcp`: arguments, terminal and exit codes around `rewind-core` and
//! `rewind-mcp`.
use std::{ffi::OsString, process::ExitCode};

use clap::Parser;

mod cli;
mod commands;
mod interrupt;
mod logging;
mod output;
mod permit;
mod person;
mod progress;
mod session;
mod table;
mod terminal;
mod usage;
mod wrap;

use cli::Command;
pub use commands::{
    hook,
    run::{Pinner, RunArgs, guarded},
};
use commands::{install, proxy, stop};
use interrupt::Interrupt;
use logging::ByDefault;

/// Runs `zerto-rewind` with these arguments, the program's name first.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<_> = arguments.into_iter().collect();
    #[cfg(feature = "demo")]
    if let [_, command, ..] = &*arguments
        && command == cli::DEMO_GUEST_OPS
    {
        return guest_ops(arguments.iter().skip(1));
    }
    let cli = match usage::parse(&arguments) {
        Ok(cli) => cli,
        Err(code) => return ExitCode::from(code),
    };
    if let Some(config) = &cli.config {
        rewind_mcp::advice::go_by(config);
    }
    match cli.command {
        // These have a runtime of their own, if any: a hook has ten milliseconds, and a proxy and `run` pass signals on.
        Command::Hook(arguments) => hook::run(arguments, cli.config),
        Command::Proxy(arguments) => proxy::run(arguments, cli.config),
        Command::Run(arguments) => commands::run::run(arguments, cli.config),
        Command::Stop(arguments) => stop::stop(arguments, cli.config, cli.json),
        Command::Resume(arguments) => stop::resume(arguments, cli.config, cli.json),
        Command::Install(arguments) => install::install(arguments, cli.config),
        Command::Uninstall(arguments) => install::uninstall(arguments, cli.config),
        Command::Mcp => block_on(ByDefault::Warnings, |interrupt| {
            commands::run(cli, interrupt)
        }),
        _ => block_on(ByDefault::Nothing, |interrupt| {
            commands::run(cli, interrupt)
        }),
    }
}

#[cfg(feature = "demo")]
fn guest_ops<'a>(arguments: impl Iterator<Item = &'a OsString>) -> ExitCode {
    match cli::DemoGuestOps::try_parse_from(arguments) {
        Ok(arguments) => block_on(ByDefault::Nothing, |interrupt| {
            commands::demo::guest_ops(arguments, interrupt)
        }),
        Err(mistake) => {
            usage::print(&mistake);
            ExitCode::from(usage::exit_code(&mistake))
        }
    }
}

/// Runs `zerto-rewind-mcp` with these arguments, the program's name first.
pub fn run_server(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    match cli::ServerCli::try_parse_from(arguments) {
        Ok(_) => block_on(ByDefault::Warnings, |interrupt| {
            commands::mcp::run(session::load_from_environment, interrupt)
        }),
        Err(mistake) => {
            usage::print(&mistake);
            ExitCode::from(usage::exit_code(&mistake))
        }
    }
}

/// Runs a program to its exit code. A second Ctrl-C ends it at once.
fn block_on<F: Future<Output = u8>>(
    log: ByDefault,
    program: impl FnOnce(Interrupt) -> F,
) -> ExitCode {
    logging::start(log);
    // Two workers: one for the connection, one for what is done with what arrives.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            anstream::eprintln!("error: the program could not start: {error}");
            return ExitCode::from(1);
        }
    };
    let code = runtime.block_on(async {
        let interrupt = Interrupt::watch();
        let impatient = interrupt.clone();
        tokio::select! {
            code = program(interrupt) => code,
            () = impatient.twice() => 130,
        }
    });
    // A read of the terminal or of stdin can't be cancelled: don't wait for it.
    runtime.shutdown_background();
    ExitCode::from(output::exit_code(code))
}
