//! Files and folders on a host that others use, too.
//!
//! Two things have to hold before something of this user's is kept in a folder: nobody else can put another folder in its place
//! ([`check_way`]), and what is in it is this user's own ([`check_file`]). Then paths below it mean what they say, and no step in
//! between can be turned elsewhere. Group members count as trusted where a mode lets them write; root and this user always.
use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

/// Somebody else can put another folder in the place of one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnsafeWay {
    /// Any user of this host may rename and replace what is in a folder on the way.
    #[error("any user of this host may replace what is in {} (mode {mode:04o}, no sticky bit)", folder.display())]
    OpenToAll {
        /// The folder on the way.
        folder: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A link on the way is another user's.
    #[error("{} is a link that belongs to user {owner}, not to you ({user})", link.display())]
    ForeignLink {
        /// The link.
        link: PathBuf,
        /// The owner's user id.
        owner: u32,
        /// The user id of this process.
        user: u32,
    },
    /// It can't be looked at.
    #[error("{} cannot be looked at: {source}", path.display())]
    Io {
        /// What.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl UnsafeWay {
    /// As a text tells it that has just named `path`: without naming the same again.
    #[must_use]
    pub fn told_of(&self, path: &Path) -> String {
        let (Self::OpenToAll { folder: named, .. }
        | Self::ForeignLink { link: named, .. }
        | Self::Io { path: named, .. }) = self;
        let told = self.to_string();
        match named == path {
            true => told.replacen(&path.display().to_string(), "it", 1),
            false => told,
        }
    }

    /// What to do about it, besides naming another place.
    #[must_use]
    pub fn next(&self) -> String {
        match self {
            Self::OpenToAll { folder, .. } => {
                format!("Run `chmod o-w {}`", crate::config::word(folder))
            }
            Self::ForeignLink { .. } => {
                "Name the folder that is meant, without the link".to_owned()
            }
            Self::Io { .. } => "Give this user permission to look at it".to_owned(),
        }
    }
}

/// A file in a folder of this user's that is not this user's own.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForeignFile {
    /// It is a symlink, which someone may have planted.
    #[error("{}: is a link, which may have been planted: remove it", file.display())]
    Link {
        /// The file.
        file: PathBuf,
    },
    /// It is a folder, a pipe, a device.
    #[error("{}: is not a regular file: move it away", file.display())]
    NotAFile {
        /// The file.
        file: PathBuf,
    },
    /// It belongs to another user.
    #[error("{}: belongs to user {owner}, not to you ({user}): move it away", file.display())]
    Owner {
        /// The file.
        file: PathBuf,
        /// The owner's user id.
        owner: u32,
        /// The user id of this process.
        user: u32,
    },
    /// It has other names, by which others may reach it.
    #[error("{}: has {links} names (hard links), so it may be changed from elsewhere: move it away", file.display())]
    HardLinks {
        /// The file.
        file: PathBuf,
        /// How many names it has.
        links: u64,
    },
    /// It can't be opened or looked at.
    #[error("{}: cannot be opened: {source}: check the disk and the permissions", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl ForeignFile {
    /// What to do about it; none where it could not be looked at.
    #[must_use]
    pub fn next(&self) -> Option<String> {
        match self {
            Self::Link { file }
            | Self::NotAFile { file }
            | Self::Owner { file, .. }
            | Self::HardLinks { file, .. } => Some(format!(
                "Find out who put it there, then move it away: `mv {0} {0}.old`. A new one is made.",
                crate::config::word(file)
            )),
            Self::Io { .. } => None,
        }
    }
}

/// Whether no other user can put another folder in the place of `folder`, or of what is missing on the way to it.
///
/// # Errors
/// Who could, and what to do. On Windows, never: a user's own folders are private there by inheritance.
pub fn check_way(folder: &Path) -> Result<(), UnsafeWay> {
    let failed = |path: &Path, source| UnsafeWay::Io {
        path: path.to_owned(),
        source,
    };
    let absolute = std::path::absolute(folder).map_err(|source| failed(folder, source))?;
    let mut ancestors: Vec<&Path> = absolute.ancestors().collect();
    ancestors.reverse();
    let mut existing = Path::new("/");
    for path in ancestors {
        match fs::symlink_metadata(path) {
            Ok(metadata) => check_link(path, &metadata)?,
            Err(error) if is_missing(&error) => break,
            Err(source) => return Err(failed(path, source)),
        }
        existing = path;
    }
    let real = match fs::canonicalize(existing) {
        Ok(real) => real,
        // A link to nothing: there is nothing yet that somebody could have planted.
        Err(error) if is_missing(&error) => return Ok(()),
        Err(source) => return Err(failed(existing, source)),
    };
    for path in real.ancestors() {
        let metadata = fs::symlink_metadata(path).map_err(|source| failed(path, source))?;
        check_folder(path, &metadata)?;
    }
    Ok(())
}

