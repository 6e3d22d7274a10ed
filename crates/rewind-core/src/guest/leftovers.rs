//! What a restore left in a guest whose connection or program ended in the middle.
use super::{
    GuestError,
    keep::{content_of, forget_second_name},
    names::copying,
    sftp::Connection,
};
use crate::{
    Error,
    rewind::Core,
    state::{GuestWrite, GuestWriteKind},
    text,
};

/// Why what is found so has ended.
pub(crate) const INTERRUPTED: &str = "interrupted";

/// Removes what earlier restores left there, and says what has come of them. What belongs to a program that still runs stays.
pub(super) async fn remove_leftovers(
    core: &Core,
    connection: &Connection,
    vm_identifier: &str,
) -> Result<Vec<String>, Error> {
    let (zvm, vm) = (core.config.zvm(), vm_identifier.to_owned());
    let open = core
        .with_state(move |state| state.guest_writes_left(&zvm, &vm))
        .await?;
    let mut notes = Vec::new();
    for write in open {
        let found = match remove(connection, &write).await {
            Ok(found) => found,
            Err(error) if error.is_lost() => return Err(told_first(error.into(), &notes)),
            Err(error) => {
                core.warnings.settled(&write.name);
                notes.push(format!(
                    "An earlier restore ({}) was interrupted and may have left {} in the guest: {error}.",
                    write.name,
                    told(&write.source)
                ));
                continue;
            }
        };
        // It is told here, with what was found.
        core.warnings.settled(&write.name);
        let (outcome, name) = (found.outcome(write.kind), write.name.clone());
        core.with_state(move |state| state.guest_write_ended(&name, outcome, Some(INTERRUPTED)))
            .await?;
        notes.push(found.note(&write));
    }
    Ok(notes)
}

/// What has come of it.
struct Found {
    put_in_place: bool,
    /// A second name that stays, since it is not known to be one of what is at its place.
    stays: Option<String>,
}

async fn remove(connection: &Connection, write: &GuestWrite) -> Result<Found, GuestError> {
    let target = content_of(connection, &write.target).await?;
    let waits = connection.look(&write.source).await?.is_some();
    if waits && write.source_is_temporary {
        connection.remove(&write.source).await?;
    }
    connection
        .remove(&copying(&write.target, &write.name))
        .await?;
    if !waits && target.as_ref() == Some(&write.sha256) {
        return Ok(Found {
            put_in_place: true,
            stays: None,
        });
    }
    Ok(Found {
        put_in_place: false,
        stays: match &write.copy {
            Some(copy) if !write.copy_was_there => {
                forget_second_name(connection, copy, target.as_deref()).await?
            }
            _ => None,
        },
    })
}

impl Found {
    fn outcome(&self, kind: GuestWriteKind) -> &'static str {
        match (self.put_in_place, kind) {
            (true, GuestWriteKind::Beside) => "beside",
            (true, _) => "restored",
            (false, _) => "failed",
        }
    }

    fn note(&self, write: &GuestWrite) -> String {
        let (name, target) = (&write.name, told(&write.target));
        let mut note = match self.put_in_place {
            true => format!(
                "An earlier restore ({name}) was interrupted after {target} was put in place."
            ),
            false => format!(
                "An earlier restore ({name}) was interrupted before {target} was put in place; what it left was removed."
            ),
        };
        if let Some(copy) = &self.stays {
            note.push_str(&format!(
                " {} stays: it is not what is at {target} now.",
                told(copy)
            ));
        }
        note
    }
}

/// An error after something that has to be told as well, since it is told once.
pub(crate) fn told_first(mut error: Error, notes: &[String]) -> Error {
    if !notes.is_empty() {
        error.message = format!("{} {}", notes.join(" "), error.message);
    }
    error
}

fn told(path: &str) -> String {
    text::named_exactly(path, 300)
}
