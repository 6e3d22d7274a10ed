#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]
//! What the state remembers, and where it refuses to.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

#[path = "state/intents.rs"]
mod intents;
#[path = "state/ledger.rs"]
mod ledger;
#[path = "state/older.rs"]
mod older;

use jiff::Timestamp;
use rewind_core::{
    private::ForeignFile,
    state::{
        FlrMount, FolderError, GuardRecord, LoginBlocked, LoginError, LoginOutcome, PinRecord,
        State, StateError, ToolCall, arguments_digest,
    },
};
use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;

/// The folder for a process that a test has started; such a process runs one test of this file by its name.
const CHILD: &str = "REWIND_TEST_STATE_DIR";

fn folder() -> (TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("a/b/state");
    (temp, dir)
}

fn child(test: &str, dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn mount(checkpoint: &str) -> FlrMount {
    FlrMount {
        zvm: "zvm:443".into(),
        vm_identifier: "vm-1".into(),
        vpg_identifier: "vpg-1".into(),
        checkpoint_id: checkpoint.into(),
        zvm_at: "2026-09-21T17:08:29Z".parse().unwrap(),
    }
}

fn guard() -> GuardRecord {
    let at: Timestamp = "2026-09-21T17:08:29Z".parse().unwrap();
    let pin = |vpg: &str, id: &str| PinRecord {
        vpg_identifier: vpg.into(),
        vpg_name: format!("name of {vpg}"),
        checkpoint_id: id.into(),
        checkpoint_at: at,
    };
    GuardRecord {
        zvm: "zvm:443".into(),
        agent: "claude".into(),
        client: Some("claude-code".into()),
        change: "chg-412".into(),
        vm_identifier: "vm-1".into(),
        vm_name: "jp-ubuntu".into(),
        tag: "ai:claude | …".into(),
        call: Some(ToolCall {
            server: None,
            tool: "vm_reconfigure".into(),
            arguments_digest: arguments_digest(&json!({"vm": "jp-ubuntu"})),
        }),
        started: at,
        ended: at,
        pins: vec![pin("vpg-1", "1197"), pin("vpg-2", "88")],
        failure: None,
    }
}

#[test]
fn nothing_is_touched_before_the_first_use() {
    let (_temp, dir) = folder();
    let state = State::new(&dir);
    assert!(!dir.exists());
    state.open_sessions("zvm:443").unwrap();
    assert!(dir.join("state.db").exists());
}

#[test]
fn a_guard_and_its_pins_can_be_read_with_any_sqlite() {
    let (_temp, dir) = folder();
    let state = State::open(&dir).unwrap();
    assert_eq!(state.record_guard(&guard()).unwrap(), 1);
    assert_eq!(
        state
            .record_guard(&GuardRecord {
                call: None,
                pins: vec![],
                failure: Some("x".into()),
                ..guard()
            })
            .unwrap(),
        2
    );

    let database = Connection::open(dir.join("state.db")).unwrap();
    let row: (String, String, i64) = database
        .query_row(
            "SELECT group_concat(vpg_identifier || '/' || checkpoint_id), tool, started_at
             FROM guard JOIN pin ON pin.guard = guard.id WHERE guard.id = 1",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .unwrap();
    assert_eq!(
        row,
        (
            "vpg-1/1197,vpg-2/88".into(),
            "vm_reconfigure".into(),
            1_790_010_509_000
        )
    );
    let mode: String = database
        .query_row("PRAGMA journal_mode", [], |row| row.get(0))
        .unwrap();
    assert_eq!(mode, "wal");
}

#[test]
fn rows_are_only_added() {
    let (_temp, dir) = folder();
    let state = State::open(&dir).unwrap();
    state.record_guard(&guard()).unwrap();
    let session = state.session_opening(&mount("1")).unwrap();
    state.session_opened(session, "s").unwrap();
    state.session_closed(session).unwrap();
    state.person_asked("zvm:443", "admin").unwrap();
    let database = Connection::open(dir.join("state.db")).unwrap();
    for table in [
        "guard",
        "pin",
        "flr_session",
        "flr_session_opened",
        "flr_session_closed",
        "login",
    ] {
        let column: String = database
            .query_row(
                "SELECT name FROM pragma_table_info(?1) WHERE pk = 0 LIMIT 1",
                [table],
                |row| row.get(0),
            )
            .unwrap();
        for statement in [
            format!("UPDATE {table} SET {column} = {column}"),
            format!("DELETE FROM {table}"),
        ] {
            let error = database.execute(&statement, []).unwrap_err().to_string();
            assert!(
                error.contains("rows are only added"),
                "{statement}: {error}"
            );
        }
    }
}

#[test]
fn sessions_are_open_until_they_are_closed() {
    let (_temp, dir) = folder();
    let state = State::new(&dir);
    let first = state.session_opening(&mount("1")).unwrap();
    let second = state.session_opening(&mount("2")).unwrap();
    state.session_opened(second, "session-2").unwrap();

    let open = state.open_sessions("zvm:443").unwrap();
    assert_eq!(
        open.iter().map(|session| session.id).collect::<Vec<_>>(),
        [first, second]
    );
    assert_eq!(open[0].mount, mount("1"));
    assert_eq!(open[0].session_identifier, None);
    assert_eq!(open[1].session_identifier.as_deref(), Some("session-2"));
    assert!(open.iter().all(|session| session.owner_lives));
    assert!(state.open_sessions("other:443").unwrap().is_empty());
    assert!(
        State::new(&dir)
            .orphaned_sessions("zvm:443")
            .unwrap()
            .is_empty(),
        "seen from another handle, too"
    );

    state.session_closed(first).unwrap();
    state.session_closed(first).unwrap();
    assert_eq!(state.open_sessions("zvm:443").unwrap().len(), 1);
    drop(state);
    let orphaned = State::new(&dir).orphaned_sessions("zvm:443").unwrap();
    assert_eq!(orphaned.len(), 1);
    assert_eq!(orphaned[0].session_identifier.as_deref(), Some("session-2"));
}

#[test]
fn a_session_is_orphaned_when_its_process_is_killed() {
    if let Some(dir) = std::env::var_os(CHILD) {
        let state = State::new(dir);
        let session = state.session_opening(&mount("7")).unwrap();
        state.session_opened(session, "session-7").unwrap();
        println!("\nmounted");
        std::io::stdout().flush().unwrap();
        // Killed here.
        std::io::stdin().read_line(&mut String::new()).unwrap();
        return;
    }
    let (_temp, dir) = folder();
    let mut process = child("a_session_is_orphaned_when_its_process_is_killed", &dir);
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    assert!(
        lines
            .by_ref()
            .map_while(Result::ok)
            .any(|line| line == "mounted")
    );
    let state = State::new(&dir);
    assert_eq!(state.open_sessions("zvm:443").unwrap().len(), 1);
    assert!(state.orphaned_sessions("zvm:443").unwrap().is_empty());

    process.kill().unwrap();
    process.wait().unwrap();
    let orphaned = state.orphaned_sessions("zvm:443").unwrap();
    assert_eq!(orphaned.len(), 1);
    assert_eq!(orphaned[0].mount, mount("7"));
    assert_eq!(state.orphaned_sessions("zvm:443").unwrap(), orphaned);
    state.session_closed(orphaned[0].id).unwrap();
    assert!(state.open_sessions("zvm:443").unwrap().is_empty());
}

/// What the ZVM's realm would see of one process with a wrong password: it goes on as long as waiting is of use.
fn log_in_with_a_wrong_password(state: &State) -> usize {
    let mut sent = 0;
    loop {
        match state.login_permitted("zvm:443", "admin", &"wrong".into()) {
            Ok(attempt) => {
                sent += 1;
                std::thread::sleep(Duration::from_millis(30)); // the ZVM's answer takes a while
                state.login_ended(attempt, LoginOutcome::Refused).unwrap();
            }
            Err(LoginError::Blocked(LoginBlocked::Busy { retry_after })) => {
                std::thread::sleep(retry_after / 10)
            }
            Err(LoginError::Blocked(_)) => return sent,
            Err(error) => panic!("{error}"),
        }
    }
}

/// No login was sent while another was under way or within a second of its refusal, and there were three at most.
fn assert_spaced(dir: &Path, sent: usize) {
    assert!((1..=3).contains(&sent), "{sent}");
    let database = Connection::open(dir.join("state.db")).unwrap();
    let quick: i64 = database
        .query_row(
            "SELECT count(*) FROM login a JOIN login o ON o.event = 'refused' AND o.refers < a.id
             WHERE a.event = 'attempt' AND a.at < o.at + 1000",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(quick, 0);
}

#[test]
fn sixteen_processes_with_a_wrong_password_do_not_lock_the_account() {
    if let Some(dir) = std::env::var_os(CHILD) {
        // All begin at once.
        std::io::stdin().read_line(&mut String::new()).unwrap();
        println!("\nsent {}", log_in_with_a_wrong_password(&State::new(dir)));
        return;
    }
    let (_temp, dir) = folder();
    let test = "sixteen_processes_with_a_wrong_password_do_not_lock_the_account";
    let mut processes: Vec<_> = (0..16).map(|_| child(test, &dir)).collect();
    for process in &mut processes {
        process.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }
    let mut sent = 0;
    for process in processes {
        let output = process.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}");
        let count = text
            .lines()
            .find_map(|line| line.strip_prefix("sent "))
            .unwrap();
        sent += count.parse::<usize>().unwrap();
    }
    assert_spaced(&dir, sent);
}

#[test]
fn handles_in_one_process_do_not_lock_the_account() {
    let (_temp, dir) = folder();
    let sent: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| log_in_with_a_wrong_password(&State::new(&dir))))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_spaced(&dir, sent);
}

