//! What `doctor` says of each thing that can be wrong, and that it changes nothing.
use crate::support::{Run, World, interrupt, terminal::Terminal, without_room};
use rewind_core::doctor::id;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
};
use tokio::process::Command;
use zvm_sim::{Fault, Outcome, Scenario};

const CATALOG: &str = "version = 1\n\n[[guard]]\nserver = \"vmware\"\ntool = \"vm_*\"\nvm = { arg = \"/name\" }\naction = \"x\"\n";

pub fn doctor(world: &World, arguments: &[&str]) -> Command {
    let mut command = world.command(&[&["doctor"], arguments].concat());
    for variable in [
        "CODEX_HOME",
        "CLAUDE_CONFIG_DIR",
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
    ] {
        command.env_remove(variable);
    }
    command.current_dir(world.folder.path());
    command
}

/// The exit code, and each check by its id.
pub async fn diagnose(world: &World) -> (i32, Value) {
    let run = world.finish(&mut doctor(world, &["--json"])).await;
    assert_eq!(run.stderr, "");
    let mut checks = json!({});
    for check in run.json()["checks"].as_array().unwrap() {
        let id = check["id"].as_str().unwrap();
        assert!(checks.get(id).is_none(), "{id} twice");
        let fixable = ["warning", "failed"].contains(&check["status"].as_str().unwrap());
        assert!(!fixable || check["fix"].is_string(), "no fix: {check}");
        assert_eq!(
            check["status"] == "failed",
            check["code"].is_string(),
            "{check}"
        );
        assert!(!check["message"].as_str().unwrap().is_empty());
        checks[id] = check.clone();
    }
    (run.code, checks)
}

pub fn status<'a>(checks: &'a Value, id: &str) -> &'a str {
    checks[id]["status"]
        .as_str()
        .unwrap_or_else(|| panic!("no {id}: {checks:#}"))
}

/// This check failed so, and what depends on it was not looked at.
pub fn failed(checks: &Value, id: &str, code: &str, said: &str, skipped: &[&str]) {
    let check = &checks[id];
    assert_eq!(
        (&check["status"], &check["code"]),
        (&json!("failed"), &json!(code)),
        "{checks:#}"
    );
    let text = format!("{} {}", check["message"], check["fix"]);
    assert!(text.contains(said), "{said:?} is not in {text}");
    for later in skipped {
        assert_eq!(status(checks, later), "skipped", "{checks:#}");
        let message = checks[*later]["message"].as_str().unwrap();
        assert!(message.contains(&format!("`{id}`")), "{message}");
    }
}

pub fn warned(checks: &Value, id: &str, said: &str) {
    assert_eq!(status(checks, id), "warning", "{checks:#}");
    assert!(
        checks[id].to_string().contains(said),
        "{said:?} is not in {}",
        checks[id]
    );
}

fn logins(world: &World) -> usize {
    let requests = world.sim.requests();
    requests
        .iter()
        .filter(|request| request.is("POST", "/token"))
        .count()
}

fn assert_only_asked(world: &World) {
    for request in world.sim.requests() {
        let harmless = request.method == "GET" || request.is("POST", "/token");
        assert!(harmless, "{request:?}");
    }
}

/// Two VPGs, both in order, and an account that may do everything.
pub async fn healthy() -> World {
    let mut scenario = Scenario::fast();
    scenario
        .vpgs
        .retain(|vpg| ["jp-ubuntu", "app01-dr"].contains(&&*vpg.name));
    scenario.switches.roles = Some(vec!["offline_access".into(), "admin".into()]);
    let world = World::with(scenario).await;
    fs::write(world.path("catalog.toml"), CATALOG).unwrap();
    world.configure(json!({ "catalog": "catalog.toml" }));
    world
}

fn unverified(world: &World, keys: Value) {
    let mut all = json!({ "verify_tls": false, "ca_file": null });
    all.as_object_mut()
        .unwrap()
        .extend(keys.as_object().unwrap().clone());
    world.configure(all);
}

const AFTER_LOGIN: [&str; 6] = [
    id::SITE,
    id::CLOCK,
    id::VPGS,
    id::PROTECTED_SITE,
    id::RIGHT_TO_LIST,
    id::RIGHT_TO_MOUNT,
];

