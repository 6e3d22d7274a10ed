//! The text of a catalog or a table, and the places in it.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use serde::de::DeserializeOwned;

use super::error::Mistake;
use crate::hint;

/// A file larger than this is no catalog and no table of one.
const MAX_BYTES: u64 = 4 << 20;

/// Reads a whole file.
pub(super) fn file(path: &Path) -> Result<String, Mistake> {
    let read = || {
        let mut text = String::new();
        // Opening a pipe would wait for whoever writes into it.
        let metadata = std::fs::metadata(path)?;
        if !metadata.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        if anybody_may_change(&metadata) {
            return Err(io::Error::other(
                "any user of this host may change it: look through it, then run chmod o-w on it",
            ));
        }
        File::open(path)?
            .take(MAX_BYTES + 1)
            .read_to_string(&mut text)?;
        if text.len() as u64 > MAX_BYTES {
            return Err(io::Error::other("larger than 4 MiB"));
        }
        Ok(text)
    };
    read().map_err(|error| Mistake::unreadable(path, &error))
}

#[cfg(unix)]
fn anybody_may_change(metadata: &std::fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::mode(metadata) & 0o002 != 0
}

#[cfg(not(unix))]
fn anybody_may_change(_: &std::fs::Metadata) -> bool {
    false
}

/// A TOML text and the file that it came from.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) file: &'a Path,
    pub(super) text: &'a str,
}

impl<'a> Source<'a> {
    pub(super) fn new(file: &'a Path, text: &'a str) -> Self {
        // Editors on Windows write a byte order mark.
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        Self { file, text }
    }

    pub(super) fn parse<T: DeserializeOwned>(&self) -> Result<T, Mistake> {
        toml::from_str(self.text).map_err(|error| {
            let hint = hint::of_serde(error.message());
            let fix = hint.fix.or_else(|| {
                hint.problem
                    .contains("expected a sequence")
                    .then(|| "write a list, such as [[guard]] or when = [{ … }]".to_owned())
            });
            Mistake {
                file: self.file.to_owned(),
                position: error.span().map(|span| self.position(span.start)),
                problem: hint.problem,
                fix,
                missing: false,
            }
        })
    }

    /// Line and column of a byte offset, from 1, in characters.
    pub(super) fn position(&self, offset: usize) -> (usize, usize) {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        (before.matches('\n').count() + 1, line.chars().count() + 1)
    }
}
