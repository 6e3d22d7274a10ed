//! What a restore replaced, put back in its place; what is there now is kept.
use super::{
    GuestError, Present,
    checks::{as_agreed, in_real_folder},
    content::{hash, holds},
    keep::Keeping,
    names::split,
    sftp::Connection,
};
use crate::text;
use std::sync::atomic::AtomicU64;

/// What is done.
pub(super) struct Undoing<'a> {
    pub connection: &'a Connection,
    pub path: &'a str,
    /// What is there now.
    pub present: &'a Present,
    /// What was there before, and where it was kept. None: nothing was.
    pub before: Option<(&'a str, &'a str)>,
    /// Where what is there now goes.
    pub undone: &'a str,
    /// Where a copy of it is made, if there has to be one.
    pub copying: &'a str,
}

impl Undoing<'_> {
    /// The size of what was put back, or moved away.
    pub async fn run(&self) -> Result<u64, GuestError> {
        let folder = split(self.path).0;
        in_real_folder(self.connection, folder).await?;
        let found = self.connection.look(self.path).await?;
        as_agreed(self.path, self.present, found)?;
        let bytes = match self.before {
            Some((kept, sha256)) => self.put_back(kept, sha256).await?,
            None => self.move_away().await?,
        };
        self.connection.sync_folder(folder).await?;
        Ok(bytes)
    }

    async fn put_back(&self, kept: &str, sha256: &str) -> Result<u64, GuestError> {
        let nobody = &AtomicU64::new(0);
        let there = self.connection.look(kept).await?;
        let shown = text::named_exactly(kept, 300);
        if there.is_none() || hash(self.connection, kept, nobody).await?.sha256 != sha256 {
            return Err(GuestError::Conflict(format!(
                "{shown} is not what was replaced any more"
            )));
        }
        let mut made = false;
        let keeping = Keeping {
            connection: self.connection,
            path: self.path,
            kept: self.undone,
            copying: self.copying,
            sha256: &self.present.sha256,
            attributes: self.present.attributes,
        };
        let done = async {
            keeping.keep(&mut made).await?;
            self.connection.rename_over(kept, self.path).await
        }
        .await;
        if let Err(error) = done {
            if made && !error.is_lost() {
                return Err(error.after(keeping.forget().await));
            }
            return Err(error);
        }
        match holds(self.connection, self.path, sha256, nobody).await? {
            Some(stat) => Ok(stat.bytes),
            None => Err(GuestError::Failed(format!(
                "{} was put back, and has other content already: something writes to it",
                text::named_exactly(self.path, 300)
            ))),
        }
    }

    /// Nothing was there before.
    async fn move_away(&self) -> Result<u64, GuestError> {
        self.connection.rename(self.path, self.undone).await?;
        let (moved, nobody) = (&self.present.sha256, &AtomicU64::new(0));
        if let Some(stat) = holds(self.connection, self.undone, moved, nobody).await? {
            return Ok(stat.bytes);
        }
        self.connection.rename(self.undone, self.path).await?;
        Err(GuestError::Conflict(format!(
            "{} was changed since it was looked at; it is as it was",
            text::named_exactly(self.path, 300)
        )))
    }
}
