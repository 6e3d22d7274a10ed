//! Guest disks: a live folder, a real ext4 image, and a block journal between them.
//!
//! A [`GuestDisk`] is one partition of one guest. Its live folder is edited by anyone with any program. [`GuestDisk::sync`] compares the
//! folder with what was written last and writes the differences into the image's ext4 file system; the blocks that this changes
//! are kept in a journal, so that [`GuestDisk::at`] reads the file system as it was at any point that the journal still reaches.
//!
//! # What is carried
//!
//! - Regular files of any size that fits, byte for byte. Only blocks that differ are written, so a change of one byte in a large
//!   file costs one block in the journal. A file that was moved is moved in the image. Holes of 4 MiB and more stay holes in what is
//!   new of a file; smaller ones become zeros.
//! - Folders, and symbolic links with any target that the host allows. Names in any UTF-8 of up to 255 bytes.
//! - Owner, group, mode (with set-user-id, set-group-id and sticky bit), and the times of modification, change and creation in nanoseconds.
//!   The time of access is as of the entry's last change: reading a file is no change, and a sync reads files itself.
//!
//! # What is not
//!
//! - Hard links become separate files. Extended attributes and ACLs are left out.
//! - Devices, pipes, sockets, names that are not UTF-8, and a `lost+found` in the root (the image has its own) are skipped, and so is what
//!   can't be read. [`SyncReport::skipped`] names them.
//! - The host's folder is not frozen: a file that changes while it is read is written as it was read, and again at the next sync.
//!   Crash-consistent, as a snapshot of a running machine is.
//!
//! # How
//!
//! The image is made and written by `rust-fs-ext4`, through a block device that saves the earlier content of every block before it is
//! overwritten. A failed sync is taken back through the same journal, so the image is clean at every point. Reading walks a file's
//! extents and copies long pieces straight from image and journal. All calls block; none needs root.
//!
//! Entries are added to a folder by looking through it, so filling one takes time with the square of their number: 5,000 take about a
//! second, 20,000 a quarter of a minute.

mod attributes;
mod blocks;
mod buffer;
mod content;
mod error;
mod features;
mod layout;
mod plan;
mod positioned;
mod runs;
mod tree;
mod view;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use error::DiskError;
pub use view::{DiskView, Entry, EntryKind, FileReader};

use blocks::BlockStore;
use buffer::WriteBuffer;
use tree::Tree;
use write::Image;

/// Bytes in a block of the image's file system and of the journal.
const BLOCK: usize = 4096;

const ZEROS: [u8; BLOCK] = [0; BLOCK];

/// How to make a disk.
#[derive(Clone, Debug)]
pub struct DiskOptions {
    /// Size of the image in bytes, rounded down to whole blocks. The image file is sparse: it takes what is in it.
    pub size: u64,
    /// Label of the file system, at most 16 bytes.
    pub label: String,
}

impl Default for DiskOptions {
    /// 4 GiB without a label.
    fn default() -> Self {
        Self {
            size: 4 << 30,
            label: String::new(),
        }
    }
}

/// What a sync has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncReport {
    /// Whether the image was changed.
    pub changed: bool,
    /// Entries that were made, changed, moved or removed in the image.
    pub entries_written: usize,
    /// Blocks of the image (4096 bytes each) that were changed and journalled.
    pub blocks_written: u64,
    /// What is in the folder and not carried.
    pub skipped: Vec<Skipped>,
}

/// Something in the live folder that is not in the image, or not as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its path in the folder.
    pub path: String,
    /// Why.
    pub reason: SkipReason,
}

/// Why something was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// Its name is not UTF-8.
    NameNotUtf8,
    /// It is a device, a pipe or a socket.
    Special,
    /// It has the place of the file system's own `lost+found`.
    Reserved,
    /// The host did not let it be read; what the image had of it stays.
    Unreadable(String),
}

/// One partition of one guest.
#[derive(Debug)]
pub struct GuestDisk {
    folder: PathBuf,
    store: Arc<BlockStore>,
    image: Image,
    point: i64,
    /// What did not fit, and why: not tried again before it has changed.
    refused: Option<(Tree, String)>,
    broken: Option<String>,
}

