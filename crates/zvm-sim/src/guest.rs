//! The guests: folders on the host, and their disks.

mod tree;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::disk::{DiskError, DiskOptions, DiskView, GuestDisk};
use crate::inventory::{Inventory, Vm};
use crate::scenario::{self, Partition, ScenarioError};
use crate::sync::lock;

/// A guest can't be made.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// Its initial tree is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Its folder can't be made.
    #[error("can't make {}: {source}", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Its disk can't be made.
    #[error("disk of VM \"{vm}\": {source}")]
    Disk {
        /// The VM.
        vm: String,
        /// Why.
        source: DiskError,
    },
}

/// A mounted partition: the ZVM's name for it and its file system as of the checkpoint.
#[derive(Clone)]
pub(crate) struct Volume {
    pub(crate) name: String,
    pub(crate) view: DiskView,
}

/// One guest with its partitions.
pub(crate) struct Guest {
    partitions: Vec<Place>,
    disks: Mutex<Vec<GuestDisk>>,
}

struct Place {
    name: String,
    mount: String,
    folder: PathBuf,
}

/// The guests by the index of their VM. Only VMs with partitions are among them.
pub(crate) struct Guests {
    by_vm: BTreeMap<usize, Guest>,
}

/// The name of a partition's folder on the host.
pub(crate) fn folder_name(partition: &Partition, index: usize) -> String {
    partition
        .folder
        .clone()
        .unwrap_or_else(|| number(partition, index).to_string())
}

fn number(partition: &Partition, index: usize) -> u32 {
    partition
        .number
        .unwrap_or_else(|| u32::try_from(index).unwrap_or(u32::MAX))
}

impl Guests {
    /// Makes folders and disks. Folders that are there already stay as they are.
    pub(crate) fn create(
        inventory: &Inventory,
        guests_dir: &Path,
        disks_dir: &Path,
    ) -> Result<Self, GuestError> {
        let mut by_vm = BTreeMap::new();
        for (index, vm) in inventory.vms.iter().enumerate() {
            if vm.has_disk() {
                let folder = guests_dir.join(&vm.key);
                let store = disks_dir.join(&vm.key);
                by_vm.insert(index, Guest::create(vm, &folder, &store)?);
            }
        }
        Ok(Self { by_vm })
    }

    pub(crate) fn get(&self, vm: usize) -> Option<&Guest> {
        self.by_vm.get(&vm)
    }

    /// Brings the disks of these VMs (in rising order) to one point and then runs `then` while they still stand there: so
    /// no later point of a disk is recorded before an earlier one.
    ///
    /// `point` is asked for the moment once the disks are free.
    pub(crate) fn sync<T>(
        &self,
        vms: &[usize],
        point: impl FnOnce() -> i64,
        then: impl FnOnce(i64) -> T,
    ) -> Result<T, DiskError> {
        let mut held: Vec<_> = vms
            .iter()
            .filter_map(|vm| self.by_vm.get(vm))
            .map(|guest| lock(&guest.disks))
            .collect();
        let point = point();
        for disk in held.iter_mut().flat_map(|disks| disks.iter_mut()) {
            let report = disk.sync(point)?;
            for skipped in report.skipped {
                tracing::debug!(path = %skipped.path, reason = ?skipped.reason, "not on the guest's disk");
            }
        }
        Ok(then(point))
    }

    /// Frees what only points before this one need.
    pub(crate) fn forget_before(&self, vm: usize, point: i64) -> Result<(), DiskError> {
        let Some(guest) = self.by_vm.get(&vm) else {
            return Ok(());
        };
        lock(&guest.disks)
            .iter_mut()
            .try_for_each(|disk| disk.forget_before(point))
    }
}

