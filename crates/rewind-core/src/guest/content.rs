//! Content on its way: hashed where it lies in the guest, sent from a file on this host.
use super::{
    GuestError,
    sftp::{Connection, Kind, Open, PIECES, Stat},
};
use crate::text;
use futures::{StreamExt as _, stream::FuturesUnordered};
use russh_sftp::protocol::FileAttributes;
use sha2::{Digest, Sha256};
use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// A file on this host that is to be written in a guest.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    pub file: Arc<Mutex<File>>,
    pub bytes: u64,
    /// Hexadecimal.
    pub sha256: String,
    /// Seconds since 1970, where that is known and can be told over SFTP.
    pub modified: Option<u32>,
}

/// A regular file in a guest, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hashed {
    pub stat: Stat,
    pub sha256: String,
}

/// Reads a regular file and hashes it. `arrived` counts the bytes. What the path is must be known: a link is followed here.
pub(crate) async fn hash(
    connection: &Connection,
    path: &str,
    arrived: &AtomicU64,
) -> Result<Hashed, GuestError> {
    let open = connection.read_open(path).await?;
    let hashed = hash_open(connection, &open, path, arrived).await;
    let closed = connection.close(open).await;
    let hashed = hashed?;
    closed?;
    Ok(hashed)
}

/// Whether a file has this content, once it was put where it is: what is written to while it is read has other content. What it is then.
pub(super) async fn holds(
    connection: &Connection,
    path: &str,
    sha256: &str,
    arrived: &AtomicU64,
) -> Result<Option<Stat>, GuestError> {
    match hash(connection, path, arrived).await {
        Ok(hashed) => Ok((hashed.sha256 == sha256).then_some(hashed.stat)),
        Err(GuestError::Conflict(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) async fn hash_open(
    connection: &Connection,
    open: &Open,
    path: &str,
    arrived: &AtomicU64,
) -> Result<Hashed, GuestError> {
    let stat = connection.stat(open, path).await?;
    if stat.kind != Kind::File {
        return Err(GuestError::Conflict(format!(
            "{} is no regular file",
            text::named_exactly(path, 300)
        )));
    }
    let mut hash = Sha256::new();
    let take = |piece: &[u8]| {
        hash.update(piece);
        arrived.fetch_add(piece.len() as u64, Ordering::Relaxed);
    };
    connection.read(open, path, stat.bytes, take).await?;
    Ok(Hashed {
        stat,
        sha256: text::hex(&hash.finalize()),
    })
}

/// The whole content of a file that was found to be small.
pub(crate) async fn read_small(
    connection: &Connection,
    path: &str,
    at_most: u64,
) -> Result<Option<(Stat, Vec<u8>)>, GuestError> {
    let open = connection.read_open(path).await?;
    let read = async {
        let stat = connection.stat(&open, path).await?;
        if stat.kind != Kind::File || stat.bytes > at_most {
            return Ok(None);
        }
        let mut content = Vec::new();
        connection
            .read(&open, path, stat.bytes, |piece| content.extend(piece))
            .await?;
        Ok(Some((stat, content)))
    }
    .await;
    let closed = connection.close(open).await;
    let read = read?;
    closed?;
    Ok(read)
}

/// Writes the content to an open, empty file. Pieces of zeros are left out: what is sparse stays so, and takes no time.
pub(super) async fn send(
    connection: &Connection,
    open: &Open,
    path: &str,
    content: &Content,
    sent: &AtomicU64,
) -> Result<(), GuestError> {
    let mut writing = FuturesUnordered::new();
    let mut at = 0;
    while at < content.bytes {
        let piece = local_piece(content, at, connection.piece()).await?;
        let next = at + piece.len() as u64;
        if piece.iter().any(|byte| *byte != 0) {
            writing.push(connection.write(open, path, at, piece));
        }
        if writing.len() == PIECES
            && let Some(written) = writing.next().await
        {
            written?;
        }
        at = next;
        sent.store(at, Ordering::Relaxed);
    }
    while let Some(written) = writing.next().await {
        written?;
    }
    let size = FileAttributes {
        size: Some(content.bytes),
        ..FileAttributes::empty()
    };
    connection.set(open, path, size).await
}

async fn local_piece(content: &Content, at: u64, length: usize) -> Result<Vec<u8>, GuestError> {
    let (file, left) = (content.file.clone(), content.bytes - at);
    let length = usize::try_from(left).unwrap_or(length).min(length);
    let read = move || {
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut piece = vec![0; length];
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut piece)?;
        Ok::<_, std::io::Error>(piece)
    };
    let failed = |why: String| {
        GuestError::Failed(format!("the downloaded file can't be read any more: {why}"))
    };
    match tokio::task::spawn_blocking(read).await {
        Ok(Ok(piece)) => Ok(piece),
        Ok(Err(error)) => Err(failed(error.to_string())),
        Err(error) => Err(failed(error.to_string())),
    }
}
