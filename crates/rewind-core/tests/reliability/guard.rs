//! A guard: what is expected of each row, and how it is judged.
use crate::{
    fault::Fault,
    play::{Wrong, troubled},
    proxy::Harm,
    row::{Case, Expected, Left, Line, Operation, Outcome, Row, Section, Table},
    step::{
        FOLLOW_TASK, LIST_VMS, LOGIN, POLL_JOURNAL, READ_CLOCK, READ_VPG, RECEIPT, SEND_INSERT,
        Step,
    },
    world::{self, VM, World},
};
use rewind_core::{
    Done, Error,
    ErrorCode::{
        InsertRefused, LoginRefused, NotListed, NotPermitted, VpgNotReady, ZvmError, ZvmUnreachable,
    },
};
use std::time::Duration;
use zvm_sim::{
    JournalEntry, Spread,
    switches::{NotReady, TaskFate},
};

/// The change of the guard that has trouble.
const CHANGE: &str = "chg-412";

const fn done(within: u64, inserts: usize) -> Expected {
    Expected {
        outcome: Outcome::Done,
        within,
        left: Left::Inserts(inserts),
    }
}

const fn fails(code: rewind_core::ErrorCode, within: u64, inserts: usize) -> Expected {
    Expected {
        outcome: Outcome::Fails(code),
        within,
        left: Left::Inserts(inserts),
    }
}

fn line(fault: Fault, once: Expected, lasting: Expected) -> Line {
    Line {
        fault,
        once,
        lasting: Some(lasting),
    }
}

fn moment(fault: Fault, once: Expected) -> Line {
    Line {
        fault,
        once,
        lasting: None,
    }
}

/// Of a question that is asked before anything is inserted.
fn question() -> Vec<Line> {
    vec![
        line(
            Fault::Network(Harm::Refuse),
            done(10, 1),
            fails(ZvmUnreachable, 10, 0),
        ),
        line(
            Fault::Network(Harm::Reset),
            done(10, 1),
            fails(ZvmUnreachable, 10, 0),
        ),
        line(
            Fault::Network(Harm::Swallow),
            done(25, 1),
            fails(ZvmUnreachable, 35, 0),
        ),
        line(
            Fault::Network(Harm::Drip),
            fails(ZvmError, 40, 0),
            fails(ZvmError, 40, 0),
        ),
        line(
            Fault::Network(Harm::CutBody),
            done(10, 1),
            fails(ZvmError, 10, 0),
        ),
        line(Fault::Answers(401), done(10, 1), fails(NotPermitted, 5, 0)),
        line(
            Fault::Answers(403),
            fails(NotPermitted, 5, 0),
            fails(NotPermitted, 5, 0),
        ),
        line(
            Fault::Answers(404),
            fails(ZvmError, 5, 0),
            fails(ZvmError, 5, 0),
        ),
        line(
            Fault::Answers(409),
            fails(ZvmError, 5, 0),
            fails(ZvmError, 5, 0),
        ),
        line(Fault::Answers(429), done(10, 1), fails(ZvmError, 10, 0)),
        line(Fault::Busy, done(10, 1), fails(ZvmError, 10, 0)),
        line(
            Fault::Answers(500),
            fails(ZvmError, 5, 0),
            fails(ZvmError, 5, 0),
        ),
        line(Fault::Answers(502), done(10, 1), fails(ZvmError, 10, 0)),
        line(Fault::Answers(503), done(10, 1), fails(ZvmError, 10, 0)),
        moment(Fault::Revoked, done(10, 1)),
        moment(Fault::Restarted, done(10, 1)),
    ]
}

fn login() -> Vec<Line> {
    vec![
        line(
            Fault::Network(Harm::Refuse),
            done(10, 1),
            fails(ZvmUnreachable, 10, 0),
        ),
        line(
            Fault::Network(Harm::Reset),
            fails(ZvmUnreachable, 5, 0),
            fails(ZvmUnreachable, 5, 0),
        ),
        line(
            Fault::Network(Harm::Swallow),
            fails(ZvmUnreachable, 35, 0),
            fails(ZvmUnreachable, 35, 0),
        ),
        line(
            Fault::Network(Harm::Drip),
            fails(ZvmError, 45, 0),
            fails(ZvmError, 45, 0),
        ),
        line(
            Fault::Network(Harm::CutBody),
            fails(ZvmError, 5, 0),
            fails(ZvmError, 5, 0),
        ),
        line(
            Fault::Answers(401),
            fails(LoginRefused, 5, 0),
            fails(LoginRefused, 5, 0),
        ),
        line(
            Fault::Answers(403),
            fails(ZvmError, 5, 0),
            fails(ZvmError, 5, 0),
        ),
        line(
            Fault::Answers(404),
            fails(ZvmError, 5, 0),
            fails(ZvmError, 5, 0),
        ),
        line(
            Fault::Answers(409),
            fails(ZvmError, 5, 0),
            fails(ZvmError, 5, 0),
        ),
        line(Fault::Answers(429), done(10, 1), fails(ZvmError, 10, 0)),
        line(Fault::Busy, done(10, 1), fails(ZvmError, 10, 0)),
        line(
            Fault::Answers(500),
            fails(ZvmError, 5, 0),
            fails(ZvmError, 5, 0),
        ),
        line(Fault::Answers(502), done(10, 1), fails(ZvmError, 10, 0)),
        line(Fault::Answers(503), done(10, 1), fails(ZvmError, 10, 0)),
        moment(Fault::Revoked, done(10, 1)),
        moment(Fault::Restarted, done(10, 1)),
    ]
}

