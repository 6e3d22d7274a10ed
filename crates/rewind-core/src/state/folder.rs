//! The state folder: private to this user, or not used.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    config::word,
    private::{UnsafeWay, check_way},
};

/// Why the state folder is not used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// It is a symlink, which someone may have planted.
    #[error("{}: the state folder is a symlink: name the folder itself in `state_dir`", dir.display())]
    Symlink {
        /// The folder.
        dir: PathBuf,
    },
    /// It is not a folder.
    #[error("{}: is not a folder: move the file away, or name another folder in `state_dir`", dir.display())]
    NotAFolder {
        /// The folder.
        dir: PathBuf,
    },
    /// It belongs to another user.
    #[error("{}: the state folder belongs to user {owner}, not to you ({user}): name another folder in `state_dir`", dir.display())]
    ForeignOwner {
        /// The folder.
        dir: PathBuf,
        /// The owner's user id.
        owner: u32,
        /// The user id of this process.
        user: u32,
    },
    /// Others may read or change it.
    #[error("{}: the state folder is open to others (mode {mode:03o})", dir.display())]
    OpenToOthers {
        /// The folder.
        dir: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Somebody else can put another folder in its place.
    #[error("the state folder {} is not safe: {}", dir.display(), way.told_of(dir))]
    UnsafeWay {
        /// The folder.
        dir: PathBuf,
        /// How.
        way: UnsafeWay,
    },
    /// It cannot be made or looked at.
    #[error("{}: the state folder cannot be used: {source}", dir.display())]
    Io {
        /// The folder.
        dir: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl FolderError {
    /// What to do about it.
    #[must_use]
    pub fn next(&self) -> String {
        const ANOTHER: &str = "name another folder in `state_dir`";
        match self {
            Self::Symlink { .. } => {
                "Name the folder that the link leads to in `state_dir`.".to_owned()
            }
            Self::NotAFolder { dir } => {
                format!("Move {} away, or {ANOTHER}.", word(dir))
            }
            Self::ForeignOwner { dir, .. } => format!(
                "Find out why it is another user's: each user has a folder of their own. Then {ANOTHER}, or run `sudo chown -R $USER {}`.",
                word(dir)
            ),
            Self::OpenToOthers { dir, .. } => format!("Run `chmod 700 {}`.", word(dir)),
            Self::UnsafeWay { way, .. } => format!("{}, or {ANOTHER}.", way.next()),
            Self::Io { .. } => format!(
                "Check that it is a local folder that this user can make and write to, with room left; or {ANOTHER}."
            ),
        }
    }
}

/// Creates the folder where it is missing, checks that it is this user's alone, and resolves its path.
pub(crate) fn prepare(dir: &Path) -> Result<PathBuf, FolderError> {
    let io = |source| FolderError::Io {
        dir: dir.to_owned(),
        source,
    };
    check_way(dir).map_err(|way| FolderError::UnsafeWay {
        dir: dir.to_owned(),
        way,
    })?;
    let metadata = match fs::symlink_metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create(dir).map_err(io)?;
            fs::symlink_metadata(dir)
        }
        found => found,
    }
    .map_err(io)?;
    if metadata.is_symlink() {
        return Err(FolderError::Symlink {
            dir: dir.to_owned(),
        });
    }
    if !metadata.is_dir() {
        return Err(FolderError::NotAFolder {
            dir: dir.to_owned(),
        });
    }
    check(dir, &metadata)?;
    fs::canonicalize(dir).map_err(io)
}

fn create(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

#[cfg(unix)]
fn check(dir: &Path, metadata: &fs::Metadata) -> Result<(), FolderError> {
    use std::os::unix::fs::MetadataExt;

    let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
    if owner != user {
        return Err(FolderError::ForeignOwner {
            dir: dir.to_owned(),
            owner,
            user,
        });
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(FolderError::OpenToOthers {
            dir: dir.to_owned(),
            mode,
        });
    }
    Ok(())
}

#[cfg(not(unix))]
fn check(_: &Path, _: &fs::Metadata) -> Result<(), FolderError> {
    // The user's own data folder is private there by inheritance.
    Ok(())
}
