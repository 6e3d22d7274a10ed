//! A restore in a guest, written down before it begins and after it has ended.
use super::{
    Attributes, Connection, Content, GuestError, InGuest, Kind, Present, Restore, WayIn,
    content::hash,
    names::{copying, new_id, temporary, undone},
    place::{Placing, Way},
    undo::Undoing,
};
use crate::{
    Error, ErrorCode,
    rewind::Core,
    state::{GuestWrite, GuestWriteKind, UndoneBy},
    text,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::atomic::AtomicU64;
use tokio_util::sync::CancellationToken;

/// What became of one file in a guest; never rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GuestOutcome {
    /// It is at its place in the guest, and was compared there.
    Restored,
    /// It is next to the present file, and was compared there.
    Beside,
    /// Exactly this content was there already; nothing was written.
    Unchanged,
}

impl GuestOutcome {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Restored => "restored",
            Self::Beside => "beside",
            Self::Unchanged => "unchanged",
        }
    }
}

/// A file in a guest, and what became of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RestoredFile {
    /// What `undo-restore` takes; none where nothing was written.
    pub restore_id: Option<String>,
    /// What became of it.
    pub outcome: GuestOutcome,
    /// The path in the guest that has the content now.
    pub path: String,
    /// Where what was replaced is kept in the guest.
    pub kept: Option<String>,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its content, hexadecimal.
    pub sha256: String,
    /// What else there is to know.
    pub notes: Vec<String>,
}

/// A connection to one VM's guest, for restores.
pub(crate) struct Restoring<'a> {
    pub core: &'a Core,
    pub connection: &'a Connection,
    pub way: &'a WayIn,
    pub vm: &'a str,
    pub vm_identifier: &'a str,
    pub cancel: &'a CancellationToken,
    /// Bytes that were sent or compared.
    pub done: &'a AtomicU64,
}

