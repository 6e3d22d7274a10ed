//! An answer may repeat what was sent. What is told of it has no secret in it.

use url::form_urlencoded;

use super::{Denial, Refusal};
use crate::{Error, decode};

const INSTEAD: &str = "(secret)";
/// A secret of fewer characters is found in ordinary words; a text with it is not told at all.
const SHORT: usize = 4;

impl Denial {
    /// Without these secrets, as they are, as one line, and as a form and JSON encode them.
    pub(super) fn without(self, secrets: &[&str]) -> Self {
        let secrets: Vec<_> = secrets.iter().copied().filter(|s| !s.is_empty()).collect();
        let clean = |text: String| clean(text, &secrets);
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

fn clean(mut text: String, secrets: &[&str]) -> String {
    for secret in secrets {
        let encoded: String = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
        let quoted = serde_json::Value::from(*secret).to_string();
        let escaped = quoted
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'));
        let escaped = escaped.unwrap_or_default().to_owned();
        let forms = [(*secret).to_owned(), decode::line(secret), encoded, escaped];
        let forms = forms.iter().filter(|form| !form.is_empty());
        for form in forms {
            if !text.contains(form.as_str()) {
                continue;
            }
            if secret.chars().count() < SHORT {
                // Which of the places are the secret, and which are any word, nobody can say.
                return INSTEAD.to_owned();
            }
            text = text.replace(form, INSTEAD);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_cut_out_in_each_of_its_forms() {
        for (secret, said, told) in [
            ("hunter2", "no hunter2, hunter2!", "no (secret), (secret)!"),
            ("a b&cd", "got a+b%26cd", "got (secret)"),
            (
                r#"qu"ote\"#,
                r#"{"password":"qu\"ote\\"}"#,
                r#"{"password":"(secret)"}"#,
            ),
            ("two\nlines", "two lines", "(secret)"),
            ("e", "invalid user", "(secret)"),
            ("e", "no", "no"),
            ("", "invalid user", "invalid user"),
        ] {
            assert_eq!(clean(said.to_owned(), &[secret]), told, "{secret}");
        }
    }

    #[test]
    fn every_one_of_several_secrets_is_cut_out() {
        assert_eq!(
            clean("abcd and efgh".to_owned(), &["", "abcd", "efgh"]),
            "(secret) and (secret)"
        );
    }
}
