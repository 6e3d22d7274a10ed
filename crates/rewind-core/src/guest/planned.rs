//! What a restore will write in a guest, as a person agrees to it.
use super::{
    GuestError,
    checks::{in_real_folder, what},
    content::hash,
    names::{beside, replaced, split},
    sftp::{Connection, Kind, Stat},
};
use crate::text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{fmt, sync::atomic::AtomicU64};

/// A file that is gone has left nobody's rights behind.
const GONE_MODE: u32 = 0o600;

/// How a file goes back into the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Restore {
    /// Under a name of its own, next to the file.
    Beside,
    /// In the place of the file, which is kept under another name.
    Replace,
}

/// Whose a file is and what may be done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attributes {
    /// The user's number.
    pub owner: u32,
    /// The group's number.
    pub group: u32,
    /// The lower twelve bits.
    pub mode: u32,
}

impl From<Stat> for Attributes {
    fn from(stat: Stat) -> Self {
        Self {
            owner: stat.owner,
            group: stat.group,
            mode: stat.mode,
        }
    }
}

/// `user 0, group 42, mode 0640`
impl fmt::Display for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owner, group, mode } = self;
        write!(f, "user {owner}, group {group}, mode {mode:04o}")
    }
}

/// A file that is in the guest now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Present {
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its content, hexadecimal.
    pub sha256: String,
    /// Whose it is.
    pub attributes: Attributes,
}

/// One file that is written in a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InGuest {
    /// The way in, as the configuration has it.
    pub guest: String,
    /// Whether the SFTP server is run under `sudo`.
    pub sudo: bool,
    /// How it goes there.
    pub restore: Restore,
    /// The path of the file.
    pub path: String,
    /// The path that is written.
    pub to: String,
    /// What is at the file's path now.
    pub present: Option<Present>,
    /// Where what is replaced is kept.
    pub kept: Option<String>,
    /// What the written file gets: the present file's; where the file is gone, the folder's owner, and a mode for that owner alone.
    pub attributes: Attributes,
}

/// What a restore of this file would write. Reads the file, and writes nothing.
pub(crate) async fn plan(
    connection: &Connection,
    (guest, sudo): (&str, bool),
    path: &str,
    restore: Restore,
    checkpoint: &str,
    read: &AtomicU64,
) -> Result<InGuest, GuestError> {
    let (folder, _) = split(path);
    in_real_folder(connection, folder).await?;
    let shown = text::named_exactly(path, 300);
    let present = match connection.look(path).await? {
        None => None,
        Some(stat) if stat.kind == Kind::File => {
            let hashed = hash(connection, path, read).await?;
            Some(Present {
                bytes: hashed.stat.bytes,
                sha256: hashed.sha256,
                attributes: hashed.stat.into(),
            })
        }
        Some(stat) => {
            return Err(GuestError::Conflict(format!(
                "{shown} is {} in the guest now, and only a regular file is restored",
                what(stat)
            )));
        }
    };
    let attributes = match &present {
        Some(present) => present.attributes,
        None => of_gone(connection, folder).await?,
    };
    let (to, kept) = match (restore, &present) {
        (Restore::Beside, _) => (beside(path, checkpoint), None),
        (Restore::Replace, None) => (path.to_owned(), None),
        (Restore::Replace, Some(present)) => {
            (path.to_owned(), Some(replaced(path, &present.sha256)))
        }
    };
    if kept.is_some() && !connection.can_replace() {
        return Err(GuestError::Unsupported("posix-rename@openssh.com"));
    }
    Ok(InGuest {
        guest: guest.to_owned(),
        sudo,
        restore,
        path: path.to_owned(),
        to,
        present,
        kept,
        attributes,
    })
}

async fn of_gone(connection: &Connection, folder: &str) -> Result<Attributes, GuestError> {
    let gone = || {
        GuestError::Conflict(format!(
            "{} is not in the guest",
            text::named_exactly(folder, 300)
        ))
    };
    let folder = connection.look(folder).await?.ok_or_else(gone)?;
    Ok(Attributes {
        mode: GONE_MODE,
        ..folder.into()
    })
}
