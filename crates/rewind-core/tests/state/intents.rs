//! Intents are closed, also those of processes that are killed.
use std::{
    collections::HashSet,
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::Child,
    thread,
    time::Duration,
};

use rewind_core::state::{GuardRecord, InsertOutcome, InterruptedGuard, Placed, State};
use rusqlite::Connection;

use super::{
    CHILD, child, folder, guard,
    ledger::{recovery, verify, written},
    mount,
};

const PROCESSES: usize = 8;
/// How often each of them is killed and started anew.
const ROUNDS: usize = 6;

#[test]
fn what_a_guard_does_not_know_the_end_of_is_closed_as_unknown() {
    let written = written();
    let unknown = texts(
        &written.dir,
        "SELECT s.vpg_identifier || ' ' || c.outcome FROM intent_closed c JOIN ledger l ON l.seq = c.intent
         JOIN insert_sent s ON s.id = l.row_id AND l.kind = 'insert_sent'",
    );
    assert_eq!(unknown, ["vpg-2 unknown"]);
    // The next guard still waits for it: it may be on its way.
    let state = State::new(&written.dir);
    let sent = state
        .unsettled_insert("zvm:443", "vpg-2", Duration::from_secs(60))
        .unwrap();
    let sent = sent.unwrap();
    state
        .insert_settled(sent.id, InsertOutcome::Listed)
        .unwrap();
    assert!(verify(&written.dir).clean);
}

#[test]
fn intents_of_a_process_that_died_are_interrupted_and_those_of_the_living_are_not() {
    if let Some(dir) = std::env::var_os(CHILD) {
        let state = State::new(dir);
        let recovery = state.recoveries_beginning(&[recovery()]).unwrap()[0];
        state.session_opening(&mount("7")).unwrap();
        state.placing(recovery, "x", "y").unwrap();
        state.guard_intended("zvm:443", "vm-1", "a tag").unwrap();
        state.insert_sending("zvm:443", "vpg-1", "a tag").unwrap();
        println!("\nwritten");
        std::io::stdout().flush().unwrap();
        // Killed here.
        std::io::stdin().read_line(&mut String::new()).unwrap();
        return;
    }
    let (_temp, dir) = folder();
    let living = State::open(&dir).unwrap();
    living
        .guard_intended("zvm:443", "vm-1", "another tag")
        .unwrap();
    let name =
        "intents::intents_of_a_process_that_died_are_interrupted_and_those_of_the_living_are_not";
    let mut process = child(name, &dir);
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    assert!(
        lines
            .by_ref()
            .map_while(Result::ok)
            .any(|line| line == "written")
    );
    assert!(close_dead(&dir).is_empty(), "both live");
    let open = verify(&dir).open_intents;
    assert_eq!((open.under_way, open.interrupted), (6, 0));

    process.kill().unwrap();
    process.wait().unwrap();
    let open = verify(&dir).open_intents;
    assert_eq!(
        (open.under_way, open.interrupted),
        (1, 5),
        "verify only reads"
    );
    let guards: Vec<_> = close_dead(&dir)
        .into_iter()
        .map(|guard| guard.tag)
        .collect();
    assert_eq!(guards, ["a tag"]);
    let closed = texts(
        &dir,
        "SELECT i.kind || ' ' || coalesce(c.outcome, l.kind) FROM ledger l JOIN ledger i ON i.seq = l.closes
         LEFT JOIN intent_closed c ON c.id = l.row_id AND l.kind = 'intent_closed' ORDER BY i.seq",
    );
    assert_eq!(
        closed,
        [
            "recovery interrupted",
            "flr_session interrupted",
            "placing interrupted",
            "guard_intent guard",
            "insert_sent interrupted",
        ]
    );
    assert!(close_dead(&dir).is_empty(), "once");
    let open = verify(&dir).open_intents;
    assert_eq!((open.under_way, open.interrupted), (1, 0));
    assert!(verify(&dir).clean);
    drop(living);
}

/// What one process writes until it is killed. After each step it says what has been written by then.
fn work(dir: &Path, me: &str) {
    let state = State::new(dir);
    let mut out = std::io::stdout().lock();
    let mut said = |what: &str, tag: &str| {
        writeln!(out, "\n{what} {tag}").unwrap();
        out.flush().unwrap();
    };
    for number in 0.. {
        let tag = format!("{me}-{}-{number}", std::process::id());
        let guard = GuardRecord {
            tag: tag.clone(),
            ..guard()
        };
        assert!(
            state
                .guard_intended(&guard.zvm, &guard.vm_identifier, &tag)
                .unwrap()
        );
        said("intended", &tag);
        let insert = state.insert_sending(&guard.zvm, "vpg-1", &tag).unwrap();
        if number % 3 > 0 {
            state.insert_settled(insert, InsertOutcome::Listed).unwrap();
        }
        state.record_guard(&guard).unwrap();
        said("guarded", &tag);
        let recovery = state.recoveries_beginning(&[recovery()]).unwrap()[0];
        let session = state.session_opening(&mount(&tag)).unwrap();
        state.session_opened(session, &tag).unwrap();
        let placing = state.placing(recovery, "a", "b").unwrap();
        let placed = Placed {
            files: 1,
            bytes: 1,
            sha256: tag.clone(),
        };
        let result = if number % 2 == 0 {
            Ok(&placed)
        } else {
            Err("download_incomplete")
        };
        state.placed(placing, result).unwrap();
        state.session_closing(session).unwrap();
        state.session_closed(session).unwrap();
        state.recovery_ended(recovery, None).unwrap();
        said("recovered", &tag);
    }
}

