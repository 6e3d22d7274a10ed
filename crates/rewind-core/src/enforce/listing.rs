//! What a catalog entry makes of a call that it applies to: shared by the enforcer and the tool by which agents ask for a guard.
use std::time::Duration;

use serde_json::{Map, Value};

use crate::{
    Call, Error, ErrorCode, GuardRequest,
    catalog::{self, Entry, RuleError, Unprotected},
    guard::Intent,
    rewind::Core,
    state::{self, Asked, Refusal, arguments_digest},
    text::{self, remembered},
};

const SHOWN_MAX_LEN: usize = 100;

/// A call with its VMs, action and change id.
#[derive(Debug)]
pub(crate) struct Listing {
    /// Where the entry stands.
    pub entry: String,
    /// As the call names them.
    pub vms: Vec<String>,
    pub action: String,
    pub change: Option<String>,
    pub reuse: Option<Duration>,
    pub unprotected: Unprotected,
    /// As it is remembered.
    pub call: state::ToolCall,
}

/// What an agent that asks for a guard says itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Given<'a> {
    /// Where the entry's rule finds none.
    pub vm: Option<&'a str>,
    pub action: Option<&'a str>,
    pub change: Option<&'a str>,
}

impl Listing {
    pub fn of(
        entry: &Entry,
        call: &catalog::Call<'_>,
        given: Given<'_>,
    ) -> Result<Self, RuleError> {
        Ok(Self {
            entry: entry.place().to_owned(),
            vms: match (entry.vms(call.arguments), given.vm) {
                (Err(_), Some(vm)) => vec![vm.to_owned()],
                (vms, _) => vms?,
            },
            action: match given.action {
                Some(action) => action.to_owned(),
                None => entry.action(call)?,
            },
            change: match given.change {
                Some(change) => Some(change.to_owned()),
                None => entry.change(call.arguments)?,
            },
            reuse: entry.reuse(),
            unprotected: entry.unprotected(),
            call: record(call),
        })
    }

    /// Who does what.
    pub fn intent(&self, core: &Core, agent: Option<String>, call: &Call) -> Result<Intent, Error> {
        let request = GuardRequest {
            vm: String::new(),
            action: self.action.clone(),
            agent,
            change_id: self.change.clone(),
        };
        Intent::checked(core, &request, call)
    }

    /// As it is remembered where it is refused.
    pub fn refusal(&self, core: &Core, call: &Call, error: &Error) -> Refusal {
        let refusal = core.refusal(Asked::Call, call, error);
        Refusal {
            vm: remembered(&self.vms.join(", ")),
            change: self
                .change
                .as_deref()
                .and_then(remembered)
                .or(refusal.change),
            call: Some(self.call.clone()),
            ..refusal
        }
    }
}

/// The call as it is remembered. Arguments that are left out are none.
pub(crate) fn record(call: &catalog::Call<'_>) -> state::ToolCall {
    let none = Value::Object(Map::new());
    let arguments = if call.arguments.is_null() {
        &none
    } else {
        call.arguments
    };
    state::ToolCall {
        server: call
            .server
            .map(|server| text::display(server, SHOWN_MAX_LEN)),
        tool: text::display(call.tool, SHOWN_MAX_LEN),
        arguments_digest: arguments_digest(arguments),
    }
}

/// The tool and its server, to be shown.
pub(crate) fn name(call: &catalog::Call<'_>) -> String {
    let tool = text::display(call.tool, SHOWN_MAX_LEN);
    match call.server {
        Some(server) => format!("{tool} of {}", text::display(server, SHOWN_MAX_LEN)),
        None => tool,
    }
}

/// An entry with `mode = "deny"` applies.
pub(crate) fn denied(entry: &Entry, call: &catalog::Call<'_>) -> Error {
    Error::new(
        ErrorCode::Denied,
        format!(
            "the catalog's entry {} refuses {}",
            entry.place(),
            name(call)
        ),
    )
}

/// An entry applies, and cannot be followed.
pub(crate) fn refused(error: &RuleError, next: &str) -> Error {
    Error::new(
        ErrorCode::InvalidArgument,
        text::display(&error.to_string(), 1_000),
    )
    .with_next(next)
}
