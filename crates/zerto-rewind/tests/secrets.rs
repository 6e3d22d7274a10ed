//! A password from elsewhere than the configuration: a file, a command, the environment.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

#[path = "secrets/leaks.rs"]
mod leaks;
mod support;

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use support::{Run, World, program, stdio::Server};

const FIND: [&str; 3] = ["find", "jp-ubuntu", "--json"];
const TOOL: &str = "zerto_find_protection";

/// Without a password, and with these keys.
async fn without_password(keys: Value) -> World {
    let world = World::new().await;
    configure(&world, keys);
    world
}

fn configure(world: &World, keys: Value) {
    let mut all = json!({ "password": null });
    for (key, value) in keys.as_object().unwrap() {
        all[key] = value.clone();
    }
    world.configure(all);
}

fn password(world: &World) -> String {
    world.sim.credentials().password.clone()
}

fn write(file: &Path, text: &str, mode: u32) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
}

/// A program that prints what the file `secret` has in it, and counts its runs in `runs`.
fn vault(world: &World) -> (PathBuf, PathBuf) {
    let (vault, runs) = (world.path("vault"), world.path("runs"));
    write(
        &world.path("secret"),
        &format!("{}\n", password(world)),
        0o600,
    );
    let folder = world.folder.path().display();
    write(
        &vault,
        &format!(
            "#!/bin/sh\necho run >> '{folder}/runs'\n[ \"$1\" = show ] && cat '{folder}/secret'\n"
        ),
        0o700,
    );
    (vault, runs)
}

fn count(runs: &Path) -> usize {
    fs::read_to_string(runs).unwrap_or_default().lines().count()
}

fn failed(run: &Run, world: &World) -> Value {
    assert_eq!(run.code, 2, "{}{}", run.stdout, run.stderr);
    assert!(!run.stdout.contains(&password(world)) && !run.stderr.contains(&password(world)));
    let error = run.json()["error"].clone();
    assert_eq!(error["code"], "configuration", "{error}");
    assert!(world.sim.requests().is_empty(), "something was sent");
    error
}

#[tokio::test]
async fn a_password_is_read_from_a_file_that_is_private() {
    let world = without_password(json!({ "password_file": "zvm.password" })).await;
    // There is no secret in it now.
    fs::set_permissions(world.config(), fs::Permissions::from_mode(0o644)).unwrap();
    let file = world.path("zvm.password");
    let error = failed(&world.run(&FIND).await, &world);
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("`password_file`"),
        "{error}"
    );
    let secret = password(&world);
    for (text, mode, problem) in [
        (format!("{secret}\n"), 0o640, "chmod 600"),
        (String::new(), 0o600, "is empty"),
        (format!("{secret}\nmore\n"), 0o600, "several lines"),
    ] {
        write(&file, &text, mode);
        let error = failed(&world.run(&FIND).await, &world);
        assert!(error.to_string().contains(problem), "{error}");
        assert!(error.to_string().contains("zvm.password"), "{error}");
    }
    // What is wrong with it does not hold up an emergency.
    assert_eq!(world.run(&["stop"]).await.code, 0);
    assert_eq!(world.run(&["resume"]).await.code, 0);
    for text in [
        secret.clone(),
        format!("{secret}\n"),
        format!("{secret}\r\n"),
    ] {
        write(&file, &text, 0o600);
        let run = world.run(&FIND).await;
        assert_eq!((run.code, &*run.stderr), (0, ""), "{}", run.stdout);
    }
}

#[tokio::test]
async fn a_running_server_uses_what_the_file_has_now() {
    let mut world = without_password(json!({ "password_file": "zvm.password" })).await;
    let file = world.path("zvm.password");
    write(&file, &password(&world), 0o600);
    let mut server = Server::initialized(&world.config(), "2025-11-25").await;
    let vm = json!({ "vm": "jp-ubuntu" });
    assert_eq!(server.call(TOOL, vm.clone()).await["isError"], false);
    let mut credentials = world.sim.credentials().clone();
    credentials.password = "another one".into();
    world.sim.set_credentials(credentials);
    world.sim.revoke_tokens();
    write(&file, "another one\n", 0o600);
    assert_eq!(server.call(TOOL, vm.clone()).await["isError"], false);
    write(&file, "another one\n", 0o644);
    let answer = server.call(TOOL, vm).await;
    assert_eq!(
        answer["structuredContent"]["error"]["code"], "configuration",
        "{answer}"
    );
}

