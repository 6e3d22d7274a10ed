//! The guest's live folder as it is right now.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{DiskError, SkipReason, Skipped};

/// A file whose last change is this close to the moment it was looked at may be changed once more without a trace in its times: they
/// move in steps of some milliseconds. It is compared byte for byte at the next sync.
const RACY: Duration = Duration::from_millis(100);

/// The file system's own folder in the root of every image.
pub(super) const LOST_AND_FOUND: &str = "lost+found";

/// Everything in the folder by its path without a leading slash; the folder itself is "". A parent comes before its children.
pub(super) type Tree = BTreeMap<String, Found>;

/// What a walk has found.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pub(super) tree: Tree,
    /// Folders whose content can't be told.
    pub(super) unreadable: Vec<String>,
    pub(super) skipped: Vec<Skipped>,
}

/// One entry of the live folder.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) kind: Kind,
    pub(super) stat: Stat,
    /// Whether the times would tell a change that came after this look.
    pub(super) settled: bool,
    // What follows is carried along, but a change of it is no reason to write.
    pub(super) accessed: Time,
    pub(super) created: Time,
    /// Bytes that the file takes on the host.
    pub(super) allocated: u64,
}

/// What is carried and differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
    /// A symbolic link with its target.
    Link(Vec<u8>),
}

/// What tells that an entry was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) size: u64,
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) modified: Time,
    pub(super) changed: Time,
}

/// Seconds and nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time {
    pub(super) seconds: i64,
    pub(super) nanoseconds: u32,
}

/// Looks at everything in `folder`. Links are never followed.
pub(super) fn walk(folder: &Path) -> Result<Walk, DiskError> {
    let unreadable = |source| DiskError::Folder {
        path: folder.to_owned(),
        source,
    };
    let mut walk = Walk::default();
    let now = SystemTime::now();
    let root = fs::metadata(folder).map_err(unreadable)?;
    if !root.is_dir() {
        return Err(unreadable(io::ErrorKind::NotADirectory.into()));
    }
    walk.tree
        .insert(String::new(), Found::new(Kind::Folder, &root, now));
    let mut folders = walk.folder(folder, "", now).map_err(unreadable)?;
    while let Some(path) = folders.pop() {
        match walk.folder(&folder.join(&path), &path, now) {
            Ok(more) => folders.extend(more),
            // It was removed meanwhile; the next walk knows.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                walk.skip(path.clone(), SkipReason::Unreadable(error.to_string()));
                walk.unreadable.push(path);
            }
        }
    }
    Ok(walk)
}

/// Opens the file that the walk has found at `path` and nothing else: `None` if something else is there by now.
pub(super) fn open(path: &Path, found: &Found) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        // A pipe that has taken the file's place must not keep us waiting.
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    let stat = Stat::of(&file.metadata()?);
    Ok((stat.device == found.stat.device && stat.inode == found.stat.inode).then_some(file))
}

/// Whether nothing tells a change between two walks.
pub(super) fn is_like(tree: &Tree, other: &Tree) -> bool {
    tree.len() == other.len()
        && tree
            .iter()
            .zip(other)
            .all(|(one, two)| one.0 == two.0 && one.1.is_like(two.1))
}

/// The path's parent and its last name.
pub(super) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

impl Walk {
    /// Takes in what is right in one folder, and returns the folders among it.
    fn folder(&mut self, folder: &Path, path: &str, now: SystemTime) -> io::Result<Vec<String>> {
        let mut folders = Vec::new();
        let entries = fs::read_dir(folder)?;
        // The folder must not have become a link that leads elsewhere. That of the whole disk may be one.
        if !path.is_empty() && !fs::symlink_metadata(folder)?.is_dir() {
            return Err(io::ErrorKind::NotFound.into());
        }
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let below = |name: &str| {
                if path.is_empty() {
                    name.to_owned()
                } else {
                    format!("{path}/{name}")
                }
            };
            let Some(name) = name.to_str() else {
                self.skip(below(&name.to_string_lossy()), SkipReason::NameNotUtf8);
                continue;
            };
            let path = below(name);
            if path == LOST_AND_FOUND {
                self.skip(path, SkipReason::Reserved);
                continue;
            }
            // Of the entry itself: links are not followed.
            match entry
                .metadata()
                .and_then(|metadata| Ok((kind(&entry.path(), &metadata)?, metadata)))
            {
                Ok((Some(kind), metadata)) => {
                    if kind == Kind::Folder {
                        folders.push(path.clone());
                    }
                    self.tree.insert(path, Found::new(kind, &metadata, now));
                }
                Ok((None, _)) => self.skip(path, SkipReason::Special),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => self.skip(path, SkipReason::Unreadable(error.to_string())),
            }
        }
        Ok(folders)
    }

    fn skip(&mut self, path: String, reason: SkipReason) {
        self.skipped.push(Skipped { path, reason });
    }
}

