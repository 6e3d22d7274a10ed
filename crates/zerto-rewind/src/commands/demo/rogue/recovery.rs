//! What was lost comes back: a human agrees, and every byte is compared.
use std::fs;

use serde_json::{Value, json};

use super::{Loss, Order};
use crate::commands::demo::{
    Stopped,
    agent::Agent,
    narrator::{act, fact, quote, say},
    scene::{agreed, ask, refuse, same},
    stage::Stage,
};

const RECOVER: &str = "zerto_recover_file";

/// Shows the human what would be recovered, and asks.
pub async fn decide(
    stage: &Stage,
    agent: &Agent,
    losses: &[Loss],
    auto: bool,
) -> Result<(), Stopped> {
    act(8, "The human decides");
    say(
        "Another agent, with zerto-rewind's own tools, asks for each file from the pin before its change. Without a \
         human's word nothing is mounted:",
    );
    for (index, loss) in losses.iter().enumerate() {
        let question = refuse(agent, RECOVER, "confirmation_required", wanted(loss)).await?;
        let question = question.text("/error/message")?;
        if index == 0 {
            quote(question);
            say("And so for the others:");
        } else {
            quote(&details(question));
        }
    }
    if stage.open_sessions() != 0 {
        return Err(Stopped::Broken(
            "something was mounted before a human agreed".into(),
        ));
    }
    agreed("Recover these four?", auto).await
}

/// The indented lines: which VM, checkpoint, path and place.
fn details(question: &str) -> String {
    let lines = question.lines().filter(|line| line.starts_with(' '));
    lines.collect::<Vec<_>>().join("\n")
}

fn wanted(loss: &Loss) -> Value {
    let (vm, path) = loss.order.file();
    json!({ "vm": vm, "path": path, "checkpoint": loss.checkpoint, "vpg": loss.vpg })
}

/// Where each file is now.
pub async fn recover(agent: &Agent, losses: &[Loss]) -> Result<Vec<String>, Stopped> {
    act(9, "Recover");
    say("Mount the checkpoint, find the file on the VM's disk as it was then, download, unmount.");
    let mut places = Vec::new();
    for loss in losses {
        let mut wanted = wanted(loss);
        if let Value::Object(arguments) = &mut wanted {
            arguments.insert("confirmed".into(), true.into());
        }
        let recovered = ask(agent, RECOVER, wanted).await?;
        let place = recovered.text("/local_path")?;
        fact("here now", place);
        places.push(place.to_owned());
    }
    Ok(places)
}

/// Every file byte for byte, and the guests as the rogue has left them.
pub fn compare(stage: &Stage, losses: &[Loss], places: &[String]) -> Result<(), Stopped> {
    for (loss, place) in losses.iter().zip(places) {
        let (vm, path) = loss.order.file();
        same(path, &loss.original, &fs::read(place)?)?;
        loss.still_made(stage)?;
        let was = match loss.order {
            Order::Read { .. } => "read",
            Order::Write { .. } => "overwritten",
            Order::Move { .. } => "moved",
            Order::Delete { .. } => "deleted",
        };
        let size = loss.original.len();
        fact(
            was,
            &format!("{path} on {vm}: {size} bytes, each as before"),
        );
    }
    fact(
        "VMs",
        "untouched: putting the files back is a change of its own, guarded first",
    );
    if stage.open_sessions() != 0 {
        return Err(Stopped::Broken("a checkpoint is still mounted".into()));
    }
    fact("ZVM", "nothing is mounted any more");
    Ok(())
}