#[tokio::test]
async fn all_is_well_and_nothing_was_changed() {
    let world = healthy().await;
    let run = world.finish(&mut doctor(&world, &["--json"])).await;
    let report = run.json();
    assert_eq!(
        (run.code, &report["status"]),
        (0, &json!("ok")),
        "{report:#}"
    );
    let checks = report["checks"].as_array().unwrap();
    let ids: Vec<_> = checks
        .iter()
        .map(|check| check["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, [&id::ALL[..], &["clients"]].concat());
    for check in checks {
        assert_eq!(check["status"], "ok", "{check}");
    }
    assert_eq!(report["configuration"], world.config().to_str().unwrap());
    let names: Vec<_> = report["vpgs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|vpg| &vpg["vpg"])
        .collect();
    assert_eq!(names, ["app01-dr", "jp-ubuntu"]);
    assert!(
        report["checks"][15]["message"]
            .as_str()
            .unwrap()
            .contains("ZVM 10."),
        "{report:#}"
    );

    assert_only_asked(&world);
    assert_eq!(logins(&world), 1);
    assert!(
        !world.path("recovered").exists(),
        "the first recovery makes it"
    );
    let shown = world.finish(&mut doctor(&world, &[])).await;
    assert!(
        shown.stdout.contains("All is well: 26 ok."),
        "{}",
        shown.stdout
    );
    assert!(!shown.stdout.contains('\u{1b}'));
    // A line each.
    for id in &ids {
        let lines = shown
            .stdout
            .lines()
            .filter(|line| line.split_whitespace().nth(1) == Some(id));
        assert_eq!(lines.count(), 1, "{id}: {}", shown.stdout);
    }
}

#[tokio::test]
async fn a_first_certificate_is_shown_and_not_remembered() {
    let mut world = healthy().await;
    unverified(&world, json!({}));
    for _ in 0..2 {
        let (code, checks) = diagnose(&world).await;
        assert_eq!(code, 0);
        warned(&checks, id::CERTIFICATE, "zerto-rewind trust");
        assert_eq!(status(&checks, id::LOGIN), "ok");
        let state = Connection::open(world.path("state").join("state.db")).unwrap();
        let known = state.query_row("SELECT count(*) FROM certificate", [], |row| {
            row.get::<_, i64>(0)
        });
        assert_eq!(known.unwrap(), 0);
    }
    assert_eq!(world.run(&["find", "jp-ubuntu"]).await.code, 0);
    let (_, checks) = diagnose(&world).await;
    assert_eq!(status(&checks, id::CERTIFICATE), "ok", "{checks:#}");

    let first = world.sim.fingerprint().to_uppercase();
    let second = world.sim.renew_certificate().unwrap().to_uppercase();
    world.sim.clear_requests();
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 5);
    failed(
        &checks,
        id::CERTIFICATE,
        "certificate_changed",
        "zerto-rewind trust",
        &[id::LOGIN],
    );
    let message = checks[id::CERTIFICATE]["message"]
        .as_str()
        .unwrap()
        .replace(':', "");
    assert!(
        message.contains(&first) && message.contains(&second),
        "{message}"
    );
    for later in AFTER_LOGIN {
        assert_eq!(status(&checks, later), "skipped", "{later}");
    }
    unverified(&world, json!({ "tls_fingerprint": first }));
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 5);
    failed(
        &checks,
        id::CERTIFICATE,
        "certificate_changed",
        "tls_fingerprint",
        &[id::LOGIN],
    );
    unverified(
        &world,
        json!({ "tls_first_use": "refuse", "state_dir": "another" }),
    );
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 5);
    failed(
        &checks,
        id::CERTIFICATE,
        "certificate_refused",
        "zerto-rewind trust",
        &[id::LOGIN],
    );
    world.configure(json!({ "ca_file": null }));
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 5);
    failed(
        &checks,
        id::TLS,
        "certificate_refused",
        "ca_file",
        &[id::CERTIFICATE, id::LOGIN],
    );
    assert!(world.sim.requests().is_empty(), "something was sent");

    unverified(&world, json!({ "tls_fingerprint": second }));
    let (code, checks) = diagnose(&world).await;
    assert_eq!((code, status(&checks, id::CERTIFICATE)), (0, "ok"));
}

#[tokio::test]
async fn without_a_configuration_the_rest_is_skipped() {
    let world = World::new().await;
    for (text, said) in [
        (None, "init"),
        (Some("{"), "EOF"),
        (
            Some("{\"zerto_url\": \"https://zvm\", \"pasword\": \"hunter2\"}"),
            "did you mean",
        ),
        (
            Some("{\"zerto_url\": \"http://zvm\", \"username\": \"u\", \"password\": \"p\"}"),
            "clear text",
        ),
    ] {
        match text {
            None => fs::remove_file(world.config()).unwrap(),
            Some(text) => world.write_config(text),
        }
        let (code, checks) = diagnose(&world).await;
        assert_eq!(code, 2);
        failed(
            &checks,
            id::CONFIGURATION,
            "configuration",
            said,
            &[id::NAME, id::LOGIN, id::SESSIONS],
        );
        assert!(!checks.to_string().contains("hunter2"));
        // What can be told all the same; a stop where the configuration says can't.
        assert_eq!(
            (status(&checks, id::STOP), status(&checks, "clients")),
            ("skipped", "ok")
        );
        let stop = checks[id::STOP]["message"].as_str().unwrap();
        assert!(stop.contains("not known"), "{stop}");
    }
    // The user's own holds, whatever the configuration says.
    let mut of_user = world.command(&["stop", "--reason", "3 a.m."]);
    let run = world
        .finish(of_user.env_remove("ZERTO_REWIND_CONFIG"))
        .await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    let (_, checks) = diagnose(&world).await;
    warned(&checks, id::STOP, "3 a.m.");
    let mut of_user = world.command(&["resume"]);
    let run = world
        .finish(of_user.env_remove("ZERTO_REWIND_CONFIG"))
        .await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    let mut unnamed = doctor(&world, &["--json"]);
    let run = world
        .finish(unnamed.env_remove("ZERTO_REWIND_CONFIG"))
        .await;
    assert_eq!(run.code, 2);
    assert!(
        run.stdout.contains("--config FILE") && run.stdout.contains("zerto-rewind init"),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("none is in force"), "{}", run.stdout);
    assert!(world.sim.requests().is_empty());
}

