#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]
//! What a configuration file may say, and how its mistakes are reported.

use std::{fs, path::Path, time::Duration};

use rewind_core::config::{Config, ConfigError, Confirmation, Credentials, FirstUse, Previews};
use secrecy::ExposeSecret;

const FILE: &str = "/etc/rewind/config.json";

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new(FILE))
}

/// A configuration that is right but for `more`.
fn with(more: &str) -> Result<Config, ConfigError> {
    parse(&format!(
        r#"{{"zerto_url": "zvm", "username": "u", "password": "hunter2", {more}}}"#
    ))
}

#[test]
fn the_four_original_keys_suffice() {
    let config =
        parse(r#"{"zerto_url": "https://zvm.example.com", "username": "admin", "password": "hunter2", "verify_tls": false}"#)
            .unwrap();
    assert_eq!(config.zerto_url.as_str(), "https://zvm.example.com/");
    assert_eq!(config.zvm(), "zvm.example.com:443");
    assert!(matches!(config.credentials, Credentials::Password { .. }));
    assert_eq!(config.credentials.account(), "admin");
    assert_eq!(
        config.credentials.secret().get().unwrap().expose_secret(),
        "hunter2"
    );
    assert!(!config.tls.verify);
    assert_eq!(config.tls.first_use, FirstUse::Accept);
    assert_eq!(config.guard.listed_timeout, Duration::from_secs(60));
    assert_eq!(config.guard.attempts, 3);
    assert_eq!(config.guard.deadline, Duration::from_secs(240));
    assert_eq!(config.confirmation, Confirmation::Auto);
    assert_eq!(config.previews, Previews::Ask);
    assert!(config.catalog.is_none() && config.agent.is_none() && config.guests.is_empty());
    assert!(config.state_dir.is_absolute() && config.state_dir.ends_with("zerto-rewind"));
    assert!(
        config.recover_dir.is_absolute() && config.recover_dir.ends_with("zerto-rewind/recovered")
    );
}

#[test]
fn every_key_is_read() {
    let config = parse(
        r#"{
            "zerto_url": "zvm.example.com:8443/", "client_id": "rewind", "client_secret": "s",
            "verify_tls": true, "ca_file": "certs/ca.pem",
            "tls_fingerprint": "AB:cd:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:0f",
            "tls_first_use": "refuse", "agent": " ops | bot ", "catalog": "catalog.toml", "state_dir": "/var/lib/rewind",
            "recover_dir": "../recovered",
            "guard": {"listed_timeout": "90s", "attempts": 5, "deadline": "10m"},
            "confirmation": "approve", "previews": "free",
            "guests": {"jp-ubuntu": {"ssh": "justin@10.0.0.5"}, "app01": {"ssh": "app01", "sudo": true}}
        }"#,
    )
    .unwrap();
    assert_eq!(config.zvm(), "zvm.example.com:8443");
    assert_eq!(config.credentials.account(), "rewind");
    assert!(config.tls.verify);
    assert_eq!(
        config.tls.ca_file.unwrap(),
        Path::new("/etc/rewind/certs/ca.pem")
    );
    let fingerprint = config.tls.fingerprint.unwrap();
    assert_eq!(
        (fingerprint.0[0], fingerprint.0[1], fingerprint.0[31]),
        (0xab, 0xcd, 0x0f)
    );
    assert_eq!(config.tls.first_use, FirstUse::Refuse);
    assert_eq!(config.agent.unwrap(), "ops / bot");
    assert_eq!(
        config.catalog.unwrap(),
        Path::new("/etc/rewind/catalog.toml")
    );
    assert_eq!(config.state_dir, Path::new("/var/lib/rewind"));
    assert_eq!(config.recover_dir, Path::new("/etc/rewind/../recovered"));
    assert_eq!(config.guard.deadline, Duration::from_secs(600));
    assert_eq!(config.guard.attempts, 5);
    assert_eq!(config.confirmation, Confirmation::Approve);
    assert_eq!(config.previews, Previews::Free);
    assert!(config.guests["app01"].sudo && !config.guests["jp-ubuntu"].sudo);
    assert_eq!(config.guests["jp-ubuntu"].ssh, "justin@10.0.0.5");
}

