//! What a person at a terminal is asked.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod support;

use std::fs;

use serde_json::json;
use support::{Run, World, terminal::Terminal};

const FILE: &str = "/home/justin/app-config.yaml";

/// A world with a guard: the checkpoint, and what the file was.
async fn guarded() -> (World, String, Vec<u8>) {
    let world = World::new().await;
    let receipt = world
        .run(&["guard", "jp-ubuntu", "--action", "edit", "--json"])
        .await
        .json();
    let file = world.sim.guest_path("jp-ubuntu", FILE).unwrap();
    let before = fs::read(&file).unwrap();
    fs::write(file, "broken").unwrap();
    let checkpoint = receipt["pins"][0]["checkpoint"]
        .as_str()
        .unwrap()
        .to_owned();
    (world, checkpoint, before)
}

#[tokio::test]
async fn recover_shows_its_plan_and_goes_on_after_a_yes() {
    let (world, checkpoint, before) = guarded().await;
    let folder = world.path("back");
    let arguments = [
        "recover",
        "jp-ubuntu",
        FILE,
        "--at",
        &checkpoint,
        "--to",
        folder.to_str().unwrap(),
        "--json",
    ];
    let (mut terminal, child) = Terminal::start(&mut world.command(&arguments), false);
    terminal.shows("Recover this? Type yes to go on:").await;
    let plan = terminal.text();
    for word in [
        "jp-ubuntu",
        &*checkpoint,
        FILE,
        "ai:cli/justin | edit",
        folder.to_str().unwrap(),
    ] {
        assert!(plan.contains(word), "{word:?} is not in {plan}");
    }
    assert!(world.sim.flr_sessions().is_empty());
    terminal.types("yes");
    let run = Run::of(child.wait_with_output().await.unwrap());
    assert_eq!(run.code, 0, "{}{}", run.stdout, terminal.end());
    assert_eq!(
        fs::read(run.json()["local_path"].as_str().unwrap()).unwrap(),
        before
    );
    assert_eq!(fs::read(folder.join("app-config.yaml")).unwrap(), before);
    assert!(world.sim.flr_sessions().is_empty());
}

#[tokio::test]
async fn recover_does_nothing_after_anything_but_a_yes() {
    let (world, checkpoint, _) = guarded().await;
    for answer in ["no", "", "y"] {
        let arguments = ["recover", "jp-ubuntu", FILE, "--at", &checkpoint];
        let (mut terminal, child) = Terminal::start(&mut world.command(&arguments), false);
        terminal.shows("Type yes to go on:").await;
        terminal.types(answer);
        let run = Run::of(child.wait_with_output().await.unwrap());
        assert_eq!((run.code, &*run.stdout), (3, ""), "{answer:?}");
        assert!(terminal.end().contains("[declined]"));
    }
    assert!(
        !world
            .sim
            .requests()
            .iter()
            .any(|request| request.is("POST", "/flrs"))
    );
}

#[tokio::test]
async fn recover_with_yes_shows_its_plan_and_does_not_ask() {
    let (world, checkpoint, before) = guarded().await;
    let arguments = ["recover", "jp-ubuntu", FILE, "--at", &checkpoint, "--yes"];
    let (terminal, child) = Terminal::start(&mut world.command(&arguments), true);
    let run = Run::of(child.wait_with_output().await.unwrap());
    let shown = terminal.end();
    assert_eq!(run.code, 0, "{shown}");
    assert!(
        shown.contains("Recover from the Zerto journal") && !shown.contains("Type yes"),
        "{shown}"
    );
    let local = world
        .path("recovered")
        .join("jp-ubuntu")
        .join(&checkpoint)
        .join("app-config.yaml");
    assert_eq!(fs::read(local).unwrap(), before);
}

#[tokio::test]
async fn ctrl_c_at_the_question_ends_it() {
    let (world, checkpoint, _) = guarded().await;
    let arguments = ["recover", "jp-ubuntu", FILE, "--at", &checkpoint];
    let (terminal, child) = Terminal::start(&mut world.command(&arguments), false);
    terminal.shows("Type yes to go on:").await;
    support::interrupt(&child);
    let run = Run::of(child.wait_with_output().await.unwrap());
    assert_eq!(run.code, 130, "{}", terminal.end());
}

#[tokio::test]
async fn a_blocked_login_is_tried_once_more_if_the_person_wants_it() {
    let world = World::new().await;
    world.configure(json!({ "password": "wrong" }));
    for _ in 0..3 {
        assert_eq!(world.run(&["find", "jp-ubuntu"]).await.code, 5);
    }
    let logins = || {
        world
            .sim
            .requests()
            .iter()
            .filter(|request| request.is("POST", "/token"))
            .count()
    };
    assert_eq!(logins(), 3);
    // Nobody to ask: nothing is sent.
    assert_eq!(world.run(&["find", "jp-ubuntu"]).await.code, 5);
    assert_eq!(logins(), 3);

    for (answer, expected) in [("no", 3), ("yes", 4)] {
        let (mut terminal, child) =
            Terminal::start(&mut world.command(&["find", "jp-ubuntu"]), true);
        terminal.shows("Try to log in once more?").await;
        terminal.types(answer);
        let run = Run::of(child.wait_with_output().await.unwrap());
        assert_eq!(run.code, 5);
        assert_eq!(logins(), expected, "{}", terminal.end());
    }
}

#[tokio::test]
async fn tables_and_colours_are_for_terminals() {
    let world = World::new().await;
    let (terminal, child) = Terminal::start(&mut world.command(&["find", "jp-ubuntu"]), true);
    assert_eq!(Run::of(child.wait_with_output().await.unwrap()).code, 0);
    let shown = terminal.end();
    assert!(
        shown.contains('─') && shown.contains("\u{1b}[1mjp-ubuntu"),
        "{shown:?}"
    );
    let mut quiet = world.command(&["find", "jp-ubuntu"]);
    let (terminal, child) = Terminal::start(quiet.env("NO_COLOR", "1"), true);
    assert_eq!(Run::of(child.wait_with_output().await.unwrap()).code, 0);
    assert!(!terminal.end().contains("\u{1b}[1m"), "NO_COLOR");
}
