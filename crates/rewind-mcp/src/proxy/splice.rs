//! Changes to a message that leave every other byte of it as it was.
use std::{borrow::Cow, fmt, ops::Range};

use serde::{
    Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// A member of an object; None where it is missing.
///
/// # Errors
/// Where `object` is none, or has the member twice.
pub fn member<'a>(
    object: &'a RawValue,
    name: &str,
) -> Result<Option<&'a RawValue>, serde_json::Error> {
    struct Find<'n>(&'n str);
    impl<'a> Visitor<'a> for Find<'_> {
        type Value = Option<&'a RawValue>;
        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object")
        }
        fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<Self::Value, M::Error> {
            let mut found = None;
            while let Some(name) = map.next_key::<Cow<'a, str>>()? {
                if name == self.0 {
                    super::message::once(&mut map, &mut found, self.0)?;
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(found)
        }
    }
    serde_json::Deserializer::from_str(object.get()).deserialize_map(Find(name))
}

/// Where `part` lies in the message that it was read from.
fn range(message: &[u8], part: &RawValue) -> Option<Range<usize>> {
    let start = (part.get().as_ptr() as usize).checked_sub(message.as_ptr() as usize)?;
    let end = start.checked_add(part.get().len())?;
    (end <= message.len()).then_some(start..end)
}

/// The message with `part` replaced.
pub fn replace(message: &[u8], part: &RawValue, with: &str) -> Option<Vec<u8>> {
    replace_range(message, range(message, part)?, with)
}

fn replace_range(message: &[u8], range: Range<usize>, with: &str) -> Option<Vec<u8>> {
    let mut changed = Vec::with_capacity(message.len() + with.len());
    changed.extend_from_slice(message.get(..range.start)?);
    changed.extend_from_slice(with.as_bytes());
    changed.extend_from_slice(message.get(range.end..)?);
    Some(changed)
}

/// The message with a member put first into one of its objects, which doesn't have it.
fn insert(message: &[u8], object: &RawValue, member: &str) -> Option<Vec<u8>> {
    let inside = object.get().strip_prefix('{')?;
    let comma = if inside.trim_start().starts_with('}') {
        ""
    } else {
        ","
    };
    let at = range(message, object)?.start + 1;
    replace_range(message, at..at, &format!("{member}{comma}"))
}

/// The message with `value` (JSON) under `key` in the `_meta` of its result. What was there under this key is replaced.
/// None where that can't be done: the result is no object, or a member is there twice.
pub fn with_meta(message: &[u8], result: &RawValue, key: &str, value: &str) -> Option<Vec<u8>> {
    let entry = format!("{}:{value}", serde_json::Value::from(key));
    match member(result, "_meta").ok()? {
        None => insert(message, result, &format!("\"_meta\":{{{entry}}}")),
        Some(meta) if meta.get() == "null" => replace(message, meta, &format!("{{{entry}}}")),
        Some(meta) => match member(meta, key).ok()? {
            Some(old) => replace(message, old, value),
            None => insert(message, meta, &entry),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::message::Head;

    fn meta(message: &str) -> Option<String> {
        let head = Head::read(message.as_bytes()).unwrap();
        with_meta(message.as_bytes(), head.result.unwrap(), "k/r", "[1]")
            .map(|changed| String::from_utf8(changed).unwrap())
    }

    #[test]
    fn a_receipt_changes_nothing_else() {
        for (message, expected) in [
            (
                r#"{"id":1,"result" : { "n":1.50e+1, "z":0,"a":9007199254740993} }"#,
                r#"{"id":1,"result" : {"_meta":{"k/r":[1]}, "n":1.50e+1, "z":0,"a":9007199254740993} }"#,
            ),
            (r#"{"result":{}}"#, r#"{"result":{"_meta":{"k/r":[1]}}}"#),
            (r#"{"result":{ }}"#, r#"{"result":{"_meta":{"k/r":[1]} }}"#),
            (
                r#"{"result":{"a":"\ud800","_meta":{"b":2}}}"#,
                r#"{"result":{"a":"\ud800","_meta":{"k/r":[1],"b":2}}}"#,
            ),
            (
                r#"{"result":{"_meta":{}}}"#,
                r#"{"result":{"_meta":{"k/r":[1]}}}"#,
            ),
            (
                r#"{"result":{"_meta":null}}"#,
                r#"{"result":{"_meta":{"k/r":[1]}}}"#,
            ),
            (
                r#"{"result":{"_meta":{"x":1,"k\/r":"forged"}}}"#,
                r#"{"result":{"_meta":{"x":1,"k\/r":[1]}}}"#,
            ),
        ] {
            assert_eq!(meta(message).as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_result_that_takes_no_receipt_is_left_alone() {
        for message in [
            r#"{"result":7}"#,
            r#"{"result":[]}"#,
            r#"{"result":{"_meta":[]}}"#,
            r#"{"result":{"_meta":{},"_meta":{}}}"#,
            r#"{"result":{"_meta":{"k/r":1,"k/r":2}}}"#,
        ] {
            assert_eq!(meta(message), None, "{message}");
        }
    }
}
