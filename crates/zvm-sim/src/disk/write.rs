//! Writing what changed in the live folder into the image's file system.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use fs_ext4::block_io::BlockDevice;
use fs_ext4::path::EXT4_ROOT_INODE;
use fs_ext4::{Error, Filesystem};

use super::blocks::BlockStore;
use super::buffer::WriteBuffer;
use super::content::copy;
use super::plan::Plan;
use super::tree::{self, Found, Kind, Tree};
use super::{BLOCK, DiskError, SkipReason, Skipped, attributes};

/// What 32 bits of block numbers can reach.
const LARGEST_FILE: u64 = u32::MAX as u64 * BLOCK as u64;

/// What is in the image: the live folder's entries as they were written, with their inodes.
pub(super) type Image = BTreeMap<String, Written>;

/// An entry of the image.
#[derive(Clone, Debug)]
pub(super) struct Written {
    pub(super) found: Found,
    inode: u32,
}

/// What a write has done.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) image: Image,
    /// Entries that were made, changed, moved or removed.
    pub(super) entries: usize,
    /// What could not be read.
    pub(super) skipped: Vec<Skipped>,
}

/// Whether the image has everything as the walk has found it.
pub(super) fn is_current(image: &Image, tree: &Tree) -> bool {
    image.len() == tree.len()
        && image
            .iter()
            .zip(tree)
            .all(|((path, written), (found_path, found))| {
                path == found_path && written.is_current(found)
            })
}

/// Makes the image hold `tree`. After an error the image may hold a part of it.
pub(super) fn write(
    store: &Arc<BlockStore>,
    folder: &Path,
    image: &Image,
    tree: &Tree,
) -> Result<Outcome, DiskError> {
    let buffer = Arc::new(WriteBuffer::new(Arc::clone(store)));
    let plan = Plan::new(image, tree);
    let outcome = Outcome {
        image: image.clone(),
        entries: 0,
        skipped: Vec::new(),
    };
    let mut writer = Writer {
        device: &buffer,
        folder,
        tree,
        outcome,
        touched: BTreeSet::new(),
    };
    // Two mounts: one counts the free room of each block group once, at its start, and would not see what was freed.
    let fs = mount(&buffer)?;
    writer.make_room(&fs, &plan)?;
    fs.finish().map_err(DiskError::image("finish removing"))?;
    let fs = mount(&buffer)?;
    writer.check_room(&fs, &plan)?;
    writer.fill(&fs, &plan)?;
    fs.finish().map_err(DiskError::image("finish writing"))?;
    buffer.store().map_err(DiskError::store("write"))?;
    Ok(writer.outcome)
}

fn mount(buffer: &Arc<WriteBuffer>) -> Result<Filesystem, DiskError> {
    Filesystem::mount(Arc::clone(buffer) as _).map_err(DiskError::image("open the file system"))
}

impl Written {
    fn is_current(&self, found: &Found) -> bool {
        self.found.settled && self.found.is_like(found)
    }
}

struct Writer<'a> {
    device: &'a WriteBuffer,
    folder: &'a Path,
    tree: &'a Tree,
    outcome: Outcome,
    /// Folders whose attributes have to be written after everything else: changing what is in them changes their times.
    touched: BTreeSet<String>,
}

impl<'a> Writer<'a> {
    fn make_room(&mut self, fs: &Filesystem, plan: &Plan<'_>) -> Result<(), DiskError> {
        for path in plan
            .removed
            .iter()
            .rev()
            .filter(|path| !plan.is_needed_for_a_move(path))
        {
            self.remove(fs, path)?;
        }
        Ok(())
    }