impl GuestDisk {
    /// Makes the image in the folder `store` and writes what is in `folder` as the base state, which every point before the first
    /// sync shows. An image that is there already is replaced.
    pub fn create(folder: &Path, store: &Path, options: DiskOptions) -> Result<Self, DiskError> {
        let walk = tree::walk(folder)?;
        let blocks = options.size / BLOCK as u64;
        let store =
            Arc::new(BlockStore::create(store, blocks).map_err(DiskError::store("create"))?);
        format(&store, &options.label).map_err(DiskError::image("make the file system"))?;
        let written = write::write(&store, folder, &Image::new(), &walk.tree)?;
        Ok(Self {
            folder: folder.to_owned(),
            store,
            image: written.image,
            point: i64::MIN,
            refused: None,
            broken: None,
        })
    }

    /// Writes what changed in the folder since the last sync into the image, as belonging to `point`: milliseconds since the epoch of
    /// the caller's clock. Points never fall (a lower one counts as the last one); several syncs may share one. Without changes this is
    /// a walk through the folder.
    ///
    /// After an error the image is as it was before, and the next sync tries again. [`DiskError::Full`] is one; it is returned at once
    /// as long as the folder stays as it was.
    pub fn sync(&mut self, point: i64) -> Result<SyncReport, DiskError> {
        self.check_usable()?;
        self.take_back_unfinished()?;
        let mut walk = tree::walk(&self.folder)?;
        // What can't be looked into is taken to be as it was.
        for folder in &walk.unreadable {
            let kept = tree::below(&self.image, folder)
                .map(|(path, written)| (path.clone(), written.found.clone()));
            walk.tree.extend(kept);
        }
        let mut report = SyncReport {
            skipped: walk.skipped,
            ..SyncReport::default()
        };
        self.point = self.point.max(point);
        if write::is_current(&self.image, &walk.tree) {
            self.refused = None;
            return Ok(report);
        }
        if let Some((tree, reason)) = &self.refused
            && tree::is_like(tree, &walk.tree)
        {
            return Err(DiskError::Full {
                capacity: self.store.size(),
                reason: reason.clone(),
            });
        }
        self.store.begin();
        match write::write(&self.store, &self.folder, &self.image, &walk.tree) {
            Ok(written) => {
                self.image = written.image;
                self.refused = None;
                report.blocks_written = self.store.commit(self.point);
                report.changed = report.blocks_written > 0;
                report.entries_written = written.entries;
                report.skipped.extend(written.skipped);
                Ok(report)
            }
            Err(error) => {
                self.take_back_unfinished()?;
                if let DiskError::Full { reason, .. } = &error {
                    self.refused = Some((walk.tree, reason.clone()));
                }
                Err(error)
            }
        }
    }

    /// The file system as of the newest sync at or before `point`; before the first one, the base state. The view stays as it is
    /// while later syncs write and history is forgotten.
    pub fn at(&self, point: i64) -> Result<DiskView, DiskError> {
        self.check_usable()?;
        DiskView::mount(self.store.view(point)?)
    }

    /// Points older than `point` need not be readable any more: frees what only they need. A view that is open keeps what it needs.
    pub fn forget_before(&mut self, point: i64) -> Result<(), DiskError> {
        self.store.forget_before(point);
        Ok(())
    }

    /// Writes the whole image as of `point` into the sparse file `out`.
    pub fn export(&self, point: i64, out: &Path) -> Result<(), DiskError> {
        self.check_usable()?;
        self.store
            .view(point)?
            .export(out)
            .map_err(DiskError::store("export"))
    }

    fn check_usable(&self) -> Result<(), DiskError> {
        match &self.broken {
            None => Ok(()),
            Some(reason) => Err(DiskError::Broken {
                reason: reason.clone(),
            }),
        }
    }

    /// Takes back what a sync has written that did not come to its end.
    fn take_back_unfinished(&mut self) -> Result<(), DiskError> {
        self.store.roll_back().map_err(|error| {
            let reason = error.to_string();
            self.broken = Some(reason.clone());
            DiskError::Broken { reason }
        })
    }
}

/// Makes the file system.
fn format(store: &Arc<BlockStore>, label: &str) -> fs_ext4::Result<()> {
    let device = WriteBuffer::new(Arc::clone(store));
    let size = store.size();
    fs_ext4::mkfs::format_filesystem(&device, Some(label), None, size, BLOCK as u32)?;
    features::declare(&device)?;
    Ok(device.store()?)
}
