//! Checks the values of a configuration file.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
};

use directories::ProjectDirs;
use secrecy::{ExposeSecret, SecretString};
use url::{Host, Url};
use zvm_client::{Fingerprint, NoFingerprint};

use super::{
    Config, Credentials, GuardSettings, Guest, Secret, Tls,
    error::Mistake,
    raw::{self, Raw, RawGuard, RawGuest},
    secret::{self, CLIENT_SECRET_ENV, PASSWORD_ENV, SecretCommand, SecretEntry, SecretFile},
};
use crate::{keyring, tag, text};

/// `environment` has the variables; empty ones count as not set.
pub(super) fn config(
    raw: Raw,
    file: &Path,
    environment: impl Fn(&str) -> Option<OsString>,
) -> Result<Config, Mistake> {
    let environment = |name: &str| environment(name).filter(|value| !value.is_empty());
    let folder = file.parent().unwrap_or(Path::new(""));
    let path = |key: &str, value: Option<String>| {
        value
            .map(|value| self::path(key, &value, folder))
            .transpose()
    };
    Ok(Config {
        file: file.to_owned(),
        zerto_url: url(raw.zerto_url)?,
        holds_secret: raw.password.is_some() || raw.client_secret.is_some(),
        credentials: credentials(
            (
                raw.username,
                Sources {
                    key: "password",
                    inline: raw.password,
                    file: path("password_file", raw.password_file)?,
                    command: raw.password_command,
                    keyring: raw.password_keyring,
                    variable: PASSWORD_ENV,
                    environment: environment(PASSWORD_ENV),
                },
            ),
            (
                raw.client_id,
                Sources {
                    key: "client_secret",
                    inline: raw.client_secret,
                    file: path("client_secret_file", raw.client_secret_file)?,
                    command: raw.client_secret_command,
                    keyring: raw.client_secret_keyring,
                    variable: CLIENT_SECRET_ENV,
                    environment: environment(CLIENT_SECRET_ENV),
                },
            ),
            file,
        )?,
        tls: tls(
            raw.verify_tls,
            path("ca_file", raw.ca_file)?,
            raw.tls_fingerprint,
            raw.tls_first_use.unwrap_or_default(),
        )?,
        agent: raw.agent.map(agent).transpose()?,
        catalog: path("catalog", raw.catalog)?,
        state_dir: match path("state_dir", raw.state_dir)? {
            Some(dir) => dir,
            None => platform_dir("state_dir", state_dir)?,
        },
        recover_dir: match path("recover_dir", raw.recover_dir)? {
            Some(dir) => dir,
            None => platform_dir("recover_dir", |dirs| dirs.data_dir().join("recovered"))?,
        },
        guard: guard(raw.guard)?,
        confirmation: raw.confirmation.unwrap_or_default(),
        previews: raw.previews.unwrap_or_default(),
        guests: guests(raw.guests.unwrap_or_default(), folder)?,
        revision: Default::default(),
    })
}

/// Never quotes the value: people paste addresses with a password in them.
fn url(value: Option<String>) -> Result<Url, Mistake> {
    const KEY: &str = "zerto_url";
    const FIX: &str = "write the ZVM's address, such as \"https://zvm.example.com\"";
    let Some(value) = value else {
        return Err(Mistake::new(KEY, "is missing", FIX));
    };
    let value = value.trim();
    let full = if value.contains("://") {
        value.to_owned()
    } else {
        format!("https://{value}")
    };
    let url = Url::parse(&full).map_err(|error| Mistake::new(KEY, error.to_string(), FIX))?;
    match url.scheme() {
        "https" => {}
        "http" => {
            let fix = "write https:// instead, or the host alone";
            return Err(Mistake::new(
                KEY,
                "http:// would send the password in clear text",
                fix,
            ));
        }
        _ => return Err(Mistake::new(KEY, "is no https address", FIX)),
    }
    if !url.username().is_empty() || url.password().is_some() {
        let fix = "move name and password to `username` and `password`";
        return Err(Mistake::new(KEY, "contains a user name or a password", fix));
    }
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        let fix = "write host and port alone, such as \"https://zvm.example.com\"";
        return Err(Mistake::new(KEY, "has something after the host", fix));
    }
    if matches!(url.host(), None | Some(Host::Domain(""))) {
        return Err(Mistake::new(KEY, "has no host", FIX));
    }
    Ok(url)
}

