//! What accompanies one call: how far it is, and whether it is still wanted.
use crate::{Error, ErrorCode, text};
use std::{fmt, future::Future, sync::Arc, time::Duration};
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

/// Nobody listens: there is nothing to wake up for.
const UNHEARD: Duration = Duration::from_secs(60 * 60);

/// One step of progress, for a person to read.
#[derive(Clone, Debug)]
pub struct ProgressUpdate {
    /// Seconds since the call began: rises within a call.
    pub done: f64,
    /// What `done` will be at the end, where that is known.
    pub total: Option<f64>,
    /// What is being done or waited for; how far a download is stands in `transfer` alone.
    pub message: String,
    /// How far a download is, while there is one.
    pub transfer: Option<Transfer>,
}

/// How far a download is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Bytes that arrived.
    pub bytes: u64,
    /// Bytes in all, where that is known.
    pub total: Option<u64>,
}

/// `27 of 158 bytes`
impl fmt::Display for Transfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.total {
            Some(total) => write!(f, "{} of {}", self.bytes, text::bytes(total)),
            None => f.write_str(&text::bytes(self.bytes)),
        }
    }
}

/// Told about progress at least every two seconds while a call waits. Must not block.
pub trait Progress: Send + Sync {
    /// One more step.
    fn update(&self, update: ProgressUpdate);

    /// How often it wants to hear. Clients give up on silent calls, and screens want movement.
    fn every(&self) -> Duration {
        Duration::from_secs(1)
    }
}

/// The circumstances of one call.
#[derive(Clone)]
pub struct Call {
    /// Who wants to hear how far it is.
    pub progress: Option<Arc<dyn Progress>>,
    /// Cancelled when the result is no longer wanted.
    pub cancel: CancellationToken,
    /// The MCP client or `cli/<user>`: the agent where the call names none.
    pub caller: String,
    /// One per client session; used where a call has no change id.
    pub session_change_id: String,
    /// Whom an agreement to look into a checkpoint holds for: everything that is asked from the same seat. Of an MCP session, that
    /// session; at a terminal, the user.
    pub seat: String,
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call")
            .field("caller", &self.caller)
            .field("session_change_id", &self.session_change_id)
            .finish_non_exhaustive()
    }
}

impl Call {
    /// Waits for something outside of the domain, and says so meanwhile.
    ///
    /// # Errors
    /// `cancelled` when the call is cancelled first; else as `work` has them.
    pub async fn waiting<T>(
        &self,
        message: &str,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        self.watch().during(|| message.to_owned(), work).await
    }

    /// A watch over one operation of this call.
    pub(crate) fn watch(&self) -> Watch<'_> {
        Watch {
            call: self,
            started: Instant::now(),
        }
    }
}

/// What is being done.
pub(crate) struct Doing {
    pub message: String,
    pub transfer: Option<Transfer>,
}

impl From<String> for Doing {
    fn from(message: String) -> Self {
        Self {
            message,
            transfer: None,
        }
    }
}

/// One operation: reports progress while it waits and stops waiting when the call is cancelled.
pub(crate) struct Watch<'a> {
    call: &'a Call,
    started: Instant,
}

impl Watch<'_> {
    /// Seconds since the operation began.
    pub fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    fn say(&self, Doing { message, transfer }: Doing) {
        if let Some(progress) = &self.call.progress {
            progress.update(ProgressUpdate {
                done: self.seconds(),
                total: None,
                message,
                transfer,
            });
        }
    }

    /// Does `work`, which has to look for a cancellation by itself, to its end, and meanwhile says what `doing` returns.
    pub async fn to_the_end<T, D: Into<Doing>>(
        &self,
        doing: impl Fn() -> D,
        work: impl Future<Output = T>,
    ) -> T {
        let mut ticks = self.ticks();
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                result = &mut work => return result,
                _ = ticks.tick() => self.say(doing().into()),
            }
        }
    }

    fn ticks(&self) -> Interval {
        let every = self.call.progress.as_ref().map(|progress| progress.every());
        let mut ticks = tokio::time::interval(every.unwrap_or(UNHEARD));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks
    }

    /// Does `work` and meanwhile says what `doing` returns. `cancelled` when the call is cancelled first:
    /// `work` is dropped then.
    pub async fn during<T, D: Into<Doing>>(
        &self,
        doing: impl Fn() -> D,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let mut ticks = self.ticks();
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                () = self.call.cancel.cancelled() => {
                    let Doing { message, .. } = doing().into();
                    return Err(Error::new(ErrorCode::Cancelled, format!("cancelled while {message}")));
                }
                result = &mut work => return result,
                _ = ticks.tick() => self.say(doing().into()),
            }
        }
    }
}
