//! Every command against a simulated ZVM: what it prints, in each form, and its exit code.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

#[path = "commands/audit.rs"]
mod audit;
mod support;

use std::{
    fs,
    net::TcpListener,
    process::Stdio,
    time::{Duration, Instant},
};

use serde_json::json;
use support::{Run, World};
use tokio::io::AsyncWriteExt as _;
use zvm_sim::{Credentials, Fault, Outcome, Scenario};

#[tokio::test]
async fn find_prints_columns_that_are_not_wrapped_when_piped() {
    let world = World::new().await;
    let run = world.run(&["find", "app01"]).await;
    assert_eq!((run.code, &*run.stderr), (0, ""));
    for vpg in ["app01-local", "app01-dr", "app01-archive"] {
        let row = run.stdout.lines().find(|line| line.contains(vpg)).unwrap();
        assert!(row.contains("MeetingSLA") && row.contains('→'), "{row}");
    }
    assert!(!run.stdout.contains(['\u{1b}', '─', '│']), "{}", run.stdout);
}

#[tokio::test]
async fn find_says_why_a_vpg_can_not_be_pinned() {
    let world = World::new().await;
    let run = world.run(&["find", "paused01"]).await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("can't be pinned"), "{}", run.stdout);
}

#[tokio::test]
async fn json_is_the_structured_content_of_the_tool() {
    let world = World::new().await;
    let found = world.run(&["--json", "find", "jp-ubuntu"]).await;
    assert_eq!(found.json()["vpgs"][0]["vpg"], "jp-ubuntu");
    let receipt = world
        .run(&[
            "guard",
            "jp-ubuntu",
            "--action",
            "edit",
            "--change",
            "CHG-1",
            "--json",
        ])
        .await;
    assert_eq!(receipt.code, 0, "{}", receipt.stdout);
    assert_eq!(receipt.json()["agent"], "cli/justin");
    assert_eq!(receipt.json()["change_id"], "CHG-1");
    let list = world.run(&["checkpoints", "jp-ubuntu", "--json"]).await;
    assert_eq!(list.json()["checkpoints"][0]["tag"], receipt.json()["tag"]);
    for run in [found, receipt, list] {
        assert_eq!(run.stderr, "");
    }
}

#[tokio::test]
async fn guard_shows_the_tag_and_every_pin() {
    let world = World::new().await;
    let run = world
        .run(&[
            "guard",
            "app01",
            "--action",
            "upgrade",
            "--agent",
            "deploy-bot",
            "--change",
            "CHG-7",
        ])
        .await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(
        run.stdout
            .contains("ai:deploy-bot | upgrade | vm=app01 | change=CHG-7 | "),
        "{}",
        run.stdout
    );
    for vpg in ["app01-local", "app01-dr", "app01-archive"] {
        let id = &world.sim.journal(vpg)[0].id;
        assert!(
            run.stdout
                .lines()
                .any(|line| line.contains(vpg) && line.contains(id)),
            "{}",
            run.stdout
        );
    }
    assert!(run.stdout.contains("Crash-consistent") && run.stdout.contains("estimate"));
}

#[tokio::test]
async fn checkpoints_shows_whole_tags_newest_first() {
    let world = World::new().await;
    let empty = world.run(&["checkpoints", "jp-ubuntu"]).await;
    assert!(
        empty.code == 0 && empty.stdout.contains("no tagged checkpoint"),
        "{}",
        empty.stdout
    );
    for action in ["first", "second"] {
        assert_eq!(
            world.run(&["guard", "jp-ubuntu", "-a", action]).await.code,
            0
        );
    }
    let run = world
        .run(&["checkpoints", "jp-ubuntu", "--since", "1h"])
        .await;
    let place = |what: &str| {
        run.stdout
            .find(&format!("ai:cli/justin | {what} | vm=jp-ubuntu"))
            .unwrap()
    };
    assert!(place("second") < place("first"), "{}", run.stdout);
    let one = world
        .run(&["checkpoints", "jp-ubuntu", "--limit", "1"])
        .await;
    assert!(
        !one.stdout.contains("first") && one.stdout.contains("--limit"),
        "{}",
        one.stdout
    );
}

