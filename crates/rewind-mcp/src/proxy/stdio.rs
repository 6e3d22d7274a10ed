//! The relay between a client on our standard streams and a server that is our child.
//!
//! One thread for each direction, with blocking reads and writes: a message is decided upon and passed on by the thread
//! that has read it, without a hand-over. Only held calls are tasks of the runtime.
use std::{
    ffi::OsString,
    io::{self, Read, Write},
    sync::Arc,
    time::Duration,
};

use rewind_core::{Error, ErrorCode};
use serde_json::value::RawValue;
use tokio::{runtime::Handle, sync::mpsc, time::Instant};
use tokio_util::task::TaskTracker;

use super::{
    Settings,
    child::{Child, NotStarted},
    conversation::{Conversation, FromClient, FromServer},
    enforcement::Enforcement,
    gate::Gate,
    held::{Held, Peers},
    lines::{Line, Lines, split_end},
    signals::Signals,
    sink::{Sink, blocking},
};

/// How long the server has to end by itself once it was asked to, before it is asked more firmly.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long what the server wrote last may take to arrive after its end: others may still hold its standard output.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Something that the relay's threads have to tell.
#[derive(Debug)]
enum Event {
    /// Nothing more comes from the server.
    ServerEnded,
    /// Nobody reads what is written to the client.
    ClientGone,
}

