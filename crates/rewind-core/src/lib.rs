//! The domain of zerto-rewind: find, pin, guard, list, recover; what a tag says, which calls must be guarded, and what
//! has to be remembered between processes. It knows neither MCP nor HTTP.

pub mod approver;
pub mod catalog;
pub mod certificate;
pub mod config;
pub mod diff;
pub mod doctor;
pub mod duration;
pub mod enforce;
pub mod guest;
mod hint;
pub mod keyring;
pub mod ledger;
pub mod lock;
mod marker;
pub mod plan;
pub mod private;
pub mod state;
pub mod stop;
pub mod tag;
pub mod text;

mod call;
mod checkpoints;
mod clock;
mod error;
mod guard;
mod login_gate;
mod protection;
mod recovery;
mod rewind;
mod warnings;

pub use call::{Call, Progress, ProgressUpdate, Transfer};
pub use checkpoints::{CheckpointList, ListedCheckpoint};
pub use clock::Clock;
pub use diff::{DiffRequest, FileDiff};
pub use error::{Done, Error, ErrorCode};
pub use guard::{GuardDecision, GuardRequest, Pin, Receipt, ToolCall};
pub use plan::{Decision, How, KnownPlan, Plan, PlanEnd, Verdict};
pub use protection::{ProtectingVpg, Protection, VmCandidate};
pub use recovery::{
    Destination, GuestPath, Outcome, Paths, Patience, RecoverRequest, RecoveredFile, RecoveredPath,
    Recovery, StillOpen, Timing, unpack,
};
pub use rewind::{Rewind, Site};
