//! The conditions in `when`.

use serde_json::Number;
use toml::{Spanned, Value};

use super::Reader;
use crate::catalog::{
    condition::{Condition, Test},
    raw::RawCondition,
};

impl Reader<'_> {
    pub(super) fn condition(&mut self, raw: Spanned<RawCondition>) -> Option<Condition> {
        let at = raw.span();
        let raw = raw.into_inner();
        let pointer = self.pointer(raw.arg, &at);
        let mut tests = Vec::new();
        if let Some(value) = raw.equals {
            tests.push(self.json(value).map(Test::Equals));
        }
        if let Some(value) = raw.not_equals {
            tests.push(self.json(value).map(Test::NotEquals));
        }
        if let Some(values) = raw.among {
            let span = values.span();
            let values: Option<Vec<_>> = values
                .into_inner()
                .into_iter()
                .map(|value| self.json(Spanned::new(span.clone(), value)))
                .collect();
            tests.push(values.map(Test::In));
        }
        if let Some(regex) = raw.matches {
            tests.push(self.regex(&regex).map(Test::Matches));
        }
        if let Some(glob) = raw.glob {
            tests.push(self.glob(&glob).map(Test::Glob));
        }
        if let Some(exists) = raw.exists {
            tests.push(Some(Test::Exists(exists)));
        }
        if let Some(bound) = raw.greater_than {
            tests.push(self.number(bound).map(Test::GreaterThan));
        }
        if let Some(bound) = raw.less_than {
            tests.push(self.number(bound).map(Test::LessThan));
        }
        if tests.is_empty() {
            let fix = "add one of `equals`, `not_equals`, `in`, `matches`, `glob`, `exists`, `greater_than`, `less_than`";
            self.mistake(at, "the condition tests nothing", Some(fix.to_owned()));
            return None;
        }
        Some(Condition {
            pointer: pointer?,
            tests: tests.into_iter().collect::<Option<_>>()?,
        })
    }

    fn number(&mut self, value: Spanned<Value>) -> Option<Number> {
        let at = value.span();
        let number = match value.into_inner() {
            Value::Integer(number) => Some(Number::from(number)),
            Value::Float(number) => Number::from_f64(number),
            _ => None,
        };
        if number.is_none() {
            self.mistake(
                at,
                "not a number",
                Some("write a number, without quotes".to_owned()),
            );
        }
        number
    }

    /// What JSON can say, too.
    fn json(&mut self, value: Spanned<Value>) -> Option<serde_json::Value> {
        let at = value.span();
        let json = json(value.into_inner());
        if json.is_none() {
            let fix = "write a text, a number, true, false, or a list of them";
            self.mistake(at, "no argument can have this value", Some(fix.to_owned()));
        }
        json
    }
}

fn json(value: Value) -> Option<serde_json::Value> {
    Some(match value {
        Value::String(text) => text.into(),
        Value::Integer(number) => number.into(),
        Value::Float(number) => Number::from_f64(number)?.into(),
        Value::Boolean(value) => value.into(),
        Value::Array(values) => values
            .into_iter()
            .map(json)
            .collect::<Option<Vec<_>>>()?
            .into(),
        Value::Table(members) => {
            let members = members
                .into_iter()
                .map(|(key, value)| Some((key, json(value)?)));
            serde_json::Value::Object(members.collect::<Option<_>>()?)
        }
        Value::Datetime(_) => return None,
    })
}