#[tokio::test]
async fn a_command_gives_the_password_when_a_login_is_sent_and_not_before() {
    let mut world = World::new().await;
    let (vault, runs) = vault(&world);
    // A relative path starts at the configuration.
    assert!(vault.ends_with("vault"));
    configure(&world, json!({ "password_command": ["./vault", "show"] }));
    assert_eq!(world.run(&["stop"]).await.code, 0);
    assert_eq!(world.run(&["resume"]).await.code, 0);
    let mut server = Server::initialized(&world.config(), "2025-11-25").await;
    assert_eq!(count(&runs), 0);
    let vm = json!({ "vm": "jp-ubuntu" });
    for _ in 0..3 {
        assert_eq!(server.call(TOOL, vm.clone()).await["isError"], false);
    }
    assert_eq!(count(&runs), 1);
    // The next login has the secret as it is then.
    let mut credentials = world.sim.credentials().clone();
    credentials.password = "another one".into();
    world.sim.set_credentials(credentials);
    world.sim.revoke_tokens();
    write(&world.path("secret"), "another one\n", 0o600);
    assert_eq!(server.call(TOOL, vm).await["isError"], false);
    assert_eq!(count(&runs), 2);
    let run = world.run(&FIND).await;
    assert_eq!((run.code, &*run.stderr), (0, ""), "{}", run.stdout);
    assert_eq!(count(&runs), 3);
}

#[tokio::test]
async fn a_command_that_fails_is_told_without_what_it_printed() {
    let world = World::new().await;
    let secret = password(&world);
    for (script, said) in [
        (
            format!("echo {secret}; echo 'the vault is sealed' >&2; exit 4"),
            "the vault is sealed",
        ),
        (
            format!("echo {secret}; echo {secret} >&2; exit 4"),
            "exit status: 4",
        ),
        (format!("echo {secret}; echo more"), "several lines"),
        ("true".to_owned(), "is empty"),
    ] {
        configure(&world, json!({ "password_command": ["sh", "-c", script] }));
        let error = failed(&world.run(&FIND).await, &world);
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains(said) && message.contains("`password_command`"),
            "{error}"
        );
    }
    configure(&world, json!({ "password_command": ["no-such-vault"] }));
    let error = failed(&world.run(&FIND).await, &world);
    assert!(
        error["message"].as_str().unwrap().contains("no-such-vault"),
        "{error}"
    );
    // No shell.
    configure(&world, json!({ "password_command": ["echo $HOME"] }));
    failed(&world.run(&FIND).await, &world);
    configure(&world, json!({ "password_command": secret }));
    failed(&world.run(&FIND).await, &world);
}

#[tokio::test]
async fn the_environment_gives_a_password_or_a_client_secret() {
    let world = without_password(json!({})).await;
    let secret = password(&world);
    let run = |variable: &'static str, value: String| {
        let mut command = program(env!("CARGO_BIN_EXE_zerto-rewind"), &world.config());
        command.args(FIND).env(variable, value);
        command
    };
    let missing = failed(&world.run(&FIND).await, &world);
    assert!(
        missing["message"]
            .as_str()
            .unwrap()
            .contains("ZERTO_REWIND_PASSWORD"),
        "{missing}"
    );
    failed(
        &world
            .finish(&mut run("ZERTO_REWIND_PASSWORD", String::new()))
            .await,
        &world,
    );
    let found = world
        .finish(&mut run("ZERTO_REWIND_PASSWORD", secret.clone()))
        .await;
    assert_eq!((found.code, &*found.stderr), (0, ""), "{}", found.stdout);

    // Another source besides.
    world.configure(json!({}));
    let both = world
        .finish(&mut run("ZERTO_REWIND_PASSWORD", secret))
        .await;
    assert_eq!(both.code, 2, "{}", both.stdout);
    let error = both.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(
        error.contains("`password`, `ZERTO_REWIND_PASSWORD`"),
        "{error}"
    );

    let credentials = world.sim.credentials();
    let client = json!({ "username": null, "client_id": credentials.client_id });
    configure(&world, client);
    let mut by_client = run(
        "ZERTO_REWIND_CLIENT_SECRET",
        credentials.client_secret.clone(),
    );
    // The other one belongs to other configurations.
    by_client.env("ZERTO_REWIND_PASSWORD", "unused");
    let found = world.finish(&mut by_client).await;
    assert_eq!((found.code, &*found.stderr), (0, ""), "{}", found.stdout);
}

