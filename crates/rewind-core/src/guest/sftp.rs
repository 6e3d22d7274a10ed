//! SFTP as far as a restore needs it: each call says what it was doing when it failed, and none waits for a connection that is gone.
mod answers;

use super::{GuestError, ssh::Ssh};
use crate::{config::Guest, text};
pub(crate) use answers::{Kind, Stat};
use answers::{doing, failed, not_sftp, refused, stat};
use futures::{StreamExt as _, stream::FuturesOrdered};
use russh_sftp::{
    client::{Config, RawSftpSession, error::Error as Sftp},
    protocol::{FileAttributes, OpenFlags, Packet, StatusCode},
    ser,
};
use serde::Serialize;
use std::{collections::HashMap, future::Future, time::Duration};
use tokio::{sync::watch, time::timeout};

/// A reply may wait for a slow disk (`fsync` of a large file); a dead connection is noticed by the client much earlier.
const REPLY_SECONDS: u64 = 300;
/// For the first reply: the login is in it.
const LOGIN: Duration = Duration::from_secs(60);
/// Bytes that are asked for at once, and how often at the same time.
const PIECE: u32 = 128 * 1024;
pub(super) const PIECES: usize = 16;
/// Names of one folder that are looked through.
const NAMES_MAX: usize = 200_000;

const POSIX_RENAME: &str = "posix-rename@openssh.com";
const HARDLINK: &str = "hardlink@openssh.com";
const FSYNC: &str = "fsync@openssh.com";
const STATVFS: &str = "statvfs@openssh.com";

/// An open file in the guest. It is closed by [`Connection::close`], or with the connection.
pub(super) struct Open(String);

/// An SFTP session over a client of the user's.
pub(crate) struct Connection {
    raw: RawSftpSession,
    extensions: HashMap<String, String>,
    piece: u32,
    silent: watch::Receiver<bool>,
    /// Behind the session, so that it ends after it.
    _ssh: Ssh,
}

#[derive(Serialize)]
struct TwoPaths<'a> {
    from: &'a str,
    to: &'a str,
}

impl Connection {
    pub async fn open(guest: &Guest) -> Result<Self, GuestError> {
        if let Some(file) = &guest.ssh_config
            && let Err(error) = tokio::fs::metadata(file).await
        {
            let file = text::path(&file.to_string_lossy());
            return Err(GuestError::NoConfig(format!("{file}: {error}")));
        }
        let (ssh, stream) = Ssh::start(guest)?;
        let config = Config {
            request_timeout_secs: REPLY_SECONDS,
            ..Config::default()
        };
        let raw = RawSftpSession::new_with_config(stream, config);
        let version = match timeout(LOGIN, raw.init()).await {
            Ok(Ok(version)) => version,
            Ok(Err(error)) => {
                let why = ssh.why().await;
                let runs_on = !ssh.has_ended();
                return Err(match why {
                    GuestError::Unreachable(_) | GuestError::NoWord if runs_on => not_sftp(&error),
                    why => why,
                });
            }
            Err(_) => {
                let seconds = LOGIN.as_secs();
                return Err(GuestError::Unreachable(format!(
                    "no SFTP server answered within {seconds} s"
                )));
            }
        };
        let mut connection = Self {
            raw,
            extensions: version.extensions,
            piece: 32 * 1024,
            silent: ssh.silent(),
            _ssh: ssh,
        };
        connection.learn_limits().await?;
        Ok(connection)
    }

    async fn learn_limits(&mut self) -> Result<(), GuestError> {
        if !self.has("limits@openssh.com") {
            return Ok(());
        }
        let limits = self.ask("asking for limits", self.raw.limits()).await?;
        let limit = |limit: u64| match limit {
            0 => PIECE,
            limit => u32::try_from(limit).unwrap_or(PIECE).min(PIECE),
        };
        self.piece = limit(limits.max_read_len).min(limit(limits.max_write_len));
        Ok(())
    }

    fn has(&self, extension: &str) -> bool {
        self.extensions.contains_key(extension)
    }

    pub fn can_replace(&self) -> bool {
        self.has(POSIX_RENAME)
    }

    pub fn can_sync(&self) -> bool {
        self.has(FSYNC)
    }

    async fn ask<T>(
        &self,
        doing: impl AsRef<str>,
        request: impl Future<Output = Result<T, Sftp>>,
    ) -> Result<T, GuestError> {
        let mut silent = self.silent.clone();
        let result = tokio::select! {
            // What arrived before the connection broke counts.
            biased;
            result = request => result,
            _ = silent.wait_for(|silent| *silent) => {
                return Err(GuestError::Lost(doing.as_ref().to_owned()));
            }
        };
        result.map_err(|error| failed(doing.as_ref(), error))
    }

