//! How guarded calls end, and what was refused: written down beside the calls, so that nothing waits for the disk.
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, Sender, SyncSender},
    },
    thread::{self, JoinHandle},
};

use super::Outcome;
use crate::state::{Refusal, State, calls::CallId};

/// Writes outcomes and refusals down, on a thread of its own. Dropping it waits until all are written.
#[derive(Debug)]
pub(super) struct Recorder {
    state: State,
    writer: Mutex<Option<Writer>>,
}

#[derive(Debug)]
struct Writer {
    told: Sender<Told>,
    thread: JoinHandle<()>,
}

#[derive(Debug)]
enum Told {
    Ended(CallId, Outcome),
    Refused(Box<Refusal>),
    /// Somebody waits until what was told before is written.
    Flush(SyncSender<()>),
}

impl Recorder {
    pub fn new(state: State) -> Self {
        Self {
            state,
            writer: Mutex::new(None),
        }
    }

    fn ended(&self, call: CallId, outcome: Outcome) {
        self.record(Told::Ended(call, outcome));
    }

    pub fn refused(&self, refusal: Refusal) {
        self.record(Told::Refused(Box::new(refusal)));
    }

    fn record(&self, told: Told) {
        let mut slot = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_none() {
            *slot = Writer::start(self.state.clone());
        }
        let unsent = match slot.as_ref() {
            Some(writer) => writer.told.send(told).err().map(|unsent| unsent.0),
            None => Some(told),
        };
        drop(slot);
        if let Some(told) = unsent {
            // No thread could be started.
            write(&self.state, told);
        }
    }

    /// Waits until what was told before is written.
    pub fn flush(&self) {
        let (done, wait) = mpsc::sync_channel(1);
        let slot = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = slot
            .as_ref()
            .is_some_and(|writer| writer.told.send(Told::Flush(done)).is_ok());
        drop(slot);
        if sent {
            // An error means that the thread has ended, and nothing is left to wait for.
            let _ = wait.recv();
        }
    }
}

impl Writer {
    fn start(state: State) -> Option<Self> {
        let (told, heard) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("outcomes".to_owned())
            .spawn(move || run(&state, &heard));
        match thread {
            Ok(thread) => Some(Self { told, thread }),
            Err(error) => {
                tracing::warn!(%error, "no thread could be started to write outcomes down");
                None
            }
        }
    }
}

fn run(state: &State, heard: &Receiver<Told>) {
    for told in heard {
        write(state, told);
    }
}

fn write(state: &State, told: Told) {
    match told {
        Told::Ended(call, outcome) => {
            if let Err(error) = state.call_ended(call, outcome) {
                tracing::warn!(%error, outcome = outcome.as_str(), "the outcome of a call can't be remembered");
            }
        }
        Told::Refused(refusal) => {
            if let Err(error) = state.refused(&refusal) {
                tracing::warn!(%error, code = refusal.code.as_str(), "a refusal can't be remembered");
            }
        }
        // Whoever waited may have gone.
        Told::Flush(done) => drop(done.send(())),
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let writer = self
            .writer
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(Writer { told, thread }) = writer {
            drop(told);
            if thread.join().is_err() {
                tracing::error!("outcomes of calls were not written down");
            }
        }
    }
}

/// A listed call whose outcome was not told yet. Dropped, it ends as one that was not made, or, once it may be made, as a lost one.
#[derive(Debug)]
pub(super) struct OpenCall {
    recorder: Arc<Recorder>,
    call: Option<CallId>,
    otherwise: Outcome,
}

impl OpenCall {
    pub fn new(recorder: Arc<Recorder>, call: CallId) -> Self {
        Self {
            recorder,
            call: Some(call),
            otherwise: Outcome::NotForwarded,
        }
    }

    /// From here on nobody but its outcome tells whether it was made.
    pub fn may_be_made(&mut self) {
        self.otherwise = Outcome::Lost;
    }

    pub fn end(mut self, outcome: Outcome) {
        self.otherwise = outcome;
    }

    /// Another process tells the outcome. Written at once: this process may be about to end.
    pub fn hand_over(mut self, correlation: Option<&str>) {
        if let Some(call) = self.call.take()
            && let Err(error) = self.recorder.state.call_handed_over(call, correlation)
        {
            tracing::warn!(%error, "the outcome of this call will not be remembered");
        }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            self.recorder.ended(call, self.otherwise);
        }
    }
}