fn insert() -> Vec<Line> {
    vec![
        line(
            Fault::Network(Harm::Refuse),
            done(10, 1),
            fails(ZvmUnreachable, 10, 0),
        ),
        line(
            Fault::Network(Harm::Reset),
            done(70, 2),
            fails(ZvmUnreachable, 75, 1),
        ),
        line(
            Fault::Network(Harm::Swallow),
            done(70, 2),
            fails(ZvmUnreachable, 75, 1),
        ),
        line(Fault::Network(Harm::Drip), done(50, 1), done(50, 1)),
        line(Fault::Network(Harm::CutBody), done(10, 1), done(10, 1)),
        line(Fault::Answers(401), done(10, 1), fails(NotPermitted, 5, 0)),
        line(
            Fault::Answers(403),
            fails(NotPermitted, 5, 0),
            fails(NotPermitted, 5, 0),
        ),
        line(
            Fault::Answers(404),
            fails(InsertRefused, 5, 0),
            fails(InsertRefused, 5, 0),
        ),
        line(
            Fault::Answers(409),
            fails(InsertRefused, 5, 0),
            fails(InsertRefused, 5, 0),
        ),
        line(
            Fault::Answers(429),
            done(10, 1),
            fails(InsertRefused, 10, 0),
        ),
        line(Fault::Busy, done(10, 1), fails(InsertRefused, 10, 0)),
        line(
            Fault::Answers(500),
            fails(InsertRefused, 5, 1),
            fails(InsertRefused, 5, 1),
        ),
        line(Fault::Answers(502), done(70, 2), fails(NotListed, 190, 3)),
        line(Fault::Answers(503), done(70, 2), fails(NotListed, 190, 3)),
        moment(Fault::Revoked, done(10, 1)),
        moment(Fault::Restarted, done(10, 1)),
    ]
}

fn task() -> Vec<Line> {
    vec![
        line(
            Fault::Network(Harm::Refuse),
            done(10, 1),
            fails(ZvmUnreachable, 75, 1),
        ),
        line(
            Fault::Network(Harm::Reset),
            done(10, 1),
            fails(ZvmUnreachable, 75, 1),
        ),
        line(
            Fault::Network(Harm::Swallow),
            done(20, 1),
            fails(ZvmUnreachable, 90, 1),
        ),
        line(Fault::Network(Harm::Drip), done(20, 1), done(45, 1)),
        line(Fault::Network(Harm::CutBody), done(10, 1), done(20, 1)),
        line(Fault::Answers(401), done(10, 1), done(10, 1)),
        line(Fault::Answers(403), done(10, 1), done(10, 1)),
        line(Fault::Answers(404), done(10, 1), done(10, 1)),
        line(Fault::Answers(409), done(10, 1), done(10, 1)),
        line(Fault::Answers(429), done(10, 1), done(20, 1)),
        line(Fault::Busy, done(10, 1), done(30, 1)),
        line(Fault::Answers(500), done(10, 1), done(10, 1)),
        line(Fault::Answers(502), done(10, 1), done(20, 1)),
        line(Fault::Answers(503), done(10, 1), done(20, 1)),
        moment(Fault::Revoked, done(10, 1)),
        moment(Fault::Restarted, done(10, 1)),
    ]
}

