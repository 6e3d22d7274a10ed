//! Globs, regular expressions and JSON Pointers of a catalog entry.

use std::{fmt, sync::OnceLock};

use globset::{GlobBuilder, GlobMatcher};
use regex::{Regex, RegexBuilder};
use serde_json::Value;

use crate::text;

/// What a compiled regular expression may take, in bytes. The engine's time is linear in the text whatever the expression.
const REGEX_SIZE: usize = 1 << 20;

/// A glob over a whole name, with its letter case; `*` matches any characters.
#[derive(Debug)]
pub(super) struct Glob {
    source: String,
    glob: globset::Glob,
    /// Made when a name has to be matched: most globs of a catalog are plain names, and a hook looks at one call and ends.
    matcher: OnceLock<GlobMatcher>,
}

impl Glob {
    pub(super) fn new(source: &str) -> Result<Self, String> {
        if source.is_empty() {
            return Err("the glob is empty".to_owned());
        }
        let glob = GlobBuilder::new(source)
            .backslash_escape(true)
            .build()
            .map_err(|error| format!("not a glob: {}", error.kind()))?;
        Ok(Self {
            source: source.to_owned(),
            glob,
            matcher: OnceLock::new(),
        })
    }

    pub(super) fn source(&self) -> &str {
        &self.source
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        if !self.source.contains(META) {
            return self.source == name;
        }
        if self.source == "*" {
            return true;
        }
        self.matcher
            .get_or_init(|| self.glob.compile_matcher())
            .is_match(name)
    }

    /// Whether this glob surely matches whatever the other one matches.
    pub(super) fn covers(&self, other: &Self) -> bool {
        if self.source == other.source {
            return true;
        }
        if !other.source.contains(META) {
            return self.matches(&other.source);
        }
        // With one `*` alone: what surely stands at both ends of the other one decides.
        let Some((start, end)) = self.source.split_once('*') else {
            return false;
        };
        let first = other.source.split(META).next().unwrap_or_default();
        let last = other.source.rsplit(META).next().unwrap_or_default();
        !start.contains(META)
            && !end.contains(META)
            && first.starts_with(start)
            && last.ends_with(end)
    }
}

/// Characters that stand for something else in a glob.
const META: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

pub(super) fn regex(source: &str) -> Result<Regex, String> {
    RegexBuilder::new(source)
        .size_limit(REGEX_SIZE)
        .dfa_size_limit(REGEX_SIZE)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "the regular expression is too large".to_owned(),
            // The last line says what is wrong; those before it point into the expression.
            error => {
                let error = error.to_string();
                let reason = error.lines().last().unwrap_or_default();
                format!(
                    "not a regular expression: {}",
                    text::display(reason.trim_start_matches("error: "), 200)
                )
            }
        })
}

/// A JSON Pointer (RFC 6901) into a call's arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pointer(String);

impl Pointer {
    /// The error is the pointer that was probably meant, where one can be told.
    pub(super) fn new(source: &str) -> Result<Self, Option<String>> {
        if !source.is_empty() && !source.starts_with('/') {
            return Err(Some(format!(
                "/{}",
                source.trim_start_matches("$.").replace('.', "/")
            )));
        }
        let mut escapes = source.split('~').skip(1);
        if escapes.any(|after| !after.starts_with(['0', '1'])) {
            return Err(None);
        }
        Ok(Self(source.to_owned()))
    }

    /// What stands there, `null` included.
    pub(super) fn get<'a>(&self, arguments: &'a Value) -> Option<&'a Value> {
        arguments.pointer(&self.0)
    }

    /// What stands there; `null` counts as missing.
    pub(super) fn find<'a>(&self, arguments: &'a Value) -> Option<&'a Value> {
        self.get(arguments).filter(|value| !value.is_null())
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Text, or a whole number as it is written.
pub(super) fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) if number.is_i64() || number.is_u64() => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn globs_match_whole_names_with_their_case() {
        let glob = Glob::new("vm_{start,stop}*").unwrap();
        assert!(glob.matches("vm_start") && glob.matches("vm_stop/all"));
        assert!(!glob.matches("VM_start") && !glob.matches("my_vm_start"));
        assert!(Glob::new("[a").is_err() && Glob::new("").is_err());
    }

    #[test]
    fn a_glob_that_covers_another_is_told() {
        let covers = |a, b| Glob::new(a).unwrap().covers(&Glob::new(b).unwrap());
        for (a, b) in [
            ("*", "vm_*"),
            ("vm_*", "vm_*"),
            ("vm_*", "vm_start"),
            ("vm_*", "vm_{a,b}"),
            ("vm_*", "vm_del*_now"),
            ("vm_*_now", "vm_[ab]*_right_now"),
            ("*_now", "?_now"),
        ] {
            assert!(covers(a, b), "{a} {b}");
        }
        for (a, b) in [
            ("vm_start", "vm_*"),
            ("vm_*", "v?_a"),
            ("vm_*", "{vm_a,db_a}"),
            ("*_now", "vm_*"),
            ("vm_*", "[vm]_*"),
            ("a*b*", "ab*"),
            ("\\**", "a*"),
        ] {
            assert!(!covers(a, b), "{a} {b}");
        }
    }

    #[test]
    fn pointers_are_checked() {
        assert_eq!(Pointer::new("vm.name"), Err(Some("/vm/name".to_owned())));
        assert_eq!(Pointer::new("$.vm"), Err(Some("/vm".to_owned())));
        assert_eq!(Pointer::new("/a~2"), Err(None));
        let arguments = json!({"a/b": [null, {"c~": 1}]});
        assert_eq!(
            Pointer::new("/a~1b/1/c~0").unwrap().find(&arguments),
            Some(&json!(1))
        );
        assert_eq!(Pointer::new("/a~1b/0").unwrap().find(&arguments), None);
        assert_eq!(Pointer::new("").unwrap().get(&arguments), Some(&arguments));
    }

    #[test]
    fn regular_expressions_are_bounded() {
        assert_eq!(
            regex(r"\w{1000}{1000}").unwrap_err(),
            "the regular expression is too large"
        );
        assert_eq!(
            regex("(a").unwrap_err(),
            "not a regular expression: unclosed group"
        );
    }
}
