//! File-level restore: sessions, and what can be downloaded from them.

use crate::guest::Volume;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Mounting,
    Mounted,
    MountFailed,
    Unmounting,
    UnmountFailed,
}

pub(crate) struct Session {
    pub(crate) guid: String,
    /// `<guid>.<siteGuid>`.
    pub(crate) id: String,
    /// Index of the VM.
    pub(crate) vm: usize,
    /// Index of the VPG.
    pub(crate) vpg: usize,
    pub(crate) checkpoint: u64,
    /// By the ZVM's clock of that moment: what is written down does not move when a clock is set.
    pub(crate) mounted_at: i64,
    pub(crate) status: Status,
    /// What is mounted. They stay as they are while the journal moves on.
    pub(crate) volumes: Vec<Volume>,
    pub(crate) mount_task: String,
    pub(crate) unmount_task: Option<String>,
    /// Downloads that are running.
    pub(crate) running: u32,
}

/// What a download URL stands for.
#[derive(Clone)]
pub(crate) struct Download {
    /// GUID of the session.
    pub(crate) session: String,
    pub(crate) expires: i64,
    pub(crate) items: Vec<Item>,
}

/// A file or folder to download.
#[derive(Clone)]
pub(crate) struct Item {
    pub(crate) volume: Volume,
    /// Path on the volume, without a leading slash; empty for its root.
    pub(crate) path: String,
    /// Its own name: the last component.
    pub(crate) name: String,
    /// Size of a file; nothing for a folder.
    pub(crate) size: Option<u64>,
}
