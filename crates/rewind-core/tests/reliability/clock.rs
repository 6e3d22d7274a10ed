//! Simulated time: minutes of waiting take milliseconds, and a slow machine makes nothing late.
//!
//! tokio moves a paused clock on whenever nothing is left to do, but it does not know of bytes that are on their way through a socket.
//! So the clock is held, and may go on by a small step whenever the runtime has really been idle for a moment.
use std::{thread, time::Duration};
use tokio::{
    runtime::{Builder, Handle},
    sync::watch,
    task, time,
};

const STEP: Duration = Duration::from_millis(250);
const MOMENT: Duration = Duration::from_millis(1);

/// The clock of one simulated world.
#[derive(Clone, Default)]
pub struct Clock {
    /// How many push it.
    pushed: watch::Sender<u32>,
}

/// As long as it lives, the clock goes on even while a blocking task runs.
pub struct Push(watch::Sender<u32>);

impl Drop for Push {
    fn drop(&mut self) {
        self.0.send_modify(|pushed| *pushed -= 1);
    }
}

impl Clock {
    /// A download's writer is a blocking task: it waits for bytes, and would hold the clock if they don't come.
    pub fn push(&self) -> Push {
        self.pushed.send_modify(|pushed| *pushed += 1);
        Push(self.pushed.clone())
    }

    async fn run(self) {
        let mut pushed = self.pushed.subscribe();
        loop {
            // A blocking task holds the clock.
            let runtime = Handle::current();
            match task::spawn_blocking(move || is_idle(&runtime)).await {
                Ok(true) => {}
                Ok(false) => continue,
                Err(_) => return,
            }
            let push = async { pushed.wait_for(|pushed| *pushed > 0).await.is_ok() };
            tokio::select! {
                biased;
                true = push => time::advance(STEP).await,
                () = time::sleep(STEP) => {}
            }
        }
    }
}

/// Whether nothing has woken the runtime's thread for a moment.
fn is_idle(runtime: &Handle) -> bool {
    let metrics = runtime.metrics();
    // Odd while it sleeps.
    let before = metrics.worker_park_unpark_count(0);
    thread::sleep(MOMENT);
    before % 2 == 1 && before == metrics.worker_park_unpark_count(0)
}

/// Does `work` in a runtime with a clock of its own.
pub fn simulated<T>(work: impl AsyncFnOnce(Clock) -> T) -> T {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let done = runtime.block_on(async {
        let clock = Clock::default();
        tokio::spawn(clock.clone().run());
        work(clock).await
    });
    runtime.shutdown_background();
    done
}
