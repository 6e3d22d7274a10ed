//! What the tests of the guest disks share.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::UNIX_EPOCH;

use jiff::Timestamp;
use zvm_sim::disk::{DiskOptions, DiskView, EntryKind, GuestDisk};

/// A disk with its live folder in a folder of its own.
pub struct Lab {
    pub live: PathBuf,
    pub disk: GuestDisk,
    pub temp: tempfile::TempDir,
}

impl Lab {
    /// With three block groups, so that what crosses them is tried as well.
    pub fn new() -> Self {
        Self::with(300 << 20, |_| {})
    }

    pub fn with(size: u64, fill: impl FnOnce(&Path)) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let live = temp.path().join("live");
        fs::create_dir(&live).unwrap();
        fill(&live);
        let options = DiskOptions {
            size,
            label: "lab".to_owned(),
        };
        let disk = GuestDisk::create(&live, &temp.path().join("store"), options).unwrap();
        Self { live, disk, temp }
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.live.join(path)
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(path), content).unwrap();
    }

    /// The point shows exactly `expected`.
    pub fn check_shown(&self, point: i64, expected: &Tree) {
        let shown = shown(&self.disk.at(point).unwrap());
        for (path, item) in expected {
            assert_eq!(shown.get(path), Some(item), "`{path}` at {point}");
        }
        for path in shown.keys() {
            assert!(
                expected.contains_key(path),
                "`{path}` at {point} should not be there"
            );
        }
    }

    /// e2fsck finds nothing to repair in the image of the point.
    pub fn check_clean(&self, point: i64) {
        if !has_e2fsck() {
            return;
        }
        let image = tempfile::NamedTempFile::new_in(self.temp.path()).unwrap();
        self.disk.export(point, image.path()).unwrap();
        let output = Command::new("e2fsck")
            .arg("-fn")
            .arg(image.path())
            .output()
            .unwrap();
        assert_eq!(
            output.status.code(),
            Some(0),
            "e2fsck at {point}: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
    }
}

/// Whether everything has to be checked, whatever it takes. Elsewhere what is left out is said.
pub fn is_required(what: &str) -> bool {
    let required = requires_all();
    if !required {
        say(&format!(
            "SKIPPED: {what}; ZERTO_REWIND_REQUIRE_ALL=1 runs it"
        ));
    }
    required
}

/// Whether the temporary folder has room for so many GiB. If not, that is said: it is no fault of what is tested.
pub fn has_room(what: &str, gib: u64) -> bool {
    let room = rustix::fs::statvfs(std::env::temp_dir())
        .is_ok_and(|system| system.f_bavail * system.f_frsize >= gib << 30);
    if !room {
        say(&format!("SKIPPED: {what}, for lack of {gib} GiB"));
    }
    room
}

/// Whether e2fsck is there. If not, that is said, and where everything is required it is a failure.
fn has_e2fsck() -> bool {
    static FOUND: LazyLock<bool> = LazyLock::new(|| {
        let found = Command::new("e2fsck").arg("-V").output().is_ok();
        if !found {
            say("SKIPPED: checks of the images, because e2fsck is not installed");
        }
        found
    });
    assert!(
        *FOUND || !requires_all(),
        "e2fsck is required and not installed"
    );
    *FOUND
}

fn requires_all() -> bool {
    std::env::var_os("ZERTO_REWIND_REQUIRE_ALL").is_some_and(|value| value == "1")
}

/// Past the test harness, which shows the output of failed tests only.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// How many open files this process has below `folder`, unnamed ones included. Always 0 where there is no `/proc`.
pub fn descriptors_in(folder: &Path) -> usize {
    let Ok(descriptors) = fs::read_dir("/proc/self/fd") else {
        return 0;
    };
    descriptors
        .filter_map(|descriptor| fs::read_link(descriptor.ok()?.path()).ok())
        .filter(|path| path.starts_with(folder))
        .count()
}