#[tokio::test]
async fn files_that_others_may_use_are_told() {
    let world = healthy().await;
    let mode =
        |file: &Path, mode| fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    mode(&world.config(), 0o644);
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 2);
    failed(
        &checks,
        id::CONFIG_FILE,
        "configuration",
        "chmod 600",
        &[id::SECRET],
    );
    // A mistake beside it hides nothing.
    let whole = fs::read_to_string(world.config()).unwrap();
    for broken in [
        whole.replace('}', ",}"),
        whole.replace("\"verify_tls\"", "\"verify\""),
    ] {
        world.write_config(&broken);
        let (code, checks) = diagnose(&world).await;
        assert_eq!(code, 2);
        failed(
            &checks,
            id::CONFIGURATION,
            "configuration",
            "Correct",
            &[id::NAME],
        );
        failed(&checks, id::CONFIG_FILE, "configuration", "chmod 600", &[]);
        let run = world.run(&["find", "jp-ubuntu"]).await;
        assert!(
            run.code == 2 && run.stderr.contains("chmod 600") && run.stderr.contains("Correct"),
            "{}",
            run.stderr
        );
    }
    world.write_config(&whole);
    let (_, checks) = diagnose(&world).await;
    // The way to the ZVM is looked at all the same; nothing is sent.
    assert_eq!(status(&checks, id::CERTIFICATE), "ok");
    assert_eq!(status(&checks, id::LOGIN), "skipped");
    assert!(world.sim.requests().is_empty());

    let secret = world.path("zvm.password");
    fs::write(&secret, format!("{}\n", world.sim.credentials().password)).unwrap();
    mode(&secret, 0o640);
    let with_file =
        json!({ "password": null, "password_file": "zvm.password", "catalog": "catalog.toml" });
    world.configure(with_file.clone());
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 2);
    failed(
        &checks,
        id::SECRET,
        "configuration",
        "chmod 600",
        &[id::LOGIN],
    );
    mode(&secret, 0o600);

    // No secret is in it, but what it says is followed.
    mode(&world.config(), 0o644);
    let (code, checks) = diagnose(&world).await;
    assert_eq!(
        (code, status(&checks, id::CONFIG_FILE)),
        (0, "ok"),
        "{checks:#}"
    );
    mode(&world.config(), 0o666);
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 2);
    failed(&checks, id::CONFIG_FILE, "configuration", "chmod go-w", &[]);
    mode(&world.config(), 0o600);
    mode(&world.path("catalog.toml"), 0o620);
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 0);
    warned(&checks, id::CATALOG, "chmod 600");
    mode(&world.path("catalog.toml"), 0o600);
    mode(world.folder.path(), 0o777);
    let (_, checks) = diagnose(&world).await;
    warned(&checks, id::CONFIG_FILE, "chmod go-w");
    mode(world.folder.path(), 0o700);

    for (name, problem) in [
        ("missing.pem", "missing.pem"),
        ("catalog.toml", "no certificate in it"),
    ] {
        world.configure(json!({ "ca_file": name }));
        let (code, checks) = diagnose(&world).await;
        assert_eq!(code, 2);
        failed(&checks, id::CA_FILE, "configuration", problem, &[]);
    }
}

