//! File-level restore: sessions, and what is on their disks.

use std::{borrow::Cow, fmt};

use jiff::Timestamp;
use serde::Deserialize;

use super::CheckpointId;
use crate::decode::{self, Maybe, Rows, Scalar};

/// `GET /v1/flrs`.
#[derive(Clone, Debug)]
pub struct FlrSession {
    /// Its id.
    pub id: FlrSessionId,
    /// How it stands.
    pub status: FlrStatus,
    /// The ZVM's own word; empty where it said none.
    pub status_text: String,
    /// The VM that was mounted.
    pub vm_identifier: Option<String>,
    /// The VPG whose journal was mounted.
    pub vpg_identifier: Option<String>,
    /// The checkpoint that was mounted.
    pub checkpoint: Option<CheckpointId>,
    /// When.
    pub mount_time: Option<Timestamp>,
}

/// `<guid>` or `<guid>.<siteGuid>`: the same session (compare with [`FlrSessionId::same_as`]).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FlrSessionId(pub String);

impl FlrSessionId {
    /// True for the same session, with or without the site's part, in any case.
    pub fn same_as(&self, other: &Self) -> bool {
        let split = |id: &str| match id.split_once('.') {
            Some((session, site)) => (
                session.to_ascii_lowercase(),
                Some(site.to_ascii_lowercase()),
            ),
            None => (id.to_ascii_lowercase(), None),
        };
        let (session, site) = split(&self.0);
        let (other_session, other_site) = split(&other.0);
        session == other_session && (site.is_none() || other_site.is_none() || site == other_site)
    }
}

/// On one bounded, readable line.
impl fmt::Display for FlrSessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        decode::line(&self.0).fmt(f)
    }
}

/// How a session stands. The vendor's list of words is not complete; what is unknown is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlrStatus {
    /// Not yet: `MountInProgress` and every unknown word.
    Pending,
    /// `MountCompletedSuccessfully`, `MountReady`.
    Ready,
    /// Ends with `Failed`.
    Failed,
    /// Begins with `Unmount`.
    Unmounting,
}

