//! A path inside a guest, as people and agents write it.
use super::pattern::WILDCARDS;
use crate::{Error, ErrorCode, text};

/// A path that was checked: every component is a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuestPath {
    /// `/etc/hosts`: on whichever partition it lies.
    Posix(Vec<String>),
    /// `C:\Users\x`: on an NTFS or FAT partition. Which one has the drive letter is not known to the ZVM.
    Windows(char, Vec<String>),
    /// The ZVM's own form, `partition#0 Ext4/etc/hosts`: it begins with the path of a partition, whatever that looks like.
    Partition(Vec<String>),
}

impl GuestPath {
    /// Reads a path that a person or an agent wrote.
    ///
    /// # Errors
    /// `invalid_argument`: it can't be the path of a file or folder, and why.
    pub fn parse(path: &str) -> Result<Self, Error> {
        if path.trim().is_empty() {
            return invalid("is empty");
        }
        if path.len() > text::PATH_MAX_LEN {
            return invalid("is longer than 4096 bytes");
        }
        if path.contains('\0') {
            return invalid("contains a NUL character");
        }
        if let Some((drive, rest)) = after_drive(path) {
            if !rest.starts_with(['\\', '/']) {
                return invalid("is relative to a drive: write it as C:\\folder\\file");
            }
            return Ok(Self::Windows(
                drive.to_ascii_uppercase(),
                components(rest, &['\\', '/'])?,
            ));
        }
        if path.starts_with('\\') {
            return invalid("begins with a backslash: write it as C:\\folder\\file");
        }
        let components = components(path, &['/'])?;
        if path.starts_with('/') {
            return Ok(Self::Posix(components));
        }
        if names_no_partition(&components) {
            return invalid(&relative(path));
        }
        Ok(Self::Partition(components))
    }

    /// The name of the file or folder.
    pub fn name(&self) -> &str {
        self.components().last().map_or("", String::as_str)
    }

    /// The folders that lead to it, outermost first: a drive is one, too.
    pub fn folders(&self) -> Vec<String> {
        let drive = match self {
            Self::Windows(drive, _) => Some(drive.to_string()),
            _ => None,
        };
        let folders = self
            .components()
            .split_last()
            .map_or(&[][..], |(_, all)| all);
        drive.into_iter().chain(folders.iter().cloned()).collect()
    }

    /// As it is written: it parses back into the same path.
    pub fn written(&self) -> String {
        match self {
            Self::Posix(components) => format!("/{}", components.join("/")),
            Self::Windows(drive, components) => format!("{drive}:\\{}", components.join("\\")),
            Self::Partition(components) => components.join("/"),
        }
    }

    /// The same kind of path, with other components.
    pub fn with(&self, components: Vec<String>) -> Self {
        match self {
            Self::Posix(_) => Self::Posix(components),
            Self::Windows(drive, _) => Self::Windows(*drive, components),
            Self::Partition(_) => Self::Partition(components),
        }
    }

    /// Its names, outermost first.
    pub fn components(&self) -> &[String] {
        let (Self::Posix(components) | Self::Windows(_, components) | Self::Partition(components)) =
            self;
        components
    }
}

impl GuestPath {
    /// Whether a name in it could be meant as a pattern.
    pub(crate) fn has_wildcard(&self) -> bool {
        self.components()
            .iter()
            .any(|name| name.contains(WILDCARDS))
    }

    /// As it stands within a sentence.
    pub(crate) fn told(&self) -> String {
        told_path(&self.written())
    }
}

/// As a person reads it.
impl std::fmt::Display for GuestPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&shown_path(&self.written()))
    }
}

/// A path in a guest, as a person reads it: what can't be seen is escaped.
pub(crate) fn shown_path(written: &str) -> String {
    text::path(written)
}

/// As [`shown_path`], within a text of ours.
pub(crate) fn told_path(written: &str) -> String {
    text::named_exactly(written, text::PATH_MAX_LEN)
}