#[tokio::test]
async fn a_secret_that_cannot_be_had_sends_nothing() {
    let world = World::new().await;
    for (keys, said) in [
        (json!({ "password_file": "missing" }), "missing"),
        (
            json!({ "password_command": ["sh", "-c", "echo hunter2; echo sealed >&2; exit 3"] }),
            "sealed",
        ),
        (
            json!({ "password_command": ["no-such-vault"] }),
            "no-such-vault",
        ),
    ] {
        let mut keys = keys;
        keys["password"] = Value::Null;
        world.configure(keys);
        let (code, checks) = diagnose(&world).await;
        assert_eq!(code, 2);
        failed(&checks, id::SECRET, "configuration", said, &[id::LOGIN]);
        assert!(!checks.to_string().contains("hunter2"));
    }
    assert!(world.sim.requests().is_empty());
    // It is got once.
    let script = format!("echo x >> runs; echo {}", world.sim.credentials().password);
    world.configure(json!({ "password": null, "password_command": ["sh", "-c", script] }));
    let (code, checks) = diagnose(&world).await;
    assert_eq!((code, status(&checks, id::LOGIN)), (0, "ok"));
    assert_eq!(fs::read_to_string(world.path("runs")).unwrap(), "x\n");
}

#[tokio::test]
async fn the_catalog_is_read() {
    let world = healthy().await;
    fs::write(world.path("catalog.toml"), "version = 1\n").unwrap();
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 0);
    warned(&checks, id::CATALOG, "catalog scan");
    fs::write(
        world.path("catalog.toml"),
        format!("{CATALOG}\n{}", CATALOG.replace("version = 1\n", "")),
    )
    .unwrap();
    let (_, checks) = diagnose(&world).await;
    warned(&checks, id::CATALOG, "can never apply");
    fs::write(world.path("catalog.toml"), "version = 1\n[[gard]]\n").unwrap();
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 2);
    failed(&checks, id::CATALOG, "catalog_unusable", "gard", &[]);
    assert_eq!(status(&checks, id::LOGIN), "ok");
    world.configure(json!({}));
    let (_, checks) = diagnose(&world).await;
    assert_eq!(status(&checks, id::CATALOG), "ok");
}

#[tokio::test]
async fn folders_are_tried() {
    let world = healthy().await;
    let mode = |name: &str, mode| {
        fs::set_permissions(world.path(name), fs::Permissions::from_mode(mode)).unwrap()
    };
    assert_eq!(diagnose(&world).await.0, 0);
    mode("state", 0o750);
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 1);
    failed(
        &checks,
        id::STATE_FOLDER,
        "state",
        "chmod 700",
        &[id::LOCKS, id::CERTIFICATE, id::LOGIN, id::SESSIONS],
    );
    let fix = checks[id::STATE_FOLDER]["fix"].as_str().unwrap();
    assert!(fix.starts_with("Run `chmod 700 "), "{fix}");
    mode("state", 0o700);
    symlink(world.path("state"), world.path("link")).unwrap();
    world.configure(json!({ "state_dir": "link" }));
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 1);
    failed(&checks, id::STATE_FOLDER, "state", "symlink", &[]);
    let fix = checks[id::STATE_FOLDER]["fix"].as_str().unwrap();
    assert!(fix.contains("the link leads to"), "{fix}");
    assert_eq!(
        fs::read_dir(world.path("state"))
            .unwrap()
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().contains("doctor"))
            .count(),
        0
    );

    fs::write(world.path("file"), "").unwrap();
    for folder in ["file", "file/below"] {
        world.configure(json!({ "recover_dir": folder }));
        let (code, checks) = diagnose(&world).await;
        assert_eq!(code, 1);
        failed(
            &checks,
            id::RECOVER_FOLDER,
            "destination_unusable",
            "recover_dir",
            &[],
        );
    }
    world.configure(json!({ "recover_dir": "back" }));
    fs::create_dir(world.path("back")).unwrap();
    mode("back", 0o777);
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 1);
    failed(
        &checks,
        id::RECOVER_FOLDER,
        "destination_unusable",
        "chmod o-w",
        &[],
    );
    // A recovery says the same.
    let checkpoint = world
        .run(&["guard", "jp-ubuntu", "--action", "x", "--json"])
        .await
        .json()["pins"][0]["checkpoint"]
        .as_str()
        .unwrap()
        .to_owned();
    let refused = async || {
        let arguments = ["recover", "jp-ubuntu", "/no/such/file", "--yes"];
        let mut command = world.command(&[&arguments[..], &["--at", &checkpoint]].concat());
        let (terminal, child) = Terminal::start(&mut command, true);
        assert_ne!(
            child.wait_with_output().await.unwrap().status.code(),
            Some(0)
        );
        let screen = terminal.end();
        let unusable = screen.contains("[destination_unusable]");
        assert!(unusable || screen.contains("[path_not_found]"), "{screen}");
        unusable
    };
    assert!(refused().await);
    // As where somebody else can put another folder in its place.
    fs::create_dir_all(world.path("open/back")).unwrap();
    mode("open", 0o777);
    mode("open/back", 0o700);
    world.configure(json!({ "recover_dir": "open/back" }));
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 1);
    failed(
        &checks,
        id::RECOVER_FOLDER,
        "destination_unusable",
        "chmod o-w",
        &[],
    );
    assert!(refused().await);
    world.configure(json!({ "recover_dir": "back" }));
    mode("back", 0o775);
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 0);
    warned(&checks, id::RECOVER_FOLDER, "chmod 700");
    assert!(!refused().await);
    mode("back", 0o755);
    let (_, checks) = diagnose(&world).await;
    assert_eq!(status(&checks, id::RECOVER_FOLDER), "ok");
    assert_eq!(fs::read_dir(world.path("back")).unwrap().count(), 0);

    assert_eq!(
        world.run(&["stop", "--reason", "looking at it"]).await.code,
        0
    );
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 0);
    warned(&checks, id::STOP, "looking at it");
    let shown = world.finish(&mut doctor(&world, &[])).await;
    assert!(
        shown.stdout.contains("changes are stopped"),
        "{}",
        shown.stdout
    );
}

