//! The story, act by act. Each act checks what it shows.
use std::fs;

use rmcp::model::object;
use serde_json::{Value, json};

use super::{
    Stopped,
    agent::{Agent, Answer},
    narrator::{act, command, difference, fact, quote, say, success},
    scene::{ask, operator, recovers, refuse, same},
    stage::{FILE, Stage, UNPROTECTED_VM, VM, VPG},
};

const FIND: &str = "zerto_find_protection";
const GUARD: &str = "zerto_create_tagged_checkpoint";
const LIST: &str = "zerto_list_checkpoints";

/// What the agent makes of the file: it was to raise the pool, and lost most of the rest.
pub const BROKEN: &str = "\
# app settings, read at start
database:
  url: postgres://app@localhost/app
  pool: 32
";

/// Plays all acts; `auto` agrees where a human is asked.
pub async fn tell(stage: &Stage, agent: &Agent, auto: bool) -> Result<(), Stopped> {
    introduce(stage, agent).await?;
    find(agent).await?;
    let receipt = guard(agent).await?;
    let checkpoint = receipt.text("/pins/0/checkpoint")?;
    let original = break_the_file(stage, checkpoint).await?;
    act(5, "The journal, as an operator sees it");
    operator(stage, &["checkpoints", VM]).await?;
    let recovered = recover(stage, agent, checkpoint, auto).await?;
    compare(stage, agent, &original, recovered.text("/local_path")?).await?;
    success(&format!(
        "The file is back from the journal, byte for byte. The guard took {:.1} s, the recovery {:.1} s.",
        receipt.number("/seconds")?,
        recovered.number("/timing/total")?
    ));
    Ok(())
}

async fn introduce(stage: &Stage, agent: &Agent) -> Result<(), Stopped> {
    act(1, "The stage");
    fact("ZVM", &format!("{} (simulated)", stage.url()));
    fact(
        "VM",
        &format!("{VM}, protected by VPG {VPG}, a checkpoint every 5 s"),
    );
    fact(
        "MCP server",
        "this program itself, as `zerto-rewind mcp` over stdio",
    );
    fact("its tools", &agent.tools().await?.join(", "));
    Ok(())
}

async fn find(agent: &Agent) -> Result<(), Stopped> {
    act(2, "Find");
    say(
        "The agent is asked to raise the connection pool in the app's settings. First: what protects this VM?",
    );
    let found = ask(agent, FIND, json!({ "vm": VM })).await?;
    fact(
        "VM",
        &format!("{} ({})", found.text("/vm")?, found.text("/vm_identifier")?),
    );
    fact(
        "VPG",
        &format!(
            "{}, {}",
            found.text("/vpgs/0/vpg")?,
            found.text("/vpgs/0/status")?
        ),
    );
    say("A VM that nothing protects can't be guarded, and then the answer is no:");
    let change = json!({ "vm": UNPROTECTED_VM, "action": "edit" });
    quote(
        refuse(agent, GUARD, "vm_not_protected", change)
            .await?
            .text("/error/message")?,
    );
    Ok(())
}

async fn guard(agent: &Agent) -> Result<Answer, Stopped> {
    act(3, "Guard");
    say(
        "Before the change the agent pins a checkpoint and waits until the journal lists it. No receipt, no change.",
    );
    let action = format!("edit {FILE}");
    command(&format!("zerto-rewind guard {VM} --action \"{action}\""));
    let receipt = ask(agent, GUARD, json!({ "vm": VM, "action": action })).await?;
    let pin = |field: &str| receipt.text(&format!("/pins/0/{field}"));
    fact(
        "checkpoint",
        &format!("{}, at {}", pin("checkpoint")?, pin("time")?),
    );
    fact("tag", pin("tag")?);
    Ok(receipt)
}

/// What the file was.
async fn break_the_file(stage: &Stage, checkpoint: &str) -> Result<Vec<u8>, Stopped> {
    act(4, "The agent gets it wrong");
    let original = fs::read(stage.file())?;
    fs::write(stage.file(), BROKEN)?;
    fact("edited", &format!("{FILE} on {VM}"));
    difference(&String::from_utf8_lossy(&original), BROKEN);
    let pinned = checkpoint
        .parse()
        .map_err(|_| Stopped::Broken(format!("the checkpoint {checkpoint} is no number")))?;
    let damaged = stage.checkpoint_after(pinned).await;
    say(&format!(
        "The app won't start any more, and the journal went on: checkpoint {damaged} has the damage in it already."
    ));
    Ok(original)
}

async fn recover(
    stage: &Stage,
    agent: &Agent,
    checkpoint: &str,
    auto: bool,
) -> Result<Answer, Stopped> {
    act(6, "The human decides");
    say("The agent looks for its pin.");
    let listed = ask(agent, LIST, json!({ "vm": VM })).await?;
    if listed.text("/checkpoints/0/checkpoint")? != checkpoint {
        let list = &listed.content;
        return Err(Stopped::Broken(format!(
            "the newest tagged checkpoint is not {checkpoint}: {list}"
        )));
    }
    say(
        "It asks for the file, and claims that this was confirmed. That decides nothing: a form of its client asks the human, and \
         wants the VM's name typed.",
    );
    let wanted = json!({ "vm": VM, "path": FILE, "checkpoint": checkpoint, "confirmed": true });
    let recovered = recovers(stage, agent, wanted, auto, quote).await?;
    act(7, "Recover");
    say("Mount the checkpoint, find the file on the VM's disk as it was then, download, unmount.");
    command(&format!(
        "zerto-rewind recover {VM} {FILE} --at {checkpoint}"
    ));
    fact("plan", recovered.text("/plan_id")?);
    fact("here now", recovered.text("/local_path")?);
    fact("SHA-256", recovered.text("/files/0/sha256")?);
    Ok(recovered)
}

async fn compare(
    stage: &Stage,
    agent: &Agent,
    original: &[u8],
    local: &str,
) -> Result<(), Stopped> {
    act(8, "Compare");
    let recovered = fs::read(local)?;
    same(FILE, original, &recovered)?;
    fact(
        "file",
        &format!("{} bytes, each as before the change", original.len()),
    );
    if fs::read(stage.file())? != BROKEN.as_bytes() {
        return Err(Stopped::Broken(
            "the recovery changed the file on the VM".into(),
        ));
    }
    fact(
        "VM",
        "untouched: putting the file back is a change of its own, guarded first",
    );
    if stage.open_sessions() != 0 {
        return Err(Stopped::Broken("the checkpoint is still mounted".into()));
    }
    fact("ZVM", "nothing is mounted any more");
    let listed = agent.succeed(LIST, object(json!({ "vm": VM }))).await?;
    if listed.content.pointer("/checkpoints/0/used_for_flr") != Some(&Value::Bool(true)) {
        return Err(Stopped::Broken(
            "the journal does not show that the pin was used".into(),
        ));
    }
    fact(
        "journal",
        "shows that the pin was used for file-level restore",
    );
    Ok(())
}
