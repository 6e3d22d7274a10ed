//! Answers, before they become HTTP.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;

use crate::app::App;
use crate::switches::ErrorBody;

pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) body: Payload,
}

pub(super) enum Payload {
    Whole(Bytes),
    Stream(BoxStream<'static, std::io::Result<Bytes>>),
}

const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

impl Reply {
    /// 200 with JSON.
    pub(super) fn json(body: Vec<u8>) -> Self {
        Self::json_with(StatusCode::OK, body)
    }

    pub(super) fn json_with(status: StatusCode, body: Vec<u8>) -> Self {
        Self::typed(status, JSON, body)
    }

    pub(super) fn typed(status: StatusCode, kind: HeaderValue, body: Vec<u8>) -> Self {
        Self {
            status,
            headers: vec![(header::CONTENT_TYPE, kind)],
            body: Payload::Whole(body.into()),
        }
    }

    pub(super) fn empty(status: StatusCode) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Payload::Whole(Bytes::new()),
        }
    }

    pub(super) fn html(status: StatusCode) -> Self {
        let title = status.canonical_reason().unwrap_or("Error");
        let code = status.as_u16();
        let page = format!(
            "<html>\r\n<head><title>{code} {title}</title></head>\r\n<body>\r\n<center><h1>{code} {title}</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"
        );
        Self::typed(
            status,
            HeaderValue::from_static("text/html"),
            page.into_bytes(),
        )
    }

    pub(super) fn message(status: StatusCode, message: &str) -> Self {
        let body = serde_json::json!({ "Message": message });
        Self::json_with(status, body.to_string().into_bytes())
    }

    pub(super) fn problem(status: StatusCode, detail: &str) -> Self {
        let body = serde_json::json!({
            "type": "https://tools.ietf.org/html/rfc7231",
            "title": status.canonical_reason().unwrap_or("Error"),
            "status": status.as_u16(),
            "detail": detail,
        });
        let kind = HeaderValue::from_static("application/problem+json; charset=utf-8");
        Self::typed(status, kind, body.to_string().into_bytes())
    }

    #[must_use]
    pub(super) fn header(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }

    /// `sent` is told how many bytes of the body were handed over, piece by piece.
    pub(super) fn into_response(self, sent: impl Fn(u64) + Send + 'static) -> Response<Body> {
        let body = match self.body {
            Payload::Whole(bytes) => {
                sent(bytes.len() as u64);
                Body::from(bytes)
            }
            Payload::Stream(stream) => Body::from_stream(stream.inspect(move |piece| {
                if let Ok(bytes) = piece {
                    sent(bytes.len() as u64);
                }
            })),
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        response.headers_mut().extend(
            self.headers
                .into_iter()
                .map(|(name, value)| (Some(name), value)),
        );
        response
    }
}

/// What could not be done.
#[derive(Debug)]
pub(super) struct Failure {
    status: StatusCode,
    /// Nothing: the answer has no body in any case.
    message: Option<String>,
    challenge: Option<&'static str>,
}

impl Failure {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: Some(message.into()),
            challenge: None,
        }
    }

    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    pub(super) fn too_large() -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "The request is too large.")
    }

    /// An unknown path, as the web server in front answers it.
    pub(super) fn no_such_path() -> Self {
        Self {
            status: StatusCode::NOT_FOUND,
            message: None,
            challenge: None,
        }
    }

    /// No token, or one that is not valid: an empty body, as ASP.NET has it.
    pub(super) fn unauthorized(had_token: bool) -> Self {
        Self {
            status: StatusCode::UNAUTHORIZED,
            message: None,
            challenge: Some(if had_token {
                r#"Bearer error="invalid_token""#
            } else {
                "Bearer"
            }),
        }
    }

    pub(super) fn into_reply(self, app: &App) -> Reply {
        let style = app.world().switches.error_body;
        let reply = match (&self.message, style) {
            (None, _) | (_, ErrorBody::Empty) => Reply::empty(self.status),
            (Some(message), ErrorBody::Message) => Reply::message(self.status, message),
            (Some(message), ErrorBody::Problem) => Reply::problem(self.status, message),
            (Some(_), ErrorBody::Html) => Reply::html(self.status),
        };
        match self.challenge {
            Some(challenge) => reply.header(header::WWW_AUTHENTICATE, challenge),
            None => reply,
        }
    }
}
