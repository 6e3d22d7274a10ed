//! Time inside the simulator: milliseconds since 1970 by the host's clock, never going backwards.
//!
//! What clients see is this plus the switch `clock_offset`.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

pub(crate) struct Clock {
    start: Instant,
    start_ms: i64,
    last_point: AtomicI64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let start_ms = jiff::Timestamp::now().as_millisecond();
        Self {
            start: Instant::now(),
            start_ms,
            last_point: AtomicI64::new(start_ms),
        }
    }

    pub(crate) fn start_ms(&self) -> i64 {
        self.start_ms
    }

    pub(crate) fn now(&self) -> i64 {
        self.start_ms + crate::spread::millis(self.start.elapsed())
    }

    /// A moment for a checkpoint: no two are equal, and each is later than the one before.
    pub(crate) fn point(&self) -> i64 {
        let now = self.now();
        let before = self
            .last_point
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |last| {
                Some(now.max(last + 1))
            })
            .unwrap_or(now);
        now.max(before + 1)
    }

    pub(crate) fn instant(&self, at_ms: i64) -> Instant {
        let after = u64::try_from(at_ms - self.start_ms).unwrap_or(0);
        self.start + Duration::from_millis(after)
    }
}

/// Milliseconds since 1970 as a timestamp.
pub(crate) fn timestamp(at_ms: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(at_ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_rise_strictly() {
        let clock = Clock::new();
        let points: Vec<i64> = (0..50).map(|_| clock.point()).collect();
        assert!(points.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
