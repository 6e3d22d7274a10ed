//! The approver's passphrase: asked for wherever a person's word counts, and shown nowhere.
use std::fs;

use serde_json::json;

use crate::{
    FILE,
    decisions::{at_terminal, end, planned_file},
    guarded,
    guest::with_guest,
    support::{self, World, terminal::Terminal},
};

const RIGHT: &str = "five small words";
const ASKED: &str = "Approver's passphrase: ";

/// Types it at the first question, and again at the second.
async fn set(world: &World, new: &str, again: &str) -> (i32, String) {
    let (mut terminal, child) = at_terminal(world, &["approver", "set"]);
    terminal.shows("New passphrase: ").await;
    assert!(!terminal.echoes());
    terminal.types(new);
    terminal.shows("Once more: ").await;
    terminal.types(again);
    end(terminal, child).await
}

/// Runs a command, says yes where it asks, and types this as the passphrase.
async fn typing(world: &World, arguments: &[&str], yes: bool, passphrase: &str) -> (i32, String) {
    let (mut terminal, child) = at_terminal(world, arguments);
    if yes {
        terminal.shows("[y/N]").await;
        terminal.types("y");
    }
    terminal.shows(ASKED).await;
    assert!(!terminal.echoes());
    terminal.types(passphrase);
    let (code, shown) = end(terminal, child).await;
    assert!(!shown.contains(passphrase), "{shown}");
    (code, shown)
}

async fn protected() -> (World, String) {
    let (world, checkpoint, _) = guarded().await;
    let (code, shown) = set(&world, RIGHT, RIGHT).await;
    assert_eq!(code, 0, "{shown}");
    assert!(
        !shown.contains(RIGHT) && shown.contains("is asked for"),
        "{shown}"
    );
    (world, checkpoint)
}

#[tokio::test]
async fn a_yes_is_not_enough_where_one_is_set() {
    let (world, checkpoint) = protected().await;
    let id = planned_file(&world, &checkpoint).await;
    let status = async || world.run(&["approvals", &id, "--json"]).await.json()["status"].clone();
    for arguments in [&["approve", &id][..], &["recover", "--plan", &id]] {
        for wrong in ["five small word", "Five small words"] {
            let (code, shown) = typing(&world, arguments, true, wrong).await;
            assert_eq!(code, 3, "{shown}");
            assert!(shown.contains("[passphrase_refused]"), "{shown}");
            assert_eq!(status().await, "waiting");
            // A right one in between, so that it does not count as trying.
            typing(&world, &["resume"], false, RIGHT).await;
        }
    }
    let (code, shown) = typing(&world, &["approve", &id], true, RIGHT).await;
    assert_eq!(code, 0, "{shown}");
    assert_eq!(status().await, "approved");
    assert!(
        !world
            .sim
            .requests()
            .iter()
            .any(|request| request.is("POST", "/flrs"))
    );
}

#[tokio::test]
async fn every_command_that_gives_a_persons_word_asks_for_it() {
    let (world, checkpoint) = protected().await;
    let catalog = world.path("catalog.toml");
    fs::write(
        &catalog,
        "version = 1\n[[guard]]\ntool = \"vm_*\"\nvm = { arg = \"/vm\" }\naction = \"x\"\n",
    )
    .unwrap();
    world.configure(json!({ "catalog": catalog }));
    let recover = ["recover", "jp-ubuntu", FILE, "--at", &checkpoint, "--yes"];
    let diff = ["diff", "jp-ubuntu", FILE, "--at", &checkpoint, "--yes"];
    let commands: [(&[&str], bool); 9] = [
        (&recover, false),
        (&recover[..5], true),
        (&diff, false),
        (&["resume"], false),
        (&["install", "claude", "--yes"], false),
        (&["uninstall", "claude", "--yes"], false),
        (&["uninstall", "claude"], true),
        (&["approver", "remove"], false),
        (&["approver", "set"], false),
    ];
    assert_eq!(world.run(&["stop"]).await.code, 0);
    for (arguments, yes) in commands {
        if arguments == ["uninstall", "claude", "--yes"] {
            // Something has to be there; as it stays, for what comes after it, too.
            let (code, shown) = typing(&world, &["install", "claude", "--yes"], false, RIGHT).await;
            assert_eq!(code, 0, "{shown}");
        }
        let (code, shown) = typing(&world, arguments, yes, "another guess").await;
        assert_eq!(code, 3, "{arguments:?}: {shown}");
        assert!(
            shown.contains("the passphrase is wrong"),
            "{arguments:?}: {shown}"
        );
        assert!(world.path("state/stop.json").exists());
        // A right one in between, so that it does not count as trying.
        typing(&world, &["resume"], false, RIGHT).await;
        assert_eq!(world.run(&["stop"]).await.code, 0);
        // Without a terminal nothing of it works.
        let run = world.run(arguments).await;
        assert_eq!(run.code, 3, "{arguments:?}: {}{}", run.stdout, run.stderr);
    }
    assert!(!world.path("recovered/jp-ubuntu").exists());
    let (code, shown) = typing(&world, &recover, false, RIGHT).await;
    assert_eq!(code, 0, "{shown}");
    let (code, shown) = typing(&world, &["approver", "remove"], false, RIGHT).await;
    assert!(
        code == 0 && shown.contains("No passphrase is asked for"),
        "{shown}"
    );
    assert_eq!(world.run(&["resume"]).await.code, 0);
}

