//! No secret comes out: of no command, whatever fails, with everything logged.
use crate::support::{Run, World, stdio::Server};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Stdio};
use tokio::{io::AsyncWriteExt as _, process::Command};
use zvm_sim::{Fault, Outcome};

const CATALOG: &str = "version = 1\n\n[[guard]]\nserver = \"vmware\"\ntool = \"vm_*\"\nvm = { arg = \"/name\" }\naction = \"x\"\n";
const EVENT: &str = r#"{"hook_event_name":"PreToolUse","session_id":"0194c6a2","tool_name":"mcp__vmware__vm_off","tool_input":{"name":"jp-ubuntu"},"tool_use_id":"t"}"#;
/// Every token of the realm begins with it.
const TOKEN: &str = "eyJ";

/// Every command that goes by the configuration, and what it reads on stdin.
const COMMANDS: &[(&[&str], &str)] = &[
    (&["find", "jp-ubuntu"], ""),
    (&["find", "jp-ubuntu", "--json"], ""),
    (&["guard", "jp-ubuntu", "--action", "edit"], ""),
    (&["guard", "nothing", "--action", "edit", "--json"], ""),
    (&["checkpoints", "jp-ubuntu"], ""),
    (&["recover", "jp-ubuntu", "/etc/hosts", "--at", "1"], ""),
    (
        &["recover", "jp-ubuntu", "/etc/hosts", "--at", "1", "--yes"],
        "",
    ),
    (&["approvals"], ""),
    (&["approve", "p-00000000"], ""),
    (&["deny", "p-00000000"], ""),
    (&["approver", "set"], ""),
    (&["trust"], ""),
    (&["doctor"], ""),
    (&["doctor", "--json"], ""),
    (&["init"], ""),
    (&["catalog", "list"], ""),
    (
        &["catalog", "test", "vmware/vm_off", "{\"name\":\"x\"}"],
        "",
    ),
    (&["catalog", "accept"], ""),
    (
        &["run", "--vm", "jp-ubuntu", "--action", "x", "--", "env"],
        "",
    ),
    (&["proxy", "--name", "x", "--", "cat"], ""),
    (&["hook", "--format", "claude"], EVENT),
    (&["install", "claude", "--dry-run"], ""),
    (&["stop"], ""),
    (&["find", "jp-ubuntu"], ""),
    (&["resume"], ""),
];

fn logged(command: &mut Command) -> &mut Command {
    command
        .env("RUST_LOG", "trace")
        .env("RUST_BACKTRACE", "full")
}

async fn fed(command: &mut Command, input: &str) -> Run {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // Not every command reads it.
    let _ = stdin.write_all(input.as_bytes()).await;
    drop(stdin);
    Run::of(child.wait_with_output().await.unwrap())
}

fn assert_clean(text: &str, secrets: &[&str], of: &str) {
    for secret in secrets {
        assert!(!text.contains(secret), "{secret} comes out of {of}: {text}");
    }
}

/// What the programs have written: everything but the configuration and the secret's own file.
fn written(folder: &Path, into: &mut Vec<u8>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            written(&path, into);
        } else if name != "config.json" && name != "zvm.password" {
            into.extend(fs::read(&path).unwrap());
        }
    }
}

/// Runs all of them, and a tool of the server. Was anything asked?
async fn run_all(world: &World, secrets: &[&str], of: &str) {
    let secrets = [secrets, &[TOKEN]].concat();
    for (arguments, input) in COMMANDS {
        let run = fed(logged(&mut world.command(arguments)), input).await;
        assert_clean(
            &format!("{}{}", run.stdout, run.stderr),
            &secrets,
            &format!("{arguments:?} ({of})"),
        );
    }
    let mut server = Server::of(logged(&mut world.command(&["mcp"])));
    server.initialize("2025-11-25").await;
    for (tool, arguments) in [
        ("zerto_find_protection", json!({ "vm": "jp-ubuntu" })),
        (
            "zerto_create_tagged_checkpoint",
            json!({ "vm": "jp-ubuntu", "action": "x" }),
        ),
        (
            "zerto_recover_file",
            json!({ "vm": "jp-ubuntu", "path": "/etc/hosts", "checkpoint": "1", "confirmed": true }),
        ),
    ] {
        let answer = server.call(tool, arguments).await;
        assert_clean(&answer.to_string(), &secrets, &format!("{tool} ({of})"));
    }
    server.close_stdin();
    let (_, log) = server.end().await;
    assert_clean(&log, &secrets, &format!("the server's log ({of})"));
    let mut files = Vec::new();
    written(world.folder.path(), &mut files);
    assert_clean(
        &String::from_utf8_lossy(&files),
        &secrets,
        &format!("the files ({of})"),
    );
}