impl Guest {
    fn create(vm: &Vm, folder: &Path, store: &Path) -> Result<Self, GuestError> {
        let mut partitions = Vec::new();
        let mut disks = Vec::new();
        for (index, partition) in vm.partitions.iter().enumerate() {
            let name = folder_name(partition, index);
            let folder = folder.join(&name);
            if !folder.exists() {
                tree::plant(&vm.name, partition, &folder)?;
            }
            let options = DiskOptions {
                size: partition.size_mib.saturating_mul(1024 * 1024),
                label: String::new(),
            };
            let disk =
                GuestDisk::create(&folder, &store.join(&name), options).map_err(|source| {
                    GuestError::Disk {
                        vm: vm.name.clone(),
                        source,
                    }
                })?;
            disks.push(disk);
            partitions.push(Place {
                name: format!(
                    "partition#{} {}",
                    number(partition, index),
                    partition.filesystem
                ),
                mount: partition.mount.clone(),
                folder,
            });
        }
        Ok(Self {
            partitions,
            disks: Mutex::new(disks),
        })
    }

    /// The partitions as they were at a point.
    pub(crate) fn volumes(&self, point: i64) -> Result<Vec<Volume>, DiskError> {
        self.partitions
            .iter()
            .zip(lock(&self.disks).iter())
            .map(|(place, disk)| {
                Ok(Volume {
                    name: place.name.clone(),
                    view: disk.at(point)?,
                })
            })
            .collect()
    }

    /// Where a guest path is on the host: on the partition with the longest mount point that leads to it.
    pub(crate) fn host_path(&self, guest_path: &str) -> Option<PathBuf> {
        let mounts = self
            .partitions
            .iter()
            .map(|place| (place.mount.as_str(), place.folder.clone()));
        on_partition(mounts, guest_path)
    }
}

impl scenario::Vm {
    /// Where a path of this guest is on the host, by the rule of [`Sim::guest_path`](crate::Sim::guest_path), for who has only
    /// the scenario and the guests' folder. `..` is not looked at.
    pub fn host_path(&self, guests_dir: &Path, guest_path: &str) -> Option<PathBuf> {
        let folder = guests_dir.join(self.key());
        let mounts = self.partitions.iter().enumerate().map(|(index, own)| {
            let folder = folder.join(folder_name(own, index));
            (own.mount.as_str(), folder)
        });
        on_partition(mounts, guest_path)
    }
}

/// Below the folder of the partition with the longest mount point that leads to the path.
fn on_partition<'a>(
    mounts: impl Iterator<Item = (&'a str, PathBuf)>,
    guest_path: &str,
) -> Option<PathBuf> {
    mounts
        .filter_map(|(mount, folder)| {
            // Only where there are drive letters is a backslash no part of a name.
            let separators: &[char] = if mount.contains(':') {
                &['/', '\\']
            } else {
                &['/']
            };
            let wanted = components(guest_path, separators);
            let mount = components(mount, separators);
            let below = wanted.strip_prefix(mount.as_slice())?;
            Some((mount.len(), folder.join(below.iter().collect::<PathBuf>())))
        })
        .max_by_key(|(depth, _)| *depth)
        .map(|(_, path)| path)
}

fn components<'a>(path: &'a str, separators: &[char]) -> Vec<&'a str> {
    path.split(separators)
        .filter(|part| !part.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    #[test]
    fn the_longest_mount_point_has_the_path() {
        let mut scenario = Scenario::default();
        let app01 = scenario.vm_mut("app01").unwrap().clone();
        for (path, on_host) in [
            ("/home/justin/notes.txt", "app01/1/justin/notes.txt"),
            ("/home", "app01/1"),
            ("/homes/x", "app01/0/homes/x"),
            ("/etc/hosts", "app01/0/etc/hosts"),
        ] {
            let found = app01.host_path(Path::new("/guests"), path).unwrap();
            assert_eq!(found, Path::new("/guests").join(on_host), "{path}");
        }
        let web = scenario.vm_mut("web-a").unwrap();
        assert_eq!(web.host_path(Path::new("/guests"), "/etc/hosts"), None);
    }
}
