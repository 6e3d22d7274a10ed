//! Owner, mode and times of an inode, as they are in the guest's folder.
//!
//! The file system's own calls set its clock's time of the call as the time of change. Here all four times are written as they
//! were found, with nanoseconds, in one go.

use fs_ext4::{Error, Filesystem, Result};

use super::tree::{Found, Time};

/// Bits of the mode that say what an inode is.
const TYPE: u16 = 0o170_000;

/// The times that ext4 can hold: 34 bits of seconds from the lowest signed 32-bit number on.
const EARLIEST: i64 = i32::MIN as i64;
const LATEST: i64 = i32::MAX as i64 + (3 << 32);

/// Writes them into an inode.
pub(super) fn write(fs: &Filesystem, inode: u32, found: &Found) -> Result<()> {
    let (parsed, mut raw) = fs.read_inode_verified(inode)?;
    let mode = parsed.mode & TYPE | (found.stat.mode & 0o7777) as u16;
    put(&mut raw, 0x00, &mode.to_le_bytes())?;
    put_halves(&mut raw, 0x02, 0x78, found.stat.uid)?;
    put_halves(&mut raw, 0x18, 0x7A, found.stat.gid)?;
    put_time(&mut raw, 0x08, 0x8C, found.accessed)?;
    put_time(&mut raw, 0x0C, 0x84, found.stat.changed)?;
    put_time(&mut raw, 0x10, 0x88, found.stat.modified)?;
    put_time(&mut raw, 0x90, 0x94, found.created)?;
    if let Some((low, high)) = fs
        .csum
        .compute_inode_checksum(inode, parsed.generation, &raw)
    {
        put(&mut raw, 0x7C, &low.to_le_bytes())?;
        put(&mut raw, 0x82, &high.to_le_bytes())?;
    }
    fs.write_inode_raw(inode, &raw)
}

fn put(raw: &mut [u8], at: usize, bytes: &[u8]) -> Result<()> {
    let field = raw
        .get_mut(at..at + bytes.len())
        .ok_or(Error::Unsupported("an inode of less than 256 bytes"))?;
    field.copy_from_slice(bytes);
    Ok(())
}

fn put_halves(raw: &mut [u8], low: usize, high: usize, value: u32) -> Result<()> {
    put(raw, low, &(value as u16).to_le_bytes())?;
    put(raw, high, &((value >> 16) as u16).to_le_bytes())
}

/// Low 32 bits of the seconds; beside them the nanoseconds above two bits that count the wraps of the signed 32-bit number.
fn put_time(raw: &mut [u8], low: usize, extra: usize, time: Time) -> Result<()> {
    let seconds = time.seconds.clamp(EARLIEST, LATEST);
    let wraps = ((seconds - EARLIEST) >> 32) as u32;
    put(raw, low, &(seconds as u32).to_le_bytes())?;
    put(raw, extra, &(time.nanoseconds << 2 | wraps).to_le_bytes())
}
