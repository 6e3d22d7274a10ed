//! Every fault at every step of a guard and of a recovery: the outcome is right, or the error says what is true, within a known
//! time, and nothing stays behind. `docs/reliability.md` is made from the same rows.
//!
//! Each row has a simulated ZVM and a simulated clock of its own; the settings are the defaults. With `RELIABILITY_ROWS=text` only the
//! rows whose names contain the text are played.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod clock;
mod fault;
mod guard;
mod page;
mod play;
mod proxy;
mod recovery;
mod row;
mod step;
mod world;

use play::Wrong;
use row::Row;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// Rows that are played at once. Most of the time they wait a little for their sockets.
const AT_ONCE: usize = 12;
/// How often a row that is late is played again at most.
const AGAIN: usize = 3;

#[test]
fn every_fault_at_every_step_is_survived_or_told() {
    let sections = [guard::section(), recovery::section()];
    let wanted = std::env::var("RELIABILITY_ROWS").unwrap_or_default();
    let mut rows: Vec<Row> = sections
        .iter()
        .flat_map(row::Section::rows)
        .filter(|row| row.name().contains(&wanted))
        .collect();
    // The longest first; those of the login wait a while for a clock that is real.
    rows.sort_by_key(|row| std::cmp::Reverse((row.is_at(step::LOGIN), row.expected.within)));
    let wrong = played(&rows);
    assert!(
        wrong.is_empty(),
        "{} of {} rows:\n{}",
        wrong.len(),
        rows.len(),
        wrong.join("\n")
    );
    page::check(&sections);
}

/// What is not as expected. A row that was only late is played again, by itself: what the processor does for other rows, and for other
/// programs, passes for simulated time.
fn played(rows: &[Row]) -> Vec<String> {
    let (mut wrong, late): (Vec<_>, Vec<_>) = together(rows)
        .into_iter()
        .partition(|(_, judged)| !judged.is_late());
    for (row, _) in late {
        let mut again = judged(row);
        for _ in 1..AGAIN {
            if !again.is_late() {
                break;
            }
            again = judged(row);
        }
        if !again.is_right() {
            wrong.push((row, again));
        }
    }
    let mut wrong: Vec<_> = wrong
        .into_iter()
        .map(|(row, judged)| format!("{}: {judged}", row.name()))
        .collect();
    wrong.sort();
    wrong
}

fn judged(row: &Row) -> Wrong {
    catch_unwind(AssertUnwindSafe(|| play::play(row))).unwrap_or_else(|_| Wrong::panicked())
}

/// The rows that were not as expected.
fn together(rows: &[Row]) -> Vec<(&Row, Wrong)> {
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let play = || {
        while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            let judged = judged(row);
            if !judged.is_right() {
                wrong.lock().unwrap().push((row, judged));
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(play);
        }
    });
    wrong.into_inner().unwrap()
}
