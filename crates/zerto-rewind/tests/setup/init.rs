//! What `init` asks, tries and writes.
use crate::support::{Run, World, interrupt, stdio::Server, terminal::Terminal};
use serde_json::{Value, json};
use std::{
    fs,
    io::Write as _,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Stdio,
};
use tokio::{io::AsyncWriteExt as _, process::Command};

/// A world without a configuration, and where one will be.
struct New {
    world: World,
    file: PathBuf,
}

impl New {
    async fn new() -> Self {
        let world = World::new().await;
        fs::remove_file(world.config()).unwrap();
        let file = world.path("new/config.json");
        Self { world, file }
    }

    fn init(&self, arguments: &[&str]) -> Command {
        let file = self.file.to_str().unwrap();
        let mut command = self
            .world
            .command(&[&["--config", file, "init"], arguments].concat());
        command.current_dir(self.world.folder.path());
        command
    }

    /// With address and user, and `verify_tls` by the simulator's own certificate.
    fn given(&self, arguments: &[&str]) -> Command {
        let (url, ca) = (self.world.sim.url(), self.world.sim.ca_file());
        let all = [
            "--url",
            url,
            "--username",
            "admin",
            "--ca-file",
            ca.to_str().unwrap(),
        ];
        self.init(&[&all[..], arguments].concat())
    }

    async fn run(&self, command: &mut Command) -> Run {
        let run = self.world.finish(command).await;
        let password = self.password();
        assert!(
            !run.stdout.contains(&password) && !run.stderr.contains(&password),
            "{}{}",
            run.stdout,
            run.stderr
        );
        run
    }

    /// With this on stdin.
    async fn fed(&self, command: &mut Command, input: &str) -> Run {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // Who refuses its arguments does not read.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        Run::of(child.wait_with_output().await.unwrap())
    }

    fn password(&self) -> String {
        self.world.sim.credentials().password.clone()
    }

    fn written(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(&self.file).unwrap()).unwrap()
    }

    /// A command goes by it.
    async fn works(&self) {
        let file = self.file.to_str().unwrap();
        let run = self
            .world
            .run(&["--config", file, "find", "jp-ubuntu"])
            .await;
        assert_eq!(run.code, 0, "{}", run.stderr);
    }
}

/// Nobody listens there.
const CLOSED: &str = "127.0.0.1:1";

fn mode(file: &Path) -> u32 {
    fs::metadata(file).unwrap().permissions().mode() & 0o777
}

fn write(file: &Path, text: &str) {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(file)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.set_permissions(fs::Permissions::from_mode(0o600))
        .unwrap();
}

#[tokio::test]
async fn flags_alone_suffice() {
    let new = New::new().await;
    let run = new
        .fed(
            &mut new.given(&["--password-stdin", "--json"]),
            &format!("{}\n", new.password()),
        )
        .await;
    assert_eq!((run.code, &*run.stderr), (0, ""), "{}", run.stdout);
    let report = run.json();
    assert_eq!(report["configuration"], new.file.to_str().unwrap());
    assert_eq!(report["site"]["name"], "Production");
    assert_eq!(report["secret"]["kind"], "config");
    let certificate = report["certificate"].as_str().unwrap().replace(':', "");
    assert_eq!(
        certificate.to_lowercase(),
        new.world.sim.fingerprint().to_lowercase()
    );
    assert_eq!(report["kept"], Value::Null);
    // As they stand there, they work on what was written.
    for command in report["next"].as_array().unwrap() {
        let named = format!("zerto-rewind --config {}", new.file.display());
        assert!(command.as_str().unwrap().starts_with(&named), "{report}");
    }
    // The original four keys, and what was asked for.
    let written = fs::read_to_string(&new.file).unwrap();
    let keys: Vec<_> = written
        .lines()
        .filter_map(|line| line.trim().strip_prefix('"')?.split('"').next())
        .collect();
    assert_eq!(
        keys,
        [
            "zerto_url",
            "username",
            "password",
            "verify_tls",
            "ca_file",
            "catalog"
        ]
    );
    assert_eq!(new.written()["password"], *new.password());
    let folder = new.file.parent().unwrap();
    assert_eq!(
        (
            mode(&new.file),
            mode(&folder.join("catalog.toml")),
            mode(folder)
        ),
        (0o600, 0o600, 0o700)
    );
    assert_eq!(fs::read_dir(folder).unwrap().count(), 2);
    new.works().await;
    let catalog = new
        .world
        .run(&[
            "--config",
            new.file.to_str().unwrap(),
            "catalog",
            "validate",
        ])
        .await;
    assert_eq!(catalog.code, 0, "{}", catalog.stderr);
    let shown = new
        .run(&mut new.given(&["--password-env", "--no-test", "--force"]))
        .await;
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(
        shown.stdout.contains(&format!(
            "zerto-rewind --config {} doctor",
            new.file.display()
        )),
        "{}",
        shown.stdout
    );
}

