//! The demo of an agent that asks nobody.
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
    path::Path,
    time::{Duration, Instant},
};

use support::{Run, demo, is_empty, program};
use tokio::process::Command;

fn rogue(temporary: &Path, arguments: &[&str]) -> Command {
    demo(temporary, &[&["rogue"], arguments].concat())
}

#[tokio::test]
async fn every_change_is_pinned_or_refused_and_comes_back() {
    let temporary = tempfile::tempdir().unwrap();
    // The user has stopped everything: the story plays all the same, and its own resume lifts nothing of theirs.
    let home = tempfile::tempdir().unwrap();
    let of_user = |command: &mut Command| {
        command
            .env("HOME", home.path())
            .env("XDG_STATE_HOME", home.path());
    };
    let in_force = async |word: &str| {
        let mut command = program(env!("CARGO_BIN_EXE_zerto-rewind"), Path::new(""));
        of_user(
            command
                .env_remove("ZERTO_REWIND_CONFIG")
                .args([word, "--json"]),
        );
        Run::of(command.output().await.unwrap()).json()
    };
    assert!(in_force("stop").await["stopped"].is_object());
    let begun = Instant::now();
    let mut story = rogue(temporary.path(), &["--auto"]);
    of_user(&mut story);
    let run = Run::of(story.output().await.unwrap());
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert!(in_force("resume").await["before"].is_object());
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(90), "{took:?}");
    for line in [
        "rogue → read_file path=\"/home/justin/app-config.yaml\" vm=\"jp-ubuntu\"",
        "0 requests, 0 checkpoints inserted",
        "ai:rogue-agent | write /home/justin/app-config.yaml |",
        "io.github.zerto-rewind/receipt",
        "moved /etc/nginx/nginx.conf to /srv/backup/nginx.conf",
        "\"lonely\" exists, but no VPG protects it",
        "/srv/data/orders.csv is there, untouched",
        "zerto-rewind is stopped since",
        "resumed; it was stopped",
        "VPG app01-archive, checkpoint",
        "VPG app01-dr, checkpoint",
        "VPG app01-local, checkpoint",
        "ai:rogue-agent | delete /home/justin/bin/deploy.sh | vm=app01 | change=",
        "Agreed by --auto",
        "/srv/app/app.db on jp-ubuntu: 65536 bytes, each as before",
        "got 4 changing calls, each after its pins were listed",
        "All four files are back from the journals, byte for byte.",
    ] {
        assert!(
            run.stdout.contains(line),
            "{line:?} is not in {}",
            run.stdout
        );
    }
    assert!(!run.stdout.contains('\u{1b}'), "no styles in a pipe");
    assert_eq!(run.stderr, "");
    assert!(is_empty(temporary.path()));
}

#[tokio::test]
async fn asks_nobody_who_is_not_there() {
    let temporary = tempfile::tempdir().unwrap();
    let run = Run::of(rogue(temporary.path(), &[]).output().await.unwrap());
    assert_eq!((run.code, &*run.stdout), (3, ""));
    assert!(run.stderr.contains("--auto"), "{}", run.stderr);
}

#[cfg(unix)]
mod at_a_terminal {
    use std::{
        io::{Read as _, Seek as _, SeekFrom, Write as _},
        path::PathBuf,
    };

    use super::{support::terminal::Terminal, *};

    /// Plays until the human is asked, does something to the stage, and agrees. The exit code, and what was shown.
    async fn with(meddle: impl FnOnce(PathBuf)) -> (i32, String) {
        let temporary = tempfile::tempdir().unwrap();
        let (mut terminal, child) = Terminal::start(&mut rogue(temporary.path(), &[]), true);
        terminal
            .shows("Recover this? Type jp-ubuntu to agree:")
            .await;
        let stage = fs::read_dir(temporary.path()).unwrap().next().unwrap();
        meddle(stage.unwrap().path());
        for vm in ["jp-ubuntu", "jp-ubuntu", "jp-ubuntu", "app01"] {
            terminal.types(vm);
        }
        let code = Run::of(child.wait_with_output().await.unwrap()).code;
        assert!(is_empty(temporary.path()));
        (code, terminal.end())
    }

    // Both at once: a story takes half a minute, and nearly all of it is waiting.
    #[tokio::test]
    async fn an_unguarded_change_and_a_byte_that_differs_are_failures() {
        let unguarded = with(|stage| {
            let mut notes = fs::OpenOptions::new()
                .append(true)
                .open(stage.join("received.jsonl"))
                .unwrap();
            let note = serde_json::json!({
                "at": jiff::Timestamp::now(),
                "order": { "tool": "delete_file", "arguments": { "vm": "jp-ubuntu", "path": "/etc/hosts" } },
            });
            writeln!(notes, "{note}").unwrap();
        });
        let damaged = with(|stage| {
            let disk = stage.join("zvm/disks/app01/1/disk.img");
            replace(&disk, b"systemctl restart app", b"systemctl restart apq");
        });
        let (unguarded, damaged) = tokio::join!(unguarded, damaged);
        for ((code, shown), why) in [
            (unguarded, "VPG jp-ubuntu had listed no pin for it"),
            (damaged, "is not what /home/justin/bin/deploy.sh was"),
        ] {
            assert_eq!(code, 1, "{shown}");
            assert!(shown.contains(why), "{shown}");
            assert!(!shown.contains("byte for byte"), "{shown}");
        }
    }

    /// Replaces a text on a disk; it has to be there, within a piece.
    fn replace(disk: &Path, old: &[u8], new: &[u8]) {
        const PIECE: usize = 1 << 20;
        let mut piece = vec![0; PIECE];
        let mut file = fs::File::options()
            .read(true)
            .write(true)
            .open(disk)
            .unwrap();
        for start in (0..).step_by(PIECE) {
            file.seek(SeekFrom::Start(start)).unwrap();
            file.read_exact(&mut piece).expect("the text is nowhere");
            // Most of the disk is a hole.
            if piece.iter().all(|byte| *byte == 0) {
                continue;
            }
            if let Some(at) = piece.windows(old.len()).position(|window| window == old) {
                file.seek(SeekFrom::Start(start + at as u64)).unwrap();
                return file.write_all(new).unwrap();
            }
        }
    }

    #[tokio::test]
    async fn ctrl_c_leaves_nothing() {
        let temporary = tempfile::tempdir().unwrap();
        let (terminal, child) = Terminal::start(&mut rogue(temporary.path(), &["--auto"]), true);
        terminal.shows("rogue → write_file").await;
        support::interrupt(&child);
        assert_eq!(Run::of(child.wait_with_output().await.unwrap()).code, 130);
        assert!(terminal.end().contains("Interrupted"));
        assert!(is_empty(temporary.path()));
    }
}
