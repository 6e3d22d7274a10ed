//! Features that the formatter leaves undeclared.

use fs_ext4::Superblock;
use fs_ext4::block_io::BlockDevice;
use fs_ext4::checksum::linux_crc32c;

use super::BLOCK;

/// Files of 2 GiB and more, and folders with more subfolders than a link count can tell.
const NEEDED: u32 = 0x0002 | 0x0020;

/// Where a superblock starts in the first block, and where its read-only compatible features and its checksum are.
const START: usize = 1024;
const FEATURES: usize = 0x64;
const CHECKSUM: usize = 0x3FC;

/// Declares them in the superblock and its copies.
pub(super) fn declare(device: &dyn BlockDevice) -> fs_ext4::Result<()> {
    let superblock = Superblock::read(device)?;
    for group in
        (0..superblock.block_group_count()).filter(|group| superblock.group_has_super(*group))
    {
        let start = group * u64::from(superblock.blocks_per_group) * BLOCK as u64;
        let offset = if group == 0 { START as u64 } else { start };
        let mut copy = [0; 1024];
        device.read_at(offset, &mut copy)?;
        let features = u32::from_le_bytes(*field(&mut copy, FEATURES)?) | NEEDED;
        *field(&mut copy, FEATURES)? = features.to_le_bytes();
        let (summed, _) = copy.split_at(CHECKSUM);
        let checksum = linux_crc32c(!0, summed);
        *field(&mut copy, CHECKSUM)? = checksum.to_le_bytes();
        device.write_at(offset, &copy)?;
    }
    Ok(())
}

fn field(superblock: &mut [u8], at: usize) -> fs_ext4::Result<&mut [u8; 4]> {
    superblock
        .get_mut(at..)
        .and_then(<[u8]>::first_chunk_mut)
        .ok_or(fs_ext4::Error::OutOfBounds)
}
