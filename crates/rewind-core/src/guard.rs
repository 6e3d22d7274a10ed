//! Guard: pins on every VPG that protects a VM, all or failed.
mod earlier;
mod interrupted;
mod look;
mod pin;
mod run;
mod share;
mod stage;
mod tag;
mod tool_call;
mod vms;

use crate::{
    Call, Error, catalog,
    enforce::record,
    rewind::Core,
    state::{Asked, Refusal},
    text::remembered,
};
pub(crate) use run::{Guarding, guard, refuse_what_can_not_work};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
pub(crate) use share::{Covered, Sharing};
pub(crate) use tag::{Intent, given};
pub(crate) use tool_call::guard_tool_call;
pub(crate) use vms::{all_or_failed, at_once, pinned};

/// `zerto_create_tagged_checkpoint`.
#[derive(Clone, Debug)]
pub struct GuardRequest {
    /// Name, hostname, address or identifier of the VM.
    pub vm: String,
    /// What is about to be changed.
    pub action: String,
    /// Who is about to change it; without it, the caller. A name fixed in the configuration wins over both.
    pub agent: Option<String>,
    /// Groups the guards of one change; without it, the session's.
    pub change_id: Option<String>,
}

/// `zerto_guard_before_mutate`.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// Name of the MCP server that the tool belongs to; while it is unknown, every entry's server matches.
    pub server: Option<String>,
    /// Name of the tool.
    pub tool: String,
    /// What is about to be changed, in the caller's words. It becomes the tag's action.
    pub action: String,
    /// The VM, where the caller knows it. It must be the one that the entry's rule finds.
    pub vm: Option<String>,
    /// The tool call's arguments.
    pub arguments: Option<Value>,
    /// As in [`GuardRequest`].
    pub agent: Option<String>,
    /// As in [`GuardRequest`]; wins over the entry's rule.
    pub change_id: Option<String>,
}

impl GuardRequest {
    /// As it is remembered where it is refused.
    pub(crate) fn refusal(&self, core: &Core, call: &Call, error: &Error) -> Refusal {
        let refusal = core.refusal(Asked::Guard, call, error);
        Refusal {
            vm: remembered(&self.vm),
            agent: refusal
                .agent
                .or_else(|| self.agent.as_deref().and_then(remembered)),
            change: self
                .change_id
                .as_deref()
                .and_then(remembered)
                .or(refusal.change),
            ..refusal
        }
    }
}

impl ToolCall {
    /// As it is remembered where it is refused.
    pub(crate) fn refusal(&self, core: &Core, call: &Call, error: &Error) -> Refusal {
        let request = GuardRequest {
            vm: self.vm.clone().unwrap_or_default(),
            action: String::new(),
            agent: self.agent.clone(),
            change_id: self.change_id.clone(),
        };
        let looked_up = catalog::Call {
            server: given(self.server.as_deref()),
            tool: &self.tool,
            arguments: self.arguments.as_ref().unwrap_or(&Value::Null),
        };
        Refusal {
            call: Some(record(&looked_up)),
            ..request.refusal(core, call, error)
        }
    }
}

/// All pins are listed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Receipt {
    /// The name that the ZVM reports.
    pub vm: String,
    /// The ZVM's identifier of the VM.
    pub vm_identifier: String,
    /// As in the tag.
    pub agent: String,
    /// As in the tag: one line, shortened to fit.
    pub action: String,
    /// As in the tag.
    pub change_id: String,
    /// As written; the same on every VPG.
    pub tag: String,
    /// One per protecting VPG.
    pub pins: Vec<Pin>,
    /// From the request to the receipt.
    pub seconds: f64,
    /// Always the same sentence: crash-consistent within each VPG, not across VPGs; estimates are estimates.
    pub note: String,
}

/// One tagged checkpoint that is listed in its VPG's journal.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Pin {
    /// Name of the VPG.
    pub vpg: String,
    /// The ZVM's identifier of the VPG.
    pub vpg_identifier: String,
    /// Id of the checkpoint; unique only within its VPG.
    pub checkpoint: String,
    /// ISO 8601, UTC, the ZVM's clock.
    pub time: String,
    /// As read back from the journal.
    pub tag: String,
    /// How far back the journal reached when the guard began (ISO 8601, UTC).
    pub journal_from: Option<String>,
    /// Until when this pin is expected to stay: an estimate.
    pub expected_until: Option<String>,
    /// How often the tag was inserted; more than once where an insert was dropped.
    pub inserts: u32,
    /// From the start of the guard until the pin was listed.
    pub seconds: f64,
}

/// What the catalog says about a tool call, and what was done about it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "decision")]
pub enum GuardDecision {
    /// The call needs no guard; nothing was asked of the ZVM.
    PassThrough {
        /// Why not.
        reason: String,
    },
    /// Every VM that the call changes is pinned.
    Guarded {
        /// The catalog's entry that listed the tool.
        #[serde(skip_serializing_if = "Option::is_none")]
        entry: Option<String>,
        /// One per VM.
        receipts: Vec<Receipt>,
        /// VMs of the call that no VPG protects, where the entry lets that pass.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        not_protected: Vec<String>,
    },
}