/// A partition's name is not known beforehand, but it is more than a word, and something is on it.
fn names_no_partition(components: &[String]) -> bool {
    let is_word =
        |name: &String| name.chars().all(char::is_alphabetic) || name.starts_with(['.', '~']);
    components.len() < 2 || components.first().is_some_and(is_word)
}

fn relative(path: &str) -> String {
    let path = text::display(path, 200);
    if path.starts_with('~') {
        return "begins with `~`, which is not expanded: write the home folder in full, such as /home/user".to_owned();
    }
    let absolute = match path.contains('\\') && !path.contains('/') {
        true => format!("C:\\{path}"),
        false => format!("/{path}"),
    };
    format!("is relative: write {absolute}, from the root of the guest's disk")
}

fn after_drive(path: &str) -> Option<(char, &str)> {
    let mut chars = path.chars();
    let drive = chars.next()?;
    (drive.is_ascii_alphabetic() && chars.next() == Some(':')).then_some((drive, chars.as_str()))
}

fn components(path: &str, separators: &[char]) -> Result<Vec<String>, Error> {
    let components: Vec<String> = path
        .split(separators)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    if components.iter().any(|name| name == "." || name == "..") {
        return invalid("contains `.` or `..`");
    }
    if components.is_empty() {
        return invalid("names a whole disk: name a file or a folder on it");
    }
    Ok(components)
}

fn invalid<T>(problem: &str) -> Result<T, Error> {
    Err(Error::new(ErrorCode::InvalidArgument, format!("`path` {problem}"))
        .with_next("Give the whole path of a file or folder in the guest, such as /etc/hosts or C:\\folder\\file."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn the_three_forms_are_told_apart() {
        for (path, parsed) in [
            ("/etc/hosts", GuestPath::Posix(names(&["etc", "hosts"]))),
            ("//etc///nginx/", GuestPath::Posix(names(&["etc", "nginx"]))),
            (
                "/srv/a\\b \"c\" ü",
                GuestPath::Posix(names(&["srv", "a\\b \"c\" ü"])),
            ),
            (
                "C:\\Users\\x y\\f.txt",
                GuestPath::Windows('C', names(&["Users", "x y", "f.txt"])),
            ),
            ("d:/data/f", GuestPath::Windows('D', names(&["data", "f"]))),
            (
                "partition#0 Ext4/etc/hosts",
                GuestPath::Partition(names(&["partition#0 Ext4", "etc", "hosts"])),
            ),
        ] {
            assert_eq!(GuestPath::parse(path).unwrap(), parsed, "{path}");
        }
    }

    #[test]
    fn a_relative_path_is_answered_with_the_whole_one() {
        for (path, right) in [
            ("etc/hosts", "/etc/hosts"),
            ("hosts", "/hosts"),
            ("Users\\x", "C:\\Users\\x"),
            ("~/x", "/home/user"),
        ] {
            let error = GuestPath::parse(path).unwrap_err();
            assert!(error.message.contains(right), "{}", error.message);
        }
    }

    #[test]
    fn what_is_no_path_of_a_file_is_refused() {
        let long = format!("/{}", "x".repeat(10_000));
        for path in [
            "",
            "  ",
            "/",
            "///",
            "C:",
            "C:\\",
            "etc/hosts",
            "hosts",
            "app-config.yaml",
            "~/x",
            ".ssh/config",
            "Users\\x",
            "partition#0 Ext4",
            "C:file",
            "\\\\server\\share",
            "/etc/../shadow",
            "/etc/./hosts",
            "..",
            "C:\\..\\x",
            "partition#0 Ext4/../x",
            "/etc/ho\0sts",
            &long,
        ] {
            assert_eq!(
                GuestPath::parse(path).unwrap_err().code,
                ErrorCode::InvalidArgument,
                "{path:?}"
            );
        }
    }
}