#[tokio::test]
async fn exit_code_1_for_what_failed() {
    let world = World::new().await;
    let run = world.run(&["guard", "paused01", "--action", "edit"]).await;
    assert_eq!(run.code, 1);
    assert!(
        run.stderr.starts_with("error[vpg_not_ready]: "),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("\nnext: "), "{}", run.stderr);
    assert_eq!(run.stdout, "");
}

#[tokio::test]
async fn exit_code_2_for_usage_and_configuration() {
    let world = World::new().await;
    for arguments in [
        &["guard", "jp-ubuntu"][..],
        &["unknown"],
        &["checkpoints", "jp-ubuntu", "--since", "yesterday"],
        &["checkpoints", "jp-ubuntu", "--since", "9999999d"],
        &["checkpoints", "jp-ubuntu", "--limit", "0"],
        &["guard", "jp-ubuntu", "--action", "\u{1b}\u{200b}"],
        &["guard", "jp-ubuntu", "--action", "edit", "--change", ""],
        &["guard", "jp-ubuntu", "--action", "edit", "--agent", " "],
    ] {
        let run = world.run(arguments).await;
        assert_eq!(
            (run.code, &*run.stdout),
            (2, ""),
            "{arguments:?}: {}",
            run.stderr
        );
    }
    let missing = world.path("none.json");
    let run = world
        .run(&["--config", missing.to_str().unwrap(), "find", "jp-ubuntu"])
        .await;
    assert_eq!(run.code, 2);
    assert!(
        run.stderr.contains("error[configuration]") && run.stderr.contains("none.json"),
        "{}",
        run.stderr
    );
    let unnamed = world
        .finish(
            world
                .command(&["find", "jp-ubuntu"])
                .env_remove("ZERTO_REWIND_CONFIG"),
        )
        .await;
    assert!(
        unnamed.code == 2 && unnamed.stderr.contains("ZERTO_REWIND_CONFIG"),
        "{}",
        unnamed.stderr
    );
    world.configure(json!({ "passwort": "x" }));
    let unknown = world.run(&["find", "jp-ubuntu"]).await;
    assert!(
        unknown.code == 2 && unknown.stderr.contains("passwort"),
        "{}",
        unknown.stderr
    );
}

#[tokio::test]
async fn a_negative_duration_is_told_as_one() {
    let world = World::new().await;
    let run = world
        .run(&["checkpoints", "jp-ubuntu", "--since", "-1d"])
        .await;
    assert_eq!(run.code, 2);
    assert!(
        run.stderr.contains("'-1d' for '--since <DURATION>'") && !run.stderr.contains("'-- -1"),
        "{}",
        run.stderr
    );
}

#[tokio::test]
async fn exit_code_3_for_a_recovery_without_a_terminal() {
    let world = World::new().await;
    let plain = ["recover", "jp-ubuntu", "/etc/hosts", "--at", "1"];
    for more in [None, Some("--yes")] {
        let arguments: Vec<_> = plain.into_iter().chain(more).collect();
        let run = world.run(&arguments).await;
        assert_eq!((run.code, &*run.stdout), (3, ""));
        assert!(
            run.stderr.starts_with("error[confirmation_required]: "),
            "{}",
            run.stderr
        );
        assert!(run.stderr.contains("terminal"), "{}", run.stderr);
    }
    assert!(
        world.sim.requests().is_empty(),
        "it is refused before anything is sent"
    );
}

#[tokio::test]
async fn exit_code_4_for_what_is_not_found_or_ambiguous() {
    let world = World::new().await;
    let none = world.run(&["find", "jp-ubunt"]).await;
    assert_eq!(none.code, 4);
    assert!(
        none.stderr.starts_with("error[vm_not_found]: "),
        "{}",
        none.stderr
    );
    let several = world.run(&["find", "web"]).await;
    assert_eq!(several.code, 4);
    assert!(
        several.stderr.contains("candidates:\n  - "),
        "{}",
        several.stderr
    );
    let json = world.run(&["find", "web", "--json"]).await;
    assert_eq!((json.code, &*json.stderr), (4, ""));
    assert_eq!(json.json()["error"]["code"], "vm_ambiguous");
    assert_eq!(
        json.json()["error"]["candidates"].as_array().unwrap().len(),
        2
    );
}

