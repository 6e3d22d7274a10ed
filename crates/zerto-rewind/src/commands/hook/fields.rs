//! The members of an event, each of them once.
use rewind_mcp::proxy::unambiguous;
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor},
};
use serde_json::{Map, Value, value::RawValue};
use std::fmt;

/// What holds the input of a tool, by harness.
const INPUTS: [&str; 3] = ["tool_input", "toolArgs", "params"];

/// An event as it was sent.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub values: Map<String, Value>,
    /// Why the tool may read its input differently from us.
    pub ambiguous: Option<String>,
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Fields;
    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }
    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields, M::Error> {
        let mut fields = Fields::default();
        while let Some((name, json)) = map.next_entry::<String, &RawValue>()? {
            let value = serde_json::from_str(json.get()).map_err(M::Error::custom)?;
            if INPUTS.contains(&name.as_str())
                && let Err(reason) = unambiguous(json.get())
            {
                fields.ambiguous = Some(cannot_be_read(&name, &reason));
            }
            if fields.values.contains_key(&name) {
                return Err(M::Error::custom(format!("the member {name:?} twice")));
            }
            fields.values.insert(name, value);
        }
        Ok(fields)
    }
}

/// Why a call is denied of which the input is not read alike by everyone.
pub(super) fn cannot_be_read(key: &str, reason: &str) -> String {
    format!(
        "the event's `{key}` cannot be read in one way alone: {reason}. Next: Name each member once."
    )
}
