//! The configuration file: one JSON file for one ZVM.
//!
//! `zerto_url`, `username`, `password` and `verify_tls` suffice. Relative paths start at the folder of the file; `~` is not expanded.

mod check;
mod error;
mod raw;
mod revision;
mod secret;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    time::Duration,
};

use secrecy::zeroize::Zeroizing;
use url::Url;
use zvm_client::Fingerprint;

use crate::private as host;

pub use check::{default_file, default_state_dir};
pub use error::ConfigError;
pub use error::word;
use revision::Revision;
pub use secret::{
    CLIENT_SECRET_ENV, PASSWORD_ENV, SECRET_ENVS, Secret, one_line, withhold_secrets,
};

/// The environment variable that names the configuration file.
pub const CONFIG_ENV: &str = "ZERTO_REWIND_CONFIG";

/// A configuration file larger than this is not one.
const MAX_BYTES: u64 = 1024 * 1024;

/// A configuration that was read and checked.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// The file that it came from, absolute.
    pub file: PathBuf,
    /// The ZVM: `https`, host, and port where it is not 443; no path.
    pub zerto_url: Url,
    /// How to log in.
    pub credentials: Credentials,
    /// What certificate the ZVM must show.
    pub tls: Tls,
    /// The agent's name, where it is fixed: it wins over what a call says.
    pub agent: Option<String>,
    /// The catalog file. Without one, every call is unlisted.
    pub catalog: Option<PathBuf>,
    /// The folder for what has to be remembered between processes.
    pub state_dir: PathBuf,
    /// The folder that recovered files are placed in.
    pub recover_dir: PathBuf,
    /// How long and how often a guard tries.
    pub guard: GuardSettings,
    /// How a human is asked.
    pub confirmation: Confirmation,
    /// Whether looking into a checkpoint is asked for.
    pub previews: Previews,
    /// The ways into guests, by VM name.
    pub guests: BTreeMap<String, Guest>,
    /// The file itself has a secret in it.
    holds_secret: bool,
    revision: Revision,
}

/// How to log in to the ZVM's Keycloak.
#[derive(Debug, Clone)]
pub enum Credentials {
    /// The password grant, with the ZVM's own public client.
    Password {
        /// The user's name.
        username: String,
        /// The user's password.
        password: Secret,
    },
    /// The client-credentials grant.
    Client {
        /// The client's id.
        client_id: String,
        /// The client's secret.
        client_secret: Secret,
    },
}

impl Credentials {
    /// The name of the account, for messages and for counting refused logins.
    #[must_use]
    pub fn account(&self) -> &str {
        match self {
            Self::Password { username, .. } => username,
            Self::Client { client_id, .. } => client_id,
        }
    }

    fn with_file_read(self) -> Result<Self, ConfigError> {
        Ok(match self {
            Self::Password { username, password } => Self::Password {
                username,
                password: password.with_file_read()?,
            },
            Self::Client {
                client_id,
                client_secret,
            } => Self::Client {
                client_id,
                client_secret: client_secret.with_file_read()?,
            },
        })
    }

    /// The password or the client secret.
    #[must_use]
    pub fn secret(&self) -> &Secret {
        match self {
            Self::Password { password, .. } => password,
            Self::Client { client_secret, .. } => client_secret,
        }
    }
}

/// What certificate the ZVM must show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// Verify the chain and the name. Off by default, as appliance certificates are self-signed.
    pub verify: bool,
    /// Verify against this file instead of the system's roots.
    pub ca_file: Option<PathBuf>,
    /// The only certificate that is accepted, on top of what is verified.
    pub fingerprint: Option<Fingerprint>,
    /// What to do with a certificate that was never seen, where nothing is verified.
    pub first_use: FirstUse,
}

/// What to do with the first certificate of a ZVM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FirstUse {
    /// Accept and remember it.
    #[default]
    Accept,
    /// Refuse it until a person accepted it.
    Refuse,
}

/// How long and how often a guard tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuardSettings {
    /// How long an insert may take to be listed, counted once the lock is held.
    pub listed_timeout: Duration,
    /// How often a tag is inserted at most.
    pub attempts: u32,
    /// How long a whole guard may take.
    pub deadline: Duration,
}

impl Default for GuardSettings {
    fn default() -> Self {
        Self {
            listed_timeout: Duration::from_secs(60),
            attempts: 3,
            deadline: Duration::from_secs(240),
        }
    }
}

/// How a human is asked to confirm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confirmation {
    /// By a form where the client can show one, else out of band.
    #[default]
    Auto,
    /// By a form of the MCP client.
    Form,
    /// Out of band, by a person at a terminal.
    Approve,
    /// By the argument `confirmed` alone.
    Argument,
}

/// Whether looking into a checkpoint is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Previews {
    /// Ask once per checkpoint.
    #[default]
    Ask,
    /// Never ask.
    Free,
}