/// Starts a server as a child and relays between it and the client at `input` and `output` until the server has ended.
/// Returns its exit code, or 128 and the number of the signal that ended it.
///
/// # Errors
/// Where the server can't be started.
pub async fn relay<E: Enforcement>(
    enforcer: E,
    settings: Settings,
    command: (OsString, Vec<OsString>),
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> Result<u8, NotStarted> {
    let (child, stdin, stdout) = Child::start(command.0, command.1)?;
    let gate = Arc::new(Gate::new(enforcer, settings.name));
    let relay = Relay {
        conversation: Conversation::new(gate.clone()),
        to_server: Sink::new(stdin),
        to_client: Sink::new(output),
        holding: TaskTracker::new(),
        runtime: Handle::current(),
        longest: settings.longest,
    };
    let (events, mut told) = mpsc::unbounded_channel();
    relay.clone().start("client", move |relay| {
        let ending = ClientEnded(relay);
        if let Err(error) = ending.0.carry_from_client(input) {
            tracing::debug!(%error, "the client's messages end");
        }
    });
    relay.clone().start("server", move |relay| {
        let event = relay.carry_from_server(stdout);
        let _ = events.send(event);
    });
    let code = relay.supervise(child, &mut told).await;
    relay.conversation.close();
    relay.holding.close();
    if tokio::time::timeout(PATIENCE, relay.holding.wait())
        .await
        .is_err()
    {
        tracing::warn!("a guard did not end in time");
    }
    relay.conversation.end();
    gate.end().await;
    Ok(code)
}

/// However the thread of the client's messages ends: nothing is forwarded any more, and the server's input closes.
struct ClientEnded<E: Enforcement>(Relay<E>);

impl<E: Enforcement> Drop for ClientEnded<E> {
    fn drop(&mut self) {
        self.0.conversation.close();
        self.0.to_server.close();
    }
}

struct Relay<E: Enforcement> {
    conversation: Arc<Conversation<E>>,
    to_server: Sink,
    to_client: Sink,
    holding: TaskTracker,
    runtime: Handle,
    longest: usize,
}

impl<E: Enforcement> Clone for Relay<E> {
    fn clone(&self) -> Self {
        Self {
            conversation: self.conversation.clone(),
            to_server: self.to_server.clone(),
            to_client: self.to_client.clone(),
            holding: self.holding.clone(),
            runtime: self.runtime.clone(),
            longest: self.longest,
        }
    }
}

impl<E: Enforcement> Relay<E> {
    fn start(self, name: &str, work: impl FnOnce(Self) + Send + 'static) {
        let thread = std::thread::Builder::new()
            .name(name.into())
            .spawn(move || work(self));
        if let Err(error) = thread {
            tracing::error!(%error, "no thread for the {name}'s messages");
        }
    }

    /// Carries what the client says until it says no more.
    fn carry_from_client(&self, input: impl Read) -> io::Result<()> {
        let mut lines = Lines::new(input, self.longest);
        while let Some(line) = lines.next_line()? {
            let decision = self.conversation.client_says_line(&line, self.longest);
            match (decision, line) {
                (FromClient::Forward, Line::Whole(line)) => self.to_server.write(line)?,
                (FromClient::Hold(held), Line::Whole(line)) => self.hold(held, line.to_vec()),
                (FromClient::Answer(answer), _) => self.to_client.line(answer)?,
                _ => {}
            }
            if !lines.is_ready() {
                self.to_server.flush()?;
            }
        }
        Ok(())
    }

    /// Carries what the server says until it says no more, or nobody listens.
    fn carry_from_server(&self, output: impl Read) -> Event {
        let mut lines = Lines::new(output, self.longest);
        loop {
            let line = match lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => return Event::ServerEnded,
                Err(error) => {
                    tracing::debug!(%error, "the server's messages end");
                    return Event::ServerEnded;
                }
            };
            let written = match line {
                Line::Whole(line) => {
                    let (body, end) = split_end(line);
                    match self.conversation.server_says(body) {
                        FromServer::Forward => self.to_client.write(line),
                        FromServer::Instead(mut instead) => {
                            instead.extend_from_slice(end);
                            self.to_client.write(&instead)
                        }
                        FromServer::Drop => Ok(()),
                    }
                }
                Line::TooLong(beginning) => {
                    tracing::warn!(
                        "a line of the server with more than {} bytes is not passed on",
                        self.longest
                    );
                    match self.conversation.too_long(beginning, self.longest) {
                        Some(answer) => self.to_client.line(answer),
                        None => Ok(()),
                    }
                }
            };
            let written = if lines.is_ready() {
                written
            } else {
                written.and_then(|()| self.to_client.flush())
            };
            if let Err(error) = written {
                tracing::debug!(%error, "the client does not read any more");
                return Event::ClientGone;
            }
        }
    }

    fn hold(&self, held: Box<Held<E>>, line: Vec<u8>) {
        let relay = self.clone();
        self.holding
            .spawn_on(async move { relay.settle(held, line).await }, &self.runtime);
    }

    /// Waits for a call's guard, then forwards the call, or answers it.
    async fn settle(&self, held: Box<Held<E>>, mut line: Vec<u8>) {
        let settled = held.settle(self).await;
        let (to_server, to_client) = (self.to_server.clone(), self.to_client.clone());
        let written = blocking(move || {
            let refused = match settled {
                Ok(ticket) => {
                    if line.last() != Some(&b'\n') {
                        line.push(b'\n');
                    }
                    let mut ticket = Some(ticket);
                    let written = to_server.write_if(&line, || {
                        ticket
                            .take()
                            .is_some_and(|ticket| held.conversation.admit(&held, ticket))
                    });
                    if let Some(ticket) = ticket {
                        held.conversation.withdraw(ticket);
                    }
                    if let Err(error) = written {
                        tracing::debug!(%error, "the server does not read any more");
                    }
                    gone()
                }
                Err(error) => error,
            };
            // Only a call that was not forwarded is still there to be refused.
            match held.conversation.refuse(&held, &refused) {
                Some(answer) => to_client.line(answer),
                None => Ok(()),
            }
        });
        if let Err(error) = written.await {
            tracing::debug!(%error, "the client does not read any more");
        }
    }

    /// Waits for the server's end. What ends us, is passed on to it.
    async fn supervise(&self, mut child: Child, told: &mut mpsc::UnboundedReceiver<Event>) -> u8 {
        let mut signals = Signals::new();
        let mut silent = false;
        let mut asked = false;
        let mut patience: Option<Instant> = None;
        let code = loop {
            let waited = async {
                match patience {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                ended = child.ended() => break ended.unwrap_or_else(|error| {
                    tracing::error!(%error, "the server's end can't be waited for");
                    1
                }),
                event = told.recv(), if !silent => {
                    silent = true;
                    tracing::debug!(?event, "the relay ends");
                    self.conversation.close();
                    self.clone().start("close", |relay| relay.to_server.close());
                    patience.get_or_insert_with(|| Instant::now() + PATIENCE);
                }
                signal = signals.next() => {
                    self.conversation.close();
                    Signals::pass_on(signal, &child);
                    asked = true;
                    patience = Some(Instant::now() + PATIENCE);
                }
                () = waited => {
                    if asked { child.kill() } else { Signals::terminate(&mut child) }
                    asked = true;
                    patience = Some(Instant::now() + PATIENCE);
                }
            }
        };
        if !silent && tokio::time::timeout(LAST_WORDS, told.recv()).await.is_err() {
            tracing::debug!("somebody still holds the server's standard output");
        }
        code
    }
}

impl<E: Enforcement> Peers for Relay<E> {
    async fn tell_client(&self, message: Vec<u8>) {
        let to_client = self.to_client.clone();
        if let Err(error) = blocking(move || to_client.line(message)).await {
            tracing::debug!(%error, "the client does not read any more");
        }
    }

    async fn ask_server(&self, id: &RawValue, request: Vec<u8>) -> Result<Vec<u8>, String> {
        let answer = self.conversation.expect_own(id).ok_or("no id")?;
        let to_server = self.to_server.clone();
        blocking(move || to_server.line(request))
            .await
            .map_err(|error| error.to_string())?;
        answer.await.map_err(|_| "it has ended".into())
    }
}

/// The reason where a call lost its chance between its guard and its forwarding.
fn gone() -> Error {
    Error::new(
        ErrorCode::Cancelled,
        "the server does not take calls any more",
    )
    .with_next("Start the server again, then call the tool again if it is still wanted.")
}