/// What can be opened can still be full.
#[tokio::test]
async fn a_full_disk_is_told_where_it_is() {
    let world = healthy().await;
    assert_eq!(diagnose(&world).await.0, 0);
    let command = doctor(&world, &["--json"]);
    let mut command = without_room(command.as_std(), 128);
    let output = command.current_dir(world.folder.path()).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let check = |id: &str| {
        let checks = report["checks"].as_array().unwrap();
        checks
            .iter()
            .find(|check| check["id"] == id)
            .unwrap()
            .clone()
    };
    for (id, code) in [
        (id::STATE_FOLDER, "state"),
        (id::RECOVER_FOLDER, "destination_unusable"),
    ] {
        assert_eq!(check(id)["code"], code, "{report:#}");
        let message = check(id)["message"].to_string();
        assert!(message.contains("too large"), "{message}");
    }
    assert_eq!(check(id::LOGIN)["status"], "skipped", "{report:#}");
    // What was tried is gone again.
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 0, "{checks:#}");
}

#[tokio::test]
async fn a_damaged_database_is_told_with_what_is_lost_by_moving_it_away() {
    let world = healthy().await;
    fs::create_dir(world.path("state")).unwrap();
    fs::set_permissions(world.path("state"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(world.path("state/state.db"), "no database ".repeat(1000)).unwrap();
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 1);
    failed(&checks, id::STATE_FOLDER, "state", "not a database", &[]);
    let fix = checks[id::STATE_FOLDER]["fix"].as_str().unwrap();
    for lost in ["certificates", "refused logins", "FLR sessions"] {
        assert!(fix.contains(lost), "{fix}");
    }
    // As it stands there.
    let script = fix.split('`').nth(1).unwrap();
    let moved = std::process::Command::new("sh")
        .args(["-c", script])
        .status();
    assert!(moved.unwrap().success(), "{script}");
    assert_eq!(diagnose(&world).await.0, 0);
}

#[tokio::test]
async fn an_interrupted_guard_is_told_before_and_after_it_is_closed() {
    let world = healthy().await;
    world.sim.update(|switches| switches.tag_never_shows = true);
    let mut guard = world
        .command(&["guard", "jp-ubuntu", "--action", "edit the thing"])
        .spawn()
        .unwrap();
    world
        .sim
        .wait_for(|view| view.answered("POST", "/checkpoints") > 0)
        .await;
    guard.kill().await.unwrap();
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 0);
    warned(&checks, id::INTERRUPTED, "edit the thing");
    let find = world.run(&["find", "jp-ubuntu"]).await;
    assert!(find.stderr.contains("was interrupted"), "{}", find.stderr);
    let (_, checks) = diagnose(&world).await;
    warned(&checks, id::INTERRUPTED, "edit the thing");
}

#[tokio::test]
async fn an_interrupted_recovery_is_told_before_and_after_it_is_cleaned_up() {
    let world = healthy().await;
    let guard = world
        .run(&["guard", "jp-ubuntu", "--action", "x", "--json"])
        .await;
    let checkpoint = guard.json()["pins"][0]["checkpoint"].clone();
    let file = "/home/justin/app-config.yaml";
    let at = checkpoint.as_str().unwrap();
    let mut command = world.command(&["recover", "jp-ubuntu", file, "--at", at, "--yes"]);
    world.sim.add_fault(Fault::hold("GET", "/v1/downloads/*"));
    let (terminal, mut child) = Terminal::start(&mut command, true);
    world.sim.wait_for(|view| view.held().count() > 0).await;
    child.kill().await.unwrap();
    drop(terminal);
    world.sim.cut_held();
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 0);
    let text = |checks: &Value| checks[id::INTERRUPTED].to_string();
    for said in [
        "1 recovery ended with the process",
        "recovery from jp-ubuntu (plan p-",
        "nothing has cleaned up after it yet",
        "what is incomplete in",
        "the next command that asks the ZVM removes",
        "a plan is carried out once",
    ] {
        warned(&checks, id::INTERRUPTED, said);
    }
    assert!(!text(&checks).contains("guard"), "{}", text(&checks));
    let find = world.run(&["find", "jp-ubuntu"]).await;
    assert!(find.stderr.contains("was interrupted"), "{}", find.stderr);
    let (_, checks) = diagnose(&world).await;
    for said in [
        "1 recovery ended with the process",
        "nothing is left of it",
        "a later command has cleaned up after it",
    ] {
        warned(&checks, id::INTERRUPTED, said);
    }
    assert!(
        !text(&checks).contains("the next command"),
        "{}",
        text(&checks)
    );
}

