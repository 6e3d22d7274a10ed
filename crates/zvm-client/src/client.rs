//! A ZVM that may be called, and what all calls have in common.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Method, RequestBuilder, StatusCode, header};
use serde_json::Value;
use tokio::{sync::OnceCell, time::Instant};
use url::Url;

use crate::{
    Error, Login, LoginGate, ZvmConfig,
    auth::{Auth, Token},
    decode,
    transport::{Effect, Failure, Reply, Retrying, Transport, seconds},
};

/// Of an answer that is a list.
pub(crate) const LIST: u64 = 128 << 20;
/// Of an answer that is one object.
pub(crate) const OBJECT: u64 = 4 << 20;

/// Unreserved characters of RFC 3986 stay as they are.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A ZVM that may be called. Cheap to clone; clones share the token and the connections. Nothing is sent (and no TLS set up)
/// before the first call.
///
/// Questions (GETs, browsing, asking for a download) are repeated a few times after connection failures, 429, 502, 503 and 504. Whatever
/// changes something never is, but where it surely was not carried out: it could not be sent, it was answered with 429, or, once and
/// with a new token, with 401.
#[derive(Clone)]
pub struct Zvm {
    shared: Arc<Shared>,
    deadline: Option<Instant>,
}

struct Shared {
    transport: Arc<Transport>,
    auth: Arc<Auth>,
    statuses: OnceCell<Vec<String>>,
    sub_statuses: OnceCell<Vec<String>>,
}

impl fmt::Debug for Zvm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zvm")
            .field("host", &self.host())
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// When a call has to be over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) until: Instant,
    /// It is the caller's deadline, not the total time for a call.
    callers: bool,
}

/// A request, before it has a token.
pub(crate) struct Call<'a> {
    pub(crate) what: &'a str,
    method: Method,
    url: Url,
    body: Option<Value>,
    effect: Effect,
    limit: u64,
}

impl<'a> Call<'a> {
    /// A GET: repeated where that may help.
    pub(crate) fn get(what: &'a str, url: Url, limit: u64) -> Self {
        Self {
            what,
            method: Method::GET,
            url,
            body: None,
            effect: Effect::None,
            limit,
        }
    }

    /// A POST that only asks: repeated as a GET is.
    pub(crate) fn ask(what: &'a str, url: Url, body: Value, limit: u64) -> Self {
        Self {
            what,
            method: Method::POST,
            url,
            body: Some(body),
            effect: Effect::None,
            limit,
        }
    }

    /// A POST that changes something.
    pub(crate) fn post(what: &'a str, url: Url, body: Value) -> Self {
        Self {
            what,
            method: Method::POST,
            url,
            body: Some(body),
            effect: Effect::Change,
            limit: OBJECT,
        }
    }

    /// A DELETE.
    pub(crate) fn delete(what: &'a str, url: Url) -> Self {
        Self {
            what,
            method: Method::DELETE,
            url,
            body: None,
            effect: Effect::Change,
            limit: OBJECT,
        }
    }

    /// An answer that can't be read. Where it answers a change, that may have happened.
    pub(crate) fn unreadable(&self, detail: String) -> Error {
        let what = self.what.to_owned();
        match self.effect {
            Effect::None => Error::Unreadable { what, detail },
            Effect::Change => Error::Unknown {
                what,
                detail: format!("the answer can't be read: {detail}"),
            },
        }
    }
}

impl Zvm {
    /// One ZVM, to be called as `config` says.
    ///
    /// # Errors
    /// Only for a configuration that can never work: a URL that is not `https://host[:port]/`.
    pub fn new(config: ZvmConfig, gate: Arc<dyn LoginGate>) -> Result<Self, Error> {
        let transport = Arc::new(Transport::new(&config)?);
        let auth = Arc::new(Auth::new(config.credentials, gate, Arc::clone(&transport))?);
        Ok(Self {
            shared: Arc::new(Shared {
                transport,
                auth,
                statuses: OnceCell::new(),
                sub_statuses: OnceCell::new(),
            }),
            deadline: None,
        })
    }

