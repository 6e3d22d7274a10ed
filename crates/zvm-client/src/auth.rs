//! The token: got once, kept alive, shared by all clones.
//!
//! The realm locks an account after five refused logins, so a password is sent once and never again after a refusal; how often
//! in all, the [`LoginGate`] says. At most one request for a token is on its way at any time; whoever needs one meanwhile waits
//! for that one and shares its outcome. It runs in a task of its own: a caller that gives up does not cut off a login of which
//! nobody would then know whether it was refused.

mod redact;
mod refusal;
mod token;

pub use token::Token;
pub(crate) use token::TokenWire;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use reqwest::{StatusCode, header};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::Instant;
use url::{Url, form_urlencoded};

use self::refusal::Refusal;
use crate::{
    Credentials, Error, LoginAttempt, LoginGate, bodies, decode,
    transport::{Effect, Failure, Reply, Retrying, Transport, seconds},
};

/// The client that every appliance's realm has.
const PUBLIC_CLIENT: &str = "zerto-client";
const TOKEN_PATH: &str = "auth/realms/zerto/protocol/openid-connect/token";
const WHAT: &str = "log in";
/// Left for a login that others are waited for.
const OF_A_LOGIN: Duration = Duration::from_millis(100);
/// Of a token answer.
const LIMIT: u64 = 1 << 20;

/// What a login brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// The roles that the token claims for the account, sorted, as Keycloak's default mappers write them. None where it claims none,
    /// which says nothing. For information: what is permitted, the ZVM decides.
    pub roles: Option<Vec<String>>,
}

type Flight = Shared<BoxFuture<'static, Result<Arc<Token>, Error>>>;

#[derive(Debug)]
pub(crate) struct Auth {
    credentials: Credentials,
    gate: Arc<dyn LoginGate>,
    transport: Arc<Transport>,
    url: Url,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    token: Option<Arc<Token>>,
    /// The request for a token that is on its way.
    flight: Option<Flight>,
}

/// Why a request for a token brought none.
#[derive(Clone, Debug)]
enum Denial {
    /// The realm refuses what was sent.
    Refused(Refusal),
    /// No answer of the realm.
    Failed(Failure),
    /// Anything else, final.
    Other(Error),
}

impl Denial {
    /// Whether the realm may have judged the secret without our knowing how. An answer that is about something else, or that somebody
    /// else gave, leaves nothing open.
    fn leaves_open(&self) -> bool {
        match self {
            Self::Failed(failure) => matches!(
                failure,
                Failure::Lost(_) | Failure::Cut(_) | Failure::TooLarge { .. }
            ),
            Self::Refused(_) | Self::Other(_) => false,
        }
    }
}

impl Auth {
    pub(crate) fn new(
        credentials: Credentials,
        gate: Arc<dyn LoginGate>,
        transport: Arc<Transport>,
    ) -> Result<Self, Error> {
        let url = transport.base().join(TOKEN_PATH).map_err(|error| {
            Error::Config(format!(
                "the URL of the token endpoint can't be made: {error}"
            ))
        })?;
        Ok(Self {
            credentials,
            gate,
            transport,
            url,
            state: Mutex::default(),
        })
    }

    pub(crate) fn account(&self) -> &str {
        self.credentials.account()
    }

    /// Makes sure that there is a token, and says what is in it.
    pub(crate) async fn login(self: &Arc<Self>, until: Instant) -> Result<Login, Error> {
        let token = self.token(until).await?;
        Ok(Login {
            roles: token.roles(),
        })
    }

    /// A token that is good for a while. Where it has to be asked for, nothing is sent again after `until`.
    pub(crate) async fn token(self: &Arc<Self>, until: Instant) -> Result<Arc<Token>, Error> {
        let flight = {
            let mut state = self.state();
            match &state.token {
                Some(token) if token.is_fresh() => return Ok(Arc::clone(token)),
                _ => self.flight(&mut state, until),
            }
        };
        flight.await
    }