#[tokio::test]
async fn each_step_of_the_way_is_told_apart() {
    let world = World::new().await;
    // Nobody listens there.
    let port = 1;
    let after_name = [id::TCP, id::TLS, id::CERTIFICATE, id::LOGIN];
    world.configure(json!({ "zerto_url": "https://no-such-zvm.invalid" }));
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 5);
    failed(
        &checks,
        id::NAME,
        "zvm_unreachable",
        "no-such-zvm.invalid",
        &after_name,
    );
    world.configure(json!({ "zerto_url": format!("https://localhost:{port}") }));
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 5);
    failed(
        &checks,
        id::TCP,
        "zvm_unreachable",
        "refused",
        &after_name[1..],
    );
    assert!(!checks.to_string().contains("os error"), "{checks:#}");
    assert_eq!(status(&checks, id::NAME), "ok");

    let http = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = http.local_addr().unwrap();
    let served = std::thread::spawn(move || {
        for connection in http.incoming().take(2) {
            let mut connection = connection.unwrap();
            let _ = connection.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            let _ = connection.read(&mut [0; 1024]);
        }
    });
    world.configure(json!({ "zerto_url": format!("https://{address}") }));
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 5);
    failed(
        &checks,
        id::TLS,
        "zvm_unreachable",
        "does not speak TLS",
        &after_name[2..],
    );
    assert!(!checks.to_string().contains("Invalid"), "{checks:#}");
    served.join().unwrap();

    // By a proxy, it is the proxy that has to answer.
    world.configure(json!({ "zerto_url": "https://zvm.invalid" }));
    let mut command = doctor(&world, &["--json"]);
    command.env("HTTPS_PROXY", format!("http://127.0.0.1:{port}"));
    let run = world.finish(&mut command).await;
    assert_eq!(run.code, 5);
    let checks = run.json()["checks"].clone();
    let tcp = checks
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["id"] == "tcp")
        .unwrap();
    assert_eq!(tcp["status"], "failed");
    assert!(
        tcp.to_string().contains("the proxy 127.0.0.1") && tcp.to_string().contains("NO_PROXY"),
        "{tcp}"
    );
    // As the commands say it.
    let mut find = world.command(&["find", "jp-ubuntu"]);
    find.env("HTTPS_PROXY", format!("http://127.0.0.1:{port}"));
    let run = world.finish(&mut find).await;
    assert_eq!(run.code, 5);
    assert!(
        run.stderr.contains("through the proxy 127.0.0.1:1") && run.stderr.contains("NO_PROXY"),
        "{}",
        run.stderr
    );
    // One that lets nobody through.
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = proxy.local_addr().unwrap();
    let served = std::thread::spawn(move || {
        for connection in proxy.incoming().take(2) {
            let mut connection = connection.unwrap();
            let _ = connection.read(&mut [0; 1024]);
            let _ = connection.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n");
        }
    });
    let mut command = doctor(&world, &["--json"]);
    command.env("HTTPS_PROXY", format!("http://{address}"));
    let run = world.finish(&mut command).await;
    let report = run.json();
    let checks = report["checks"].as_array().unwrap();
    let tls = checks.iter().find(|check| check["id"] == "tls").unwrap();
    assert_eq!(tls["status"], "failed", "{tls}");
    assert!(
        tls.to_string().contains("through the proxy") && tls.to_string().contains("NO_PROXY"),
        "{tls}"
    );
    assert!(!tls.to_string().contains("9669"), "{tls}");
    served.join().unwrap();
    assert!(world.sim.requests().is_empty());
}

