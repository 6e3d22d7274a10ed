//! What the token endpoint gives.

use std::{collections::BTreeMap, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tokio::time::Instant;

use crate::decode::{self, Many, Maybe, Scalar};

/// Keycloak's own default, where the answer does not say.
const LIFE: u64 = 60;

/// An access token, and how to get the next one.
#[derive(Clone, Debug)]
pub struct Token {
    access: SecretString,
    fresh_until: Instant,
    refresh: Option<Refresh>,
}

#[derive(Clone, Debug)]
struct Refresh {
    token: SecretString,
    /// None: as long as its session, which the answer does not date.
    until: Option<Instant>,
}

impl Token {
    pub(crate) fn access(&self) -> &str {
        self.access.expose_secret()
    }

    /// The roles that the realm and its clients give the account, sorted: `realm_access` and `resource_access` of the claims, as
    /// Keycloak's own mappers write them. None where it has neither. Nobody vouches for them here: only the ZVM can verify a token.
    pub(super) fn roles(&self) -> Option<Vec<String>> {
        let payload = self.access().split('.').nth(1)?;
        let payload = URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?;
        let claims: Claims = decode::object(&payload).ok()?;
        let (realm, clients) = (claims.realm_access.0, claims.resource_access.0);
        if realm.is_none() && clients.is_none() {
            return None;
        }
        let clients = clients.into_iter().flat_map(BTreeMap::into_values);
        let mut roles: Vec<_> = realm
            .into_iter()
            .chain(clients.filter_map(|client| client.0))
            .flat_map(|access| access.roles.0)
            .filter_map(Scalar::text)
            .map(|role| decode::line(&role))
            .collect();
        roles.sort_unstable();
        roles.dedup();
        Some(roles)
    }

    /// Good for long enough to be sent.
    pub(super) fn is_fresh(&self) -> bool {
        Instant::now() < self.fresh_until
    }

    /// The refresh token, if it is alive.
    pub(super) fn refresh(&self) -> Option<&str> {
        let refresh = self.refresh.as_ref()?;
        let alive = refresh.until.is_none_or(|until| Instant::now() < until);
        alive.then(|| refresh.token.expose_secret())
    }

    /// The same, no longer to be sent.
    pub(super) fn spent(&self) -> Self {
        Self {
            fresh_until: Instant::now(),
            ..self.clone()
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Claims {
    realm_access: Maybe<Access>,
    resource_access: Maybe<BTreeMap<String, Maybe<Access>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Access {
    roles: Many<Scalar>,
}

/// `SuccessTokenResult` of the OpenAPI file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TokenWire {
    access_token: Scalar,
    expires_in: Scalar,
    refresh_token: Scalar,
    refresh_expires_in: Scalar,
}

impl TokenWire {
    /// `asked`: when the request was sent, from which its life is counted.
    pub(crate) fn read(self, asked: Instant) -> Result<Token, String> {
        let access = self
            .access_token
            .text()
            .ok_or("there is no access_token in it")?;
        if !access.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("its access_token is not a token".into());
        }
        let refresh = self.refresh_token.text().map(|token| Refresh {
            token: token.into(),
            // 0 is what an offline token says: it does not expire.
            until: match self.refresh_expires_in.unsigned() {
                None | Some(0) => None,
                Some(life) => after(asked, usable(life)),
            },
        });
        let life = usable(self.expires_in.unsigned().unwrap_or(LIFE));
        Ok(Token {
            access: access.into(),
            fresh_until: after(asked, life).unwrap_or(asked),
            refresh,
        })
    }
}

/// The part of a life in which a token is used: all but the last third, and not the last 30 s of a long one.
fn usable(life: u64) -> Duration {
    // A year stands for ever; more would overflow some clocks.
    let life = Duration::from_secs(life.min(365 * 24 * 3600));
    life - (life / 3).min(Duration::from_secs(30))
}

fn after(start: Instant, life: Duration) -> Option<Instant> {
    start.checked_add(life)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode;

    fn token(json: &str, asked: Instant) -> Result<Token, String> {
        decode::object::<TokenWire>(json.as_bytes()).and_then(|wire| wire.read(asked))
    }

    #[test]
    fn a_token_is_renewed_before_it_expires() {
        for (life, used) in [(60, 40), (90, 60), (300, 270), (3600, 3570), (3, 2), (0, 0)] {
            assert_eq!(usable(life), Duration::from_secs(used), "{life}");
        }
        assert!(usable(u64::MAX) > Duration::from_secs(1_000_000));
    }

    #[test]
    fn the_answers_of_both_grants_are_read() {
        let now = Instant::now();
        let with = token(
            r#"{"access_token":"eyJ.a","expires_in":300,"refresh_expires_in":1800,"refresh_token":"eyJ.r",
                "token_type":"Bearer","not-before-policy":0,"session_state":"4be0","scope":"openid profile email"}"#,
            now,
        )
        .unwrap();
        assert_eq!((with.access(), with.refresh()), ("eyJ.a", Some("eyJ.r")));
        assert!(with.is_fresh());
        assert_eq!(with.fresh_until, now + Duration::from_secs(270));
        assert!(!with.spent().is_fresh());
        assert_eq!(with.spent().refresh(), Some("eyJ.r"));

        let without = token(
            r#"{"access_token":"a","expires_in":"60","refresh_expires_in":0}"#,
            now,
        )
        .unwrap();
        assert_eq!(without.refresh(), None);
        assert_eq!(without.fresh_until, now + Duration::from_secs(40));

        let old = now.checked_sub(Duration::from_secs(2000)).unwrap();
        let dead = token(
            r#"{"access_token":"a","expires_in":300,"refresh_expires_in":1800,"refresh_token":"r"}"#,
            old,
        )
        .unwrap();
        assert!(!dead.is_fresh() && dead.refresh().is_none());

        let offline = token(
            r#"{"access_token":"a","refresh_expires_in":0,"refresh_token":"r"}"#,
            old,
        )
        .unwrap();
        assert_eq!(offline.refresh(), Some("r"));
    }

    #[test]
    fn roles_are_read_where_the_token_has_them() {
        let roles = |claims: &str| {
            let access = format!("eyJh.{}.c2ln", URL_SAFE_NO_PAD.encode(claims));
            let json = format!(r#"{{"access_token":"{access}"}}"#);
            token(&json, Instant::now()).unwrap().roles()
        };
        let claims = r#"{"realm_access":{"roles":["viewer","admin"]},
            "resource_access":{"account":{"roles":["view-profile"]},"zerto-client":{"roles":["admin","a\u001b[31mb"]}}}"#;
        assert_eq!(
            roles(claims).unwrap(),
            ["a [31mb", "admin", "view-profile", "viewer"]
        );
        assert_eq!(roles(r#"{"realm_access":{"roles":[]}}"#), Some(vec![]));
        for without in [
            "{}",
            "[]",
            "",
            r#"{"realm_access":7}"#,
            r#"{"realm_access":null}"#,
        ] {
            assert_eq!(roles(without), None, "{without}");
        }
        for opaque in ["opaque", "a.%%.c", "..", "a.b.c"] {
            let json = format!(r#"{{"access_token":"{opaque}"}}"#);
            assert_eq!(token(&json, Instant::now()).unwrap().roles(), None);
        }
    }

    #[test]
    fn what_is_no_token_is_told() {
        for json in [
            r#"{}"#,
            r#"{"access_token":""}"#,
            r#"{"access_token":"a\r\nb"}"#,
            r#"[]"#,
            "\"a\"",
            "<html>",
            "",
        ] {
            assert!(token(json, Instant::now()).is_err(), "{json}");
        }
    }

    #[test]
    fn tokens_are_not_in_debug_output() {
        let token = token(
            r#"{"access_token":"secret-a","refresh_token":"secret-r"}"#,
            Instant::now(),
        )
        .unwrap();
        assert!(!format!("{token:?}").contains("secret-"));
    }
}
