//! `zerto_guard_before_mutate`: looks a tool call up in the catalog and guards it if it is listed.
use rewind_core::{Call, Error, GuardDecision, Rewind, ToolCall};
use rmcp::model::Tool;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{additive, define};
use crate::{answer::Answer, text};

pub const NAME: &str = "zerto_guard_before_mutate";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The name of the tool that you are about to call, as its server lists it.
    #[schemars(length(min = 1, max = 256))]
    tool: String,
    /// What that call is about to do, in a few words, for the operator who reads the journal:
    /// "edit /etc/nginx/nginx.conf". It becomes part of the tag and is shortened to fit.
    #[schemars(length(min = 1, max = 4096))]
    action: String,
    /// The VM that the call is about to change, if you know it: its name, its hostname, its IP address, or its vmIdentifier.
    #[schemars(length(min = 1, max = 256))]
    vm: Option<String>,
    /// The name of the MCP server that has the tool, or "builtin" for a tool of your own harness.
    #[schemars(length(min = 1, max = 256))]
    server: Option<String>,
    /// The arguments that you are about to call the tool with, unchanged: the catalog may read the VM from them.
    arguments: Option<Map<String, Value>>,
    /// Who makes the change. Without it, the MCP client's own name.
    #[schemars(length(min = 1, max = 32))]
    agent: Option<String>,
    /// A ticket or change id that groups several guards. Without it, one id for this session.
    #[schemars(length(min = 1, max = 48))]
    change_id: Option<String>,
}

pub fn tool() -> Tool {
    define::<Arguments, GuardDecision>(
        NAME,
        "Guard a tool call",
        "Call this before you call a tool that may change a VM. Looks the tool up in the operator's catalog. If it is \
         listed, pins a tagged checkpoint on every VPG that protects the VM, waits until each is listed in its journal \
         (that can take a minute or more), and answers `guarded` with the receipt. If it is not listed, answers \
         `pass_through`, and nothing is sent to the ZVM. Make the call only after one of these two answers, never after \
         an error.",
        additive(),
    )
}

pub async fn call(rewind: &Rewind, arguments: Arguments, call: &Call) -> Result<Answer, Error> {
    let Arguments {
        tool,
        action,
        vm,
        server,
        arguments,
        agent,
        change_id,
    } = arguments;
    let request = ToolCall {
        server,
        tool,
        action,
        vm,
        arguments: arguments.map(Value::Object),
        agent,
        change_id,
    };
    let decision = rewind.guard_tool_call(request, call).await?;
    Ok(Answer::new(&decision, text::decision(&decision)))
}