#[tokio::test]
async fn a_refused_login_is_sent_once_and_the_gate_is_heeded() {
    let world = healthy().await;
    world.configure(json!({ "password": "wrong" }));
    let (code, checks) = diagnose(&world).await;
    assert_eq!((code, logins(&world)), (5, 1));
    failed(&checks, id::LOGIN, "login_refused", "wrong", &AFTER_LOGIN);
    let fix = checks[id::LOGIN]["fix"].as_str().unwrap();
    assert!(fix.contains("comes from the configuration itself"), "{fix}");
    // Right after a refusal none is sent, whoever asks.
    let (code, checks) = diagnose(&world).await;
    assert_eq!((code, logins(&world)), (5, 1));
    failed(&checks, id::LOGIN, "login_refused", "just now", &[]);
    world.sim.update(|switches| switches.keycloak_up = false);
    world.configure(json!({}));
    let (code, checks) = diagnose(&world).await;
    assert_ne!(code, 0);
    assert_eq!(status(&checks, id::LOGIN), "failed");
    world.sim.update(|switches| switches.keycloak_up = true);
    let (code, _) = diagnose(&world).await;
    assert_eq!(code, 0);
    assert_only_asked(&world);
}

#[tokio::test]
async fn what_the_zvm_said_to_a_refused_login_is_told_for_as_long_as_none_is_sent() {
    let world = healthy().await;
    world
        .sim
        .update(|switches| switches.account = zvm_sim::switches::Account::Disabled);
    let (_, checks) = diagnose(&world).await;
    failed(
        &checks,
        id::LOGIN,
        "login_refused",
        "Account disabled",
        &AFTER_LOGIN,
    );
    let last = "When the ZVM refused it last, it said: \\\"Account disabled\\\"";
    let (_, checks) = diagnose(&world).await;
    failed(&checks, id::LOGIN, "login_refused", "just now", &[]);
    failed(&checks, id::LOGIN, "login_refused", last, &[]);
    let run = world.run(&["find", "jp-ubuntu"]).await;
    let said = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!((run.code, logins(&world)), (5, 1));
    assert!(said.contains(&last.replace('\\', "")), "{said}");
}

#[tokio::test]
async fn what_the_zvm_answers_is_judged() {
    let world = World::new().await;
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 0);
    warned(
        &checks,
        id::VPGS,
        "paused01: its substatus is ReplicationPausedUserInitiated",
    );
    warned(&checks, id::VPGS, "cloud01: its protected site is AWS");
    warned(&checks, id::PROTECTED_SITE, "cloud01: protected at Cloud");
    for right in [id::RIGHT_TO_TAG, id::RIGHT_TO_MOUNT] {
        assert_eq!(status(&checks, right), "skipped");
        assert!(
            checks[right]["message"]
                .as_str()
                .unwrap()
                .contains("not known")
        );
    }
    world.sim.update(|switches| {
        switches.roles = Some(vec![
            "viewer".into(),
            "ZertoPrivilege_FileLevelRestoreDownload".into(),
        ]);
        switches.clock_offset_ms = -3 * 3_600_000;
    });
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 0);
    warned(&checks, id::CLOCK, "behind");
    warned(&checks, id::RIGHT_TO_TAG, "ZertoPrivilege_ManageLocalVpg");
    assert_eq!(status(&checks, id::RIGHT_TO_MOUNT), "ok");

    for (path, check, code) in [
        ("/v1/localsite", id::SITE, "zvm_error"),
        ("/v1/vpgs", id::VPGS, "not_permitted"),
        ("/v1/vms", id::RIGHT_TO_LIST, "not_permitted"),
        ("/v1/flrs", id::RIGHT_TO_MOUNT, "not_permitted"),
    ] {
        let status_code = if code == "not_permitted" { 403 } else { 404 };
        world.sim.clear_faults();
        world.sim.add_fault(Fault {
            times: 0,
            ..Fault::answer("GET", path, status_code, Outcome::Message)
        });
        let (exit, checks) = diagnose(&world).await;
        assert_eq!(exit, 1, "{checks:#}");
        failed(&checks, check, code, "", &[]);
        // The others are asked all the same.
        let others = AFTER_LOGIN
            .iter()
            .filter(|id| **id != check && **id != id::PROTECTED_SITE);
        for other in others {
            assert!(
                ["ok", "warning"].contains(&status(&checks, other)),
                "{other}: {checks:#}"
            );
        }
    }
    world.sim.clear_faults();
    // What is gone is not asked again.
    world.sim.add_fault(Fault {
        times: 0,
        ..Fault::cut_before("GET", "/v1/**")
    });
    let (exit, checks) = diagnose(&world).await;
    assert_eq!(exit, 5);
    failed(
        &checks,
        id::SITE,
        "zvm_unreachable",
        "",
        &[id::CLOCK, id::VPGS, id::RIGHT_TO_LIST],
    );
    assert_only_asked(&world);
}

#[tokio::test]
async fn where_no_vpg_can_be_tagged_that_is_a_failure() {
    let mut scenario = Scenario::fast();
    scenario
        .vpgs
        .retain(|vpg| ["paused01", "cloud01"].contains(&&*vpg.name));
    let world = World::with(scenario).await;
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 1);
    failed(&checks, id::VPGS, "vpg_not_ready", "no VPG", &[]);
    let mut scenario = Scenario::fast();
    scenario.vpgs.clear();
    let world = World::with(scenario).await;
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 0);
    warned(&checks, id::VPGS, "lists no VPG");
    assert_eq!(status(&checks, id::PROTECTED_SITE), "skipped");
}

