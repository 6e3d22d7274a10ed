//! One request, from its POST to its answer.
use std::{sync::Arc, time::Duration};

use reqwest::{
    Method, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use serde_json::value::RawValue;

use super::Bridge;
use crate::proxy::{
    answer::HEADER_MISMATCH,
    call::TOOLS_CALL,
    conversation::{FromServer, request_meta},
    enforcement::Enforcement,
    gate::lock,
    held::{list_request, own_id, own_meta},
    http::{
        events::{answers, on_one_line},
        headers::{LAST_EVENT_ID, PROTOCOL_VERSION, SESSION, mirror},
        upstream::{Events, body, is_events, is_json, plain},
    },
    message::{Head, Key},
    splice::member,
};

/// How often a broken stream is taken up again without a new event.
const RESUMES: u32 = 5;
/// The pause before that, where the server does not name one, and the longest that it may name.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How much of an error's body is read.
const ERROR_BODY: usize = 1024 * 1024;

/// A request on its way.
pub struct Request {
    body: Vec<u8>,
    id: Box<RawValue>,
    method: String,
    modern: bool,
    headers: HeaderMap,
}

/// How an exchange ended without an answer.
pub struct Failed {
    pub why: String,
    /// Whether the server may have seen the request.
    pub sent: bool,
}

impl Failed {
    fn after_sending(why: impl ToString) -> Self {
        Self {
            why: why.to_string(),
            sent: true,
        }
    }
}

impl<E: Enforcement> Bridge<E> {
    pub(super) fn request(
        &self,
        head: &Head<'_>,
        id: &RawValue,
        method: &str,
        body: &[u8],
    ) -> Request {
        Request {
            body: body.to_vec(),
            id: id.to_owned(),
            method: method.into(),
            modern: request_meta(head).is_modern(),
            headers: self.headers(head),
        }
    }

    pub(super) fn headers(&self, head: &Head<'_>) -> HeaderMap {
        let meta = request_meta(head);
        let mut headers = if meta.is_modern() {
            mirror(head, &meta, &lock(&self.params))
        } else {
            self.session_headers()
        };
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(
            ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        );
        headers
    }

    pub(super) fn session_headers(&self) -> HeaderMap {
        let link = lock(&self.link);
        let mut headers = HeaderMap::new();
        for (name, value) in [(SESSION, &link.session), (PROTOCOL_VERSION, &link.version)] {
            if let Some(value) = value {
                headers.insert(name, value.clone());
            }
        }
        headers
    }

    pub(super) async fn post(
        &self,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<reqwest::Response, Failed> {
        let sent = self
            .upstream
            .request(Method::POST, headers)
            .body(body)
            .send()
            .await;
        sent.map_err(|error| Failed {
            sent: !error.is_connect(),
            why: format!(
                "{} could not be reached: {}",
                self.upstream.shown(),
                whole(&error.without_url())
            ),
        })
    }

    /// Sends a request and passes on what comes back, until it is answered.
    pub(super) async fn exchange(&self, request: Request) {
        let cancel = self.stop.child_token();
        let key = Key::new(&request.id);
        if let (true, Some(key)) = (request.modern, &key) {
            lock(&self.open).insert(key.clone(), cancel.clone());
        }
        let ended = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            ended = self.answered(&request) => Some(ended),
        };
        if let Some(key) = &key {
            lock(&self.open).remove(key);
        }
        let failed = match ended {
            Some(Ok(())) => return,
            Some(Err(failed)) => failed,
            // Nobody waits for the answer.
            None => {
                self.conversation.failed(&request.id, true, "cancelled");
                return;
            }
        };
        let answer = self
            .conversation
            .failed(&request.id, failed.sent, &failed.why);
        self.write(answer).await;
    }

    async fn answered(&self, request: &Request) -> Result<(), Failed> {
        let mut response = self
            .post(request.headers.clone(), request.body.clone())
            .await?;
        if request.modern
            && request.method == TOOLS_CALL
            && response.status() == StatusCode::BAD_REQUEST
        {
            let refusal = body(response, ERROR_BODY)
                .await
                .map_err(Failed::after_sending)?;
            let headers = if misses_headers(&refusal) {
                self.with_param_headers(request).await
            } else {
                None
            };
            let Some(headers) = headers else {
                return self
                    .refused(request, StatusCode::BAD_REQUEST, refusal)
                    .await;
            };
            // It was refused, not executed: it can be sent again with the headers that the server wants to see.
            response = self.post(headers, request.body.clone()).await?;
        }
        let status = response.status();
        if request.method == "initialize" && status.is_success() {
            let mut link = lock(&self.link);
            link.session = response.headers().get(SESSION).cloned();
            link.version = None;
            link.listening = false;
        }
        let response = plain(response).map_err(Failed::after_sending)?;
        if !status.is_success() {
            let body = body(response, ERROR_BODY).await.unwrap_or_default();
            return self.refused(request, status, body).await;
        }
        if is_events(response.headers()) {
            return self.stream(request, response).await;
        }
        if !is_json(response.headers()) {
            let why = format!(
                "{} answered {status} without an answer",
                self.upstream.shown()
            );
            return Err(Failed::after_sending(why));
        }
        let message = body(response, self.longest)
            .await
            .map_err(Failed::after_sending)?;
        let answered = answers(&message, &request.id);
        self.deliver(message, Some(request)).await;
        if answered {
            return Ok(());
        }
        Err(Failed::after_sending("the server answered something else"))
    }

    /// Passes on a JSON-RPC error, and makes one of everything else.
    async fn refused(
        &self,
        request: &Request,
        status: StatusCode,
        body: Vec<u8>,
    ) -> Result<(), Failed> {
        if answers(&body, &request.id) {
            self.deliver(body, Some(request)).await;
            return Ok(());
        }
        let said = Head::read(&body).ok().and_then(|head| {
            let message = member(head.error?, "message").ok()??;
            serde_json::from_str::<String>(message.get()).ok()
        });
        let hint = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                "; credentials go into ZERTO_REWIND_PROXY_HEADER_AUTHORIZATION"
            }
            StatusCode::NOT_FOUND if lock(&self.link).session.is_some() => {
                "; its session may be over: start the MCP client's connection again"
            }
            _ if status.is_redirection() => {
                "; redirects are not followed: give the URL that it leads to"
            }
            _ => "",
        };
        let said = said.map(|said| format!(" ({said})")).unwrap_or_default();
        Err(Failed::after_sending(format!(
            "{} answered {status}{said}{hint}",
            self.upstream.shown()
        )))
    }

    /// Passes on the events of a request's stream. A stream that ends early is taken up again, in eras that can.
    async fn stream(&self, request: &Request, response: reqwest::Response) -> Result<(), Failed> {
        let mut events = Events::new(response, self.longest);
        let (mut last, mut pause, mut resumes) = (None, PAUSE, 0);
        loop {
            let why = loop {
                match events.next().await {
                    Ok(Some(event)) => {
                        if let Some(id) = event
                            .id
                            .as_deref()
                            .and_then(|id| HeaderValue::from_str(id).ok())
                        {
                            last = Some(id);
                            resumes = 0;
                        }
                        pause = event
                            .retry
                            .map_or(pause, Duration::from_millis)
                            .min(LONGEST_PAUSE);
                        let Some(message) = event.data.filter(|data| !data.is_empty()) else {
                            continue;
                        };
                        let answered = answers(&message, &request.id);
                        self.deliver(message, Some(request)).await;
                        if answered {
                            return Ok(());
                        }
                    }
                    Ok(None) => break "the server's stream ended without an answer".into(),
                    Err(error) => {
                        break format!("the server's stream broke off without an answer: {error}");
                    }
                }
            };
            let Some(last) = last
                .as_ref()
                .filter(|_| !request.modern && resumes < RESUMES)
            else {
                return Err(Failed::after_sending(why));
            };
            events = loop {
                resumes += 1;
                tokio::time::sleep(pause).await;
                match self.resume(Some(last)).await {
                    Ok(response) => break Events::new(response, self.longest),
                    Err(_) if resumes < RESUMES => {}
                    Err(again) => return Err(Failed::after_sending(format!("{why}; {again}"))),
                }
            };
        }
    }

    async fn resume(&self, last: Option<&HeaderValue>) -> Result<reqwest::Response, String> {
        let mut headers = self.session_headers();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(last) = last {
            headers.insert(LAST_EVENT_ID, last.clone());
        }
        let response = self
            .upstream
            .request(Method::GET, headers)
            .send()
            .await
            .map_err(|error| whole(&error.without_url()))?;
        let response = plain(response).map_err(|error| error.to_string())?;
        if response.status().is_success() && is_events(response.headers()) {
            return Ok(response);
        }
        Err(format!(
            "a stream was asked for, and the answer was {}",
            response.status()
        ))
    }

    /// Opens the stream of what the server says unasked, in eras that have one.
    pub(super) fn listen(self: &Arc<Self>) {
        if std::mem::replace(&mut lock(&self.link).listening, true) {
            return;
        }
        let bridge = self.clone();
        // Not among the work that is waited for at the end.
        tokio::spawn(async move {
            let listening = async {
                let (mut last, mut pause, mut failures, mut opened) = (None, PAUSE, 0, false);
                while failures < RESUMES {
                    match bridge.resume(last.as_ref()).await {
                        Ok(response) => {
                            opened = true;
                            let mut events = Events::new(response, bridge.longest);
                            while let Ok(Some(event)) = events.next().await {
                                failures = 0;
                                last = event
                                    .id
                                    .as_deref()
                                    .and_then(|id| HeaderValue::from_str(id).ok())
                                    .or(last);
                                pause = event
                                    .retry
                                    .map_or(pause, Duration::from_millis)
                                    .min(LONGEST_PAUSE);
                                if let Some(message) = event.data.filter(|data| !data.is_empty()) {
                                    bridge.deliver(message, None).await;
                                }
                            }
                        }
                        Err(why) => {
                            tracing::debug!(why, "no stream for what the server says unasked");
                            if !opened {
                                return;
                            }
                        }
                    }
                    failures += 1;
                    tokio::time::sleep(pause).await;
                }
            };
            tokio::select! {
                () = bridge.stop.cancelled() => {}
                () = listening => {}
            }
        });
    }

    /// Passes on a message of the server, and reads what it says about how to speak to it.
    async fn deliver(&self, message: Vec<u8>, request: Option<&Request>) {
        let message = on_one_line(message);
        if let Some(request) = request {
            self.learn(request, &message);
        }
        match self.conversation.server_says(&message) {
            FromServer::Forward => self.write(message).await,
            FromServer::Instead(instead) => self.write(instead).await,
            FromServer::Drop => {}
        }
    }

    fn learn(&self, request: &Request, message: &[u8]) {
        if !matches!(request.method.as_str(), "initialize" | "tools/list") {
            return;
        }
        let Some(result) = Head::read(message).ok().and_then(|head| head.result) else {
            return;
        };
        if request.method == "tools/list" {
            lock(&self.params).read(result);
        } else if let Ok(Some(version)) = member(result, "protocolVersion") {
            let version = serde_json::from_str::<String>(version.get()).ok();
            lock(&self.link).version =
                version.and_then(|version| HeaderValue::try_from(version).ok());
        }
    }

    /// Asks for the tools, and makes the headers anew. None where that changed nothing.
    async fn with_param_headers(&self, request: &Request) -> Option<HeaderMap> {
        let head = Head::read(&request.body).ok()?;
        let id = own_id().ok()?;
        let list = list_request(&id, own_meta(&request_meta(&head)).as_deref(), None);
        let list_head = Head::read(list.as_bytes()).ok()?;
        let headers = self.headers(&list_head);
        let response = self.post(headers, list.clone().into_bytes()).await.ok()?;
        let answer = answer_to(response, &id, self.longest).await.ok()?;
        let result = Head::read(&answer).ok()?.result?;
        let new = lock(&self.params).read(result);
        new.then(|| self.headers(&head))
    }
}

/// Whether a server refused a request because of its headers.
fn misses_headers(refusal: &[u8]) -> bool {
    Head::read(refusal)
        .ok()
        .and_then(|head| member(head.error?, "code").ok()?)
        .is_some_and(|code| code.get() == HEADER_MISMATCH.to_string())
}

/// The one answer to a request of ours.
pub async fn answer_to(
    response: reqwest::Response,
    id: &RawValue,
    longest: usize,
) -> Result<Vec<u8>, String> {
    let status = response.status();
    let response = plain(response).map_err(|error| error.to_string())?;
    if is_events(response.headers()) {
        let mut events = Events::new(response, longest);
        while let Some(event) = events.next().await.map_err(|error| error.to_string())? {
            if let Some(message) = event.data.filter(|message| answers(message, id)) {
                return Ok(message);
            }
        }
    } else if let Ok(message) = body(response, longest).await
        && answers(&message, id)
    {
        return Ok(message);
    }
    Err(format!("it answered {status} without an answer"))
}

/// An error with its causes.
pub fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
