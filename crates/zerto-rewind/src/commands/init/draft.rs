//! The configuration that is being made.
use std::path::{Path, PathBuf};

use rewind_core::{
    Error,
    config::{CLIENT_SECRET_ENV, Config, ConfigError, PASSWORD_ENV},
    text,
};
use secrecy::{ExposeSecret as _, SecretString, zeroize::Zeroizing};
use serde::{Serialize, Serializer, ser::SerializeMap as _};

use super::{InitArgs, usage};

/// The catalog's name, beside the configuration.
pub const CATALOG: &str = "catalog.toml";
/// The password's, where it has a file of its own.
pub const SECRET: &str = "zvm.secret";
/// Large enough for a text that is not moved while it grows: that would leave secrets behind.
const ROOM: usize = 128 * 1024;

/// Where the programs get the secret from.
pub enum Source {
    /// From the configuration itself.
    Config,
    /// From a file.
    File(PathBuf),
    /// From a program, with its arguments.
    Command(Vec<String>),
    /// From the environment.
    Environment,
    /// From the system's keyring, by this service.
    #[cfg(feature = "keyring")]
    Keyring(String),
}

impl Source {
    /// One word, for scripts.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::File(_) => "file",
            Self::Command(_) => "command",
            Self::Environment => "environment",
            #[cfg(feature = "keyring")]
            Self::Keyring(_) => "keyring",
        }
    }

    pub fn described(&self, draft: &Draft) -> String {
        match self {
            Self::Config => "in it; only you can read it".to_owned(),
            Self::File(file) => draft.folder().join(file).display().to_string(),
            Self::Command(words) => words.join(" "),
            Self::Environment => draft.variable().to_owned(),
            #[cfg(feature = "keyring")]
            Self::Keyring(service) => format!("the system's keyring, by the service {service}"),
        }
    }
}

/// What the arguments say of the secret.
pub struct Given {
    /// None: it is typed, or comes on stdin.
    pub source: Option<Source>,
    pub stdin: bool,
    missing: Vec<&'static str>,
}

impl Given {
    pub fn of(args: &InitArgs) -> Result<Self, Error> {
        let secret = &args.secret;
        let source = if let Some(file) = &secret.password_file {
            Some(Source::File(absolute(file)))
        } else if let Some(line) = &secret.password_command {
            Some(Source::Command(words(line)?))
        } else if secret.password_env {
            Some(Source::Environment)
        } else {
            Self::keyring(args)
        };
        check_environment(args, source.as_ref())?;
        let missing = [
            ("--url", args.url.is_none()),
            (
                "--username (or --client-id)",
                args.username.is_none() && args.client_id.is_none(),
            ),
            (
                "--password-file, --password-command, --password-env or --password-stdin",
                source.is_none() && !secret.password_stdin,
            ),
        ];
        Ok(Self {
            source,
            stdin: secret.password_stdin,
            missing: missing
                .into_iter()
                .filter_map(|(option, missing)| missing.then_some(option))
                .collect(),
        })
    }

    #[cfg(feature = "keyring")]
    fn keyring(args: &InitArgs) -> Option<Source> {
        args.secret.password_keyring.clone().map(Source::Keyring)
    }

    #[cfg(not(feature = "keyring"))]
    fn keyring(_: &InitArgs) -> Option<Source> {
        None
    }

    /// Where nobody can be asked, everything has to be there.
    pub fn check_complete(&self) -> Result<(), Error> {
        if self.missing.is_empty() {
            return Ok(());
        }
        let missing = self.missing.join("; ");
        Err(usage(format!("there is no terminal to ask on, and these are missing: {missing}"))
            .with_next("Give them, or run it at a terminal. A password is never an argument: others would see it."))
    }
}

