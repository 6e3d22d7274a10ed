//! An answer may repeat what was sent. What is told of it has no secret in it.

use secrecy::{ExposeSecret, SecretString};
use url::form_urlencoded;

use super::{Denial, Refusal};
use crate::{Error, decode, transport::Failure};

const INSTEAD: &str = "(secret)";

impl Denial {
    /// Without this secret, as it is, as one line, and as a form encodes it.
    pub(super) fn without(self, secret: &SecretString) -> Self {
        let secret = secret.expose_secret();
        let encoded: String = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
        let forms = [secret, &decode::line(secret), &encoded];
        let clean = |text: String| {
            forms
                .iter()
                .filter(|form| !form.is_empty())
                .fold(text, |text, form| text.replace(form, INSTEAD))
        };
        match self {
            Self::Refused(Refusal { error, description }) => Self::Refused(Refusal {
                error: clean(error),
                description: clean(description),
            }),
            Self::Failed(Failure::Gateway {
                status,
                message,
                retry_after,
            }) => Self::Failed(Failure::Gateway {
                status,
                message: clean(message),
                retry_after,
            }),
            Self::Failed(Failure::Redirect { status, to }) => {
                let to = clean(to);
                Self::Failed(Failure::Redirect { status, to })
            }
            Self::Other(Error::Refused {
                what,
                status,
                message,
            }) => Self::Other(Error::Refused {
                what,
                status,
                message: clean(message),
            }),
            Self::Other(Error::Unreadable { what, detail }) => {
                let detail = clean(detail);
                Self::Other(Error::Unreadable { what, detail })
            }
            other => other,
        }
    }
}