    /// Another token than this one, which the ZVM did not accept.
    pub(crate) async fn other_than(
        self: &Arc<Self>,
        rejected: &Arc<Token>,
        until: Instant,
    ) -> Result<Arc<Token>, Error> {
        let flight = {
            let mut state = self.state();
            if state
                .token
                .as_ref()
                .is_some_and(|token| Arc::ptr_eq(token, rejected))
            {
                state.token = Some(Arc::new(rejected.spent()));
            }
            match &state.token {
                Some(token) if token.is_fresh() => return Ok(Arc::clone(token)),
                _ => self.flight(&mut state, until),
            }
        };
        flight.await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The request for a token that is on its way, begun if there is none.
    fn flight(self: &Arc<Self>, state: &mut State, until: Instant) -> Flight {
        if let Some(flight) = &state.flight {
            return flight.clone();
        }
        let old = state.token.clone();
        let landing = Landing(Arc::clone(self));
        let task = tokio::spawn(async move {
            let landing = landing;
            let total = landing.0.transport.timeouts().total;
            let outcome =
                tokio::time::timeout(total, landing.0.obtain(old.as_deref(), Retrying { until }))
                    .await
                    .unwrap_or_else(|_| {
                        Err(landing
                            .0
                            .unreachable(format!("not done within {}", seconds(total))))
                    })
                    .map(Arc::new);
            if let Ok(token) = &outcome {
                landing.0.state().token = Some(Arc::clone(token));
            }
            outcome
        });
        let auth = Arc::clone(self);
        let flight = async move {
            task.await.unwrap_or_else(|error| {
                Err(auth.unreachable(format!("the login was interrupted: {error}")))
            })
        }
        .boxed()
        .shared();
        state.flight = Some(flight.clone());
        flight
    }

    /// Refreshes where that is possible, and logs in where it is not.
    async fn obtain(&self, old: Option<&Token>, retrying: Retrying) -> Result<Token, Error> {
        if let Some(refresh) = old.and_then(Token::refresh) {
            match self.refreshed(refresh, retrying).await {
                Ok(token) => return Ok(token),
                Err(Denial::Refused(refusal)) => {
                    tracing::debug!(%refusal, "the token can't be refreshed: logging in")
                }
                Err(denial) => return Err(self.error(denial)),
            }
        }
        self.logged_in(retrying)
            .await
            .map_err(|denial| self.error(denial))
    }

    async fn refreshed(&self, refresh: &str, retrying: Retrying) -> Result<Token, Denial> {
        let fields = [("grant_type", "refresh_token"), ("refresh_token", refresh)];
        let (form, secret) = match &self.credentials {
            // A user's password has no part in it.
            Credentials::Password { .. } => (form(&[("client_id", PUBLIC_CLIENT)], &fields), None),
            Credentials::Client { .. } => {
                let secret = self.secret().await?;
                (self.client_form(&secret, &fields), Some(secret))
            }
        };
        let secret = secret.as_ref().map(ExposeSecret::expose_secret);
        let sent: Vec<&str> = secret.into_iter().chain([refresh]).collect();
        retrying
            .run(
                || self.request(form.clone(), &sent),
                |denial| match denial {
                    Denial::Failed(failure) => {
                        Some(failure).filter(|it| it.is_passing(Effect::None))
                    }
                    _ => None,
                },
            )
            .await
            .map_err(|denial| match denial {
                // Whatever the realm has against this refresh token, a login does without it.
                Denial::Other(Error::Refused {
                    status, message, ..
                }) if (400..500).contains(&status) => Denial::Refused(Refusal {
                    error: status.to_string(),
                    description: message,
                }),
                other => other,
            })
    }

    /// A login is sent again only where it surely was not looked at: never sent, turned away unread, or a gateway answered for a
    /// realm that is still starting up.
    async fn logged_in(&self, retrying: Retrying) -> Result<Token, Denial> {
        let secret = self.secret().await?;
        retrying
            .run(
                || self.log_in(&secret, retrying.until),
                |denial| match denial {
                    Denial::Failed(failure)
                        if failure.is_untouched() || matches!(failure, Failure::Gateway { .. }) =>
                    {
                        Some(failure)
                    }
                    _ => None,
                },
            )
            .await
    }

    async fn secret(&self) -> Result<SecretString, Denial> {
        let secret = self.credentials.secret();
        secret.get(self.account()).await.map_err(Denial::Other)
    }

    async fn log_in(&self, secret: &SecretString, until: Instant) -> Result<Token, Denial> {
        let form = match &self.credentials {
            Credentials::Password { username, .. } => form(
                &[("client_id", PUBLIC_CLIENT)],
                &[
                    ("grant_type", "password"),
                    ("username", username),
                    ("password", secret.expose_secret()),
                    ("scope", "openid"),
                ],
            ),
            Credentials::Client { .. } => self.client_form(
                secret,
                &[("grant_type", "client_credentials"), ("scope", "openid")],
            ),
        };
        let mut permitted = self.permitted(secret, until).await?;
        let outcome = self.request(form, &[secret.expose_secret()]).await;
        match &outcome {
            Ok(_) => permitted.settle(LoginGate::accepted),
            Err(Denial::Refused(refusal)) => {
                let said = refusal.to_string();
                permitted.settle(|gate, attempt| gate.refused(attempt, &said));
            }
            Err(denial) => permitted.sent = denial.leaves_open(),
        }
        outcome
    }

    /// Reserves an attempt. Where others are logging in right now, their end is waited for, as long as there is time for a login after it.
    async fn permitted<'a>(
        &'a self,
        secret: &'a SecretString,
        until: Instant,
    ) -> Result<Permitted<'a>, Denial> {
        let attempt = LoginAttempt {
            zvm: self.transport.host(),
            account: self.account(),
            secret,
        };
        loop {
            let blocked = match self.gate.permit(&attempt) {
                Ok(()) => {
                    return Ok(Permitted {
                        gate: &*self.gate,
                        attempt,
                        settled: false,
                        sent: true,
                    });
                }
                Err(blocked) => blocked,
            };
            match blocked.retry_after {
                Some(pause) if Instant::now() + pause + OF_A_LOGIN < until => {
                    tokio::time::sleep(pause).await;
                }
                _ => return Err(Denial::Other(blocked.into())),
            }
        }
    }

    /// One request to the token endpoint. `sent` are the secrets in it: what is told of the answer has none of them.
    async fn request(&self, form: String, sent: &[&str]) -> Result<Token, Denial> {
        let outcome = self.answer(form).await;
        outcome.map_err(|denial| denial.without(sent))
    }

    async fn answer(&self, form: String) -> Result<Token, Denial> {
        let client = self.transport.client().await.map_err(Denial::Other)?;
        let request = client
            .post(self.url.clone())
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form);
        let asked = Instant::now();
        let reply = self
            .transport
            .exchange(request, LIMIT)
            .await
            .map_err(Denial::Failed)?;
        tracing::debug!(status = %reply.status, "asked for a token");
        if reply.status.is_success() {
            return bodies::token(&reply.body, asked).map_err(|detail| {
                Denial::Other(Error::Unreadable {
                    what: WHAT.into(),
                    detail,
                })
            });
        }
        Err(match Refusal::read(&reply) {
            Some(refusal) => Denial::Refused(refusal),
            None => Denial::Other(not_a_realm(&reply)),
        })
    }

    /// Of a client that shows its own secret.
    fn client_form(&self, secret: &SecretString, fields: &[(&str, &str)]) -> String {
        let secret = secret.expose_secret();
        form(
            &[("client_id", self.account()), ("client_secret", secret)],
            fields,
        )
    }

    fn error(&self, denial: Denial) -> Error {
        match denial {
            Denial::Refused(refusal) => Error::LoginRefused {
                account: self.account().to_owned(),
                detail: refusal.advice(),
            },
            Denial::Failed(failure) => {
                failure.into_error(WHAT, self.transport.host(), Effect::None)
            }
            Denial::Other(error) => error,
        }
    }

    fn unreachable(&self, detail: String) -> Error {
        Error::Unreachable {
            what: WHAT.into(),
            host: self.transport.host().to_owned(),
            detail,
        }
    }
}