/// The environment is a source, too: where another one is written, every program would refuse the two of them.
fn check_environment(args: &InitArgs, source: Option<&Source>) -> Result<(), Error> {
    let variable = match args.client_id {
        Some(_) => CLIENT_SECRET_ENV,
        None => PASSWORD_ENV,
    };
    let set = std::env::var_os(variable).is_some_and(|value| !value.is_empty());
    match (source, set) {
        (Some(Source::Environment), false) if !args.no_test => Err(usage(format!(
            "--password-env: {variable} is not set"
        ))
        .with_next("Set it, or give --no-test to write a configuration that is not tried.")),
        (Some(Source::Environment), _) | (_, false) => Ok(()),
        (_, true) => Err(usage(format!(
            "{variable} is set, and would be a second source of the same secret, which every program refuses"
        ))
        .with_next(format!(
            "Unset it (`unset {variable}`); or give --password-env, so that the secret comes from it now and later."
        ))),
    }
}

/// A mistake that is told of a file which is not written yet, as one of the arguments and answers that it is made of.
pub fn in_arguments(error: ConfigError) -> Error {
    match error {
        ConfigError::Invalid {
            key, problem, fix, ..
        } => {
            let option = key.map(|key| match &*key {
                "zerto_url" => "--url: ".to_owned(),
                key => {
                    let key = key.replacen("client_secret", "password", 1);
                    format!("--{}: ", key.replace('_', "-"))
                }
            });
            let fix = fix.unwrap_or_else(|| "correct it".to_owned());
            usage(format!("{}{problem}", option.unwrap_or_default()))
                .with_next(text::sentence(&capitalised(&fix)))
        }
        other => other.into(),
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase());
    first.into_iter().flatten().chain(letters).collect()
}

/// The words of a command line, as a shell would take it apart. A program with a path is one of the current folder.
fn words(line: &str) -> Result<Vec<String>, Error> {
    let mut words = shlex::split(line).unwrap_or_default();
    let Some(program) = words.first_mut() else {
        return Err(
            usage(format!("--password-command: {line:?} is no command line"))
                .with_next("Give a program and its arguments, such as \"pass show zvm\"."),
        );
    };
    if Path::new(program.as_str()).components().count() > 1
        && let Ok(path) = absolute(Path::new(program.as_str()))
            .into_os_string()
            .into_string()
    {
        *program = path;
    }
    Ok(words)
}

/// A path of the current folder stays that, wherever the configuration is.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Everything but the secret.
#[derive(Clone)]
pub struct Draft {
    pub file: PathBuf,
    pub url: String,
    /// The user's name, or the client's id.
    pub account: String,
    client: bool,
    verify_tls: bool,
    ca_file: Option<String>,
    tls_fingerprint: Option<String>,
    agent: Option<String>,
}

impl Draft {
    /// With what the arguments say, which is checked as far as it goes.
    pub fn new(file: PathBuf, args: &InitArgs) -> Result<Self, Error> {
        let text = |path: &PathBuf| {
            let path = absolute(path).into_os_string().into_string();
            path.map_err(|_| {
                usage("--ca-file: a configuration can't hold this path: it is not UTF-8")
            })
        };
        let draft = Self {
            file,
            url: args.url.clone().unwrap_or_default(),
            account: args
                .client_id
                .clone()
                .or_else(|| args.username.clone())
                .unwrap_or_default(),
            client: args.client_id.is_some(),
            verify_tls: args.verify_tls || args.ca_file.is_some(),
            ca_file: args.ca_file.as_ref().map(text).transpose()?,
            tls_fingerprint: args.tls_fingerprint.clone(),
            agent: args.agent.clone(),
        };
        let url = args.url.as_deref().unwrap_or("zvm");
        draft
            .check_url(url)
            .map_err(|mistake| usage(mistake).with_next("Correct the argument."))?;
        Ok(draft)
    }

