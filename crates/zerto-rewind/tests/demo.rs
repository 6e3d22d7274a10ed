//! The demo, with the human's yes given beforehand.
#![cfg(feature = "demo")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod support;

use std::{
    fs,
    time::{Duration, Instant},
};

use support::{Run, demo, is_empty, program};

#[tokio::test]
async fn tells_the_whole_story_and_leaves_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let begun = Instant::now();
    let run = Run::of(demo(temporary.path(), &["--auto"]).output().await.unwrap());
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
    for word in [
        "zerto_find_protection",
        "zerto_create_tagged_checkpoint",
        "ai:demo-agent | edit /home/justin/app-config.yaml",
        "no VPG protects it",
        "- server:",
        "zerto-rewind checkpoints jp-ubuntu",
        "confirmed=true",
        "Recover this? Type jp-ubuntu to agree: jp-ubuntu (Agreed by --auto.)",
        "158 bytes, each as before the change",
        "byte for byte",
        " demo --keep",
        "config.example.json",
    ] {
        assert!(
            run.stdout.contains(word),
            "{word:?} is not in {}",
            run.stdout
        );
    }
    assert!(!run.stdout.contains('\u{1b}'), "no styles in a pipe");
    assert!(
        is_empty(temporary.path()),
        "something is left in {}",
        temporary.path().display()
    );
}

#[tokio::test]
async fn asks_nobody_who_is_not_there() {
    let temporary = tempfile::tempdir().unwrap();
    let run = Run::of(demo(temporary.path(), &[]).output().await.unwrap());
    assert_eq!((run.code, &*run.stdout), (3, ""));
    assert!(run.stderr.contains("--auto"), "{}", run.stderr);
}

#[cfg(unix)]
#[tokio::test]
async fn stops_at_a_no_and_at_ctrl_c_and_cleans_up() {
    use support::terminal::Terminal;
    let temporary = tempfile::tempdir().unwrap();
    let (mut terminal, child) = Terminal::start(&mut demo(temporary.path(), &[]), true);
    terminal
        .shows("Recover this? Type jp-ubuntu to agree:")
        .await;
    terminal.types("yes");
    assert_eq!(Run::of(child.wait_with_output().await.unwrap()).code, 3);
    assert!(terminal.end().contains("nothing was mounted"));

    let (terminal, child) = Terminal::start(&mut demo(temporary.path(), &["--auto"]), true);
    terminal.shows("No receipt, no change.").await;
    support::interrupt(&child);
    assert_eq!(Run::of(child.wait_with_output().await.unwrap()).code, 130);
    let shown = terminal.end();
    assert!(
        shown.contains("Interrupted") && !shown.contains("WARN"),
        "{shown}"
    );
    assert!(is_empty(temporary.path()));
}

#[cfg(unix)]
#[tokio::test]
async fn keep_leaves_a_zvm_to_try_the_commands_on() {
    use support::terminal::Terminal;
    let temporary = tempfile::tempdir().unwrap();
    let (terminal, child) =
        Terminal::start(&mut demo(temporary.path(), &["--auto", "--keep"]), true);
    terminal.shows("Ctrl-C here stops the ZVM").await;
    let folder = fs::read_dir(temporary.path())
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mut find = program(
        env!("CARGO_BIN_EXE_zerto-rewind"),
        &folder.join("config.json"),
    );
    let found = Run::of(
        find.args(["find", "app01", "--json"])
            .output()
            .await
            .unwrap(),
    );
    assert_eq!(found.json()["vm"], "app01", "{}", found.stderr);
    support::interrupt(&child);
    assert_eq!(Run::of(child.wait_with_output().await.unwrap()).code, 0);
    let shown = terminal.end();
    for word in ["configuration", "the VM's file", "has stopped", "rm -r"] {
        assert!(shown.contains(word), "{word:?} is not in {shown}");
    }
    assert!(folder.join("config.json").exists());
}
