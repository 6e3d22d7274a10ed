//! The help texts are snapshots: what a person is told is seen in the diff.
#![cfg(feature = "demo")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

use std::process::Command;

fn help(program: &str, arguments: &[&str]) -> String {
    let run = Command::new(program)
        .args(arguments)
        .env("COLUMNS", "100")
        .output()
        .unwrap();
    assert!(
        run.status.success() && run.stderr.is_empty(),
        "{arguments:?}"
    );
    String::from_utf8(run.stdout).unwrap()
}

#[test]
fn every_command_says_what_it_does() {
    for command in [
        "",
        "mcp",
        "find",
        "guard",
        "checkpoints",
        "recover",
        "diff",
        "undo-restore",
        "approve",
        "deny",
        "approvals",
        "approver",
        "approver set",
        "init",
        "doctor",
        "audit",
        "trust",
        "catalog",
        "catalog test",
        "catalog scan",
        "catalog accept",
        "proxy",
        "hook",
        "install",
        "uninstall",
        "run",
        "stop",
        "resume",
        "completions",
        "demo",
    ] {
        let arguments: Vec<_> = command.split_whitespace().chain(["--help"]).collect();
        let name = format!("zerto-rewind {command}")
            .trim_end()
            .replace(' ', "-");
        insta::assert_snapshot!(name, help(env!("CARGO_BIN_EXE_zerto-rewind"), &arguments));
    }
    insta::assert_snapshot!(
        // `zerto-rewind mcp` has the name with the hyphen.
        "the-server-alone",
        help(env!("CARGO_BIN_EXE_zerto-rewind-mcp"), &["--help"])
    );
}
