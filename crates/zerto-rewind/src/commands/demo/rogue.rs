//! The story of an agent that asks nobody. Each act checks what it shows.
use std::{collections::BTreeMap, fs, time::Instant};

use crate::cli::DEMO_GUEST_OPS;

use super::{
    Stopped,
    agent::{Agent, Answer},
    guest_ops::{self, Order},
    narrator::{act, command, difference, fact, pause, quote, say, success},
    scene::{ask, operator, refuse},
    stage::{FILE, Stage, UNPROTECTED_FILE, UNPROTECTED_VM, VM, VPG},
    story::BROKEN,
};

mod evidence;
mod loss;
mod recovery;

use evidence::Journals;
use loss::Loss;

/// What is listed: the tools that change something.
pub const CATALOG: &str = include_str!("rogue/catalog.toml");

/// The agent's name, as it tells it in the handshake: it stands in the tag.
const AGENT: &str = "rogue-agent";
/// Where the server writes down what reaches it, in the stage's folder.
const RECEIVED: &str = "received.jsonl";
/// A VM with a disk for `/home`, and the VPGs that protect it.
const APP: &str = "app01";
const APP_VPGS: [&str; 3] = ["app01-local", "app01-dr", "app01-archive"];
const WHY_STOPPED: &str = "it deletes what it was not asked to";

/// The rogue agent, with the guest-operations server behind the proxy.
pub async fn start(stage: &Stage) -> Result<Agent, Stopped> {
    let mut proxy = stage.program(["proxy", "--name", guest_ops::NAME, "--"])?;
    proxy
        .arg(std::env::current_exe()?)
        .args([DEMO_GUEST_OPS, "--guests"])
        .arg(stage.guests())
        .arg("--received")
        .arg(stage.path(RECEIVED));
    Agent::start("rogue", AGENT, proxy).await
}

/// Plays all acts. `agent` is an honest one, with this program's own tools; `auto` agrees where a human is asked.
pub async fn tell(stage: &Stage, rogue: &Agent, agent: &Agent, auto: bool) -> Result<(), Stopped> {
    introduce(stage, rogue).await?;
    read_passes(stage, rogue).await?;
    let mut losses = change(stage, rogue).await?;
    nothing_to_pin(stage, rogue).await?;
    let deletion = Order::Delete {
        vm: APP.into(),
        path: "/home/justin/bin/deploy.sh".into(),
    };
    stop_and_resume(stage, rogue, &deletion).await?;
    losses.push(three_vpgs(stage, rogue, deletion).await?);
    act(7, "The journals, as an operator sees them");
    operator(stage, &["checkpoints", VM]).await?;
    pause();
    operator(stage, &["checkpoints", APP]).await?;
    let recovered = recovery::recover(stage, agent, &losses, auto).await?;
    act(9, "Compare");
    recovery::compare(stage, &losses, &recovered)?;
    nothing_slipped_through(stage, losses.len())?;
    success(
        "All four files are back from the journals, byte for byte. Each change was pinned before it was made, and the \
         agent asked for none of it.",
    );
    Ok(())
}

async fn introduce(stage: &Stage, rogue: &Agent) -> Result<(), Stopped> {
    act(1, "The stage");
    fact("ZVM", &format!("{} (simulated)", stage.url()));
    fact("VMs", &format!("{VM}, protected by VPG {VPG}"));
    fact("", &format!("{APP}, protected by {}", APP_VPGS.join(", ")));
    fact("", &format!("{UNPROTECTED_VM}, protected by none"));
    fact(
        "MCP server",
        &format!("{}, which works on files of the VMs", guest_ops::NAME),
    );
    fact("its tools", &rogue.tools().await?.join(", "));
    say("In the agent's configuration one prefix stands before the server's own command:");
    command(&format!(
        "zerto-rewind proxy --name {0} -- zerto-rewind demo-guest-ops …",
        guest_ops::NAME
    ));
    say("And the catalog lists what changes something, but not read_file:");
    quote(
        CATALOG
            .split_once("\n\n")
            .map_or("", |(_, entries)| entries),
    );
    Ok(())
}

async fn read_passes(stage: &Stage, rogue: &Agent) -> Result<(), Stopped> {
    act(2, "Reading passes");
    say("The agent has to raise the connection pool in the app's settings. It reads them first.");
    let file = stage.guest_path(VM, FILE)?;
    reads(rogue, FILE, &fs::read_to_string(file)?).await?;
    let (requests, inserts) = (stage.requests(), stage.inserts());
    if (requests, inserts) != (0, 0) {
        return Err(Stopped::Broken(format!(
            "an unlisted call cost {requests} requests to the ZVM and {inserts} inserts"
        )));
    }
    fact(
        "ZVM",
        "0 requests, 0 checkpoints inserted: the call is not listed",
    );
    Ok(())
}

/// The server's answer to a read, through the proxy and untouched by it.
async fn reads(rogue: &Agent, path: &str, content: &str) -> Result<(), Stopped> {
    let order = Order::Read {
        vm: VM.into(),
        path: path.into(),
    };
    let answer = obeyed(rogue, &order).await?;
    if answer.words != content || answer.receipt().is_some() {
        return Err(Stopped::Broken(format!(
            "read_file did not pass as it is: {}",
            answer.words
        )));
    }
    fact(
        "answer",
        &format!("{} bytes, as they are in the file", content.len()),
    );
    Ok(())
}

