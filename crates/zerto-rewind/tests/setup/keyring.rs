//! A secret in the system's keyring: GNOME's, on a message bus of its own.
use crate::support::{Run, World, program, terminal::Terminal};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, process::Stdio};
use tokio::{io::AsyncWriteExt as _, process::Command};

const UNLOCKED: &str = "printf keyring | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1; exec \"$@\"";

/// None, and a word about it, where the programs are missing that make a keyring.
async fn world() -> Option<World> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there =
        |name: &str| std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    if !["dbus-run-session", "gnome-keyring-daemon"]
        .into_iter()
        .all(is_there)
    {
        assert!(
            std::env::var_os("ZERTO_REWIND_REQUIRE_ALL").is_none(),
            "dbus-run-session or gnome-keyring-daemon is missing"
        );
        eprintln!("SKIPPED: there is no dbus-run-session, or no gnome-keyring-daemon");
        return None;
    }
    let world = World::new().await;
    fs::create_dir(world.path("run")).unwrap();
    fs::set_permissions(world.path("run"), fs::Permissions::from_mode(0o700)).unwrap();
    Some(world)
}

/// A command with a keyring that is unlocked, whose entries last from one to the next.
fn with_keyring(world: &World, arguments: &[&str]) -> Command {
    let mut command = program("dbus-run-session", &world.config());
    command
        .args([
            "--",
            "sh",
            "-c",
            UNLOCKED,
            "sh",
            env!("CARGO_BIN_EXE_zerto-rewind"),
        ])
        .args(arguments)
        .env_remove("DBUS_SESSION_BUS_ADDRESS")
        .env("XDG_DATA_HOME", world.path("data"))
        .env("XDG_RUNTIME_DIR", world.path("run"));
    command
}

async fn fed(command: &mut Command, input: &str) -> Run {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).await.unwrap();
    drop(stdin);
    Run::of(child.wait_with_output().await.unwrap())
}

fn written(file: &PathBuf) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

#[tokio::test]
async fn init_keeps_a_secret_there_and_every_command_gets_it() {
    let Some(world) = world().await else { return };
    let (url, ca) = (world.sim.url(), world.sim.ca_file().to_str().unwrap());
    let password = &world.sim.credentials().password;
    let given = [
        "init",
        "--force",
        "--url",
        url,
        "--username",
        "admin",
        "--ca-file",
        ca,
    ];
    let kept = [
        &given[..],
        &["--password-stdin", "--store", "keyring", "--json"],
    ]
    .concat();
    let run = fed(&mut with_keyring(&world, &kept), password).await;
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    let service = format!("zerto-rewind/{}", url.strip_prefix("https://").unwrap());
    let config = written(&world.config());
    assert_eq!(config["password_keyring"], service);
    assert!(!config.to_string().contains(password));
    let found = world
        .finish(&mut with_keyring(&world, &["find", "jp-ubuntu"]))
        .await;
    assert_eq!(found.code, 0, "{}", found.stderr);
    let doctor = world.finish(&mut with_keyring(&world, &["doctor"])).await;
    assert!(
        doctor
            .stdout
            .contains(&format!("comes from `password_keyring` ({service})")),
        "{}",
        doctor.stdout
    );
    // One that is there already.
    let again = [&given[..], &["--password-keyring", &service]].concat();
    let run = world.finish(&mut with_keyring(&world, &again)).await;
    assert_eq!(run.code, 0, "{}", run.stderr);

    // What it says where there is none.
    world.sim.clear_requests();
    let mut config = written(&world.config());
    config["password_keyring"] = json!("another");
    world.write_config(&config.to_string());
    let run = world
        .finish(&mut with_keyring(&world, &["find", "jp-ubuntu", "--json"]))
        .await;
    let error = &run.json()["error"];
    assert_eq!(
        (run.code, &error["code"]),
        (2, &json!("configuration")),
        "{error}"
    );
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("no such entry")
            && message.contains("\"another\"")
            && message.contains("\"admin\""),
        "{error}"
    );
    // Without a message bus.
    let mut alone = world.command(&["find", "jp-ubuntu", "--json"]);
    alone
        .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
        .env("XDG_RUNTIME_DIR", world.path("run"));
    let run = world.finish(&mut alone).await;
    assert_eq!(
        run.json()["error"]["code"],
        "configuration",
        "{}",
        run.stdout
    );
    assert!(world.sim.requests().is_empty(), "something was sent");
}

#[tokio::test]
async fn a_person_is_offered_the_keyring_where_there_is_one() {
    let Some(world) = world().await else { return };
    let (url, ca) = (world.sim.url(), world.sim.ca_file().to_str().unwrap());
    let password = world.sim.credentials().password.clone();
    let given = [
        "init",
        "--force",
        "--url",
        url,
        "--username",
        "admin",
        "--ca-file",
        ca,
        "--json",
    ];
    for (answer, key) in [("y", "password_keyring"), ("", "password")] {
        let (mut terminal, child) = Terminal::start(&mut with_keyring(&world, &given), false);
        terminal.shows("Password (not shown):").await;
        terminal.types(&password);
        terminal
            .shows("system's keyring, instead of the configuration? [y/N]")
            .await;
        terminal.types(answer);
        let run = Run::of(child.wait_with_output().await.unwrap());
        assert_eq!(run.code, 0, "{}", terminal.end());
        assert!(written(&world.config())[key].is_string());
    }
    // Nobody is offered what is not there.
    let mut command = world.command(&given);
    command.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent");
    let (mut terminal, child) = Terminal::start(&mut command, false);
    terminal.shows("Password (not shown):").await;
    terminal.types(&password);
    let run = Run::of(child.wait_with_output().await.unwrap());
    let screen = terminal.end();
    assert_eq!(run.code, 0, "{screen}");
    assert!(!screen.contains("keyring"), "{screen}");
}