#[tokio::test]
async fn clients_that_are_set_up_are_found() {
    let world = healthy().await;
    let settings = world.path(".cursor/mcp.json");
    for harness in ["cursor", "codex"] {
        let mut install = world.command(&["install", harness, "--yes"]);
        install
            .env_remove("CODEX_HOME")
            .current_dir(world.folder.path());
        let run = world.finish(&mut install).await;
        assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    }
    let before = fs::read_to_string(&settings).unwrap();
    let (code, checks) = diagnose(&world).await;
    assert_eq!((code, status(&checks, "clients")), (0, "ok"));
    let details = checks["clients"]["details"].to_string();
    for part in [
        "Cursor: hook in",
        "Cursor: server in",
        "Codex CLI: hook in",
        "Codex CLI: server in",
    ] {
        assert!(details.contains(part), "{part}: {details}");
    }
    assert!(!details.contains("goes by"), "{details}");

    // Written by hand.
    let by_hand = json!({ "mcpServers": {
        "vm": { "command": "zerto-rewind", "args": ["proxy", "--", "npx"], "env": { "ZERTO_REWIND_CONFIG": "/none.json" } },
        "x": { "command": "npx" }, "y": 7, "z": { "command": "/opt/none/zerto-rewind-mcp" },
    } });
    fs::write(&settings, by_hand.to_string()).unwrap();
    let (code, checks) = diagnose(&world).await;
    assert_eq!(code, 0);
    warned(&checks, "clients", "/none.json");
    warned(&checks, "clients", "/opt/none/zerto-rewind-mcp");
    warned(&checks, "clients", "Cursor: proxy and server in");

    // The project's, and one that is broken or switched off.
    fs::create_dir_all(world.path("project/.gemini")).unwrap();
    let gemini = world.path("project/.gemini/settings.json");
    fs::write(&gemini, "{").unwrap();
    fs::write(&settings, &before).unwrap();
    let mut command = doctor(&world, &["--json"]);
    let run = world
        .finish(command.current_dir(world.path("project")))
        .await;
    assert!(run.stdout.contains("it is no JSON"), "{}", run.stdout);
    let mut hooks: Value =
        serde_json::from_str(&fs::read_to_string(world.path(".cursor/hooks.json")).unwrap())
            .unwrap();
    hooks["disableAllHooks"] = json!(true);
    fs::write(world.path(".cursor/hooks.json"), hooks.to_string()).unwrap();
    let (_, checks) = diagnose(&world).await;
    warned(&checks, "clients", "disableAllHooks");
    assert_eq!(fs::read_to_string(&settings).unwrap(), before);
}

#[tokio::test]
async fn at_a_terminal_it_fits_and_colours_are_a_choice() {
    let world = World::new().await;
    unverified(&world, json!({}));
    for (variable, coloured) in [("NO_COLOR", false), ("IRRELEVANT", true)] {
        let mut command = doctor(&world, &[]);
        let (terminal, mut child) = Terminal::start(command.env(variable, "1"), true);
        assert!(child.wait().await.unwrap().success());
        let screen = terminal.end();
        assert_eq!(
            screen.contains("\u{1b}[33m") || screen.contains("\u{1b}[1m"),
            coloured,
            "{screen:?}"
        );
        if !coloured {
            let report = screen.split("\u{1b}[2K").last().unwrap();
            let fingerprint = world.sim.fingerprint().to_uppercase();
            for line in report.lines() {
                assert!(line.chars().count() <= 80, "{line:?}");
            }
            let digits: String = report.chars().filter(char::is_ascii_hexdigit).collect();
            assert!(digits.contains(&fingerprint), "{report}");
            assert!(report.contains("Nothing failed"), "{report}");
        }
    }
    // Ctrl-C.
    let stalled = Fault {
        times: 0,
        outcome: Outcome::Stall,
        ..Fault::on("GET", "/v1/localsite")
    };
    world.sim.add_fault(stalled);
    let (terminal, child) = Terminal::start(&mut doctor(&world, &[]), false);
    terminal.shows("asking the ZVM for the site").await;
    interrupt(&child);
    let run = Run::of(child.wait_with_output().await.unwrap());
    assert_eq!((run.code, &*run.stdout), (130, ""), "{}", terminal.end());
}

#[test]
fn the_documentation_has_a_row_for_each_check() {
    let documentation = include_str!("../../../../docs/doctor.md");
    let rows = documentation
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    assert_eq!(
        rows.collect::<Vec<_>>(),
        [&id::ALL[..], &["clients"]].concat()
    );
}
