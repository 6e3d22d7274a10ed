//! Against a real OpenSSH server on loopback.
#[path = "../../tests/sshd/mod.rs"]
mod sshd;

mod broken;
mod writing;

use super::{
    Attributes, Connection, Content, GuestError, InGuest, Present, Restore,
    names::{copying, temporary},
    place::{Placed, Placing, Way},
    plan,
    undo::Undoing,
};
use crate::config::Guest;
use sha2::{Digest as _, Sha256};
use sshd::{HOST, Sshd};
use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, atomic::AtomicU64},
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const CHECKPOINT: &str = "1197";

/// A guest whose disk is a folder.
struct Room {
    sshd: Sshd,
    disk: TempDir,
}

/// None where there is no sshd, which was said.
fn room() -> Option<Room> {
    let disk = tempfile::tempdir().unwrap();
    fs::create_dir(disk.path().join("srv")).unwrap();
    let sshd = Sshd::start(&[("/", disk.path())])?;
    Some(Room { sshd, disk })
}

fn guest(sshd: &Sshd) -> Guest {
    Guest {
        ssh: HOST.into(),
        sudo: false,
        ssh_config: Some(sshd.ssh_config()),
        sftp_server: None,
    }
}

fn sha256(bytes: &[u8]) -> String {
    crate::text::hex(&Sha256::digest(bytes))
}

fn content(bytes: &[u8]) -> Content {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    Content {
        file: Arc::new(Mutex::new(file)),
        bytes: bytes.len() as u64,
        sha256: sha256(bytes),
        modified: Some(1_700_000_000),
    }
}

impl Room {
    fn host(&self, path: &str) -> PathBuf {
        self.disk.path().join(path.trim_start_matches('/'))
    }

    fn put(&self, path: &str, bytes: &[u8]) {
        fs::write(self.host(path), bytes).unwrap();
    }

    fn read(&self, path: &str) -> Vec<u8> {
        fs::read(self.host(path)).unwrap()
    }

    async fn connect(&self) -> Connection {
        Connection::open(&guest(&self.sshd)).await.unwrap()
    }

    /// Everything in a folder of the guest, with its content.
    fn files(&self, folder: &str) -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(self.host(folder)).unwrap().map(Result::unwrap);
        entries
            .filter(|entry| entry.file_type().unwrap().is_file())
            .map(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                (name, fs::read(entry.path()).unwrap())
            })
            .collect()
    }
}

async fn planned(
    connection: &Connection,
    path: &str,
    restore: Restore,
) -> Result<InGuest, GuestError> {
    plan(
        connection,
        (HOST, false),
        path,
        restore,
        CHECKPOINT,
        &AtomicU64::new(0),
    )
    .await
}

async fn place(
    connection: &Connection,
    planned: &InGuest,
    content: &Content,
) -> Result<Placed, GuestError> {
    place_until(connection, planned, content, &CancellationToken::new()).await
}

async fn place_until(
    connection: &Connection,
    planned: &InGuest,
    content: &Content,
    cancel: &CancellationToken,
) -> Result<Placed, GuestError> {
    let way = match (&planned.present, &planned.kept) {
        (Some(present), Some(kept)) => Way::Replacing {
            present: present.clone(),
            kept: kept.clone(),
        },
        _ => Way::New,
    };
    let placing = Placing {
        connection,
        to: &planned.to,
        way: &way,
        attributes: planned.attributes,
        temporary: &temporary(&planned.to, "r-test"),
        copying: &copying(&planned.to, "r-test"),
        content,
        done: &AtomicU64::new(0),
        cancel,
    };
    placing.run().await
}

fn attributes(file: &Path) -> Attributes {
    use std::os::unix::fs::MetadataExt as _;
    let found = fs::symlink_metadata(file).unwrap();
    Attributes {
        owner: found.uid(),
        group: found.gid(),
        mode: found.mode() & 0o7777,
    }
}

fn modified(file: &Path) -> i64 {
    use std::os::unix::fs::MetadataExt as _;
    fs::symlink_metadata(file).unwrap().mtime()
}
