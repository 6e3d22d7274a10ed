//! A catalog that follows its files.
//!
//! Whether they changed is looked at whenever the catalog is asked for: one `stat` per file, which costs about a microsecond. A broken
//! change leaves the last good catalog in force, and is told until it is mended.

use std::{
    fs::{self, Metadata},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::{Duration, Instant, SystemTime},
};

use super::{Catalog, CatalogError};
use crate::text;

/// A file that changed less than this ago may still be being written: its old state holds a moment longer.
const QUIET: Duration = Duration::from_millis(100);
/// Some file systems keep times in whole seconds, so that a change may not be seen by them right after another one: a file that
/// changed less than this ago is read again after this time.
const SETTLED: Duration = Duration::from_secs(2);
const SHOWN_MAX_LEN: usize = 500;

/// See the module.
#[derive(Debug)]
pub(crate) struct LiveCatalog {
    file: PathBuf,
    current: RwLock<Arc<Current>>,
    /// Held by the one who reads the files.
    reading: Mutex<()>,
}

/// What is in force.
#[derive(Debug)]
pub(crate) struct Current {
    /// The last good one.
    pub catalog: Arc<Catalog>,
    /// Why the files as they are now are not in force.
    pub broken: Option<String>,
    files: Vec<Watched>,
    /// When the files are to be read again though they look the same.
    again: Option<Instant>,
}

/// A file as it was just before it was read.
#[derive(Debug)]
pub(super) struct Watched {
    path: PathBuf,
    /// None: it could not be looked at.
    stamp: Option<Stamp>,
}

/// What changes when a file does.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    len: u64,
    #[cfg(unix)]
    inode: (u64, u64, i64, i64),
}

impl LiveCatalog {
    /// Reads the catalog, and follows it from now on.
    ///
    /// # Errors
    /// There is no good catalog to start with.
    pub fn open(file: &Path) -> Result<Self, CatalogError> {
        let (catalog, files) = Catalog::load_watched(file);
        let current = Current {
            catalog: Arc::new(catalog?),
            broken: None,
            again: again(&files),
            files,
        };
        Ok(Self {
            file: file.to_owned(),
            current: RwLock::new(Arc::new(current)),
            reading: Mutex::new(()),
        })
    }

    /// What is in force now.
    pub fn now(&self) -> Arc<Current> {
        let current = self.current();
        if !current.is_outdated() {
            return current;
        }
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.current();
        if !current.is_outdated() || current.is_being_written() {
            return current;
        }
        let next = Arc::new(self.read(&current));
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&next);
        next
    }

    fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn read(&self, last: &Current) -> Current {
        let (catalog, files) = Catalog::load_watched(&self.file);
        let (catalog, broken) = match catalog {
            Ok(catalog) => {
                let (file, entries) = (self.file.display(), catalog.entries().len());
                if entries == 0 {
                    tracing::warn!(%file, "the catalog was read again and has no entries: every call passes without a guard");
                } else if last.broken.is_some() {
                    tracing::warn!(%file, entries, "the catalog is mended and in force");
                } else {
                    tracing::info!(%file, entries, "the catalog was read again");
                }
                (Arc::new(catalog), None)
            }
            Err(error) => {
                let mistakes = error.to_string();
                tracing::error!(%mistakes, "the catalog is broken: the last good one stays in force");
                let mistakes = text::display(&mistakes, SHOWN_MAX_LEN);
                (Arc::clone(&last.catalog), Some(mistakes))
            }
        };
        Current {
            catalog,
            broken,
            again: again(&files),
            files,
        }
    }
}

impl Current {
    fn is_outdated(&self) -> bool {
        self.again.is_some_and(|again| again <= Instant::now())
            || self.files.iter().any(Watched::has_changed)
    }

    fn is_being_written(&self) -> bool {
        self.files
            .iter()
            .filter_map(|file| Stamp::of(&file.path))
            .any(|stamp| stamp.is_younger_than(QUIET))
    }
}

impl Watched {
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            stamp: Stamp::of(path),
        }
    }

    fn has_changed(&self) -> bool {
        Stamp::of(&self.path) != self.stamp
    }
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        fs::metadata(path)
            .ok()
            .map(|metadata| Self::read(&metadata))
    }

    fn read(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt;
        Self {
            modified: metadata.modified().ok(),
            len: metadata.len(),
            #[cfg(unix)]
            inode: (
                metadata.dev(),
                metadata.ino(),
                metadata.ctime(),
                metadata.ctime_nsec(),
            ),
        }
    }

    /// False where its time is in the future: then it says nothing.
    fn is_younger_than(&self, age: Duration) -> bool {
        self.modified
            .and_then(|modified| SystemTime::now().duration_since(modified).ok())
            .is_some_and(|now| now < age)
    }
}

fn again(files: &[Watched]) -> Option<Instant> {
    let young = |file: &Watched| {
        file.stamp
            .as_ref()
            .is_some_and(|stamp| stamp.is_younger_than(SETTLED))
    };
    files.iter().any(young).then(|| Instant::now() + SETTLED)
}
