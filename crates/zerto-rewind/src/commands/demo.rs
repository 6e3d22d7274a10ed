//! `demo`: the whole story on a simulated ZVM, through the real MCP server.
use std::{fmt, io};

use crate::{cli::Demo, interrupt::Interrupt, output, terminal};

mod agent;
mod narrator;
mod stage;
mod story;

use agent::Agent;
use stage::Stage;

/// Why the demo did not come to its end.
enum Stopped {
    /// Something is not as it should be.
    Broken(String),
    /// The human said no.
    Declined,
    /// Ctrl-C.
    Interrupted,
}

impl Stopped {
    fn at(what: &str) -> impl Fn(&dyn fmt::Display) -> Self {
        move |error| Self::Broken(format!("{what}: {error}"))
    }
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

/// Plays it. 0 only if the file came back byte for byte.
pub async fn run(arguments: Demo, interrupt: Interrupt) -> u8 {
    if !arguments.auto && !terminal::is_there() {
        output::note(
            "error: the demo asks you before it recovers, and there is no terminal here\nnext: run it in a terminal, or with --auto",
        );
        return 3;
    }
    let stopped = match play(&arguments, &interrupt).await {
        Ok(()) => return 0,
        Err(stopped) => stopped,
    };
    match stopped {
        Stopped::Broken(why) => {
            output::note(&format!("error: the demo failed: {}", output::lines(&why)));
            1
        }
        Stopped::Declined => {
            output::note("You did not agree, so nothing was mounted. Everything is cleaned up.");
            3
        }
        Stopped::Interrupted => {
            output::note("Interrupted. Everything is cleaned up.");
            130
        }
    }
}

async fn play(arguments: &Demo, interrupt: &Interrupt) -> Result<(), Stopped> {
    narrator::opening();
    let stage = Stage::set().await?;
    let told = perform(&stage, arguments.auto, interrupt).await;
    if arguments.keep && told.is_ok() {
        let kept = stage.keep();
        narrator::kept(&kept);
        interrupt.token().cancelled_owned().await;
        kept.close().await;
    } else {
        stage.strike().await;
    }
    told
}

async fn perform(stage: &Stage, auto: bool, interrupt: &Interrupt) -> Result<(), Stopped> {
    let agent = Agent::start(stage.config()).await?;
    let told = tokio::select! {
        told = story::tell(stage, &agent, auto) => told,
        () = interrupt.token().cancelled_owned() => Err(Stopped::Interrupted),
    };
    // The server ends before its ZVM does, so that it can clean up there.
    let left = agent.leave().await;
    told.and(left)
}