/// The way into a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    /// `user@host`, or a name from the user's OpenSSH configuration.
    pub ssh: String,
    /// Run the SFTP server under `sudo -n`.
    pub sudo: bool,
    /// An OpenSSH client configuration instead of the user's own.
    pub ssh_config: Option<PathBuf>,
    /// Where the guest has its SFTP server, instead of the `sftp` subsystem (or, with `sudo`, of the usual places).
    pub sftp_server: Option<String>,
}

impl Config {
    /// Which file to load: `explicit`, else the one that [`CONFIG_ENV`] names, else [`default_file`] where something is there.
    ///
    /// # Errors
    ///
    /// Neither is given, and nothing is there.
    pub fn locate(explicit: Option<&Path>) -> Result<PathBuf, ConfigError> {
        choose(explicit, std::env::var_os(CONFIG_ENV), default_file())
    }

    /// The file that is named: `explicit`, else by [`CONFIG_ENV`].
    #[must_use]
    pub fn named(explicit: Option<&Path>) -> Option<PathBuf> {
        choose(explicit, std::env::var_os(CONFIG_ENV), None).ok()
    }

    /// Reads and checks a configuration file, with the file of a secret or the environment where it is there. A command that gives the
    /// secret is not run: that is done when a login is about to be sent.
    ///
    /// # Errors
    ///
    /// The file is missing or cannot be read, is not JSON, has a key, a type or a value that is wrong, or may be used by others although it
    /// has a secret in it. The error names the file, the key and what to write; it never contains a secret.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let Read {
            text,
            mut config,
            open,
        } = Self::read(path)?;
        open?;
        config.credentials = config.credentials.with_file_read()?;
        let known = match config.credentials.secret() {
            Secret::Known(secret) => Some(secret),
            _ => None,
        };
        config.revision = Revision::of(&text, known, config.tls.ca_file.as_deref());
        Ok(config)
    }

    /// The state folder that a configuration file names, for what must not wait until everything else in it is right: secrets are
    /// neither looked at nor protected.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load), but for those of the secrets.
    pub fn state_dir_of(path: &Path) -> Result<PathBuf, ConfigError> {
        let Read { config, open, .. } = Self::read(path)?;
        match open {
            Err(foreign @ ConfigError::Foreign { .. }) => Err(foreign),
            _ => Ok(config.state_dir),
        }
    }

    /// A configuration with whether others may use its file, for a look that goes on all the same. A secret in another file is not
    /// read.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load), but for those of the secrets.
    pub(crate) fn inspect(path: &Path) -> Result<(Self, Result<(), ConfigError>), ConfigError> {
        let Read { config, open, .. } = Self::read(path)?;
        Ok((config, open))
    }

    fn read(path: &Path) -> Result<Read, ConfigError> {
        let file = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let (text, metadata) = read(&file)?;
        let owned = || owned(&file, &metadata);
        let config = match Self::parse_in(&text, &file, |name| std::env::var_os(name)) {
            Ok(config) => config,
            // Who can read the secret does so now: that can't wait until the mistake is corrected.
            Err(mistake) => {
                owned()?;
                return Err(match private(&file, &metadata) {
                    Err(open) if raw::seems_to_hold_a_secret(&text) => open.besides(mistake),
                    _ => mistake,
                });
            }
        };
        let open = owned().and_then(|()| match config.holds_secret {
            true => private(&file, &metadata),
            false => Ok(()),
        });
        let open = open.and_then(|()| unchanged_by_others(&file, &metadata));
        Ok(Read { text, config, open })
    }

    /// Checks the text of a configuration file. `file` is named in errors, and relative paths start at its folder. The environment is not
    /// looked at.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn parse(text: &str, file: &Path) -> Result<Self, ConfigError> {
        Self::parse_in(text, file, |_| None)
    }

    fn parse_in(
        text: &str,
        file: &Path,
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, ConfigError> {
        let raw = raw::parse(text, file)?;
        let mut config =
            check::config(raw, file, environment).map_err(|mistake| mistake.in_file(file))?;
        config.revision = Revision::of(text, None, None);
        Ok(config)
    }

    /// Whether what both were read from was the same: the file, its `ca_file`, and a secret from a file or the environment.
    #[must_use]
    pub fn is_unchanged(&self, since: &Self) -> bool {
        self.revision == since.revision
    }

    /// Where the password or client secret comes from, for people.
    pub(crate) fn secret_origin(&self) -> String {
        let (secret, variable) = match &self.credentials {
            Credentials::Password { password, .. } => (password, PASSWORD_ENV),
            Credentials::Client { client_secret, .. } => (client_secret, CLIENT_SECRET_ENV),
        };
        match secret.origin() {
            Some(origin) => origin,
            None if self.holds_secret => "the configuration itself".to_owned(),
            None => variable.to_owned(),
        }
    }

    /// Host and port of the ZVM, the key under which things are remembered about it.
    #[must_use]
    pub fn zvm(&self) -> String {
        let host = self.zerto_url.host_str().unwrap_or_default();
        let port = self.zerto_url.port_or_known_default().unwrap_or(443);
        format!("{host}:{port}")
    }
}

