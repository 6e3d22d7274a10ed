//! One file restored in a guest: under a temporary name, complete, durable and compared, before one rename puts it in its place.
//!
//! Whatever breaks in between, the path has the old file or the new one, never a half. What was begun is taken back where the
//! connection still stands; else what is left is written down, and removed when the guest is reached again.
use super::{
    Attributes, GuestError, Present,
    checks::{as_agreed, in_real_folder, what},
    content::{Content, Hashed, hash, hash_open, holds, send},
    keep::Keeping,
    names::split,
    sftp::{Connection, Kind, Open, Stat},
};
use crate::text;
use russh_sftp::protocol::FileAttributes;
use std::{future::Future, sync::atomic::AtomicU64, time::Duration};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Who cancelled is not kept waiting for long.
const TAKE_BACK: Duration = Duration::from_secs(10);
/// A copy of its own is readable by its owner alone.
const PRIVATE: u32 = 0o700;

/// Where the content goes.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// To a place where nothing is.
    New,
    /// To the place of a file, which is kept under another name.
    Replacing { present: Present, kept: String },
}

/// What is done.
pub(crate) struct Placing<'a> {
    pub connection: &'a Connection,
    /// Where it goes, absolute.
    pub to: &'a str,
    pub way: &'a Way,
    pub attributes: Attributes,
    pub temporary: &'a str,
    /// Where a copy of what is replaced is made, if there has to be one.
    pub copying: &'a str,
    pub content: &'a Content,
    /// Bytes that were sent or compared.
    pub done: &'a AtomicU64,
    pub cancel: &'a CancellationToken,
}

/// How it ended, if it did not fail.
#[derive(Debug)]
pub(crate) struct Placed {
    /// Exactly this content was there already; nothing was written.
    pub unchanged: bool,
    pub notes: Vec<String>,
}

/// What was made and is not at its place.
#[derive(Default)]
struct Loose {
    temporary: bool,
    kept: bool,
}

