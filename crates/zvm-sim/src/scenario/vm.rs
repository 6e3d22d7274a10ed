//! Virtual machines and what is on their disks.

use serde::{Deserialize, Serialize};

/// A virtual machine. It is protected if a VPG names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Vm {
    /// Its name; need not be unique.
    pub name: String,
    /// By which VPGs name it, and the name of its guest folder; the name if it is not given.
    pub key: Option<String>,
    /// Its identifier; `<serverGuid>.vm-<n>` if it is not given.
    pub id: Option<String>,
    /// Its addresses.
    pub ips: Vec<String>,
    /// Its operating system, as vSphere words it.
    pub guest_os: String,
    /// Its disks' partitions, in order; none: the VM has no guest disk and can't be mounted.
    #[serde(rename = "partition")]
    pub partitions: Vec<Partition>,
}

impl Vm {
    /// By which VPGs name it.
    pub fn key(&self) -> &str {
        self.key.as_deref().unwrap_or(&self.name)
    }
}

/// A partition of a guest disk. Below it is always an ext4 image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Partition {
    /// Where the guest has it: `/`, `/home`, `C:\`.
    pub mount: String,
    /// What the ZVM calls its file system: `Ext4`, `NTFS`.
    pub filesystem: String,
    /// Its number in `partition#<n> <FsType>`; its place in the list if it is not given.
    pub number: Option<u32>,
    /// Its folder under the VM's; its number if it is not given.
    pub folder: Option<String>,
    /// Size of the image. It is sparse.
    pub size_mib: u64,
    /// What is on it at the start.
    #[serde(rename = "file")]
    pub files: Vec<Entry>,
}

impl Default for Partition {
    fn default() -> Self {
        Self {
            mount: "/".to_owned(),
            filesystem: "Ext4".to_owned(),
            number: None,
            folder: None,
            size_mib: 4096,
            files: Vec::new(),
        }
    }
}

/// A file, folder or link at the start. One of `text`, `bytes`, `link` and `folder` says what it is; none: an empty file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Entry {
    /// Its path on the partition, with `/`. Missing parents are made.
    pub path: String,
    /// A file with this text.
    pub text: Option<String>,
    /// A file of so many bytes, which look random and follow from the path.
    pub bytes: Option<u64>,
    /// A symbolic link to this.
    pub link: Option<String>,
    /// A folder.
    pub folder: bool,
    /// Permissions in octal, as in `"0640"`.
    pub mode: Option<String>,
}

impl Entry {
    /// A file with this text.
    pub fn text(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: Some(text.to_owned()),
            ..Self::default()
        }
    }

    /// A symbolic link.
    pub fn link(path: &str, target: &str) -> Self {
        Self {
            path: path.to_owned(),
            link: Some(target.to_owned()),
            ..Self::default()
        }
    }

    /// An empty folder.
    pub fn folder(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            folder: true,
            ..Self::default()
        }
    }

    /// The same with these permissions, in octal.
    #[must_use]
    pub fn mode(mut self, mode: &str) -> Self {
        self.mode = Some(mode.to_owned());
        self
    }
}
