//! Two folders, by the names, sizes and times in them.
use super::FolderDiff;
use crate::{
    Error,
    guest::{self, Connection},
    recovery::{Folders, name_of},
    text::{self, named_exactly},
};
use std::collections::BTreeMap;
use zvm_client::{PathItem, PathKind};

/// Folders that are listed; each takes a call.
const FOLDERS_MAX: usize = 2_000;
const FILES_MAX: usize = 100_000;
/// Of each list.
const TOLD_MAX: usize = 200;
const PATH_MAX: usize = 500;

/// What is below a folder, by relative path.
#[derive(Debug, Default)]
pub(super) struct Tree {
    entries: BTreeMap<String, Entry>,
    /// More is there than was listed.
    pub partial: bool,
}

/// Folders themselves are none: they show by what is in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    /// None where that is not known: FLR calls what it can't download (a link) a file, too.
    is_file: Option<bool>,
    bytes: Option<u64>,
    /// Seconds since 1970.
    modified: Option<i64>,
}

impl Tree {
    /// As it is on a mounted checkpoint.
    pub async fn of_checkpoint(folders: &impl Folders, folder: &PathItem) -> Result<Self, Error> {
        let mut tree = Self::default();
        let mut open = vec![(String::new(), folder.path.clone())];
        let mut listed = 0;
        while let Some((relative, path)) = open.pop() {
            if tree.is_full(listed) {
                break;
            }
            listed += 1;
            for item in folders.items(&path).await?.iter() {
                let name = below(&relative, name_of(item));
                if item.kind == PathKind::Folder && item.browsable {
                    open.push((name, item.path.clone()));
                    continue;
                }
                let is_file = item.kind == PathKind::File;
                let entry = Entry {
                    is_file: (item.downloadable || !is_file).then_some(is_file),
                    bytes: item.size.filter(|_| is_file),
                    modified: item.modified.map(|at| at.as_second()).filter(|_| is_file),
                };
                tree.entries.insert(name, entry);
            }
        }
        Ok(tree)
    }

    /// As it is in the guest.
    pub async fn of_guest(connection: &Connection, folder: &str) -> Result<Self, Error> {
        let mut tree = Self::default();
        let mut open = vec![String::new()];
        let mut listed = 0;
        while let Some(relative) = open.pop() {
            if tree.is_full(listed) {
                break;
            }
            listed += 1;
            let path = match relative.as_str() {
                "" => folder.to_owned(),
                relative => format!("{}/{relative}", folder.trim_end_matches('/')),
            };
            for (name, stat) in connection.names(&path).await? {
                let name = below(&relative, &name);
                if stat.kind == guest::Kind::Folder {
                    open.push(name);
                    continue;
                }
                let is_file = stat.kind == guest::Kind::File;
                let entry = Entry {
                    is_file: Some(is_file),
                    bytes: Some(stat.bytes).filter(|_| is_file),
                    modified: Some(i64::from(stat.modified)).filter(|_| is_file),
                };
                tree.entries.insert(name, entry);
            }
        }
        Ok(tree)
    }

    fn is_full(&mut self, listed: usize) -> bool {
        self.partial |= listed == FOLDERS_MAX || self.entries.len() > FILES_MAX;
        self.partial
    }

    /// What is different in `now`.
    pub fn compare(&self, now: &Self) -> FolderDiff {
        let mut diff = FolderDiff::default();
        for (path, entry) in &now.entries {
            match self.entries.get(path) {
                None => told(&mut diff.added, &mut diff.added_count, path, ""),
                Some(then) => match then.differs(entry) {
                    None => diff.unchanged_count += 1,
                    Some(how) => told(
                        &mut diff.changed,
                        &mut diff.changed_count,
                        path,
                        &format!(" ({how})"),
                    ),
                },
            }
        }
        for path in self.entries.keys() {
            if !now.entries.contains_key(path) {
                told(&mut diff.removed, &mut diff.removed_count, path, "");
            }
        }
        diff
    }
}

impl Entry {
    fn differs(&self, now: &Self) -> Option<String> {
        if let (Some(then), Some(now)) = (self.is_file, now.is_file)
            && then != now
        {
            return Some("it is something else now".to_owned());
        }
        match (self.bytes, now.bytes) {
            (Some(then), Some(now)) if then != now => {
                Some(format!("{}, now {now}", text::bytes(then)))
            }
            _ => match (self.modified, now.modified) {
                (Some(then), Some(now)) if then != now => Some("written since".to_owned()),
                _ => None,
            },
        }
    }
}

fn told(list: &mut Vec<String>, count: &mut usize, path: &str, how: &str) {
    *count += 1;
    if list.len() < TOLD_MAX {
        list.push(format!("{}{how}", named_exactly(path, PATH_MAX)));
    }
}

fn below(folder: &str, name: &str) -> String {
    match folder {
        "" => name.to_owned(),
        folder => format!("{folder}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(entries: &[(&str, u64, i64)]) -> Tree {
        let entry = |(path, bytes, at): &(&str, u64, i64)| {
            let entry = Entry {
                is_file: Some(true),
                bytes: Some(*bytes),
                modified: Some(*at),
            };
            ((*path).to_owned(), entry)
        };
        Tree {
            entries: entries.iter().map(entry).collect(),
            partial: false,
        }
    }

    #[test]
    fn names_sizes_and_times_are_compared() {
        let then = tree(&[("a", 1, 1), ("b", 1, 1), ("c", 1, 1), ("gone", 1, 1)]);
        let now = tree(&[
            ("a", 1, 1),
            ("b", 2, 5),
            ("c", 1, 5),
            ("d/new\u{202e}", 1, 1),
        ]);
        assert_eq!(
            then.compare(&now),
            FolderDiff {
                added: vec!["\"d/new\\u{202e}\"".into()],
                removed: vec!["gone".into()],
                changed: vec!["b (1 byte, now 2)".into(), "c (written since)".into()],
                added_count: 1,
                removed_count: 1,
                changed_count: 2,
                unchanged_count: 1,
            }
        );
    }

    #[test]
    fn lists_are_bounded_and_numbers_are_not() {
        let names: Vec<String> = (0..1_000).map(|number| number.to_string()).collect();
        let many: Vec<_> = names.iter().map(|name| (name.as_str(), 1, 1)).collect();
        let diff = tree(&[]).compare(&tree(&many));
        assert_eq!((diff.added.len(), diff.added_count), (200, 1_000));
    }
}
