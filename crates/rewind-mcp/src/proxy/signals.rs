//! The signals that end us, for the server as well.
#[cfg(unix)]
pub use unix::Signals;

#[cfg(not(unix))]
pub use other::Signals;

#[cfg(unix)]
mod unix {
    use std::io::IsTerminal as _;

    use rustix::process::Signal;
    use tokio::signal::unix::{self, SignalKind};

    use crate::proxy::child::Child;

    /// Those of SIGTERM, SIGINT and SIGHUP that can be caught.
    pub struct Signals {
        streams: Vec<(Signal, unix::Signal)>,
    }

    impl Signals {
        pub fn new() -> Self {
            let kinds = [
                (Signal::TERM, SignalKind::terminate()),
                (Signal::INT, SignalKind::interrupt()),
                (Signal::HUP, SignalKind::hangup()),
            ];
            let streams = kinds
                .into_iter()
                .filter_map(|(signal, kind)| match unix::signal(kind) {
                    Ok(stream) => Some((signal, stream)),
                    Err(error) => {
                        tracing::warn!(%error, ?signal, "the signal is not passed on to the server");
                        None
                    }
                })
                .collect();
            Self { streams }
        }

        /// The next one.
        pub async fn next(&mut self) -> Signal {
            let each = self.streams.iter_mut().map(|(signal, stream)| {
                let signal = *signal;
                Box::pin(async move {
                    match stream.recv().await {
                        Some(()) => signal,
                        None => std::future::pending().await,
                    }
                })
            });
            futures::future::select_all(each).await.0
        }

        /// Passes a signal on to the server. A terminal has sent its own to all of its foreground programs.
        pub fn pass_on(signal: Signal, server: &Child) {
            if signal != Signal::INT || !std::io::stdin().is_terminal() {
                server.signal(signal);
            }
        }

        /// The exit code of a program that a signal ends.
        pub fn exit_code(signal: Signal) -> u8 {
            u8::try_from(128 + signal.as_raw()).unwrap_or(u8::MAX)
        }

        /// Asks the server to end.
        pub fn terminate(server: &mut Child) {
            server.signal(Signal::TERM);
        }
    }
}

#[cfg(not(unix))]
mod other {
    use crate::proxy::child::Child;

    /// Ctrl-C.
    pub struct Signals;

    impl Signals {
        pub fn new() -> Self {
            Self
        }

        pub async fn next(&mut self) {
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
        }

        /// The console has told all of its programs.
        pub fn pass_on((): (), _: &Child) {}

        pub fn exit_code((): ()) -> u8 {
            130
        }

        /// There is no way to ask.
        pub fn terminate(server: &mut Child) {
            server.kill();
        }
    }
}