#[tokio::test]
async fn each_source_of_the_secret_is_written_as_it_was_given() {
    let new = New::new().await;
    let password = new.password();
    write(&new.world.path("zvm.password"), &format!("{password}\n"));
    write(
        &new.world.path("vault"),
        &format!("#!/bin/sh\n[ \"$1\" = 'show it' ] && echo {password}\n"),
    );
    fs::set_permissions(new.world.path("vault"), fs::Permissions::from_mode(0o700)).unwrap();
    let (file, vault) = (new.world.path("zvm.password"), new.world.path("vault"));
    for (arguments, key, value) in [
        (
            &["--password-file", "zvm.password"][..],
            "password_file",
            json!(file),
        ),
        (
            &["--password-command", "./vault 'show it'"][..],
            "password_command",
            json!([vault, "show it"]),
        ),
    ] {
        let run = new
            .run(&mut new.given(&[arguments, &["--force"]].concat()))
            .await;
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(new.written()[key], value);
        assert!(!fs::read_to_string(&new.file).unwrap().contains(&password));
        new.works().await;
    }
    let mut from_environment = new.given(&["--password-env", "--force"]);
    let run = new
        .run(from_environment.env("ZERTO_REWIND_PASSWORD", &password))
        .await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    let keys: Vec<_> = new.written().as_object().unwrap().keys().cloned().collect();
    assert!(!keys.iter().any(|key| key.contains("password")), "{keys:?}");

    let run = new
        .fed(
            &mut new.given(&["--password-stdin", "--store", "file", "--force"]),
            &password,
        )
        .await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    let kept = new.file.with_file_name("zvm.secret");
    assert_eq!(new.written()["password_file"], "zvm.secret");
    assert_eq!(
        (fs::read_to_string(&kept).unwrap(), mode(&kept)),
        (format!("{password}\n"), 0o600)
    );
    new.works().await;

    let own = new.world.sim.credentials().clone();
    let (url, ca) = (
        new.world.sim.url(),
        new.world.sim.ca_file().to_str().unwrap(),
    );
    let client = [
        "--url",
        url,
        "--client-id",
        &own.client_id,
        "--ca-file",
        ca,
        "--password-stdin",
        "--force",
    ];
    let run = new.fed(&mut new.init(&client), &own.client_secret).await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(new.written()["client_secret"], *own.client_secret);
    assert_eq!(new.written()["username"], Value::Null);
    new.works().await;
}

