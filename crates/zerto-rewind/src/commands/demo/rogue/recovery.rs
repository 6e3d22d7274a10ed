//! What was lost comes back: a human agrees, and every byte is compared.
use std::fs;

use serde_json::{Value, json};

use super::{Loss, Order};
use crate::commands::demo::{
    Stopped,
    agent::Agent,
    narrator::{act, fact, quote, say},
    scene::{recovers, same},
    stage::Stage,
};

/// Shows the human what would be recovered, one after the other, and asks. Where each file is then.
pub async fn recover(
    stage: &Stage,
    agent: &Agent,
    losses: &[Loss],
    auto: bool,
) -> Result<Vec<String>, Stopped> {
    act(8, "The human decides, and the files come back");
    say(
        "Another agent, with zerto-rewind's own tools, asks for each file from the pin before its change. Each time a form of its \
         client asks the human, and nothing is mounted before they have typed the VM's name:",
    );
    let mut places = Vec::new();
    for (index, loss) in losses.iter().enumerate() {
        let shown = |form: &str| match index {
            0 => quote(form),
            _ => quote(&details(form)),
        };
        let recovered = recovers(stage, agent, wanted(loss), auto, shown).await?;
        let place = recovered.text("/local_path")?;
        fact("here now", place);
        places.push(place.to_owned());
    }
    Ok(places)
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
