//! What has to happen to the image's entries, apart from their content.

use std::collections::{BTreeSet, HashMap};

use super::tree::{Kind, Tree};
use super::write::Image;

/// What has to go and what has only moved.
pub(super) struct Plan<'a> {
    /// Paths in the image at which nothing is now, or something of another kind.
    pub(super) removed: BTreeSet<&'a str>,
    /// Files that are at a new path, with the path they are at in the image.
    pub(super) moves: HashMap<&'a str, &'a str>,
    sources: BTreeSet<&'a str>,
}

impl<'a> Plan<'a> {
    pub(super) fn new(image: &'a Image, tree: &'a Tree) -> Self {
        let removed: BTreeSet<&str> = image
            .iter()
            .filter(|(path, written)| {
                tree.get(*path)
                    .is_none_or(|found| found.kind != written.found.kind)
            })
            .map(|(path, _)| path.as_str())
            .collect();
        let mut gone: HashMap<(u64, u64), &str> = removed
            .iter()
            .filter(|path| !tree.contains_key(**path) && !is_below_another_kind(path, tree))
            .filter_map(|path| Some((image.get(*path)?, *path)))
            .filter(|(written, _)| {
                written.found.kind == Kind::File && written.found.stat.inode != 0
            })
            .map(|(written, path)| ((written.found.stat.device, written.found.stat.inode), path))
            .collect();
        let moves: HashMap<&str, &str> = tree
            .iter()
            .filter(|(path, found)| found.kind == Kind::File && !image.contains_key(*path))
            .filter_map(|(path, found)| {
                Some((
                    path.as_str(),
                    gone.remove(&(found.stat.device, found.stat.inode))?,
                ))
            })
            .collect();
        let sources = moves.values().copied().collect();
        Self {
            removed,
            moves,
            sources,
        }
    }

    /// Whether the path has to stay until the moves are made.
    pub(super) fn is_needed_for_a_move(&self, path: &str) -> bool {
        let below = format!("{path}/");
        self.sources.contains(path)
            || self
                .sources
                .range(below.as_str()..)
                .next()
                .is_some_and(|source| source.starts_with(&below))
    }
}

/// Whether one of the folders that lead to `path` is something else now.
fn is_below_another_kind(path: &str, tree: &Tree) -> bool {
    path.match_indices('/')
        .filter_map(|(end, _)| tree.get(path.get(..end)?))
        .any(|found| found.kind != Kind::Folder)
}