impl Restoring<'_> {
    /// Writes one file, exactly as it was agreed to.
    pub async fn write(
        &self,
        planned: &InGuest,
        checkpoint: &str,
        content: &Content,
    ) -> Result<RestoredFile, Error> {
        let id = new_id();
        let source = temporary(&planned.to, &id);
        let way = match (&planned.present, &planned.kept) {
            (Some(present), Some(kept)) => Way::Replacing {
                present: present.clone(),
                kept: kept.clone(),
            },
            _ => Way::New,
        };
        let kind = match planned.restore {
            Restore::Beside => GuestWriteKind::Beside,
            Restore::Replace => GuestWriteKind::Replace,
        };
        let write = GuestWrite {
            kind,
            source_is_temporary: true,
            target: planned.to.clone(),
            previous_sha256: match way {
                Way::New => None,
                Way::Replacing { ref present, .. } => Some(present.sha256.clone()),
            },
            ..self
                .record(
                    id,
                    checkpoint,
                    &planned.path,
                    source,
                    planned.kept.clone(),
                    &content.sha256,
                )
                .await?
        };
        self.begun(&write).await?;
        let placing = Placing {
            connection: self.connection,
            to: &planned.to,
            way: &way,
            attributes: planned.attributes,
            temporary: &write.source,
            copying: &copying(&write.target, &write.name),
            content,
            done: self.done,
            cancel: self.cancel,
        };
        let result = placing.run().await;
        let outcome = match &result {
            Ok(placed) if placed.unchanged => GuestOutcome::Unchanged,
            _ if planned.restore == Restore::Beside => GuestOutcome::Beside,
            _ => GuestOutcome::Restored,
        };
        let remembered = self.ended(&write, outcome, result.as_ref().err()).await;
        let mut placed = result?;
        placed.notes.extend(not_remembered(remembered));
        Ok(RestoredFile {
            restore_id: (!placed.unchanged).then_some(write.name),
            outcome,
            path: planned.to.clone(),
            kept: planned.kept.clone().filter(|_| !placed.unchanged),
            bytes: content.bytes,
            sha256: content.sha256.clone(),
            notes: placed.notes,
        })
    }

    /// Puts back what a restore replaced. `present` is what is there now, as it was agreed to.
    pub async fn undo(
        &self,
        earlier: &GuestWrite,
        present: &Present,
    ) -> Result<RestoredFile, Error> {
        let before = match (&earlier.copy, &earlier.previous_sha256) {
            (Some(kept), Some(sha256)) => Some((kept.as_str(), sha256.as_str())),
            _ => None,
        };
        let path = &earlier.target;
        let away = undone(path, &present.sha256);
        let id = new_id();
        let (source, target, copy, sha256) = match before {
            Some((kept, sha256)) => (kept, path.as_str(), Some(away.clone()), sha256),
            None => (path.as_str(), away.as_str(), None, present.sha256.as_str()),
        };
        let write = GuestWrite {
            kind: GuestWriteKind::Undo,
            undoes: Some(earlier.name.clone()),
            target: target.to_owned(),
            previous_sha256: copy.as_ref().map(|_| present.sha256.clone()),
            ..self
                .record(
                    id,
                    &earlier.checkpoint,
                    path,
                    source.to_owned(),
                    copy,
                    sha256,
                )
                .await?
        };
        self.begun(&write).await?;
        let undoing = Undoing {
            connection: self.connection,
            path,
            present,
            before,
            undone: &away,
            copying: &copying(path, &write.name),
        };
        let result = undoing.run().await;
        let remembered = self
            .ended(&write, GuestOutcome::Restored, result.as_ref().err())
            .await;
        let bytes = match result {
            Ok(bytes) => bytes,
            Err(error @ GuestError::Conflict(_)) => {
                let by_hand = by_hand(self.connection, earlier).await;
                return Err(Error::from(error).with_next(by_hand));
            }
            Err(error) => return Err(error.into()),
        };
        let mut notes = match before {
            Some(_) => Vec::new(),
            None => vec![format!(
                "Nothing was at {} before that restore, and nothing is there now.",
                text::named_exactly(path, 300)
            )],
        };
        notes.extend(not_remembered(remembered));
        Ok(RestoredFile {
            // What was moved away is not put back by another undo.
            restore_id: before.map(|_| write.name),
            outcome: GuestOutcome::Restored,
            path: path.clone(),
            kept: Some(away),
            bytes,
            sha256: sha256.to_owned(),
            notes,
        })
    }

    async fn record(
        &self,
        name: String,
        checkpoint: &str,
        path: &str,
        source: String,
        copy: Option<String>,
        sha256: &str,
    ) -> Result<GuestWrite, Error> {
        let copy_was_there = match &copy {
            Some(copy) => self.connection.look(copy).await?.is_some(),
            None => false,
        };
        Ok(GuestWrite {
            name,
            zvm: self.core.config.zvm(),
            vm_identifier: self.vm_identifier.to_owned(),
            vm: self.vm.to_owned(),
            guest: self.way.shown().to_owned(),
            kind: GuestWriteKind::Replace,
            undoes: None,
            checkpoint: checkpoint.to_owned(),
            path: path.to_owned(),
            target: path.to_owned(),
            source,
            source_is_temporary: false,
            copy,
            copy_was_there,
            sha256: sha256.to_owned(),
            previous_sha256: None,
            outcome: None,
            why: None,
        })
    }

    async fn begun(&self, write: &GuestWrite) -> Result<(), Error> {
        let write = write.clone();
        self.core
            .with_state(move |state| state.guest_write_begun(&write))
            .await
    }

    /// What may have left something leaves it open: what has come of it is looked at when the guest is reached again.
    async fn ended(
        &self,
        write: &GuestWrite,
        outcome: GuestOutcome,
        error: Option<&GuestError>,
    ) -> Result<(), Error> {
        let (outcome, why) = match error {
            None => (outcome.as_str(), None),
            Some(error) if error.leaves() => {
                let name = write.name.clone();
                return self
                    .core
                    .with_state(move |state| state.guest_write_left(&name))
                    .await;
            }
            Some(GuestError::Conflict(why)) => ("conflict", Some(why.clone())),
            Some(error) => ("failed", Some(error.to_string())),
        };
        let name = write.name.clone();
        self.core
            .with_state(move |state| state.guest_write_ended(&name, outcome, why.as_deref()))
            .await
    }
}

/// What is in the guest is so, whether that can be written down or not.
fn not_remembered(remembered: Result<(), Error>) -> Option<String> {
    let error = remembered.err()?;
    Some(format!(
        "It is done, but that could not be written down: {}",
        error.message
    ))
}

