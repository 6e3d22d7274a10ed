//! Answers that trickle: each byte comes in time, and the whole never would.

use std::time::Duration;

use super::{Failure, in_bytes, seconds};

/// The least that has to come within [`SLOW_FOR`].
const LEAST: u64 = 64 << 10;
const SLOW_FOR: Duration = Duration::from_secs(30);

/// What of an answer came lately, and how long it was waited for.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    bytes: u64,
    waited: Duration,
}

impl Pace {
    /// Takes note of bytes that came after a wait. An error where so little came for so long that the rest is not waited for.
    pub(crate) fn came(&mut self, bytes: usize, waited: Duration) -> Result<(), Failure> {
        self.bytes += bytes as u64;
        self.waited += waited;
        if self.bytes >= LEAST {
            *self = Self::default();
        }
        if self.waited < SLOW_FOR {
            return Ok(());
        }
        Err(Failure::Cut(format!(
            "it is too slow, {} came within {}",
            in_bytes(self.bytes),
            seconds(self.waited)
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_trickle_is_not_waited_for() {
        let mut pace = Pace::default();
        let came = (0..60).take_while(|_| pace.came(1, SECOND).is_ok());
        assert_eq!(came.count(), 29);
        assert!(matches!(pace.came(1, SECOND), Err(Failure::Cut(_))));
    }

    #[test]
    fn what_is_slow_but_comes_is_waited_for() {
        let mut pace = Pace::default();
        assert!((0..1000).all(|_| pace.came(4 << 10, SECOND).is_ok()));
        // A rest after much.
        assert!(pace.came(1 << 20, SECOND * 100).is_ok());
        assert!(pace.came(1, SECOND * 29).is_ok());
    }
}