#[test]
fn addresses_are_read_as_people_write_them() {
    for (written, zvm) in [
        ("zvm", "zvm:443"),
        (" https://ZVM.example.com/ ", "zvm.example.com:443"),
        ("https://10.0.0.1:9443", "10.0.0.1:9443"),
        ("zvm.example.com:443", "zvm.example.com:443"),
        ("[fe80::1]:8443", "[fe80::1]:8443"),
        ("HTTPS://zvm", "zvm:443"),
    ] {
        let config = parse(&format!(
            r#"{{"zerto_url": "{written}", "username": "u", "password": "p"}}"#
        ))
        .unwrap();
        assert_eq!(config.zvm(), zvm, "{written}");
    }
}

#[test]
fn a_mistake_is_reported_with_file_key_and_fix() {
    for (text, expected) in [
        (
            "{\n  \"usernme\": \"admin\"\n}",
            "/etc/rewind/config.json:2:11: unknown key `usernme`: did you mean `username`?",
        ),
        (
            r#"{"guard": {"timeout": "4m"}}"#,
            "/etc/rewind/config.json:1:20: unknown key `timeout`: write one of `listed_timeout`, `attempts`, `deadline`",
        ),
        (
            r#"{"verify_tls": "no"}"#,
            "/etc/rewind/config.json:1:19: `verify_tls`: invalid type: string \"no\", expected a boolean: write true or false, without quotes",
        ),
        (
            r#"{"guests": {"app01": "jp"}}"#,
            "/etc/rewind/config.json:1:25: `guests.app01`: invalid type: string \"jp\", expected an object with `ssh`: write { \"VM\": { \"ssh\": \"user@host\", \"sudo\": false } }",
        ),
        (
            r#"{"guard": "4m"}"#,
            "/etc/rewind/config.json:1:14: `guard`: invalid type: string \"4m\", expected an object with `listed_timeout`, `attempts` or `deadline`: write { \"listed_timeout\": \"60s\", \"attempts\": 3, \"deadline\": \"4m\" }",
        ),
        (
            r#"{"guard": {"deadline": 240}}"#,
            "/etc/rewind/config.json:1:26: `guard.deadline`: a duration needs a unit: write \"240s\" for seconds, \"240m\" for minutes or \"240h\" for hours",
        ),
        (
            r#"{"guard": {"deadline": "4"}}"#,
            "/etc/rewind/config.json:1:26: `guard.deadline`: a duration needs a unit: write \"4s\" for seconds, \"4m\" for minutes or \"4h\" for hours",
        ),
        (
            r#"{"confirmation": "aproved"}"#,
            "/etc/rewind/config.json:1:26: `confirmation`: unknown value `aproved`: did you mean `approve`?",
        ),
        (
            r#"{"guests": {"a": {"sudo": true}}}"#,
            "/etc/rewind/config.json:1:31: `guests.a`: missing field `ssh`: write { \"VM\": { \"ssh\": \"user@host\", \"sudo\": false } }",
        ),
        (
            r#"{"username": "u",}"#,
            "/etc/rewind/config.json:1:18: trailing comma",
        ),
        (
            "",
            "/etc/rewind/config.json: the file is empty: write { \"zerto_url\": …, \"username\": …, \"password\": … }",
        ),
        ("{} x", "/etc/rewind/config.json:1:4: trailing characters"),
        (
            r#"{"username": "u", "username": "v"}"#,
            "/etc/rewind/config.json:1:28: duplicate field `username`",
        ),
        (
            "{}",
            "/etc/rewind/config.json: `zerto_url`: is missing: write the ZVM's address, such as \"https://zvm.example.com\"",
        ),
        (
            r#"{"zerto_url": "http://zvm"}"#,
            "/etc/rewind/config.json: `zerto_url`: http:// would send the password in clear text: write https:// instead, or the host alone",
        ),
        (
            r#"{"zerto_url": "https://zvm/management/api"}"#,
            "/etc/rewind/config.json: `zerto_url`: has something after the host: write host and port alone, such as \"https://zvm.example.com\"",
        ),
        (
            r#"{"zerto_url": "zvm:http"}"#,
            "/etc/rewind/config.json: `zerto_url`: invalid port number: write the ZVM's address, such as \"https://zvm.example.com\"",
        ),
        (
            r#"{"zerto_url": "zvm"}"#,
            "/etc/rewind/config.json: `username`: there is no way to log in: write `username` and `password`, or `client_id` and `client_secret`",
        ),
        (
            r#"{"zerto_url": "zvm", "username": "u"}"#,
            "/etc/rewind/config.json: `password`: is missing, while `username` is there: write `password`, `password_file`, `password_command` or `password_keyring`, or set ZERTO_REWIND_PASSWORD",
        ),
        (
            r#"{"zerto_url": "zvm", "client_secret": "u"}"#,
            "/etc/rewind/config.json: `client_id`: is missing, while `client_secret` is there: write `client_id`, too",
        ),
        (
            r#"{"zerto_url": "zvm", "username": "u", "password": ""}"#,
            "/etc/rewind/config.json: `password`: is empty: write the `password`",
        ),
        (
            r#"{"zerto_url": "zvm", "username": "u", "password": "a\u0000b"}"#,
            "/etc/rewind/config.json: `password`: has a control character in it: write the `password`",
        ),
        (
            r#"{"zerto_url": "zvm", "client_id": "u", "client_secret": "a\nb"}"#,
            "/etc/rewind/config.json: `client_secret`: has several lines: write the `client_secret`",
        ),
        (
            r#"{"zerto_url": "zvm", "username": "a\tb", "password": "p"}"#,
            "/etc/rewind/config.json: `username`: has a control character in it: write the `username` as the realm knows it",
        ),
    ] {
        assert_eq!(parse(text).unwrap_err().to_string(), expected, "{text}");
    }
    for (more, expected) in [
        (
            r#""client_id": "c", "client_secret": "s""#,
            "`client_id`: there are two ways to log in: keep either `username` and `password`, or `client_id` and `client_secret`",
        ),
        (
            r#""password_file": "p""#,
            "`password`: there are several sources of one secret: `password`, `password_file`: keep one of them",
        ),
        (
            r#""password_command": ["pass"]"#,
            "`password`: there are several sources of one secret: `password`, `password_command`: keep one of them",
        ),
        (
            r#""client_secret_file": "s""#,
            "`client_id`: is missing, while `client_secret_file` is there: write `client_id`, too",
        ),
        (
            r#""ca_file": "ca.pem""#,
            "`ca_file`: is not used while `verify_tls` is false: write \"verify_tls\": true, or remove `ca_file`",
        ),
        (
            r#""tls_fingerprint": "12:34""#,
            "`tls_fingerprint`: is no SHA-256 fingerprint: write its 64 hexadecimal digits, with or without colons",
        ),
        (
            r#""agent": "\u200b""#,
            "`agent`: has no readable character: write a name of at most 32 characters",
        ),
        (
            r#""agent": "123456789012345678901234567890123""#,
            "`agent`: has 33 characters: write a name of at most 32 characters",
        ),
        (
            r#""catalog": "~/catalog.toml""#,
            "`catalog`: `~` is not expanded: write the path in full",
        ),
        (
            r#""state_dir": "  ""#,
            "`state_dir`: is empty: write a path, or remove the key",
        ),
        (
            r#""guard": {"attempts": 0}"#,
            "`guard.attempts`: 0 is out of range: write a number from 1 to 10",
        ),
        (
            r#""guard": {"deadline": "30s"}"#,
            "`guard.deadline`: 30s is shorter than `listed_timeout` (60s): make the deadline longer, or the time-out shorter",
        ),
        (
            r#""guests": {"app01": {"ssh": "app01", "sftp_server": "/x/sftp-server; reboot"}}"#,
            "`guests.app01.sftp_server`: is no plain absolute path: write the path of the SFTP server in the guest, such as \"/usr/lib/openssh/sftp-server\"",
        ),
        (
            r#""guests": {"app01": {"ssh": "app01", "ssh_config": "~/x"}}"#,
            "`guests.app01.ssh_config`: `~` is not expanded: write the path in full",
        ),
        (
            r#""guests": {"app01": {"ssh": "-oProxyCommand=x"}}"#,
            "`guests.app01.ssh`: is no SSH destination: write \"user@host\" or \"host\"",
        ),
    ] {
        let expected = format!("{FILE}: {expected}");
        assert_eq!(with(more).unwrap_err().to_string(), expected, "{more}");
    }
}