#[test]
fn a_right_password_lets_everybody_in() {
    let (_temp, dir) = folder();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let state = State::new(&dir);
                loop {
                    match state.login_permitted("zvm:443", "admin", &"right".into()) {
                        Ok(attempt) => {
                            return state.login_ended(attempt, LoginOutcome::Accepted).unwrap();
                        }
                        Err(LoginError::Blocked(LoginBlocked::Busy { retry_after })) => {
                            std::thread::sleep(retry_after / 10);
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
}

#[test]
fn a_database_of_a_newer_version_is_left_alone() {
    let (_temp, dir) = folder();
    drop(State::open(&dir).unwrap());
    Connection::open(dir.join("state.db"))
        .unwrap()
        .pragma_update(None, "user_version", 99)
        .unwrap();
    let error = State::open(&dir).unwrap_err();
    assert!(matches!(error, StateError::Newer { found: 99, .. }));
    assert!(error.to_string().contains("update this program"), "{error}");
}

#[test]
fn a_damaged_database_is_an_error_that_names_it() {
    let (_temp, dir) = folder();
    drop(State::open(&dir).unwrap());
    fs::write(dir.join("state.db"), "not a database".repeat(1000)).unwrap();
    let error = State::open(&dir).unwrap_err();
    assert!(matches!(error, StateError::Database { .. }));
    assert!(error.to_string().contains("state.db"), "{error}");
}

#[test]
fn a_file_in_the_folders_place_is_refused() {
    let (temp, _) = folder();
    let file = temp.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(
        State::open(&file).unwrap_err(),
        StateError::Folder(FolderError::NotAFolder { .. })
    ));
    assert!(matches!(
        State::open(file.join("x")).unwrap_err(),
        StateError::Folder(FolderError::Io { .. })
    ));
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    #[test]
    fn the_folder_is_private() {
        let (temp, dir) = folder();
        State::open(&dir).unwrap();
        for made in ["a", "a/b", "a/b/state"] {
            assert_eq!(
                fs::metadata(temp.path().join(made)).unwrap().mode() & 0o777,
                0o700,
                "{made}"
            );
        }
    }

    #[test]
    fn a_folder_that_is_open_to_others_is_refused() {
        let (_temp, dir) = folder();
        fs::create_dir_all(&dir).unwrap();
        for mode in [0o755, 0o770, 0o701] {
            fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
            let error = State::open(&dir).unwrap_err();
            assert!(matches!(
                error,
                StateError::Folder(FolderError::OpenToOthers { .. })
            ));
            assert!(
                error.to_string().contains(&format!("mode {mode:o}"))
                    && error.next().unwrap().contains("chmod 700")
            );
        }
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
        State::open(&dir).unwrap();
    }

    #[test]
    fn a_folder_of_another_user_is_refused() {
        let (_temp, dir) = folder();
        fs::create_dir_all(&dir).unwrap();
        if std::os::unix::fs::chown(&dir, Some(12345), None).is_err() {
            eprintln!("SKIPPED: only root can give a folder away");
            return;
        }
        assert!(matches!(
            State::open(&dir).unwrap_err(),
            StateError::Folder(FolderError::ForeignOwner { owner: 12345, .. })
        ));
    }

    #[test]
    fn symlinks_are_refused() {
        let (temp, dir) = folder();
        let elsewhere = temp.path().join("elsewhere");
        drop(State::open(&elsewhere).unwrap());
        symlink(&elsewhere, temp.path().join("link")).unwrap();
        assert!(matches!(
            State::open(temp.path().join("link")).unwrap_err(),
            StateError::Folder(FolderError::Symlink { .. })
        ));

        drop(State::open(&dir).unwrap());
        fs::remove_file(dir.join("state.db")).unwrap();
        symlink(elsewhere.join("state.db"), dir.join("state.db")).unwrap();
        assert!(matches!(
            State::open(&dir).unwrap_err(),
            StateError::File(ForeignFile::Link { .. })
        ));
    }
}
