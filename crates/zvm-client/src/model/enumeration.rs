//! Enumerations: the OpenAPI file gives numbers without names, settings exports give names, and releases add values.

use serde::{Deserialize, Deserializer};

use crate::decode::Scalar;

/// An enumeration as the ZVM sent it: a number, a name, both, or nothing. Unknown ones are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnumValue {
    /// The number, where one was sent (a numeric string counts).
    pub number: Option<i64>,
    /// The name, where one was sent.
    pub name: Option<String>,
}

impl<'de> Deserialize<'de> for EnumValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let scalar = Scalar::deserialize(deserializer)?;
        Ok(match scalar.int() {
            Some(number) => Self {
                number: Some(number),
                name: None,
            },
            None => Self {
                number: None,
                name: scalar.text(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_names_and_anything_else() {
        for (json, number, name) in [
            ("1", Some(1), None),
            ("\"1\"", Some(1), None),
            ("-1", Some(-1), None),
            ("99", Some(99), None),
            ("\"VCVpg\"", None, Some("VCVpg")),
            ("\"Something New\"", None, Some("Something New")),
            ("null", None, None),
            ("\"\"", None, None),
            ("{\"a\":1}", None, None),
            ("[1]", None, None),
            ("true", None, None),
        ] {
            let value: EnumValue = serde_json::from_str(json).unwrap();
            assert_eq!(
                (value.number, value.name.as_deref()),
                (number, name),
                "{json}"
            );
        }
    }
}
