//! The present content of a file under a second name, before something takes its place.
use super::{
    Attributes, GuestError,
    checks::{changed, what},
    content::hash,
    sftp::{Connection, Kind, Open},
};
use crate::text;
use russh_sftp::protocol::FileAttributes;
use std::sync::atomic::AtomicU64;

/// The present content of a path under another name, too.
pub(super) struct Keeping<'a> {
    pub connection: &'a Connection,
    pub path: &'a str,
    pub kept: &'a str,
    /// Where a copy is made, if there has to be one.
    pub copying: &'a str,
    /// What it has to be.
    pub sha256: &'a str,
    pub attributes: Attributes,
}

/// SHA-256 of the file at this path, if there is a file.
pub(super) async fn content_of(
    connection: &Connection,
    path: &str,
) -> Result<Option<String>, GuestError> {
    match connection.look(path).await? {
        Some(stat) if stat.kind == Kind::File => {
            let hashed = hash(connection, path, &AtomicU64::new(0)).await?;
            Ok(Some(hashed.sha256))
        }
        _ => Ok(None),
    }
}

/// Removes a second name of what is still at its place, which has the content `target`. Of anything else it may be the only one: then
/// it stays, and is returned.
pub(super) async fn forget_second_name(
    connection: &Connection,
    name: &str,
    target: Option<&str>,
) -> Result<Option<String>, GuestError> {
    if connection.look(name).await?.is_none() {
        return Ok(None);
    }
    let content = content_of(connection, name).await?;
    if content.is_some() && content.as_deref() == target {
        connection.remove(name).await?;
        return Ok(None);
    }
    Ok(Some(name.to_owned()))
}

impl Keeping<'_> {
    /// Removes the second name, or what there is of it; but not where it is the only one by now: another restore may rely on it.
    pub async fn forget(&self) -> Result<(), GuestError> {
        self.connection.remove(self.copying).await?;
        let there = content_of(self.connection, self.path).await?;
        forget_second_name(self.connection, self.kept, there.as_deref())
            .await
            .map(drop)
    }

    /// A second name of the same file, with all that belongs to it; a copy, where the guest can't have that. `made` turns true
    /// before it may be there.
    pub async fn keep(&self, made: &mut bool) -> Result<(), GuestError> {
        let (connection, kept) = (self.connection, self.kept);
        let nobody = &AtomicU64::new(0);
        if let Some(stat) = connection.look(kept).await? {
            let same = stat.kind == Kind::File
                && hash(connection, kept, nobody).await?.sha256 == self.sha256;
            return match same {
                // The same content was kept before; that the present one is it, is still to be seen.
                true => self.is_still(self.path).await,
                false => Err(GuestError::Conflict(format!(
                    "{} is at {}, where the present file would be kept",
                    what(stat),
                    text::named_exactly(kept, 300)
                ))),
            };
        }
        *made = true;
        match connection.link(self.path, kept).await {
            Ok(()) => self.is_still(kept).await,
            Err(GuestError::Unsupported(_) | GuestError::Failed(_) | GuestError::Denied(_)) => {
                self.copy().await
            }
            Err(error) => Err(error),
        }
    }

    async fn is_still(&self, path: &str) -> Result<(), GuestError> {
        match hash(self.connection, path, &AtomicU64::new(0))
            .await?
            .sha256
            == self.sha256
        {
            true => Ok(()),
            false => Err(changed(self.path)),
        }
    }

    async fn copy(&self) -> Result<(), GuestError> {
        let connection = self.connection;
        let from = connection.read_open(self.path).await?;
        let to = connection.create(self.copying).await?;
        let copied = self.copy_open(&from, &to).await;
        if matches!(&copied, Err(error) if error.is_lost()) {
            return copied;
        }
        connection.close(from).await?;
        connection.close(to).await?;
        copied?;
        connection.rename(self.copying, self.kept).await?;
        self.is_still(self.kept).await
    }

    async fn copy_open(&self, from: &Open, to: &Open) -> Result<(), GuestError> {
        let (connection, piece) = (self.connection, self.connection.piece() as u64);
        let stat = connection.stat(from, self.path).await?;
        let mut at = 0;
        while at < stat.bytes {
            let part = connection
                .read_part(from, self.path, at, piece.min(stat.bytes - at))
                .await?;
            let length = part.len() as u64;
            connection.write(to, self.copying, at, part).await?;
            at += length;
        }
        let owner = FileAttributes {
            uid: Some(self.attributes.owner),
            gid: Some(self.attributes.group),
            ..FileAttributes::empty()
        };
        connection.set(to, self.copying, owner).await?;
        let mode = FileAttributes {
            permissions: Some(self.attributes.mode),
            atime: Some(stat.modified),
            mtime: Some(stat.modified),
            ..FileAttributes::empty()
        };
        connection.set(to, self.copying, mode).await?;
        connection.sync(to, self.copying).await
    }
}