    /// Refuses at once what can't fit, rather than after writing gigabytes. What passes may still run out of room.
    fn check_room(&self, fs: &Filesystem, plan: &Plan<'_>) -> Result<(), DiskError> {
        let mut needed = 0;
        for (path, found) in self.outdated() {
            if found.kind != Kind::File {
                continue;
            }
            if found.stat.size > LARGEST_FILE {
                return Err(self.full(format!("`{path}` is larger than an ext4 file can be")));
            }
            let source = plan.moves.get(path.as_str()).copied().unwrap_or(path);
            let there = self.outcome.image.get(source);
            let there = there.map_or(0, |written| written.found.stat.size);
            let wanted = found.stat.size.min(found.allocated);
            let blocks = |bytes: u64| bytes.div_ceil(BLOCK as u64);
            needed += blocks(wanted).saturating_sub(blocks(there));
        }
        if needed <= fs.sb.free_blocks_count {
            return Ok(());
        }
        let (needed, free) = (
            needed * BLOCK as u64,
            fs.sb.free_blocks_count * BLOCK as u64,
        );
        Err(self.full(format!(
            "{needed} bytes more are needed, {free} bytes are free"
        )))
    }

    /// What the image does not have, or not as it is.
    fn outdated(&self) -> impl Iterator<Item = (&'a String, &'a Found)> {
        let image = &self.outcome.image;
        let is_current = |path: &str, found| {
            image
                .get(path)
                .is_some_and(|written| written.is_current(found))
        };
        self.tree
            .iter()
            .filter(move |(path, found)| !is_current(path, found))
    }

    fn fill(&mut self, fs: &Filesystem, plan: &Plan<'_>) -> Result<(), DiskError> {
        let outdated: Vec<_> = self.outdated().collect();
        for (path, found) in outdated {
            self.put(fs, path, found, plan.moves.get(path.as_str()).copied())?;
        }
        for path in plan.removed.iter().rev() {
            if plan.is_needed_for_a_move(path) && self.outcome.image.contains_key(*path) {
                self.remove(fs, path)?;
            }
        }
        for path in &self.touched {
            if let (Some(written), Some(found)) =
                (self.outcome.image.get(path), self.tree.get(path))
            {
                attributes::write(fs, written.inode, found)
                    .map_err(self.failed("write the attributes of", path))?;
            }
        }
        Ok(())
    }

    fn put(
        &mut self,
        fs: &Filesystem,
        path: &str,
        found: &Found,
        source: Option<&str>,
    ) -> Result<(), DiskError> {
        let there = self.outcome.image.get(path).cloned();
        match &found.kind {
            Kind::Folder => {
                let inode = match there {
                    Some(written) => written.inode,
                    None if path.is_empty() => EXT4_ROOT_INODE,
                    None => {
                        self.make(path, |parent, name| fs.apply_mkdir_at(parent, name, 0o755))?
                    }
                };
                self.touched.insert(path.to_owned());
                self.wrote(path, found.clone(), inode);
            }
            Kind::Link(target) => {
                let inode = match there {
                    Some(written) => written.inode,
                    None => self.make(path, |parent, name| {
                        fs.apply_symlink_at(parent, name, target)
                    })?,
                };
                attributes::write(fs, inode, found)
                    .map_err(self.failed("write the attributes of", path))?;
                self.wrote(path, found.clone(), inode);
            }
            Kind::File => self.put_file(fs, path, found, there, source)?,
        }
        Ok(())
    }

    fn put_file(
        &mut self,
        fs: &Filesystem,
        path: &str,
        found: &Found,
        there: Option<Written>,
        source: Option<&str>,
    ) -> Result<(), DiskError> {
        let there = match (there, source) {
            (None, Some(source)) => Some(self.rename(fs, source, path)?),
            (there, _) => there,
        };
        let Some(mut file) = self.open(path, found) else {
            // What the image has stays until the file can be read.
            return Ok(());
        };
        let inode = match &there {
            Some(written) => written.inode,
            None => self.make(path, |parent, name| fs.apply_create_at(parent, name, 0o644))?,
        };
        let copied = copy(fs, self.device, inode, &mut file, found.stat.size)
            .map_err(self.failed("write", path))?;
        let mut found = found.clone();
        if let Some(error) = copied.unreadable {
            found.settled = false;
            self.skip(path, &error);
        }
        if copied.changed || there.is_none_or(|written| written.found.stat != found.stat) {
            attributes::write(fs, inode, &found)
                .map_err(self.failed("write the attributes of", path))?;
            self.wrote(path, found, inode);
        } else {
            self.outcome
                .image
                .insert(path.to_owned(), Written { found, inode });
        }
        Ok(())
    }

