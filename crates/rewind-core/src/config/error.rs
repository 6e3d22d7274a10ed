//! What can be wrong with a configuration file.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

/// Why there is no configuration. The message and [`next`](ConfigError::next) name the file and the fix; none contains a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No file was named.
    #[error("no configuration file is named")]
    NotNamed,
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
    #[error("{}: has a secret in it, and other users of this host may use it (mode {mode:04o})", file.display())]
    OpenToOthers {
        /// The file.
        file: PathBuf,
        /// Its mode.
        mode: u32,
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
            Self::NotNamed => format!(
                "Set the environment variable {} to the absolute path of the configuration file.",
                super::CONFIG_ENV
            ),
            Self::Missing { file } => {
                let file = file.display();
                format!(
                    "Create it from the example (`install -m 600 config.example.json {file}`) and fill in `zerto_url`, \
                     `username` and `password`; or correct the path."
                )
            }
            Self::Unreadable { file, .. } => {
                let file = file.display();
                format!("Make {file} a file that this user can read, or name another one.")
            }
            Self::OpenToOthers { file, .. } => format!(
                "Run `chmod 600 {}`, and change the secret where others may have read it.",
                word(file)
            ),
            Self::WritableByOthers { file, .. } => {
                format!("Look through it, then run `chmod go-w {}`.", word(file))
            }
            Self::Invalid { file, key, .. } => {
                let key = key.as_ref().map(|key| format!("`{key}` in "));
                format!("Correct {}{}.", key.unwrap_or_default(), file.display())
            }
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
