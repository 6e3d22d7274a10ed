//! An answer may repeat what was sent. What is told of it has no secret in it.

use url::form_urlencoded;

use super::{Denial, Refusal};
use crate::{Error, decode};

const INSTEAD: &str = "(secret)";
/// A secret of fewer characters is found in ordinary words; a text with it is not told at all.
const SHORT: usize = 4;
/// What a text ends in that was cut.
const CUT: char = '…';

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
    let short = |secret: &&&str| secret.chars().count() < SHORT;
    if secrets.iter().filter(short).any(|secret| {
        forms(secret)
            .iter()
            .any(|form| text.contains(form.as_str()))
    }) {
        // Which of the places are the secret, and which are any word, nobody can say.
        return INSTEAD.to_owned();
    }
    let mut forms: Vec<String> = secrets
        .iter()
        .filter(|secret| !short(secret))
        .flat_map(|secret| forms(secret))
        .collect();
    // One may be a part of another.
    forms.sort_unstable_by_key(|form| std::cmp::Reverse(form.len()));
    forms.dedup();
    for form in &forms {
        text = text.replace(form, INSTEAD);
    }
    without_cut(text, &forms)
}

/// As they are, as one line, and as a form and JSON encode them.
fn forms(secret: &str) -> Vec<String> {
    let encoded: String = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    let quoted = serde_json::Value::from(secret).to_string();
    let escaped = quoted
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let mut forms = vec![
        secret.to_owned(),
        decode::line(secret),
        encoded,
        escaped.unwrap_or_default().to_owned(),
    ];
    forms.retain(|form| !form.is_empty());
    forms
}

/// A text that was cut may end in the beginning of a secret.
fn without_cut(mut text: String, forms: &[String]) -> String {
    let Some(head) = text.strip_suffix(CUT) else {
        return text;
    };
    let beginning = |form: &String| {
        let lengths = (SHORT..form.len()).rev();
        lengths
            .into_iter()
            .find(|&length| form.get(..length).is_some_and(|part| head.ends_with(part)))
    };
    if let Some(length) = forms.iter().filter_map(beginning).max() {
        text.truncate(head.len() - length);
        text.push_str(INSTEAD);
        text.push(CUT);
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
    fn a_secret_is_cut_out_once_and_as_far_as_a_text_that_was_cut_has_it() {
        let long = "0123456789".repeat(40);
        let cut = format!("no {}…", &long[..297]);
        assert_eq!(clean(cut, &[&long]), "no (secret)…");
        assert_eq!(clean("secret".to_owned(), &["secret"]), "(secret)");
        assert_eq!(
            clean("abcdefgh".to_owned(), &["abcd", "abcdefgh"]),
            "(secret)"
        );
    }

    #[test]
    fn every_one_of_several_secrets_is_cut_out() {
        assert_eq!(
            clean("abcd and efgh".to_owned(), &["", "abcd", "efgh"]),
            "(secret) and (secret)"
        );
    }
}