/// An agent's shell is this user's command line, too.
#[tokio::test]
async fn at_the_command_line_each_look_is_a_decision_of_its_own() {
    let (world, checkpoint) = protected().await;
    world.sim.checkpoint_now("jp-ubuntu").await.unwrap();
    let diff = ["diff", "jp-ubuntu", FILE, "--at", &checkpoint];
    for _ in 0..2 {
        let (code, shown) = typing(&world, &diff, true, RIGHT).await;
        assert_eq!(code, 0, "{shown}");
    }
    let run = world.run(&diff).await;
    assert_eq!(run.code, 3, "{}{}", run.stdout, run.stderr);
    // Without one, an agreement holds for ten minutes.
    typing(&world, &["approver", "remove"], false, RIGHT).await;
    let (mut terminal, child) = at_terminal(&world, &diff);
    terminal.shows("[y/N]").await;
    terminal.types("y");
    let (code, shown) = end(terminal, child).await;
    assert_eq!(code, 0, "{shown}");
    let run = world.run(&diff).await;
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
}

#[tokio::test]
async fn nothing_is_written_in_a_guest_or_put_back_there_without_it() {
    let Some((world, _sshd, checkpoint, before)) = with_guest().await else {
        return;
    };
    let (code, shown) = set(&world, RIGHT, RIGHT).await;
    assert_eq!(code, 0, "{shown}");
    let file = world.sim.guest_path("jp-ubuntu", FILE).unwrap();
    let is = |content: &[u8]| assert_eq!(fs::read(&file).unwrap(), content);
    let restore = [
        "recover",
        "jp-ubuntu",
        FILE,
        "--at",
        &checkpoint,
        "--restore",
        "replace",
    ];
    let restore_yes = [&restore[..], &["--yes"]].concat();
    for (arguments, yes) in [(&restore[..], true), (&restore_yes, false)] {
        let (code, shown) = typing(&world, arguments, yes, "another guess").await;
        assert_eq!(code, 3, "{arguments:?}: {shown}");
        assert!(
            shown.contains("[passphrase_refused]"),
            "{arguments:?}: {shown}"
        );
        is(b"broken");
    }
    let (code, shown) = typing(&world, &restore, true, RIGHT).await;
    assert_eq!(code, 0, "{shown}");
    is(&before);
    let id = shown.split("undo-restore ").nth(1).unwrap();
    let id: String = id
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || *c == '-')
        .collect();
    let undo_yes = ["undo-restore", &id, "--yes"];
    for (arguments, yes) in [(&undo_yes[..2], true), (&undo_yes, false)] {
        let (code, shown) = typing(&world, arguments, yes, "another guess").await;
        assert_eq!(code, 3, "{arguments:?}: {shown}");
        assert!(
            shown.contains("[passphrase_refused]"),
            "{arguments:?}: {shown}"
        );
        assert_eq!(world.run(arguments).await.code, 3, "without a terminal");
        is(&before);
    }
    let (code, shown) = typing(&world, &undo_yes[..2], true, RIGHT).await;
    assert_eq!(code, 0, "{shown}");
    is(b"broken");
}

#[tokio::test]
async fn one_that_is_too_short_or_typed_differently_is_not_set() {
    let (world, ..) = guarded().await;
    for (new, again, said) in [
        ("short", "short", "from 8 to 1024"),
        (RIGHT, "five small works", "not the same"),
    ] {
        let (code, shown) = set(&world, new, again).await;
        assert_eq!(code, 2, "{shown}");
        assert!(shown.contains(said), "{shown}");
    }
    let (mut terminal, child) = at_terminal(&world, &["approver", "set"]);
    terminal.shows("New passphrase: ").await;
    terminal.types("");
    let (code, shown) = end(terminal, child).await;
    assert!(code == 3 && shown.contains("is empty"), "{shown}");
    assert_eq!(world.run(&["resume"]).await.code, 0);
    let run = world.run(&["approver", "set"]).await;
    assert_eq!(run.code, 3, "{}", run.stderr);
}

