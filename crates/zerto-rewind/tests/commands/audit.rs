//! `audit`: the ledger at the command line.
use rusqlite::Connection;
use serde_json::{Value, json};

use super::support::World;

async fn guarded() -> World {
    let world = World::new().await;
    let guard = [
        "guard",
        "jp-ubuntu",
        "--action",
        "edit",
        "--change",
        "CHG-1",
    ];
    assert_eq!(world.run(&guard).await.code, 0);
    assert_eq!(
        world
            .run(&["guard", "no-such-vm", "--action", "edit"])
            .await
            .code,
        4
    );
    world
}

fn database(world: &World) -> Connection {
    Connection::open(world.path("state/state.db")).unwrap()
}

#[tokio::test]
async fn the_list_is_newest_first_and_narrowed() {
    let world = guarded().await;
    let run = world.run(&["audit", "list"]).await;
    assert_eq!((run.code, &*run.stderr), (0, ""));
    let rows: Vec<_> = run.stdout.lines().collect();
    assert!(
        rows[0].contains("Row") && rows[0].contains("What"),
        "{}",
        run.stdout
    );
    assert!(
        rows[1].contains("refusal") && rows[1].contains("vm_not_found"),
        "{}",
        rows[1]
    );
    assert!(
        rows[2].contains("guard") && rows[2].contains("jp-ubuntu") && rows[2].contains("CHG-1"),
        "{}",
        rows[2]
    );
    assert_eq!(rows.len(), 3, "{}", run.stdout);

    let one = world.run(&["audit", "list", "--limit", "1"]).await;
    assert!(
        one.stdout.contains("raise --limit") && !one.stdout.contains("CHG-1"),
        "{}",
        one.stdout
    );
    let of_the_vm = world
        .run(&[
            "audit",
            "list",
            "--vm",
            "jp-ubuntu",
            "--agent",
            "cli/justin",
            "--since",
            "1h",
            "--all",
            "--json",
        ])
        .await;
    let kinds: Vec<_> = of_the_vm
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["kind"].clone())
        .collect();
    assert_eq!(
        kinds,
        [
            "guard",
            "pin",
            "insert_settled",
            "insert_sent",
            "guard_intent"
        ]
    );
    let none = world.run(&["audit", "list", "--change", "CHG-2"]).await;
    assert_eq!(
        (none.code, none.stdout.trim()),
        (0, "The ledger has no such row.")
    );
}

#[tokio::test]
async fn one_row_is_shown_with_its_columns_and_hashes() {
    let world = guarded().await;
    let run = world.run(&["audit", "show", "5"]).await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    for said in [
        "kind",
        "guard",
        "outcome of",
        "row 1, guard_intent",
        "row.change_id",
        "CHG-1",
        "hash",
    ] {
        assert!(run.stdout.contains(said), "{said}: {}", run.stdout);
    }
    let shown = world.run(&["audit", "show", "1", "--json"]).await.json();
    assert_eq!(shown["closed_by"][0]["row"], 5);
    assert_eq!(shown["prev"], "0".repeat(64));
    let none = world.run(&["audit", "show", "99"]).await;
    assert_eq!((none.code, none.stdout.as_str()), (4, ""));
    assert!(none.stderr.contains("no row 99"), "{}", none.stderr);
}