impl FlrStatus {
    fn of(word: &str) -> Self {
        let word = word.trim().to_ascii_lowercase();
        match word.as_str() {
            "mountcompletedsuccessfully" | "mountready" => Self::Ready,
            word if word.ends_with("failed") => Self::Failed,
            word if word.starts_with("unmount") => Self::Unmounting,
            _ => Self::Pending,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(crate) struct FlrSessionWire {
    #[serde(alias = "flrSessionIdentifier")]
    flr_session_identifier: Scalar,
    #[serde(alias = "flrSessionStatus")]
    flr_session_status: Scalar,
    #[serde(alias = "vmIdentifier")]
    vm_identifier: Scalar,
    #[serde(alias = "vpgIdentifier")]
    vpg_identifier: Scalar,
    #[serde(alias = "checkpointIdentifier")]
    checkpoint_identifier: Scalar,
    #[serde(alias = "mountTime")]
    mount_time: Scalar,
}

impl FlrSessionWire {
    /// `asked`: the id that was asked for, where the answer may have none.
    pub(crate) fn read(self, asked: Option<&FlrSessionId>) -> Result<FlrSession, String> {
        let id = self
            .flr_session_identifier
            .text()
            .map(FlrSessionId)
            .or_else(|| asked.cloned())
            .ok_or("the FLR session has no identifier")?;
        let status_text = self.flr_session_status.text().unwrap_or_default();
        Ok(FlrSession {
            id,
            status: FlrStatus::of(&status_text),
            status_text,
            vm_identifier: self.vm_identifier.text(),
            vpg_identifier: self.vpg_identifier.text(),
            checkpoint: self.checkpoint_identifier.unsigned().map(CheckpointId),
            mount_time: self.mount_time.time(),
        })
    }
}

/// One item of a browse answer.
#[derive(Clone, Debug)]
pub struct PathItem {
    /// The ZVM's own, complete (joined with the parent where only a name came), with forward slashes. Echo it back exactly.
    pub path: String,
    /// What it is.
    pub kind: PathKind,
    /// Bytes; None where the ZVM says nothing (links, most folders).
    pub size: Option<u64>,
    /// When it was last written.
    pub modified: Option<Timestamp>,
    /// It can be looked into.
    pub browsable: bool,
    /// It can be downloaded (true where the ZVM says nothing: it decides when asked).
    pub downloadable: bool,
    /// Why it can't be downloaded, in the ZVM's words.
    pub reason: Option<String>,
}

/// The type of a browse item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// `Disk`
    Disk,
    /// `Partition`
    Partition,
    /// `Folder`
    Folder,
    /// `File`
    File,
    /// Any other word (links: not known).
    Other(String),
}

impl PathKind {
    fn of(word: String) -> Self {
        match word.to_ascii_lowercase().as_str() {
            "disk" => Self::Disk,
            "partition" => Self::Partition,
            "folder" => Self::Folder,
            "file" => Self::File,
            _ => Self::Other(word),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(crate) struct BrowseWire {
    #[serde(alias = "mainPathItem")]
    main_path_item: Maybe<PathItemWire>,
    #[serde(alias = "pathItems")]
    path_items: Option<Rows<Maybe<PathItemWire>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct PathItemWire {
    #[serde(alias = "path", alias = "FullPath", alias = "fullPath")]
    path: Scalar,
    #[serde(alias = "type")]
    r#type: Scalar,
    #[serde(alias = "isBrowsable")]
    is_browsable: Scalar,
    #[serde(alias = "sizeInBytes")]
    size_in_bytes: Scalar,
    #[serde(alias = "lastWriteTime")]
    last_write_time: Scalar,
    #[serde(alias = "downloadInformation")]
    download_information: Maybe<DownloadInformationWire>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct DownloadInformationWire {
    #[serde(alias = "isDownloadable")]
    is_downloadable: Scalar,
    #[serde(alias = "additionalInformation")]
    additional_information: Scalar,
}

impl BrowseWire {
    /// The items of one page of `parent`. Those without a path are left out: nothing can be asked about them.
    pub(crate) fn read(self, parent: &str) -> Result<Vec<PathItem>, String> {
        let items = match (self.path_items, self.main_path_item.0) {
            (Some(Rows(items)), _) => items,
            (None, Some(_)) => Vec::new(),
            (None, None) => return Err("the listing has no PathItems".into()),
        };
        Ok(items
            .into_iter()
            .filter_map(|item| item.0?.read(parent))
            .collect())
    }
}

impl PathItemWire {
    fn read(self, parent: &str) -> Option<PathItem> {
        let path = complete(parent, &self.path.text()?);
        let kind = PathKind::of(self.r#type.text().unwrap_or_default());
        let download = self.download_information.0.unwrap_or_default();
        Some(PathItem {
            path,
            size: self.size_in_bytes.unsigned(),
            modified: self.last_write_time.time(),
            browsable: self.is_browsable.flag().unwrap_or(matches!(
                kind,
                PathKind::Disk | PathKind::Partition | PathKind::Folder
            )),
            kind,
            downloadable: download.is_downloadable.flag().unwrap_or(true),
            reason: download.additional_information.text(),
        })
    }
}

/// The whole path of an item of `parent`.
///
/// Paths are complete in the vendor's examples; a ZVM that sends names alone is understood, too. A backslash is a separator
/// only where there is no slash (`\Volume1\Users`, as in a 5.x ZVM): in `partition#0 Ext4/a\b` it belongs to a Linux name.
fn complete(parent: &str, item: &str) -> String {
    let slashed = if item.contains('/') {
        Cow::Borrowed(item)
    } else {
        Cow::Owned(item.replace('\\', "/"))
    };
    let parent = parent.trim_end_matches('/');
    if parent.is_empty() {
        return slashed.into_owned();
    }
    let below = slashed
        .trim_start_matches('/')
        .strip_prefix(parent.trim_start_matches('/'))
        .is_some_and(|rest| rest.starts_with('/'));
    if below {
        slashed.into_owned()
    } else {
        format!("{parent}/{}", item.trim_start_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_is_the_same_with_and_without_its_site() {
        let id = |text: &str| FlrSessionId(text.into());
        assert!(id("2c99.6b4c").same_as(&id("2C99")));
        assert!(id("2c99").same_as(&id("2c99.6b4c")));
        assert!(id("2c99.6b4c").same_as(&id("2c99.6B4C")));
        assert!(!id("2c99.6b4c").same_as(&id("2c99.0000")));
        assert!(!id("2c99").same_as(&id("2c9")));
    }

    #[test]
    fn words_of_a_session() {
        for (word, status) in [
            ("MountCompletedSuccessfully", FlrStatus::Ready),
            ("MountReady", FlrStatus::Ready),
            ("mountready", FlrStatus::Ready),
            ("MountInProgress", FlrStatus::Pending),
            ("NotMounted", FlrStatus::Pending),
            ("SomethingNew", FlrStatus::Pending),
            ("", FlrStatus::Pending),
            ("MountFailed", FlrStatus::Failed),
            ("UnmountFailed", FlrStatus::Failed),
            ("UnmountInProgress", FlrStatus::Unmounting),
        ] {
            assert_eq!(FlrStatus::of(word), status, "{word}");
        }
    }

    #[test]
    fn paths_are_complete_and_slashed() {
        for (parent, item, path) in [
            ("", "partition#0 Ext4", "partition#0 Ext4"),
            ("", "\\Volume1", "/Volume1"),
            ("/Volume1", "\\Volume1\\Users", "/Volume1/Users"),
            (
                "partition#0 Ext4",
                "partition#0 Ext4/etc",
                "partition#0 Ext4/etc",
            ),
            (
                "partition#0 Ext4",
                "/partition#0 Ext4/etc",
                "/partition#0 Ext4/etc",
            ),
            (
                "/partition#0 Ext4",
                "partition#0 Ext4/etc",
                "partition#0 Ext4/etc",
            ),
            ("partition#0 Ext4/", "etc", "partition#0 Ext4/etc"),
            (
                "partition#0 Ext4/etc",
                "hosts",
                "partition#0 Ext4/etc/hosts",
            ),
            ("partition#0 Ext4/etc", "etc", "partition#0 Ext4/etc/etc"),
            ("a", "ab", "a/ab"),
            ("a", "a", "a/a"),
            ("a", "a/b\\c", "a/b\\c"),
            ("a", "b\\c", "a/b\\c"),
            ("a", "/b", "a/b"),
        ] {
            assert_eq!(complete(parent, item), path, "{item} in {parent}");
        }
    }
}
