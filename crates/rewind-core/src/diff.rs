//! What changed between a checkpoint and now: in the guest over SSH, where a way in is configured, else in the journal's latest
//! checkpoint. Nothing is placed anywhere.
mod facts;
mod folder;
mod run;
mod text;

use crate::{StillOpen, text::named_exactly};
use schemars::JsonSchema;
use serde::Serialize;

/// So many of a plan's files and folders are compared at most.
pub const PATHS_COMPARED: usize = 20;

/// `zerto_diff_file`.
#[derive(Clone, Debug)]
pub struct DiffRequest {
    /// Name, hostname, address or identifier of the VM.
    pub vm: String,
    /// POSIX, Windows, or the ZVM's own form.
    pub path: String,
    /// Id or tag.
    pub checkpoint: String,
    /// Name or identifier of the VPG whose checkpoint is meant.
    pub vpg: Option<String>,
}

/// What changed since a checkpoint.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FileDiff {
    /// The name that the ZVM reports.
    pub vm: String,
    /// Name of the VPG.
    pub vpg: String,
    /// Id of the checkpoint.
    pub checkpoint: String,
    /// ISO 8601, UTC, the ZVM's clock.
    pub checkpoint_time: String,
    /// The checkpoint's tag, if it has one.
    pub tag: Option<String>,
    /// What it is compared with.
    pub now: Now,
    /// The path, as it was asked for.
    pub path: String,
    /// What happened to it since the checkpoint.
    pub change: Change,
    /// What it is.
    pub kind: Kind,
    /// It at the checkpoint.
    pub then: Option<Facts>,
    /// It now.
    pub current: Option<Facts>,
    /// Of text: a unified diff, from the checkpoint to now. Characters that can't be seen are escaped.
    pub unified: Option<String>,
    /// Of a folder.
    pub folder: Option<FolderDiff>,
    /// What else there is to know, such as what was left out.
    pub notes: Vec<String>,
    /// The FLR session, where it could not be unmounted: until it is, it blocks other restores of this VM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub still_open: Option<StillOpen>,
    /// From the request to the answer.
    pub seconds: f64,
}

/// What the checkpoint is compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "source")]
pub enum Now {
    /// The guest itself, over SSH.
    Guest {
        /// The way in, as the configuration has it.
        guest: String,
    },
    /// The journal's latest checkpoint of the same VPG: what was written since is not in it.
    LatestCheckpoint {
        /// Its id.
        checkpoint: String,
        /// ISO 8601, UTC, the ZVM's clock.
        time: String,
    },
}

impl std::fmt::Display for Now {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Guest { guest } => {
                write!(
                    f,
                    "the guest itself, over SSH ({})",
                    named_exactly(guest, 200)
                )
            }
            Self::LatestCheckpoint { checkpoint, time } => write!(
                f,
                "the journal's latest checkpoint, {checkpoint} of {time}; what was written since is not in it"
            ),
        }
    }
}

/// What happened since the checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The same content; of a folder, the same names, sizes and times.
    Unchanged,
    /// Something differs.
    Changed,
    /// It is there now and was not.
    Added,
    /// It was there and is gone.
    Removed,
    /// It is too large to be read for this, and its size is the same; or a folder too large to be listed whole, where what was listed is
    /// the same.
    NotCompared,
}

/// What it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A file of text, of a size that can be shown.
    Text,
    /// Any other file.
    Data,
    /// A folder.
    Folder,
    /// A file and a folder.
    Different,
}

/// A file at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Facts {
    /// Its size; of a folder, none.
    pub bytes: Option<u64>,
    /// When it was last written (ISO 8601, UTC).
    pub modified: Option<String>,
    /// SHA-256 of its content, hexadecimal; none where it was not read.
    pub sha256: Option<String>,
}

/// What changed below a folder. Lists may be shortened; the numbers are not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FolderDiff {
    /// There now, and not at the checkpoint.
    pub added: Vec<String>,
    /// There at the checkpoint, and gone.
    pub removed: Vec<String>,
    /// There then and now, with another size, time or kind. Contents are not read.
    pub changed: Vec<String>,
    /// How many were added.
    pub added_count: usize,
    /// How many were removed.
    pub removed_count: usize,
    /// How many were changed.
    pub changed_count: usize,
    /// How many are the same by name, size and time.
    pub unchanged_count: usize,
}
