//! Configuration files. A secret in one is never in what is said about it.
use std::path::Path;

use rewind_core::config::Config;
use serde_json::Value;

use crate::{driver::Target, text::is_readable};

const TARGET: Target = Target {
    name: "config",
    words: &[
        "\"zerto_url\":",
        "\"https://zvm.example.com\"",
        "\"http://u:pw@zvm\"",
        "\"username\":",
        "\"password\":",
        "\"correct horse\"",
        "\"password_file\":",
        "\"password_command\":",
        "[\"pass\", \"show\"]",
        "\"verify_tls\":",
        "\"ca_file\":",
        "\"tls_fingerprint\":",
        "\"guard\":",
        "{\"attempts\": 3}",
        "\"90s\"",
        "\"guests\":",
        "{\"vm\": {\"ssh\": \"-oProxyCommand=x\"}}",
        "\"state_dir\":",
        "\"~/x\"",
        "null",
        "true",
        ",",
        "{",
        "}",
    ],
    memory: (256 << 10, 64),
};

#[test]
fn a_configuration_is_read_or_said_to_be_wrong_without_its_secret() {
    TARGET.run(|input| {
        let text = String::from_utf8_lossy(input);
        let shown = match Config::parse(&text, Path::new("/etc/rewind/config.json")) {
            Ok(config) => {
                assert_eq!(config.zerto_url.scheme(), "https");
                assert!(
                    config.zerto_url.username().is_empty() && config.zerto_url.password().is_none()
                );
                for guest in config.guests.values() {
                    assert!(
                        !guest.ssh.starts_with('-') && !guest.ssh.contains(char::is_whitespace)
                    );
                }
                format!("{config:?}")
            }
            Err(error) => {
                let shown = error.to_string();
                assert!(
                    is_readable(&shown) && shown.chars().count() < 1_500,
                    "{shown:?}"
                );
                format!("{error} {error:?}")
            }
        };
        for secret in secrets(&text) {
            assert!(!shown.contains(&secret), "{secret:?} is in {shown}");
        }
        shown
            .chars()
            .filter(|c| c.is_alphabetic())
            .take(60)
            .collect::<String>()
    });
}

/// Passwords that stand nowhere else in the text.
fn secrets(text: &str) -> Vec<String> {
    let Ok(Value::Object(keys)) = serde_json::from_str(text) else {
        return Vec::new();
    };
    ["password", "client_secret"]
        .into_iter()
        .filter_map(|key| keys.get(key)?.as_str())
        .filter(|secret| {
            secret.len() >= 8
                && text.matches(secret).count() == 1
                && !"https://zvm.example.com".contains(secret)
        })
        .map(str::to_owned)
        .collect()
}