#[tokio::test]
async fn the_export_has_a_line_for_each_row() {
    let world = guarded().await;
    let run = world.run(&["audit", "export"]).await;
    assert_eq!((run.code, &*run.stderr), (0, ""));
    let lines: Vec<Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let seqs: Vec<_> = lines
        .iter()
        .map(|line| line["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(seqs, [1, 2, 3, 4, 5, 6]);
    for pair in lines.windows(2) {
        assert_eq!(pair[0]["hash"], pair[1]["prev"]);
    }
    let one = world.run(&["audit", "export", "--vm", "jp-ubuntu"]).await;
    assert_eq!(one.stdout.lines().count(), 5);
}

#[tokio::test]
async fn verify_is_clean_until_something_is_touched() {
    let world = guarded().await;
    let clean = world.run(&["audit", "verify"]).await;
    assert_eq!(clean.code, 0, "{}", clean.stdout);
    assert!(
        clean.stdout.contains("as it was written") && clean.stdout.contains("6 rows"),
        "{}",
        clean.stdout
    );
    assert_eq!(
        world.run(&["audit", "verify", "--json"]).await.json()["clean"],
        true
    );

    let database = database(&world);
    database
        .execute_batch("DROP TRIGGER guard_kept; UPDATE guard SET agent = 'somebody else'")
        .unwrap();
    let run = world.run(&["audit", "verify"]).await;
    assert_eq!((run.code, &*run.stderr), (1, ""));
    assert!(
        run.stdout.contains("row 5 (guard 1) was changed"),
        "{}",
        run.stdout
    );
    let report = world.run(&["audit", "verify", "--json"]).await;
    assert_eq!(report.code, 1);
    let report = report.json();
    assert_eq!(report["clean"], false);
    assert_eq!(
        report["findings"],
        json!([{"finding": "changed", "row": 5, "what": "guard 1"}])
    );
    assert_eq!(report["newest"]["row"], 6);
}

#[tokio::test]
async fn verify_compares_with_the_journal() {
    let world = guarded().await;
    let run = world.run(&["audit", "verify", "--journal"]).await;
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert!(
        run.stdout.contains("VPG jp-ubuntu") && run.stdout.contains("1 pin listed"),
        "{}",
        run.stdout
    );

    // The end cut off: the chain can't show it, the journal can.
    let database = database(&world);
    database
        .execute_batch(
            "PRAGMA foreign_keys = OFF; DROP TRIGGER ledger_stays; DROP TRIGGER guard_stays; DROP TRIGGER pin_stays;
             DROP TRIGGER guard_intent_stays; DROP TRIGGER insert_sent_stays; DROP TRIGGER insert_settled_stays; DROP TRIGGER refusal_stays;
             DELETE FROM ledger; DELETE FROM pin; DELETE FROM guard; DELETE FROM guard_intent; DELETE FROM insert_sent;
             DELETE FROM insert_settled; DELETE FROM refusal;",
        )
        .unwrap();
    assert_eq!(world.run(&["audit", "verify"]).await.code, 0);
    let run = world
        .run(&["audit", "verify", "--journal", "--vm", "jp-ubuntu"])
        .await;
    assert_eq!(run.code, 1);
    assert!(
        run.stdout.contains("a tag that no row knows") && run.stdout.contains("change=CHG-1"),
        "{}",
        run.stdout
    );

    let usage = world.run(&["audit", "verify", "--vm", "jp-ubuntu"]).await;
    assert_eq!(usage.code, 2);
}

#[tokio::test]
async fn the_ledger_is_read_without_the_zvm_and_without_a_secret() {
    let world = guarded().await;
    world.configure(json!({ "password": null, "password_file": "gone" }));
    world.sim.clear_requests();
    for command in [
        &["audit", "list"] as &[&str],
        &["audit", "export"],
        &["audit", "verify"],
        &["audit", "show", "1"],
    ] {
        let run = world.run(command).await;
        assert_eq!(run.code, 0, "{command:?}: {}", run.stderr);
    }
    assert_eq!(world.sim.requests().len(), 0);
}

#[tokio::test]
async fn checkpoints_say_what_the_ledger_knows() {
    let world = guarded().await;
    let run = world.run(&["checkpoints", "jp-ubuntu"]).await;
    assert!(
        run.stdout.contains("Ledger") && run.stdout.contains("guard 5"),
        "{}",
        run.stdout
    );
    // The longest column is the last one, as no other is moved by it then.
    let headings = run.stdout.lines().find(|line| line.contains("Ledger"));
    let headings = headings.unwrap();
    assert!(headings.ends_with("Ledger"), "{headings:?}");
    let list = world
        .run(&["checkpoints", "jp-ubuntu", "--json"])
        .await
        .json();
    let listed = &list["checkpoints"][0];
    assert_eq!(listed["guard"]["row"], 5);
    assert_eq!(listed["guard"]["client"], "cli/justin");
    assert_eq!(listed["recoveries"], json!([]));
}