    /// The same ZVM with a deadline for every call made through it: login and retries are within it, and so is the opening of
    /// a download; the bytes of a download are not.
    pub fn by(&self, deadline: Instant) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            deadline: Some(deadline),
        }
    }

    /// Logs in, unless there is a token already. Calls do that by themselves.
    ///
    /// # Errors
    /// Those of a login: [`Error::LoginRefused`], [`Error::LoginBlocked`], [`Error::NoSecret`], and those of the connection.
    pub async fn log_in(&self) -> Result<Login, Error> {
        let limit = self.limit();
        let sent = AtomicBool::new(false);
        self.within(limit, "log in", &sent, self.auth().login(limit.until))
            .await
    }

    /// Host and port, as messages name it.
    pub fn host(&self) -> &str {
        self.shared.transport.host()
    }

    pub(crate) fn transport(&self) -> &Arc<Transport> {
        &self.shared.transport
    }

    pub(crate) fn auth(&self) -> &Arc<Auth> {
        &self.shared.auth
    }

    pub(crate) fn status_names(&self) -> &OnceCell<Vec<String>> {
        &self.shared.statuses
    }

    pub(crate) fn sub_status_names(&self) -> &OnceCell<Vec<String>> {
        &self.shared.sub_statuses
    }

    /// The URL of `/v1/…`; each `{}` of the template is an identifier, encoded.
    pub(crate) fn url(&self, what: &str, template: &str, ids: &[&str]) -> Result<Url, Error> {
        let mut path = String::new();
        let mut ids = ids.iter();
        for (index, part) in template.split("{}").enumerate() {
            if index > 0 {
                let id = ids.next().copied().unwrap_or_default();
                // A segment of dots would leave its place in the path, however it is encoded.
                if id.is_empty() || id == "." || id == ".." {
                    return Err(Error::NotFound {
                        what: what.to_owned(),
                        message: format!("\"{id}\" is no identifier"),
                    });
                }
                path.extend(utf8_percent_encode(id, SEGMENT));
            }
            path.push_str(part);
        }
        self.transport()
            .base()
            .join(&path)
            .map_err(|error| Error::Config(format!("the URL for {path} can't be made: {error}")))
    }

    /// When a call that begins now has to be over: at the caller's deadline, or after the total time for a call.
    pub(crate) fn limit(&self) -> Limit {
        let own = Instant::now() + self.transport().timeouts().total;
        match self.deadline {
            Some(deadline) if deadline < own => Limit {
                until: deadline,
                callers: true,
            },
            _ => Limit {
                until: own,
                callers: false,
            },
        }
    }

    /// Does `work` within `limit`; `sent` says whether it has sent a change by then.
    pub(crate) async fn within<T>(
        &self,
        limit: Limit,
        what: &str,
        sent: &AtomicBool,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        // A time-out polls what it limits once, even when it is over already.
        if limit.until > Instant::now()
            && let Ok(done) = tokio::time::timeout_at(limit.until, work).await
        {
            return done;
        }
        let what = what.to_owned();
        let detail = format!(
            "not done within {}",
            seconds(self.transport().timeouts().total)
        );
        Err(match (limit.callers, sent.load(Ordering::Relaxed)) {
            (true, unknown) => Error::Deadline { what, unknown },
            (false, true) => Error::Unknown { what, detail },
            (false, false) => Error::Unreachable {
                what,
                host: self.host().to_owned(),
                detail,
            },
        })
    }

    /// Sends a call, with all that this takes, and returns the body of a success.
    pub(crate) async fn call(&self, call: &Call<'_>) -> Result<Bytes, Error> {
        let limit = self.limit();
        let sent = AtomicBool::new(false);
        self.within(limit, call.what, &sent, async {
            let token = self.auth().token(limit.until).await?;
            let mut reply = self.send(call, &token, limit, &sent).await?;
            if reply.status == StatusCode::UNAUTHORIZED {
                // It was not carried out.
                sent.store(false, Ordering::Relaxed);
                let token = self.auth().other_than(&token, limit.until).await?;
                reply = self.send(call, &token, limit, &sent).await?;
            }
            self.success(call.what, &reply)?;
            Ok(reply.body)
        })
        .await
    }

    async fn send(
        &self,
        call: &Call<'_>,
        token: &Token,
        limit: Limit,
        sent: &AtomicBool,
    ) -> Result<Reply, Error> {
        let transport = self.transport();
        let client = transport.client().await?;
        let attempt = async || {
            let mut request =
                self.authorized(client.request(call.method.clone(), call.url.clone()), token);
            if let Some(body) = &call.body {
                request = request.json(body);
            }
            sent.store(call.effect == Effect::Change, Ordering::Relaxed);
            let reply = match call.effect {
                Effect::None => transport.ask(request, call.limit).await,
                Effect::Change => transport.exchange(request, call.limit).await,
            };
            if reply.as_ref().is_err_and(Failure::is_untouched) {
                sent.store(false, Ordering::Relaxed);
            }
            tracing::debug!(
                method = %call.method,
                path = call.url.path(),
                answer = %match &reply {
                    Ok(reply) => reply.status.to_string(),
                    Err(failure) => format!("{failure:?}"),
                },
            );
            reply
        };
        let passing = |failure: &Failure| failure.is_passing(call.effect);
        Retrying { until: limit.until }
            .run(attempt, |failure| Some(failure).filter(|it| passing(it)))
            .await
            .map_err(|failure| failure.into_error(call.what, self.host(), call.effect))
    }

    pub(crate) fn authorized(&self, request: RequestBuilder, token: &Token) -> RequestBuilder {
        request
            .header(header::ACCEPT, "application/json")
            .bearer_auth(token.access())
    }

    /// What an answer with another status than 2xx means.
    pub(crate) fn success(&self, what: &str, reply: &Reply) -> Result<(), Error> {
        if reply.status.is_success() {
            return Ok(());
        }
        let what = what.to_owned();
        let message = decode::said_by(&reply.body);
        Err(match reply.status {
            StatusCode::NOT_FOUND => Error::NotFound { what, message },
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Error::NotPermitted {
                what,
                account: self.auth().account().to_owned(),
                detail: format!(
                    "the ZVM answered {} to a valid login ({}). An administrator has to give the account a role that \
                     permits this, in the ZVM's user management",
                    reply.status.as_u16(),
                    message
                ),
            },
            status => Error::Refused {
                what,
                status: status.as_u16(),
                message,
            },
        })
    }
}