/// A restore of this user's on this ZVM, unless it is known already that it can't be undone. Asks the state alone. What has come of
/// one that was interrupted is known once its guest was `reached`.
pub(crate) async fn undoable(core: &Core, id: &str, reached: bool) -> Result<GuestWrite, Error> {
    let (zvm, name) = (core.config.zvm(), id.trim().to_ascii_lowercase());
    let (found, undone) = core
        .with_state(move |state| {
            let undone = state.guest_write_undone(&zvm, &name)?;
            Ok((state.guest_write(&zvm, &name)?, undone))
        })
        .await?;
    let shown = text::display(id, 40);
    let refused =
        |why: &str| Error::new(ErrorCode::InvalidArgument, format!("restore {shown} {why}"));
    let write = found.ok_or_else(|| {
        Error::new(
            ErrorCode::NotFound,
            format!("no restore {shown} of this user on this ZVM is known"),
        )
        .with_next("Give the id that the restore answered with.")
    })?;
    if let Some(UndoneBy { name, at }) = undone {
        return Err(
            refused(&format!("was already undone at {at:.0}")).with_next(format!(
                "To have the restored file back, undo that: `zerto-rewind undo-restore {name}`."
            )),
        );
    }
    match (write.kind, write.outcome.as_deref()) {
        (_, None) if !reached => Ok(write),
        (GuestWriteKind::Beside, Some("failed")) => Err(failed(&write)),
        (_, Some(outcome @ ("conflict" | "unchanged"))) => Err(refused(&format!(
            "ended as {outcome}: nothing was replaced"
        ))
        .with_next("Nothing has to be undone.")),
        (GuestWriteKind::Beside, _) => Err(refused(
            "replaced nothing: the file is beside the present one",
        )
        .with_next("Remove the file beside in the guest, if it is not wanted.")),
        (GuestWriteKind::Undo, _) if write.copy.is_none() => Err(refused(
            "moved a restored file away, and put nothing in its place",
        )
        .with_next(format!(
            "If the file is wanted again, give it its name back in the guest: it is {} now.",
            text::named_exactly(&write.target, 300)
        ))),
        // What has failed may have come to its place; what is there is looked at in any case.
        _ => Ok(write),
    }
}

fn failed(write: &GuestWrite) -> Error {
    let why = match &write.why {
        Some(why) => format!(" ({})", text::display(why, 500)),
        None => String::new(),
    };
    Error::new(
        ErrorCode::InvalidArgument,
        format!(
            "restore {} failed{why}: there is nothing to undo",
            write.name
        ),
    )
    .with_next("Nothing has to be undone.")
}

/// What an undo would find, if it is what the restore left there.
pub(crate) async fn plan_undo(
    connection: &Connection,
    earlier: &GuestWrite,
    read: &AtomicU64,
) -> Result<Present, Error> {
    let path = &earlier.target;
    let found = connection.look(path).await?;
    let is_file = found.as_ref().is_some_and(|stat| stat.kind == Kind::File);
    let hashed = match is_file {
        true => Some(hash(connection, path, read).await?),
        false => None,
    };
    if let Some(hashed) = hashed
        && hashed.sha256 == earlier.sha256
    {
        return Ok(Present {
            bytes: hashed.stat.bytes,
            attributes: Attributes::from(hashed.stat),
            sha256: hashed.sha256,
        });
    }
    if earlier.outcome.as_deref() == Some("failed")
        && !came_to_its_place(connection, earlier).await?
    {
        return Err(failed(earlier));
    }
    let what = match found {
        None => "is not there any more",
        Some(_) if !is_file => "is no regular file any more",
        Some(_) => "was changed since it was restored",
    };
    let shown = text::named_exactly(path, 300);
    let conflict = Error::from(GuestError::Conflict(format!("{shown} {what}")));
    Err(conflict.with_next(by_hand(connection, earlier).await))
}

/// What a person can do where no undo will ever fit what is in the guest.
async fn by_hand(connection: &Connection, earlier: &GuestWrite) -> String {
    let kept = match (&earlier.copy, &earlier.previous_sha256) {
        (Some(kept), Some(before)) => {
            let there = hash(connection, kept, &AtomicU64::new(0)).await;
            let is_it = there.is_ok_and(|there| there.sha256 == *before);
            is_it.then_some(kept)
        }
        _ => None,
    };
    let recover =
        "with `zerto-rewind recover`, from a checkpoint that `zerto-rewind checkpoints` lists";
    match kept {
        Some(kept) => format!(
            "No undo overwrites what came after the restore. What the restore had replaced is kept as {}: copy it back by hand in the guest; or \
             recover the file {recover}.",
            text::named_exactly(kept, 4096)
        ),
        None => format!(
            "No undo overwrites what came after the restore. Put it right by hand in the guest; or recover the file {recover}."
        ),
    }
}

/// Whether what has failed had replaced the file before: only then is a name that it made for that one still there.
async fn came_to_its_place(
    connection: &Connection,
    earlier: &GuestWrite,
) -> Result<bool, GuestError> {
    match &earlier.copy {
        Some(copy) if !earlier.copy_was_there => Ok(connection.look(copy).await?.is_some()),
        _ => Ok(false),
    }
}
