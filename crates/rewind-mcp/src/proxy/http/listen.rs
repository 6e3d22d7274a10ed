//! A server behind a URL, offered over streamable HTTP on this host.
//!
//! Statuses, headers and bodies pass as they are in both directions, but for what belongs to one connection. What a
//! message is, its body says; a header that says something else is refused.
use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
    serve::ListenerExt as _,
};
use rewind_core::{Error, ErrorCode};
use serde_json::value::RawValue;
use tokio::{net::TcpListener, sync::mpsc};
use tokio_util::sync::DropGuard;

use super::{
    bridge::answer_to,
    doors, events,
    exchange::{Exchange, json, passing},
    headers::{METHOD, NAME, SESSION, contradiction},
    sessions::Sessions,
    upstream::{Upstream, is_loopback, media_type},
};
use crate::proxy::{
    Settings, answer,
    conversation::{Conversation, FromClient, request_meta},
    enforcement::Enforcement,
    gate::Gate,
    held::{Held, Peers},
    message::{self, Head},
    signals::Signals,
    splice::member,
};

/// How long running requests may take to end when we are to end.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How many progress messages of a held call wait for a client that does not read.
const UNREAD: usize = 16;

/// A socket of this host, ready to serve.
#[derive(Debug)]
pub struct Listener(TcpListener);

/// An address that can't be listened on.
#[derive(Debug, thiserror::Error)]
pub enum CannotListen {
    /// Others than this host could come in there.
    #[error(
        "{0} is not a loopback address: the proxy adds credentials to what it forwards, so only this host may reach it. Use 127.0.0.1:PORT"
    )]
    NotLoopback(SocketAddr),
    /// The system refuses it.
    #[error("{0} can't be listened on: {1}")]
    System(SocketAddr, io::Error),
}

impl Listener {
    /// Listens on a loopback address; with port 0 on a free one.
    ///
    /// # Errors
    /// For another address, and where the system refuses it.
    pub async fn bind(address: SocketAddr) -> Result<Self, CannotListen> {
        if !is_loopback(address.ip()) {
            return Err(CannotListen::NotLoopback(address));
        }
        let socket = TcpListener::bind(address).await;
        socket
            .map(Self)
            .map_err(|error| CannotListen::System(address, error))
    }

    /// Where a client finds the server.
    ///
    /// # Errors
    /// Those of the system.
    pub fn url(&self, upstream: &Upstream) -> io::Result<String> {
        Ok(format!(
            "http://{}{}",
            self.0.local_addr()?,
            upstream.path()
        ))
    }

    /// Serves until a signal ends us. Returns the exit code.
    ///
    /// # Errors
    /// Those of the system.
    pub async fn serve<E: Enforcement>(
        self,
        enforcer: E,
        settings: Settings,
        upstream: Upstream,
    ) -> io::Result<u8> {
        let gate = Arc::new(Gate::new(enforcer, settings.name));
        let door = Arc::new(Door {
            sessions: Sessions::new(gate.clone()),
            upstream,
            longest: settings.longest,
        });
        let app = Router::new()
            .fallback(answer_request::<E>)
            .with_state(door.clone());
        let mut signals = Signals::new();
        // Progress is small, and not to be collected.
        let socket = self.0.tap_io(|connection| {
            if let Err(error) = connection.set_nodelay(true) {
                tracing::debug!(%error, "a connection keeps its delay");
            }
        });
        let serving = async { axum::serve(socket, app).await };
        let code = tokio::select! {
            served = serving => served.map(|()| 0),
            signal = signals.next() => Ok(Signals::exit_code(signal)),
        };
        door.sessions.close();
        // Their guards are told; what is inserted already is recorded.
        tokio::time::timeout(LAST_WORDS, gate.settled()).await.ok();
        door.sessions.end_all();
        gate.end().await;
        code
    }
}

struct Door<E: Enforcement> {
    sessions: Sessions<E>,
    upstream: Upstream,
    longest: usize,
}

async fn answer_request<E: Enforcement>(
    State(door): State<Arc<Door<E>>>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    if let Some(why) = doors::refused(&parts.uri, &parts.headers) {
        return refuse(StatusCode::FORBIDDEN, None, answer::INVALID_REQUEST, why);
    }
    if parts.uri.path() != door.upstream.path() {
        return StatusCode::NOT_FOUND.into_response();
    }
    match parts.method {
        Method::POST => door.post(&parts, body).await,
        Method::GET | Method::DELETE => door.other(parts).await,
        _ => (
            StatusCode::METHOD_NOT_ALLOWED,
            [(header::ALLOW, "GET, POST, DELETE")],
        )
            .into_response(),
    }
}