    /// What is at the path; None where nothing is.
    pub async fn look(&self, path: &str) -> Result<Option<Stat>, GuestError> {
        let doing = doing("looking at", path);
        match self.ask(&doing, self.raw.lstat(path)).await {
            Ok(found) => Ok(Some(stat(&found.attrs, &doing)?)),
            Err(GuestError::NotThere(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The path with all links in it followed.
    pub async fn real_path(&self, path: &str) -> Result<String, GuestError> {
        let doing = doing("resolving", path);
        let name = self.ask(&doing, self.raw.realpath(path)).await?;
        let first = name.files.into_iter().next();
        first
            .map(|file| file.filename)
            .ok_or_else(|| GuestError::Failed(format!("{doing}: the answer is empty")))
    }

    /// What is in a folder, by name.
    pub async fn names(&self, folder: &str) -> Result<Vec<(String, Stat)>, GuestError> {
        let doing = doing("listing", folder);
        let open = Open(self.ask(&doing, self.raw.opendir(folder)).await?.handle);
        let mut names = Vec::new();
        loop {
            match self.ask(&doing, self.raw.readdir(open.0.as_str())).await {
                Ok(some) => {
                    for file in some.files {
                        if file.filename != "." && file.filename != ".." {
                            names.push((file.filename, stat(&file.attrs, &doing)?));
                        }
                    }
                }
                Err(GuestError::NotThere(_)) => break,
                Err(error) => return Err(error),
            }
            if names.len() > NAMES_MAX {
                self.close(open).await?;
                return Err(GuestError::Failed(format!("{doing}: too much is in it")));
            }
        }
        self.close(open).await?;
        Ok(names)
    }

    /// Opens for reading.
    pub(super) async fn read_open(&self, path: &str) -> Result<Open, GuestError> {
        self.open_with(path, "reading", OpenFlags::READ, FileAttributes::empty())
            .await
    }

    /// Makes a file that only its owner can read, where nothing is.
    pub(super) async fn create(&self, path: &str) -> Result<Open, GuestError> {
        let attributes = FileAttributes {
            permissions: Some(0o600),
            ..FileAttributes::empty()
        };
        let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCLUDE;
        self.open_with(path, "making", flags, attributes).await
    }

    async fn open_with(
        &self,
        path: &str,
        verb: &str,
        flags: OpenFlags,
        attributes: FileAttributes,
    ) -> Result<Open, GuestError> {
        let request = self.raw.open(path, flags, attributes);
        Ok(Open(self.ask(doing(verb, path), request).await?.handle))
    }

    pub(super) async fn close(&self, open: Open) -> Result<(), GuestError> {
        self.ask("closing a file", self.raw.close(open.0)).await?;
        Ok(())
    }

    pub(super) async fn stat(&self, open: &Open, path: &str) -> Result<Stat, GuestError> {
        let doing = doing("looking at", path);
        let found = self.ask(&doing, self.raw.fstat(open.0.as_str())).await?;
        stat(&found.attrs, &doing)
    }

    /// Gives `take` the content piece by piece, in order. Memory is bounded, whatever the size.
    pub(super) async fn read(
        &self,
        open: &Open,
        path: &str,
        bytes: u64,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), GuestError> {
        let doing = doing("reading", path);
        let ended = || GuestError::Conflict(format!("{doing}: it has changed meanwhile"));
        let mut asked = FuturesOrdered::new();
        let mut at = 0;
        loop {
            while at < bytes && asked.len() < PIECES {
                let length =
                    u32::try_from(bytes - at).map_or(self.piece, |left| left.min(self.piece));
                asked.push_back(self.read_piece(open, &doing, at, length));
                at += u64::from(length);
            }
            match asked.next().await {
                Some(piece) => take(&piece?.ok_or_else(ended)?),
                None => break,
            }
        }
        // Nothing may come after what it was said to have.
        match self.read_piece(open, &doing, bytes, 1).await? {
            None => Ok(()),
            Some(_) => Err(ended()),
        }
    }

    /// Exactly these bytes, of a file that has them.
    pub(super) async fn read_part(
        &self,
        open: &Open,
        path: &str,
        at: u64,
        length: u64,
    ) -> Result<Vec<u8>, GuestError> {
        let doing = doing("reading", path);
        let length = u32::try_from(length).unwrap_or(self.piece);
        let part = self.read_piece(open, &doing, at, length).await?;
        part.ok_or_else(|| GuestError::Conflict(format!("{doing}: it has changed meanwhile")))
    }

    /// Exactly these bytes; None where the file ends before.
    async fn read_piece(
        &self,
        open: &Open,
        doing: &str,
        at: u64,
        length: u32,
    ) -> Result<Option<Vec<u8>>, GuestError> {
        let mut piece = Vec::new();
        while piece.len() < length as usize {
            let got = piece.len() as u64;
            let left = length.saturating_sub(u32::try_from(got).unwrap_or(length));
            let request = self.raw.read(open.0.as_str(), at + got, left);
            match self.ask(doing, request).await {
                Ok(data) if data.data.is_empty() || data.data.len() > left as usize => {
                    return Err(GuestError::Failed(format!(
                        "{doing}: the answer makes no sense"
                    )));
                }
                Ok(data) if piece.is_empty() => piece = data.data,
                Ok(data) => piece.extend(data.data),
                // Its end, see `failed`.
                Err(GuestError::NotThere(_)) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(piece))
    }

    /// Writes at a place. Several may be under way at once, see [`PIECES`].
    pub(super) async fn write(
        &self,
        open: &Open,
        path: &str,
        at: u64,
        piece: Vec<u8>,
    ) -> Result<(), GuestError> {
        let request = self.raw.write(open.0.as_str(), at, piece);
        self.ask(doing("writing", path), request).await?;
        Ok(())
    }

    /// How much is written at once.
    pub(super) fn piece(&self) -> usize {
        self.piece as usize
    }

    pub(super) async fn set(
        &self,
        open: &Open,
        path: &str,
        attributes: FileAttributes,
    ) -> Result<(), GuestError> {
        let request = self.raw.fsetstat(open.0.as_str(), attributes);
        self.ask(doing("setting the attributes of", path), request)
            .await?;
        Ok(())
    }

    /// Makes the content survive a power cut, where the server can.
    pub(super) async fn sync(&self, open: &Open, path: &str) -> Result<(), GuestError> {
        if self.can_sync() {
            let request = self.raw.fsync(open.0.as_str());
            self.ask(doing("syncing", path), request).await?;
        }
        Ok(())
    }

    /// Makes what was renamed in a folder survive a power cut, where the server can.
    pub(super) async fn sync_folder(&self, folder: &str) -> Result<(), GuestError> {
        if !self.can_sync() {
            return Ok(());
        }
        // OpenSSH's server opens a folder like a file; another one may not, and then there is no way.
        match self.read_open(folder).await {
            Ok(open) => {
                let synced = self.sync(&open, folder).await;
                let closed = self.close(open).await;
                match synced.and(closed) {
                    Err(error) if error.is_lost() => Err(error),
                    _ => Ok(()),
                }
            }
            Err(error) if error.is_lost() => Err(error),
            Err(error) => {
                tracing::debug!(%error, "the folder can't be synced");
                Ok(())
            }
        }
    }

    /// Renames onto what is there, in one step.
    pub(super) async fn rename_over(&self, from: &str, to: &str) -> Result<(), GuestError> {
        self.two_paths(POSIX_RENAME, "renaming to", from, to).await
    }

    /// Renames where nothing is.
    pub(super) async fn rename(&self, from: &str, to: &str) -> Result<(), GuestError> {
        let request = self.raw.rename(from, to);
        self.ask(doing("renaming to", to), request).await?;
        Ok(())
    }

    /// Gives a file a second name, where nothing is.
    pub(super) async fn link(&self, from: &str, to: &str) -> Result<(), GuestError> {
        self.two_paths(HARDLINK, "linking to", from, to).await
    }

    async fn two_paths(
        &self,
        extension: &'static str,
        verb: &str,
        from: &str,
        to: &str,
    ) -> Result<(), GuestError> {
        if !self.has(extension) {
            return Err(GuestError::Unsupported(extension));
        }
        let doing = doing(verb, to);
        let paths = ser::to_bytes(&TwoPaths { from, to })
            .map_err(|error| GuestError::Failed(format!("{doing}: {error}")))?;
        match self
            .ask(&doing, self.raw.extended(extension, paths.to_vec()))
            .await?
        {
            Packet::Status(status) if status.status_code == StatusCode::Ok => Ok(()),
            Packet::Status(status) => Err(refused(&doing, &status)),
            _ => Err(GuestError::Failed(format!(
                "{doing}: the answer makes no sense"
            ))),
        }
    }

    /// Removes a file. That it is not there is no error.
    pub(super) async fn remove(&self, path: &str) -> Result<(), GuestError> {
        match self
            .ask(doing("removing", path), self.raw.remove(path))
            .await
        {
            Ok(_) | Err(GuestError::NotThere(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Bytes that can still be written below a folder, where the server tells.
    pub(super) async fn room(&self, folder: &str) -> Result<Option<u64>, GuestError> {
        if !self.has(STATVFS) {
            return Ok(None);
        }
        let request = self.raw.statvfs(folder);
        match self.ask(doing("measuring", folder), request).await {
            Ok(found) => Ok(Some(found.blocks_avail.saturating_mul(found.fragment_size))),
            Err(error) if error.is_lost() => Err(error),
            Err(error) => {
                tracing::debug!(%error, "the guest's room is not known");
                Ok(None)
            }
        }
    }
}
