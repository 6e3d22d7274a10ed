//! Into a guest and back: what is there now, over the user's own OpenSSH client and SFTP; and a file of a checkpoint put back there.
mod checks;
mod content;
mod error;
mod facade;
mod keep;
mod leftovers;
mod names;
mod place;
mod planned;
mod restore;
mod sftp;
mod ssh;
mod undo;
mod way_in;

#[cfg(test)]
#[cfg(unix)]
mod tests;

pub(crate) use content::{Content, hash, read_small};
pub(crate) use error::GuestError;
pub use facade::{UndoPlan, Undone};
pub(crate) use leftovers::{INTERRUPTED, told_first};
pub(crate) use planned::plan;
pub use planned::{Attributes, InGuest, Present, Restore};
pub(crate) use restore::Restoring;
pub use restore::{GuestOutcome, RestoredFile};
pub(crate) use sftp::{Connection, Kind};
pub(crate) use way_in::{WayIn, posix_path};