/// Numbers that are the same each time (SplitMix64).
struct Seeded(u64);

impl Seeded {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Runs one process until it has said so many things, and a moment longer; then kills it. What it said.
fn run_and_kill(dir: &Path, name: &str, steps: usize, moment: Duration) -> Vec<String> {
    let mut process: Child = child(name, dir);
    let mut lines = BufReader::new(process.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let is_said = |line: &String| line.contains("-") && line.split(' ').count() == 2;
    let mut said: Vec<_> = lines.by_ref().filter(is_said).take(steps).collect();
    // It is to be killed in the middle of anything, so there is no event to wait for.
    thread::sleep(moment);
    process.kill().unwrap();
    process.wait().unwrap();
    said.extend(lines.filter(is_said));
    said
}

#[test]
fn eight_processes_that_are_killed_at_random_leave_a_clean_ledger_with_every_intent_accounted_for()
{
    if let Some(dir) = std::env::var_os(CHILD) {
        return work(Path::new(&dir), "w");
    }
    let name = "intents::eight_processes_that_are_killed_at_random_leave_a_clean_ledger_with_every_intent_accounted_for";
    let (_temp, dir) = folder();
    drop(State::open(&dir).unwrap());
    let said: Vec<String> = thread::scope(|scope| {
        let processes: Vec<_> = (0..PROCESSES)
            .map(|process| {
                let dir = &dir;
                scope.spawn(move || {
                    let mut seeded = Seeded(412 + process as u64);
                    let mut said = Vec::new();
                    for _ in 0..ROUNDS {
                        let steps = seeded.next() % 12 + 1;
                        let moment = Duration::from_micros(seeded.next() % 20_000);
                        said.extend(run_and_kill(dir, name, steps as usize, moment));
                    }
                    said
                })
            })
            .collect();
        processes
            .into_iter()
            .flat_map(|process| process.join().unwrap())
            .collect()
    });

    let before = verify(&dir);
    assert!(before.clean, "{:?}", before.findings);
    assert_eq!(before.open_intents.under_way, 0);
    close_dead(&dir);
    let interrupted = before.open_intents.interrupted;
    assert!(interrupted > 0, "none was killed in the middle of anything");
    let after = verify(&dir);
    assert!(after.clean, "{:?}", after.findings);
    assert_eq!(after.open_intents.interrupted, 0);
    assert_eq!(after.rows, before.rows + interrupted as u64);

    // Each intent has exactly one outcome, and what a process was told to be written is there.
    let intents = texts(
        &dir,
        "SELECT count(c.seq) || ' ' || i.kind FROM ledger i LEFT JOIN ledger c ON c.closes = i.seq
         WHERE i.kind IN ('guard_intent', 'insert_sent', 'recovery', 'placing', 'flr_session', 'flr_unmount') GROUP BY i.seq",
    );
    assert!(
        intents.iter().all(|outcomes| outcomes.starts_with("1 ")),
        "{intents:?}"
    );
    let written = |query: &str| -> HashSet<String> { texts(&dir, query).into_iter().collect() };
    let intended = written("SELECT tag FROM guard_intent");
    let guarded = written("SELECT tag FROM guard");
    let recovered = written(
        "SELECT checkpoint_id FROM flr_session s JOIN flr_session_closed c ON c.session = s.id",
    );
    assert!(said.len() > PROCESSES * ROUNDS, "{}", said.len());
    for said in said {
        let (what, tag) = said.split_once(' ').unwrap();
        let rows = match what {
            "intended" => &intended,
            "guarded" => &guarded,
            "recovered" => &recovered,
            other => panic!("{other}"),
        };
        assert!(rows.contains(tag), "{said}");
    }
    let left: Vec<_> = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("owner-"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// As the next command does.
fn close_dead(dir: &Path) -> Vec<InterruptedGuard> {
    let state = State::new(dir);
    let dead = state.dead_owners().unwrap().into_iter();
    dead.flat_map(|owner| state.close_interrupted(&owner).unwrap().guards)
        .collect()
}

pub fn texts(dir: &Path, query: &str) -> Vec<String> {
    let database = Connection::open(dir.join("state.db")).unwrap();
    let mut query = database.prepare(query).unwrap();
    let rows = query.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}
