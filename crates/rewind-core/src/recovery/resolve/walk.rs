//! Follows the components of a path from a partition's root, by the names that the ZVM lists.
use super::{Folders, name_of};
use crate::Error;
use zvm_client::PathItem;

/// Where a walk ended.
pub(super) enum Walked {
    At(PathItem),
    /// No such name; what is not a folder stood in the way, if anything did.
    Nowhere(Option<PathItem>),
    /// Names that differ by case only, and none is spelled as given.
    Several(Vec<PathItem>),
}

impl Walked {
    pub fn into_items(self) -> Vec<PathItem> {
        match self {
            Self::At(item) => vec![item],
            Self::Nowhere(_) => Vec::new(),
            Self::Several(items) => items,
        }
    }
}

/// Whether names on this partition differ by spelling only where they differ by case. The ZVM puts the file system's name behind
/// the partition's number.
pub(in crate::recovery) fn ignores_case(partition: &PathItem) -> bool {
    let name = name_of(partition).to_lowercase();
    ["ntfs", "fat", "refs"]
        .iter()
        .any(|kind| name.contains(kind))
}

pub(super) async fn walk(
    folders: &impl Folders,
    partition: &PathItem,
    components: &[String],
) -> Result<Walked, Error> {
    let ignore_case = ignores_case(partition);
    let mut at = partition.clone();
    for name in components {
        if !at.browsable {
            return Ok(Walked::Nowhere(Some(at)));
        }
        let items = folders.items(&at.path).await?;
        let mut named: Vec<_> = items.iter().filter(|item| name_of(item) == name).collect();
        if named.is_empty() && ignore_case {
            let lower = name.to_lowercase();
            named = items
                .iter()
                .filter(|item| name_of(item).to_lowercase() == lower)
                .collect();
        }
        at = match named.as_slice() {
            [] => return Ok(Walked::Nowhere(None)),
            [item] => (*item).clone(),
            several => {
                return Ok(Walked::Several(
                    several.iter().map(|&item| item.clone()).collect(),
                ));
            }
        };
    }
    Ok(Walked::At(at))
}