#[tokio::test]
async fn what_is_wrong_is_told_and_nothing_is_written() {
    let new = New::new().await;
    let run = new.run(&mut new.init(&[])).await;
    assert_eq!(run.code, 2);
    for option in ["--url", "--username", "--password-file", "--password-stdin"] {
        assert!(run.stderr.contains(option), "{option}: {}", run.stderr);
    }
    let closed = format!("https://{CLOSED}");
    let url = new.world.sim.url().to_owned();
    for (arguments, code, said) in [
        (
            &["--url", "http://zvm", "--username", "u", "--password-env"][..],
            2,
            "clear text",
        ),
        (
            &["--url", &closed, "--username", "u", "--password-env"],
            5,
            "refused",
        ),
        // By no authority that is known here.
        (
            &[
                "--url",
                &url,
                "--username",
                "u",
                "--password-env",
                "--verify-tls",
            ],
            5,
            "ca_file",
        ),
        (
            &[
                "--url",
                &url,
                "--username",
                "u",
                "--password-env",
                "--tls-fingerprint",
                "AB",
            ],
            2,
            "64 hexadecimal",
        ),
        (
            &[
                "--url",
                &url,
                "--username",
                "u",
                "--password-env",
                "--tls-fingerprint",
                &"AB".repeat(32),
            ],
            5,
            "--tls-fingerprint",
        ),
        (
            &[
                "--url",
                &url,
                "--username",
                "u",
                "--password-env",
                "--ca-file",
                "/nonexist",
            ],
            2,
            "Correct --ca-file",
        ),
        (
            &["--url", &url, "--username", "u", "--password-env"],
            2,
            "is not set",
        ),
        (
            &["--url", &url, "--username", "u", "--password-file", "none"],
            2,
            "--password-file",
        ),
        (
            &[
                "--url",
                &url,
                "--username",
                "u",
                "--password-command",
                "false",
            ],
            2,
            "--password-command",
        ),
        (
            &["--url", &url, "--username", "u", "--password-command", "'"],
            2,
            "command line",
        ),
        (
            &["--url", &url, "--username", " ", "--password-env"],
            2,
            "empty",
        ),
        (
            &[
                "--url",
                &url,
                "--username",
                "u",
                "--client-id",
                "c",
                "--password-env",
            ],
            2,
            "cannot be used with",
        ),
        (
            &[
                "--url",
                &url,
                "--username",
                "u",
                "--password-env",
                "--store",
                "file",
            ],
            2,
            "cannot be used with",
        ),
        (
            &[
                "--url",
                &url,
                "--username",
                "u",
                "--password-env",
                "--password-stdin",
            ],
            2,
            "cannot be used with",
        ),
        (
            &["--url", &url, "--username", "u", "--password", "hunter2"],
            2,
            "--password",
        ),
        (
            &["--url", &url, "--username", "u", "--password=hunter2"],
            2,
            "--password",
        ),
        (&["--password-stdin=hunter2"], 2, "--password-stdin"),
        (&["--password-stdin", "hunter2"], 2, "unexpected argument"),
        (&["--store=hunter2"], 2, "--store"),
        (&["--json", "hunter2"], 2, "unexpected argument"),
        (
            &["--url", &url, "--username", "a\tb", "--password-env"],
            2,
            "control character",
        ),
    ] {
        let mut command = new.init(arguments);
        // Whether it is set is looked at first of all.
        if arguments.contains(&"--password-env") && said != "is not set" {
            command.env("ZERTO_REWIND_PASSWORD", "x");
        }
        let run = new.run(&mut command).await;
        let shown = format!("{}{}", run.stdout, run.stderr);
        assert_eq!(run.code, code, "{arguments:?}: {shown}");
        assert!(shown.contains(said), "{said:?} is not in {shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
        // What is not written yet can't be corrected.
        assert!(!shown.contains("in /"), "{shown}");
        assert!(
            !new.file.parent().unwrap().exists(),
            "{arguments:?} wrote something"
        );
    }
    assert!(new.world.sim.requests().is_empty(), "something was sent");
    for (input, said) in [
        ("wrong", "login_refused"),
        ("", "is empty"),
        ("a\nb\n", "several lines"),
        ("a\0b\n", "control character"),
    ] {
        let run = new.fed(&mut new.given(&["--password-stdin"]), input).await;
        assert_ne!(run.code, 0);
        assert!(run.stderr.contains(said), "{said}: {}", run.stderr);
        assert!(!new.file.parent().unwrap().exists());
    }
    assert_eq!(
        new.world.sim.requests().len(),
        1,
        "one login, and it is not repeated"
    );
}

#[tokio::test]
async fn nothing_is_overwritten_unless_that_is_said_and_then_a_copy_is_kept() {
    let new = New::new().await;
    let folder = new.file.parent().unwrap();
    fs::create_dir(folder).unwrap();
    let catalog = folder.join("catalog.toml");
    fs::write(&catalog, "version = 1 # mine\n").unwrap();
    let given = |extra: &[&str]| new.given(&[&["--password-env", "--no-test"], extra].concat());
    for content in ["{\"mine\": 1}", "{\"mine\": 2}"] {
        fs::write(&new.file, content).unwrap();
        let run = new.run(&mut given(&[])).await;
        assert_eq!(run.code, 1);
        assert!(
            run.stderr.contains("[destination_exists]") && run.stderr.contains("--force"),
            "{}",
            run.stderr
        );
        assert_eq!(fs::read_to_string(&new.file).unwrap(), content);
        let run = new.run(&mut given(&["--force", "--json"])).await;
        assert_eq!(run.code, 0, "{}", run.stderr);
        let kept = PathBuf::from(run.json()["kept"].as_str().unwrap());
        assert_eq!(
            (&*fs::read_to_string(&kept).unwrap(), mode(&kept)),
            (content, 0o600)
        );
        assert_eq!(mode(&new.file), 0o600);
    }
    assert_eq!(
        fs::read_to_string(&catalog).unwrap(),
        "version = 1 # mine\n"
    );
    // A link stays one, and its target is what is replaced.
    let target = new.world.path("target.json");
    fs::write(&target, "{}").unwrap();
    fs::remove_file(&new.file).unwrap();
    symlink(&target, &new.file).unwrap();
    assert_eq!(new.run(&mut given(&[])).await.code, 1);
    assert_eq!(new.run(&mut given(&["--force"])).await.code, 0);
    assert!(fs::symlink_metadata(&new.file).unwrap().is_symlink());
    assert_eq!(new.written()["username"], "admin");
    assert!(
        new.world.sim.requests().is_empty(),
        "--no-test asks nothing"
    );
}

/// Of what has no end, or is waited for, no copy can be kept.
#[tokio::test]
async fn nothing_but_a_plain_file_is_replaced() {
    let mut new = New::new().await;
    let (pipe, folder) = (new.world.path("pipe"), new.world.path("folder"));
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    fs::create_dir(&folder).unwrap();
    let dangling = new.world.path("dangling");
    symlink("nothing", &dangling).unwrap();
    let device = new.world.path("device");
    symlink("/dev/full", &device).unwrap();
    let below = new.world.path("pipe/below/config.json");
    for (file, said) in [
        (&PathBuf::from("/dev/full"), "not a regular file"),
        (&device, "not a regular file"),
        (&pipe, "not a regular file"),
        (&folder, "not a regular file"),
        (&dangling, "a link to what is not there"),
        (&below, "can't be written"),
    ] {
        new.file = file.clone();
        for force in [&["--force"][..], &[]] {
            let run = new
                .fed(
                    &mut new.given(&[&["--password-stdin"], force].concat()),
                    "x",
                )
                .await;
            assert_eq!(run.code, 1, "{file:?}: {}", run.stderr);
            assert!(
                run.stderr.contains("[destination_unusable]") && run.stderr.contains(said),
                "{file:?}: {}",
                run.stderr
            );
        }
    }
    // Nor where the secret and the catalog would be.
    new.file = folder.join("config.json");
    let is_fifo = |path: &Path| {
        use std::os::unix::fs::FileTypeExt as _;
        fs::symlink_metadata(path).unwrap().file_type().is_fifo()
    };
    for name in ["zvm.secret", "catalog.toml"] {
        let there = folder.join(name);
        fs::rename(&pipe, &there).unwrap();
        let store = ["--password-stdin", "--store", "file", "--force"];
        let run = new.fed(&mut new.given(&store), "x").await;
        assert_eq!(run.code, 1, "{name}: {}", run.stderr);
        assert!(run.stderr.contains(name), "{}", run.stderr);
        assert!(is_fifo(&there));
        fs::rename(&there, &pipe).unwrap();
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    assert!(!Path::new("/dev/full.bak").exists());
    assert!(new.world.sim.requests().is_empty(), "something was sent");
}

#[tokio::test]
async fn a_second_source_of_the_secret_is_told_before_anything_is_sent() {
    let new = New::new().await;
    for (extra, set, said) in [
        (
            &["--password-stdin"][..],
            true,
            "unset ZERTO_REWIND_PASSWORD",
        ),
        (&["--password-file", "x"], true, "--password-env"),
        (&["--password-env"], false, "is not set"),
    ] {
        let mut command = new.given(extra);
        if set {
            command.env("ZERTO_REWIND_PASSWORD", new.password());
        }
        let run = new.fed(&mut command, &new.password()).await;
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(run.stderr.contains(said), "{said}: {}", run.stderr);
        assert!(!new.file.parent().unwrap().exists());
    }
    // Of another account, it is none.
    let mut command = new.given(&["--password-stdin"]);
    let run = new
        .fed(
            command.env("ZERTO_REWIND_CLIENT_SECRET", "x"),
            &new.password(),
        )
        .await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(
        new.world
            .sim
            .requests()
            .iter()
            .filter(|request| request.is("POST", "/token"))
            .count(),
        1
    );
}

#[tokio::test]
async fn what_it_makes_without_a_name_is_found_without_one() {
    let new = New::new().await;
    let (url, ca) = (new.world.sim.url(), new.world.sim.ca_file());
    let unnamed = |arguments: &[&str]| {
        let mut command = new.world.command(arguments);
        command
            .env_remove("ZERTO_REWIND_CONFIG")
            .current_dir(new.world.folder.path());
        command
    };
    let run = new.run(&mut unnamed(&["find", "jp-ubuntu"])).await;
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("zerto-rewind init"), "{}", run.stderr);
    let arguments = [
        "--json",
        "init",
        "--url",
        url,
        "--username",
        "admin",
        "--ca-file",
        ca.to_str().unwrap(),
        "--password-stdin",
    ];
    let run = new.fed(&mut unnamed(&arguments), &new.password()).await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    let report = run.json();
    assert_eq!(
        report["next"],
        json!(["zerto-rewind doctor", "zerto-rewind install claude"])
    );
    let file = PathBuf::from(report["configuration"].as_str().unwrap());
    assert!(file.starts_with(new.world.folder.path()), "{file:?}");
    let run = new.run(&mut unnamed(&["find", "jp-ubuntu"])).await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    // A server, too; and what is there and broken is not passed over.
    let mut server = Server::of(&mut unnamed(&["mcp"]));
    server.initialize("2025-11-25").await;
    let found = server
        .call("zerto_find_protection", json!({ "vm": "jp-ubuntu" }))
        .await;
    assert_ne!(found["isError"], true, "{found}");
    write(&file, "{");
    let found = server
        .call("zerto_find_protection", json!({ "vm": "jp-ubuntu" }))
        .await;
    assert_eq!(
        found["structuredContent"]["error"]["code"], "configuration",
        "{found}"
    );
}

#[tokio::test]
async fn what_doctor_would_warn_of_is_told_at_once() {
    let new = New::new().await;
    let folder = new.file.parent().unwrap();
    fs::create_dir(folder).unwrap();
    let catalog = folder.join("catalog.toml");
    write(&catalog, "version = 1\n[[gard]]\n");
    fs::set_permissions(folder, fs::Permissions::from_mode(0o775)).unwrap();
    let run = new
        .fed(&mut new.given(&["--password-stdin"]), &new.password())
        .await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    for said in ["chmod go-w", "gard", "catalog"] {
        assert!(run.stderr.contains(said), "{said}: {}", run.stderr);
    }
    assert_eq!(run.stderr.matches("warning: ").count(), 3, "{}", run.stderr);
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
    fs::remove_file(&catalog).unwrap();
    let run = new
        .fed(
            &mut new.given(&["--password-stdin", "--force"]),
            &new.password(),
        )
        .await;
    assert_eq!(run.code, 0);
    // But for the secret in the copy.
    assert_eq!(run.stderr.matches("warning: ").count(), 1, "{}", run.stderr);
    assert!(run.stderr.contains("this copy"), "{}", run.stderr);
}

#[tokio::test]
async fn without_a_terminal_a_first_certificate_is_remembered_as_at_any_first_use() {
    let mut new = New::new().await;
    let url = new.world.sim.url().to_owned();
    let arguments = ["--url", &*url, "--username", "admin", "--password-stdin"];
    let run = new.fed(&mut new.init(&arguments), &new.password()).await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.starts_with("warning: "), "{}", run.stderr);
    assert_eq!(new.written()["verify_tls"], false);
    new.world.sim.renew_certificate().unwrap();
    new.world.sim.clear_requests();
    let again = [&arguments[..], &["--force"]].concat();
    let run = new.fed(&mut new.init(&again), &new.password()).await;
    assert_eq!(run.code, 5);
    assert!(
        run.stderr.contains("[certificate_changed]"),
        "{}",
        run.stderr
    );
    assert!(new.world.sim.requests().is_empty(), "something was sent");
}

