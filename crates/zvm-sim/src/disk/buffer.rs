//! The block device that a sync writes through.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fs_ext4::block_io::BlockDevice;

use super::BLOCK;
use super::blocks::{BlockStore, PIECE};

/// Blocks that are held back at most.
const LIMIT: usize = 2048;

/// Holds written blocks back for a while: the file system writes bitmaps, folders and tables again for every entry that it makes, and
/// image and journal should see them once. What is not stored when the device is dropped is lost.
pub(super) struct WriteBuffer {
    store: Arc<BlockStore>,
    blocks: Mutex<BTreeMap<u64, Box<[u8]>>>,
}

impl WriteBuffer {
    pub(super) fn new(store: Arc<BlockStore>) -> Self {
        Self {
            store,
            blocks: Mutex::default(),
        }
    }

    /// Fills `buffer` from `offset`, with what was written last.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let held = self.held();
        let end = offset + buffer.len() as u64;
        let blocks = offset / BLOCK as u64..end.div_ceil(BLOCK as u64);
        if blocks.clone().any(|block| !held.contains_key(&block)) {
            self.store.read(buffer, offset)?;
        }
        for (block, content) in held.range(blocks) {
            let start = block * BLOCK as u64;
            let skipped = offset.saturating_sub(start) as usize;
            let into = start.saturating_sub(offset) as usize;
            let length = (BLOCK - skipped).min(buffer.len() - into);
            if let Some(to) = buffer.get_mut(into..into + length)
                && let Some(from) = content.get(skipped..skipped + length)
            {
                to.copy_from_slice(from);
            }
        }
        Ok(())
    }

    fn write(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        let mut held = self.held();
        while !bytes.is_empty() {
            let into = (offset % BLOCK as u64) as usize;
            let (now, rest) = bytes.split_at((BLOCK - into).min(bytes.len()));
            let block = offset / BLOCK as u64;
            let content = match held.entry(block) {
                Entry::Occupied(content) => content.into_mut(),
                Entry::Vacant(place) => {
                    let mut content = vec![0; BLOCK].into_boxed_slice();
                    if now.len() < BLOCK {
                        self.store.read(&mut content, block * BLOCK as u64)?;
                    }
                    place.insert(content)
                }
            };
            if let Some(to) = content.get_mut(into..into + now.len()) {
                to.copy_from_slice(now);
            }
            offset += now.len() as u64;
            bytes = rest;
            if held.len() >= LIMIT {
                self.store_all(&mut held)?;
            }
        }
        Ok(())
    }

    /// Stores what is held back.
    pub(super) fn store(&self) -> io::Result<()> {
        self.store_all(&mut self.held())
    }

    fn store_all(&self, held: &mut BTreeMap<u64, Box<[u8]>>) -> io::Result<()> {
        let mut run = Vec::with_capacity(PIECE);
        let mut first = 0;
        for (block, content) in held.iter() {
            let next = first + (run.len() / BLOCK) as u64;
            if *block != next || run.len() >= PIECE {
                self.store.write(first, &run)?;
                run.clear();
                first = *block;
            }
            run.extend_from_slice(content);
        }
        self.store.write(first, &run)?;
        held.clear();
        Ok(())
    }

    // A block is replaced in one go, so a panic elsewhere leaves nothing half done.
    fn held(&self) -> MutexGuard<'_, BTreeMap<u64, Box<[u8]>>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BlockDevice for WriteBuffer {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> fs_ext4::Result<()> {
        Ok(self.read(buffer, offset)?)
    }

    fn size_bytes(&self) -> u64 {
        self.store.size()
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> fs_ext4::Result<()> {
        Ok(self.write(bytes, offset)?)
    }

    fn is_writable(&self) -> bool {
        true
    }
}