fn journal() -> Vec<Line> {
    vec![
        line(
            Fault::Network(Harm::Refuse),
            done(10, 1),
            fails(ZvmUnreachable, 75, 1),
        ),
        line(
            Fault::Network(Harm::Reset),
            done(10, 1),
            fails(ZvmUnreachable, 75, 1),
        ),
        line(
            Fault::Network(Harm::Swallow),
            done(20, 1),
            fails(ZvmUnreachable, 75, 1),
        ),
        line(
            Fault::Network(Harm::Drip),
            done(20, 1),
            fails(ZvmUnreachable, 80, 1),
        ),
        line(
            Fault::Network(Harm::CutBody),
            done(10, 1),
            fails(ZvmError, 75, 1),
        ),
        line(Fault::Answers(401), done(10, 1), fails(NotPermitted, 5, 1)),
        line(
            Fault::Answers(403),
            fails(NotPermitted, 5, 1),
            fails(NotPermitted, 5, 1),
        ),
        line(Fault::Answers(404), done(10, 1), fails(ZvmError, 75, 1)),
        line(Fault::Answers(409), done(10, 1), fails(ZvmError, 75, 1)),
        line(Fault::Answers(429), done(10, 1), fails(ZvmError, 75, 1)),
        line(Fault::Busy, done(10, 1), fails(ZvmError, 75, 1)),
        line(Fault::Answers(500), done(10, 1), fails(ZvmError, 75, 1)),
        line(Fault::Answers(502), done(10, 1), fails(ZvmError, 75, 1)),
        line(Fault::Answers(503), done(10, 1), fails(ZvmError, 75, 1)),
        moment(Fault::Revoked, done(10, 1)),
        moment(Fault::Restarted, done(10, 1)),
    ]
}

fn receipt() -> Vec<Line> {
    let network = [Harm::Refuse];
    let mut lines: Vec<_> = network
        .map(|harm| line(Fault::Network(harm), done(10, 1), done(10, 1)))
        .into();
    lines.push(moment(Fault::Revoked, done(10, 1)));
    lines.push(moment(Fault::Restarted, done(10, 1)));
    lines
}

fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "an insert is dropped once",
            play: (None, |world| {
                world.sim.update(|switches| switches.drop_next = 1);
            }),
            expected: done(70, 2),
        },
        Case {
            name: "an insert is dropped twice",
            play: (None, |world| {
                world.sim.update(|switches| switches.drop_next = 2);
            }),
            expected: done(130, 3),
        },
        Case {
            name: "every insert is dropped",
            play: (None, |world| {
                world.sim.update(|switches| switches.tag_never_shows = true);
            }),
            expected: fails(NotListed, 190, 3),
        },
        Case {
            name: "the tag is listed after 40 s",
            play: (None, |world| listed_after(world, 40)),
            expected: done(50, 1),
        },
        Case {
            name: "the tag is listed after 70 s, and what is inserted meanwhile is dropped",
            play: (None, |world| listed_after(world, 70)),
            expected: done(80, 2),
        },
        Case {
            name: "the insert is answered with 500, and was done",
            play: (None, |world| {
                let request = SEND_INSERT.request;
                world.sim.add_fault(zvm_sim::Fault {
                    effect: true,
                    ..zvm_sim::Fault::answer(
                        request.method,
                        request.path,
                        500,
                        zvm_sim::Outcome::Message,
                    )
                });
            }),
            expected: fails(InsertRefused, 5, 1),
        },
        Case {
            name: "the task never ends",
            play: (None, |world| task_fate(world, TaskFate::NeverEnds)),
            expected: done(10, 1),
        },
        Case {
            name: "the task fails",
            play: (None, |world| task_fate(world, TaskFate::Fails)),
            expected: fails(InsertRefused, 10, 1),
        },
        Case {
            name: "the task disappears",
            play: (None, |world| task_fate(world, TaskFate::Disappears)),
            expected: done(10, 1),
        },
        Case {
            name: "the VPG is in bitmap sync",
            play: (None, |world| sync(world, NotReady::Refused)),
            expected: fails(VpgNotReady, 5, 0),
        },
        Case {
            name: "the VPG goes into bitmap sync before the insert, which is refused",
            play: (Some(SEND_INSERT), |world| sync(world, NotReady::Refused)),
            expected: fails(InsertRefused, 5, 0),
        },
        Case {
            name: "the VPG goes into bitmap sync before the insert, whose task fails",
            play: (Some(SEND_INSERT), |world| sync(world, NotReady::TaskFails)),
            expected: fails(InsertRefused, 10, 1),
        },
        Case {
            name: "the VPG goes into bitmap sync before the insert, which is dropped",
            play: (Some(SEND_INSERT), |world| sync(world, NotReady::Dropped)),
            expected: fails(NotListed, 190, 3),
        },
        Case {
            name: "the VPG goes into bitmap sync after the insert",
            play: (Some(FOLLOW_TASK), |world| sync(world, NotReady::Refused)),
            expected: done(10, 1),
        },
    ]
}

fn listed_after(world: &World, seconds: u64) {
    let lag = Spread::millis(seconds * 1000, seconds * 1000);
    world
        .sim
        .update(|switches| switches.listing_lag = Some(lag));
}

fn task_fate(world: &World, fate: TaskFate) {
    world.sim.update(|switches| switches.task = fate);
}

