//! An answer may repeat what was sent. What is told of it has no secret in it.

use url::form_urlencoded;

use super::{Denial, Refusal};
use crate::{Error, decode};

const INSTEAD: &str = "(secret)";

impl Denial {
    /// Without these secrets, as they are, as one line, and as a form encodes them.
    pub(super) fn without(self, secrets: &[&str]) -> Self {
        let forms: Vec<String> = secrets
            .iter()
            .flat_map(|secret| {
                let encoded = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
                [(*secret).to_owned(), decode::line(secret), encoded]
            })
            .collect();
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
            Self::Failed(failure) => Self::Failed(failure.with_said(clean)),
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
