//! `run`: guards first, then runs, with the command's exit code.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]
#![cfg(unix)]

use clap::Parser;
use rewind_core::{Call, Error, ErrorCode, GuardRequest, Receipt, stop::Stop};
use std::{
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{Arc, Mutex},
};
use zerto_rewind::{Pinner, RunArgs, guarded};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    run: RunArgs,
}

/// Pins as long as the script says so, and remembers what was asked.
#[derive(Clone, Default)]
struct Scripted {
    asked: Arc<Mutex<Vec<GuardRequest>>>,
    fails_at: Option<usize>,
}

impl Pinner for Scripted {
    async fn pin(&self, request: GuardRequest, call: &Call) -> Result<Receipt, Error> {
        let mut asked = self.asked.lock().unwrap();
        asked.push(request.clone());
        if self.fails_at == Some(asked.len()) {
            return Err(Error {
                code: ErrorCode::ZvmUnreachable,
                message: "the ZVM does not answer".into(),
                next: "See that it runs.".into(),
                candidates: vec![],
                done: vec![],
                plan_id: None,
            });
        }
        let change_id = request
            .change_id
            .unwrap_or_else(|| call.session_change_id.clone());
        Ok(Receipt {
            vm: request.vm,
            vm_identifier: "vm-1".into(),
            agent: call.caller.clone(),
            action: request.action,
            change_id,
            tag: "t".into(),
            pins: vec![],
            seconds: 0.0,
            note: String::new(),
        })
    }
}

struct Place {
    folder: tempfile::TempDir,
    pinner: Scripted,
}

impl Place {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            pinner: Scripted::default(),
        }
    }

    fn stop(&self) -> Stop {
        Stop::at(self.folder.path())
    }

    fn marker(&self) -> std::path::PathBuf {
        self.folder.path().join("ran")
    }

    /// Runs `options -- command` and returns the exit code.
    fn run(&self, options: &[&str], command: &[&str]) -> u8 {
        let words = ["run", "--vm", "jp-ubuntu", "--action", "upgrade"]
            .iter()
            .chain(options)
            .chain(&["--"])
            .chain(command)
            .copied();
        let args = Cli::try_parse_from(words).unwrap().run;
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(guarded(args, &self.pinner, &self.stop().into()))
    }

    fn touch(&self, options: &[&str]) -> u8 {
        let marker = self.marker();
        self.run(options, &["touch", marker.to_str().unwrap()])
    }

    fn asked(&self) -> Vec<GuardRequest> {
        self.pinner.asked.lock().unwrap().clone()
    }
}

#[test]
fn the_command_runs_after_the_guard_and_its_exit_code_is_ours() {
    let place = Place::new();
    assert_eq!(place.touch(&["--change", "chg-412"]), 0);
    assert!(place.marker().exists());
    let asked = place.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(
        (asked[0].vm.as_str(), asked[0].action.as_str()),
        ("jp-ubuntu", "upgrade")
    );
    assert_eq!(asked[0].change_id.as_deref(), Some("chg-412"));
    for code in [1, 3, 125, 255] {
        assert_eq!(place.run(&[], &["sh", "-c", &format!("exit {code}")]), code);
    }
}

#[test]
fn what_a_signal_ends_gives_128_and_its_number() {
    let place = Place::new();
    for (name, number) in [("TERM", 15), ("KILL", 9), ("INT", 2)] {
        assert_eq!(
            place.run(
                &[],
                &["sh", "-c", &format!("kill -{name} $$; exec sleep 60")]
            ),
            128 + number
        );
    }
}

#[test]
fn not_guarded_is_not_run() {
    let mut place = Place::new();
    place.pinner.fails_at = Some(1);
    assert_eq!(place.touch(&["--after"]), 125);
    assert!(!place.marker().exists());
    assert_eq!(place.asked().len(), 1);
}

#[test]
fn nothing_runs_and_nothing_is_pinned_while_stopped() {
    let place = Place::new();
    place.stop().engage(Some("maintenance"), "cli/ana").unwrap();
    assert_eq!(place.touch(&[]), 125);
    assert!(!place.marker().exists() && place.asked().is_empty());
    place.stop().lift().unwrap();
    assert_eq!(place.touch(&[]), 0);
}

#[test]
fn what_cannot_be_found_or_executed_has_the_codes_of_env() {
    let place = Place::new();
    assert_eq!(place.run(&[], &["/no/such/command"]), 127);
    assert_eq!(place.run(&[], &["no-such-command-anywhere"]), 127);
    let file = place.folder.path().join("text");
    std::fs::write(&file, "x").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(place.run(&[], &[file.to_str().unwrap()]), 126);
    assert_eq!(
        place.run(&[], &[place.folder.path().to_str().unwrap()]),
        126
    );
}

#[test]
fn a_second_checkpoint_follows_under_the_same_change_whatever_the_command_did() {
    let place = Place::new();
    assert_eq!(place.run(&["--after"], &["sh", "-c", "exit 7"]), 7);
    let asked = place.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[1].action, "after: upgrade");
    let change = asked[1].change_id.clone().unwrap();
    assert!(!change.is_empty() && change.len() <= 48, "{change}");

    let mut place = Place::new();
    place.pinner.fails_at = Some(2);
    assert_eq!(place.touch(&["--after"]), 1);
    assert_eq!(place.run(&["--after"], &["sh", "-c", "exit 7"]), 7);
}

#[test]
fn the_arguments_reach_the_command_as_they_are() {
    let place = Place::new();
    let out = place.folder.path().join("out");
    let script = format!("printf '%s|' \"$@\" > {}", out.display());
    assert_eq!(
        place.run(
            &[],
            &[
                "sh", "-c", &script, "sh", "a b", "--after", "--", "$HOME", ""
            ]
        ),
        0
    );
    assert_eq!(
        std::fs::read_to_string(Path::new(&out)).unwrap(),
        "a b|--after|--|$HOME||"
    );
}

#[test]
fn a_command_is_needed() {
    for words in [
        &["run", "--vm", "v", "--action", "a"][..],
        &["run", "--vm", "v", "--action", "a", "--"],
        &["run", "--", "true"],
    ] {
        assert!(Cli::try_parse_from(words).is_err());
    }
}
