//! What an SFTP server's answers mean.
use super::super::GuestError;
use crate::text;
use russh_sftp::{
    client::error::Error as Sftp,
    protocol::{FileAttributes, Status, StatusCode},
};

const SHOWN_MAX: usize = 300;
/// The bits of a mode that say what it is.
const TYPE: u32 = 0o170_000;

/// What something in the guest is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Folder,
    Link,
    /// A device, a socket, a pipe.
    Other,
}

/// What the guest says about a file or folder; links are not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub kind: Kind,
    pub bytes: u64,
    pub owner: u32,
    pub group: u32,
    /// The lower twelve bits.
    pub mode: u32,
    /// Seconds since 1970.
    pub modified: u32,
}

pub(super) fn doing(verb: &str, path: &str) -> String {
    format!("{verb} {}", text::named_exactly(path, SHOWN_MAX))
}

/// Both `No such file` and the end of a file or listing are "nothing (more) is there".
pub(super) fn refused(doing: &str, status: &Status) -> GuestError {
    let doing = doing.to_owned();
    match status.status_code {
        StatusCode::NoSuchFile | StatusCode::Eof => GuestError::NotThere(doing),
        StatusCode::PermissionDenied => GuestError::Denied(doing),
        StatusCode::NoConnection | StatusCode::ConnectionLost => GuestError::Lost(doing),
        _ => {
            let said = text::display(&status.error_message, SHOWN_MAX);
            let said = match said.is_empty() {
                true => status.status_code.to_string(),
                false => said,
            };
            GuestError::Failed(format!("{doing}: the guest's SFTP server says \"{said}\""))
        }
    }
}

pub(super) fn failed(doing: &str, error: Sftp) -> GuestError {
    match error {
        Sftp::Status(status) => refused(doing, &status),
        Sftp::Limited(limit) => GuestError::Failed(format!("{doing}: {limit}")),
        Sftp::UnexpectedPacket => GuestError::Failed(format!("{doing}: the answer makes no sense")),
        Sftp::Timeout | Sftp::IO(_) | Sftp::UnexpectedBehavior(_) => {
            GuestError::Lost(doing.to_owned())
        }
    }
}

pub(super) fn not_sftp(error: &Sftp) -> GuestError {
    let why = text::display(&error.to_string(), SHOWN_MAX);
    GuestError::NoServer(format!(
        "what answered is no SFTP server ({why}); a shell's start-up file that prints something does that, too"
    ))
}

pub(super) fn stat(attributes: &FileAttributes, doing: &str) -> Result<Stat, GuestError> {
    let (Some(mode), Some(owner), Some(group)) =
        (attributes.permissions, attributes.uid, attributes.gid)
    else {
        return Err(GuestError::Failed(format!(
            "{doing}: the guest's SFTP server does not tell owner and mode"
        )));
    };
    Ok(Stat {
        kind: match mode & TYPE {
            0o100_000 => Kind::File,
            0o040_000 => Kind::Folder,
            0o120_000 => Kind::Link,
            _ => Kind::Other,
        },
        bytes: attributes.size.unwrap_or(0),
        owner,
        group,
        mode: mode & 0o7777,
        modified: attributes.mtime.unwrap_or(0),
    })
}
