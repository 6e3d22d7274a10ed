//! The configuration file as it is written, before its values are checked.

use std::{collections::BTreeMap, fmt, path::Path};

use secrecy::{SecretString, zeroize};
use serde::{Deserialize, Deserializer, de};

use super::{Confirmation, FirstUse, Previews, error::ConfigError};
use crate::{duration::WithUnit, hint, text};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
pub(super) struct Raw {
    pub(super) zerto_url: Option<String>,
    pub(super) username: Option<String>,
    pub(super) password: Option<Secret>,
    pub(super) password_file: Option<String>,
    pub(super) password_command: Option<Program>,
    pub(super) password_keyring: Option<String>,
    pub(super) verify_tls: Option<bool>,
    pub(super) client_id: Option<String>,
    pub(super) client_secret: Option<Secret>,
    pub(super) client_secret_file: Option<String>,
    pub(super) client_secret_command: Option<Program>,
    pub(super) client_secret_keyring: Option<String>,
    pub(super) ca_file: Option<String>,
    pub(super) tls_fingerprint: Option<String>,
    pub(super) tls_first_use: Option<FirstUse>,
    pub(super) agent: Option<String>,
    pub(super) catalog: Option<String>,
    pub(super) state_dir: Option<String>,
    pub(super) recover_dir: Option<String>,
    pub(super) guard: Option<RawGuard>,
    pub(super) confirmation: Option<Confirmation>,
    pub(super) previews: Option<Previews>,
    pub(super) guests: Option<BTreeMap<String, RawGuest>>,
}

#[derive(Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with `listed_timeout`, `attempts` or `deadline`"
)]
pub(super) struct RawGuard {
    pub(super) listed_timeout: Option<WithUnit>,
    pub(super) attempts: Option<u32>,
    pub(super) deadline: Option<WithUnit>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `ssh`")]
pub(super) struct RawGuest {
    pub(super) ssh: String,
    #[serde(default)]
    pub(super) sudo: bool,
    pub(super) ssh_config: Option<String>,
    pub(super) sftp_server: Option<String>,
}

/// A string that no error shows, whatever stands in its place.
#[derive(Debug)]
pub(super) struct Secret(pub(super) SecretString);

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Secret;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Secret, E> {
                Ok(Secret(SecretString::from(text)))
            }

            // The default ones quote the value.
            fn visit_bool<E: de::Error>(self, _: bool) -> Result<Secret, E> {
                Err(E::custom(NOT_A_STRING))
            }

            fn visit_i64<E: de::Error>(self, _: i64) -> Result<Secret, E> {
                Err(E::custom(NOT_A_STRING))
            }

            fn visit_u64<E: de::Error>(self, _: u64) -> Result<Secret, E> {
                Err(E::custom(NOT_A_STRING))
            }

            fn visit_f64<E: de::Error>(self, _: f64) -> Result<Secret, E> {
                Err(E::custom(NOT_A_STRING))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

const NOT_A_STRING: &str = "not a string";

/// A program and its arguments. A text in its place may be a secret, and is not shown.
pub(super) struct Program(pub(super) Vec<String>);

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Program")
    }
}

impl<'de> Deserialize<'de> for Program {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Program;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of strings")
            }

            fn visit_str<E: de::Error>(self, _: &str) -> Result<Program, E> {
                Err(E::custom("not an array of strings"))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut items: A) -> Result<Program, A::Error> {
                let mut words = Vec::new();
                while let Some(word) = items.next_element()? {
                    words.push(word);
                }
                Ok(Program(words))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

/// What a value looks like, for keys whose type is easily mistaken.
fn example(key: &str) -> Option<&'static str> {
    Some(match key {
        "zerto_url" => "write the ZVM's address in quotes: \"https://zvm.example.com\"",
        "password_command" | "client_secret_command" => {
            "write the program and its arguments: [\"pass\", \"show\", \"zvm\"]"
        }
        "password_keyring" | "client_secret_keyring" => {
            "write the service that the keyring knows it by: \"zerto-rewind\""
        }
        "password_file" | "client_secret_file" | "username" | "password" | "client_id"
        | "client_secret" | "ca_file" | "tls_fingerprint" | "agent" | "catalog" | "state_dir"
        | "recover_dir" => "write it in double quotes",
        "verify_tls" => "write true or false, without quotes",
        "guard" => "write { \"listed_timeout\": \"60s\", \"attempts\": 3, \"deadline\": \"4m\" }",
        "guard.attempts" => "write a number, without quotes",
        _ if key.starts_with("guests") => {
            "write { \"VM\": { \"ssh\": \"user@host\", \"sudo\": false } }"
        }
        _ => return None,
    })
}

/// Of a text that has a mistake: whether a key in it is called much like those of secrets. Keys that say where one is don't count.
pub(super) fn seems_to_hold_a_secret(text: &str) -> bool {
    let text = zeroize::Zeroizing::new(text.to_lowercase());
    let is_key = |rest: &str| {
        let rest = rest.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let quoted = |c: char| c.is_whitespace() || c == '"' || c == '\'';
        rest.trim_start_matches(quoted).starts_with([':', '='])
    };
    ["pass", "pasw", "pwd", "secret"].iter().any(|word| {
        text.match_indices(word)
            .filter_map(|(at, word)| text.get(at + word.len()..))
            .any(is_key)
    })
}

pub(super) fn parse(text: &str, file: &Path) -> Result<Raw, ConfigError> {
    let invalid = |key: Option<String>, error: &serde_json::Error| {
        let message = error.to_string();
        let message = match message.rsplit_once(" at line ") {
            Some((message, _)) => message,
            None => &message,
        };
        let hint = hint::of_serde(message);
        let unknown_key = hint.problem.starts_with("unknown key");
        let shown = key
            .filter(|_| !error.is_syntax() && !error.is_eof() && !unknown_key)
            .map(|key| text::display(&key, 100));
        let fix = hint
            .fix
            .or_else(|| shown.as_deref().and_then(example).map(str::to_owned));
        ConfigError::Invalid {
            file: file.to_owned(),
            position: Some((error.line(), error.column())),
            key: shown,
            problem: hint.problem,
            fix,
        }
    };
    // Editors on Windows write a byte order mark.
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    if !text.trim_start().starts_with('{') {
        let problem = match text.trim_start().chars().next() {
            None => "the file is empty",
            Some(_) => "a JSON object was expected",
        };
        return Err(ConfigError::Invalid {
            file: file.to_owned(),
            position: None,
            key: None,
            problem: problem.to_owned(),
            fix: Some("write { \"zerto_url\": …, \"username\": …, \"password\": … }".to_owned()),
        });
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let raw: Raw = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let key = Some(error.path().to_string()).filter(|key| key != ".");
        invalid(key, error.inner())
    })?;
    json.end().map_err(|error| invalid(None, &error))?;
    Ok(raw)
}