async fn world() -> (World, String) {
    let world = World::new().await;
    fs::write(world.path("catalog.toml"), CATALOG).unwrap();
    let password = world.sim.credentials().password.clone();
    (world, password)
}

fn configured(world: &World, keys: Value) {
    let mut all = json!({ "catalog": "catalog.toml" });
    all.as_object_mut()
        .unwrap()
        .extend(keys.as_object().unwrap().clone());
    world.configure(all);
}

#[tokio::test]
async fn no_command_lets_a_secret_out_when_all_goes_well() {
    let (world, password) = world().await;
    configured(&world, json!({}));
    run_all(&world, &[&password], "all is well").await;
    let logged = world.sim.requests();
    assert!(
        logged
            .iter()
            .any(|request| request.is("POST", "/checkpoints")),
        "nothing was tried"
    );
}

#[tokio::test]
async fn no_command_lets_a_secret_out_when_the_login_is_refused() {
    let (world, _) = world().await;
    // The answer repeats what was sent.
    let echo = r#"{"error":"invalid_grant","error_description":"hunter2-hunter2 is wrong"}"#;
    world.sim.add_fault(Fault {
        times: 0,
        status: 401,
        text: echo.to_owned(),
        outcome: Outcome::Text,
        ..Fault::on("POST", "/auth/**")
    });
    let file = world.path("zvm.password");
    fs::write(&file, "hunter2-hunter2\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    configured(
        &world,
        json!({ "password": null, "password_file": "zvm.password" }),
    );
    run_all(&world, &["hunter2"], "a refused login").await;
    assert!(
        world
            .sim
            .requests()
            .iter()
            .any(|request| request.is("POST", "/token")),
        "nothing was tried"
    );
}

#[tokio::test]
async fn no_command_lets_a_secret_out_when_the_zvm_fails() {
    let (world, password) = world().await;
    configured(&world, json!({}));
    world.sim.add_fault(Fault {
        times: 0,
        ..Fault::answer("", "/v1/**", 403, Outcome::Html)
    });
    run_all(&world, &[&password], "403").await;
    configured(&world, json!({ "zerto_url": "https://127.0.0.1:1" }));
    run_all(&world, &[&password], "nobody there").await;
    configured(&world, json!({ "ca_file": null }));
    run_all(&world, &[&password], "a certificate of nobody").await;
}

#[tokio::test]
async fn no_command_lets_a_secret_out_of_a_configuration_that_is_wrong() {
    let (world, _) = world().await;
    for text in [
        r#"{"zerto_url": "https://zvm", "username": "u", "password": "hunter2", }"#,
        r#"{"zerto_url": "https://u:hunter2@zvm", "username": "u", "password": "hunter2"}"#,
        r#"{"zerto_url": "https://zvm", "username": "u", "password": ["hunter2"]}"#,
        r#"{"zerto_url": "https://zvm", "username": "u", "password_command": "echo hunter2"}"#,
        r#"{"zerto_url": "https://zvm", "username": "u", "password": "hunter2", "client_secret": "hunter2"}"#,
        "hunter2",
    ] {
        world.write_config(text);
        run_all(&world, &["hunter2"], text).await;
    }
    // Nor one that others can read.
    configured(&world, json!({ "password": "hunter2" }));
    fs::set_permissions(world.config(), fs::Permissions::from_mode(0o644)).unwrap();
    run_all(&world, &["hunter2"], "an open file").await;
    assert!(world.sim.requests().is_empty());
}
