//! A guest path as exactly one path on the mounted disks.
//!
//! Partitions are named by the ZVM and come without mount points. A path is therefore looked for whole on every partition first,
//! and only where it is on none, below a mount point.
mod mount_point;
mod walk;

use super::path::GuestPath;
use crate::{Error, ErrorCode, text};
use mount_point::Below;
use std::{collections::HashMap, future::Future, sync::Arc};
use tokio::sync::Mutex;
pub(super) use walk::ignores_case;
use walk::{Walked, walk};
use zvm_client::{FlrSessionId, PathItem, PathKind, Zvm};

/// Items of one folder that are looked through.
const FOLDER_MAX_ITEMS: usize = 200_000;
const CANDIDATES_MAX: usize = 20;
/// Each is asked for; a VM has 60 disks at most, and few partitions on each.
const PARTITIONS_MAX: usize = 500;
const SHOWN_MAX_LEN: usize = 1_000;

/// What lists folders: a mounted session, or a tree in a test.
pub(crate) trait Folders {
    /// The items of one folder; of `""`, the disks or partitions.
    fn items(&self, folder: &str)
    -> impl Future<Output = Result<Arc<Vec<PathItem>>, Error>> + Send;
}

/// The folders of a mounted session; each is asked for once.
pub(crate) struct Mounted<'a> {
    pub zvm: &'a Zvm,
    pub session: &'a FlrSessionId,
    known: Mutex<HashMap<String, Arc<Vec<PathItem>>>>,
}

impl<'a> Mounted<'a> {
    pub fn new(zvm: &'a Zvm, session: &'a FlrSessionId) -> Self {
        Self {
            zvm,
            session,
            known: Mutex::default(),
        }
    }
}

impl Folders for Mounted<'_> {
    async fn items(&self, folder: &str) -> Result<Arc<Vec<PathItem>>, Error> {
        let mut known = self.known.lock().await;
        if let Some(items) = known.get(folder) {
            return Ok(items.clone());
        }
        let items = Arc::new(
            self.zvm
                .browse(self.session, folder, FOLDER_MAX_ITEMS)
                .await?,
        );
        known.insert(folder.to_owned(), items.clone());
        Ok(items)
    }
}

/// The last component of an item's path.
pub(crate) fn name_of(item: &PathItem) -> &str {
    item.path.rsplit('/').next().unwrap_or(&item.path)
}

/// The one item that a path means.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub item: PathItem,
    /// What was assumed to find it.
    pub note: Option<String>,
}

pub(crate) async fn resolve(folders: &impl Folders, path: &GuestPath) -> Result<Resolved, Error> {
    let search = Search {
        folders,
        path,
        partitions: partitions(folders).await?,
    };
    match path {
        GuestPath::Partition(components) => search.on_named_partition(components).await,
        GuestPath::Windows(_, components) => search.on_windows_partitions(components).await,
        GuestPath::Posix(components) => search.anywhere(components).await,
    }
}

/// A folder that the names of a path lead to, and the partition that it is on.
pub(super) struct Start {
    pub at: PathItem,
    pub partition: PathItem,
}

/// Where the fixed beginning of a path leads to: one folder, or, where there is no beginning, every partition that can be meant.
pub(super) async fn starting_points(
    folders: &impl Folders,
    path: &GuestPath,
    fixed: &[String],
) -> Result<Vec<Start>, Error> {
    let partitions = partitions(folders).await?;
    let roots = |partitions: Vec<PathItem>| {
        let root = |partition: PathItem| Start {
            at: partition.clone(),
            partition,
        };
        partitions.into_iter().map(root).collect()
    };
    match path {
        GuestPath::Posix(_) if fixed.is_empty() => return Ok(roots(partitions)),
        GuestPath::Windows(..) if fixed.is_empty() => {
            return Ok(roots(partitions.into_iter().filter(ignores_case).collect()));
        }
        GuestPath::Partition(_) => {
            let whole = fixed.join("/");
            let named = |partition: &PathItem| partition.path.trim_matches('/') == whole;
            if let Some(partition) = partitions.iter().find(|partition| named(partition)) {
                return Ok(roots(vec![partition.clone()]));
            }
        }
        _ => {}
    }
    let at = resolve(folders, &path.with(fixed.to_vec())).await?.item;
    let within = |partition: &&PathItem| at.path.starts_with(&format!("{}/", partition.path));
    let partition = partitions.iter().find(within).unwrap_or(&at).clone();
    Ok(vec![Start { at, partition }])
}

/// The partitions that can be looked into; where the ZVM lists disks first, those of every disk. One that can't (swap, a file
/// system that the ZVM does not know) is as good as not there.
async fn partitions(folders: &impl Folders) -> Result<Vec<PathItem>, Error> {
    let mut all = Vec::new();
    for item in folders.items("").await?.iter() {
        if item.kind == PathKind::Disk {
            all.extend(folders.items(&item.path).await?.iter().cloned());
        } else {
            all.push(item.clone());
        }
    }
    all.retain(|partition| partition.browsable);
    if all.len() > PARTITIONS_MAX {
        return Err(Error::new(
            ErrorCode::ZvmError,
            format!(
                "the ZVM lists {} partitions of the VM, which can't be",
                all.len()
            ),
        ));
    }
    let (mut readable, mut failure) = (Vec::new(), None);
    for partition in all {
        match folders.items(&partition.path).await {
            Ok(_) => readable.push(partition),
            Err(error) if error.code == ErrorCode::ZvmError => failure = Some(error),
            Err(error) => return Err(error),
        }
    }
    match failure {
        Some(error) if readable.is_empty() => Err(error),
        _ => Ok(readable),
    }
}

