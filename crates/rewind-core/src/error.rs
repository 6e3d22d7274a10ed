//! The one error of the domain: a stable code, what happened, what to do next, and what was already done.
//!
//! Texts that came from a ZVM or an agent are bounded and cleaned before they get into a message.
mod code;
mod from_core;
mod from_zvm;

use crate::text;
pub use code::ErrorCode;
pub(crate) use from_zvm::NEXT_TO_PROXY;
use schemars::JsonSchema;
use serde::Serialize;

/// What had already been done when it failed, so that nothing is lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Done {
    /// A pin that is listed.
    Pinned {
        /// Name of the VPG.
        vpg: String,
        /// Id of the checkpoint.
        checkpoint: String,
        /// The tag as read back.
        tag: String,
    },
    /// Inserted, or possibly inserted, and not seen in the journal (yet).
    InsertedNotListed {
        /// Name of the VPG.
        vpg: String,
        /// The tag as sent.
        tag: String,
    },
    /// Nothing was inserted on this VPG.
    NotPinned {
        /// Name of the VPG.
        vpg: String,
        /// Why not.
        reason: String,
    },
    /// A file or folder was placed on this host.
    Placed {
        /// Its path in the guest.
        path: String,
        /// Where it is on this host.
        local_path: String,
    },
    /// A file was written in the guest.
    Restored {
        /// Its path in the guest.
        path: String,
        /// What `undo-restore` takes.
        restore_id: Option<String>,
    },
    /// An FLR session was opened.
    SessionOpened {
        /// The ZVM's id of the session.
        session: String,
        /// Whether it is unmounted again. If not, every further command tries to unmount it.
        closed: bool,
        /// Why it is not.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
}

/// See the module.
#[derive(Clone, Debug, Serialize, JsonSchema, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The stable code.
    pub code: ErrorCode,
    /// What happened, to what.
    pub message: String,
    /// What to do next.
    pub next: String,
    /// For `vm_ambiguous`, `path_ambiguous`, …: what it could have been.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<String>,
    /// What had already been done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<Done>,
    /// For `confirmation_required`: the plan that waits for a human's decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<Box<str>>,
}

impl Error {
    /// With the advice that always fits this code.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: text::without_os_numbers(message.into()),
            next: code.next().to_owned(),
            candidates: Vec::new(),
            done: Vec::new(),
            plan_id: None,
        }
    }

    /// With advice that fits this case better.
    pub fn with_next(mut self, next: impl Into<String>) -> Self {
        self.next = next.into();
        self
    }

    /// With what it could have been.
    pub fn with_candidates(mut self, candidates: impl IntoIterator<Item = String>) -> Self {
        self.candidates = candidates.into_iter().collect();
        self
    }

    /// With the plan that waits for a human's decision.
    pub fn with_plan(mut self, id: &str) -> Self {
        self.plan_id = Some(id.into());
        self
    }

    /// With what had already been done.
    pub fn with_done(mut self, done: impl IntoIterator<Item = Done>) -> Self {
        self.done.extend(done);
        self
    }
}
