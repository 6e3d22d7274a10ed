//! The names that a restore makes in a guest, all in the folder of the file.
use uuid::Uuid;

/// What begins the names of files that are not complete yet.
pub(super) const TEMPORARY: &str = ".zerto-rewind-";
/// Of one name, in bytes; the same on all common file systems.
const NAME_MAX: usize = 255;
const HASH_SHOWN: usize = 12;

/// The folder of an absolute path, and the name in it.
pub(crate) fn split(path: &str) -> (&str, &str) {
    match path.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some((folder, name)) => (folder, name),
        None => ("", path),
    }
}

fn join(folder: &str, name: &str) -> String {
    match folder {
        "/" => format!("/{name}"),
        folder => format!("{folder}/{name}"),
    }
}

/// `path` with something behind its name, which is cut where that would be too long.
fn with_suffix(path: &str, suffix: &str) -> String {
    let (folder, name) = split(path);
    let mut kept = name;
    while kept.len() + suffix.len() > NAME_MAX {
        let end = kept.char_indices().next_back().map_or(0, |(at, _)| at);
        kept = kept.get(..end).unwrap_or_default();
    }
    join(folder, &format!("{kept}{suffix}"))
}

/// Where a file goes that is restored beside the present one.
pub(crate) fn beside(path: &str, checkpoint: &str) -> String {
    with_suffix(path, &format!(".zerto-{checkpoint}"))
}

/// Where the present content goes when a file is replaced.
pub(crate) fn replaced(path: &str, sha256: &str) -> String {
    with_suffix(path, &format!(".zerto-replaced-{}", short(sha256)))
}

/// Where the present content goes when a restore is undone.
pub(crate) fn undone(path: &str, sha256: &str) -> String {
    with_suffix(path, &format!(".zerto-undone-{}", short(sha256)))
}

/// While it is not complete.
pub(crate) fn temporary(path: &str, restore: &str) -> String {
    join(split(path).0, &format!("{TEMPORARY}{restore}"))
}

/// While a copy of what is replaced is not complete.
pub(crate) fn copying(path: &str, restore: &str) -> String {
    format!("{}.copy", temporary(path, restore))
}

/// What people call a restore.
pub(crate) fn new_id() -> String {
    let random = Uuid::new_v4().simple().to_string();
    format!("r-{}", random.get(..10).unwrap_or(&random))
}

fn short(sha256: &str) -> &str {
    sha256.get(..HASH_SHOWN).unwrap_or(sha256)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_the_folder_and_fit() {
        assert_eq!(beside("/etc/hosts", "1197"), "/etc/hosts.zerto-1197");
        assert_eq!(beside("/hosts", "7"), "/hosts.zerto-7");
        assert_eq!(
            replaced("/srv/-a b", &"ab".repeat(32)),
            "/srv/-a b.zerto-replaced-abababababab"
        );
        assert_eq!(temporary("/etc/hosts", "r-1"), "/etc/.zerto-rewind-r-1");
        let long = beside(&format!("/x/{}", "ü".repeat(127)), "1197");
        let (_, name) = split(&long);
        assert!(
            name.len() <= 255 && name.ends_with("ü.zerto-1197"),
            "{name}"
        );
    }
}
