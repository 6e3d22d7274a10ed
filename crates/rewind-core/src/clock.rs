//! The ZVM's clock, which may differ from ours by hours, followed by our monotonic one.
use crate::checkpoints::later;
use jiff::Timestamp;
use tokio::time::Instant;
use zvm_client::{Error, Zvm};

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

    /// Its time now; behind by the time that its answer took, never ahead.
    pub fn now(&self) -> Timestamp {
        later(self.at, self.taken.elapsed())
    }
}