#[tokio::test]
async fn after_five_wrong_ones_the_right_one_has_to_wait_and_nobody_is_asked_for_it() {
    let (world, checkpoint) = protected().await;
    let id = planned_file(&world, &checkpoint).await;
    let flowing = |shown: &str| shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for last in [false, false, false, false, true] {
        let (code, shown) = typing(&world, &["approve", &id], true, "another guess").await;
        let said = flowing(&shown);
        assert!(code == 3 && said.contains("is wrong"), "{shown}");
        assert_eq!(said.contains("none is accepted before 20"), last, "{shown}");
        assert_eq!(said.contains("Wait until 20"), last, "{shown}");
        assert_eq!(said.contains("Try again"), !last, "{shown}");
    }
    let catalog = world.path("catalog.toml");
    fs::write(
        &catalog,
        "version = 1\n[[guard]]\ntool = \"vm_*\"\nvm = { arg = \"/vm\" }\naction = \"x\"\n",
    )
    .unwrap();
    world.configure(json!({ "catalog": catalog }));
    assert_eq!(world.run(&["stop"]).await.code, 0);
    let commands: [&[&str]; 5] = [
        &["approve", &id],
        &["recover", "jp-ubuntu", FILE, "--at", &checkpoint],
        &["resume"],
        &["install", "claude"],
        &["approver", "set"],
    ];
    for arguments in commands {
        // Nothing is typed: it ends by itself.
        let (terminal, child) = at_terminal(&world, arguments);
        let (code, shown) = end(terminal, child).await;
        let said = flowing(&shown);
        assert_eq!(code, 3, "{arguments:?}: {shown}");
        for words in ["none is accepted before 20", "Wait until 20"] {
            assert!(said.contains(words), "{arguments:?}: {shown}");
        }
        assert!(
            !shown.contains("[y/N]") && !shown.contains(ASKED),
            "{arguments:?}: {shown}"
        );
    }
    let run = world.run(&["doctor", "--json"]).await;
    let checks = run.json()["checks"].as_array().unwrap().clone();
    let check = checks.iter().find(|check| check["id"] == "passphrase");
    let check = check.unwrap();
    assert_eq!(check["status"], "warning", "{check}");
    assert!(
        check.to_string().contains("none is accepted before"),
        "{check}"
    );
}

#[tokio::test]
async fn the_users_counts_for_every_configuration() {
    let (world, checkpoint, _) = guarded().await;
    let mut users = world.command(&["approver", "set"]);
    users.env_remove("ZERTO_REWIND_CONFIG");
    let (mut terminal, child) = Terminal::start(&mut users, true);
    terminal.shows("New passphrase: ").await;
    terminal.types(RIGHT);
    terminal.shows("Once more: ").await;
    terminal.types(RIGHT);
    let (code, shown) = end(terminal, child).await;
    assert!(
        code == 0 && shown.contains("all programs of this user"),
        "{shown}"
    );
    // A configuration with a state folder of its own does not get around it.
    world.configure(json!({ "state_dir": world.path("fresh") }));
    let recover = ["recover", "jp-ubuntu", FILE, "--at", &checkpoint, "--yes"];
    let (code, shown) = typing(&world, &recover, false, "another guess").await;
    assert!(
        code == 3 && shown.contains("[passphrase_refused]"),
        "{shown}"
    );
    let (code, shown) = typing(&world, &recover, false, RIGHT).await;
    assert_eq!(code, 0, "{shown}");
}

#[tokio::test]
async fn ctrl_c_at_the_question_gives_the_terminal_back() {
    let (world, checkpoint) = protected().await;
    let id = planned_file(&world, &checkpoint).await;
    let (mut terminal, child) = at_terminal(&world, &["approve", &id]);
    terminal.shows("[y/N]").await;
    terminal.types("y");
    terminal.shows(ASKED).await;
    assert!(!terminal.echoes());
    support::interrupt(&child);
    let run = child.wait_with_output().await.unwrap();
    assert_eq!(run.status.code(), Some(130));
    assert!(terminal.echoes());
    terminal.end();

    let (terminal, child) = at_terminal(&world, &["resume"]);
    terminal.shows(ASKED).await;
    support::interrupt(&child);
    let run = child.wait_with_output().await.unwrap();
    assert_eq!(run.status.code(), Some(130));
    assert!(terminal.echoes());
}
