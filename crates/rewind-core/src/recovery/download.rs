//! Brings a file or folder from a mounted session to its place, complete or not at all.
use super::{
    RecoveredFile,
    contents::Contents,
    destination::{Place, unusable},
    fetch::{Fetched, fetch, incomplete},
    folders::free_bytes,
    resolve::name_of,
    unpack::{self, Limits, Unpacked},
};
use crate::{Error, ErrorCode, text};
use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};
use tempfile::{NamedTempFile, TempDir};
use zvm_client::{FlrSessionId, PathItem, Zvm};

/// A zip may be larger than what is in it, by little.
const ZIP_OVERHEAD: u64 = 64 * 1024;
const FOLDER_LIMITS: Limits = Limits {
    members: 200_000,
    bytes: 1 << 40,
    listed: None,
};
/// What an archive may have beside the bytes that are listed: names, and what else a ZVM adds.
const BESIDE_LISTED: u64 = 64 * 1024 * 1024;
/// What must stay free on the destination's file system, or a tenth of what is free where that is little.
const RESERVE: u64 = 64 * 1024 * 1024;

/// What arrived and where it is.
pub(super) struct Recovered {
    pub local: PathBuf,
    pub files: Vec<RecoveredFile>,
    pub skipped: Vec<String>,
    pub notes: Vec<String>,
}

/// How much may arrive in a folder.
fn room_at(folder: &Path) -> u64 {
    free_bytes(folder).map_or(u64::MAX, |free| free - RESERVE.min(free / 10))
}

fn no_room(folder: &Path) -> Error {
    Error::new(
        ErrorCode::DestinationUnusable,
        format!(
            "the folder does not fit: {} may be used in {}",
            text::bytes(room_at(folder)),
            text::display(&folder.display().to_string(), 500)
        ),
    )
    .with_next("Make room at the destination, or recover to another one.")
}

/// An item of a mounted session.
pub(super) struct Downloading<'a> {
    pub zvm: &'a Zvm,
    pub session: &'a FlrSessionId,
    pub item: &'a PathItem,
    /// Bytes of the download that is running.
    pub arrived: &'a AtomicU64,
}