async fn obeyed(rogue: &Agent, order: &Order) -> Result<Answer, Stopped> {
    let (tool, arguments) = call(order)?;
    ask(rogue, &tool, arguments).await
}

fn call(order: &Order) -> Result<(String, serde_json::Value), Stopped> {
    order
        .call()
        .map_err(|error| Stopped::Broken(error.to_string()))
}

async fn change(stage: &Stage, rogue: &Agent) -> Result<Vec<Loss>, Stopped> {
    act(3, "Write, move, delete: each is pinned first");
    say(
        "Now it changes things, and asks for no guard. The proxy holds each call until its pin is listed in the journal.",
    );
    let write = Order::Write {
        vm: VM.into(),
        path: FILE.into(),
        content: BROKEN.into(),
    };
    let written = Loss::suffer(stage, rogue, write, &[VPG]).await?;
    difference(&String::from_utf8_lossy(&written.original), BROKEN);
    say("The pool is raised, and most of the rest is lost. The receipt is in the answer's _meta:");
    quote(&written.receipt_shown());
    say("It goes on to tidy up:");
    let moving = Order::Move {
        vm: VM.into(),
        path: "/etc/nginx/nginx.conf".into(),
        to: "/srv/backup/nginx.conf".into(),
    };
    let moved = Loss::suffer(stage, rogue, moving, &[VPG]).await?;
    let deletion = Order::Delete {
        vm: VM.into(),
        path: "/srv/app/app.db".into(),
    };
    let deleted = Loss::suffer(stage, rogue, deletion, &[VPG]).await?;
    Ok(vec![written, moved, deleted])
}

async fn nothing_to_pin(stage: &Stage, rogue: &Agent) -> Result<(), Stopped> {
    act(4, "Nothing to pin, nothing done");
    say("No VPG protects the next VM, so this could not be undone. Then it is not done:");
    let file = stage.guest_path(UNPROTECTED_VM, UNPROTECTED_FILE)?;
    let (before, inserts) = (fs::read(&file)?, stage.inserts());
    let order = Order::Delete {
        vm: UNPROTECTED_VM.into(),
        path: UNPROTECTED_FILE.into(),
    };
    refused(rogue, &order, "vm_not_protected").await?;
    if stage.inserts() != inserts || fs::read(&file).ok() != Some(before) {
        return Err(Stopped::Broken(format!(
            "the refused call has changed {UNPROTECTED_FILE} on {UNPROTECTED_VM}, or the journal"
        )));
    }
    fact("file", &format!("{UNPROTECTED_FILE} is there, untouched"));
    Ok(())
}

async fn refused(rogue: &Agent, order: &Order, code: &str) -> Result<(), Stopped> {
    let (tool, arguments) = call(order)?;
    let answer = refuse(rogue, &tool, code, arguments).await?;
    quote(answer.error("message").unwrap_or_default());
    Ok(())
}

async fn stop_and_resume(stage: &Stage, rogue: &Agent, order: &Order) -> Result<(), Stopped> {
    act(5, "A person says stop");
    let inserts = stage.inserts();
    operator(stage, &["stop", "--reason", WHY_STOPPED]).await?;
    say("The proxy was not restarted, and refuses from the next listed call on:");
    let asked = Instant::now();
    refused(rogue, order, "stopped").await?;
    fact(
        "refused",
        &format!("after {} ms", asked.elapsed().as_millis()),
    );
    if stage.inserts() != inserts {
        return Err(Stopped::Broken("a stopped call was pinned".into()));
    }
    say("It may still read:");
    reads(rogue, FILE, BROKEN).await?;
    say("All that was done so far can be undone, so the person lets it go on.");
    operator(stage, &["resume"]).await
}

async fn three_vpgs(stage: &Stage, rogue: &Agent, order: Order) -> Result<Loss, Stopped> {
    act(6, "Three VPGs at once");
    say(
        "The agent tries again. This VM is in three VPGs, and the call passes only when all three have listed the pin:",
    );
    Loss::suffer(stage, rogue, order, &APP_VPGS).await
}

/// Whether every changing call that reached the server was pinned before, on all its VPGs.
fn nothing_slipped_through(stage: &Stage, expected: usize) -> Result<(), Stopped> {
    let journals = |vpgs: &[&str]| -> Journals {
        let own = vpgs
            .iter()
            .map(|vpg| ((*vpg).to_owned(), stage.journal(vpg)));
        own.collect()
    };
    let mut protected = BTreeMap::from([(VM, journals(&[VPG])), (APP, journals(&APP_VPGS))]);
    let mut changes = 0;
    for call in evidence::received(&stage.path(RECEIVED))? {
        let Some(action) = evidence::action(&call.order) else {
            continue;
        };
        let (vm, _) = call.order.file();
        let mut none = Journals::new();
        let journals = protected.get_mut(vm).unwrap_or(&mut none);
        evidence::guarded(journals, AGENT, vm, &action, call.at).map_err(Stopped::Broken)?;
        changes += 1;
    }
    if changes != expected {
        return Err(Stopped::Broken(format!(
            "{changes} changing calls reached the server instead of {expected}"
        )));
    }
    fact(
        "server",
        &format!(
            "got {changes} changing calls, each after its pins were listed, and never saw the two refused ones"
        ),
    );
    Ok(())
}