fn form(client: &[(&str, &str)], fields: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(client)
        .extend_pairs(fields)
        .finish()
}

/// An answer that is neither a token nor a refusal: no word about the credentials.
fn not_a_realm(reply: &Reply) -> Error {
    let said = decode::said_by(&reply.body);
    let message = match reply.status {
        StatusCode::NOT_FOUND => format!(
            "{said}. There is no login service at this address: is it a ZVM appliance, 9.5 or later, and has it finished starting?"
        ),
        _ => said,
    };
    Error::Refused {
        what: WHAT.into(),
        status: reply.status.as_u16(),
        message,
    }
}

/// Clears the flight when its task ends, however it ends.
struct Landing(Arc<Auth>);

impl Drop for Landing {
    fn drop(&mut self) {
        self.0.state().flight = None;
    }
}

/// A reserved attempt. Nothing known of its outcome is an outcome, too.
struct Permitted<'a> {
    gate: &'a dyn LoginGate,
    attempt: LoginAttempt<'a>,
    settled: bool,
    /// Where it is not settled: the secret may have arrived.
    sent: bool,
}

impl<'a> Permitted<'a> {
    fn settle(&mut self, outcome: impl FnOnce(&(dyn LoginGate + 'a), &LoginAttempt<'_>)) {
        self.settled = true;
        outcome(self.gate, &self.attempt);
    }
}

impl Drop for Permitted<'_> {
    fn drop(&mut self) {
        if !self.settled {
            self.gate.unanswered(&self.attempt, self.sent);
        }
    }
}