impl Downloading<'_> {
    /// `contents` is what the ZVM lists below a folder; a file has none.
    pub async fn to(
        &self,
        place: &mut Place,
        contents: Option<&Contents>,
    ) -> Result<Recovered, Error> {
        match contents {
            None => self.file(place).await,
            Some(contents) => self.folder(place, contents).await,
        }
    }

    async fn fetch(&self, place: &Place, at_most: Option<u64>) -> Result<Fetched, Error> {
        let path = &self.item.path;
        fetch(self.zvm, self.session, path, place, at_most, self.arrived).await
    }

    async fn file(&self, place: &mut Place) -> Result<Recovered, Error> {
        let (file, bytes, sha256) = match self.file_once(place).await {
            Err(error) if worth_another_try(&error) => self.file_once(place).await?,
            result => result?,
        };
        let local = place.keep_file(file)?;
        let path = name_of(self.item).to_owned();
        let files = vec![RecoveredFile {
            path,
            bytes,
            sha256,
        }];
        Ok(Recovered {
            local,
            files,
            skipped: Vec::new(),
            notes: Vec::new(),
        })
    }

    /// The file of the listed size, as it is or as the only member of a zip.
    async fn file_once(&self, place: &Place) -> Result<(NamedTempFile, u64, String), Error> {
        let (size, name) = (self.item.size, name_of(self.item).to_owned());
        let at_most = size.map(|size| {
            size.saturating_add(size / 1_000)
                .saturating_add(ZIP_OVERHEAD)
        });
        let mut fetched = self.fetch(place, at_most).await?;
        if size == Some(fetched.bytes) {
            return Ok((fetched.file, fetched.bytes, fetched.sha256));
        }
        // Without a size only a name that says so makes it an archive: the file itself may be a zip.
        let named_zip = fetched
            .file_name
            .as_deref()
            .is_some_and(|given| given.ends_with(".zip") && given != name);
        if (size.is_some() || named_zip) && fetched.is_zip() {
            let mut out = place.temporary_file()?;
            let unpacked = blocking(move || {
                let path = out.path().to_owned();
                let unpacked = unpack::single(
                    fetched.file.as_file(),
                    &name,
                    size,
                    out.as_file_mut(),
                    &path,
                )?;
                out.as_file()
                    .sync_all()
                    .map_err(|error| unusable(&path, &error))?;
                Ok(unpacked.map(|(bytes, sha256)| (out, bytes, sha256)))
            });
            return unpacked.await?.ok_or_else(|| {
                incomplete("an archive arrived that does not hold this one file as it is listed")
            });
        }
        match size {
            None => Ok((fetched.file, fetched.bytes, fetched.sha256)),
            Some(size) => Err(incomplete(format!(
                "{} arrived, the listing says {size}",
                text::bytes(fetched.bytes)
            ))),
        }
    }

    async fn folder(&self, place: &mut Place, contents: &Contents) -> Result<Recovered, Error> {
        let (folder, unpacked) = match self.folder_once(place, contents).await {
            Err(error) if worth_another_try(&error) => self.folder_once(place, contents).await?,
            result => result?,
        };
        let local = place.keep_folder(folder)?;
        let mut skipped = contents.not_carried.clone();
        skipped.extend(unpacked.skipped);
        let unchecked =
            "The folder is too large to list: whether everything arrived was not checked.";
        let notes = contents
            .partial
            .then(|| unchecked.to_owned())
            .into_iter()
            .collect();
        Ok(Recovered {
            local,
            files: unpacked.files,
            skipped,
            notes,
        })
    }

    async fn folder_once(
        &self,
        place: &Place,
        contents: &Contents,
    ) -> Result<(TempDir, Unpacked), Error> {
        let room = room_at(place.folder());
        let listed = contents.bytes().map(|bytes| {
            bytes
                .saturating_add(bytes / 10)
                .saturating_add(BESIDE_LISTED)
        });
        let at_most = room.min(FOLDER_LIMITS.bytes);
        let mut fetched = self
            .fetch(place, Some(at_most.min(listed.unwrap_or(u64::MAX))))
            .await
            .map_err(|error| match error.code {
                // A folder has no size in the listing: this limit is ours.
                ErrorCode::DownloadIncomplete if self.arrived.load(Ordering::Relaxed) > room => {
                    no_room(place.folder())
                }
                _ => error,
            })?;
        if !fetched.is_zip() {
            return Err(incomplete("what arrived for the folder is no archive"));
        }
        let limits = Limits {
            bytes: room_at(place.folder()).min(FOLDER_LIMITS.bytes),
            listed,
            ..FOLDER_LIMITS
        };
        let folder = place.temporary_folder()?;
        let (path, top) = (self.item.path.clone(), contents.top.clone());
        let (folder, unpacked) = blocking(move || {
            let unpacked =
                unpack::folder(fetched.file.as_file(), folder.path(), &path, &top, limits)?;
            Ok((folder, unpacked))
        })
        .await?;
        let missing = contents.missing(&unpacked.files);
        if let Some(first) = missing.first() {
            return Err(incomplete(format!(
                "{} of the listed files did not arrive as they are listed, among them {first}",
                missing.len()
            )));
        }
        Ok((folder, unpacked))
    }
}

/// A download that broke off, or that the ZVM failed at, is tried once more, with a URL of its own: the mount took longer.
fn worth_another_try(error: &Error) -> bool {
    let may_pass = matches!(
        error.code,
        ErrorCode::DownloadIncomplete | ErrorCode::ZvmUnreachable | ErrorCode::ZvmError
    );
    if may_pass {
        tracing::warn!(%error, "the download is tried again");
    }
    may_pass
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err(Error::new(ErrorCode::Cancelled, "the program is ending")),
    }
}