struct Search<'a, F> {
    folders: &'a F,
    path: &'a GuestPath,
    partitions: Vec<PathItem>,
}

impl<F: Folders> Search<'_, F> {
    async fn on_named_partition(&self, components: &[String]) -> Result<Resolved, Error> {
        let whole = components.join("/");
        for partition in &self.partitions {
            let rest = whole
                .strip_prefix(partition.path.trim_matches('/'))
                .and_then(|rest| rest.strip_prefix('/'));
            if let Some(rest) = rest {
                let rest: Vec<String> = rest.split('/').map(str::to_owned).collect();
                return self
                    .on([partition], &rest)
                    .await?
                    .map_or_else(|| Err(self.not_found(None)), Ok);
            }
        }
        Err(self.not_found(None).with_next(
            "A path that does not begin with / has to begin with one of these partitions. Write it as /folder/file, or with its partition.",
        ))
    }

    async fn on_windows_partitions(&self, components: &[String]) -> Result<Resolved, Error> {
        let candidates: Vec<_> = self
            .partitions
            .iter()
            .filter(|partition| ignores_case(partition))
            .collect();
        if candidates.is_empty() {
            return Err(self.not_found(None).with_next(
                "A path with a drive is looked for on NTFS and FAT partitions, and there is none. Write /folder/file for any other.",
            ));
        }
        self.on(candidates, components)
            .await?
            .map_or_else(|| Err(self.not_found(None)), Ok)
    }

    async fn anywhere(&self, components: &[String]) -> Result<Resolved, Error> {
        if let Some(resolved) = self.on(&self.partitions, components).await? {
            return Ok(resolved);
        }
        let below = Below::find(self.folders, &self.partitions, components).await?;
        if let Some(item) = self.at_most_one(below.certain)? {
            return Ok(Resolved { item, note: None });
        }
        let mount_points: Vec<_> = below
            .assumed
            .iter()
            .map(|(_, mount_point)| mount_point.clone())
            .collect();
        let assumed = below.assumed.into_iter().map(|(item, _)| item).collect();
        if let Some(item) = self.at_most_one(assumed)? {
            let note = format!(
                "No partition shows {}; the path was found below it, on the only partition that can be mounted there.",
                text::named(&mount_points.concat(), SHOWN_MAX_LEN)
            );
            return Ok(Resolved {
                item,
                note: Some(note),
            });
        }
        if !below.doubtful.is_empty() {
            return Err(self
                .not_found(None)
                .with_next("A part of the path is on a partition, but nothing says that it is mounted there. If one of the candidates is meant, give it as the path.")
                .with_candidates(shown(&below.doubtful)));
        }
        Err(self.not_found(self.link_in_the_way(components).await?))
    }

    /// The one item on these partitions; None where none has it.
    async fn on<'p>(
        &self,
        partitions: impl IntoIterator<Item = &'p PathItem>,
        components: &[String],
    ) -> Result<Option<Resolved>, Error> {
        let mut hits = Vec::new();
        for partition in partitions {
            hits.extend(
                walk(self.folders, partition, components)
                    .await?
                    .into_items(),
            );
        }
        Ok(self
            .at_most_one(hits)?
            .map(|item| Resolved { item, note: None }))
    }

    fn at_most_one(&self, mut hits: Vec<PathItem>) -> Result<Option<PathItem>, Error> {
        if hits.len() > 1 {
            let message = format!("{} is on the disks {} times", self.path.told(), hits.len());
            return Err(Error::new(ErrorCode::PathAmbiguous, message).with_candidates(shown(&hits)));
        }
        Ok(hits.pop())
    }

    async fn link_in_the_way(&self, components: &[String]) -> Result<Option<PathItem>, Error> {
        for partition in &self.partitions {
            if let Walked::Nowhere(Some(item)) = walk(self.folders, partition, components).await?
                && !item.downloadable
            {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    fn not_found(&self, link: Option<PathItem>) -> Error {
        let names: Vec<_> = self
            .partitions
            .iter()
            .take(CANDIDATES_MAX)
            .map(|partition| text::named(&partition.path, SHOWN_MAX_LEN))
            .collect();
        let names = names.join(", ");
        let error = Error::new(
            ErrorCode::PathNotFound,
            format!(
                "{} is not on the VM's partitions ({names})",
                self.path.told()
            ),
        );
        match link {
            None => error,
            Some(link) => error.with_next(format!(
                "{} is a link, and links are not followed: give the path that it leads to.",
                text::named(&link.path, SHOWN_MAX_LEN)
            )),
        }
    }
}

fn shown(items: &[PathItem]) -> Vec<String> {
    items
        .iter()
        .take(CANDIDATES_MAX)
        .map(|item| text::display(&item.path, SHOWN_MAX_LEN))
        .collect()
}

#[cfg(test)]
pub(super) mod tests;