fn refuse(status: StatusCode, id: Option<&RawValue>, code: i32, why: &str) -> Response {
    json(status, answer::error(id, code, why))
}

/// A client's headers, as the server gets them.
fn to_server(headers: &HeaderMap) -> HeaderMap {
    let mut headers = passing(headers);
    // It was looked at here, and names an origin that is none to the server.
    headers.remove(header::ORIGIN);
    headers
}

impl<E: Enforcement> Door<E> {
    async fn post(self: Arc<Self>, parts: &Parts, body: Body) -> Response {
        let headers = &parts.headers;
        if !media_type(headers).eq_ignore_ascii_case("application/json")
            || headers.contains_key(header::CONTENT_ENCODING)
        {
            let why = "a message is application/json, without a content encoding";
            return refuse(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                None,
                answer::INVALID_REQUEST,
                why,
            );
        }
        let Ok(body) = axum::body::to_bytes(body, self.longest).await else {
            let why = format!("a message has at most {} bytes", self.longest);
            return refuse(
                StatusCode::PAYLOAD_TOO_LARGE,
                None,
                answer::INVALID_REQUEST,
                &why,
            );
        };
        let head = match Head::read(&body) {
            Ok(head) => head,
            Err(unreadable) => {
                let id = message::request_id(&body);
                return refuse(
                    StatusCode::BAD_REQUEST,
                    id,
                    unreadable.code(),
                    &unreadable.to_string(),
                );
            }
        };
        let meta = request_meta(&head);
        if let Some(what) = contradiction(headers, &head, &meta) {
            return refuse(
                StatusCode::BAD_REQUEST,
                head.id,
                answer::HEADER_MISMATCH,
                &what,
            );
        }
        let session = headers.get(SESSION).filter(|_| !meta.is_modern());
        if session.is_none() && self.cancels_single(&head) {
            return StatusCode::ACCEPTED.into_response();
        }
        let conversation = self.sessions.conversation(session);
        let id = head.id.filter(|_| head.method.is_some());
        match conversation.decide(&head, body.len()) {
            FromClient::Drop => StatusCode::ACCEPTED.into_response(),
            FromClient::Answer(answer) => {
                let is_error = Head::read(&answer).is_ok_and(|head| head.error.is_some());
                json(
                    if is_error {
                        StatusCode::BAD_REQUEST
                    } else {
                        StatusCode::OK
                    },
                    answer,
                )
            }
            FromClient::Forward => {
                let begins = head.method.as_deref() == Some("initialize");
                let exchange = Exchange::new(
                    conversation.clone(),
                    id,
                    session.is_some() || begins,
                    self.longest,
                );
                self.pass(
                    exchange,
                    to_server(headers),
                    body.to_vec(),
                    begins.then_some(conversation),
                )
                .await
            }
            FromClient::Hold(held) => {
                if session.is_none() {
                    self.sessions.hold_single(&conversation);
                }
                let exchange = Exchange::new(conversation, id, session.is_some(), self.longest);
                self.hold(held, exchange, headers, body.to_vec()).await
            }
        }
    }

    fn cancels_single(&self, head: &Head<'_>) -> bool {
        head.method.as_deref() == Some("notifications/cancelled")
            && head
                .params
                .and_then(|params| member(params, "requestId").ok().flatten())
                .is_some_and(|id| self.sessions.cancel_single(id))
    }

    async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<reqwest::Response, Unreached> {
        let sent = self
            .upstream
            .request(method, headers)
            .body(body)
            .send()
            .await;
        sent.map_err(|error| Unreached {
            seen: !error.is_connect(),
            why: format!(
                "{} could not be reached: {}",
                self.upstream.shown(),
                error.without_url()
            ),
        })
    }

    async fn pass(
        &self,
        mut exchange: Exchange<E>,
        headers: HeaderMap,
        body: Vec<u8>,
        begins: Option<Arc<Conversation<E>>>,
    ) -> Response {
        exchange.sent = true;
        let response = match self.send(Method::POST, headers, body).await {
            Ok(response) => response,
            Err(unreached) => {
                exchange.sent = unreached.seen;
                return exchange.bad_gateway(&unreached.why);
            }
        };
        if let (Some(conversation), Some(session)) = (begins, response.headers().get(SESSION)) {
            self.sessions.begin(session.clone(), conversation);
        }
        exchange.pass_on(response).await
    }

