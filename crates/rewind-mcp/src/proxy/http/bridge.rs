//! A server behind a URL, offered to a client on standard streams: one POST for each message of the client.
mod exchange;

use std::{
    collections::HashMap,
    io::{Read, Write},
    sync::{Arc, Mutex},
    time::Duration,
};

pub use exchange::answer_to;
use reqwest::{Method, header::HeaderValue};
use rewind_core::{Error, ErrorCode};
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    headers::{ParamHeaders, SESSION},
    upstream::Upstream,
};
use crate::proxy::{
    Settings,
    call::TOOLS_CALL,
    conversation::{Conversation, FromClient},
    enforcement::Enforcement,
    gate::{Gate, lock},
    held::{Held, Peers},
    lines::{Line, Lines, split_end},
    message::{Head, Key},
    signals::Signals,
    sink::{Sink, blocking},
    splice::member,
};

/// How long the answers to what was sent are waited for after the client has said its last.
const LAST_ANSWERS: Duration = Duration::from_secs(60);
/// How long guards may take to end, and a session to be deleted.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How long a notification may take to be accepted: the messages behind it wait.
const ACCEPT_TIME: Duration = Duration::from_secs(30);
/// So many unlisted requests are with the server at once: each has a connection and its memory, and files are limited. The others
/// wait in their order.
const AT_ONCE: usize = 256;