#[tokio::test]
async fn a_server_behind_the_proxy_does_not_get_the_secrets() {
    let world = without_password(json!({ "catalog": "catalog.toml" })).await;
    fs::write(world.path("catalog.toml"), "version = 1\n").unwrap();
    let script = format!("env > '{}'", world.path("environment").display());
    let mut proxy = world.command(&["proxy", "--name", "x", "--", "sh", "-c", &script]);
    proxy
        .env("ZERTO_REWIND_PASSWORD", password(&world))
        .env("ZERTO_REWIND_CLIENT_SECRET", "unused");
    let run = world.finish(&mut proxy).await;
    let seen =
        fs::read_to_string(world.path("environment")).unwrap_or_else(|_| panic!("{}", run.stderr));
    assert!(seen.contains("ZERTO_REWIND_CONFIG"), "{seen}");
    assert!(
        !seen.contains("ZERTO_REWIND_PASSWORD") && !seen.contains("CLIENT_SECRET"),
        "{seen}"
    );
}

#[tokio::test]
async fn no_program_that_is_started_gets_the_secrets() {
    let world = World::new().await;
    let file = world.path("environment");
    let script = format!(
        "env > '{}'; cat '{}'",
        file.display(),
        world.path("secret").display()
    );
    write(&world.path("secret"), &password(&world), 0o600);
    let shell = ["sh", "-c", &script];
    let run = ["run", "--vm", "jp-ubuntu", "--action", "x", "--"];
    // The other one's, as its own would be a second source.
    for (keys, arguments) in [
        (json!({}), [&run[..], &shell].concat()),
        (json!({}), [&["catalog", "scan", "--"][..], &shell].concat()),
        (json!({ "password_command": shell }), FIND.to_vec()),
    ] {
        match keys.get("password_command") {
            Some(_) => configure(&world, keys),
            None => world.configure(keys),
        }
        let mut command = world.command(&arguments);
        command.env("ZERTO_REWIND_CLIENT_SECRET", "unused");
        let run = world.finish(&mut command).await;
        let seen = fs::read_to_string(&file).unwrap_or_else(|_| panic!("{}", run.stderr));
        assert!(seen.contains("ZERTO_REWIND_CONFIG"), "{seen}");
        assert!(!seen.contains("CLIENT_SECRET"), "{arguments:?}: {seen}");
        fs::remove_file(&file).unwrap();
    }
    // From where the configuration itself takes it.
    configure(&world, json!({}));
    let mut command = world.command(&[&run[..], &["printenv", "ZERTO_REWIND_PASSWORD"]].concat());
    command.env("ZERTO_REWIND_PASSWORD", password(&world));
    let run = world.finish(&mut command).await;
    assert_eq!((run.code, &*run.stdout), (1, ""), "{}", run.stderr);
    assert!(run.stderr.contains("pinned VPG"), "{}", run.stderr);
}

/// Wherever the program is started that needs the secret.
#[tokio::test]
async fn a_command_runs_in_the_folder_of_the_configuration() {
    let world = without_password(json!({ "password_command": ["cat", "q.pw"] })).await;
    write(&world.path("q.pw"), &password(&world), 0o600);
    let elsewhere = tempfile::tempdir().unwrap();
    let mut find = world.command(&FIND);
    let run = world.finish(find.current_dir(&elsewhere)).await;
    assert_eq!((run.code, &*run.stderr), (0, ""), "{}", run.stdout);
    // `init` tries it as the others will.
    let (file, url, ca) = (
        elsewhere.path().join("c.json"),
        world.sim.url(),
        world.sim.ca_file(),
    );
    let init = |command: &str| {
        let mut init = world.command(&["--config", file.to_str().unwrap(), "init"]);
        init.args([
            "--url",
            url,
            "--username",
            "admin",
            "--ca-file",
            ca.to_str().unwrap(),
        ])
        .args(["--password-command", command])
        .current_dir(world.folder.path());
        init
    };
    let run = world.finish(&mut init("cat q.pw")).await;
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains("--password-command"), "{}", run.stderr);
    let absolute = format!("cat '{}'", world.path("q.pw").display());
    let run = world.finish(&mut init(&absolute)).await;
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[cfg(not(feature = "keyring"))]
#[tokio::test]
async fn a_build_without_the_keyring_says_so() {
    let world = without_password(json!({ "password_keyring": "zerto-rewind" })).await;
    let error = failed(&world.run(&FIND).await, &world);
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("`password_keyring`") && message.contains("secret-tool"),
        "{error}"
    );
    configure(
        &world,
        json!({ "password_keyring": "a", "password_file": "b" }),
    );
    let error = failed(&world.run(&FIND).await, &world);
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("`password_file`, `password_keyring`"),
        "{error}"
    );
    for arguments in [["--store", "keyring"], ["--password-keyring", "x"]] {
        let run = world.run(&[&["init"], &arguments[..]].concat()).await;
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(
            run.stderr.contains("`--features keyring`") && run.stderr.contains("secret-tool"),
            "{}",
            run.stderr
        );
    }
}