/// Whether a file, where there is one, is a plain file of this user's alone.
///
/// # Errors
/// What else it is, and what to do.
pub fn check_file(file: &Path) -> Result<(), ForeignFile> {
    match fs::symlink_metadata(file) {
        Ok(metadata) => check(file, &metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(ForeignFile::Io {
            file: file.to_owned(),
            source,
        }),
    }
}

/// Opens a file of this user's alone for reading and writing; one that is created is private. A link is never followed.
pub(crate) fn open(file: &Path, options: &mut OpenOptions) -> Result<File, ForeignFile> {
    options.read(true).write(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600).custom_flags(NOFOLLOW);
    }
    let failed = |source| ForeignFile::Io {
        file: file.to_owned(),
        source,
    };
    let opened = options.open(file).map_err(|source| {
        // What it is says more than what the system says about it.
        match check_file(file) {
            Err(foreign) => foreign,
            Ok(()) => failed(source),
        }
    })?;
    check(file, &opened.metadata().map_err(failed)?)?;
    Ok(opened)
}

/// Writes some bytes to a folder, and leaves nothing behind.
pub(crate) fn try_to_write(folder: &Path) -> io::Result<()> {
    // More than a file system keeps aside in what is allocated already.
    static SOME: [u8; 256 * 1024] = [1; 256 * 1024];
    let mut file = tempfile::tempfile_in(folder)?;
    file.write_all(&SOME)?;
    file.sync_all()
}

/// The owner of something that belongs neither to this user nor to root, and this user.
#[cfg(unix)]
pub(crate) fn foreign_owner(metadata: &Metadata) -> Option<(u32, u32)> {
    use std::os::unix::fs::MetadataExt;

    let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
    (owner != user && owner != 0).then_some((owner, user))
}

#[cfg(not(unix))]
pub(crate) fn foreign_owner(_: &Metadata) -> Option<(u32, u32)> {
    None
}

/// How somebody else may change a file, or put another one in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Writer {
    /// The file's mode lets others.
    File(u32),
    /// Others may write to its folder.
    Folder(PathBuf),
    /// It belongs to this user.
    Owner(u32),
}

impl Writer {
    /// What is wrong with the file, and what to do about it; it should have this mode.
    #[must_use]
    pub fn described(&self, file: &Path, mode: &str) -> (String, String) {
        let shown = file.display();
        let word = crate::config::word(file);
        match self {
            Self::File(found) => (
                format!("{shown}: others may change it ({found:04o})"),
                format!("Run `chmod {mode} {word}`."),
            ),
            Self::Folder(folder) => (
                format!(
                    "{shown}: others may put another file in its place, as they may write to {}",
                    folder.display()
                ),
                format!(
                    "Move it to a folder of your own, or run `chmod go-w {}`.",
                    crate::config::word(folder)
                ),
            ),
            Self::Owner(owner) => (
                format!("{shown} belongs to user {owner}, who may change it"),
                format!("Make it your own: copy it, or run `sudo chown $USER {word}`."),
            ),
        }
    }
}

/// Who else may change a file, or what will be one.
#[cfg(unix)]
#[must_use]
pub fn others_may_write(file: &Path) -> Option<Writer> {
    use std::os::unix::fs::MetadataExt as _;

    let real = fs::canonicalize(file).ok();
    if let Some(metadata) = real.as_ref().and_then(|file| fs::metadata(file).ok()) {
        if let Some((owner, _)) = foreign_owner(&metadata) {
            return Some(Writer::Owner(owner));
        }
        if metadata.mode() & 0o022 != 0 {
            return Some(Writer::File(metadata.mode() & 0o7777));
        }
    }
    let folder = real.as_deref().unwrap_or(file).parent()?;
    let metadata = fs::metadata(folder).ok()?;
    // In a folder with the sticky bit, only its owner can replace a file.
    let open = metadata.mode() & 0o022 != 0 && metadata.mode() & 0o1000 == 0;
    (open || foreign_owner(&metadata).is_some()).then(|| Writer::Folder(folder.to_owned()))
}

/// A user's own folders are private there by inheritance.
#[cfg(not(unix))]
#[must_use]
pub fn others_may_write(_: &Path) -> Option<Writer> {
    None
}

#[cfg(unix)]
const NOFOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

