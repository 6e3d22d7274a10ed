//! What the realm says to a login that it refuses.

use std::fmt;

use reqwest::StatusCode;
use serde::Deserialize;

use crate::{
    decode::{self, Scalar},
    transport::Reply,
};

/// `ErrorResult` of the OpenAPI file, for credentials.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) error: String,
    pub(super) description: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ErrorWire {
    error: Scalar,
    error_description: Scalar,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.description.as_str() {
            "" => f.write_str(&self.error),
            description => f.write_str(&decode::quoted(description)),
        }
    }
}

impl Refusal {
    /// Only a 400 or 401 with one of the three words of OAuth is about the credentials; anything else says nothing of them.
    pub(super) fn read(reply: &Reply) -> Option<Self> {
        if !matches!(
            reply.status,
            StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED
        ) {
            return None;
        }
        let wire: ErrorWire = decode::object(&reply.body).ok()?;
        let error = wire.error.text()?;
        matches!(
            error.as_str(),
            "invalid_grant" | "invalid_client" | "unauthorized_client"
        )
        .then(|| Self {
            error,
            description: decode::line(&wire.error_description.text().unwrap_or_default()),
        })
    }

    /// The realm's words, and what to do.
    pub(super) fn advice(&self) -> String {
        let description = self.description.to_ascii_lowercase();
        let says = |words: &str| description.contains(words);
        let advice = if says("not fully set up") {
            "log in to the ZVM's web page as this user once: it waits for something there, such as a new first password"
        } else if says("disabled") {
            "an administrator of the ZVM's realm has to enable the account again"
        } else if says("public client") {
            "this client can't log in by itself: an administrator has to make a confidential client with a service account"
        } else if self.error == "invalid_grant" {
            "the user or the password is wrong, or the account is locked for some minutes after refused logins \
             (the ZVM says the same to both)"
        } else {
            "the client id or its secret is wrong, or the client may not log in this way"
        };
        format!("{self} ({advice}). It is not tried again by itself")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: u16, body: &str) -> Option<Refusal> {
        Refusal::read(&Reply {
            status: StatusCode::from_u16(status).unwrap(),
            body: body.to_owned().into(),
        })
    }

    #[test]
    fn each_refusal_has_its_own_advice() {
        for (status, error, description, advice) in [
            (
                401,
                "invalid_grant",
                "Invalid user credentials",
                "locked for some minutes",
            ),
            (
                400,
                "invalid_grant",
                "Invalid user credentials",
                "locked for some minutes",
            ),
            (
                400,
                "invalid_grant",
                "Account is not fully set up",
                "web page",
            ),
            (
                400,
                "invalid_grant",
                "Account disabled",
                "enable the account",
            ),
            (
                401,
                "invalid_client",
                "Invalid client or Invalid client credentials",
                "client id or its secret",
            ),
            (
                401,
                "unauthorized_client",
                "Invalid client secret",
                "client id or its secret",
            ),
            (
                401,
                "unauthorized_client",
                "Public client not allowed to retrieve service account",
                "confidential client",
            ),
        ] {
            let body = format!(r#"{{"error":"{error}","error_description":"{description}"}}"#);
            let said = refusal(status, &body).unwrap().advice();
            assert!(
                said.contains(description) && said.contains(advice),
                "{said}"
            );
        }
    }

    #[test]
    fn anything_else_says_nothing_of_the_credentials() {
        for (status, body) in [
            (400, r#"{"error":"invalid_scope","error_description":"x"}"#),
            (400, r#"{"error":"unsupported_grant_type"}"#),
            (400, r#"{"Message":"x"}"#),
            (401, ""),
            (401, "<html>sign in</html>"),
            (403, r#"{"error":"invalid_grant"}"#),
            (404, r#"{"error":"invalid_grant"}"#),
            (500, r#"{"error":"invalid_grant"}"#),
        ] {
            assert!(refusal(status, body).is_none(), "{status} {body}");
        }
    }
}