#[tokio::test]
async fn exit_code_5_for_a_zvm_that_can_not_be_used() {
    let world = World::new().await;
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    world.configure(json!({ "zerto_url": format!("https://{free}") }));
    let unreachable = world.run(&["find", "jp-ubuntu"]).await;
    assert_eq!(unreachable.code, 5);
    assert!(
        unreachable.stderr.starts_with("error[zvm_unreachable]: "),
        "{}",
        unreachable.stderr
    );
    world.configure(json!({ "password": "wrong-secret" }));
    let refused = world.run(&["find", "jp-ubuntu"]).await;
    assert_eq!(refused.code, 5);
    assert!(
        refused.stderr.starts_with("error[login_refused]: "),
        "{}",
        refused.stderr
    );
    assert!(!refused.stderr.contains("wrong-secret"));
}

#[cfg(unix)]
#[tokio::test]
async fn ctrl_c_in_the_middle_of_a_guard_tells_what_was_inserted() {
    for json in [false, true] {
        let world = World::new().await;
        world.sim.update(|switches| switches.tag_never_shows = true);
        let mut arguments = vec!["guard", "jp-ubuntu", "--action", "edit"];
        arguments.extend(json.then_some("--json"));
        let child = world.command(&arguments).spawn().unwrap();
        world
            .sim
            .wait_for(|zvm| zvm.answered("POST", "/checkpoints") == 1)
            .await;
        let begun = Instant::now();
        support::interrupt(&child);
        let run = Run::of(child.wait_with_output().await.unwrap());
        assert_eq!(run.code, 130, "{}", run.stderr);
        assert!(begun.elapsed() < Duration::from_secs(5));
        if json {
            assert_eq!(run.json()["error"]["code"], "cancelled");
            assert_eq!(
                run.json()["error"]["done"][0]["kind"],
                "inserted_not_listed"
            );
        } else {
            assert!(
                run.stderr.starts_with("interrupted[cancelled]: "),
                "{}",
                run.stderr
            );
            assert!(
                run.stderr
                    .contains("not listed yet: tag \"ai:cli/justin | edit"),
                "{}",
                run.stderr
            );
        }
    }
}

#[tokio::test]
async fn colours_only_where_they_are_wanted() {
    let world = World::new().await;
    let find = ["find", "jp-ubuntu"];
    let plain = world.run(&find).await;
    assert!(!plain.stdout.contains('\u{1b}'));
    let forced = world
        .finish(world.command(&find).env("CLICOLOR_FORCE", "1"))
        .await;
    assert!(forced.stdout.contains("\u{1b}[1m"), "{:?}", forced.stdout);
    let refused = world
        .finish(
            world
                .command(&find)
                .env("CLICOLOR_FORCE", "1")
                .env("NO_COLOR", "1"),
        )
        .await;
    assert!(
        !refused.stdout.contains('\u{1b}'),
        "NO_COLOR wins: {:?}",
        refused.stdout
    );
}

#[tokio::test]
async fn what_comes_from_a_zvm_can_not_steer_the_terminal() {
    let mut scenario = Scenario::fast();
    scenario.vpg_mut("jp-ubuntu").unwrap().name = "evil\u{1b}[2J\u{9b}31m\u{202e}vpg".into();
    let world = World::with(scenario).await;
    for arguments in [
        &["find", "jp-ubuntu"][..],
        &["find", "jp-ubuntu", "--json"],
        &["guard", "jp-ubuntu", "-a", "x\u{202e}y"],
    ] {
        let run = world.run(arguments).await;
        let printed = format!("{}{}", run.stdout, run.stderr);
        assert!(printed.contains("evil"), "{printed}");
        assert!(
            !printed.contains(['\u{1b}', '\u{9b}', '\u{202e}']),
            "{printed:?}"
        );
    }
}

#[tokio::test]
async fn a_reader_that_has_gone_is_no_error() {
    let world = World::new().await;
    let mut child = world.command(&["find", "jp-ubuntu"]).spawn().unwrap();
    drop(child.stdout.take());
    let run = Run::of(child.wait_with_output().await.unwrap());
    assert_eq!((run.code, &*run.stderr), (0, ""));
}

#[tokio::test]
async fn completions_for_every_shell_name_the_commands() {
    let world = World::new().await;
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let run = world.run(&["completions", shell]).await;
        assert_eq!((run.code, &*run.stderr), (0, ""), "{shell}");
        assert!(
            run.stdout.contains("checkpoints") && run.stdout.contains("recover"),
            "{shell}"
        );
    }
}