/// A configuration file as it was read.
struct Read {
    text: Zeroizing<String>,
    /// With a secret in another file not read yet.
    config: Config,
    /// Whether others may use the secret in it.
    open: Result<(), ConfigError>,
}

/// The text of a configuration file, and what the system says of the very file that it came from.
fn read(file: &Path) -> Result<(Zeroizing<String>, fs::Metadata), ConfigError> {
    let unreadable = |source| ConfigError::Unreadable {
        file: file.to_owned(),
        source,
    };
    // Before it is opened: a FIFO would be waited for.
    let metadata = match fs::metadata(file) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(ConfigError::Missing {
                file: file.to_owned(),
            });
        }
        Err(source) => return Err(unreadable(source)),
    };
    if !metadata.is_file() {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
        return Err(unreadable(source));
    }
    let mut open = fs::File::open(file).map_err(unreadable)?;
    let metadata = open.metadata().map_err(unreadable)?;
    if metadata.len() > MAX_BYTES {
        let source = io::Error::new(io::ErrorKind::InvalidData, "larger than 1 MiB");
        return Err(unreadable(source));
    }
    // Text that grows moves, and would leave secrets behind.
    let room = usize::try_from(metadata.len()).unwrap_or(0) + 1;
    let mut text = Zeroizing::new(String::with_capacity(room));
    open.by_ref()
        .take(MAX_BYTES)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    Ok((text, metadata))
}

/// Refuses a file of another user, who may change it, whatever its mode is.
fn owned(file: &Path, metadata: &fs::Metadata) -> Result<(), ConfigError> {
    match host::foreign_owner(metadata) {
        None => Ok(()),
        Some((owner, user)) => Err(ConfigError::Foreign {
            file: file.to_owned(),
            owner,
            user,
        }),
    }
}

/// Refuses a file with a secret in it that other users of this host may use.
#[cfg(unix)]
fn private(file: &Path, metadata: &fs::Metadata) -> Result<(), ConfigError> {
    use std::os::unix::fs::MetadataExt as _;
    let mode = metadata.mode() & 0o7777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    Err(ConfigError::OpenToOthers {
        file: file.to_owned(),
        mode,
        mistake: None,
    })
}

#[cfg(not(unix))]
fn private(_: &Path, _: &fs::Metadata) -> Result<(), ConfigError> {
    // A user's own folders are private there by inheritance.
    Ok(())
}

/// Refuses a file that other users of this host may change: it names the ZVM that the password goes to, and a command that is run.
#[cfg(unix)]
fn unchanged_by_others(file: &Path, metadata: &fs::Metadata) -> Result<(), ConfigError> {
    use std::os::unix::fs::MetadataExt as _;
    let mode = metadata.mode() & 0o7777;
    if mode & 0o022 == 0 {
        return Ok(());
    }
    Err(ConfigError::WritableByOthers {
        file: file.to_owned(),
        mode,
    })
}

#[cfg(not(unix))]
fn unchanged_by_others(_: &Path, _: &fs::Metadata) -> Result<(), ConfigError> {
    Ok(())
}

fn choose(
    explicit: Option<&Path>,
    env: Option<OsString>,
    default: Option<PathBuf>,
) -> Result<PathBuf, ConfigError> {
    explicit
        .map(Path::to_owned)
        .or_else(|| env.filter(|value| !value.is_empty()).map(PathBuf::from))
        .or_else(|| default.clone().filter(|file| is_something(file)))
        .ok_or(ConfigError::NotNamed { default })
}

/// Whatever it is, and whether or not it can be used: passing over it would be another configuration than the one that is meant.
fn is_something(file: &Path) -> bool {
    match fs::symlink_metadata(file) {
        Ok(_) => true,
        Err(error) => !host::is_missing(&error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_wins_over_the_environment() {
        let env = Some(OsString::from("/env.json"));
        let folder = tempfile::tempdir().unwrap();
        let default = Some(folder.path().join("config.json"));
        fs::write(default.as_ref().unwrap(), "").unwrap();
        assert_eq!(
            choose(Some(Path::new("/a.json")), env.clone(), default.clone()).unwrap(),
            Path::new("/a.json")
        );
        assert_eq!(
            choose(None, env, default.clone()).unwrap(),
            Path::new("/env.json")
        );
        for nothing in [None, Some(OsString::new())] {
            assert_eq!(
                choose(None, nothing.clone(), default.clone()).ok(),
                default.clone()
            );
            for default in [None, Some(folder.path().join("none/config.json"))] {
                let error = choose(None, nothing.clone(), default).unwrap_err();
                let next = error.next();
                assert!(
                    next.contains(CONFIG_ENV) && next.contains("zerto-rewind init"),
                    "{next}"
                );
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_default_that_can_not_be_used_is_not_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let default = folder.path().join("config.json");
        std::os::unix::fs::symlink("/nowhere", &default).unwrap();
        assert_eq!(choose(None, None, Some(default.clone())).unwrap(), default);
    }
}
