//! Streams a download to a temporary file in the destination's folder, hashing on the way.
use super::destination::{Place, unusable};
use crate::{Error, ErrorCode, text};
use sha2::{Digest, Sha256};
use std::{
    io::{BufWriter, Read, Seek, SeekFrom, Write},
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
};
use tempfile::NamedTempFile;
use tokio::sync::mpsc;
use zvm_client::{FlrSessionId, Zvm};

/// Chunks between the network and the disk; together a few MiB at most.
const CHUNKS_WAITING: usize = 16;
const BUFFER: usize = 256 * 1024;

/// A complete download: the stream ended as the ZVM meant it to. Whether it is what was asked for is not known here.
pub(super) struct Fetched {
    pub file: NamedTempFile,
    pub bytes: u64,
    pub sha256: String,
    /// Name that the ZVM gave it; untrusted.
    pub file_name: Option<String>,
}

impl Fetched {
    /// Whether it begins like a zip archive.
    pub fn is_zip(&mut self) -> bool {
        let mut start = [0; 4];
        let file = self.file.as_file_mut();
        let read = file
            .seek(SeekFrom::Start(0))
            .and_then(|_| file.read_exact(&mut start));
        read.is_ok() && matches!(&start, b"PK\x03\x04" | b"PK\x05\x06")
    }
}

/// Downloads one path. Each try asks for a URL of its own. More than `at_most` bytes: `download_incomplete`.
pub(super) async fn fetch(
    zvm: &Zvm,
    session: &FlrSessionId,
    path: &str,
    place: &Place,
    at_most: Option<u64>,
    arrived: &AtomicU64,
) -> Result<Fetched, Error> {
    arrived.store(0, Ordering::Relaxed);
    let mut download = zvm.download(session, &[path]).await?;
    let file = place.temporary_file()?;
    let (sender, receiver) = mpsc::channel(CHUNKS_WAITING);
    // Hashing and writing keep a core busy; the network must not wait for them.
    let writing = tokio::task::spawn_blocking({
        let folder = place.folder().to_owned();
        move || write(file, receiver, folder)
    });
    let mut bytes = 0_u64;
    let received = loop {
        match download.chunk().await {
            Ok(Some(chunk)) => {
                bytes += chunk.len() as u64;
                arrived.store(bytes, Ordering::Relaxed);
                if at_most.is_some_and(|at_most| bytes > at_most) {
                    break Err(incomplete(format!(
                        "more than {} arrived, which is more than the listing says",
                        text::bytes(bytes)
                    )));
                }
                if sender.send(chunk).await.is_err() {
                    break Ok(()); // The writer failed and says why.
                }
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(interrupted(error, bytes)),
        }
    };
    drop(sender);
    let written = writing
        .await
        .map_err(|error| incomplete(format!("writing stopped: {error}")))?;
    received?;
    let (file, sha256) = written?;
    Ok(Fetched {
        file,
        bytes,
        sha256,
        file_name: download.file_name,
    })
}

fn write(
    mut file: NamedTempFile,
    mut chunks: mpsc::Receiver<bytes::Bytes>,
    folder: PathBuf,
) -> Result<(NamedTempFile, String), Error> {
    let mut hash = Sha256::new();
    let written = (|| {
        let mut out = BufWriter::with_capacity(BUFFER, file.as_file_mut());
        while let Some(chunk) = chunks.blocking_recv() {
            hash.update(&chunk);
            out.write_all(&chunk)?;
        }
        out.flush()?;
        drop(out);
        file.as_file().sync_all()
    })();
    written.map_err(|error| unusable(&folder, &error))?;
    Ok((file, text::hex(&hash.finalize())))
}

/// Of all of it, hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    text::hex(&Sha256::digest(bytes))
}

pub(super) fn incomplete(why: impl Into<String>) -> Error {
    Error::new(ErrorCode::DownloadIncomplete, why)
}

/// A connection that broke in the middle is worth another try; a refusal is not.
fn interrupted(error: zvm_client::Error, bytes: u64) -> Error {
    match error {
        zvm_client::Error::Unreachable { .. } | zvm_client::Error::Unreadable { .. } => {
            incomplete(format!(
                "the download broke off after {}: {error}",
                text::bytes(bytes)
            ))
        }
        error => error.into(),
    }
}
