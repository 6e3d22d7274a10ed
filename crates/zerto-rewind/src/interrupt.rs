//! Ctrl-C, SIGTERM and SIGHUP: the first asks for an orderly end, the second ends at once.
use tokio_util::sync::CancellationToken;

/// Tells whether the program was asked to end.
#[derive(Clone)]
pub struct Interrupt {
    first: CancellationToken,
    second: CancellationToken,
}

impl Interrupt {
    /// Starts to listen. From now on the signals don't end the process by themselves.
    pub fn watch() -> Self {
        let this = Self {
            first: CancellationToken::new(),
            second: CancellationToken::new(),
        };
        let Self { first, second } = this.clone();
        // Not in the task, which may begin later.
        let mut signals = Signals::new();
        tokio::spawn(async move {
            signals.next().await;
            first.cancel();
            signals.next().await;
            second.cancel();
        });
        this
    }

    /// Cancelled by the first signal.
    pub fn token(&self) -> CancellationToken {
        self.first.clone()
    }

    /// Waits for the second signal.
    pub async fn twice(&self) {
        self.second.cancelled().await;
    }
}

#[cfg(unix)]
struct Signals {
    interrupt: Option<tokio::signal::unix::Signal>,
    terminate: Option<tokio::signal::unix::Signal>,
    /// The terminal or its connection is gone.
    hangup: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        // Without a handler the signal ends the process, as it does by default.
        Self {
            interrupt: signal(SignalKind::interrupt()).ok(),
            terminate: signal(SignalKind::terminate()).ok(),
            hangup: signal(SignalKind::hangup()).ok(),
        }
    }

    async fn next(&mut self) {
        tokio::select! {
            () = received(&mut self.interrupt) => {}
            () = received(&mut self.terminate) => {}
            () = received(&mut self.hangup) => {}
        }
    }
}

#[cfg(unix)]
async fn received(signal: &mut Option<tokio::signal::unix::Signal>) {
    let received = match signal {
        Some(signal) => signal.recv().await,
        None => None,
    };
    if received.is_none() {
        std::future::pending().await
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> Self {
        Self
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
