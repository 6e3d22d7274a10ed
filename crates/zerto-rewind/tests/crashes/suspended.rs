//! A host that sleeps in the middle, for longer than its guard may wait for a listing; meanwhile the ZVM's token expires and its clock is not
//! where it was expected.
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use rewind_core::tag::{self, Parsed};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use zvm_sim::Fault;

use crate::{
    programs::Program,
    stage::{Stage, VM, VPGS},
};

/// More requests than any of these programs sends.
const MANY: u32 = 60;
/// How many stages share the moments between them.
const STAGES: u32 = 3;
const LISTED_TIMEOUT: &str = "1200ms";
const SLEEP: Duration = Duration::from_millis(1400);
const HOURS: i64 = 3;

/// The ZVM's time in milliseconds, when its clock is so much ahead.
fn zvm_now(ahead: i64) -> Timestamp {
    Timestamp::now() + SignedDuration::from_millis(ahead)
}

/// Sleeps at the nth request. False: there was none.
async fn sleeps_at(stage: &Stage, program: Program, nth: u32, ahead: &mut i64) -> bool {
    let change = format!("asleep-{nth}");
    let sim = &stage.world.sim;
    sim.add_fault(Fault {
        skip: nth,
        ..Fault::hold("", "/**")
    });
    let before = zvm_now(*ahead);
    let mut running = program.start(stage, &change).await;
    let ended = tokio::select! {
        () = stage.wait(|view| view.held().count() > 0) => None,
        ended = running.end() => Some(ended),
    };
    sim.clear_faults();
    let slept = ended.is_none();
    let ended = match ended {
        Some(ended) => ended,
        None => {
            running.signal(Signal::STOP);
            sim.revoke_tokens();
            *ahead = if nth.is_multiple_of(2) { HOURS } else { -HOURS } * 3_600_000;
            let clock = *ahead;
            sim.update(|switches| switches.clock_offset_ms = clock);
            sim.let_go();
            // How long it lasts is what this is about.
            tokio::time::sleep(SLEEP).await;
            running.signal(Signal::CONT);
            running.end().await
        }
    };
    assert!(
        ended.right,
        "{program:?} asleep at request {nth}: {}",
        ended.said
    );
    program.check(stage, &change);
    if program == Program::Recover {
        stage.find().await;
    } else {
        assert!(stage.is_pinned(&change), "{program:?}, {nth}");
        is_found_again(stage, &change, &[before, zvm_now(*ahead)]).await;
    }
    stage.nothing_is_left();
    slept
}

/// The tag is by the ZVM's clock, before or after it moved, and leads to its checkpoint.
async fn is_found_again(stage: &Stage, change: &str, zvm: &[Timestamp]) {
    let pin = stage.tags_of(VM, change).remove(0);
    let Parsed::Ours(tag) = tag::parse(&pin.tag) else {
        panic!("{pin:?}")
    };
    let near = |&at: &Timestamp| tag.at().duration_since(at).abs() < SignedDuration::from_secs(20);
    assert!(zvm.iter().any(near), "{pin:?} {zvm:?}");
    let words = [
        "checkpoints",
        VM,
        "--since",
        "12h",
        "--limit",
        "500",
        "--json",
    ];
    let list = stage.world.run(&words).await;
    let listed: Vec<Value> = list.json()["checkpoints"].as_array().unwrap().clone();
    for vpg in VPGS {
        let is_there = |row: &Value| row["tag"] == pin.tag.as_str() && row["vpg"] == vpg;
        assert!(listed.iter().any(is_there), "{vpg}: {}", list.stdout);
    }
}

async fn walk(program: Program) {
    let begun = Instant::now();
    let mut stages = JoinSet::new();
    for first in 0..STAGES {
        stages.spawn(async move {
            let guard =
                json!({ "listed_timeout": LISTED_TIMEOUT, "attempts": 5, "deadline": "40s" });
            let stage = Stage::with(guard).await;
            let (mut ahead, mut moments) = (0, 0);
            for nth in (first..MANY).step_by(STAGES as usize) {
                if !sleeps_at(&stage, program, nth, &mut ahead).await {
                    return moments;
                }
                moments += 1;
            }
            panic!("{program:?} sends requests without end");
        });
    }
    let moments: u32 = stages.join_all().await.iter().sum();
    println!(
        "{program:?}, {:.1} s: asleep at {moments} moments",
        begun.elapsed().as_secs_f64()
    );
    assert!(moments >= 8, "{program:?}: {moments}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_that_sleeps_at_any_moment_is_right() {
    walk(Program::Guard).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recovery_that_sleeps_at_any_moment_is_right() {
    walk(Program::Recover).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_that_sleeps_at_any_moment_of_a_held_call_is_right() {
    walk(Program::Proxy).await;
}
