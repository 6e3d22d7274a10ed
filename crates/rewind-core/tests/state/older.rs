//! Databases of earlier versions.
use std::fs;

use rewind_core::{
    ledger::{Filter, Ledger},
    state::State,
};
use rusqlite::Connection;

use super::{folder, intents::texts, ledger::verify};

/// The steps that earlier versions had, and rows that they wrote.
const STEPS: [(&str, &str); 5] = [
    (
        include_str!("../../src/state/schema_1.sql"),
        "INSERT INTO guard_intent VALUES (1, 1000, 'zvm:443', 'vm-1', 'ai:a | b | vm=app01 | change=c | 20260921T170829Z');
         INSERT INTO guard_intent VALUES (2, 5000, 'zvm:443', 'vm-1', 'another');
         INSERT INTO guard VALUES (1, 'zvm:443', 'a', NULL, 'c', 'VM-1', 'app01', 'ai:a | b | vm=app01 | change=c | 20260921T170829Z',
             NULL, NULL, NULL, 1000, 2000, NULL);
         INSERT INTO pin VALUES (1, 'vpg-1', 'Payroll', '1197', 1500);
         INSERT INTO pin VALUES (1, 'vpg-2', 'Web', '88', 1500);
         INSERT INTO flr_session VALUES (1, 3000, 'zvm:443', 'vm-1', 'vpg-1', '1197', 'owner-of-a-dead-process', 1);
         INSERT INTO flr_session_opened VALUES (1, 3000, 'session-1');
         INSERT INTO login (at, zvm, account, secret, event) VALUES (1, 'zvm:443', 'admin', x'00', 'attempt');",
    ),
    (
        include_str!("../../src/state/schema_2.sql"),
        "INSERT INTO listed_call VALUES (1, 900, 'zvm:443', 'o', 'owner-of-a-dead-process', 'vmware', 'vm_stop', 'd', 'a', 'c', 'proxy', NULL);
         INSERT INTO claim VALUES (1, 1, 901, 'vm-1', NULL);
         INSERT INTO claim_ended VALUES (1, 2001, 1);
         INSERT INTO call_outcome VALUES (1, 2500, 'ok');
         INSERT INTO tool_definition VALUES (1, 10, 'vmware', 'vm_stop', 'first', 's', 'd', NULL, NULL, NULL);",
    ),
    (
        include_str!("../../src/state/schema_3.sql"),
        "INSERT INTO insert_sent VALUES (1, 1100, 'zvm:443', 'vpg-1', 'ai:a | b | vm=app01 | change=c | 20260921T170829Z');
         INSERT INTO insert_settled VALUES (1, 1900, 'listed');
         INSERT INTO insert_sent VALUES (2, 5100, 'zvm:443', 'vpg-1', 'another');
         INSERT INTO flr_session_left VALUES (1, 1, 3500, 'why');",
    ),
    (
        include_str!("../../src/state/schema_4.sql"),
        "INSERT INTO certificate VALUES (1, 5, 'zvm:443', 'aa', 'first', NULL);",
    ),
    (
        include_str!("../../src/state/schema_5.sql"),
        "INSERT INTO guard_intent VALUES (3, 6000, 'zvm:443', 'vm-1', 'a third', 'owner-that-left-its-marker');
         INSERT INTO recovery_place VALUES (1, 6000, 'owner-of-a-dead-process', '/back', 'mark', NULL);
         INSERT INTO recovery_place_clean VALUES (1, 6001);
         INSERT INTO recovery_place VALUES (2, 6000, 'owner-of-a-dead-process', '/back', 'mark', NULL);",
    ),
];

#[test]
fn the_rows_of_every_earlier_version_are_in_the_ledger() {
    for version in 1..=STEPS.len() {
        let (_temp, dir) = folder();
        fs::create_dir_all(&dir).unwrap();
        #[cfg(unix)]
        fs::set_permissions(&dir, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        let database = Connection::open(dir.join("state.db")).unwrap();
        database.pragma_update(None, "journal_mode", "WAL").unwrap();
        for (step, rows) in &STEPS[..version] {
            database.execute_batch(step).unwrap();
            database.execute_batch(rows).unwrap();
        }
        database
            .pragma_update(None, "user_version", version as i64)
            .unwrap();
        drop(database);
        if version >= 5 {
            private(&dir.join("owner-that-left-its-marker"));
        }

        let state = State::open(&dir).unwrap();
        let verified = verify(&dir);
        assert!(verified.clean, "{version}: {:?}", verified.findings);
        // Logins are no part of it.
        let of_ledger = |query: &str| {
            texts(
                &dir,
                &format!("SELECT kind || row_id FROM ledger WHERE {query} ORDER BY seq"),
            )
        };
        let rows = of_ledger("kind <> 'intent_closed'").len();
        assert_eq!(rows, [7, 12, 16, 17, 21][version - 1], "{version}");
        // Nobody comes who would close them, unless their owner left its marker.
        let closed = of_ledger("seq IN (SELECT intent FROM intent_closed)");
        let nobodys = ["guard_intent2", "insert_sent2", "recovery_place2"];
        assert_eq!(closed, nobodys[..[1, 1, 2, 2, 3][version - 1]], "{version}");
        let left = usize::from(version >= 5);
        assert_eq!(verified.open_intents.interrupted, left);
        for owner in state.dead_owners().unwrap() {
            let closed = state.close_interrupted(&owner).unwrap();
            assert_eq!(closed.guards.len(), left);
        }
        let verified = verify(&dir);
        assert!(verified.clean, "{version}: {:?}", verified.findings);
        assert_eq!(verified.open_intents.interrupted, 0);
        let pins = texts(
            &dir,
            "SELECT vpg_name || ' ' || checkpoint_id FROM pin WHERE guard = 1 ORDER BY id",
        );
        assert_eq!(pins, ["Payroll 1197", "Web 88"]);
        assert_eq!(state.open_sessions("zvm:443").unwrap().len(), 1);

        // In the order of their times, each outcome with its intent.
        let guard = Ledger::of(&dir)
            .list(&Filter {
                vm: Some("app01".into()),
                ..Filter::default()
            })
            .unwrap()
            .into_iter()
            .rfind(|entry| entry.kind == "guard")
            .unwrap();
        assert_eq!(guard.at, "1970-01-01T00:00:02.000Z");
        let intent = Ledger::of(&dir).show(guard.row).unwrap().intent.unwrap();
        assert!(intent.row < guard.row && intent.kind == "guard_intent");
    }
}

/// A file as the program makes them.
fn private(file: &std::path::Path) {
    fs::write(file, "").unwrap();
    #[cfg(unix)]
    fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
}
