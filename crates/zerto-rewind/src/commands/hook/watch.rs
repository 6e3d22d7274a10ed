//! Nothing that happens while an event is judged may end without an answer: not a panic, not a wait that does not end.
use super::{
    answer::{Answer, Output},
    format::Format,
    gate::Gate,
    judge::{Seen, judge},
};
use rewind_core::Error;
use std::{
    any::Any,
    io::Read,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

/// No event is larger: file contents and results of tools are in it, disk images are not.
const MAX_INPUT: u64 = 16 * 1024 * 1024;

/// What to do where time ran out.
pub(super) const TRY_AGAIN: &str = "Try again; if it is the same then, see that the ZVM answers, or give a longer --deadline and a longer time-out in the \
    harness's settings. Don't make the change meanwhile.";

enum Step {
    Seen(Seen),
    Done(Output),
}

/// Reads and judges one event on a thread of its own and answers in any case, before `deadline`. Shortly before it, `cancel` is
/// cancelled, so that a guard under way can still say what it has done.
pub fn answer<G: Gate>(
    input: impl Read + Send + 'static,
    format: Option<Format>,
    deadline: Duration,
    cancel: &CancellationToken,
    open: impl FnOnce() -> Result<G, Error> + Send + 'static,
) -> Output {
    let end = Instant::now() + deadline;
    let grace = (deadline / 10).min(Duration::from_secs(2));
    let mut seen = Seen {
        format,
        ..Seen::default()
    };
    let (send, steps) = mpsc::channel();
    let worker = thread::Builder::new().spawn(move || work(input, format, &send, open));
    let reason = match worker {
        Err(error) => format!("no thread could be started: {error}"),
        Ok(_) => loop {
            let limit = if cancel.is_cancelled() {
                end
            } else {
                end - grace
            };
            match steps.recv_timeout(limit.saturating_duration_since(Instant::now())) {
                Ok(Step::Done(output)) => return output,
                Ok(Step::Seen(more)) => seen = more,
                Err(RecvTimeoutError::Timeout) if !cancel.is_cancelled() => cancel.cancel(),
                Err(RecvTimeoutError::Timeout) => {
                    break format!(
                        "no decision within the hook's own deadline of {deadline:?}. Next: {TRY_AGAIN}"
                    );
                }
                Err(RecvTimeoutError::Disconnected) => {
                    break "the hook failed without an answer".to_owned();
                }
            }
        },
    };
    seen.output(&Answer::deny(&reason))
}

fn work<G: Gate>(
    input: impl Read,
    format: Option<Format>,
    send: &mpsc::Sender<Step>,
    open: impl FnOnce() -> Result<G, Error>,
) {
    let mut last = Seen {
        format,
        ..Seen::default()
    };
    let judged = catch_unwind(AssertUnwindSafe(|| {
        let tell = |seen: &Seen| {
            last = seen.clone();
            // Nobody listens any more where the deadline has passed.
            let _ = send.send(Step::Seen(seen.clone()));
        };
        match read(input) {
            Ok(bytes) => judge(&bytes, format, tell, open),
            Err(reason) => Seen {
                format,
                ..Seen::default()
            }
            .output(&Answer::deny(&reason)),
        }
    }));
    let output = judged.unwrap_or_else(|panic| {
        let reason = format!("the hook failed: {}", said(panic.as_ref()));
        last.output(&Answer::deny(&reason))
    });
    let _ = send.send(Step::Done(output));
}

fn read(input: impl Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    input
        .take(MAX_INPUT + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("the event cannot be read: {error}"))?;
    if bytes.len() as u64 > MAX_INPUT {
        return Err(format!("the event is larger than {MAX_INPUT} bytes"));
    }
    Ok(bytes)
}

fn said(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("it panicked")
}