fn sync(world: &World, fate: NotReady) {
    world.sim.update(|switches| {
        switches.not_ready = fate;
        switches.vpg_mut(VM).sub_status = Some("BitmapSync".into());
    });
}

pub fn section() -> Section {
    let table = |steps: &[Step], about, lines| Table {
        steps: steps.to_vec(),
        about,
        lines,
    };
    Section {
        operation: Operation::Guard,
        tables: vec![
            table(
                &[LOGIN],
                "A password goes out once. It is sent again only where surely nobody looked at it, because a realm locks accounts.",
                login(),
            ),
            table(
                &[LIST_VMS, READ_VPG, READ_CLOCK],
                "Questions are asked up to four times. Nothing has been inserted yet.",
                question(),
            ),
            table(
                &[SEND_INSERT],
                "An insert whose answer was lost is looked for in the journal for `listed_timeout` before it is sent again. What surely was not \
                 carried out (no connection, 401, 429) is sent again at once.",
                insert(),
            ),
            table(
                &[FOLLOW_TASK],
                "A task decides nothing but by failing: the journal does.",
                task(),
            ),
            table(
                &[POLL_JOURNAL],
                "While the journal can't be read nothing is inserted again. The error says that the tag was inserted, and that whether it is listed is not known.",
                journal(),
            ),
            table(
                &[RECEIPT],
                "Nothing is asked of the ZVM any more.",
                receipt(),
            ),
        ],
        cases: cases(),
    }
}

pub async fn judge(world: &World, row: &Row, wrong: &mut Wrong) {
    let guarding = async |world: &World| {
        let guard = world.process();
        guard.guard(world::guard(CHANGE), &world::call()).await
    };
    let (result, took) = troubled(world, row.trouble, wrong, guarding).await;
    let inserts = inserts(world);
    world.heal();

    let outcome = result.as_ref().map(|_| Outcome::Done);
    wrong.outcome(row.expected, outcome, took);
    wrong.unless(row.expected.left == Left::Inserts(inserts), || {
        format!("{inserts} inserts")
    });
    match &result {
        Ok(receipt) => {
            let pins: Vec<_> = receipt
                .pins
                .iter()
                .map(|pin| (pin.checkpoint.clone(), pin.tag.clone()))
                .collect();
            let listed: Vec<_> = of_the_change(world)
                .into_iter()
                .filter(|entry| entry.listed_at.is_some())
                .map(|entry| (entry.id, entry.tag))
                .collect();
            wrong.unless(pins == listed && pins.len() == 1, || {
                format!("{pins:?}, but the journal has {listed:?}")
            });
        }
        Err(error) => {
            judge_error(world, error, inserts, wrong);
            // A refused login is not tried again with the same secret.
            if error.code != LoginRefused {
                if row.is_at(LOGIN) {
                    wait_for_logins().await;
                }
                judge_next(world, wrong).await;
            }
        }
    }
    let once = of_the_change(world).len() <= 1;
    wrong.unless(once, || "two checkpoints have the tag".to_owned());
}

/// What an error says was done is true.
fn judge_error(world: &World, error: &Error, inserts: usize, wrong: &mut Wrong) {
    let sent = inserts > 0;
    let right = match error.done.as_slice() {
        [] => !sent,
        [Done::NotPinned { .. }] => !sent || error.message.contains("refused"),
        [Done::InsertedNotListed { .. }] => sent,
        _ => false,
    };
    wrong.unless(right, || format!("{:?}", error.done));
    let nothing = matches!(error.done.as_slice(), [] | [Done::NotPinned { .. }]);
    let entries = of_the_change(world);
    wrong.unless(!nothing || entries.is_empty(), || {
        format!("nothing was inserted, it says, and there is {entries:?}")
    });
}

/// After a login without an answer the next one has to wait for three seconds by the host's clock, which is real.
async fn wait_for_logins() {
    let spacing = Duration::from_secs(3);
    let _ = tokio::task::spawn_blocking(move || std::thread::sleep(spacing)).await;
}

/// Another process of the user, after the fault.
async fn judge_next(world: &World, wrong: &mut Wrong) {
    let next = world.process();
    match next.guard(world::guard("chg-413"), &world::call()).await {
        Ok(receipt) => wrong.unless(receipt.pins.len() == 1, || format!("next: {receipt:?}")),
        Err(error) => wrong.unless(false, || {
            format!("the next guard: {}: {}", error.code.as_str(), error.message)
        }),
    }
}

/// Inserts that the ZVM has, or may have, carried out.
fn inserts(world: &World) -> usize {
    world.sent(SEND_INSERT.request)
}

fn of_the_change(world: &World) -> Vec<JournalEntry> {
    let mut entries = world.sim.journal(VM);
    entries.retain(|entry| entry.tag.contains(CHANGE));
    entries
}
