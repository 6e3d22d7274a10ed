//! What can go wrong with a guest disk.

use std::io;
use std::path::PathBuf;

/// Why a guest disk could not do what was asked. Paths are those of the guest, without a leading slash, unless said otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiskError {
    /// Nothing has this path in the file system as it was at that point.
    #[error("`{path}` is not on the disk at this point")]
    NotFound {
        /// The path as it was asked for.
        path: String,
    },
    /// A folder was needed, and the path is something else.
    #[error("`{path}` is not a folder")]
    NotAFolder {
        /// The path as it was asked for.
        path: String,
    },
    /// A regular file was needed, and the path is something else.
    #[error("`{path}` is not a regular file")]
    NotAFile {
        /// The path as it was asked for.
        path: String,
    },
    /// The journal has rolled past this point.
    #[error(
        "the journal no longer reaches back to {point} ms; its oldest point is {oldest} ms: ask for that or a newer one"
    )]
    PointGone {
        /// The point that was asked for, in milliseconds since the epoch.
        point: i64,
        /// The oldest point that can still be read.
        oldest: i64,
    },
    /// The guest's live folder can't be read.
    #[error("can't read the guest's folder {}: {source}", path.display())]
    Folder {
        /// The folder, on the host.
        path: PathBuf,
        /// What the host said.
        source: io::Error,
    },
    /// The changes don't fit into the image. It was left as it was; free space in the guest's folder, and the next sync writes them.
    #[error(
        "the guest's changes don't fit on its disk of {capacity} bytes ({reason}); nothing was written, remove files from the guest's folder"
    )]
    Full {
        /// Size of the image in bytes.
        capacity: u64,
        /// What ran out.
        reason: String,
    },
    /// The store (image or journal) can't be read or written.
    #[error("can't {action} the disk's image or journal: {source}")]
    Store {
        /// What was being done.
        action: &'static str,
        /// What the host said.
        source: io::Error,
    },
    /// The ext4 file system inside the image refused an operation.
    #[error("can't {action}: the image's file system says: {source}")]
    Image {
        /// What was being done, to what.
        action: String,
        /// What the file system said.
        source: fs_ext4::Error,
    },
    /// A sync failed and its changes could not be taken back either: the image is in an unknown state and is not used any more.
    #[error(
        "the disk's image is unusable since a sync failed and could not be taken back: {reason}; create the disk anew"
    )]
    Broken {
        /// What failed.
        reason: String,
    },
}

impl DiskError {
    pub(super) fn store(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Store { action, source }
    }

    pub(super) fn image(action: impl Into<String>) -> impl FnOnce(fs_ext4::Error) -> Self {
        move |source| Self::Image {
            action: action.into(),
            source,
        }
    }
}

impl From<DiskError> for io::Error {
    fn from(error: DiskError) -> Self {
        let kind = match &error {
            DiskError::NotFound { .. } => io::ErrorKind::NotFound,
            DiskError::NotAFolder { .. } => io::ErrorKind::NotADirectory,
            DiskError::Full { .. } => io::ErrorKind::StorageFull,
            DiskError::Folder { source, .. } | DiskError::Store { source, .. } => source.kind(),
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}
