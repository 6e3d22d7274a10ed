//! A recovery: what is expected of each row, and how it is judged.
use crate::{
    fault::Fault,
    play::{Wrong, troubled},
    proxy::Harm,
    row::{Case, Expected, Left, Line, Operation, Outcome, Row, Section, Table},
    step::{
        ASK_BROWSE, ASK_DOWNLOAD, ASK_MOUNT, ASK_SESSIONS, ASK_UNMOUNT, CAN_MOUNT, GET_BYTES,
        LOOK_UP, POLL_MOUNT, Step,
    },
    world::{self, VM, World},
};
use rewind_core::{
    Done, Error, ErrorCode,
    ErrorCode::{
        CheckpointGone, DownloadIncomplete, FlrFailed, NotPermitted, ZvmError, ZvmUnreachable,
    },
    How, Recovery, Verdict,
};
use std::{fs, time::Duration};
use tokio::time::timeout;
use zvm_sim::{
    FlrSession, FlrState,
    switches::{Damage, Mount, SingleFile, Switches, Unmount, Vanishes},
};

const fn done(within: u64) -> Expected {
    Expected {
        outcome: Outcome::Done,
        within,
        left: Left::Unmounted,
    }
}

/// The file is there, and the session still open.
const fn open(within: u64) -> Expected {
    Expected {
        outcome: Outcome::StillOpen,
        within,
        left: Left::Session,
    }
}

/// Before anything was mounted.
const fn fails(code: ErrorCode, within: u64) -> Expected {
    Expected {
        outcome: Outcome::Fails(code),
        within,
        left: Left::NoSession,
    }
}

const fn unmounts(code: ErrorCode, within: u64) -> Expected {
    Expected {
        left: Left::Unmounted,
        ..fails(code, within)
    }
}