/// What may give a secret.
struct Sources {
    /// `password` or `client_secret`.
    key: &'static str,
    inline: Option<raw::Secret>,
    file: Option<PathBuf>,
    command: Option<raw::Program>,
    /// The service of its entry there.
    keyring: Option<String>,
    variable: &'static str,
    environment: Option<OsString>,
}

impl Sources {
    /// The names of those that are there.
    fn given(&self) -> Vec<String> {
        let key = self.key;
        let mut given = Vec::new();
        if self.inline.is_some() {
            given.push(key.to_owned());
        }
        if self.file.is_some() {
            given.push(format!("{key}_file"));
        }
        if self.command.is_some() {
            given.push(format!("{key}_command"));
        }
        if self.keyring.is_some() {
            given.push(format!("{key}_keyring"));
        }
        if self.environment.is_some() {
            given.push(self.variable.to_owned());
        }
        given
    }

    /// The one that is there, for this account.
    fn one(self, config: &Path, account: &str) -> Result<Secret, Mistake> {
        let Self { key, variable, .. } = self;
        match self.given().as_slice() {
            [] | [_] => {}
            several => {
                let several = several.join("`, `");
                let problem = format!("there are several sources of one secret: `{several}`");
                return Err(Mistake::new(key, problem, "keep one of them"));
            }
        }
        if let Some(raw::Secret(secret)) = self.inline {
            return known(secret, key);
        }
        if let Some(path) = self.file {
            return Ok(Secret::File(Arc::new(SecretFile {
                config: config.to_owned(),
                key: format!("{key}_file"),
                path,
            })));
        }
        if let Some(raw::Program(words)) = self.command {
            let key = format!("{key}_command");
            let Some((name, arguments)) = words.split_first().filter(|(name, _)| !name.is_empty())
            else {
                let fix = "write the program and its arguments: [\"pass\", \"show\", \"zvm\"]";
                return Err(Mistake::new(key, "names no program", fix));
            };
            return Ok(Secret::Command(Arc::new(SecretCommand {
                program: secret::program(name, config.parent().unwrap_or(Path::new(""))),
                arguments: arguments.to_vec(),
                config: config.to_owned(),
                key,
            })));
        }
        if let Some(service) = self.keyring {
            return from_keyring(format!("{key}_keyring"), service, account, config);
        }
        let text = self.environment.unwrap_or_default().into_string();
        let text = text.map_err(|_| Mistake::new(variable, "is not UTF-8", "set it anew"))?;
        known(text.into(), variable)
    }
}

fn from_keyring(
    key: String,
    service: String,
    account: &str,
    config: &Path,
) -> Result<Secret, Mistake> {
    if service.trim().is_empty() {
        let fix = "write the service that the keyring knows the secret by";
        return Err(Mistake::new(key, "is empty", fix));
    }
    if !keyring::BUILT_IN {
        let fix = "build it with the feature `keyring`, or let the keyring's own program give the secret, in a `_command`: \
                   [\"secret-tool\", \"lookup\", \"service\", …]";
        return Err(Mistake::new(
            key,
            "the keyring is not part of this build",
            fix,
        ));
    }
    Ok(Secret::Keyring(Arc::new(SecretEntry {
        config: config.to_owned(),
        key,
        service,
        account: account.to_owned(),
    })))
}

fn known(secret: SecretString, key: &str) -> Result<Secret, Mistake> {
    match secret::check(secret.expose_secret()) {
        Ok(()) => Ok(Secret::Known(secret)),
        Err(problem) => Err(Mistake::new(key, problem, format!("write the `{key}`"))),
    }
}