#[test]
fn no_output_contains_a_secret() {
    let config = with(r#""agent": "x""#).unwrap();
    assert!(!format!("{config:?}").contains("hunter2"));
    for text in [
        r#"{"password": 4711}"#,
        r#"{"password": -4711}"#,
        r#"{"password": 4711.5}"#,
        r#"{"password": ["4711"]}"#,
        r#"{"password": {"4711": 1}}"#,
        r#"{"password_command": "4711"}"#,
        r#"{"client_secret": "4711" "#,
        r#"{"client_secret": "4711}"#,
        r#"{"zerto_url": "https://admin:4711@zvm", "username": "u", "password": "4711"}"#,
        r#"{"zerto_url": "ftp://admin:4711@zvm", "username": "u", "password": "4711"}"#,
        r#"{"zerto_url": "admin:4711@zvm:x", "username": "u", "password": "4711"}"#,
    ] {
        let error = parse(text).unwrap_err();
        assert!(
            !error.to_string().contains("4711") && !format!("{error:?}").contains("4711"),
            "{error}"
        );
    }
}

#[test]
fn files_are_loaded_from_disk() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.json");
    let error = Config::load(&file).unwrap_err();
    assert!(matches!(error, ConfigError::Missing { .. }));
    assert!(error.to_string().starts_with(&file.display().to_string()));

    fs::write(&file, "\u{FEFF}{\"zerto_url\": \"zvm\", \"username\": \"u\", \"password\": \"p\", \"catalog\": \"c.toml\"}").unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let error = Config::load(&file).unwrap_err();
        assert!(
            matches!(error, ConfigError::OpenToOthers { mode: 0o640, .. }),
            "{error}"
        );
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let config = Config::load(&file).unwrap();
    assert_eq!(config.file, file);
    assert_eq!(config.catalog.unwrap(), folder.path().join("c.toml"));

    fs::write(&file, [0x7b, 0xff, 0x7d]).unwrap();
    assert!(matches!(
        Config::load(&file).unwrap_err(),
        ConfigError::Unreadable { .. }
    ));
    assert!(matches!(
        Config::load(folder.path()).unwrap_err(),
        ConfigError::Unreadable { .. }
    ));
}

