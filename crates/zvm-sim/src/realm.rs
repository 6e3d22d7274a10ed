//! The Keycloak realm `zerto`: logins, tokens, and the lock after refused logins.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::{Rng, RngCore};

use crate::scenario::{Credentials, Realm as Rules};
use crate::switches::{Account, Switches};

/// The public client that every appliance has.
pub(crate) const PUBLIC_CLIENT: &str = "zerto-client";

/// A token request, as its form says it.
#[derive(Default)]
pub(crate) struct Request {
    pub(crate) grant_type: String,
    pub(crate) client_id: String,
    pub(crate) client_secret: Option<String>,
    pub(crate) username: String,
    pub(crate) password: String,
    pub(crate) refresh_token: String,
    pub(crate) scope: String,
}

/// A granted login.
#[derive(Debug)]
pub(crate) struct Granted {
    pub(crate) access_token: String,
    pub(crate) expires_in: u64,
    pub(crate) refresh_token: Option<String>,
    pub(crate) refresh_expires_in: u64,
    pub(crate) session_state: String,
    pub(crate) scope: String,
}

/// A refused login: status, `error`, `error_description`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused(
    pub(crate) u16,
    pub(crate) &'static str,
    pub(crate) &'static str,
);

const BAD_CREDENTIALS: Refused = Refused(401, "invalid_grant", "Invalid user credentials");
const NOT_ACTIVE: Refused = Refused(400, "invalid_grant", "Token is not active");

struct Access {
    expires: i64,
    openid: bool,
}

struct Session {
    refresh_token: String,
    client_id: String,
    openid: bool,
    started: i64,
    idle_until: i64,
    state: String,
}

#[derive(Default)]
struct Failures {
    count: u32,
    last: i64,
    locked_until: i64,
}

pub(crate) struct Realm {
    credentials: Credentials,
    rules: Rules,
    access: HashMap<String, Access>,
    sessions: Vec<Session>,
    failures: HashMap<String, Failures>,
}

impl Realm {
    pub(crate) fn new(credentials: Credentials, rules: Rules) -> Self {
        Self {
            credentials,
            rules,
            access: HashMap::new(),
            sessions: Vec::new(),
            failures: HashMap::new(),
        }
    }

    /// Makes every token and session invalid.
    pub(crate) fn revoke_all(&mut self) {
        self.access.clear();
        self.sessions.clear();
    }

    /// Forgets refused logins and their locks.
    pub(crate) fn unlock_all(&mut self) {
        self.failures.clear();
    }

    pub(crate) fn set_credentials(&mut self, credentials: Credentials) {
        self.credentials = credentials;
    }

    /// Whether a bearer token opens the API.
    pub(crate) fn accepts(&self, token: &str, now: i64, switches: &Switches) -> bool {
        self.access.get(token).is_some_and(|access| {
            now < access.expires && (access.openid || !switches.require_openid)
        })
    }

    pub(crate) fn request(
        &mut self,
        request: &Request,
        now: i64,
        switches: &Switches,
        rng: &mut impl RngCore,
    ) -> Result<Granted, Refused> {
        if request.grant_type.is_empty() {
            return Err(Refused(
                400,
                "invalid_request",
                "Missing form parameter: grant_type",
            ));
        }
        self.check_client(request)?;
        let openid = request
            .scope
            .split_whitespace()
            .any(|scope| scope == "openid");
        match request.grant_type.as_str() {
            "password" => {
                self.check_password(request, now, switches.account)?;
                let granted = self.grant(request, openid, now, switches, rng);
                Ok(self.open_session(granted, request, openid, now, switches, rng))
            }
            "client_credentials" => Ok(self.grant(request, openid, now, switches, rng)),
            "refresh_token" => self.refresh(request, now, switches, rng),
            _ => Err(Refused(
                400,
                "unsupported_grant_type",
                "Unsupported grant_type",
            )),
        }
    }

    fn check_client(&self, request: &Request) -> Result<(), Refused> {
        if request.client_id == PUBLIC_CLIENT {
            if request.grant_type == "client_credentials" {
                return Err(Refused(
                    401,
                    "unauthorized_client",
                    "Public client not allowed to retrieve service account",
                ));
            }
            return Ok(());
        }
        let refused = |error| Refused(401, error, "Invalid client or Invalid client credentials");
        if request.client_id != self.credentials.client_id {
            return Err(refused("invalid_client"));
        }
        if request.client_secret.as_deref() != Some(self.credentials.client_secret.as_str()) {
            return Err(refused("unauthorized_client"));
        }
        Ok(())
    }

    fn check_password(
        &mut self,
        request: &Request,
        now: i64,
        account: Account,
    ) -> Result<(), Refused> {
        // Keycloak knows user names without letter case.
        let user = request.username.to_lowercase();
        let known = user == self.credentials.username.to_lowercase();
        let rules = &self.rules;
        let failures = self.failures.entry(user).or_default();
        if now - failures.last > seconds(rules.forget_after_seconds) {
            *failures = Failures::default();
        }
        if now < failures.locked_until {
            return Err(BAD_CREDENTIALS);
        }
        if !known || request.password != self.credentials.password {
            failures.refuse(now, rules);
            return Err(BAD_CREDENTIALS);
        }
        match account {
            Account::Ready => {
                *failures = Failures::default();
                Ok(())
            }
            Account::ActionPending => {
                Err(Refused(400, "invalid_grant", "Account is not fully set up"))
            }
            Account::Disabled => Err(Refused(400, "invalid_grant", "Account disabled")),
        }
    }

