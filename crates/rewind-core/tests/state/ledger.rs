//! Each kind of tampering is found; what the chain can't show is shown here, too.
use std::path::{Path, PathBuf};

use rewind_core::{
    ErrorCode,
    ledger::{Filter, Finding, Ledger, Verification},
    state::{Asked, InsertOutcome, Placed, RecoveryRecord, Refusal, State},
};
use rusqlite::{Connection, types::Value as Cell};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::{folder, guard, mount};

/// A ledger with some of everything that the state's own calls write.
pub struct Written {
    _temp: TempDir,
    pub dir: PathBuf,
}

pub fn written() -> Written {
    let (temp, dir) = folder();
    let state = State::open(&dir).unwrap();
    let guard = guard();
    assert!(
        state
            .guard_intended(&guard.zvm, &guard.vm_identifier, &guard.tag)
            .unwrap()
    );
    let first = state
        .insert_sending(&guard.zvm, "vpg-1", &guard.tag)
        .unwrap();
    state.insert_settled(first, InsertOutcome::Listed).unwrap();
    state
        .insert_sending(&guard.zvm, "vpg-2", &guard.tag)
        .unwrap();
    state.record_guard(&guard).unwrap();
    state.refused(&refusal()).unwrap();
    let recovery = state.recoveries_beginning(&[recovery()]).unwrap()[0];
    let session = state.session_opening(&mount("1197")).unwrap();
    state.session_opened(session, "session-1").unwrap();
    let placing = state
        .placing(recovery, "partition#0 Ext4/etc/hosts", "/back/hosts")
        .unwrap();
    let placed = Placed {
        files: 1,
        bytes: 158,
        sha256: "ab".repeat(32),
    };
    state.placed(placing, Ok(&placed)).unwrap();
    state.session_closing(session).unwrap();
    state.session_left(session, "the ZVM refused").unwrap();
    state.session_closing(session).unwrap();
    state.session_closed(session).unwrap();
    state.recovery_ended(recovery, None).unwrap();
    Written { _temp: temp, dir }
}

pub fn recovery() -> RecoveryRecord {
    let guard = guard();
    RecoveryRecord {
        plan: "p-7k3m9x2q".into(),
        zvm: guard.zvm,
        vm_identifier: guard.vm_identifier,
        vm_name: guard.vm_name,
        vpg_identifier: "vpg-1".into(),
        vpg_name: "name of vpg-1".into(),
        checkpoint_id: "1197".into(),
        checkpoint_at: guard.started,
        tag: Some(guard.tag),
        client: Some("claude-code".into()),
        change: "chg-412".into(),
        path: "/etc/hosts".into(),
    }
}

fn refusal() -> Refusal {
    let guard = guard();
    Refusal {
        zvm: guard.zvm,
        asked: Asked::Call,
        code: ErrorCode::Denied,
        vm: Some("app01".into()),
        vm_identifier: None,
        plan: None,
        agent: None,
        client: Some("claude-code".into()),
        change: Some("chg-413".into()),
        call: guard.call,
    }
}

impl Written {
    fn verify(&self) -> Verification {
        verify(&self.dir)
    }

    fn findings(&self) -> Vec<Finding> {
        self.verify().findings
    }

    /// A database in which everything may be changed.
    fn open(&self) -> Connection {
        let database = Connection::open(self.dir.join("state.db")).unwrap();
        database
            .execute_batch("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON; PRAGMA synchronous = OFF;")
            .unwrap();
        let triggers: Vec<String> = database
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        for trigger in triggers {
            database
                .execute_batch(&format!("DROP TRIGGER {trigger}"))
                .unwrap();
        }
        database
    }

    /// Runs these statements and says what is found then.
    fn after(&self, statements: &str) -> Vec<Finding> {
        self.open().execute_batch(statements).unwrap();
        self.findings()
    }

    /// The number of the first row of this kind.
    fn row_of(&self, kind: &str) -> i64 {
        Connection::open(self.dir.join("state.db"))
            .unwrap()
            .query_row(
                "SELECT min(seq) FROM ledger WHERE kind = ?1",
                [kind],
                |row| row.get(0),
            )
            .unwrap()
    }
}

pub fn verify(dir: &Path) -> Verification {
    Ledger::of(dir).verify().unwrap()
}

fn export(dir: &Path) -> Vec<Value> {
    let mut lines = Vec::new();
    Ledger::of(dir)
        .export(&Filter::default(), |line| lines.push(line))
        .unwrap();
    lines
}

/// As the documentation has it, written anew.
fn hash_of(line: &Value) -> String {
    let mut hashed = line.clone();
    let members = hashed.as_object_mut().unwrap();
    members.remove("seq");
    members.remove("hash");
    let digest = Sha256::digest(hashed.to_string());
    rewind_core::text::hex(&digest)
}

