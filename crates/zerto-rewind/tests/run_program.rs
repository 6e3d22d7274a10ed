//! `run` against a simulated ZVM, as a program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]
#![cfg(unix)]

mod support;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::process::Stdio;
use support::{PATIENCE, World};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    time::timeout,
};

const RUN: [&str; 5] = ["run", "--vm", "jp-ubuntu", "--action", "upgrade"];

fn words<'a>(more: &[&'a str]) -> Vec<&'a str> {
    RUN.iter().chain(more).copied().collect()
}

fn tags(world: &World) -> Vec<String> {
    let journal = world.sim.journal("jp-ubuntu");
    let tags = journal.into_iter().map(|entry| entry.tag);
    tags.filter(|tag| !tag.is_empty()).collect()
}

#[tokio::test]
async fn the_pin_is_listed_before_the_command_runs() {
    let world = World::new().await;
    let run = world
        .run(&words(&[
            "--change",
            "chg-412",
            "--",
            "sh",
            "-c",
            "echo ran; exit 7",
        ]))
        .await;
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (7, "ran\n"),
        "{}",
        run.stderr
    );
    let tags = tags(&world);
    assert_eq!(tags.len(), 1);
    assert!(
        tags[0].starts_with("ai:cli/justin | upgrade | vm=jp-ubuntu | change=chg-412 | "),
        "{tags:?}"
    );
    assert!(run.stderr.contains(&tags[0]), "{}", run.stderr);
}

#[tokio::test]
async fn a_second_pin_follows() {
    let world = World::new().await;
    let run = world.run(&words(&["--after", "--", "true"])).await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    let tags = tags(&world);
    assert_eq!(tags.len(), 2, "{tags:?}");
    let change = |tag: &str| {
        tag.split(" | ")
            .find(|field| field.starts_with("change="))
            .unwrap()
            .to_owned()
    };
    assert_eq!(change(&tags[0]), change(&tags[1]));
    assert!(
        tags.iter().any(|tag| tag.contains("| after: upgrade |")),
        "{tags:?}"
    );
}

#[tokio::test]
async fn not_guarded_is_not_run() {
    let world = World::new().await;
    let marker = world.path("ran");
    let touch = ["--", "touch", marker.to_str().unwrap()];
    for vm in ["nobody", "web", "lonely", "paused01", "cloud01"] {
        let mut words = vec!["run", "--vm", vm, "--action", "a"];
        words.extend(touch);
        let run = world.run(&words).await;
        assert_eq!(run.code, 125, "{vm}: {}", run.stderr);
        assert!(run.stderr.contains("not run: "), "{}", run.stderr);
    }
    world.configure(json!({"zerto_url": "https://127.0.0.1:1"}));
    assert_eq!(world.run(&words(&touch)).await.code, 125);
    world.configure(json!({"nonsense": 1}));
    assert_eq!(world.run(&words(&touch)).await.code, 125);
    assert!(!marker.exists());
}

#[tokio::test]
async fn standard_input_and_output_are_the_commands() {
    let world = World::new().await;
    let mut command = world.command(&words(&["--", "cat"]));
    command.stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"\x00through\xff").await.unwrap();
    drop(stdin);
    let output = timeout(PATIENCE, child.wait_with_output())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(output.stdout, b"\x00through\xff");
    assert!(output.status.success());
}

#[tokio::test]
async fn signals_reach_the_command_and_its_exit_code_is_told() {
    let world = World::new().await;
    for (signal, name) in [
        (Signal::TERM, "TERM"),
        (Signal::INT, "INT"),
        (Signal::QUIT, "QUIT"),
    ] {
        // Ends only by the signal; a second one would end it otherwise.
        let script = format!(
            "trap 'trap - {name}; echo got; exit 9' {name}; echo ready; while :; do sleep 0.02; done"
        );
        let mut command = world.command(&words(&["--", "sh", "-c", &script]));
        // Not in the foreground of a terminal, whoever runs this test.
        command.process_group(0);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap();
        assert_eq!(line.as_deref(), Some("ready"));
        let pid = Pid::from_raw(child.id().unwrap().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap();
        assert_eq!(line.as_deref(), Some("got"), "{name}");
        let status = timeout(PATIENCE, child.wait()).await.unwrap().unwrap();
        assert_eq!(status.code(), Some(9), "{name}");
    }
}

#[tokio::test]
async fn a_signal_during_the_guard_means_not_run() {
    let world = World::new().await;
    // The guard waits.
    world.sim.update(|switches| switches.tag_never_shows = true);
    let marker = world.path("ran");
    let mut command = world.command(&words(&["--", "touch", marker.to_str().unwrap()]));
    command.process_group(0);
    let child = command.spawn().unwrap();
    let pid = Pid::from_raw(child.id().unwrap().try_into().unwrap()).unwrap();
    timeout(
        PATIENCE,
        world
            .sim
            .wait_for(|view| view.answered("POST", "/checkpoints") > 0),
    )
    .await
    .unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let output = timeout(PATIENCE, child.wait_with_output())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(125),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(!marker.exists());
}