fn credentials(
    (username, password): (Option<String>, Sources),
    (client_id, client_secret): (Option<String>, Sources),
    config: &Path,
) -> Result<Credentials, Mistake> {
    let login = pair("username", username, password, config)?;
    let client = pair("client_id", client_id, client_secret, config)?;
    match (login, client) {
        (Some((username, password)), None) => Ok(Credentials::Password { username, password }),
        (None, Some((client_id, client_secret))) => Ok(Credentials::Client {
            client_id,
            client_secret,
        }),
        (None, None) => Err(Mistake::new(
            "username",
            "there is no way to log in",
            "write `username` and `password`, or `client_id` and `client_secret`",
        )),
        (Some(_), Some(_)) => Err(Mistake::new(
            "client_id",
            "there are two ways to log in",
            "keep either `username` and `password`, or `client_id` and `client_secret`",
        )),
    }
}

fn pair(
    name_key: &str,
    name: Option<String>,
    mut sources: Sources,
    config: &Path,
) -> Result<Option<(String, Secret)>, Mistake> {
    if name.is_none() {
        // The environment is there for other configurations, too.
        sources.environment = None;
    }
    let given = sources.given();
    let name = match (name, given.first()) {
        (None, None) => return Ok(None),
        (Some(_), None) => {
            let Sources { key, variable, .. } = sources;
            return Err(Mistake::new(
                key,
                format!("is missing, while `{name_key}` is there"),
                format!(
                    "write `{key}`, `{key}_file`, `{key}_command` or `{key}_keyring`, or set {variable}"
                ),
            ));
        }
        (None, Some(source)) => {
            return Err(Mistake::new(
                name_key,
                format!("is missing, while `{source}` is there"),
                format!("write `{name_key}`, too"),
            ));
        }
        (Some(name), Some(_)) => name,
    };
    if name.trim().is_empty() {
        return Err(Mistake::new(
            name_key,
            "is empty",
            format!("write the `{name_key}`"),
        ));
    }
    if name.contains(char::is_control) {
        return Err(Mistake::new(
            name_key,
            "has a control character in it",
            format!("write the `{name_key}` as the realm knows it"),
        ));
    }
    let secret = sources.one(config, &name)?;
    Ok(Some((name, secret)))
}

fn tls(
    verify: Option<bool>,
    ca_file: Option<PathBuf>,
    fingerprint: Option<String>,
    first_use: super::FirstUse,
) -> Result<Tls, Mistake> {
    let verify = verify.unwrap_or(false);
    if ca_file.is_some() && !verify {
        return Err(Mistake::new(
            "ca_file",
            "is not used while `verify_tls` is false",
            "write \"verify_tls\": true, or remove `ca_file`",
        ));
    }
    Ok(Tls {
        verify,
        ca_file,
        fingerprint: fingerprint
            .map(|value| self::fingerprint(&value))
            .transpose()?,
        first_use,
    })
}

fn fingerprint(value: &str) -> Result<Fingerprint, Mistake> {
    value.parse().map_err(|error: NoFingerprint| {
        Mistake::new(
            "tls_fingerprint",
            error.to_string(),
            "write its 64 hexadecimal digits, with or without colons",
        )
    })
}

fn agent(value: String) -> Result<String, Mistake> {
    let clean = text::tag_field(&value);
    let length = clean.chars().count();
    let fix = format!("write a name of at most {} characters", tag::AGENT_MAX_LEN);
    if length == 0 {
        return Err(Mistake::new("agent", "has no readable character", fix));
    }
    if length > tag::AGENT_MAX_LEN {
        return Err(Mistake::new(
            "agent",
            format!("has {length} characters"),
            fix,
        ));
    }
    Ok(clean)
}

fn path(key: &str, value: &str, folder: &Path) -> Result<PathBuf, Mistake> {
    if value.trim().is_empty() {
        return Err(Mistake::new(
            key,
            "is empty",
            "write a path, or remove the key",
        ));
    }
    if value.starts_with('~') {
        return Err(Mistake::new(
            key,
            "`~` is not expanded",
            "write the path in full",
        ));
    }
    if value.contains('\0') {
        return Err(Mistake::new(
            key,
            "contains a NUL character",
            "write a path",
        ));
    }
    Ok(folder.join(value))
}

