//! `demo`: the whole story on a simulated ZVM, through the real MCP server, or the real proxy.
use std::{fmt, io};

use crate::{
    cli::{Demo, Story},
    interrupt::Interrupt,
    output, terminal,
};

mod agent;
mod guest_ops;
mod narrator;
mod rogue;
mod scene;
mod stage;
mod story;

pub use guest_ops::run as guest_ops;

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
    let stage = match arguments.story {
        None => {
            narrator::opening();
            Stage::set(None).await?
        }
        Some(Story::Rogue) => {
            narrator::rogue_opening();
            Stage::set(Some(rogue::CATALOG)).await?
        }
    };
    let told = match perform(&stage, arguments, interrupt).await {
        // Ctrl-C reaches the MCP server, too: what breaks then is no fault.
        Err(_) if interrupt.token().is_cancelled() => Err(Stopped::Interrupted),
        told => told,
    };
    if told.is_err() || !arguments.keep {
        stage.strike().await;
        told?;
        narrator::goodbye();
        return Ok(());
    }
    let kept = stage.keep();
    narrator::kept(&kept);
    interrupt.token().cancelled_owned().await;
    let folder = kept.close().await;
    narrator::closed(&folder);
    Ok(())
}

async fn perform(stage: &Stage, arguments: &Demo, interrupt: &Interrupt) -> Result<(), Stopped> {
    let agent = Agent::of_this_server(stage).await?;
    let told = match arguments.story {
        None => until(interrupt, story::tell(stage, &agent, arguments.auto)).await,
        Some(Story::Rogue) => with_rogue(stage, &agent, arguments.auto, interrupt).await,
    };
    // The server ends before its ZVM does, so that it can clean up there.
    let left = agent.leave().await;
    told.and(left)
}

async fn with_rogue(
    stage: &Stage,
    agent: &Agent,
    auto: bool,
    interrupt: &Interrupt,
) -> Result<(), Stopped> {
    let rogue = rogue::start(stage).await?;
    let told = until(interrupt, rogue::tell(stage, &rogue, agent, auto)).await;
    let left = rogue.leave().await;
    told.and(left)
}

async fn until(
    interrupt: &Interrupt,
    story: impl Future<Output = Result<(), Stopped>>,
) -> Result<(), Stopped> {
    tokio::select! {
        told = story => told,
        () = interrupt.token().cancelled_owned() => Err(Stopped::Interrupted),
    }
}
