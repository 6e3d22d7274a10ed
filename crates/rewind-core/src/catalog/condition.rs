//! Conditions on a call's arguments.
//!
//! What is in doubt is decided in favour of the guard. Servers read `"true"` and `"5"` as they read `true` and `5`, so text that says
//! the same satisfies `equals`, `in`, `greater_than` and `less_than`; only the very same value fails `not_equals`.

use std::{cmp::Ordering, fmt};

use regex::Regex;
use serde_json::{Number, Value};

use super::pattern::{Glob, Pointer};

/// What an argument must be like for an entry to apply.
///
/// A missing argument (`null` is one) satisfies `not_equals` and `exists = false` and nothing else.
#[derive(Debug)]
pub struct Condition {
    pub(super) pointer: Pointer,
    /// All must hold.
    pub(super) tests: Vec<Test>,
}

#[derive(Debug)]
pub(super) enum Test {
    Equals(Value),
    NotEquals(Value),
    In(Vec<Value>),
    Matches(Regex),
    Glob(Glob),
    Exists(bool),
    GreaterThan(Number),
    LessThan(Number),
}

impl Condition {
    pub(super) fn holds(&self, arguments: &Value) -> bool {
        let value = self.pointer.find(arguments);
        self.tests.iter().all(|test| test.holds(value))
    }
}

/// Whether no arguments can satisfy all of them. True only where that is certain.
pub(super) fn contradict(conditions: &[Condition]) -> bool {
    conditions.iter().any(|condition| {
        let of_same: Vec<&Test> = conditions
            .iter()
            .filter(|other| other.pointer == condition.pointer)
            .flat_map(|other| &other.tests)
            .collect();
        none_satisfies(&of_same)
    })
}

/// Whether no value satisfies all tests.
fn none_satisfies(tests: &[&Test]) -> bool {
    let must_be_missing = tests.iter().any(|test| matches!(test, Test::Exists(false)));
    let must_be_there = tests
        .iter()
        .any(|test| !matches!(test, Test::Exists(false) | Test::NotEquals(_)));
    (must_be_missing && must_be_there) || bounds_cross(tests) || no_candidate(tests)
}

fn bounds_cross(tests: &[&Test]) -> bool {
    tests.iter().any(|test| {
        let Test::GreaterThan(lower) = test else {
            return false;
        };
        tests.iter().any(|test| {
            let Test::LessThan(upper) = test else {
                return false;
            };
            matches!(
                order(lower, upper),
                Some(Ordering::Greater | Ordering::Equal)
            )
        })
    })
}

/// Whether a test allows some values only, and each of them fails another test.
fn no_candidate(tests: &[&Test]) -> bool {
    tests.iter().any(|test| {
        let candidates = match test {
            Test::Equals(value) => std::slice::from_ref(value),
            Test::In(values) => values.as_slice(),
            _ => return false,
        };
        candidates
            .iter()
            .all(|value| tests.iter().any(|test| test.fails_for_all_forms(value)))
    })
}

impl Test {
    fn holds(&self, value: Option<&Value>) -> bool {
        let Some(value) = value else {
            return matches!(self, Self::NotEquals(_) | Self::Exists(false));
        };
        match self {
            Self::Equals(wanted) => says(value, wanted),
            Self::NotEquals(wanted) => !same(value, wanted),
            Self::In(wanted) => wanted.iter().any(|wanted| says(value, wanted)),
            Self::Matches(regex) => any_text(value, &|text| regex.is_match(text)),
            Self::Glob(glob) => any_text(value, &|text| glob.matches(text)),
            Self::Exists(wanted) => *wanted,
            Self::GreaterThan(bound) => compare(value, bound) == Some(Ordering::Greater),
            Self::LessThan(bound) => compare(value, bound) == Some(Ordering::Less),
        }
    }
}

impl Test {
    /// Whether it holds neither for this value nor for any other that says the same, such as `"5"` for `5`.
    fn fails_for_all_forms(&self, value: &Value) -> bool {
        match self {
            // They hold for all forms or for none.
            Self::Equals(_) | Self::In(_) | Self::GreaterThan(_) | Self::LessThan(_) => {
                !self.holds(Some(value))
            }
            Self::NotEquals(_) | Self::Matches(_) | Self::Glob(_) => {
                has_one_form(value) && !self.holds(Some(value))
            }
            Self::Exists(wanted) => !wanted,
        }
    }
}

/// Whether no other value says the same.
fn has_one_form(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            let text = text.trim();
            !text.eq_ignore_ascii_case("true")
                && !text.eq_ignore_ascii_case("false")
                && text.trim_start_matches('+').parse::<Number>().is_err()
        }
        _ => false,
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.pointer)?;
        for (index, test) in self.tests.iter().enumerate() {
            f.write_str(if index == 0 { " " } else { " and " })?;
            match test {
                Test::Equals(value) => write!(f, "equals {value}"),
                Test::NotEquals(value) => write!(f, "not_equals {value}"),
                Test::In(values) => write!(f, "in {}", Value::from(values.clone())),
                Test::Matches(regex) => write!(f, "matches {regex}"),
                Test::Glob(glob) => write!(f, "glob {}", glob.source()),
                Test::Exists(wanted) => write!(f, "exists = {wanted}"),
                Test::GreaterThan(bound) => write!(f, "greater_than {bound}"),
                Test::LessThan(bound) => write!(f, "less_than {bound}"),
            }?;
        }
        Ok(())
    }
}

/// The same value; `1` and `1.0` are.
fn same(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Number(value), Value::Number(wanted)) => {
            order(value, wanted) == Some(Ordering::Equal)
        }
        _ => value == wanted,
    }
}

/// The same value, or text that says it.
fn says(value: &Value, wanted: &Value) -> bool {
    same(value, wanted)
        || match (value, wanted) {
            (Value::String(_), Value::Number(wanted)) => {
                compare(value, wanted) == Some(Ordering::Equal)
            }
            (Value::String(text), Value::Bool(wanted)) => {
                text.trim().eq_ignore_ascii_case(&wanted.to_string())
            }
            (Value::Number(_) | Value::Bool(_), Value::String(_)) => says(wanted, value),
            _ => false,
        }
}

/// A number, or text that is one, compared with a bound.
fn compare(value: &Value, bound: &Number) -> Option<Ordering> {
    match value {
        Value::Number(number) => order(number, bound),
        Value::String(text) => {
            let text = text.trim().trim_start_matches('+');
            order(&text.parse().ok()?, bound)
        }
        _ => None,
    }
}

fn order(a: &Number, b: &Number) -> Option<Ordering> {
    let whole = |number: &Number| {
        number
            .as_i64()
            .map(i128::from)
            .or_else(|| number.as_u64().map(i128::from))
    };
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

/// Whether the text, or a text in the list, satisfies `test`. Numbers and booleans are taken as they are written.
fn any_text(value: &Value, test: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => test(text),
        Value::Array(items) => items.iter().any(|item| any_text(item, test)),
        Value::Number(_) | Value::Bool(_) => test(&value.to_string()),
        Value::Null | Value::Object(_) => false,
    }
}