    /// The stream of what the server says unasked, and the end of a session.
    async fn other(&self, parts: Parts) -> Response {
        let session: Option<&HeaderValue> = parts.headers.get(SESSION);
        let conversation = self.sessions.conversation(session);
        let exchange = Exchange::new(conversation, None, session.is_some(), self.longest);
        let ends = parts.method == Method::DELETE;
        match self
            .send(parts.method, to_server(&parts.headers), vec![])
            .await
        {
            Ok(response) => {
                if let Some(session) = session.filter(|_| ends && response.status().is_success()) {
                    self.sessions.end(session);
                }
                exchange.pass_on(response).await
            }
            Err(unreached) => exchange.bad_gateway(&unreached.why),
        }
    }

    /// Waits for a call's guard, then passes the call on, or answers it. A client that goes away meanwhile cancels it.
    async fn hold(
        self: Arc<Self>,
        held: Box<Held<E>>,
        mut exchange: Exchange<E>,
        headers: &HeaderMap,
        body: Vec<u8>,
    ) -> Response {
        let (send, mut progress) = mpsc::channel(UNREAD);
        let streams = held.progress_key().is_some() && accepts_events(headers);
        let waiting: DropGuard = held.entry.cancel.clone().drop_guard();
        let headers = to_server(headers);
        let peers = Waiting {
            door: self.clone(),
            headers: headers.clone(),
            progress: streams.then_some(send),
        };
        let mut settling = tokio::spawn(async move {
            let why = match held.settle(&peers).await {
                Ok(ticket) => {
                    if held.conversation.admit(&held, ticket) {
                        return Ok(exchange);
                    }
                    gone()
                }
                Err(error) => error,
            };
            exchange.forget();
            Err(held.conversation.refuse(&held, &why))
        });
        if !streams {
            let settled = settling.await;
            waiting.disarm();
            return match settled {
                Ok(Ok(exchange)) => self.pass(exchange, headers, body, None).await,
                Ok(Err(Some(answer))) => json(StatusCode::OK, answer),
                Ok(Err(None)) => StatusCode::ACCEPTED.into_response(),
                Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            };
        }
        let stream = async_stream::stream! {
            let settled = loop {
                tokio::select! {
                    Some(message) = progress.recv() => yield Ok(events::event(&message).into()),
                    settled = &mut settling => break settled,
                }
            };
            while let Ok(message) = progress.try_recv() {
                yield Ok(events::event(&message).into());
            }
            waiting.disarm();
            match settled {
                Ok(Ok(mut exchange)) => {
                    exchange.sent = true;
                    let response = self.send(Method::POST, headers, body).await.map_err(|unreached| {
                        exchange.sent = unreached.seen;
                        unreached.why
                    });
                    for await event in exchange.into_events(response) {
                        yield event;
                    }
                }
                Ok(Err(answer)) => {
                    if let Some(answer) = answer {
                        yield Ok(events::event(&answer).into());
                    }
                }
                Err(_) => {}
            }
        };
        (
            [
                (header::CONTENT_TYPE, "text/event-stream"),
                (header::CACHE_CONTROL, "no-cache"),
            ],
            Body::from_stream(stream),
        )
            .into_response()
    }
}

/// The server could not be reached.
struct Unreached {
    why: String,
    /// It may have seen the request.
    seen: bool,
}

/// A held call's two sides.
struct Waiting<E: Enforcement> {
    door: Arc<Door<E>>,
    headers: HeaderMap,
    progress: Option<mpsc::Sender<Vec<u8>>>,
}

impl<E: Enforcement> Peers for Waiting<E> {
    async fn tell_client(&self, message: Vec<u8>) {
        if let Some(progress) = &self.progress {
            // Nobody reads any more: the call is cancelled by that.
            let _ = progress.send(message).await;
        }
    }

    async fn ask_server(&self, id: &RawValue, request: Vec<u8>) -> Result<Vec<u8>, String> {
        let mut headers: HeaderMap = self
            .headers
            .iter()
            .filter(|(name, _)| **name != NAME && !name.as_str().starts_with("mcp-param-"))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if headers.contains_key(METHOD) {
            headers.insert(METHOD, HeaderValue::from_static("tools/list"));
        }
        let response = self
            .door
            .send(Method::POST, headers, request)
            .await
            .map_err(|unreached| unreached.why)?;
        answer_to(response, id, self.door.longest).await
    }
}

fn accepts_events(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|value| value.split(';').next())
        .any(|value| value.trim().eq_ignore_ascii_case("text/event-stream"))
}

fn gone() -> Error {
    Error::new(ErrorCode::Cancelled, "the proxy is ending")
        .with_next("Call the tool again if it is still wanted.")
}
