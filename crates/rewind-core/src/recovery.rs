//! FLR of files and folders from a checkpoint, after a human has agreed to exactly that.
mod contents;
mod destination;
mod download;
mod fetch;
mod folders;
mod in_guest;
mod interrupted;
mod leftovers;
mod look;
mod mounting;
mod orphans;
mod outcome;
mod path;
mod pattern;
mod plan;
mod preview;
mod resolve;
mod run;
mod scratch;
mod session;
pub mod unpack;

use crate::guest::Restore;
pub(crate) use destination::unusable;
pub(crate) use fetch::sha256;
pub(crate) use leftovers::close_interrupted;
pub(crate) use look::{Looks, Permission, permission};
pub(crate) use mounting::{Ended, free, while_mounted};
pub(crate) use orphans::{claims, clean_up_beside, clean_up_orphans, left_mounted, mounts};
pub use outcome::{Outcome, RecoveredFile, RecoveredPath, Recovery, StillOpen, Timing};
pub use path::GuestPath;
pub(crate) use path::told_path;
pub(crate) use plan::{Subject, make};
pub(crate) use preview::not_carried;
pub(crate) use resolve::{Folders, Mounted, name_of, resolve};
pub(crate) use run::recover;
pub(crate) use scratch::Scratch;
use serde::{Deserialize, Serialize};
pub(crate) use session::Mount;
use std::{path::PathBuf, time::Duration};

/// What is to be recovered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoverRequest {
    /// Name, hostname, address or identifier of the VM.
    pub vm: String,
    /// What of its disks.
    pub paths: Paths,
    /// Id or tag.
    pub checkpoint: String,
    /// Name or identifier of the VPG whose checkpoint is meant.
    pub vpg: Option<String>,
    /// Where it lands on this host, where it does.
    pub destination: Destination,
    /// Back into the guest instead of to this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<Restore>,
}

/// Files and folders: POSIX, Windows, or the ZVM's own form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Paths {
    /// Exactly this one.
    One(String),
    /// Each of these. One with `*`, `?`, `[…]` or `{…}` in it is a pattern, unless something of just that name is there. A pattern
    /// matches name by name; `**` stands for any number of folders.
    Several(Vec<String>),
}

impl Paths {
    /// As a person writes them: a single one without wildcards is exactly this one.
    #[must_use]
    pub fn of(paths: Vec<String>) -> Self {
        match <[String; 1]>::try_from(paths) {
            Ok([one]) if !one.contains(pattern::WILDCARDS) => Self::One(one),
            Ok([one]) => Self::Several(vec![one]),
            Err(several) => Self::Several(several),
        }
    }
}

/// Where it lands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Destination {
    /// From MCP: relative to `recover_dir`, cannot leave it. An existing folder, or a path that ends in `/`, gets the file under
    /// its own name; any other path becomes the file or folder itself, or, of several paths, the folder that gets them. None:
    /// `<vm>/<checkpoint>/<path in the guest>`.
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