#[cfg(unix)]
fn check(file: &Path, metadata: &Metadata) -> Result<(), ForeignFile> {
    use std::os::unix::fs::MetadataExt;

    let file = file.to_owned();
    let user = rustix::process::geteuid().as_raw();
    if metadata.is_symlink() {
        return Err(ForeignFile::Link { file });
    }
    if !metadata.is_file() {
        return Err(ForeignFile::NotAFile { file });
    }
    if metadata.uid() != user {
        let owner = metadata.uid();
        return Err(ForeignFile::Owner { file, owner, user });
    }
    // None: it was removed just now.
    if metadata.nlink() > 1 {
        let links = metadata.nlink();
        return Err(ForeignFile::HardLinks { file, links });
    }
    Ok(())
}

#[cfg(not(unix))]
fn check(file: &Path, metadata: &Metadata) -> Result<(), ForeignFile> {
    let file = file.to_owned();
    match (metadata.is_symlink(), metadata.is_file()) {
        (true, _) => Err(ForeignFile::Link { file }),
        (false, false) => Err(ForeignFile::NotAFile { file }),
        (false, true) => Ok(()),
    }
}

/// A link may lead anywhere its owner likes, later, too.
#[cfg(unix)]
fn check_link(path: &Path, metadata: &Metadata) -> Result<(), UnsafeWay> {
    if metadata.is_symlink()
        && let Some((owner, user)) = foreign_owner(metadata)
    {
        return Err(UnsafeWay::ForeignLink {
            link: path.to_owned(),
            owner,
            user,
        });
    }
    Ok(())
}

#[cfg(unix)]
fn check_folder(path: &Path, metadata: &Metadata) -> Result<(), UnsafeWay> {
    use std::os::unix::fs::MetadataExt;

    const ALL_WRITE: u32 = 0o002;
    const STICKY: u32 = 0o1000;
    let mode = metadata.mode() & 0o7777;
    if metadata.is_dir() && mode & ALL_WRITE != 0 && mode & STICKY == 0 {
        return Err(UnsafeWay::OpenToAll {
            folder: path.to_owned(),
            mode,
        });
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_link(_: &Path, _: &Metadata) -> Result<(), UnsafeWay> {
    Ok(())
}

#[cfg(not(unix))]
fn check_folder(_: &Path, _: &Metadata) -> Result<(), UnsafeWay> {
    Ok(())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_way_that_anybody_can_change_is_told_with_its_folder() {
        let root = tempfile::tempdir().unwrap();
        let open = root.path().join("open");
        let folder = open.join("a/b");
        fs::create_dir_all(&folder).unwrap();
        check_way(&folder).unwrap();
        check_way(&folder.join("not/there")).unwrap();
        mode(&open, 0o777);
        for path in [&folder, &open, &open.join("new"), &folder.join("not/there")] {
            let error = check_way(path).unwrap_err();
            let real = open.canonicalize().unwrap().display().to_string();
            assert!(error.to_string().contains(&real), "{error}");
            assert_eq!(error.next(), format!("Run `chmod o-w {real}`"));
            // Where the path is named already, it is not named again.
            let told = error.told_of(Path::new(&real));
            assert!(
                told.contains("what is in it") && !told.contains(&real),
                "{told}"
            );
        }
        // As /tmp.
        mode(&open, 0o1777);
        check_way(&folder).unwrap();
        // By a link, it is the same folder.
        mode(&open, 0o777);
        symlink(&open, root.path().join("link")).unwrap();
        check_way(&root.path().join("link/a")).unwrap_err();
    }

    #[test]
    fn what_is_no_file_of_ours_alone_is_told() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        check_file(&file).unwrap();
        drop(open(&file, OpenOptions::new().create(true)).unwrap());
        check_file(&file).unwrap();
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let second = root.path().join("second");
        fs::hard_link(&file, &second).unwrap();
        for path in [&file, &second] {
            let error = open(path, &mut OpenOptions::new()).unwrap_err().to_string();
            assert!(
                error.starts_with(&*path.to_string_lossy()) && error.contains("2 names"),
                "{error}"
            );
        }
        fs::remove_file(&second).unwrap();
        symlink(&file, &second).unwrap();
        for options in [&mut OpenOptions::new(), OpenOptions::new().create(true)] {
            let error = open(&second, options).unwrap_err();
            assert!(matches!(error, ForeignFile::Link { .. }), "{error}");
        }
        let error = open(root.path(), &mut OpenOptions::new()).unwrap_err();
        assert!(matches!(error, ForeignFile::NotAFile { .. }), "{error}");
    }
}