    fn grant(
        &mut self,
        request: &Request,
        openid: bool,
        now: i64,
        switches: &Switches,
        rng: &mut impl RngCore,
    ) -> Granted {
        self.access.retain(|_, access| now < access.expires);
        let scope = if openid {
            "openid profile email"
        } else {
            "profile email"
        };
        let access_token = jwt(
            request,
            scope,
            now,
            switches.token_lifetime,
            switches.roles.as_deref(),
            rng,
        );
        self.access.insert(
            access_token.clone(),
            Access {
                expires: now + seconds(switches.token_lifetime),
                openid,
            },
        );
        Granted {
            access_token,
            expires_in: switches.token_lifetime,
            refresh_token: None,
            refresh_expires_in: 0,
            session_state: uuid(rng),
            scope: scope.to_owned(),
        }
    }

    fn open_session(
        &mut self,
        mut granted: Granted,
        request: &Request,
        openid: bool,
        now: i64,
        switches: &Switches,
        rng: &mut impl RngCore,
    ) -> Granted {
        if !switches.refresh_token {
            return granted;
        }
        let refresh_token = jwt(
            request,
            "refresh",
            now,
            switches.refresh_lifetime,
            None,
            rng,
        );
        self.sessions.push(Session {
            refresh_token: refresh_token.clone(),
            client_id: request.client_id.clone(),
            openid,
            started: now,
            idle_until: now + seconds(switches.refresh_lifetime),
            state: granted.session_state.clone(),
        });
        granted.refresh_token = Some(refresh_token);
        granted.refresh_expires_in = switches.refresh_lifetime;
        granted
    }

    /// The realm does not revoke refresh tokens when they are used: the same one stays valid.
    fn refresh(
        &mut self,
        request: &Request,
        now: i64,
        switches: &Switches,
        rng: &mut impl RngCore,
    ) -> Result<Granted, Refused> {
        let longest = seconds(switches.session_lifetime);
        self.sessions
            .retain(|session| now < session.idle_until && now < session.started + longest);
        let session = self
            .sessions
            .iter_mut()
            .find(|session| {
                session.refresh_token == request.refresh_token
                    && session.client_id == request.client_id
            })
            .ok_or(NOT_ACTIVE)?;
        session.idle_until = now + seconds(switches.refresh_lifetime);
        let (openid, state) = (session.openid, session.state.clone());
        let mut granted = self.grant(request, openid, now, switches, rng);
        granted.refresh_token = Some(request.refresh_token.clone());
        granted.refresh_expires_in = switches.refresh_lifetime;
        granted.session_state = state;
        Ok(granted)
    }
}

impl Failures {
    fn refuse(&mut self, now: i64, rules: &Rules) {
        let quick = self.count > 0 && now - self.last < seconds_of_ms(rules.quick_login_ms);
        self.count += 1;
        self.last = now;
        let factor = rules.failure_factor.max(1);
        let wait = if self.count >= factor {
            rules.wait_seconds * u64::from(self.count / factor)
        } else if quick {
            rules.quick_login_wait_seconds
        } else {
            0
        };
        self.locked_until = now + seconds(wait.min(rules.max_wait_seconds));
    }
}

fn seconds(seconds: u64) -> i64 {
    i64::try_from(seconds)
        .unwrap_or(i64::MAX / 4096)
        .saturating_mul(1000)
}

fn seconds_of_ms(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// A random GUID.
pub(crate) fn uuid(rng: &mut impl RngCore) -> String {
    let mut bytes = [0; 16];
    rng.fill_bytes(&mut bytes);
    uuid::Builder::from_random_bytes(bytes)
        .into_uuid()
        .to_string()
}

/// Looks like a JWT; its signature is random, as only the simulator itself has to know it again.
fn jwt(
    request: &Request,
    scope: &str,
    now: i64,
    lifetime: u64,
    roles: Option<&[String]>,
    rng: &mut impl RngCore,
) -> String {
    let issued = now / 1000;
    let subject = if request.username.is_empty() {
        format!("service-account-{}", request.client_id)
    } else {
        request.username.clone()
    };
    let mut claims = serde_json::json!({
        "exp": issued.saturating_add(i64::try_from(lifetime).unwrap_or(i64::MAX)),
        "iat": issued,
        "jti": uuid(rng),
        "typ": "Bearer",
        "azp": request.client_id,
        "scope": scope,
        "preferred_username": subject,
    });
    if let (Some(roles), Some(claims)) = (roles, claims.as_object_mut()) {
        let access = serde_json::json!({ "roles": roles });
        claims.insert(
            "resource_access".to_owned(),
            serde_json::json!({ PUBLIC_CLIENT: access }),
        );
        claims.insert("realm_access".to_owned(), access);
    }
    let mut signature = [0; 64];
    rng.fill(&mut signature);
    format!(
        "{}.{}.{}",
        URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256","typ":"JWT","kid":"simulated"}"#),
        URL_SAFE_NO_PAD.encode(claims.to_string()),
        URL_SAFE_NO_PAD.encode(signature)
    )
}

#[cfg(test)]
mod tests;