/// As with `trust`: a terminal and a yes are what an agent's shell has, too.
#[tokio::test]
async fn a_changed_certificate_wants_the_approvers_passphrase() {
    let mut new = New::new().await;
    let url = new.world.sim.url().to_owned();
    let arguments = ["--url", &*url, "--username", "admin", "--password-stdin"];
    let run = new.fed(&mut new.init(&arguments), &new.password()).await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    let file = new.file.to_str().unwrap();
    let set = &mut new.world.command(&["--config", file, "approver", "set"]);
    let (mut terminal, child) = Terminal::start(set, false);
    for question in ["New passphrase: ", "Once more: "] {
        terminal.shows(question).await;
        terminal.types("five small words");
    }
    let run = Run::of(child.wait_with_output().await.unwrap());
    assert_eq!(run.code, 0, "{}", terminal.end());
    new.world.sim.renew_certificate().unwrap();
    let url = new.world.sim.url().to_owned();
    let (mut terminal, child) = Terminal::start(&mut new.init(&["--url", &url, "--force"]), false);
    terminal.shows("Is this your ZVM? [y/N]").await;
    terminal.types("y");
    terminal.shows("Approver's passphrase: ").await;
    terminal.types("five small worms");
    let run = Run::of(child.wait_with_output().await.unwrap());
    let shown = terminal.end();
    assert_eq!(run.code, 3, "{shown}");
    assert!(shown.contains("[passphrase_refused]"), "{shown}");
}

