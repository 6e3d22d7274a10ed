//! The tagged checkpoints of a VM, parsed, newest first; and which checkpoint is meant by an id or a tag.
mod bisect;
mod list;
mod lookup;
mod window;

use crate::ledger::{Known, ListedPin, RecordedGuard, RecordedRecovery};
pub(crate) use list::{DAY, OFF, begins, list, shown_tag};
pub(crate) use lookup::{Chosen, Wanted, choose, latest};
use schemars::JsonSchema;
use serde::Serialize;
pub(crate) use window::{Backwards, around, as_shown, earlier, expected_until, later};

/// The tagged checkpoints of a VM in the journals of all its VPGs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CheckpointList {
    /// The name that the ZVM reports.
    pub vm: String,
    /// The ZVM's identifier of the VM.
    pub vm_identifier: String,
    /// How far back was looked (ISO 8601, UTC, the ZVM's clock).
    pub since: String,
    /// Newest first.
    pub checkpoints: Vec<ListedCheckpoint>,
    /// More may exist: the limit was reached.
    pub truncated: bool,
    /// What the times mean.
    pub note: String,
}

/// One tagged checkpoint.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ListedCheckpoint {
    /// Name of the VPG.
    pub vpg: String,
    /// The ZVM's identifier of the VPG.
    pub vpg_identifier: String,
    /// Id of the checkpoint; unique only within its VPG.
    pub checkpoint: String,
    /// ISO 8601, UTC, the ZVM's clock.
    pub time: String,
    /// As the journal has it.
    pub tag: String,
    /// Whether the tag is one of ours; then its fields follow.
    pub ours: bool,
    /// Who made the guard.
    pub agent: Option<String>,
    /// What was about to be changed.
    pub action: Option<String>,
    /// The VM that the tag names.
    pub tagged_vm: Option<String>,
    /// The change that the guard belongs to.
    pub change_id: Option<String>,
    /// The time in the tag (ISO 8601, UTC).
    pub tagged_at: Option<String>,
    /// Zerto's suffix is on the tag: it is or was mounted for file-level restore.
    pub used_for_flr: bool,
    /// Until when it is expected to stay in the journal: an estimate.
    pub expected_until: Option<String>,
    /// The guard that it belongs to, as this user's ledger knows it.
    pub guard: Option<RecordedGuard>,
    /// How many recoveries from it this user's ledger knows.
    pub recovery_count: usize,
    /// Those recoveries, oldest first; of many, the newest.
    pub recoveries: Vec<RecordedRecovery>,
}

impl CheckpointList {
    /// Joins the journal with the ledger.
    pub(crate) fn join(&mut self, known: Vec<Known>) {
        for (checkpoint, known) in self.checkpoints.iter_mut().zip(known) {
            checkpoint.guard = known.guard;
            checkpoint.recovery_count = known.recoveries.len();
            checkpoint.recoveries = known.recoveries;
        }
    }

    /// Keeps the newest `most` recoveries of each checkpoint; how many there are is still told.
    pub fn bound_recoveries(&mut self, most: usize) {
        for checkpoint in &mut self.checkpoints {
            let older = checkpoint.recoveries.len().saturating_sub(most);
            checkpoint.recoveries.drain(..older);
        }
    }

    /// What the ledger is asked for.
    pub(crate) fn pins(&self) -> Vec<ListedPin> {
        self.checkpoints
            .iter()
            .map(|checkpoint| ListedPin {
                vpg_identifier: checkpoint.vpg_identifier.clone(),
                checkpoint_id: checkpoint.checkpoint.clone(),
                tag: checkpoint.tag.clone(),
            })
            .collect()
    }
}
