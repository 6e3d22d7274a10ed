//! Whether what is in the guest is what somebody has agreed to, as far as it can be told without reading it.
use super::{
    Attributes, GuestError, Present,
    sftp::{Connection, Kind, Stat},
};
use crate::text;

/// A folder that is reached through a link may be another one in the next moment.
pub(super) async fn in_real_folder(
    connection: &Connection,
    folder: &str,
) -> Result<(), GuestError> {
    let shown = text::named_exactly(folder, 300);
    match connection.look(folder).await? {
        Some(stat) if stat.kind == Kind::Folder => {}
        Some(stat) => {
            return Err(GuestError::Conflict(format!(
                "{shown} is {}, no folder",
                what(stat)
            )));
        }
        None => {
            return Err(GuestError::Conflict(format!(
                "the folder {shown} is not in the guest any more"
            )));
        }
    }
    let real = connection.real_path(folder).await?;
    match real == folder {
        true => Ok(()),
        false => Err(GuestError::Conflict(format!(
            "{shown} leads over a link to {}; links are not followed",
            text::named_exactly(&real, 300)
        ))),
    }
}

/// Whether what was found is, by all that can be told without reading it, what was agreed to.
pub(super) fn as_agreed(
    path: &str,
    present: &Present,
    found: Option<Stat>,
) -> Result<(), GuestError> {
    let shown = || text::named_exactly(path, 300);
    match found {
        None => Err(GuestError::Conflict(format!(
            "{} is not there any more",
            shown()
        ))),
        Some(stat) if stat.kind != Kind::File => Err(GuestError::Conflict(format!(
            "{} is {} now; it is not replaced",
            shown(),
            what(stat)
        ))),
        Some(stat)
            if stat.bytes != present.bytes || Attributes::from(stat) != present.attributes =>
        {
            Err(changed(path))
        }
        Some(_) => Ok(()),
    }
}

pub(super) fn changed(path: &str) -> GuestError {
    GuestError::Conflict(format!(
        "{} was changed since it was looked at",
        text::named_exactly(path, 300)
    ))
}

pub(super) const fn what(stat: Stat) -> &'static str {
    match stat.kind {
        Kind::File => "a file",
        Kind::Folder => "a folder",
        Kind::Link => "a symbolic link",
        Kind::Other => "a device, socket or pipe",
    }
}