/// Relays between a client at `input` and `output` and the server behind `upstream`, until the client has ended or a
/// signal ends us. Returns the exit code.
pub async fn bridge<E: Enforcement>(
    enforcer: E,
    settings: Settings,
    upstream: Upstream,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> u8 {
    let gate = Arc::new(Gate::new(enforcer, settings.name));
    let bridge = Arc::new(Bridge {
        conversation: Conversation::new(gate.clone()),
        upstream,
        to_client: Sink::new(output),
        link: Mutex::default(),
        params: Mutex::default(),
        open: Mutex::default(),
        work: TaskTracker::new(),
        at_once: Arc::new(Semaphore::new(AT_ONCE)),
        stop: CancellationToken::new(),
        longest: settings.longest,
    });
    let mut lines = read(input, settings.longest);
    let mut signals = Signals::new();
    let code = tokio::select! {
        () = bridge.serve(&mut lines) => 0,
        () = bridge.stop.cancelled() => 0,
        signal = signals.next() => Signals::exit_code(signal),
    };
    bridge.conversation.close();
    bridge.work.close();
    if code == 0 {
        tokio::select! {
            () = bridge.work.wait() => {}
            () = bridge.stop.cancelled() => {}
            () = tokio::time::sleep(LAST_ANSWERS) => {}
            _ = signals.next() => {}
        }
    }
    bridge.stop.cancel();
    let ending = async {
        bridge.work.wait().await;
        bridge.end_session().await;
    };
    if tokio::time::timeout(LAST_WORDS, ending).await.is_err() {
        tracing::debug!("not everything ended in time");
    }
    bridge.conversation.end();
    gate.end().await;
    code
}

/// A line of the client.
enum Said {
    Whole(Vec<u8>),
    TooLong(Vec<u8>),
}

/// Reads on a thread of its own: reading blocks.
fn read(input: impl Read + Send + 'static, longest: usize) -> mpsc::Receiver<Said> {
    let (send, lines) = mpsc::channel(16);
    let thread = std::thread::Builder::new()
        .name("client".into())
        .spawn(move || {
            let mut lines = Lines::new(input, longest);
            loop {
                let said = match lines.next_line() {
                    Ok(Some(Line::Whole(line))) => Said::Whole(line.to_vec()),
                    Ok(Some(Line::TooLong(beginning))) => Said::TooLong(beginning.to_vec()),
                    Ok(None) => return,
                    Err(error) => {
                        tracing::debug!(%error, "the client's messages end");
                        return;
                    }
                };
                if send.blocking_send(said).is_err() {
                    return;
                }
            }
        });
    if let Err(error) = thread {
        tracing::error!(%error, "no thread for the client's messages");
    }
    lines
}

/// What eras with a session agreed upon.
#[derive(Default)]
struct Link {
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
    /// The stream of messages that answer nothing is open.
    listening: bool,
}

struct Bridge<E: Enforcement> {
    conversation: Arc<Conversation<E>>,
    upstream: Upstream,
    to_client: Sink,
    link: Mutex<Link>,
    params: Mutex<ParamHeaders>,
    /// Modern requests that have no answer yet: to cancel one is to close its stream.
    open: Mutex<HashMap<Key, CancellationToken>>,
    work: TaskTracker,
    /// See [`AT_ONCE`].
    at_once: Arc<Semaphore>,
    stop: CancellationToken,
    longest: usize,
}

impl<E: Enforcement> Bridge<E> {
    async fn serve(self: &Arc<Self>, lines: &mut mpsc::Receiver<Said>) {
        while let Some(said) = lines.recv().await {
            let (line, decision) = match said {
                Said::Whole(line) => {
                    let decision = self
                        .conversation
                        .client_says_line(&Line::Whole(&line), self.longest);
                    (line, decision)
                }
                Said::TooLong(line) => {
                    let decision = self
                        .conversation
                        .client_says_line(&Line::TooLong(&line), self.longest);
                    (vec![], decision)
                }
            };
            let body = split_end(&line).0.to_vec();
            match decision {
                FromClient::Forward => self.forward(body).await,
                FromClient::Answer(answer) => self.write(answer).await,
                FromClient::Drop => {}
                FromClient::Hold(held) => {
                    let bridge = self.clone();
                    self.work
                        .spawn(async move { bridge.settle(held, body).await });
                }
            }
        }
    }

    /// Passes on what needs no guard. What could change how later messages are sent is waited for.
    async fn forward(self: &Arc<Self>, body: Vec<u8>) {
        let Ok(head) = Head::read(&body) else {
            // A blank line.
            return;
        };
        let id = head.id.filter(|_| head.method.is_some());
        match (id, head.method.as_deref()) {
            (Some(id), Some(method)) => {
                let request = self.request(&head, id, method, &body);
                let bridge = self.clone();
                let at_once = self.at_once.clone();
                let exchange = async move { bridge.exchange(request).await };
                match method {
                    "initialize" => exchange.await,
                    // It has no end of its own: it is not waited for.
                    "subscriptions/listen" => drop(tokio::spawn(exchange)),
                    _ => drop(self.work.spawn(async move {
                        // The semaphore is never closed.
                        let _place = at_once.acquire().await;
                        exchange.await;
                    })),
                }
            }
            (None, Some("notifications/cancelled")) if self.close_stream(&head) => {}
            _ => {
                let initialized = head.method.as_deref() == Some("notifications/initialized");
                let headers = self.headers(&head);
                let accepted =
                    tokio::time::timeout(ACCEPT_TIME, self.post(headers, body.clone())).await;
                match accepted {
                    Ok(Ok(response)) if response.status().is_success() => {
                        if initialized {
                            self.listen();
                        }
                    }
                    Ok(Ok(response)) => {
                        tracing::warn!(status = %response.status(), "a message was not accepted by the server");
                    }
                    Ok(Err(error)) => {
                        tracing::warn!("a message did not reach the server: {}", error.why)
                    }
                    Err(_) => tracing::warn!("a message was not accepted by the server in time"),
                }
            }
        }
    }

    /// Modern servers are told of a cancellation by the end of the request's stream.
    fn close_stream(&self, head: &Head<'_>) -> bool {
        let id = head
            .params
            .and_then(|params| member(params, "requestId").ok().flatten());
        let open = id
            .and_then(Key::new)
            .and_then(|key| lock(&self.open).remove(&key));
        open.inspect(CancellationToken::cancel).is_some()
    }

    /// Waits for a call's guard, then sends the call, or answers it.
    async fn settle(self: &Arc<Self>, held: Box<Held<E>>, body: Vec<u8>) {
        let refused = match held.settle(&**self).await {
            Ok(ticket) => {
                if self.conversation.admit(&held, ticket) {
                    if let Ok(head) = Head::read(&body) {
                        self.exchange(self.request(&head, &held.id, TOOLS_CALL, &body))
                            .await;
                    }
                    return;
                }
                Error::new(ErrorCode::Cancelled, "the proxy is ending")
                    .with_next("Call the tool again if it is still wanted.")
            }
            Err(error) => error,
        };
        if let Some(answer) = self.conversation.refuse(&held, &refused) {
            self.write(answer).await;
        }
    }

    async fn write(&self, message: Vec<u8>) {
        let to_client = self.to_client.clone();
        if let Err(error) = blocking(move || to_client.line(message)).await {
            tracing::debug!(%error, "the client does not read any more");
            self.stop.cancel();
        }
    }

    /// Ends the session, in eras that have one.
    async fn end_session(&self) {
        let headers = self.session_headers();
        if headers.contains_key(SESSION)
            && let Err(error) = self.upstream.request(Method::DELETE, headers).send().await
        {
            tracing::debug!(%error, "the session was not ended");
        }
    }
}

impl<E: Enforcement> Peers for Bridge<E> {
    async fn tell_client(&self, message: Vec<u8>) {
        self.write(message).await;
    }

    async fn ask_server(&self, id: &RawValue, request: Vec<u8>) -> Result<Vec<u8>, String> {
        let head = Head::read(&request).map_err(|error| error.to_string())?;
        let response = self
            .post(self.headers(&head), request.clone())
            .await
            .map_err(|failed| failed.why)?;
        let answer = answer_to(response, id, self.longest).await?;
        if let Some(result) = Head::read(&answer).ok().and_then(|head| head.result) {
            lock(&self.params).read(result);
        }
        Ok(answer)
    }
}