impl Placing<'_> {
    /// Does it. What [`leaves`](GuestError::leaves) something behind says so.
    pub async fn run(&self) -> Result<Placed, GuestError> {
        let mut loose = Loose::default();
        let mut notes = Vec::new();
        let prepared = self.cancellable(self.prepare(&mut loose, &mut notes)).await;
        let result = match prepared {
            Ok(true) => self.commit(&mut loose).await,
            Ok(false) => {
                return Ok(Placed {
                    unchanged: true,
                    notes,
                });
            }
            Err(error) => Err(error),
        };
        match result {
            Ok(()) => Ok(Placed {
                unchanged: false,
                notes,
            }),
            Err(error) if error.is_lost() => Err(error),
            Err(error) => Err(error.after(self.take_back(&loose).await)),
        }
    }

    async fn cancellable<T>(
        &self,
        work: impl Future<Output = Result<T, GuestError>>,
    ) -> Result<T, GuestError> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => {
                let path = text::named_exactly(self.to, 300);
                Err(GuestError::Cancelled(format!("writing {path}; it is as it was")))
            }
            result = work => result,
        }
    }

    /// Everything up to the rename. False: there is nothing to do.
    async fn prepare(
        &self,
        loose: &mut Loose,
        notes: &mut Vec<String>,
    ) -> Result<bool, GuestError> {
        let (folder, _) = split(self.to);
        in_real_folder(self.connection, folder).await?;
        if self.is_there_already().await? {
            return Ok(false);
        }
        if let Way::Replacing { .. } = self.way
            && !self.connection.can_replace()
        {
            return Err(GuestError::Unsupported("posix-rename@openssh.com"));
        }
        self.make_sure_of_room(folder).await?;
        // From here on it may be there, whether an answer arrives or not.
        loose.temporary = true;
        let open = self.connection.create(self.temporary).await?;
        let written = self.fill(&open, notes).await;
        let written = match written {
            Err(GuestError::Failed(why)) => Err(self.full_or(folder, why).await),
            written => written,
        };
        if !matches!(&written, Err(error) if error.is_lost()) {
            self.connection.close(open).await?;
        }
        written?;
        if let Some(keeping) = self.keeping() {
            keeping.keep(&mut loose.kept).await?;
        }
        if !self.connection.can_sync() {
            notes.push("The guest's SFTP server can't make the content survive a power cut at once (no fsync@openssh.com).".to_owned());
        }
        Ok(true)
    }

    /// A second name for what is replaced.
    fn keeping(&self) -> Option<Keeping<'_>> {
        match self.way {
            Way::New => None,
            Way::Replacing { present, kept } => Some(Keeping {
                connection: self.connection,
                path: self.to,
                kept,
                copying: self.copying,
                sha256: &present.sha256,
                attributes: present.attributes,
            }),
        }
    }

    /// Whether exactly this content is there already; a conflict where something is there that nobody agreed to.
    async fn is_there_already(&self) -> Result<bool, GuestError> {
        let found = self.connection.look(self.to).await?;
        let same_size = matches!(&found, Some(stat) if stat.kind == Kind::File && stat.bytes == self.content.bytes);
        let shown = text::named_exactly(self.to, 300);
        match self.way {
            Way::New => match found {
                None => Ok(false),
                Some(_) if same_size && self.is(&self.content.sha256).await? => Ok(true),
                Some(stat) => Err(GuestError::Conflict(format!(
                    "{} is at {shown} now; it is not overwritten",
                    what(stat)
                ))),
            },
            Way::Replacing { present, .. } => {
                as_agreed(self.to, present, found)?;
                Ok(present.sha256 == self.content.sha256 && self.is(&present.sha256).await?)
            }
        }
    }

    async fn is(&self, sha256: &str) -> Result<bool, GuestError> {
        Ok(hash(self.connection, self.to, self.done).await?.sha256 == sha256)
    }

    async fn make_sure_of_room(&self, folder: &str) -> Result<(), GuestError> {
        match self.connection.room(folder).await? {
            Some(room) if room < self.content.bytes => Err(GuestError::NoRoom(format!(
                "{} needed in {}, {room} are free",
                text::counted(self.content.bytes, "byte is", "bytes are"),
                text::named_exactly(folder, 300)
            ))),
            _ => Ok(()),
        }
    }

    /// SFTP has no word for a full disk.
    async fn full_or(&self, folder: &str, why: String) -> GuestError {
        let piece = self.connection.piece() as u64;
        match self.connection.room(folder).await {
            Ok(Some(room)) if room < piece => GuestError::NoRoom(why),
            Err(error) if error.is_lost() => error,
            _ => GuestError::Failed(why),
        }
    }

    /// Content, owner, mode and time; durable, and compared.
    async fn fill(&self, open: &Open, notes: &mut Vec<String>) -> Result<(), GuestError> {
        let (connection, path) = (self.connection, self.temporary);
        send(connection, open, path, self.content, self.done).await?;
        let wanted = self.give_owner(open, notes).await?;
        let mode = FileAttributes {
            permissions: Some(wanted.mode),
            atime: self.content.modified,
            mtime: self.content.modified,
            ..FileAttributes::empty()
        };
        connection.set(open, path, mode).await?;
        if self.content.modified.is_none() {
            notes.push("The modification time of the checkpoint is not known; the file has the present time.".to_owned());
        }
        connection.sync(open, path).await?;
        let arrived = hash_open(connection, open, path, self.done).await?;
        self.compare(&arrived, wanted)
    }

    /// Whose it is now. A new file that can't be given to somebody else is the guest user's own, and private; a replacement is not.
    async fn give_owner(
        &self,
        open: &Open,
        notes: &mut Vec<String>,
    ) -> Result<Attributes, GuestError> {
        let wanted = self.attributes;
        let path = self.temporary;
        let made = Attributes::from(self.connection.stat(open, path).await?);
        if (made.owner, made.group) == (wanted.owner, wanted.group) {
            return Ok(wanted);
        }
        let owner = FileAttributes {
            uid: Some(wanted.owner),
            gid: Some(wanted.group),
            ..FileAttributes::empty()
        };
        match self.connection.set(open, path, owner).await {
            Ok(()) => Ok(wanted),
            Err(GuestError::Denied(_)) if matches!(self.way, Way::New) => {
                notes.push(format!(
                    "The guest's user may not give the file to user {} and group {}: it is its own, and nobody else may read it.",
                    wanted.owner, wanted.group
                ));
                Ok(Attributes {
                    mode: wanted.mode & PRIVATE,
                    ..made
                })
            }
            Err(GuestError::Denied(_)) => Err(GuestError::Denied(format!(
                "giving the restored file to user {} and group {}, whose the present one is",
                wanted.owner, wanted.group
            ))),
            Err(error) => Err(error),
        }
    }

    fn compare(&self, found: &Hashed, wanted: Attributes) -> Result<(), GuestError> {
        let path = text::named_exactly(self.to, 300);
        if found.sha256 != self.content.sha256 {
            return Err(GuestError::Failed(format!(
                "what was read back of {path} is not what was sent"
            )));
        }
        if Attributes::from(found.stat) != wanted {
            return Err(GuestError::Failed(format!(
                "owner, group and mode of {path} can't be set: they are {}, not {}",
                Attributes::from(found.stat),
                wanted
            )));
        }
        Ok(())
    }

    /// The rename, and a look at what it has come to.
    async fn commit(&self, loose: &mut Loose) -> Result<(), GuestError> {
        let (connection, to) = (self.connection, self.to);
        let renamed = match self.way {
            Way::Replacing { .. } => connection.rename_over(self.temporary, to).await,
            Way::New => connection.rename(self.temporary, to).await,
        };
        match renamed {
            Err(GuestError::Failed(why)) => {
                return Err(match connection.look(to).await? {
                    Some(stat) if matches!(self.way, Way::New) => GuestError::Conflict(format!(
                        "{} has appeared at {}",
                        what(stat),
                        text::named_exactly(to, 300)
                    )),
                    _ => GuestError::Failed(why),
                });
            }
            renamed => renamed?,
        }
        *loose = Loose::default();
        connection.sync_folder(split(to).0).await?;
        let there = connection.look(to).await?;
        if !matches!(
            there,
            Some(Stat {
                kind: Kind::File,
                ..
            })
        ) {
            return Err(self.in_place_but("is no regular file any more"));
        }
        match holds(connection, to, &self.content.sha256, self.done).await? {
            Some(_) => Ok(()),
            None => Err(self.in_place_but("has other content already: something writes to it")),
        }
    }

    /// It can't be told any more whether it came there whole.
    fn in_place_but(&self, what: &str) -> GuestError {
        let to = text::named_exactly(self.to, 300);
        let kept = match self.way {
            Way::New => String::new(),
            Way::Replacing { kept, .. } => {
                format!(
                    "; what it replaced is kept as {}",
                    text::named_exactly(kept, 300)
                )
            }
        };
        GuestError::Failed(format!("{to} was put in its place, and {what}{kept}"))
    }

    async fn take_back(&self, loose: &Loose) -> Result<(), GuestError> {
        let removing = async {
            if loose.temporary {
                self.connection.remove(self.temporary).await?;
            }
            if loose.kept
                && let Some(keeping) = self.keeping()
            {
                keeping.forget().await?;
            }
            Ok(())
        };
        let left = || {
            GuestError::Lost(format!(
                "removing {}",
                text::named_exactly(self.temporary, 300)
            ))
        };
        timeout(TAKE_BACK, removing).await.map_err(|_| left())?
    }
}