/// Everything below the folder `path`.
pub(super) fn below<'a, T>(
    tree: &'a BTreeMap<String, T>,
    path: &str,
) -> impl Iterator<Item = (&'a String, &'a T)> {
    let prefix = if path.is_empty() {
        String::new()
    } else {
        format!("{path}/")
    };
    tree.range(prefix.clone()..)
        .skip_while(|(path, _)| path.is_empty())
        .take_while(move |(path, _)| path.starts_with(&prefix))
}

fn kind(path: &Path, metadata: &Metadata) -> io::Result<Option<Kind>> {
    let kind = metadata.file_type();
    Ok(if kind.is_file() {
        Some(Kind::File)
    } else if kind.is_dir() {
        Some(Kind::Folder)
    } else if kind.is_symlink() {
        Some(Kind::Link(target(path)?))
    } else {
        None
    })
}

#[cfg(unix)]
fn target(path: &Path) -> io::Result<Vec<u8>> {
    Ok(std::os::unix::ffi::OsStringExt::into_vec(
        fs::read_link(path)?.into_os_string(),
    ))
}

#[cfg(not(unix))]
fn target(path: &Path) -> io::Result<Vec<u8>> {
    Ok(fs::read_link(path)?
        .to_string_lossy()
        .into_owned()
        .into_bytes())
}

impl Found {
    fn new(kind: Kind, metadata: &Metadata, now: SystemTime) -> Self {
        let stat = Stat::of(metadata);
        let now = Time::from(now);
        let settled = kind != Kind::File || now.since(stat.changed) > RACY;
        Self {
            kind,
            settled,
            accessed: metadata.accessed().map_or(stat.modified, Time::from),
            created: metadata.created().map_or(stat.modified, Time::from),
            allocated: allocated(metadata),
            stat,
        }
    }

    /// Whether nothing tells a change between two looks.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.stat == other.stat && self.kind == other.kind
    }
}

impl Stat {
    #[cfg(unix)]
    pub(super) fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        let time = |seconds, nanoseconds| Time {
            seconds,
            nanoseconds: u32::try_from(nanoseconds).unwrap_or(0),
        };
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            mode: metadata.mode(),
            uid: metadata.uid(),
            gid: metadata.gid(),
            modified: time(metadata.mtime(), metadata.mtime_nsec()),
            changed: time(metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    #[cfg(not(unix))]
    pub(super) fn of(metadata: &Metadata) -> Self {
        let modified = metadata.modified().map_or(
            Time {
                seconds: 0,
                nanoseconds: 0,
            },
            Time::from,
        );
        let mode = match (metadata.is_dir(), metadata.permissions().readonly()) {
            (true, _) => 0o755,
            (false, true) => 0o444,
            (false, false) => 0o644,
        };
        Self {
            device: 0,
            inode: 0,
            size: metadata.len(),
            mode,
            uid: 0,
            gid: 0,
            modified,
            changed: modified,
        }
    }
}

#[cfg(unix)]
fn allocated(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(metadata).saturating_mul(512)
}

#[cfg(not(unix))]
fn allocated(metadata: &Metadata) -> u64 {
    metadata.len()
}

impl Time {
    /// The distance between two times, whichever comes first.
    fn since(self, other: Self) -> Duration {
        let nanoseconds =
            |time: Self| i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanoseconds);
        let distance = nanoseconds(self).abs_diff(nanoseconds(other));
        u64::try_from(distance).map_or(Duration::MAX, Duration::from_nanos)
    }
}

impl From<SystemTime> for Time {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Self {
                seconds: after.as_secs().cast_signed(),
                nanoseconds: after.subsec_nanos(),
            },
            Err(before) => {
                let before = before.duration();
                let up = u32::from(before.subsec_nanos() > 0);
                Self {
                    seconds: -before.as_secs().cast_signed() - i64::from(up),
                    nanoseconds: (1_000_000_000 - before.subsec_nanos()) % 1_000_000_000,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_the_epoch_count_backwards_with_nanoseconds_forwards() {
        for (before, seconds, nanoseconds) in [
            (Duration::from_millis(1_500), -2, 500_000_000),
            (Duration::from_secs(2), -2, 0),
            (Duration::from_nanos(1), -1, 999_999_999),
        ] {
            let time = Time::from(UNIX_EPOCH - before);
            assert_eq!(
                time,
                Time {
                    seconds,
                    nanoseconds
                }
            );
        }
    }
}
