//! One side of a comparison: what the path is there.
use super::{Facts, folder::Tree, text::TEXT_MAX};
use crate::{
    Error, ErrorCode,
    guest::{self, Connection},
    recovery::{GuestPath, Mounted, Scratch, not_carried, resolve},
};
use jiff::Timestamp;
use std::sync::atomic::AtomicU64;
use zvm_client::{PathItem, PathKind};

/// A larger file is not read for this.
const READ_MAX: u64 = 1024 * 1024 * 1024;

/// What the path is on one side.
pub(super) enum Side {
    Nothing(Error),
    File {
        facts: Facts,
        /// Where it is small enough to be text.
        content: Option<Vec<u8>>,
    },
    Folder(Tree),
}

impl Side {
    /// On a mounted checkpoint. `arrived` counts bytes.
    pub async fn of_checkpoint(
        folders: &Mounted<'_>,
        path: &GuestPath,
        scratch: &Scratch,
        arrived: &AtomicU64,
        notes: &mut Vec<String>,
    ) -> Result<Self, Error> {
        let item = match resolve(folders, path).await {
            Ok(resolved) => {
                notes.extend(resolved.note);
                resolved.item
            }
            Err(error) if error.code == ErrorCode::PathNotFound => return Ok(Self::Nothing(error)),
            Err(error) => return Err(error),
        };
        if item.kind == PathKind::Folder {
            return Ok(Self::Folder(Tree::of_checkpoint(folders, &item).await?));
        }
        if !item.downloadable {
            return Err(not_carried(&item));
        }
        Self::of_item(folders, &item, scratch, arrived).await
    }

    async fn of_item(
        folders: &Mounted<'_>,
        item: &PathItem,
        scratch: &Scratch,
        arrived: &AtomicU64,
    ) -> Result<Self, Error> {
        let mut facts = Facts {
            bytes: item.size,
            modified: item.modified.map(whole_seconds),
            sha256: None,
        };
        if item.size.is_some_and(|size| size > READ_MAX) {
            return Ok(Self::File {
                facts,
                content: None,
            });
        }
        let fetched = scratch.fetch(folders, item, arrived).await?;
        facts.bytes = Some(fetched.bytes);
        facts.sha256 = Some(fetched.sha256.clone());
        let content = match fetched.bytes <= TEXT_MAX {
            true => Some(fetched.read().await?),
            false => None,
        };
        Ok(Self::File { facts, content })
    }

    /// In the guest.
    pub async fn of_guest(
        connection: &Connection,
        path: &str,
        arrived: &AtomicU64,
    ) -> Result<Self, Error> {
        let nothing = || {
            let path = crate::text::named_exactly(path, 300);
            Error::new(
                ErrorCode::PathNotFound,
                format!("{path} is not in the guest"),
            )
        };
        let Some(stat) = connection.look(path).await? else {
            return Ok(Self::Nothing(nothing()));
        };
        let modified = Timestamp::from_second(i64::from(stat.modified)).ok();
        let mut facts = Facts {
            bytes: Some(stat.bytes),
            modified: modified.map(whole_seconds),
            sha256: None,
        };
        match stat.kind {
            guest::Kind::Folder => {
                return Ok(Self::Folder(Tree::of_guest(connection, path).await?));
            }
            guest::Kind::File => {}
            guest::Kind::Link | guest::Kind::Other => {
                let path = crate::text::named_exactly(path, 300);
                return Err(Error::new(
                    ErrorCode::NotDownloadable,
                    format!("{path} is no regular file and no folder in the guest now"),
                ));
            }
        }
        if stat.bytes > READ_MAX {
            return Ok(Self::File {
                facts,
                content: None,
            });
        }
        if let Some((_, content)) = guest::read_small(connection, path, TEXT_MAX).await? {
            facts.bytes = Some(content.len() as u64);
            facts.sha256 = Some(crate::recovery::sha256(&content));
            return Ok(Self::File {
                facts,
                content: Some(content),
            });
        }
        let hashed = guest::hash(connection, path, arrived).await?;
        facts.bytes = Some(hashed.stat.bytes);
        facts.sha256 = Some(hashed.sha256);
        Ok(Self::File {
            facts,
            content: None,
        })
    }
}

/// Finer times are not told by both sides.
fn whole_seconds(at: Timestamp) -> String {
    format!("{at:.0}")
}
