//! `zvm-sim`: a simulated Zerto Virtual Manager of its own.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use tracing_subscriber::EnvFilter;
use zvm_sim::{Scenario, Sim};

/// A simulated Zerto Virtual Manager.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serves until it is interrupted. When it is ready, one line of JSON on standard output says how to reach it.
    Serve(Serve),
    /// Prints the default scenario as TOML, to start one's own from.
    Scenario,
}

#[derive(Args)]
struct Serve {
    /// Where to listen.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Keeps guests and certificate in this folder. Without it, they are in a temporary one that is removed at the end.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// What is simulated, in TOML. What it leaves out is as in the default scenario.
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Serves the controls under /sim/, which need no login.
    #[arg(long)]
    control: bool,
}

fn main() -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_writer(std::io::stderr)
        .init();
    let done = match Cli::parse().command {
        Command::Serve(arguments) => serve(arguments),
        Command::Scenario => print_scenario(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("zvm-sim: {error}");
            ExitCode::FAILURE
        }
    }
}

type Done = Result<(), Box<dyn std::error::Error>>;

fn print_scenario() -> Done {
    let text = toml::to_string(&Scenario::default())?;
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn serve(arguments: Serve) -> Done {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(run(arguments))
}

async fn run(arguments: Serve) -> Done {
    // Whoever interrupts while it starts wants it to end cleanly, too.
    let mut interrupted = Interrupted::new()?;
    let scenario = match &arguments.scenario {
        Some(file) => Scenario::from_file(file)?,
        None => Scenario::default(),
    };
    let mut builder = Sim::builder()
        .scenario(scenario)
        .listen(arguments.listen)
        .control(arguments.control);
    if let Some(folder) = arguments.data {
        builder = builder.data_dir(folder);
    }
    if arguments.control && !arguments.listen.ip().is_loopback() {
        tracing::warn!(
            "whoever reaches {} can use /sim/ without a login",
            arguments.listen
        );
    }
    let sim = builder.start().await?;
    let mut ready = serde_json::to_vec(&sim.access())?;
    ready.push(b'\n');
    let mut out = std::io::stdout();
    out.write_all(&ready)?;
    out.flush()?;
    tracing::info!(url = sim.url(), "serving");
    interrupted.wait().await;
    tracing::info!("stopping");
    sim.shutdown().await;
    Ok(())
}

/// Ctrl-C, or a request to terminate.
#[cfg(unix)]
struct Interrupted {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Interrupted {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Interrupted;

#[cfg(not(unix))]
impl Interrupted {
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn wait(&mut self) {
        // Without a handler there is nothing to wait for but the end of the process.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
