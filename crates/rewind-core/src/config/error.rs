//! What can be wrong with a configuration file.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

/// Why there is no configuration. The message and [`next`](ConfigError::next) name the file and the fix; none contains a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No file was named, and there is none by default.
    #[error("no configuration file is named{}", Absent(default.as_deref()))]
    NotNamed {
        /// Where one would be taken from without being named.
        default: Option<PathBuf>,
    },
    /// The file does not exist.
    #[error("{}: there is no such configuration file", file.display())]
    Missing {
        /// The file.
        file: PathBuf,
    },
    /// The file exists and cannot be read.
    #[error("{}: cannot be read: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file has a secret in it, and other users of this host may use it.
    #[error("{}: {} a secret in it, and other users of this host may use it (mode {mode:04o}){}", file.display(), if mistake.is_some() { "seems to have" } else { "has" }, Besides(mistake.as_deref()))]
    OpenToOthers {
        /// The file.
        file: PathBuf,
        /// Its mode.
        mode: u32,
        /// What is wrong with the file besides.
        mistake: Option<Box<ConfigError>>,
    },
    /// The file belongs to another user, who may change it.
    #[error("{}: belongs to user {owner}, not to you ({user}), who may change it", file.display())]
    Foreign {
        /// The file.
        file: PathBuf,
        /// The owner's user id.
        owner: u32,
        /// The user id of this process.
        user: u32,
    },
    /// Other users of this host may change the file.
    #[error("{}: other users of this host may change it (mode {mode:04o})", file.display())]
    WritableByOthers {
        /// The file.
        file: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The file has a mistake.
    #[error("{}{}: {}{problem}{}", file.display(), Position(*position), Key(key.as_deref()), Fix(fix.as_deref()))]
    Invalid {
        /// The file.
        file: PathBuf,
        /// Line and column, both from 1, where the mistake has a place in the text.
        position: Option<(usize, usize)>,
        /// The key, as a path such as `guard.deadline`.
        key: Option<String>,
        /// What is wrong.
        problem: String,
        /// What to write instead.
        fix: Option<String>,
    },
}

impl ConfigError {
    /// What to do about it.
    #[must_use]
    pub fn next(&self) -> String {
        match self {
            Self::NotNamed { .. } => format!(
                "Run `zerto-rewind init` at a terminal, which makes one; or set the environment variable {} to the absolute path of a \
                 configuration file.",
                super::CONFIG_ENV
            ),
            Self::Missing { file } => format!(
                "Run `zerto-rewind --config {} init` at a terminal, which makes it; or correct the path.",
                word(file)
            ),
            Self::Unreadable { file, .. } => {
                let file = file.display();
                format!("Make {file} a file that this user can read, or name another one.")
            }
            Self::OpenToOthers { file, mistake, .. } => {
                let chmod = format!(
                    "Run `chmod 600 {}`, and change the secret where others may have read it.",
                    word(file)
                );
                match mistake {
                    Some(mistake) => format!("{chmod} {}", mistake.next()),
                    None => chmod,
                }
            }
            Self::Foreign { file, .. } => format!(
                "Look through it, then make it your own: copy it, or run `sudo chown $USER {}`.",
                word(file)
            ),
            Self::WritableByOthers { file, .. } => {
                format!("Look through it, then run `chmod go-w {}`.", word(file))
            }
            Self::Invalid { key: Some(key), .. } if super::SECRET_ENVS.contains(&&**key) => {
                format!("Set the environment variable {key} anew, or unset it.")
            }
            Self::Invalid { file, key, .. } => {
                let key = key.as_ref().map(|key| format!("`{key}` in "));
                format!("Correct {}{}.", key.unwrap_or_default(), file.display())
            }
        }
    }
}

impl ConfigError {
    /// With another mistake that the file has.
    pub(super) fn besides(self, other: Self) -> Self {
        match self {
            Self::OpenToOthers { file, mode, .. } => Self::OpenToOthers {
                file,
                mode,
                mistake: Some(Box::new(other)),
            },
            this => this,
        }
    }
}

/// A path as a shell reads it, for a command that is shown to a person.
pub fn word(path: &Path) -> String {
    let shown = path.display().to_string();
    match shlex::try_quote(&shown) {
        Ok(word) => word.into_owned(),
        // There is a NUL in it: no command can name it.
        Err(_) => shown,
    }
}

struct Absent<'a>(Option<&'a Path>);

impl fmt::Display for Absent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(file) => write!(f, ", and {} is not there", file.display()),
            None => Ok(()),
        }
    }
}

struct Besides<'a>(Option<&'a ConfigError>);

impl fmt::Display for Besides<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(mistake) => write!(f, "; besides, {mistake}"),
            None => Ok(()),
        }
    }
}

struct Position(Option<(usize, usize)>);

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((line, column)) => write!(f, ":{line}:{column}"),
            None => Ok(()),
        }
    }
}

struct Key<'a>(Option<&'a str>);

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(key) => write!(f, "`{key}`: "),
            None => Ok(()),
        }
    }
}

struct Fix<'a>(Option<&'a str>);

impl fmt::Display for Fix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(fix) => write!(f, ": {fix}"),
            None => Ok(()),
        }
    }
}

/// A mistake that shows once the whole file is read.
#[derive(Debug)]
pub(super) struct Mistake {
    pub(super) key: String,
    pub(super) problem: String,
    pub(super) fix: String,
}

impl Mistake {
    pub(super) fn new(
        key: impl Into<String>,
        problem: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            key: key.into(),
            problem: problem.into(),
            fix: fix.into(),
        }
    }

    pub(super) fn in_file(self, file: &Path) -> ConfigError {
        ConfigError::Invalid {
            file: file.to_owned(),
            position: None,
            key: Some(self.key),
            problem: self.problem,
            fix: Some(self.fix),
        }
    }
}
