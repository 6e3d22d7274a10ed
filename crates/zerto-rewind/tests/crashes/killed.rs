//! SIGKILL at each moment, then the start of another command.
//!
//! Moments are requests at the simulator: when one has arrived and was not carried out (and never is, or is after all, late), when it was
//! carried out and its answer has not left, and when its answer has left.
use crate::{
    programs::{Ended, Program, Running},
    stage::Stage,
};
use std::time::Instant;
use zvm_sim::Fault;

/// More requests than any of these programs sends.
const MANY: u32 = 60;

/// What changes something at the ZVM.
const EFFECTS: [(&str, &str); 3] = [
    ("POST", "/v1/vpgs/*/checkpoints"),
    ("POST", "/v1/flrs"),
    ("DELETE", "/v1/flrs/*"),
];

/// What becomes of the request at which a program is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It is never carried out.
    Never,
    /// It is carried out once another command has come and gone.
    Late,
    /// It was carried out; only its answer is not read.
    CarriedOut,
}

/// Kills the program when the request that the fault holds has arrived. None: it ended before.
async fn kill_at(stage: &Stage, program: Program, change: &str, fault: Fault) -> Option<Ended> {
    stage.world.sim.add_fault(fault);
    let mut running = program.start(stage, change).await;
    let ended = tokio::select! {
        () = stage.wait(|view| view.held().count() > 0) => None,
        ended = running.end() => Some(ended),
    };
    stage.world.sim.clear_faults();
    if ended.is_none() {
        running.kill().await;
    }
    ended
}

/// Another command, and another guard: everything is as if the dead one had never been.
async fn next(stage: &Stage, program: Program, change: &str, fate: Fate) {
    program.check(stage, change);
    if fate != Fate::Late {
        stage.world.sim.cut_held();
    }
    let before = stage.interrupted();
    let mut said = String::new();
    if fate == Fate::Late {
        said.push_str(&stage.find().await.stderr);
        let answered = answered(stage);
        stage.world.sim.let_go();
        stage.wait(|view| count(view) > answered).await;
    }
    let (receipt, heard) = stage.guard(&format!("after-{change}")).await;
    said.push_str(&heard);
    stage.holds(&receipt);
    let words: Vec<&str> = said.split_whitespace().collect();
    let told = words.join(" ").matches("guard was interrupted").count();
    assert_eq!(
        i64::try_from(told).unwrap(),
        stage.interrupted() - before,
        "{said}"
    );
    stage.nothing_is_left();
    program.check(stage, change);
}

fn count(view: &zvm_sim::View<'_>) -> usize {
    view.requests()
        .filter(|request| request.status.is_some())
        .count()
}

fn answered(stage: &Stage) -> usize {
    let requests = stage.world.sim.requests();
    requests
        .iter()
        .filter(|request| request.status.is_some())
        .count()
}

fn right(program: Program, ended: &Ended, moments: u32) {
    assert!(ended.right, "{program:?}: {}", ended.said);
    assert!(moments > 1, "{program:?} sent nothing");
}

/// Whatever the request. Two stages share the moments between them.
async fn when_a_request_has_arrived(program: Program, first: u32) -> u32 {
    let stage = Stage::new().await;
    for nth in (first..MANY).step_by(2) {
        let change = format!("arrived-{nth}");
        let fault = Fault {
            skip: nth,
            ..Fault::hold("", "/**")
        };
        if let Some(ended) = kill_at(&stage, program, &change, fault).await {
            right(program, &ended, nth);
            return nth / 2;
        }
        next(&stage, program, &change, Fate::Never).await;
    }
    panic!("{program:?} sends requests without end");
}

/// Requests with an effect, whose fate the dead can't know.
async fn when_the_effect_is_not_known(program: Program) -> u32 {
    let stage = Stage::new().await;
    let mut moments = 0;
    for fate in [Fate::Late, Fate::CarriedOut] {
        for (effect, (method, path)) in EFFECTS.into_iter().enumerate() {
            let fault = match fate {
                Fate::Late => Fault::hold(method, path),
                _ => Fault::hold_answer(method, path),
            };
            for nth in 0..MANY {
                let change = format!("{fate:?}-{effect}-{nth}");
                let nth = Fault {
                    skip: nth,
                    ..fault.clone()
                };
                if let Some(ended) = kill_at(&stage, program, &change, nth).await {
                    assert!(ended.right, "{program:?}: {}", ended.said);
                    break;
                }
                moments += 1;
                next(&stage, program, &change, fate).await;
            }
        }
    }
    moments
}

/// Right after an answer has left: the program is somewhere between this request and the next, which is held, so that no program is
/// over before it can be killed but for one that has nothing more to ask.
async fn when_a_request_was_answered(program: Program) -> u32 {
    let stage = Stage::new().await;
    for nth in 1..MANY {
        let change = format!("answered-{nth}");
        stage.world.sim.clear_requests();
        stage.world.sim.add_fault(Fault {
            skip: nth,
            ..Fault::hold("", "/**")
        });
        let mut running: Running = program.start(&stage, &change).await;
        let ended = tokio::select! {
            () = stage.wait(|view| count(view) >= nth as usize) => None,
            ended = running.end() => Some(ended),
        };
        stage.world.sim.clear_faults();
        match ended {
            None => running.kill().await,
            Some(ended) => {
                right(program, &ended, nth);
                if answered(&stage) < nth as usize {
                    return nth;
                }
            }
        }
        next(&stage, program, &change, Fate::Never).await;
    }
    panic!("{program:?} sends requests without end");
}

async fn walk(program: Program) {
    let begun = Instant::now();
    let (even, odd, answered, effects) = tokio::join!(
        when_a_request_has_arrived(program, 0),
        when_a_request_has_arrived(program, 1),
        when_a_request_was_answered(program),
        when_the_effect_is_not_known(program),
    );
    let arrived = even + odd;
    let seconds = begun.elapsed().as_secs_f64();
    println!("{program:?}, {seconds:.1} s: {arrived} + {answered} + {effects} moments");
    // Two inserts, or a mount and an unmount, late and carried out.
    assert_eq!(effects, 4, "{program:?}");
    assert!(
        arrived >= 8 && answered >= 8,
        "{program:?}: {arrived}, {answered}"
    );
}

macro_rules! walks {
    ($($name:ident $program:ident)+) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            walk(Program::$program).await;
        })+
    };
}

walks! {
    a_guard_is_killed_at_each_moment Guard
    a_recovery_is_killed_at_each_moment Recover
    a_server_is_killed_at_each_moment_of_a_guard McpGuard
    a_server_is_killed_at_each_moment_of_a_recovery McpRecover
    a_proxy_is_killed_at_each_moment_of_a_held_call Proxy
    a_hook_is_killed_at_each_moment Hook
    a_run_is_killed_at_each_moment Run
}
