//! A gate that writes down what it is asked and told.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use zvm_client::{LoginAttempt, LoginBlocked, LoginGate};

#[derive(Debug, Default)]
pub struct RecordingGate {
    block: bool,
    /// How often it says "not yet" before it opens.
    busy: AtomicU32,
    said: Mutex<Vec<String>>,
    /// The ZVM's words when it refused.
    reasons: Mutex<Vec<String>>,
}

impl RecordingGate {
    pub fn closed() -> Self {
        Self {
            block: true,
            ..Self::default()
        }
    }

    pub fn busy(times: u32) -> Self {
        Self {
            busy: times.into(),
            ..Self::default()
        }
    }

    pub fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    pub fn reasons(&self) -> Vec<String> {
        self.reasons.lock().unwrap().clone()
    }

    fn note(&self, word: &str, attempt: &LoginAttempt<'_>) {
        self.said
            .lock()
            .unwrap()
            .push(format!("{word} {}", attempt.account));
    }
}

impl LoginGate for RecordingGate {
    fn permit(&self, attempt: &LoginAttempt<'_>) -> Result<(), LoginBlocked> {
        self.note("permit", attempt);
        if self.block {
            return Err(LoginBlocked {
                reason: "three logins were refused; run `zerto-rewind login`".into(),
                retry_after: None,
                undecided: false,
            });
        }
        let waits = self
            .busy
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                left.checked_sub(1)
            });
        if waits.is_ok() {
            return Err(LoginBlocked {
                reason: "another process is logging in".into(),
                retry_after: Some(Duration::from_millis(20)),
                undecided: false,
            });
        }
        Ok(())
    }
    fn accepted(&self, attempt: &LoginAttempt<'_>) {
        self.note("accepted", attempt);
    }
    fn refused(&self, attempt: &LoginAttempt<'_>, said: &str) {
        self.note("refused", attempt);
        self.reasons.lock().unwrap().push(said.to_owned());
    }
    fn unanswered(&self, attempt: &LoginAttempt<'_>, sent: bool) {
        self.note(if sent { "lost" } else { "unanswered" }, attempt);
    }
}
