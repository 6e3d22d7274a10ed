//! The image and its block journal.
//!
//! The image file always holds the newest state. While a sync writes, the content that each block had before is saved once, on the
//! first write to it (an undo log); together these saved blocks are what the sync changed. A view of an older point reads a block from
//! the first later sync that changed it, and from the image if none did. Forgetting history is dropping the oldest syncs: the segments
//! of the journal are unnamed files that go away with the last reference to them, so a view keeps what it needs.

use std::collections::{HashMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::positioned::{read_exact_at, write_all_at};
use super::runs::{Earlier, Runs};
use super::{BLOCK, DiskError, ZEROS};

/// A new segment of the journal is begun, between syncs, when the current one is longer than this.
const SEGMENT_BYTES: u64 = 16 << 20;

/// Bytes that are copied at once.
pub(super) const PIECE: usize = 1 << 20;

/// The image and its journal.
#[derive(Debug)]
pub(super) struct BlockStore {
    image: File,
    folder: PathBuf,
    blocks: u64,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Blocks that were ever written; the others are holes in the image file.
    written: Blocks,
    /// What each closed sync overwrote, oldest first.
    syncs: VecDeque<Sync>,
    /// What the sync that is going on has overwritten so far.
    open: Option<Runs>,
    /// What was overwritten since the point of each living view.
    views: HashMap<u64, Runs>,
    next_view: u64,
    segment: Option<Segment>,
    /// The oldest point that can still be read, once something was forgotten.
    oldest: Option<i64>,
}

#[derive(Debug)]
struct Sync {
    point: i64,
    overwritten: Runs,
}

#[derive(Debug)]
struct Segment {
    file: Arc<File>,
    length: u64,
}

impl BlockStore {
    /// Makes an image of `blocks` zero blocks in `folder`, in place of one that may be there.
    pub(super) fn create(folder: &Path, blocks: u64) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let path = folder.join("disk.img");
        let image = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        image.set_len(blocks * BLOCK as u64)?;
        let words = usize::try_from(blocks.div_ceil(64)).map_err(io::Error::other)?;
        let state = State {
            written: Blocks(vec![0; words]),
            ..State::default()
        };
        Ok(Self {
            image,
            folder: folder.to_owned(),
            blocks,
            state: RwLock::new(state),
        })
    }

    /// Size of the image in bytes.
    pub(super) fn size(&self) -> u64 {
        self.blocks * BLOCK as u64
    }

    // A panic while the lock is held leaves no half-changed state: what is changed under it is changed by single calls.
    fn read_state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_state(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the earlier content of what is written is saved.
    pub(super) fn begin(&self) {
        let mut state = self.write_state();
        if state
            .segment
            .as_ref()
            .is_some_and(|segment| segment.length > SEGMENT_BYTES)
        {
            state.segment = None;
        }
        state.open = Some(Runs::default());
    }

    /// Closes the sync as one of `point` and tells how many blocks it changed. Without changes nothing is recorded.
    pub(super) fn commit(&self, point: i64) -> u64 {
        let mut state = self.write_state();
        let Some(overwritten) = state.open.take() else {
            return 0;
        };
        let blocks = overwritten.blocks();
        if blocks > 0 {
            for seen in state.views.values_mut() {
                seen.add_missing(&overwritten);
            }
            state.syncs.push_back(Sync { point, overwritten });
        }
        blocks
    }

    /// Puts back what a sync that is going on has overwritten, and closes it.
    pub(super) fn roll_back(&self) -> io::Result<()> {
        let Some(overwritten) = self.read_state().open.clone() else {
            return Ok(());
        };
        // Views go on reading the saved blocks meanwhile.
        let mut piece = vec![0; PIECE];
        for (start, blocks, earlier) in overwritten.iter() {
            let mut done = 0;
            while done < blocks * BLOCK as u64 {
                let length = (blocks * BLOCK as u64 - done).min(PIECE as u64);
                let (content, _) =
                    piece.split_at_mut(usize::try_from(length).map_err(io::Error::other)?);
                match earlier {
                    Earlier::Zero => content.fill(0),
                    Earlier::Saved { segment, at } => read_exact_at(segment, content, at + done)?,
                }
                write_all_at(&self.image, content, start * BLOCK as u64 + done)?;
                done += length;
            }
        }
        let mut state = self.write_state();
        for (start, blocks, _) in overwritten.iter() {
            for block in start..start + blocks {
                state.written.add(block);
            }
        }
        state.open = None;
        Ok(())
    }

    /// A view of the blocks as of the newest sync at or before `point`.
    pub(super) fn view(self: &Arc<Self>, point: i64) -> Result<View, DiskError> {
        let mut state = self.write_state();
        if let Some(oldest) = state.oldest.filter(|oldest| point < *oldest) {
            return Err(DiskError::PointGone { point, oldest });
        }
        let mut overwritten = Runs::default();
        let first_later = state.syncs.partition_point(|sync| sync.point <= point);
        for sync in state.syncs.range(first_later..) {
            overwritten.add_missing(&sync.overwritten);
        }
        let id = state.next_view;
        state.next_view += 1;
        state.views.insert(id, overwritten);
        Ok(View {
            store: Arc::clone(self),
            id,
        })
    }

    /// Drops what is only needed to read points older than `point`.
    pub(super) fn forget_before(&self, point: i64) {
        let mut state = self.write_state();
        while let Some(sync) = state.syncs.pop_front_if(|sync| sync.point <= point) {
            state.oldest = Some(sync.point);
        }
    }

    /// Reads from the newest state, with what a sync that is going on has written so far.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        read_exact_at(&self.image, buffer, offset)
    }

    fn read_view(&self, id: u64, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        // Held to the end, so that no block is overwritten between looking for its earlier content and reading it.
        let state = self.read_state();
        let layers = [state.views.get(&id), state.open.as_ref()];
        while !buffer.is_empty() {
            let block = offset / BLOCK as u64;
            let into = offset % BLOCK as u64;
            let mut blocks = u64::MAX / BLOCK as u64;
            let mut found = None;
            for layer in layers.into_iter().flatten() {
                if let Some((earlier, run)) = layer.find(block) {
                    blocks = blocks.min(run);
                    found = Some(earlier);
                    break;
                }
                if let Some(next) = layer.next_start(block) {
                    blocks = blocks.min(next - block);
                }
            }
            let available = blocks * BLOCK as u64 - into;
            let length = usize::try_from(available)
                .unwrap_or(usize::MAX)
                .min(buffer.len());
            let (content, rest) = buffer.split_at_mut(length);
            match found {
                None => read_exact_at(&self.image, content, offset)?,
                Some(Earlier::Zero) => content.fill(0),
                Some(Earlier::Saved { segment, at }) => {
                    read_exact_at(&segment, content, at + into)?
                }
            }
            buffer = rest;
            offset += length as u64;
        }
        Ok(())
    }

    /// Writes whole blocks into the image, and saves what is overwritten while a sync is going on.
    pub(super) fn write(&self, first: u64, bytes: &[u8]) -> io::Result<()> {
        let count = (bytes.len() / BLOCK) as u64;
        let is_inside = first
            .checked_add(count)
            .is_some_and(|end| end <= self.blocks);
        if !is_inside || !bytes.len().is_multiple_of(BLOCK) {
            let problem = "a write of parts of blocks, or past the end of the image";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let mut state = self.write_state();
        self.save(&mut state, first, bytes)?;
        // A hole stays one, so that the image takes no more room than what is in it.
        let blocks: Vec<(u64, bool)> = (first..)
            .zip(bytes.chunks(BLOCK))
            .map(|(block, new)| (block, new == ZEROS && !state.written.has(block)))
            .collect();
        for run in blocks.chunk_by(|one, next| one.1 == next.1) {
            let Some((start, false)) = run.first() else {
                continue;
            };
            let from = (start - first) as usize * BLOCK;
            let content = bytes.get(from..from + run.len() * BLOCK);
            write_all_at(
                &self.image,
                content.unwrap_or_default(),
                start * BLOCK as u64,
            )?;
            for (block, _) in run {
                state.written.add(*block);
            }
        }
        Ok(())
    }

    /// Saves what the blocks have that are about to be written, unless that was done before or stays as it is.
    fn save(&self, state: &mut State, first: u64, bytes: &[u8]) -> io::Result<()> {
        let State {
            written,
            open: Some(open),
            segment,
            ..
        } = state
        else {
            return Ok(());
        };
        let count = (bytes.len() / BLOCK) as u64;
        let mut old = Vec::new();
        if (first..first + count).any(|block| written.has(block) && !open.covers(block)) {
            old = vec![0; bytes.len()];
            read_exact_at(&self.image, &mut old, first * BLOCK as u64)?;
        }
        let segment = match segment {
            Some(segment) => segment,
            none => none.insert(Segment {
                file: Arc::new(tempfile::tempfile_in(&self.folder)?),
                length: 0,
            }),
        };
        let mut saved = Vec::new();
        let mut overwritten = Vec::new();
        // Nothing was read if there is nothing but holes.
        let old = old.chunks(BLOCK).chain(std::iter::repeat(&ZEROS[..]));
        for ((block, new), old) in (first..).zip(bytes.chunks(BLOCK)).zip(old) {
            if open.covers(block) || old == new {
                continue;
            }
            if old == ZEROS {
                overwritten.push((block, Earlier::Zero));
            } else {
                let at = segment.length + saved.len() as u64;
                let segment = Arc::clone(&segment.file);
                overwritten.push((block, Earlier::Saved { segment, at }));
                saved.extend_from_slice(old);
            }
        }
        write_all_at(&segment.file, &saved, segment.length)?;
        segment.length += saved.len() as u64;
        for (block, earlier) in overwritten {
            open.insert(block, 1, earlier);
        }
        Ok(())
    }
}

/// A set of blocks.
#[derive(Debug, Default)]
struct Blocks(Vec<u64>);

impl Blocks {
    fn has(&self, block: u64) -> bool {
        let word = usize::try_from(block / 64).ok();
        word.and_then(|word| self.0.get(word))
            .is_some_and(|word| word >> (block % 64) & 1 == 1)
    }

    fn add(&mut self, block: u64) {
        let word = usize::try_from(block / 64).unwrap_or(usize::MAX);
        if let Some(word) = self.0.get_mut(word) {
            *word |= 1 << (block % 64);
        }
    }
}

/// The blocks as they were at one point, whatever is written later.
#[derive(Debug)]
pub(super) struct View {
    store: Arc<BlockStore>,
    id: u64,
}

impl View {
    /// Fills `buffer` from `offset`.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.store.read_view(self.id, buffer, offset)
    }

    /// Writes the blocks into a sparse file, in place of one that may be there.
    pub(super) fn export(&self, out: &Path) -> io::Result<()> {
        let out = File::create(out)?;
        out.set_len(self.store.size())?;
        let mut piece = vec![0; PIECE];
        let mut offset = 0;
        while offset < self.store.size() {
            let length = (self.store.size() - offset).min(PIECE as u64);
            let (content, _) =
                piece.split_at_mut(usize::try_from(length).map_err(io::Error::other)?);
            let first = offset / BLOCK as u64;
            let blocks = length.div_ceil(BLOCK as u64);
            let ever_written = {
                let state = self.store.read_state();
                (first..first + blocks).any(|block| state.written.has(block))
            };
            if ever_written {
                self.read(content, offset)?;
                for (block, at) in content.chunks(BLOCK).zip((offset..).step_by(BLOCK)) {
                    if ZEROS.get(..block.len()) != Some(block) {
                        write_all_at(&out, block, at)?;
                    }
                }
            }
            offset += length;
        }
        Ok(())
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.store.write_state().views.remove(&self.id);
    }
}

impl fs_ext4::block_io::BlockDevice for View {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> fs_ext4::Result<()> {
        Ok(self.read(buffer, offset)?)
    }

    fn size_bytes(&self) -> u64 {
        self.store.size()
    }
}
