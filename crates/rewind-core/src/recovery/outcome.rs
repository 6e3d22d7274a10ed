//! What became of a recovery, path by path.
use crate::{Error, guest::RestoredFile, text};
use schemars::JsonSchema;
use serde::Serialize;

/// How many of what was left out an error names.
const FIRST: usize = 3;

/// What a plan came to.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Recovery {
    /// The plan that was carried out.
    pub plan_id: String,
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
    /// Where one path was asked for, as `path`: what became of it.
    #[serde(flatten)]
    pub one: Option<RecoveredPath>,
    /// Where several were asked for, as `paths`: what became of each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<RecoveredPath>,
    /// The tag of the guard that was taken before something in the guest was replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard_tag: Option<String>,
    /// What else there is to know.
    pub notes: Vec<String>,
    /// The FLR session, where it could not be unmounted: until it is, it blocks other restores of this VM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub still_open: Option<StillOpen>,
    /// Seconds spent in each step.
    pub timing: Timing,
    /// Where not every path was recovered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub error: Option<Error>,
}

impl Recovery {
    /// Each path.
    pub fn all(&self) -> impl Iterator<Item = &RecoveredPath> {
        self.one.iter().chain(&self.paths)
    }
}

/// What became of one path; never rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is on this host, complete and compared with what the ZVM lists. The VM is as it was.
    Placed,
    /// A folder is on this host, without some of what is in it: `skipped` says what, and why. The VM is as it was.
    Incomplete,
    /// It is at its place in the guest, and was compared there.
    Restored,
    /// It is next to the present file in the guest, and was compared there.
    Beside,
    /// Exactly this content was in the guest already; nothing was written.
    Unchanged,
    /// Something else has appeared at its place, and stays there.
    Conflict,
    /// It was not recovered.
    Failed,
    /// It was not recovered, because the checkpoint has left the journal.
    Expired,
}

impl Outcome {
    /// Whether what was agreed to is so now.
    #[must_use]
    pub const fn is_recovered(self) -> bool {
        match self {
            Self::Placed | Self::Restored | Self::Beside | Self::Unchanged => true,
            Self::Incomplete | Self::Conflict | Self::Failed | Self::Expired => false,
        }
    }

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Placed => "placed",
            Self::Incomplete => "incomplete",
            Self::Restored => "restored",
            Self::Beside => "beside",
            Self::Unchanged => "unchanged",
            Self::Conflict => "conflict",
            Self::Failed => "failed",
            Self::Expired => "expired",
        }
    }
}

/// A file or folder, and what became of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RecoveredPath {
    /// Its path in the guest, as it was agreed to.
    pub path: String,
    /// What became of it.
    pub outcome: Outcome,
    /// Why it was not recovered. What an incomplete folder lacks is in `skipped`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The ZVM's path: it names the partition. None where it was not found.
    pub guest_path: Option<String>,
    /// Whether it is a folder.
    pub is_folder: bool,
    /// Where it is on this host, once it is placed.
    pub local_path: Option<String>,
    /// Of all files together.
    pub bytes: u64,
    /// One for a file; every file of a folder, by relative path.
    pub files: Vec<RecoveredFile>,
    /// Members that FLR does not carry (links) or that were left out, with the reason.
    pub skipped: Vec<String>,
    /// What was written in the guest, and where what it replaced is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restored: Option<RestoredFile>,
}

impl RecoveredPath {
    /// How much of an incomplete folder was left out, and what first.
    pub(super) fn left_out(&self) -> String {
        let count = self.skipped.len();
        let first: Vec<_> = self
            .skipped
            .iter()
            .take(FIRST)
            .map(String::as_str)
            .collect();
        let more = match count.saturating_sub(FIRST) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let verb = if count == 1 { "was" } else { "were" };
        format!(
            "of folder {}, {count} {verb} left out ({}{more})",
            text::named_exactly(&self.path, 300),
            first.join("; ")
        )
    }
}

/// An FLR session of ours that is still mounted.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StillOpen {
    /// The ZVM's id of the session.
    pub session: String,
    /// Why it could not be unmounted, in the ZVM's words where it said something.
    pub why: String,
    /// What to do.
    pub next: String,
}

impl std::fmt::Display for StillOpen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the FLR session {} is still mounted and blocks other restores of this VM: {}.",
            self.session,
            self.why.trim_end_matches('.')
        )
    }
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RecoveredFile {
    /// Relative to the folder; of a single file, its name.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its content, hexadecimal.
    pub sha256: String,
}

/// Seconds spent in each step.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Timing {
    /// Finding the VM and the checkpoint.
    pub find: f64,
    /// Reaching the guest, and guarding the VM where something is replaced there.
    #[serde(skip_serializing_if = "is_zero")]
    pub guard: f64,
    /// Until the checkpoint was mounted.
    pub mount: f64,
    /// Finding the path on the mounted disks.
    pub resolve: f64,
    /// Downloading, checking and placing.
    pub download: f64,
    /// Until the session was gone.
    pub unmount: f64,
    /// Writing and comparing in the guest.
    #[serde(skip_serializing_if = "is_zero")]
    pub write: f64,
    /// All of it.
    pub total: f64,
}

fn is_zero(seconds: &f64) -> bool {
    *seconds == 0.0
}
