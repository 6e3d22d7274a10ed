//! Repeating what may be repeated.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder, Retryable};
use tokio::time::Instant;

use super::Failure;

/// A `Retry-After` up to this is waited for; a longer one ends the retries.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// What fails after this is not sent again, unless the ZVM said when to come back: whoever waited for an answer that never came has
/// waited long enough.
const PATIENCE: Duration = Duration::from_secs(15);

/// When to send again, and until when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retrying {
    /// No attempt begins after this.
    pub(crate) until: Instant,
}

impl Retrying {
    /// Repeats `send` after the failures that it names because they pass: at most four times in all, within a few seconds. One that takes
    /// longer is the last.
    pub(crate) async fn run<T, E, F>(
        self,
        send: impl FnMut() -> F,
        passing: impl Fn(&E) -> Option<&Failure>,
    ) -> Result<T, E>
    where
        F: Future<Output = Result<T, E>>,
    {
        let began = Instant::now();
        send.retry(backoff())
            .sleep(tokio::time::sleep)
            .when(|error| passing(error).is_some())
            .adjust(|error, pause| {
                let pause = match passing(error).and_then(Failure::retry_after) {
                    Some(asked) if asked > LONGEST_WAIT => None,
                    Some(asked) => pause.map(|own| own.max(asked)),
                    None if began.elapsed() >= PATIENCE => None,
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// How often it is sent where each attempt fails like this after so long, and how long that takes in all.
    async fn sent(failure: Failure, each: Duration) -> (u32, Duration) {
        let (began, times) = (Instant::now(), Cell::new(0));
        let until = began + Duration::from_secs(100);
        let attempt = async || {
            times.set(times.get() + 1);
            tokio::time::sleep(each).await;
            Err::<(), _>(failure.clone())
        };
        let failed = Retrying { until }.run(attempt, |failure| Some(failure));
        failed.await.unwrap_err();
        (times.get(), began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_never_comes_is_waited_for_once() {
        let silent = Failure::Lost("nothing came for 30 s".into());
        let (times, took) = sent(silent, Duration::from_secs(30)).await;
        assert_eq!((times, took.as_secs()), (1, 30));
        let closed = Failure::Unsent("no connection within 10 s".into());
        let (times, took) = sent(closed, Duration::from_secs(10)).await;
        assert_eq!((times, took.as_secs()), (2, 20));
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_at_once_or_says_when_to_come_back_is_sent_four_times() {
        let reset = Failure::Lost("reset".into());
        assert_eq!(sent(reset, Duration::ZERO).await.0, 4);
        let busy = Failure::Busy {
            message: String::new(),
            retry_after: Some(Duration::from_secs(10)),
        };
        assert_eq!(sent(busy, Duration::ZERO).await.0, 4);
    }
}
