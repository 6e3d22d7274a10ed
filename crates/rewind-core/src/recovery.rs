//! FLR of a file or folder from a checkpoint, after a human has confirmed.
mod contents;
mod destination;
mod download;
mod fetch;
mod folders;
mod leftovers;
mod orphans;
mod path;
mod plan;
mod resolve;
mod run;
mod session;
pub mod unpack;

pub(crate) use destination::unusable;
pub(crate) use orphans::{claims, clean_up_beside, clean_up_orphans, left_mounted, mounts};
pub use path::GuestPath;
pub(crate) use plan::plan;
pub(crate) use run::recover;
use schemars::JsonSchema;
use serde::Serialize;
use std::{path::PathBuf, time::Duration};

/// `zerto_recover_file`.
#[derive(Clone, Debug)]
pub struct RecoverRequest {
    /// Name, hostname, address or identifier of the VM.
    pub vm: String,
    /// POSIX, Windows, or the ZVM's own form.
    pub path: String,
    /// Id or tag.
    pub checkpoint: String,
    /// Name or identifier of the VPG whose checkpoint is meant.
    pub vpg: Option<String>,
    /// Where it lands.
    pub destination: Destination,
    /// Whether a human has confirmed exactly what the `confirmation_required` error said.
    pub confirmed: bool,
}

/// Where it lands.
#[derive(Clone, Debug)]
pub enum Destination {
    /// From MCP: relative to `recover_dir`, cannot leave it. An existing folder, or a path that ends in `/`, gets the file under
    /// its own name; any other path becomes the file or folder itself. None: `<vm>/<checkpoint>/<path in the
    /// guest>`.
    InRecoverDir(Option<String>),
    /// A person's choice at the CLI: any folder, made where it is missing.
    Folder(PathBuf),
}

/// How long a recovery waits for the ZVM.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Until a checkpoint is mounted; real mounts take tens of seconds (default 10 min).
    pub mount: Duration,
    /// Until a session that was asked for is listed (default 30 s).
    pub appear: Duration,
    /// Until a session that is being unmounted is gone (default 90 s).
    pub unmount: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            mount: Duration::from_secs(10 * 60),
            appear: Duration::from_secs(30),
            unmount: Duration::from_secs(90),
        }
    }
}

/// A file or folder that is complete at its destination.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Recovery {
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
    /// The ZVM's path: it names the partition.
    pub guest_path: String,
    /// Whether it is a folder.
    pub is_folder: bool,
    /// Where it is on this host.
    pub local_path: String,
    /// Of all files together.
    pub bytes: u64,
    /// One for a file; every file of a folder, by relative path.
    pub files: Vec<RecoveredFile>,
    /// Members that FLR does not carry (links) or that were left out, with the reason.
    pub skipped: Vec<String>,
    /// What else there is to know.
    pub notes: Vec<String>,
    /// The FLR session, where it could not be unmounted: until it is, it blocks other restores of this VM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub still_open: Option<StillOpen>,
    /// Seconds spent in each step.
    pub timing: Timing,
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
    /// Until the checkpoint was mounted.
    pub mount: f64,
    /// Finding the path on the mounted disks.
    pub resolve: f64,
    /// Downloading, checking and placing.
    pub download: f64,
    /// Until the session was gone.
    pub unmount: f64,
    /// All of it.
    pub total: f64,
}
