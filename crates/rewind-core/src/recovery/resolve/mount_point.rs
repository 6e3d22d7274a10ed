//! Paths below a mount point: `/home/justin/x` is `justin/x` on the partition that the guest mounts at `/home`.
//!
//! The ZVM tells no mount points, but a mount point is an empty folder on the partition that holds it. Such a folder on another
//! partition makes it certain enough. Where no partition shows the folder at all, the path is still taken if only one partition can
//! be meant, and the result says so. A folder with something in it speaks against a mount point.
use super::{
    Folders,
    walk::{Walked, walk},
};
use crate::Error;
use zvm_client::{PathItem, PathKind};

/// Items that lie at the path if some partition is mounted at one of its leading parts.
#[derive(Default)]
pub(super) struct Below {
    /// Another partition has the empty folder.
    pub certain: Vec<PathItem>,
    /// No partition shows the folder; with it, the mount point that is assumed.
    pub assumed: Vec<(PathItem, String)>,
    /// Something speaks against it.
    pub doubtful: Vec<PathItem>,
}

impl Below {
    pub async fn find(
        folders: &impl Folders,
        partitions: &[PathItem],
        components: &[String],
    ) -> Result<Self, Error> {
        let mut below = Self::default();
        for cut in 1..components.len() {
            let (folder, rest) = components.split_at(cut);
            for partition in partitions {
                let items = walk(folders, partition, rest).await?.into_items();
                if items.is_empty() {
                    continue;
                }
                match evidence(folders, partitions, partition, folder).await? {
                    Evidence::EmptyFolder => below.certain.extend(items),
                    Evidence::Nothing => {
                        let mount_point = format!("/{}", folder.join("/"));
                        below
                            .assumed
                            .extend(items.into_iter().map(|item| (item, mount_point.clone())));
                    }
                    Evidence::Against => below.doubtful.extend(items),
                }
            }
        }
        Ok(below)
    }
}

enum Evidence {
    EmptyFolder,
    Nothing,
    Against,
}

/// What the partitions say about `mounted` being mounted at `folder`.
async fn evidence(
    folders: &impl Folders,
    partitions: &[PathItem],
    mounted: &PathItem,
    folder: &[String],
) -> Result<Evidence, Error> {
    let mut empty = false;
    for partition in partitions {
        if let Walked::At(item) = walk(folders, partition, folder).await? {
            let is_empty = item.browsable && folders.items(&item.path).await?.is_empty();
            if partition.path == mounted.path || !is_empty {
                return Ok(Evidence::Against);
            }
            empty = true;
        }
    }
    if empty {
        return Ok(Evidence::EmptyFolder);
    }
    // A partition with /etc is the guest's root, which is mounted nowhere below.
    let is_root = folders
        .items(&mounted.path)
        .await?
        .iter()
        .any(|item| item.kind == PathKind::Folder && super::name_of(item) == "etc");
    Ok(if is_root || partitions.len() == 1 {
        Evidence::Against
    } else {
        Evidence::Nothing
    })
}