/// The state folder where a configuration names none: the platform's. None where this user has no home folder.
#[must_use]
pub fn default_state_dir() -> Option<PathBuf> {
    platform_dir("state_dir", state_dir).ok()
}

/// The configuration file where none is named: in the user's own folder of configurations. None where this user has no home folder.
#[must_use]
pub fn default_file() -> Option<PathBuf> {
    platform_dir("", |dirs| dirs.config_dir().join("config.json")).ok()
}

fn state_dir(dirs: &ProjectDirs) -> PathBuf {
    dirs.state_dir().unwrap_or(dirs.data_local_dir()).to_owned()
}

fn platform_dir(key: &str, choose: impl Fn(&ProjectDirs) -> PathBuf) -> Result<PathBuf, Mistake> {
    let dirs = ProjectDirs::from("", "", "zerto-rewind").ok_or_else(|| {
        Mistake::new(
            key,
            "this user has no home folder to put it in",
            format!("write `{key}`"),
        )
    })?;
    Ok(choose(&dirs))
}

fn guard(raw: Option<RawGuard>) -> Result<GuardSettings, Mistake> {
    let Some(raw) = raw else {
        return Ok(GuardSettings::default());
    };
    let default = GuardSettings::default();
    let settings = GuardSettings {
        listed_timeout: raw
            .listed_timeout
            .map_or(default.listed_timeout, |timeout| timeout.0),
        attempts: raw.attempts.unwrap_or(default.attempts),
        deadline: raw.deadline.map_or(default.deadline, |deadline| deadline.0),
    };
    if !(1..=10).contains(&settings.attempts) {
        let problem = format!("{} is out of range", settings.attempts);
        return Err(Mistake::new(
            "guard.attempts",
            problem,
            "write a number from 1 to 10",
        ));
    }
    if settings.deadline < settings.listed_timeout {
        return Err(Mistake::new(
            "guard.deadline",
            format!(
                "{:?} is shorter than `listed_timeout` ({:?})",
                settings.deadline, settings.listed_timeout
            ),
            "make the deadline longer, or the time-out shorter",
        ));
    }
    Ok(settings)
}

fn guests(
    raw: BTreeMap<String, RawGuest>,
    folder: &Path,
) -> Result<BTreeMap<String, Guest>, Mistake> {
    raw.into_iter()
        .map(|(vm, raw)| {
            let key = format!("guests.{}", text::display(&vm, 80));
            if vm.trim().is_empty() {
                return Err(Mistake::new(
                    key,
                    "a VM's name is empty",
                    "write the VM's name",
                ));
            }
            Ok((vm, guest(&key, raw, folder)?))
        })
        .collect()
}

fn guest(key: &str, raw: RawGuest, folder: &Path) -> Result<Guest, Mistake> {
    let RawGuest {
        ssh,
        sudo,
        ssh_config,
        sftp_server,
    } = raw;
    // A leading dash would be an option of the ssh client.
    if ssh.is_empty()
        || ssh.starts_with('-')
        || ssh.contains(|c: char| c.is_whitespace() || c.is_control())
    {
        return Err(Mistake::new(
            format!("{key}.ssh"),
            "is no SSH destination",
            "write \"user@host\" or \"host\"",
        ));
    }
    // It stands in a remote command line.
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._+-".contains(c);
    if let Some(server) = &sftp_server
        && (!server.starts_with('/') || !server.chars().all(plain))
    {
        return Err(Mistake::new(
            format!("{key}.sftp_server"),
            "is no plain absolute path",
            "write the path of the SFTP server in the guest, such as \"/usr/lib/openssh/sftp-server\"",
        ));
    }
    Ok(Guest {
        ssh,
        sudo,
        ssh_config: ssh_config
            .map(|file| path(&format!("{key}.ssh_config"), &file, folder))
            .transpose()?,
        sftp_server,
    })
}