#[test]
fn every_row_carries_the_hash_of_the_one_before() {
    let written = written();
    let lines = export(&written.dir);
    let mut prev = "0".repeat(64);
    for (line, seq) in lines.iter().zip(1..) {
        assert_eq!(line["seq"], seq);
        assert_eq!(line["prev"], prev);
        assert_eq!(line["hash"], hash_of(line), "{line}");
        prev = line["hash"].as_str().unwrap().to_owned();
    }
    let verified = written.verify();
    assert!(
        verified.clean && verified.findings.is_empty(),
        "{verified:?}"
    );
    assert_eq!(verified.rows, lines.len() as u64);
    let newest = verified.newest.unwrap();
    assert_eq!((newest.row, newest.hash), (lines.len() as i64, prev));
    assert_eq!(
        (
            verified.open_intents.under_way,
            verified.open_intents.interrupted
        ),
        (0, 0)
    );
}

#[test]
fn neither_arguments_nor_contents_are_kept() {
    let written = written();
    let lines = export(&written.dir);
    let text = lines.iter().map(Value::to_string).collect::<String>();
    // What `guard()` has as arguments.
    assert!(!text.contains(r#"{\"vm\""#) && !text.contains(r#"{"vm""#));
    let of = |kind: &str| lines.iter().find(|line| line["kind"] == kind).unwrap()["row"].clone();
    assert_eq!(of("guard")["arguments_digest"].as_str().unwrap().len(), 64);
    assert_eq!(
        of("placed"),
        json!({"placing": 1, "files": 1, "bytes": 158, "sha256": "ab".repeat(32)})
    );
    let refusal = of("refusal");
    assert_eq!(
        (&refusal["code"], &refusal["tool"]),
        (&json!("denied"), &json!("vm_reconfigure"))
    );
}

#[test]
fn whatever_is_changed_is_found_and_named() {
    let written = written();
    let database = written.open();
    let rows: Vec<(i64, String, i64)> = database
        .prepare("SELECT seq, kind, row_id FROM ledger")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let mut changed = 0;
    for (seq, kind, row) in rows {
        let columns: Vec<(String, bool)> = database
            .prepare("SELECT name, pk > 0 FROM pragma_table_info(?1)")
            .unwrap()
            .query_map([&kind], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let key = columns.iter().find(|(_, key)| *key).unwrap().0.clone();
        for (column, _) in columns.iter().filter(|(_, key)| !key) {
            let get = format!("SELECT {column} FROM {kind} WHERE {key} = {row}");
            let before: Cell = database.query_row(&get, [], |row| row.get(0)).unwrap();
            let set = |value: &Cell| {
                let set = format!("UPDATE {kind} SET {column} = ?1 WHERE {key} = {row}");
                database.execute(&set, [value]).unwrap();
            };
            let others = match &before {
                Cell::Integer(number) => vec![Cell::Integer(number + 1), Cell::Null],
                Cell::Text(text) => vec![
                    Cell::Text(format!("{text} ")),
                    Cell::Text(String::new()),
                    Cell::Null,
                ],
                // A null that becomes something. Which type the column has, the database says.
                Cell::Null => vec![Cell::Integer(1), Cell::Text("x".into())],
                other => panic!("{other:?}"),
            };
            for other in others {
                let set_other = format!("UPDATE {kind} SET {column} = ?1 WHERE {key} = {row}");
                if database.execute(&set_other, [&other]).is_err() {
                    continue; // NOT NULL, or another type
                }
                let what = format!("{kind} {row}");
                assert_eq!(
                    written.findings(),
                    [Finding::Changed { row: seq, what }],
                    "{column} = {other:?}"
                );
                changed += 1;
            }
            set(&before);
        }
    }
    assert!(changed > 100, "{changed}");
    assert_eq!(written.findings(), []);
}

#[test]
fn a_change_of_the_chain_itself_is_found() {
    for (set, kind) in [
        ("at = at + 1", "guard"),
        ("closes = NULL", "guard"),
        ("closes = 2", "guard"),
        ("prev = zeroblob(32)", "guard"),
        ("hash = zeroblob(32)", "guard"),
        ("hash = x'00'", "guard"),
    ] {
        let written = written();
        let row = written.row_of(kind);
        let found = written.after(&format!("UPDATE ledger SET {set} WHERE seq = {row}"));
        assert!(
            found.contains(&Finding::Changed {
                row,
                what: "guard 1".into()
            }),
            "{set}: {found:?}"
        );
    }
    let written = written();
    let row = written.row_of("guard");
    let found = written.after(&format!(
        "UPDATE ledger SET kind = 'other' WHERE seq = {row}"
    ));
    assert!(
        found.contains(&Finding::UnknownKind {
            row,
            what: "other".into()
        }),
        "{found:?}"
    );
    assert!(
        found.contains(&Finding::NotInLedger {
            what: "guard 1".into()
        }),
        "{found:?}"
    );
}

#[test]
fn a_row_that_was_removed_is_found() {
    let from_its_table = written();
    let row = from_its_table.row_of("guard");
    assert_eq!(
        from_its_table.after("DELETE FROM guard"),
        [Finding::ContentRemoved {
            row,
            what: "guard 1".into()
        }]
    );

    let from_the_ledger = written();
    assert_eq!(
        from_the_ledger.after(&format!("DELETE FROM ledger WHERE seq = {row}")),
        [
            Finding::Removed { from: row, to: row },
            Finding::NotInLedger {
                what: "guard 1".into()
            }
        ]
    );

    let from_both = written();
    let later = row + 2;
    assert_eq!(
        from_both.after(&format!(
            "DELETE FROM guard; DELETE FROM refusal; DELETE FROM recovery; DELETE FROM ledger WHERE seq BETWEEN {row} AND {later}"
        )),
        [Finding::Removed { from: row, to: later }]
    );

    let with_new_numbers = written();
    let found = with_new_numbers.after(&format!(
        "DELETE FROM guard; DELETE FROM ledger WHERE seq = {row};
         UPDATE ledger SET seq = -(seq - 1) WHERE seq > {row}; UPDATE ledger SET seq = -seq WHERE seq < 0;"
    ));
    assert_eq!(
        found,
        [Finding::Broken {
            row,
            what: "refusal 1".into()
        }]
    );

    let the_first = written();
    assert_eq!(
        the_first.after("DELETE FROM guard_intent; DELETE FROM ledger WHERE seq = 1"),
        [Finding::Removed { from: 1, to: 1 }]
    );
}

#[test]
fn a_row_that_was_inserted_is_found() {
    let into_a_table = written();
    assert_eq!(
        into_a_table.after(
            "INSERT INTO pin (guard, vpg_identifier, vpg_name, checkpoint_id, checkpoint_at) VALUES (1, 'v', 'v', '9', 1)"
        ),
        [Finding::NotInLedger { what: "pin 3".into() }]
    );

    // By somebody who knows how the hash is made, but does not make everything after it anew.
    let into_both = written();
    let after = into_both.row_of("guard");
    let before = export(&into_both.dir)[usize::try_from(after).unwrap() - 1].clone();
    let mut forged = json!({
        "at": "2026-09-21T17:08:29.000Z", "kind": "refusal", "prev": before["hash"],
        "row": {"id": 2, "zvm": "zvm:443", "asked": "guard", "code": "denied"},
    });
    forged["hash"] = hash_of(&forged).into();
    let inserted = after + 1;
    let found = into_both.after(&format!(
        "UPDATE ledger SET seq = -(seq + 1) WHERE seq > {after}; UPDATE ledger SET seq = -seq WHERE seq < 0;
         INSERT INTO refusal (id, zvm, asked, code) VALUES (2, 'zvm:443', 'guard', 'denied');
         INSERT INTO ledger (seq, at, kind, row_id, prev, hash)
             VALUES ({inserted}, 1790010509000, 'refusal', 2, x'{}', x'{}');",
        forged["prev"].as_str().unwrap(),
        forged["hash"].as_str().unwrap(),
    ));
    assert_eq!(
        found,
        [Finding::Inserted {
            row: inserted,
            what: "refusal 2".into()
        }]
    );
}

#[test]
fn rows_in_another_order_are_found() {
    let swap = |a: i64, b: i64| {
        format!(
            "UPDATE ledger SET seq = -1 WHERE seq = {a}; UPDATE ledger SET seq = {a} WHERE seq = {b};
             UPDATE ledger SET seq = {b} WHERE seq = -1;"
        )
    };
    for (a, b) in [(5, 6), (4, 9), (1, 2)] {
        let written = written();
        let moved: Vec<i64> = written
            .after(&swap(a, b))
            .into_iter()
            .map(|finding| match finding {
                Finding::Moved {
                    row, written_after, ..
                } => {
                    assert_ne!(written_after, row - 1);
                    row
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert!(
            moved.contains(&a) && moved.contains(&b),
            "{a} and {b}: {moved:?}"
        );
        assert!(
            moved.iter().all(|row| [a, a + 1, b, b + 1].contains(row)),
            "{moved:?}"
        );
    }

    // Two rows of one table that exchange what they say.
    let contents = written();
    let first = contents.row_of("pin");
    let found = contents.after("UPDATE pin SET id = 0 WHERE id = 1; UPDATE pin SET id = 1 WHERE id = 2; UPDATE pin SET id = 2 WHERE id = 0");
    let changed = |row, id| Finding::Changed {
        row,
        what: format!("pin {id}"),
    };
    assert_eq!(found, [changed(first, 1), changed(first + 1, 2)]);
}

#[test]
fn a_row_that_was_changed_together_with_its_hash_breaks_the_chain() {
    let written = written();
    let row = written.row_of("guard");
    let mut line = export(&written.dir)[usize::try_from(row).unwrap() - 1].clone();
    line["row"]["vm_name"] = "other".into();
    let hash = hash_of(&line);
    let found = written.after(&format!(
        "UPDATE guard SET vm_name = 'other'; UPDATE ledger SET hash = x'{hash}' WHERE seq = {row}"
    ));
    assert_eq!(
        found,
        [Finding::Broken {
            row: row + 1,
            what: "refusal 1".into()
        }]
    );
}

/// The limits that the documentation names.
#[test]
fn an_end_that_was_cut_off_shows_only_beside_a_note_of_the_newest_row() {
    let written = written();
    let noted = written.verify().newest.unwrap();
    let found = written.after(&format!(
        "DELETE FROM recovery_ended; DELETE FROM ledger WHERE seq = {}",
        noted.row
    ));
    assert_eq!(found, []);
    let error = Ledger::of(&written.dir).show(noted.row).unwrap_err();
    assert_eq!(error.code, ErrorCode::NotFound);
}

#[test]
fn the_list_tells_of_whom_and_what_and_can_be_narrowed() {
    let written = written();
    let ledger = Ledger::of(&written.dir);
    let kinds = |filter: Filter| -> Vec<String> {
        let mut entries = ledger.list(&filter).unwrap();
        entries.reverse();
        entries.into_iter().map(|entry| entry.kind).collect()
    };
    let headlines = [
        "intent_closed",
        "guard",
        "refusal",
        "recovery",
        "flr_session",
        "placed",
        "flr_session_left",
    ];
    assert_eq!(kinds(Filter::default()), headlines);
    assert_eq!(
        kinds(Filter {
            limit: Some(2),
            ..Filter::default()
        }),
        ["placed", "flr_session_left"]
    );
    let everything = Filter {
        everything: true,
        ..Filter::default()
    };
    assert_eq!(
        kinds(everything.clone()).len() as u64,
        written.verify().rows
    );

    let vm = |vm: &str| Filter {
        vm: Some(vm.into()),
        ..Filter::default()
    };
    let of_the_vm = [
        "guard",
        "recovery",
        "flr_session",
        "placed",
        "flr_session_left",
    ];
    assert_eq!(
        kinds(vm("JP-Ubuntu")),
        of_the_vm,
        "by the name that a guard or a recovery has"
    );
    assert_eq!(kinds(vm("VM-1")), of_the_vm, "by its identifier");
    assert_eq!(kinds(vm("app01")), ["refusal"]);
    assert_eq!(kinds(vm("none")), [""; 0]);
    let agent = |agent: &str| Filter {
        agent: Some(agent.into()),
        ..Filter::default()
    };
    assert_eq!(kinds(agent("claude")), ["guard"]);
    assert_eq!(
        kinds(agent("claude-code")),
        ["refusal", "recovery", "placed"],
        "where no agent was declared, the client"
    );
    let change = |change: &str| Filter {
        change: Some(change.into()),
        ..Filter::default()
    };
    assert_eq!(kinds(change("chg-413")), ["refusal"]);
    let since = |seconds| Filter {
        since: Some(std::time::Duration::from_secs(seconds)),
        ..Filter::default()
    };
    assert_eq!(kinds(since(3600)), headlines);

    let guard = ledger.list(&agent("claude")).unwrap().remove(0);
    assert_eq!(
        guard.what,
        "pinned checkpoint 1197 of name of vpg-1, checkpoint 88 of name of vpg-2"
    );
    let placed = ledger.list(&agent("claude-code")).unwrap().remove(0);
    assert_eq!(
        placed.what,
        format!(
            "partition#0 Ext4/etc/hosts at /back/hosts: 1 file, 158 bytes, SHA-256 {}",
            "ab".repeat(32)
        )
    );
    assert_eq!(
        (&*placed.vms, placed.change_id.as_deref()),
        (&["jp-ubuntu".to_owned()][..], Some("chg-412"))
    );

    let shown = ledger.show(written.row_of("insert_sent")).unwrap();
    assert_eq!(shown.entry.kind, "insert_sent");
    assert_eq!(shown.closed_by.len(), 1);
    assert_eq!(shown.closed_by[0].what, "listed");
    let shown = ledger.show(written.row_of("guard")).unwrap();
    assert_eq!(shown.intent.unwrap().kind, "guard_intent");
    assert_eq!(shown.content["checkpoint_id"], Value::Null);
    assert_eq!(shown.content["tool"], "vm_reconfigure");
    assert_eq!(ledger.show(10_000).unwrap_err().code, ErrorCode::NotFound);
}
