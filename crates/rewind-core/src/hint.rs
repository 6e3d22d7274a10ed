//! Says what a mistyped key or value probably was meant to be.

use crate::text;

/// A name that is no more than this far from a known one is taken for a typing mistake.
const MAX_DISTANCE: usize = 2;

/// What is wrong with a key or a value, and what to write instead where that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hint {
    pub(crate) problem: String,
    pub(crate) fix: Option<String>,
}

/// Reads what serde says of a key or a value. Its words for unknown keys and values list the known ones in backticks; everything else
/// is passed on as it is.
pub(crate) fn of_serde(message: &str) -> Hint {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let what = if message.starts_with("unknown field ") {
        "key"
    } else if message.starts_with("unknown variant ") {
        "value"
    } else {
        return Hint {
            problem: text::display(message, 300),
            fix: None,
        };
    };
    let unknown = quoted.next().unwrap_or_default();
    let known: Vec<&str> = quoted.collect();
    Hint {
        problem: format!("unknown {what} `{}`", text::display(unknown, 80)),
        fix: Some(match closest(unknown, known.iter().copied()) {
            Some(name) => format!("did you mean `{name}`?"),
            None if known.is_empty() => "remove it".to_owned(),
            None => format!("write one of `{}`", known.join("`, `")),
        }),
    }
}

/// The known name that `word` is a typing mistake of.
pub(crate) fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase().replace('-', "_");
    known
        .into_iter()
        .map(|name| (strsim::osa_distance(&word, &name.to_lowercase()), name))
        .min()
        .filter(|(distance, name)| *distance <= MAX_DISTANCE && *distance < name.len())
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_mistakes_are_recognised() {
        let known = ["username", "password", "arg"];
        assert_eq!(closest("usernme", known), Some("username"));
        assert_eq!(closest("passwrod", known), Some("password"));
        assert_eq!(closest("Arg", known), Some("arg"));
        assert_eq!(closest("tls", known), None);
        assert_eq!(closest("", ["in"]), None);
    }

    #[test]
    fn words_of_serde_become_a_hint() {
        let hint = of_serde("unknown field `vn`, expected one of `vm`, `tool`");
        assert_eq!(hint.problem, "unknown key `vn`");
        assert_eq!(hint.fix.unwrap(), "did you mean `vm`?");
        let hint = of_serde("unknown variant `x`, expected `guard` or `deny`");
        assert_eq!(hint.problem, "unknown value `x`");
        assert_eq!(hint.fix.unwrap(), "write one of `guard`, `deny`");
    }
}