/// What is remembered holds every later run up, so there has to be a configuration that it belongs to.
#[tokio::test]
async fn an_init_that_fails_or_is_left_remembers_nothing() {
    let mut new = New::new().await;
    let url = new.world.sim.url().to_owned();
    let arguments = ["--url", &*url, "--username", "admin", "--password-stdin"];
    let run = new.fed(&mut new.init(&arguments), "wrong\n").await;
    assert_eq!(run.code, 5, "{}", run.stderr);
    assert!(
        !run.stderr.contains("trusted from now on"),
        "{}",
        run.stderr
    );
    // A person says yes, and leaves.
    for _ in 0..2 {
        let (mut terminal, child) = Terminal::start(&mut new.init(&["--url", &url]), false);
        terminal.shows("Is this your ZVM? [y/N]").await;
        terminal.types("y");
        terminal.shows("User:").await;
        interrupt(&child);
        let run = Run::of(child.wait_with_output().await.unwrap());
        assert_eq!(run.code, 130, "{}", terminal.end());
    }
    // The appliance's certificate is renewed; that concerns nobody yet.
    new.world.sim.renew_certificate().unwrap();
    let url = new.world.sim.url().to_owned();
    let arguments = ["--url", &*url, "--username", "admin", "--password-stdin"];
    let run = new.fed(&mut new.init(&arguments), &new.password()).await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("trusted from now on"), "{}", run.stderr);
    new.works().await;
    // Where one is known, it is shown all the same.
    let (terminal, child) = Terminal::start(&mut new.init(&["--url", &url, "--force"]), false);
    terminal.shows("User:").await;
    let shown: String = terminal
        .text()
        .chars()
        .filter(char::is_ascii_hexdigit)
        .collect();
    let fingerprint = new.world.sim.fingerprint().to_uppercase();
    assert!(shown.contains(&fingerprint), "{}", terminal.text());
    let said = terminal.text();
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("is the same that was remembered at the first use, at 20")
            && said.contains("so there is nothing to compare"),
        "{said}"
    );
    interrupt(&child);
    child.wait_with_output().await.unwrap();
    let pinned = ["--tls-fingerprint", new.world.sim.fingerprint()];
    let arguments = [&["--url", &*url, "--force"][..], &pinned].concat();
    let (terminal, child) = Terminal::start(&mut new.init(&arguments), false);
    terminal.shows("User:").await;
    let said = terminal.text();
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("the same that was given as --tls-fingerprint"),
        "{said}"
    );
    interrupt(&child);
    child.wait_with_output().await.unwrap();
}