    /// Opens a live file. If that can't be done, because it vanished, was replaced or may not be read, the next sync tries again.
    fn open(&mut self, path: &str, found: &Found) -> Option<File> {
        match tree::open(&self.folder.join(path), found) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                self.skip(path, &error);
                None
            }
        }
    }

    fn make(
        &mut self,
        path: &str,
        make: impl FnOnce(u32, &[u8]) -> fs_ext4::Result<u32>,
    ) -> Result<u32, DiskError> {
        let (parent, name) = tree::split(path);
        self.touched.insert(parent.to_owned());
        make(self.inode_of(parent)?, name.as_bytes()).map_err(self.failed("make", path))
    }

    fn remove(&mut self, fs: &Filesystem, path: &str) -> Result<(), DiskError> {
        let Some(written) = self.outcome.image.remove(path) else {
            return Ok(());
        };
        let (parent, name) = tree::split(path);
        let folder = self.inode_of(parent)?;
        match written.found.kind {
            Kind::Folder => fs.apply_rmdir_at(folder, name.as_bytes()),
            Kind::File | Kind::Link(_) => fs.apply_unlink_at(folder, name.as_bytes()),
        }
        .map_err(self.failed("remove", path))?;
        self.touched.insert(parent.to_owned());
        self.outcome.entries += 1;
        Ok(())
    }

    fn rename(&mut self, fs: &Filesystem, from: &str, to: &str) -> Result<Written, DiskError> {
        let ((old_parent, old_name), (parent, name)) = (tree::split(from), tree::split(to));
        let (old_folder, folder) = (self.inode_of(old_parent)?, self.inode_of(parent)?);
        fs.apply_rename_at(
            old_folder,
            old_name.as_bytes(),
            folder,
            name.as_bytes(),
            false,
        )
        .map_err(self.failed("move", from))?;
        self.touched
            .extend([old_parent.to_owned(), parent.to_owned()]);
        let written = self
            .outcome
            .image
            .remove(from)
            .ok_or_else(|| self.failed("move", from)(Error::NotFound))?;
        self.outcome.image.insert(to.to_owned(), written.clone());
        Ok(written)
    }

    fn inode_of(&self, path: &str) -> Result<u32, DiskError> {
        let written = self
            .outcome
            .image
            .get(path)
            .ok_or_else(|| self.failed("find", path)(Error::NotFound))?;
        Ok(written.inode)
    }

    fn wrote(&mut self, path: &str, found: Found, inode: u32) {
        self.outcome
            .image
            .insert(path.to_owned(), Written { found, inode });
        self.outcome.entries += 1;
    }

    fn skip(&mut self, path: &str, error: &io::Error) {
        let reason = SkipReason::Unreadable(error.to_string());
        self.outcome.skipped.push(Skipped {
            path: path.to_owned(),
            reason,
        });
    }

    fn full(&self, reason: String) -> DiskError {
        DiskError::Full {
            capacity: self.device.size_bytes(),
            reason,
        }
    }

    fn failed(&self, action: &'static str, path: &str) -> impl FnOnce(Error) -> DiskError + use<> {
        let capacity = self.device.size_bytes();
        let path = path.to_owned();
        move |error| match error {
            Error::NoSpaceLeftOnDevice => DiskError::Full {
                capacity,
                reason: format!("no room to {action} `{path}`"),
            },
            // The library's words for running out of inodes, and of blocks elsewhere than in a write.
            Error::Corrupt(what) if what.starts_with("no group has a") => DiskError::Full {
                capacity,
                reason: format!("no room to {action} `{path}`: {what}"),
            },
            Error::Io(source) => DiskError::Store {
                action: "write",
                source,
            },
            source => DiskError::Image {
                action: format!("{action} `{path}`"),
                source,
            },
        }
    }
}
