//! `zerto_create_tagged_checkpoint`: the same tag on every VPG that protects a VM.
use rewind_core::{Call, Error, GuardRequest, Receipt, Rewind};
use rmcp::model::Tool;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{additive, define};
use crate::{answer::Answer, text};

pub const NAME: &str = "zerto_create_tagged_checkpoint";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The VM that is about to be changed: its name, its hostname, its IP address, or its vmIdentifier.
    #[schemars(length(min = 1, max = 256))]
    vm: String,
    /// What is about to be done to the VM, in a few words, for the operator who reads the journal:
    /// "edit /etc/nginx/nginx.conf". It becomes part of the tag and is shortened to fit.
    #[schemars(length(min = 1, max = 4096))]
    action: String,
    /// Who makes the change. Without it, the MCP client's own name.
    #[schemars(length(min = 1, max = 32))]
    agent: Option<String>,
    /// A ticket or change id that groups several guards. Without it, one id for this session.
    #[schemars(length(min = 1, max = 48))]
    change_id: Option<String>,
}

pub fn tool() -> Tool {
    define::<Arguments, Receipt>(
        NAME,
        "Pin a checkpoint on a VM",
        "Call this before you change anything on a VM. Inserts a tagged checkpoint with the same tag (agent, action, VM, \
         change id, time) on every VPG that protects the VM, and waits until each is listed in its journal; that can take \
         a minute or more. The receipt has the checkpoint ids to recover from. All VPGs or an error: after an error, don't \
         make the change. Adds checkpoints and changes nothing on the VM.",
        additive(),
    )
}

pub async fn call(rewind: &Rewind, arguments: Arguments, call: &Call) -> Result<Answer, Error> {
    let Arguments {
        vm,
        action,
        agent,
        change_id,
    } = arguments;
    let request = GuardRequest {
        vm,
        action,
        agent,
        change_id,
    };
    // The receipt is the word that the agent may go on.
    let receipt = rewind.guard_unless_stopped(request, call).await?;
    Ok(Answer::new(&receipt, text::receipt(&receipt)))
}