/// Whoever replaces a configuration should know where the old secret still is.
#[tokio::test]
async fn old_secrets_are_named() {
    let new = New::new().await;
    let password = format!("{}\n", new.password());
    let run = new
        .fed(
            &mut new.given(&["--password-stdin", "--store", "file"]),
            &password,
        )
        .await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    let run = new
        .fed(&mut new.given(&["--password-stdin", "--force"]), &password)
        .await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    let orphan = new.file.with_file_name("zvm.secret");
    assert!(
        run.stderr.contains(&format!("`rm {}`", orphan.display())),
        "{}",
        run.stderr
    );
    assert!(!run.stderr.contains("this copy"), "{}", run.stderr);
    fs::remove_file(&orphan).unwrap();
    let run = new
        .run(&mut new.given(&["--password-env", "--no-test", "--force", "--json"]))
        .await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    let report = run.json();
    let kept = report["kept"].as_str().unwrap();
    assert!(
        run.stderr.contains("this copy has a secret in it") && run.stderr.contains(kept),
        "{}",
        run.stderr
    );
    assert_eq!(report["secret"]["kind"], "environment");
}

#[tokio::test]
async fn a_person_is_asked_and_can_correct_what_is_wrong() {
    let new = New::new().await;
    let password = new.password();
    let mut command = new.init(&["--json"]);
    let (mut terminal, child) = Terminal::start(&mut command, false);
    terminal.shows("The ZVM's address:").await;
    terminal.types("http://zvm");
    terminal.shows("clear text").await;
    terminal.types(CLOSED);
    terminal.shows("[zvm_unreachable]").await;
    terminal
        .shows(&format!("The ZVM's address [{CLOSED}]:"))
        .await;
    terminal.types(new.world.sim.url());
    terminal.shows("Is this your ZVM? [y/N]").await;
    let fingerprint = new.world.sim.fingerprint().to_uppercase();
    let shown: String = terminal
        .text()
        .chars()
        .filter(char::is_ascii_hexdigit)
        .collect();
    assert!(shown.contains(&fingerprint), "{}", terminal.text());
    assert!(new.world.sim.requests().is_empty());
    terminal.types("y");
    terminal.shows("User:").await;
    terminal.types("admin");
    terminal.shows("Password (not shown):").await;
    terminal.types("hunter2");
    terminal.shows("[login_refused]").await;
    terminal
        .shows("First the user, which is shown; then the password, which is not.")
        .await;
    terminal.shows("User [Enter keeps admin]:").await;
    terminal.types("");
    terminal.shows_again("Password (not shown):", 2).await;
    terminal.types(&password);
    let run = Run::of(child.wait_with_output().await.unwrap());
    let screen = terminal.end();
    assert_eq!(run.code, 0, "{screen}");
    assert!(
        screen.contains("admin is logged in to Production"),
        "{screen}"
    );
    assert!(
        !screen.contains("hunter2") && !screen.contains(&password),
        "{screen}"
    );
    assert_eq!(run.json()["site"]["name"], "Production");
    assert_eq!(new.written()["password"], *password);
    // The person accepted the certificate.
    let trust = new
        .world
        .run(&["--config", new.file.to_str().unwrap(), "trust"])
        .await;
    assert!(
        trust.stdout.contains("accepted by cli/justin"),
        "{}{}",
        trust.stdout,
        trust.stderr
    );
    new.works().await;
}

