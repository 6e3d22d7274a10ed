//! Reading the file system as it was at one point.

use std::io::{self, Read};
use std::sync::Arc;

use fs_ext4::inode::Inode;
use fs_ext4::path::EXT4_ROOT_INODE;
use fs_ext4::{Error, Filesystem};
use jiff::Timestamp;

use super::DiskError;
use super::blocks::View;
use super::layout::Layout;

/// The file system of a guest disk as it was at one point. It stays as it is whatever is written or forgotten later.
#[derive(Clone)]
pub struct DiskView {
    blocks: Arc<View>,
    fs: Arc<Filesystem>,
}

impl std::fmt::Debug for DiskView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DiskView")
            .field("blocks", &self.blocks)
            .finish_non_exhaustive()
    }
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A device, a pipe or a socket.
    Other,
}

/// A file, folder or link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name in its folder; empty for the root.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// Size in bytes; of a link, the length of its target.
    pub size: u64,
    /// Permissions with set-user-id, set-group-id and sticky bit (`0o7777`).
    pub mode: u32,
    /// Number of the owner.
    pub uid: u32,
    /// Number of the owning group.
    pub gid: u32,
    /// When it was last read, as far as it was known at its last change.
    pub accessed: Timestamp,
    /// When its content was last changed.
    pub modified: Timestamp,
    /// When its content or attributes were last changed.
    pub changed: Timestamp,
    /// When it was made.
    pub created: Timestamp,
    /// Where a link points to.
    pub link_target: Option<String>,
}

impl DiskView {
    pub(super) fn mount(blocks: View) -> Result<Self, DiskError> {
        let blocks = Arc::new(blocks);
        let device: Arc<dyn fs_ext4::block_io::BlockDevice> = Arc::clone(&blocks) as _;
        let fs = Filesystem::mount(device).map_err(DiskError::image("read the disk"))?;
        Ok(Self {
            blocks,
            fs: Arc::new(fs),
        })
    }

    /// The entry at `path`; `""` and `"/"` are the root. Links are not followed, and `..` is not a way up.
    pub fn entry(&self, path: &str) -> Result<Entry, DiskError> {
        let inode = self.find(path)?;
        let name = names(path).next_back().unwrap_or_default();
        self.describe(inode, name.to_owned(), path)
    }

    /// What is in a folder, in the order of the names, without `.` and `..`. The root has the file system's own `lost+found`.
    pub fn list(&self, folder: &str) -> Result<Vec<Entry>, DiskError> {
        let inode = self.find(folder)?;
        let entries = self.fs.read_dir_ino(inode).map_err(|error| match error {
            Error::NotADirectory => DiskError::NotAFolder {
                path: folder.to_owned(),
            },
            error => failed(folder)(error),
        })?;
        let mut listed = Vec::with_capacity(entries.len());
        for entry in entries {
            let name = String::from_utf8_lossy(&entry.name).into_owned();
            if entry.inode != 0 && name != "." && name != ".." {
                listed.push(self.describe(entry.inode, name, folder)?);
            }
        }
        listed.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(listed)
    }

    /// The content of the regular file at `path`, to be read as a stream.
    pub fn open(&self, path: &str) -> Result<FileReader, DiskError> {
        let inode = self.fs.stat_ino(self.find(path)?).map_err(failed(path))?;
        if !inode.is_file() {
            return Err(DiskError::NotAFile {
                path: path.to_owned(),
            });
        }
        let layout = Layout::of(&self.fs, &inode).map_err(failed(path))?;
        Ok(FileReader {
            blocks: Arc::clone(&self.blocks),
            layout,
            position: 0,
        })
    }

    fn find(&self, path: &str) -> Result<u32, DiskError> {
        let mut inode = EXT4_ROOT_INODE;
        for name in names(path) {
            let missing = || DiskError::NotFound {
                path: path.to_owned(),
            };
            if name == ".." {
                return Err(missing());
            }
            inode = self
                .fs
                .lookup_at(inode, name.as_bytes())
                .map_err(|error| match error {
                    Error::NotFound
                    | Error::NotADirectory
                    | Error::NameTooLong
                    | Error::InvalidArgument(_) => missing(),
                    error => failed(path)(error),
                })?;
        }
        Ok(inode)
    }

    fn describe(&self, number: u32, name: String, path: &str) -> Result<Entry, DiskError> {
        let inode = self.fs.stat_ino(number).map_err(failed(path))?;
        let kind = kind(&inode);
        let link_target = match kind {
            EntryKind::Link => {
                let target = self.fs.read_link_ino(number).map_err(failed(path))?;
                Some(String::from_utf8_lossy(&target).into_owned())
            }
            _ => None,
        };
        Ok(Entry {
            name,
            kind,
            size: inode.size,
            mode: u32::from(inode.mode & 0o7777),
            uid: inode.uid,
            gid: inode.gid,
            accessed: timestamp(inode.atime, inode.atime_nsec),
            modified: timestamp(inode.mtime, inode.mtime_nsec),
            changed: timestamp(inode.ctime, inode.ctime_nsec),
            created: timestamp(inode.crtime, inode.crtime_nsec),
            link_target,
        })
    }
}

/// The names that a path is made of.
fn names(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/')
        .filter(|name| !name.is_empty() && *name != ".")
}

fn kind(inode: &Inode) -> EntryKind {
    if inode.is_file() {
        EntryKind::File
    } else if inode.is_dir() {
        EntryKind::Folder
    } else if inode.is_symlink() {
        EntryKind::Link
    } else {
        EntryKind::Other
    }
}

fn failed(path: &str) -> impl FnOnce(Error) -> DiskError {
    DiskError::image(format!("read `{path}`"))
}

/// Ext4 holds the years 1901 to 2446, which are times in any case; what a broken nanosecond field makes of it is not worth an error.
fn timestamp(seconds: i64, nanoseconds: u32) -> Timestamp {
    i32::try_from(nanoseconds)
        .ok()
        .and_then(|nanoseconds| Timestamp::new(seconds, nanoseconds).ok())
        .unwrap_or_default()
}

/// The content of a file as a stream. Keeps its view alive; takes no memory of its own for the content.
#[derive(Debug)]
pub struct FileReader {
    blocks: Arc<View>,
    layout: Layout,
    position: u64,
}

impl FileReader {
    /// Size of the whole content in bytes.
    pub fn size(&self) -> u64 {
        self.layout.size
    }
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.layout.read(buffer, self.position, |piece, at| {
            self.blocks.read(piece, at)
        })?;
        self.position += read as u64;
        Ok(read)
    }
}
