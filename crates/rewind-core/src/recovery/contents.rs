//! What the ZVM lists below a folder, to tell whether its archive is complete.
use super::{
    RecoveredFile,
    resolve::{Folders, name_of},
};
use crate::{Error, text};
use std::collections::BTreeMap;
use zvm_client::{PathItem, PathKind};

/// Folders that are listed; each takes a call.
const FOLDERS_MAX: usize = 2_000;
/// Items that are kept, of whatever kind.
const ITEMS_MAX: usize = 200_000;

/// The files below a folder, by relative path.
#[derive(Debug, Default)]
pub(super) struct Contents {
    files: BTreeMap<String, Option<u64>>,
    /// Names directly in the folder.
    pub top: Vec<String>,
    /// What FLR does not carry, with the reason.
    pub not_carried: Vec<String>,
    /// More is there than was listed.
    pub partial: bool,
}

impl Contents {
    pub async fn of(folders: &impl Folders, folder: &PathItem) -> Result<Self, Error> {
        let mut contents = Self::default();
        let mut open = vec![(String::new(), folder.path.clone())];
        let (mut listed, mut kept) = (0, 0);
        while let Some((relative, path)) = open.pop() {
            if listed == FOLDERS_MAX || kept > ITEMS_MAX {
                contents.partial = true;
                break;
            }
            let items = folders.items(&path).await?;
            listed += 1;
            kept += items.len();
            for item in items.iter() {
                contents.add(&relative, item, &mut open);
            }
        }
        Ok(contents)
    }

    fn add(&mut self, parent: &str, item: &PathItem, open: &mut Vec<(String, String)>) {
        let name = name_of(item);
        let relative = if parent.is_empty() {
            name.to_owned()
        } else {
            format!("{parent}/{name}")
        };
        if parent.is_empty() {
            self.top.push(name.to_owned());
        }
        if item.kind == PathKind::Folder && item.browsable {
            open.push((relative, item.path.clone()));
        } else if item.downloadable && item.kind == PathKind::File {
            self.files.insert(relative, item.size);
        } else {
            let reason = item
                .reason
                .as_deref()
                .map_or_else(|| "not carried".to_owned(), |why| text::quoted(why, 200));
            self.not_carried
                .push(format!("{}: {reason}", text::named(&relative, 300)));
        }
    }

    /// Bytes of all files together; None where not every one of them is known.
    pub fn bytes(&self) -> Option<u64> {
        if self.partial {
            return None;
        }
        self.files
            .values()
            .try_fold(0_u64, |sum, size| sum.checked_add((*size)?))
    }

    /// What is missing or of another size.
    pub fn missing(&self, unpacked: &[RecoveredFile]) -> Vec<String> {
        let arrived: BTreeMap<&str, u64> = unpacked
            .iter()
            .map(|file| (file.path.as_str(), file.bytes))
            .collect();
        self.files
            .iter()
            .filter(|(path, size)| match arrived.get(path.as_str()) {
                None => true,
                Some(bytes) => size.is_some_and(|size| size != *bytes),
            })
            .map(|(path, _)| text::named(path, 300))
            .collect()
    }
}