    pub fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("."))
    }

    /// Of the environment, for the secret.
    pub fn variable(&self) -> &'static str {
        if self.client {
            CLIENT_SECRET_ENV
        } else {
            PASSWORD_ENV
        }
    }

    /// What the secret is called.
    pub fn secret_name(&self) -> &'static str {
        if self.client {
            "Client secret"
        } else {
            "Password"
        }
    }

    /// What the account is called.
    pub fn account_name(&self) -> &'static str {
        if self.client { "Client id" } else { "User" }
    }

    /// What is known of the ZVM before anybody logs in.
    pub fn without_login(&self) -> Result<Config, ConfigError> {
        let mut draft = self.clone();
        if draft.account.is_empty() {
            draft.account = "unknown".to_owned();
        }
        draft.parse(&"unknown".into())
    }

    /// The configuration, with this secret in it.
    pub fn config(&self, secret: &SecretString) -> Result<Config, Error> {
        self.parse(secret).map_err(in_arguments)
    }

    /// Whether everything can be as it is, with this address; else why not, without the file that is not there yet.
    pub fn check_url(&self, url: &str) -> Result<(), String> {
        let mut draft = self.clone();
        draft.url = url.to_owned();
        draft.check()
    }

    /// As [`check_url`](Self::check_url), with this account.
    pub fn check_account(&self, account: &str) -> Result<(), String> {
        let mut draft = self.clone();
        draft.account = account.to_owned();
        draft.check()
    }

    fn check(&self) -> Result<(), String> {
        match self.without_login() {
            Ok(_) => Ok(()),
            Err(ConfigError::Invalid {
                key, problem, fix, ..
            }) => {
                let parts = [key.map(|key| format!("`{key}`")), Some(problem), fix];
                Err(parts.into_iter().flatten().collect::<Vec<_>>().join(": "))
            }
            Err(other) => Err(other.to_string()),
        }
    }

    fn parse(&self, secret: &SecretString) -> Result<Config, ConfigError> {
        Config::parse(&self.text(&Source::Config, Some(secret)), &self.file)
    }

    /// What is written. The secret is in it where the source is the configuration.
    pub fn text(&self, source: &Source, secret: Option<&SecretString>) -> Zeroizing<String> {
        let mut json = Zeroizing::new(Vec::with_capacity(ROOM));
        let whole = Whole {
            draft: self,
            source,
            secret,
        };
        // Plain data with string keys always serialises.
        let _ = serde_json::to_writer_pretty(&mut *json, &whole);
        json.push(b'\n');
        Zeroizing::new(String::from_utf8(std::mem::take(&mut *json)).unwrap_or_default())
    }
}

struct Whole<'a> {
    draft: &'a Draft,
    source: &'a Source,
    secret: Option<&'a SecretString>,
}

/// The order is that of the documentation.
impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let draft = self.draft;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("zerto_url", draft.url.trim())?;
        let (account, key) = match draft.client {
            true => ("client_id", "client_secret"),
            false => ("username", "password"),
        };
        map.serialize_entry(account, &draft.account)?;
        match (self.source, self.secret) {
            (Source::Config, secret) => {
                let secret = secret.map_or("", |secret| secret.expose_secret());
                map.serialize_entry(key, secret)?;
            }
            (Source::File(file), _) => map.serialize_entry(&format!("{key}_file"), file)?,
            (Source::Command(words), _) => map.serialize_entry(&format!("{key}_command"), words)?,
            (Source::Environment, _) => {}
            #[cfg(feature = "keyring")]
            (Source::Keyring(service), _) => {
                map.serialize_entry(&format!("{key}_keyring"), service)?;
            }
        }
        map.serialize_entry("verify_tls", &draft.verify_tls)?;
        for (key, value) in [
            ("ca_file", draft.ca_file.as_deref()),
            ("tls_fingerprint", draft.tls_fingerprint.as_deref()),
            ("agent", draft.agent.as_deref()),
            ("catalog", Some(CATALOG)),
        ] {
            if let Some(value) = value {
                map.serialize_entry(key, value)?;
            }
        }
        map.end()
    }
}
