//! Repeating what may be repeated.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder, Retryable};
use tokio::time::Instant;

use super::Failure;

/// A `Retry-After` up to this is waited for; a longer one ends the retries.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// When to send again, and until when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retrying {
    /// No attempt begins after this.
    pub(crate) until: Instant,
}

impl Retrying {
    /// Repeats `send` after the failures that it names because they pass: at most four times in all, within a few seconds.
    pub(crate) async fn run<T, E, F>(
        self,
        send: impl FnMut() -> F,
        passing: impl Fn(&E) -> Option<&Failure>,
    ) -> Result<T, E>
    where
        F: Future<Output = Result<T, E>>,
    {
        send.retry(backoff())
            .sleep(tokio::time::sleep)
            .when(|error| passing(error).is_some())
            .adjust(|error, pause| {
                let pause = match passing(error).and_then(Failure::retry_after) {
                    Some(asked) if asked > LONGEST_WAIT => None,
                    Some(asked) => pause.map(|own| own.max(asked)),
                    None => pause,
                };
                pause.filter(|pause| Instant::now() + *pause < self.until)
            })
            .await
    }
}

/// 0.25, 0.5, 1 s, each up to twice as long.
fn backoff() -> impl BackoffBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(250))
        .with_max_times(3)
        .with_jitter()
}
