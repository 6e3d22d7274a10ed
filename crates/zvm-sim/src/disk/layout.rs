//! Where a file's content is in the image.

use std::io;

use fs_ext4::Filesystem;
use fs_ext4::extent::{Extent, collect_all};
use fs_ext4::inode::Inode;

use super::BLOCK;

/// The extents of one file: long pieces are read in one go, whatever the size of the file.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// In the order of the content.
    extents: Vec<Extent>,
    pub(super) size: u64,
}

impl Layout {
    /// Of a regular file.
    pub(super) fn of(fs: &Filesystem, inode: &Inode) -> fs_ext4::Result<Self> {
        if !inode.has_extents() {
            return Err(fs_ext4::Error::Unsupported("a file without extents"));
        }
        let mut extents = collect_all(&inode.block, fs.dev.as_ref(), fs.sb.block_size())?;
        extents.sort_by_key(|extent| extent.logical_block);
        Ok(Self {
            extents,
            size: inode.size,
        })
    }

    /// Where, from `offset` on, the next extent is: what lies before it is a hole.
    pub(super) fn next_data(&self, offset: u64) -> Option<u64> {
        let block = offset / BLOCK as u64;
        let next = self.extents.partition_point(|extent| {
            u64::from(extent.logical_block) + u64::from(extent.length) <= block
        });
        let extent = self.extents.get(next)?;
        Some(offset.max(u64::from(extent.logical_block) * BLOCK as u64))
    }

    /// Reads some of the content at `offset` through `read`, which fills a buffer from an offset of the image. Returns how much
    /// it was: as much as lies in one piece, 0 at the end.
    pub(super) fn read(
        &self,
        buffer: &mut [u8],
        offset: u64,
        read: impl FnOnce(&mut [u8], u64) -> io::Result<()>,
    ) -> io::Result<usize> {
        let block = offset / BLOCK as u64;
        let next = self
            .extents
            .partition_point(|extent| u64::from(extent.logical_block) <= block);
        let holding = next
            .checked_sub(1)
            .and_then(|index| self.extents.get(index));
        let (piece_end, at) = match holding.filter(|extent| extent.contains(block)) {
            Some(extent) => {
                let end =
                    (u64::from(extent.logical_block) + u64::from(extent.length)) * BLOCK as u64;
                let into = offset - u64::from(extent.logical_block) * BLOCK as u64;
                (
                    end,
                    (!extent.uninitialized).then_some(extent.physical_block * BLOCK as u64 + into),
                )
            }
            // A hole, up to the next extent.
            None => {
                let start = self
                    .extents
                    .get(next)
                    .map(|extent| u64::from(extent.logical_block) * BLOCK as u64);
                (start.unwrap_or(u64::MAX), None)
            }
        };
        let available = piece_end.min(self.size).saturating_sub(offset);
        let length = usize::try_from(available)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let (piece, _) = buffer.split_at_mut(length);
        match at {
            _ if length == 0 => {}
            Some(at) => read(piece, at)?,
            None => piece.fill(0),
        }
        Ok(length)
    }
}
