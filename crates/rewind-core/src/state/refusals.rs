//! What was asked for and refused, or failed before anything was done. The reason is kept as its code; arguments as their digest.

use rusqlite::params;

use super::{State, StateError, ToolCall, millis};
use crate::{
    ErrorCode,
    ledger::{append, kinds},
};

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// That a listed call be let through.
    Call,
    /// A guard.
    Guard,
    /// A recovery.
    Recovery,
    /// A comparison with a checkpoint.
    Look,
}

impl Asked {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Guard => "guard",
            Self::Recovery => "recovery",
            Self::Look => "look",
        }
    }
}

/// Something that was asked for and not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Host and port of the ZVM.
    pub zvm: String,
    /// What was asked for.
    pub asked: Asked,
    /// Why not.
    pub code: ErrorCode,
    /// The VM, as it was named.
    pub vm: Option<String>,
    /// The ZVM's identifier of the VM, where a plan that was named says it.
    pub vm_identifier: Option<String>,
    /// The plan, as it was named.
    pub plan: Option<String>,
    /// The agent, as it was declared.
    pub agent: Option<String>,
    /// The MCP client as it named itself, or the program that asked.
    pub client: Option<String>,
    /// The change id, as it was given.
    pub change: Option<String>,
    /// The tool call, where there was one.
    pub call: Option<ToolCall>,
}

impl State {
    /// Writes down a refusal. A caller that gave up was not refused, and neither is one that has to ask a person first.
    ///
    /// # Errors
    ///
    /// The state cannot be written.
    pub fn refused(&self, refusal: &Refusal) -> Result<(), StateError> {
        if matches!(
            refusal.code,
            ErrorCode::Cancelled | ErrorCode::ConfirmationRequired
        ) {
            return Ok(());
        }
        let call = refusal.call.as_ref();
        let at = millis(self.now());
        self.write_outcome(|database| {
            database.execute(
                "INSERT INTO refusal (zvm, asked, code, vm, agent, client, change_id, server, tool, arguments_digest,
                     vm_identifier, plan)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
                params![
                    refusal.zvm,
                    refusal.asked.as_str(),
                    refusal.code.as_str(),
                    refusal.vm,
                    refusal.agent,
                    refusal.client,
                    refusal.change,
                    call.and_then(|call| call.server.as_deref()),
                    call.map(|call| &call.tool),
                    call.map(|call| &call.arguments_digest),
                    refusal.vm_identifier,
                    refusal.plan,
                ],
            )?;
            append(database, &kinds::REFUSAL, database.last_insert_rowid(), at)
        })
    }
}
