//! A request that is passed on, from its sending to its answer.
use std::sync::Arc;

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::value::RawValue;

use super::{
    events::{self, Event, answers, on_one_line},
    upstream::{Events, Unreadable, body, is_events, is_json, is_of_one_hop, plain},
};
use crate::proxy::{
    conversation::{Conversation, FromServer},
    enforcement::Enforcement,
};

/// How long an answer of the server may be that is no message.
const OTHER_BODY: usize = 1024 * 1024;

/// Knows at each moment what its loss means: dropped without an answer, the call counts as lost, or as not forwarded.
pub struct Exchange<E: Enforcement> {
    pub conversation: Arc<Conversation<E>>,
    /// None: nobody waits for an answer.
    pub id: Option<Box<RawValue>>,
    /// The server may have seen the request.
    pub sent: bool,
    /// The conversation goes on after this request.
    pub in_session: bool,
    pub longest: usize,
    answered: bool,
    /// The answer may still come on another stream.
    resumable: bool,
}

impl<E: Enforcement> Exchange<E> {
    pub fn new(
        conversation: Arc<Conversation<E>>,
        id: Option<&RawValue>,
        in_session: bool,
        longest: usize,
    ) -> Self {
        Self {
            conversation,
            id: id.map(ToOwned::to_owned),
            sent: false,
            in_session,
            longest,
            answered: false,
            resumable: false,
        }
    }

    /// It was answered by us.
    pub fn forget(&mut self) {
        self.answered = true;
    }

    /// What the client gets where there is no answer.
    fn failed(&mut self, why: &str) -> Option<Vec<u8>> {
        let id = self.id.as_ref().filter(|_| !self.answered)?;
        self.answered = true;
        Some(self.conversation.failed(id, self.sent, why))
    }

    /// Passes a message of the server on.
    fn take(&mut self, message: &[u8]) -> FromServer {
        self.answered |= self.id.as_ref().is_some_and(|id| answers(message, id));
        self.conversation.server_says(message)
    }

    fn take_event(&mut self, event: &Event) -> Vec<u8> {
        self.resumable |= event.id.is_some();
        match event
            .data
            .as_deref()
            .filter(|data| !data.is_empty())
            .map(|data| self.take(data))
        {
            None | Some(FromServer::Forward) => event.raw.clone(),
            Some(FromServer::Instead(message)) => event.with_data(&on_one_line(message)),
            Some(FromServer::Drop) => vec![],
        }
    }

    /// The server can't be reached, or can't be understood.
    pub fn bad_gateway(mut self, why: &str) -> Response {
        match self.failed(why) {
            Some(answer) => json(StatusCode::BAD_GATEWAY, answer),
            None => (StatusCode::BAD_GATEWAY, format!("{why}\n")).into_response(),
        }
    }

    /// The server's answer, as an answer of ours with the same status, headers and body.
    pub async fn pass_on(mut self, response: reqwest::Response) -> Response {
        let response = match plain(response) {
            Ok(response) => response,
            Err(why) => return self.bad_gateway(&why.to_string()),
        };
        let status = response.status();
        let headers = passing(response.headers());
        if is_events(response.headers()) {
            return (status, headers, Body::from_stream(self.events(response))).into_response();
        }
        let is_message = is_json(response.headers());
        let longest = if is_message { self.longest } else { OTHER_BODY };
        let body = match body(response, longest).await {
            Ok(body) => body,
            Err(why) => return self.bad_gateway(&why.to_string()),
        };
        let body = match is_message.then(|| self.take(&body)) {
            None | Some(FromServer::Forward) => body,
            Some(FromServer::Instead(message)) => message,
            Some(FromServer::Drop) => vec![],
        };
        (status, headers, body).into_response()
    }

    /// The server's stream as it comes.
    fn events(
        mut self,
        response: reqwest::Response,
    ) -> impl futures::Stream<Item = Result<Bytes, Unreadable>> {
        async_stream::stream! {
            let mut events = Events::new(response, self.longest);
            loop {
                match events.next().await {
                    Ok(Some(event)) => yield Ok(self.take_event(&event).into()),
                    Ok(None) => {
                        yield Ok(events.rest().into());
                        return;
                    }
                    // It breaks off for the client, too.
                    Err(error) => {
                        yield Err(error);
                        return;
                    }
                }
            }
        }
    }

    /// The server's answer as events of a stream that has begun: statuses and headers have no place there any more.
    pub fn into_events(
        mut self,
        response: Result<reqwest::Response, String>,
    ) -> impl futures::Stream<Item = Result<Bytes, Unreadable>> {
        async_stream::stream! {
            let response = match response {
                Ok(response) => plain(response).map_err(|why| why.to_string()),
                Err(why) => Err(why),
            };
            let why = match response {
                Err(why) => why,
                Ok(response) if is_events(response.headers()) => {
                    let mut events = Events::new(response, self.longest);
                    loop {
                        match events.next().await {
                            Ok(Some(event)) => yield Ok(self.take_event(&event).into()),
                            Ok(None) => break "the server's stream ended without an answer".into(),
                            Err(error) => break error.to_string(),
                        }
                    }
                }
                Ok(response) => {
                    let status = response.status();
                    match body(response, self.longest).await {
                        Ok(body) if self.id.as_ref().is_some_and(|id| answers(&body, id)) => {
                            let message = match self.take(&body) {
                                FromServer::Instead(message) => message,
                                _ => body,
                            };
                            yield Ok(events::event(&on_one_line(message)).into());
                            return;
                        }
                        Ok(_) => format!("the server answered {status}"),
                        Err(why) => why.to_string(),
                    }
                }
            };
            if !(self.resumable && self.in_session)
                && let Some(answer) = self.failed(&why)
            {
                yield Ok(events::event(&answer).into());
            }
        }
    }
}

impl<E: Enforcement> Drop for Exchange<E> {
    fn drop(&mut self) {
        if !(self.resumable && self.in_session) {
            self.failed("the client has gone");
        }
    }
}

/// The headers that are about the message.
pub fn passing(headers: &HeaderMap) -> HeaderMap {
    let named: Vec<String> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    headers
        .iter()
        .filter(|(name, _)| {
            !is_of_one_hop(name) && !named.iter().any(|named| named == name.as_str())
        })
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// A message of ours.
pub fn json(status: StatusCode, message: Vec<u8>) -> Response {
    (
        status,
        [(header::CONTENT_TYPE, "application/json")],
        message,
    )
        .into_response()
}