/// Who can read a secret does so while the mistake is looked for.
#[cfg(unix)]
#[test]
fn an_open_secret_is_told_whatever_else_is_wrong() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.json");
    let load = |text: &str, mode| {
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        Config::load(&file).unwrap_err()
    };
    for text in [
        r#"{"zerto_url": "zvm", "username": "u", "password": "hunter2",}"#,
        r#"{"zerto_url": "http://zvm", "username": "u", "password": "hunter2"}"#,
        r#"{"zerto_url": "zvm", "username": "u", "Pasword" : "hunter2"}"#,
        r#"{"zerto_url": "zvm", "client_id": "u", "client_secret": 7}"#,
        "zerto_url: zvm\npassword: hunter2\n",
    ] {
        let error = load(text, 0o644);
        let ConfigError::OpenToOthers {
            mode: 0o644,
            mistake: Some(mistake),
            ..
        } = &error
        else {
            panic!("{text}: {error:?}");
        };
        assert!(error.to_string().contains(&mistake.to_string()), "{error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
        let next = error.next();
        assert!(
            next.contains("chmod 600") && next.contains("Correct"),
            "{next}"
        );
        assert!(matches!(load(text, 0o600), ConfigError::Invalid { .. }));
    }
    for text in [
        "{",
        r#"{"zerto_url": "zvm", "username": "u", "password_file": "/etc/zvm.password", }"#,
        r#"{"client_secret_command": ["pass", "secret"], "x": 1}"#,
    ] {
        let error = load(text, 0o644);
        assert!(
            matches!(error, ConfigError::Invalid { .. }),
            "{text}: {error}"
        );
    }
}

/// Whatever the modes are: an owner can change them.
#[cfg(unix)]
#[test]
fn files_of_another_user_are_refused() {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    let folder = tempfile::tempdir().unwrap();
    let (file, secret) = (folder.path().join("config.json"), folder.path().join("s"));
    let text = r#"{"zerto_url": "zvm", "username": "u", "password_file": "s"}"#;
    for path in [&file, &secret] {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    Config::load(&file).unwrap();
    for path in [&file, &secret] {
        if chown(path, Some(65_534), None).is_err() {
            // Only root can give files away; `hostile` says so where it can't be tried.
            return;
        }
        let error = Config::load(&file).unwrap_err();
        assert!(
            matches!(&error, ConfigError::Foreign { file, owner: 65_534, .. } if file == path),
            "{error:?}"
        );
        assert!(error.next().contains("chown"), "{}", error.next());
        assert_eq!(Config::state_dir_of(&file).is_err(), path == &file);
        chown(path, Some(0), None).unwrap();
    }
    // A mistake hides that as little.
    fs::write(&file, "{").unwrap();
    chown(&file, Some(65_534), None).unwrap();
    let error = Config::load(&file).unwrap_err();
    assert!(matches!(error, ConfigError::Foreign { .. }), "{error:?}");
}