/// What is compared of an entry.
#[derive(Clone, PartialEq, Eq)]
pub struct Item {
    pub kind: EntryKind,
    pub mode: u32,
    pub owner: (u32, u32),
    pub modified: Timestamp,
    pub changed: Timestamp,
    pub target: Option<String>,
    pub content: Vec<u8>,
}

impl std::fmt::Debug for Item {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Item")
            .field("kind", &self.kind)
            .field("mode", &format_args!("{:o}", self.mode))
            .field("owner", &self.owner)
            .field("modified", &self.modified)
            .field("changed", &self.changed)
            .field("target", &self.target)
            .field("length", &self.content.len())
            .field("start", &self.content.iter().take(16).collect::<Vec<_>>())
            .finish()
    }
}

pub type Tree = BTreeMap<String, Item>;

/// Everything in a live folder, by its path.
pub fn live(folder: &Path) -> Tree {
    let mut tree = Tree::new();
    add_live(folder, "", &mut tree);
    tree
}

fn add_live(path: &Path, name: &str, tree: &mut Tree) {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::symlink_metadata(path).unwrap();
    let kind = if metadata.is_dir() {
        EntryKind::Folder
    } else if metadata.is_symlink() {
        EntryKind::Link
    } else {
        EntryKind::File
    };
    let target = (kind == EntryKind::Link)
        .then(|| fs::read_link(path).unwrap().to_str().unwrap().to_owned());
    let content = if kind == EntryKind::File {
        fs::read(path).unwrap()
    } else {
        Vec::new()
    };
    let time = |seconds, nanoseconds: i64| Timestamp::new(seconds, nanoseconds as i32).unwrap();
    let item = Item {
        kind,
        mode: metadata.mode() & 0o7777,
        owner: (metadata.uid(), metadata.gid()),
        modified: time(metadata.mtime(), metadata.mtime_nsec()),
        changed: time(metadata.ctime(), metadata.ctime_nsec()),
        target,
        content,
    };
    tree.insert(name.to_owned(), item);
    if kind == EntryKind::Folder {
        for entry in fs::read_dir(path).unwrap() {
            let entry = entry.unwrap();
            let below = entry.file_name().to_str().unwrap().to_owned();
            let below = if name.is_empty() {
                below
            } else {
                format!("{name}/{below}")
            };
            add_live(&entry.path(), &below, tree);
        }
    }
}

/// Everything that a view shows, by its path.
pub fn shown(view: &DiskView) -> Tree {
    let mut tree = Tree::new();
    add_shown(view, "", &mut tree);
    tree
}

fn add_shown(view: &DiskView, path: &str, tree: &mut Tree) {
    let entry = view.entry(path).unwrap();
    let mut content = Vec::new();
    if entry.kind == EntryKind::File {
        view.open(path).unwrap().read_to_end(&mut content).unwrap();
        assert_eq!(content.len() as u64, entry.size, "size of `{path}`");
    }
    let item = Item {
        kind: entry.kind,
        mode: entry.mode,
        owner: (entry.uid, entry.gid),
        modified: entry.modified,
        changed: entry.changed,
        target: entry.link_target,
        content,
    };
    tree.insert(path.to_owned(), item);
    if entry.kind == EntryKind::Folder {
        for entry in view.list(path).unwrap() {
            let below = if path.is_empty() {
                entry.name
            } else {
                format!("{path}/{}", entry.name)
            };
            if below != "lost+found" {
                add_shown(view, &below, tree);
            }
        }
    }
}

pub fn content(view: &DiskView, path: &str) -> Vec<u8> {
    let mut content = Vec::new();
    view.open(path).unwrap().read_to_end(&mut content).unwrap();
    content
}

/// Bytes that no block repeats.
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

pub fn set_modified(path: &Path, seconds: i64, nanoseconds: u32) {
    let offset = std::time::Duration::new(seconds.unsigned_abs(), 0);
    let time = if seconds < 0 {
        UNIX_EPOCH - offset
    } else {
        UNIX_EPOCH + offset
    };
    let time = time + std::time::Duration::from_nanos(u64::from(nanoseconds));
    fs::File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_modified(time)
        .unwrap();
}
