//! The ZVM's clock, which may differ from ours by hours, followed by our monotonic one; and ours, which may be set at any time.
use crate::checkpoints::later;
use jiff::Timestamp;
use std::fmt;
use tokio::time::Instant;
use zvm_client::{Error, Zvm};

/// What this host takes for the time. It may be wrong by hours and may jump, so nothing is measured with it that a monotonic clock or
/// the ZVM's can tell.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The system's clock.
#[derive(Debug)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ZvmClock {
    at: Timestamp,
    taken: Instant,
}

impl ZvmClock {
    /// Asks the ZVM for its time.
    pub async fn read(zvm: &Zvm) -> Result<Self, Error> {
        let at = zvm.server_time().await?;
        Ok(Self {
            at,
            taken: Instant::now(),
        })
    }

    /// Its time when it was asked.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// How long ago it was asked, as far as this host was not suspended since.
    pub fn age(&self) -> std::time::Duration {
        self.taken.elapsed()
    }

    /// Its time now; behind by the time that its answer took, never ahead.
    pub fn now(&self) -> Timestamp {
        later(self.at, self.taken.elapsed())
    }
}
