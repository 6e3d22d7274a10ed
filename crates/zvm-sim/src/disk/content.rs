//! Copying a file's content into the image: only the blocks that differ.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use fs_ext4::{Filesystem, Result};

use super::buffer::WriteBuffer;
use super::layout::Layout;
use super::{BLOCK, ZEROS};

/// Content is read, compared and written in pieces of this size. A piece of zeros becomes a hole in a new part of a file; smaller holes are
/// written out, which bounds the number of a file's extents.
const PIECE: usize = 4 << 20;

/// What a copy has done.
#[derive(Debug)]
pub(super) struct Copied {
    /// Whether the image's file was changed.
    pub(super) changed: bool,
    /// Why not all of the live file could be read; from there on the image's file is as it was.
    pub(super) unreadable: Option<io::Error>,
}

/// Gives the image's file `inode` the content of `file`, of which at most `size` bytes are read: a file that grows is not chased.
pub(super) fn copy(
    fs: &Filesystem,
    device: &WriteBuffer,
    inode: u32,
    file: &mut File,
    size: u64,
) -> Result<Copied> {
    let mut copied = Copied {
        changed: false,
        unreadable: None,
    };
    if fs.stat_ino(inode)?.size > size {
        fs.apply_truncate_ino(inode, size)?;
        copied.changed = true;
    }
    let layout = Layout::of(fs, &fs.stat_ino(inode)?)?;
    let mut live = Vec::new();
    let mut old = vec![0; PIECE];
    let mut offset = 0;
    while offset < size {
        // Where both have a hole there is nothing to compare.
        let data = next_data(file, offset, size).min(layout.next_data(offset).unwrap_or(size));
        offset = offset.max(data / PIECE as u64 * PIECE as u64);
        if let Err(error) = file.seek(SeekFrom::Start(offset)) {
            copied.unreadable = Some(error);
            break;
        }
        live.clear();
        let wanted = (size - offset).min(PIECE as u64);
        if let Err(error) = file.by_ref().take(wanted).read_to_end(&mut live) {
            copied.unreadable = Some(error);
        }
        let old = read_old(device, &layout, &mut old, offset, live.len())?;
        for (start, bytes) in differing(&live, old) {
            fs.apply_pwrite_ino(inode, offset + start as u64, bytes)?;
            copied.changed = true;
        }
        offset += live.len() as u64;
        if copied.unreadable.is_some() || (live.len() as u64) < wanted {
            break;
        }
    }
    // Less was there than expected, or it ends with a hole.
    if copied.unreadable.is_none() && fs.stat_ino(inode)?.size != offset {
        fs.apply_truncate_ino(inode, offset)?;
        copied.changed = true;
    }
    Ok(copied)
}

/// Where, from `offset` on, the next data of a live file is, as far as the host can tell; at most `size`.
fn next_data(file: &File, offset: u64, size: u64) -> u64 {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(offset)) {
        Ok(data) => return data.clamp(offset, size),
        Err(rustix::io::Errno::NXIO) => return size,
        Err(_) => {}
    }
    let _ = (file, size);
    offset
}

/// Reads what the image's file has at `offset`: at most `length` bytes, less at its end.
fn read_old<'a>(
    device: &WriteBuffer,
    layout: &Layout,
    buffer: &'a mut [u8],
    offset: u64,
    length: usize,
) -> io::Result<&'a [u8]> {
    let (wanted, _) = buffer.split_at_mut(length.min(buffer.len()));
    let mut filled = 0;
    while filled < wanted.len() {
        let (_, rest) = wanted.split_at_mut(filled);
        let read = layout.read(rest, offset + filled as u64, |piece, at| {
            device.read(piece, at)
        })?;
        if read == 0 {
            break;
        }
        filled += read;
    }
    Ok(wanted.split_at(filled).0)
}

/// The runs of blocks of `live` that are not the same in `old`. What `old` does not have counts as the same if all of it is zeros.
fn differing<'a>(live: &'a [u8], old: &[u8]) -> Vec<(usize, &'a [u8])> {
    let new = live
        .get(old.len().next_multiple_of(BLOCK)..)
        .unwrap_or_default();
    let hole = new
        .chunks(BLOCK)
        .all(|block| ZEROS.get(..block.len()) == Some(block));
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (start, block) in (0..).step_by(BLOCK).zip(live.chunks(BLOCK)) {
        let end = start + block.len();
        let same = if start >= old.len() {
            hole
        } else {
            old.get(start..end) == Some(block)
        };
        match runs.last_mut() {
            _ if same => {}
            Some((_, until)) if *until == start => *until = end,
            _ => runs.push((start, end)),
        }
    }
    runs.into_iter()
        .filter_map(|(start, end)| Some((start, live.get(start..end)?)))
        .collect()
}
