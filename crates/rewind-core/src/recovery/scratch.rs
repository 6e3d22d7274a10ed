//! A folder for what is downloaded and not kept here.
use super::{
    destination::{Target, mark, unusable},
    download::Downloading,
    folders::{make_folders, make_private, missing, remove_stale},
    leftovers::{Noted, note},
    resolve::Mounted,
};
use crate::{Error, ErrorCode, rewind::Core, state::places::WorkPlace};
use std::{
    fs::File,
    io::Read,
    path::PathBuf,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
};
use tempfile::TempDir;
use zvm_client::PathItem;

/// It is this user's alone, and gone with this value. What a crash left is removed by a later one.
pub(crate) struct Scratch {
    /// None only while it is dropped.
    folder: Option<TempDir>,
    /// What was made for it, outermost first.
    created: Vec<PathBuf>,
    /// Until this process has said that nothing is left of it.
    noted: Option<Noted>,
    next: AtomicUsize,
}

/// A file that is complete in the folder.
pub(crate) struct Downloaded {
    path: PathBuf,
    pub bytes: u64,
    /// Hexadecimal.
    pub sha256: String,
}

impl Scratch {
    /// Within the recovery folder, where there is room for files of guests. It is written down before it is made.
    pub async fn new(core: &Core) -> Result<Self, Error> {
        let recover_dir = &core.config.recover_dir;
        let within =
            std::path::absolute(recover_dir).map_err(|error| unusable(recover_dir, &error))?;
        let place = WorkPlace {
            mark: mark(),
            made: missing(&within).last().map(|made| (*made).to_owned()),
            folder: within,
        };
        let noted = note(core, vec![place.clone()]).await?;
        let mut scratch = Self {
            folder: None,
            created: Vec::new(),
            noted: Some(noted),
            next: AtomicUsize::new(0),
        };
        match scratch.make(&place) {
            Ok(()) => Ok(scratch),
            Err(error) => {
                scratch.gone(core).await;
                Err(error)
            }
        }
    }

    fn make(&mut self, place: &WorkPlace) -> Result<(), Error> {
        let within = &place.folder;
        make_folders(within, &mut self.created).map_err(|error| unusable(within, &error))?;
        remove_stale(within);
        let folder = tempfile::Builder::new()
            .prefix(&place.mark)
            .tempdir_in(within)
            .map_err(|error| unusable(within, &error))?;
        make_private(folder.path()).map_err(|error| unusable(folder.path(), &error))?;
        self.folder = Some(folder);
        Ok(())
    }

    /// Removes it, and writes that down.
    pub async fn gone(mut self, core: &Core) {
        let noted = self.noted.take();
        drop(self);
        if let Some(noted) = noted {
            noted.left(core).await;
        }
    }

    /// Downloads one file, complete and compared with the listing.
    pub async fn fetch(
        &self,
        folders: &Mounted<'_>,
        item: &PathItem,
        arrived: &AtomicU64,
    ) -> Result<Downloaded, Error> {
        let gone = || Error::new(ErrorCode::DestinationUnusable, "the scratch folder is gone");
        let folder = self.folder.as_ref().ok_or_else(gone)?.path();
        let name = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        let mut place = Target::in_folder(folder, name).prepare()?;
        let downloading = Downloading {
            zvm: folders.zvm,
            session: folders.session,
            item,
            arrived,
        };
        let recovered = downloading.to(&mut place, None).await?;
        let file = recovered.files.into_iter().next().ok_or_else(gone)?;
        Ok(Downloaded {
            path: recovered.local,
            bytes: file.bytes,
            sha256: file.sha256,
        })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.folder = None;
        for folder in self.created.iter().rev() {
            // Only an empty one goes.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

impl Downloaded {
    /// The open file.
    pub fn open(&self) -> Result<File, Error> {
        File::open(&self.path).map_err(|error| unusable(&self.path, &error))
    }

    /// All of it: for small ones.
    pub async fn read(&self) -> Result<Vec<u8>, Error> {
        let (mut file, path) = (self.open()?, self.path.clone());
        let read = move || {
            let mut content = Vec::new();
            file.read_to_end(&mut content)
                .map_err(|error| unusable(&path, &error))?;
            Ok(content)
        };
        super::download::blocking(read).await
    }
}