const fn leaves(code: ErrorCode, within: u64) -> Expected {
    Expected {
        left: Left::Session,
        ..fails(code, within)
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

fn network(harm: Harm, once: Expected, lasting: Expected) -> Line {
    line(Fault::Network(harm), once, lasting)
}

fn answers(status: u16, once: Expected, lasting: Expected) -> Line {
    line(Fault::Answers(status), once, lasting)
}

/// Of a question that is asked before anything is mounted.
fn question() -> Vec<Line> {
    vec![
        network(Harm::Refuse, done(10), fails(ZvmUnreachable, 10)),
        network(Harm::Reset, done(10), fails(ZvmUnreachable, 10)),
        network(Harm::Swallow, done(25), fails(ZvmUnreachable, 35)),
        network(Harm::Drip, fails(ZvmError, 40), fails(ZvmError, 40)),
        network(Harm::CutBody, done(10), fails(ZvmError, 10)),
        answers(401, done(10), fails(NotPermitted, 5)),
        answers(403, fails(NotPermitted, 5), fails(NotPermitted, 5)),
        answers(404, fails(ZvmError, 5), fails(ZvmError, 5)),
        answers(409, fails(ZvmError, 5), fails(ZvmError, 5)),
        answers(429, done(10), fails(ZvmError, 10)),
        line(Fault::Busy, done(10), fails(ZvmError, 10)),
        answers(500, fails(ZvmError, 5), fails(ZvmError, 5)),
        answers(502, done(10), fails(ZvmError, 10)),
        answers(503, done(10), fails(ZvmError, 10)),
        moment(Fault::Revoked, done(10)),
        moment(Fault::Restarted, done(10)),
    ]
}

/// The answer, `[]`, is through before a drip is too slow.
fn sessions() -> Vec<Line> {
    let mut lines = question();
    for line in &mut lines {
        if line.fault == Fault::Network(Harm::Drip) {
            (line.once, line.lasting) = (done(20), Some(done(20)));
        }
    }
    lines
}

/// Not every ZVM can tell: then the mount shows it.
fn can_mount() -> Vec<Line> {
    let mut lines = question();
    for line in &mut lines {
        if let Fault::Answers(status) = line.fault
            && !matches!(status, 401 | 403)
        {
            (line.once, line.lasting) = (done(10), Some(done(10)));
        } else if line.fault == Fault::Busy {
            line.lasting = Some(done(10));
        }
    }
    lines
}

fn mount() -> Vec<Line> {
    vec![
        network(Harm::Refuse, done(10), fails(ZvmUnreachable, 10)),
        network(
            Harm::Reset,
            leaves(ZvmError, 40),
            leaves(ZvmUnreachable, 10),
        ),
        network(
            Harm::Swallow,
            leaves(ZvmError, 70),
            leaves(ZvmUnreachable, 80),
        ),
        network(Harm::Drip, done(50), done(50)),
        network(Harm::CutBody, done(10), done(10)),
        answers(401, done(10), fails(NotPermitted, 5)),
        answers(403, fails(NotPermitted, 5), fails(NotPermitted, 5)),
        answers(404, fails(FlrFailed, 5), fails(FlrFailed, 5)),
        answers(409, fails(FlrFailed, 5), fails(FlrFailed, 5)),
        answers(429, done(10), fails(FlrFailed, 10)),
        line(Fault::Busy, done(10), fails(FlrFailed, 10)),
        answers(500, leaves(FlrFailed, 40), leaves(FlrFailed, 40)),
        answers(502, leaves(ZvmError, 40), leaves(ZvmError, 40)),
        answers(503, leaves(ZvmError, 40), leaves(ZvmError, 40)),
        moment(Fault::Revoked, done(10)),
        moment(Fault::Restarted, done(10)),
    ]
}

fn mounting() -> Vec<Line> {
    vec![
        network(Harm::Refuse, done(10), leaves(ZvmUnreachable, 705)),
        network(Harm::Reset, done(10), leaves(ZvmUnreachable, 705)),
        network(Harm::Swallow, done(40), leaves(ZvmUnreachable, 800)),
        network(Harm::Drip, done(50), unmounts(ZvmError, 150)),
        network(Harm::CutBody, done(10), unmounts(ZvmError, 50)),
        answers(401, done(10), leaves(NotPermitted, 100)),
        answers(403, unmounts(NotPermitted, 10), leaves(NotPermitted, 100)),
        answers(404, done(10), unmounts(FlrFailed, 40)),
        answers(409, done(10), leaves(ZvmError, 135)),
        answers(429, done(10), leaves(ZvmError, 135)),
        line(Fault::Busy, done(10), leaves(ZvmError, 135)),
        answers(500, done(10), leaves(ZvmError, 135)),
        answers(502, done(10), leaves(ZvmError, 135)),
        answers(503, done(10), leaves(ZvmError, 135)),
        moment(Fault::Revoked, done(10)),
        moment(Fault::Restarted, unmounts(FlrFailed, 40)),
    ]
}

fn browse() -> Vec<Line> {
    vec![
        network(Harm::Refuse, done(10), leaves(ZvmUnreachable, 105)),
        network(Harm::Reset, done(10), leaves(ZvmUnreachable, 105)),
        network(Harm::Swallow, done(40), leaves(ZvmUnreachable, 180)),
        network(Harm::Drip, unmounts(ZvmError, 45), unmounts(ZvmError, 45)),
        network(Harm::CutBody, done(10), unmounts(ZvmError, 10)),
        answers(401, done(10), unmounts(NotPermitted, 5)),
        answers(403, unmounts(NotPermitted, 5), unmounts(NotPermitted, 5)),
        answers(404, unmounts(ZvmError, 5), unmounts(ZvmError, 5)),
        answers(409, done(10), unmounts(ZvmError, 5)),
        answers(429, done(10), unmounts(ZvmError, 15)),
        line(Fault::Busy, done(10), unmounts(ZvmError, 15)),
        answers(500, done(10), unmounts(ZvmError, 5)),
        answers(502, done(10), unmounts(ZvmError, 15)),
        answers(503, done(10), unmounts(ZvmError, 15)),
        moment(Fault::Revoked, done(10)),
        moment(Fault::Restarted, unmounts(ZvmError, 5)),
    ]
}

fn download() -> Vec<Line> {
    vec![
        network(Harm::Refuse, done(10), leaves(ZvmUnreachable, 105)),
        network(Harm::Reset, done(10), leaves(ZvmUnreachable, 105)),
        network(Harm::Swallow, done(40), leaves(ZvmUnreachable, 210)),
        network(Harm::Drip, done(50), unmounts(ZvmError, 75)),
        network(Harm::CutBody, done(10), unmounts(ZvmError, 15)),
        answers(401, done(10), unmounts(NotPermitted, 5)),
        answers(403, unmounts(NotPermitted, 5), unmounts(NotPermitted, 5)),
        answers(404, done(10), unmounts(ZvmError, 5)),
        answers(409, done(10), unmounts(ZvmError, 5)),
        answers(429, done(10), unmounts(ZvmError, 15)),
        line(Fault::Busy, done(10), unmounts(ZvmError, 20)),
        answers(500, done(10), unmounts(ZvmError, 5)),
        answers(502, done(10), unmounts(ZvmError, 15)),
        answers(503, done(10), unmounts(ZvmError, 15)),
        moment(Fault::Revoked, done(10)),
        moment(Fault::Restarted, unmounts(ZvmError, 5)),
    ]
}

fn bytes() -> Vec<Line> {
    vec![
        network(Harm::Refuse, done(10), leaves(ZvmUnreachable, 105)),
        network(Harm::Reset, done(10), leaves(ZvmUnreachable, 105)),
        network(Harm::Swallow, done(40), leaves(ZvmUnreachable, 180)),
        network(Harm::Drip, done(50), unmounts(DownloadIncomplete, 70)),
        network(Harm::CutBody, done(10), unmounts(DownloadIncomplete, 5)),
        answers(401, done(10), unmounts(NotPermitted, 5)),
        answers(403, unmounts(NotPermitted, 5), unmounts(NotPermitted, 5)),
        answers(404, done(10), unmounts(ZvmError, 5)),
        answers(409, done(10), unmounts(ZvmError, 5)),
        answers(429, done(10), unmounts(ZvmError, 5)),
        line(Fault::Busy, done(10), unmounts(ZvmError, 5)),
        answers(500, done(10), unmounts(ZvmError, 5)),
        answers(502, done(10), unmounts(ZvmError, 5)),
        answers(503, done(10), unmounts(ZvmError, 5)),
        moment(Fault::Revoked, done(10)),
        moment(Fault::Restarted, unmounts(ZvmError, 5)),
    ]
}

fn unmount() -> Vec<Line> {
    vec![
        network(Harm::Refuse, done(10), open(95)),
        network(Harm::Reset, done(10), open(95)),
        network(Harm::Swallow, done(40), open(95)),
        network(Harm::Drip, done(50), done(50)),
        network(Harm::CutBody, done(10), done(10)),
        answers(401, done(10), open(10)),
        answers(403, done(10), open(10)),
        answers(404, done(30), open(95)),
        answers(409, done(10), open(10)),
        answers(429, done(10), open(30)),
        line(Fault::Busy, done(10), open(40)),
        answers(500, done(10), open(10)),
        answers(502, done(10), open(95)),
        answers(503, done(10), open(95)),
        moment(Fault::Revoked, done(10)),
        moment(Fault::Restarted, done(10)),
    ]
}

fn switched(world: &World, switch: impl FnOnce(&mut Switches)) {
    world.sim.update(switch);
}

fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "the checkpoint leaves the journal between the plan and the recovery",
            play: (None, journal_shrinks),
            expected: fails(CheckpointGone, 5),
        },
        Case {
            name: "the checkpoint leaves the journal right before the mount",
            play: (Some(ASK_MOUNT), journal_shrinks),
            expected: fails(FlrFailed, 5),
        },
        Case {
            name: "the mount is answered with 500, and was done",
            play: (None, |world| {
                let request = ASK_MOUNT.request;
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
            expected: done(10),
        },
        Case {
            name: "the mount fails",
            play: (None, |world| {
                switched(world, |switches| switches.mount = Mount::Fails);
            }),
            expected: unmounts(FlrFailed, 5),
        },
        Case {
            name: "the mount hangs",
            play: (None, |world| {
                switched(world, |switches| switches.mount = Mount::Hangs);
            }),
            expected: unmounts(FlrFailed, 610),
        },
        Case {
            name: "the session vanishes when it is mounted",
            play: (None, |world| vanishes(world, Vanishes::WhenMounted)),
            expected: unmounts(FlrFailed, 40),
        },
        Case {
            name: "the session vanishes when it is browsed",
            play: (None, |world| vanishes(world, Vanishes::AtBrowse)),
            expected: unmounts(ZvmError, 5),
        },
        Case {
            name: "the session vanishes at the download",
            play: (None, |world| vanishes(world, Vanishes::AtDownload)),
            expected: unmounts(ZvmError, 5),
        },
        Case {
            name: "the download is a byte short",
            play: (None, |world| damaged(world, Damage::Truncated)),
            expected: unmounts(DownloadIncomplete, 5),
        },
        Case {
            name: "the download is a byte long",
            play: (None, |world| damaged(world, Damage::Longer)),
            expected: unmounts(DownloadIncomplete, 5),
        },
        Case {
            name: "the download is a wrong zip",
            play: (None, |world| {
                damaged(world, Damage::Wrong);
                switched(world, |switches| switches.single_file = SingleFile::Zip);
            }),
            expected: unmounts(DownloadIncomplete, 5),
        },
        Case {
            name: "the download stops in the middle",
            play: (None, |world| damaged(world, Damage::Stalls)),
            expected: unmounts(DownloadIncomplete, 85),
        },
        Case {
            name: "the unmount is refused",
            play: (None, |world| unmount_is(world, Unmount::Refused)),
            expected: open(10),
        },
        Case {
            name: "the unmount fails",
            play: (None, |world| unmount_is(world, Unmount::Fails)),
            expected: open(10),
        },
        Case {
            name: "the unmount hangs",
            play: (None, |world| unmount_is(world, Unmount::Hangs)),
            expected: open(95),
        },
    ]
}

/// The checkpoint is no longer in it.
fn journal_shrinks(world: &World) {
    switched(world, |switches| {
        switches.vpg_mut(VM).history = Some(Duration::from_secs(60));
    });
}

fn vanishes(world: &World, when: Vanishes) {
    switched(world, |switches| switches.session_vanishes = when);
}

fn damaged(world: &World, damage: Damage) {
    switched(world, |switches| switches.download_damage = damage);
    if damage == Damage::Stalls {
        world.push_clock();
    }
}

fn unmount_is(world: &World, unmount: Unmount) {
    switched(world, |switches| switches.unmount = unmount);
}

pub fn section() -> Section {
    let table = |steps: &[Step], about, lines| Table {
        steps: steps.to_vec(),
        about,
        lines,
    };
    Section {
        operation: Operation::Recovery,
        tables: vec![
            table(
                &[LOOK_UP],
                "The VM is found as for a guard. Questions are asked up to four times. Nothing has been mounted yet.",
                question(),
            ),
            table(
                &[ASK_SESSIONS],
                "The same; only that its answer is so short that a drip is through in time.",
                sessions(),
            ),
            table(
                &[CAN_MOUNT],
                "Not every ZVM can tell: where it can't, the mount shows it.",
                can_mount(),
            ),
            table(
                &[ASK_MOUNT],
                "A mount is asked for once. Where its answer was lost, the session is looked for, and used if it is there. If not, it may still \
                 appear: the error says so, and later commands look for it.",
                mount(),
            ),
            table(
                &[POLL_MOUNT],
                "The mount goes on by itself. A ZVM that can't be reached is waited for, up to the time that a mount may take; one that answers \
                 with errors, for half a minute.",
                mounting(),
            ),
            table(
                &[ASK_BROWSE],
                "Questions, asked up to four times. Afterwards the session is unmounted, where the ZVM can be reached.",
                browse(),
            ),
            table(
                &[ASK_DOWNLOAD],
                "As before; and the whole download is tried twice.",
                download(),
            ),
            table(
                &[GET_BYTES],
                "The download is tried twice, each time from a URL of its own.",
                bytes(),
            ),
            table(
                &[ASK_UNMOUNT],
                "The file is there. The ZVM is asked again until the session is gone, four times where it refuses, for 90 s where it does not answer. \
                 Where that does not help, the result says that the session is still open, and why.",
                unmount(),
            ),
        ],
        cases: cases(),
    }
}

pub async fn judge(world: &World, row: &Row, wrong: &mut Wrong) {
    let process = world.process();
    let zvm = process.config().zvm();
    let recovering = async |world: &World| {
        let request = world::recovery(&world.tag);
        let known = process.plan_recovery(&request, &world::call()).await?;
        process
            .decide(&known, Verdict::Approved, How::Terminal, "cli/test")
            .await?;
        process.recover(&known.plan.id, &world::call()).await
    };
    let (result, took) = troubled(world, row.trouble, wrong, recovering).await;
    world.heal();

    let outcome = result.as_ref().map(|recovery| match recovery.still_open {
        None => Outcome::Done,
        Some(_) => Outcome::StillOpen,
    });
    wrong.outcome(row.expected, outcome, took);
    let left = match &result {
        Ok(recovery) => {
            judge_file(world, recovery, wrong);
            match recovery.still_open {
                None => Left::Unmounted,
                Some(_) => Left::Session,
            }
        }
        Err(error) => {
            let kept = world.recovered();
            wrong.unless(kept.is_empty(), || format!("kept {kept:?}"));
            left_by(error)
        }
    };
    wrong.unless(left == row.expected.left, || format!("left {left:?}"));
    judge_sessions(world, left, &zvm, wrong).await;
}

fn judge_file(world: &World, recovery: &Recovery, wrong: &mut Wrong) {
    let files = world.recovered();
    let local = recovery.one.as_ref().and_then(|one| one.local_path.clone());
    let local = local.unwrap_or_default();
    let only = files.len() == 1 && files[0].to_string_lossy() == local;
    wrong.unless(only, || format!("{files:?}"));
    let same = fs::read(&local).is_ok_and(|bytes| bytes == world.original());
    wrong.unless(same, || "the bytes differ".to_owned());
}

/// What an error says about the session.
fn left_by(error: &Error) -> Left {
    match error.done.as_slice() {
        [Done::SessionOpened { closed: true, .. }] => Left::Unmounted,
        [Done::SessionOpened { closed: false, .. }] => Left::Session,
        _ if error.message.contains("whether it was begun is not known") => Left::Session,
        _ => Left::NoSession,
    }
}

/// What is open is known, and what is known is looked for by the next command, of another process.
async fn judge_sessions(world: &World, left: Left, zvm: &str, wrong: &mut Wrong) {
    if left != Left::Session {
        // What the ZVM says it does not know any more may take it a moment.
        let gone = world.sim.wait_for(|view| view.sessions().is_empty());
        let _ = timeout(Duration::from_secs(1), gone).await;
    }
    let open = world.sim.flr_sessions();
    let known = world.known_open(zvm);
    if left != Left::Session {
        wrong.unless(open.is_empty() && known.is_empty(), || {
            format!("open: {open:?}, known: {known:?}")
        });
        return;
    }
    wrong.unless(known.len() == 1, || format!("known: {known:?}"));
    if let Err(error) = world.process().find(VM, &world::call()).await {
        wrong.unless(false, || format!("the next command: {error}"));
    }
    // One that the ZVM is unmounting for ever is in its hands.
    let unmounting = |session: &FlrSession| session.state == FlrState::Unmounting;
    let gone = world
        .sim
        .wait_for(|view| view.sessions().iter().all(unmounting));
    let gone = timeout(Duration::from_secs(120), gone).await.is_ok();
    wrong.unless(gone, || "the next command unmounts nothing".to_owned());
}