const CATALOG: &str = r#"
version = 1

[[guard]]
server = "vmware"
tool = "vm_reconfigure*"
vm = { arg = "/vm_name" }
action = "reconfigure {{ args.vm_name }}"
when = [{ arg = "/dry_run", not_equals = true }]

[[guard]]
server = "vmware"
tool = "vm_delete"
mode = "deny"
action = "delete"
"#;

#[tokio::test]
async fn catalog_list_validate_and_test() {
    let world = World::new().await;
    let catalog = world.path("catalog.toml");
    fs::write(&catalog, CATALOG).unwrap();
    let none = world.run(&["catalog", "list"]).await;
    assert!(
        none.code == 2 && none.stderr.contains("names no catalog"),
        "{}",
        none.stderr
    );
    world.configure(json!({ "catalog": "catalog.toml" }));

    let list = world.run(&["catalog", "list"]).await;
    assert!(
        list.code == 0 && list.stdout.contains("vm_reconfigure*") && list.stdout.contains("deny"),
        "{}",
        list.stdout
    );
    let valid = world.run(&["catalog", "validate", "--json"]).await;
    assert_eq!(valid.json()["entries"].as_array().unwrap().len(), 2);

    let test = async |tool: &str, arguments: &str| {
        let tool = format!("vmware/{tool}");
        world
            .run(&["--json", "catalog", "test", &tool, arguments])
            .await
            .json()
    };
    let listed = test("vm_reconfigure_cpu", r#"{"vm_name":"app01"}"#).await;
    assert_eq!(
        (&listed["decision"], &listed["vms"][0], &listed["action"]),
        (
            &json!("guard"),
            &json!("app01"),
            &json!("reconfigure app01")
        )
    );
    let tag = listed["tags"][0].as_str().unwrap();
    assert!(
        tag.starts_with("ai:some-agent | reconfigure app01 | vm=app01 | change=chg-"),
        "{tag}"
    );
    assert_eq!(
        test(
            "vm_reconfigure_cpu",
            r#"{"vm_name":"app01","dry_run":true}"#
        )
        .await["decision"],
        "pass_through"
    );
    assert_eq!(test("vm_list", "{}").await["decision"], "pass_through");
    assert_eq!(test("vm_delete", "{}").await["decision"], "refuse");
    assert_eq!(
        test("vm_reconfigure_cpu", "{}").await["decision"],
        "refuse",
        "without a VM nothing can be guarded"
    );

    let elsewhere = world
        .run(&[
            "catalog",
            "test",
            "proxmox/vm_reconfigure",
            r#"{"vm_name":"app01"}"#,
        ])
        .await;
    assert!(
        elsewhere.stdout.contains("pass through"),
        "{}",
        elsewhere.stdout
    );
    let mut from_stdin = world.command(&["catalog", "test", "vm_reconfigure", "-"]);
    let mut child = from_stdin.stdin(Stdio::piped()).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(br#"{"vm_name":"app01"}"#)
        .await
        .unwrap();
    let run = Run::of(child.wait_with_output().await.unwrap());
    assert!(
        run.code == 0 && run.stdout.contains("app01"),
        "{}",
        run.stderr
    );
    let bad = world.run(&["catalog", "test", "x", "[1]"]).await;
    assert!(
        bad.code == 2 && bad.stderr.contains("JSON object"),
        "{}",
        bad.stderr
    );

    fs::write(
        &catalog,
        CATALOG.replace("tool = \"vm_delete\"", "tol = \"vm_delete\""),
    )
    .unwrap();
    let mistake = world
        .run(&["catalog", "validate", catalog.to_str().unwrap()])
        .await;
    assert_eq!(mistake.code, 2);
    assert!(
        mistake.stderr.contains("error[catalog_unusable]")
            && mistake.stderr.contains("catalog.toml:13"),
        "{}",
        mistake.stderr
    );
    assert!(world.sim.requests().is_empty(), "a catalog needs no ZVM");
}

#[tokio::test]
async fn other_credentials_than_the_password_work() {
    let world = World::new().await;
    let Credentials {
        client_id,
        client_secret,
        ..
    } = world.sim.credentials().clone();
    let config = json!({
        "zerto_url": world.sim.url(), "client_id": client_id, "client_secret": client_secret, "state_dir": world.path("state"),
    });
    world.write_config(&config.to_string());
    let run = world.run(&["find", "jp-ubuntu"]).await;
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[tokio::test]
async fn a_usage_error_with_json_is_json_on_stdout_and_text_on_stderr() {
    let world = World::new().await;
    for (arguments, named) in [
        (&["--json", "guard", "jp-ubuntu"][..], "--action"),
        (&["find", "--json"], "<VM>"),
        (&["fnd", "jp-ubuntu", "--json"], "fnd"),
        (&["find", "jp-ubuntu", "--json", "--nonsense"], "--nonsense"),
        (&["checkpoints", "x", "--since", "soon", "--json"], "soon"),
        (
            &["checkpoints", "x", "--since", "9999999d", "--json"],
            "too long",
        ),
        (&["--json"], "subcommand"),
    ] {
        let run = world.run(arguments).await;
        assert_eq!(run.code, 2, "{arguments:?}");
        let error = &run.json()["error"];
        assert_eq!(error["code"], "invalid_argument", "{arguments:?}");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains(named) && !message.contains('\n'),
            "{arguments:?}: {message}"
        );
        assert!(!error["next"].as_str().unwrap().is_empty());
        assert!(run.stderr.contains(named), "{arguments:?}: {}", run.stderr);
    }
    let help = world.run(&["find", "--help", "--json"]).await;
    assert!(
        help.code == 0 && help.stdout.contains("Usage:"),
        "{}",
        help.stdout
    );
    let value = world.run(&["find", "a", "b", "--", "--json"]).await;
    assert_eq!(
        (value.code, &*value.stdout),
        (2, ""),
        "a value is no option"
    );
}

#[tokio::test]
async fn json_is_refused_where_there_is_none() {
    let world = World::new().await;
    for command in [&["mcp"][..], &["completions", "bash"], &["demo", "--auto"]] {
        let mut arguments = command.to_vec();
        arguments.push("--json");
        let run = world.run(&arguments).await;
        assert_eq!(run.code, 2, "{command:?}");
        assert!(
            run.json()["error"]["message"]
                .as_str()
                .unwrap()
                .contains("no JSON output"),
            "{}",
            run.stdout
        );
    }
}

#[cfg(unix)]
#[tokio::test]
async fn without_user_in_the_environment_the_agent_is_named_after_the_user_id() {
    let world = World::new().await;
    let mut guard = world.command(&["guard", "jp-ubuntu", "--action", "edit", "--json"]);
    for name in ["USER", "LOGNAME", "USERNAME"] {
        guard.env_remove(name);
    }
    let run = world.finish(&mut guard).await;
    let agent = run.json()["agent"].as_str().unwrap().to_owned();
    let name = agent.strip_prefix("cli/").unwrap();
    assert!(!name.is_empty() && name != "unknown", "{agent}");
    if rustix::process::getuid().is_root() {
        assert_eq!(name, "root");
    }
}

#[tokio::test]
async fn guard_warns_of_a_configured_catalog_that_can_not_be_used() {
    let world = World::new().await;
    world.configure(json!({ "catalog": "none.toml" }));
    for arguments in [
        &["guard", "jp-ubuntu", "--action", "edit"][..],
        &["guard", "jp-ubuntu", "--action", "edit", "--json"],
    ] {
        let run = world.run(arguments).await;
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert!(
            run.stderr.starts_with("warning: ") && run.stderr.contains("none.toml"),
            "{}",
            run.stderr
        );
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_configuration_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new().await;
    let mode =
        |mode| fs::set_permissions(world.config(), fs::Permissions::from_mode(mode)).unwrap();
    for open in [0o644, 0o640, 0o604, 0o620, 0o601] {
        mode(open);
        let run = world.run(&["find", "jp-ubuntu", "--json"]).await;
        assert_eq!(run.code, 2, "{open:o}");
        let error = &run.json()["error"];
        assert_eq!(error["code"], "configuration");
        let file = world.config().display().to_string();
        assert!(
            error["message"].as_str().unwrap().contains(&file),
            "{error}"
        );
        assert!(
            error["next"]
                .as_str()
                .unwrap()
                .contains(&format!("`chmod 600 {file}`")),
            "{error}"
        );
    }
    assert!(world.sim.requests().is_empty(), "the secret was used");
    // An emergency does not wait for it.
    assert_eq!(world.run(&["stop"]).await.code, 0);
    assert_eq!(world.run(&["resume"]).await.code, 0);
    for private in [0o600, 0o400] {
        mode(private);
        let run = world.run(&["find", "jp-ubuntu", "--json"]).await;
        assert_eq!((run.code, &*run.stderr), (0, ""), "{private:o}");
    }
}

#[tokio::test]
async fn what_is_missing_is_named_with_what_to_do() {
    let world = World::new().await;
    let next = |run: &Run| run.json()["error"]["next"].as_str().unwrap().to_owned();
    let missing = world.path("none.json");
    let missing = missing.to_str().unwrap();
    let run = world
        .run(&["--json", "--config", missing, "find", "x"])
        .await;
    assert!(
        next(&run).contains(&format!("zerto-rewind --config {missing} init")),
        "{}",
        run.stdout
    );
    let mut unnamed = world.command(&["find", "x", "--json"]);
    let run = world
        .finish(unnamed.env_remove("ZERTO_REWIND_CONFIG"))
        .await;
    assert!(
        next(&run).contains("--config") && next(&run).contains("zerto-rewind init"),
        "{}",
        run.stdout
    );

    let catalog = world.path("none.toml");
    let catalog = catalog.to_str().unwrap();
    let run = world.run(&["catalog", "validate", catalog, "--json"]).await;
    assert_eq!(run.code, 2);
    assert!(
        next(&run).contains(catalog) && next(&run).contains("catalog.example.toml"),
        "{}",
        run.stdout
    );
    fs::write(catalog, "version = 2").unwrap();
    let run = world.run(&["catalog", "validate", catalog, "--json"]).await;
    assert!(
        next(&run).contains(&format!("zerto-rewind catalog validate {catalog}")),
        "{}",
        run.stdout
    );
}

#[tokio::test]
async fn the_log_is_silent_unless_it_is_asked_for() {
    let world = World::new().await;
    // A ZVM that fails now and then: the client logs that it asks again.
    let fails_once = || Fault::answer("GET", "/v1/vms", 503, Outcome::Empty);
    world.sim.add_fault(fails_once());
    let quiet = world.run(&["find", "jp-ubuntu"]).await;
    assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""));
    world.sim.add_fault(fails_once());
    let mut loud = world.command(&["find", "jp-ubuntu"]);
    let loud = world.finish(loud.env("RUST_LOG", "debug")).await;
    assert!(loud.stderr.contains("DEBUG"), "{}", loud.stderr);
}

#[tokio::test]
async fn a_state_folder_that_can_not_be_used_is_not_a_refused_login() {
    let world = World::new().await;
    world.configure(json!({ "state_dir": world.config() }));
    let run = world.run(&["find", "jp-ubuntu", "--json"]).await;
    assert_eq!(run.code, 1);
    let error = &run.json()["error"];
    assert_eq!(error["code"], "state", "{error}");
    assert!(
        error["next"].as_str().unwrap().contains("state_dir"),
        "{error}"
    );
    assert!(world.sim.requests().is_empty());
}

#[tokio::test]
async fn mistakes_in_the_configuration_name_its_file() {
    let world = World::new().await;
    let named = world.config().display().to_string();
    for (text, word) in [
        ("", "empty"),
        ("[1]", "JSON object"),
        ("5", "JSON object"),
        ("{\"zerto_url\": \"https://x\"", "EOF"),
    ] {
        world.write_config(text);
        let run = world.run(&["find", "x"]).await;
        assert_eq!(run.code, 2);
        assert!(
            run.stderr.contains(&named) && run.stderr.contains(word),
            "{}",
            run.stderr
        );
    }
    for extra in [
        json!({ "confirmation": "yes" }),
        json!({ "guests": { "a": { "ssh": "-b" } } }),
    ] {
        world.configure(extra);
        let run = world.run(&["find", "x"]).await;
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(run.stderr.contains(&named), "{}", run.stderr);
    }
    world.configure(json!({ "ca_file": world.path("none.pem") }));
    let run = world.run(&["find", "x"]).await;
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(
        run.stderr.contains("`ca_file`") && run.stderr.contains("none.pem"),
        "{}",
        run.stderr
    );
}
