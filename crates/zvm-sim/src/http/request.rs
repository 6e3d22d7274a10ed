//! A request, read whole.

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, HeaderName, Method, Request, header};
use bytes::Bytes;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::reply::Failure;

/// Requests have small bodies.
const BODY_LIMIT: usize = 1024 * 1024;

pub(super) struct Call {
    pub(super) method: Method,
    /// As it was sent.
    pub(super) path: String,
    /// The path's segments, decoded.
    pub(super) segments: Vec<String>,
    pub(super) query_text: String,
    query: Vec<(String, String)>,
    headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Call {
    pub(super) async fn read(request: Request<Body>) -> Result<Self, Failure> {
        let (parts, body) = request.into_parts();
        let body = to_bytes(body, BODY_LIMIT)
            .await
            .map_err(|_| Failure::too_large())?;
        let path = parts.uri.path().to_owned();
        let query_text = parts.uri.query().unwrap_or_default().to_owned();
        Ok(Self {
            segments: path
                .split('/')
                .filter(|segment| !segment.is_empty())
                .map(|segment| percent_decode_str(segment).decode_utf8_lossy().into_owned())
                .collect(),
            query: url::form_urlencoded::parse(query_text.as_bytes())
                .into_owned()
                .collect(),
            method: parts.method,
            path,
            query_text,
            headers: parts.headers,
            body,
        })
    }

    pub(super) fn header(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(super) fn bearer(&self) -> Option<&str> {
        let value = self.header(&header::AUTHORIZATION)?;
        let (scheme, token) = value.split_once(' ')?;
        scheme
            .eq_ignore_ascii_case("bearer")
            .then_some(token.trim())
            .filter(|token| !token.is_empty())
    }

    /// Whether the client takes JSON. The real ZVM can also write XML; the simulator can't.
    pub(super) fn accepts_json(&self) -> bool {
        let accept = self.header(&header::ACCEPT).unwrap_or_default();
        accept.is_empty()
            || accept.split(',').any(|range| {
                let kind = range.split(';').next().unwrap_or_default().trim();
                matches!(
                    kind,
                    "*/*" | "application/*" | "application/json" | "text/json"
                )
            })
    }

    /// A query parameter that is not empty, by its name in any letter case.
    pub(super) fn query(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(own, value)| own.eq_ignore_ascii_case(name) && !value.is_empty())
            .map(|(_, value)| value.as_str())
    }

    /// The members of a form body.
    pub(super) fn form(&self) -> Vec<(String, String)> {
        url::form_urlencoded::parse(&self.body)
            .into_owned()
            .collect()
    }

    /// The body as JSON.
    pub(super) fn json(&self) -> Result<Value, Failure> {
        if self.body.is_empty() {
            return Err(Failure::bad("The request has no body."));
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| Failure::bad(format!("The request's body is not JSON: {error}")))
    }
}

/// A member of an object by its name in any letter case.
pub(super) fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object
        .as_object()?
        .iter()
        .find(|(own, _)| own.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
        .filter(|value| !value.is_null())
}

/// The same, if it is a string (or a number, for identifiers).
pub(super) fn text_member(object: &Value, name: &str) -> Option<String> {
    match member(object, name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Whom a request's task is attributed to.
pub(super) const INITIATOR: &str = "api-client";