#[tokio::test]
async fn a_person_can_leave_at_any_question() {
    let new = New::new().await;
    let url = new.world.sim.url();
    for (arguments, question, answer, code) in [
        (&[][..], "The ZVM's address:", None, 130),
        (&["--url", url], "Is this your ZVM?", Some("n"), 3),
        (&["--url", url], "Is this your ZVM?", None, 130),
        (&["--url", url, "--no-test"], "User:", None, 130),
        (
            &["--url", url, "--no-test", "--username", "u"],
            "Password (not shown):",
            None,
            130,
        ),
        // The end of the input, in the middle of an answer, too: nothing of it is sent.
        (
            &["--url", url, "--no-test", "--username", "u"],
            "Password (not shown):",
            Some("hunter2\u{4}"),
            3,
        ),
        (&["--no-test"], "The ZVM's address:", Some("\u{4}"), 3),
        (
            &["--url", url, "--no-test", "--username", "u"],
            "Password (not shown):",
            Some("\u{4}"),
            3,
        ),
    ] {
        let mut command = new.init(arguments);
        let (mut terminal, child) = Terminal::start(&mut command, false);
        terminal.shows(question).await;
        match answer {
            Some(answer) => terminal.types(answer),
            None => interrupt(&child),
        }
        let run = Run::of(child.wait_with_output().await.unwrap());
        assert!(
            terminal.echoes(),
            "what is typed stays invisible after {question}"
        );
        let screen = terminal.end();
        assert_eq!(run.code, code, "{question}: {screen}");
        // What is said of it stands on a line of its own.
        let is_said = |line: &str| line.contains("error[") || line.contains("interrupted[");
        let (said, stuck): (Vec<_>, Vec<_>) = screen
            .lines()
            .filter(|line| is_said(line))
            .partition(|line| !line.contains(question));
        assert!(
            said.len() == 1 && stuck.is_empty(),
            "{question}: {screen:?}"
        );
        assert!(!new.file.parent().unwrap().exists(), "{question}: {screen}");
    }
    assert!(new.world.sim.requests().is_empty());
    // Stdin is where the answers come from.
    let (terminal, child) = Terminal::start(&mut new.init(&["--password-stdin"]), false);
    let run = Run::of(child.wait_with_output().await.unwrap());
    assert_eq!(run.code, 2, "{}", terminal.end());
}
