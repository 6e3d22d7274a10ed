//! One JSON-RPC message, read just as far as the relay has to know it.
//!
//! What is read here decides what is forwarded, byte for byte, to a server with a JSON parser of its own. So a message
//! that two parsers could understand differently is not read at all: see [`Unreadable`].
use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// The members of a message that matter to the relay, as slices of it.
#[derive(Debug, Default)]
pub struct Head<'a> {
    /// Of a request and its answer.
    pub id: Option<&'a RawValue>,
    /// Of a request or a notification.
    pub method: Option<Cow<'a, str>>,
    /// Of a request or a notification.
    pub params: Option<&'a RawValue>,
    /// Of an answer.
    pub result: Option<&'a RawValue>,
    /// Of an answer.
    pub error: Option<&'a RawValue>,
}

/// Why a message of the client is not forwarded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("not JSON: {0}")]
    NotJson(String),
    #[error("a JSON-RPC batch: send its messages one by one")]
    Batch,
    #[error("not a JSON-RPC message: {0}")]
    NotAMessage(String),
    #[error("a carriage return inside a message: some servers take it for the end of a line")]
    CarriageReturn,
    #[error("longer than {0} bytes")]
    TooLong(usize),
}

impl Unreadable {
    /// The JSON-RPC error code.
    pub fn code(&self) -> i32 {
        match self {
            Self::NotJson(_) => super::answer::PARSE_ERROR,
            _ => super::answer::INVALID_REQUEST,
        }
    }
}

/// A request's id, as what it is compared by: `1` and `1.0` are one id to a server that reads numbers as floats.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    Number(i64),
    Text(String),
}

impl Key {
    /// None for what is neither a string nor a whole number that every parser reads alike.
    pub fn new(raw: &RawValue) -> Option<Self> {
        /// 2^53 - 1: above it, a parser that reads numbers as floats takes two ids for one.
        const LARGEST: i64 = 9_007_199_254_740_991;
        let text = raw.get();
        if text.starts_with('"') {
            return serde_json::from_str(text).ok().map(Self::Text);
        }
        let whole = text.parse::<i64>().ok().or_else(|| {
            let number: f64 = text.parse().ok()?;
            (number.fract() == 0.0 && number.abs() <= LARGEST as f64).then_some(number as i64)
        })?;
        (-LARGEST..=LARGEST)
            .contains(&whole)
            .then_some(Self::Number(whole))
    }
}

impl<'a> Head<'a> {
    /// Reads a message that may be acted upon.
    ///
    /// # Errors
    /// Where it is not exactly one JSON-RPC message that every parser reads alike.
    pub fn read(message: &'a [u8]) -> Result<Self, Unreadable> {
        let text = std::str::from_utf8(message)
            .map_err(|error| Unreadable::NotJson(format!("not UTF-8: {error}")))?;
        if first_byte(message) == Some(b'[') {
            return Err(Unreadable::Batch);
        }
        let mut head = Self::default();
        let mut json = serde_json::Deserializer::from_str(text);
        json.deserialize_map(Members(&mut head))
            .and_then(|()| json.end())
            .map_err(|error| match error.classify() {
                serde_json::error::Category::Data => Unreadable::NotAMessage(error.to_string()),
                _ => Unreadable::NotJson(error.to_string()),
            })?;
        Ok(head)
    }
}

/// The id of a request that can't be read (or of which only the beginning is there), where it has just one: so that its
/// sender can be told.
pub fn request_id(message: &[u8]) -> Option<&RawValue> {
    let seen = Seen::of(message);
    seen.id().filter(|_| seen.method)
}

/// The same of an answer.
pub fn answer_id(message: &[u8]) -> Option<&RawValue> {
    let seen = Seen::of(message);
    seen.id().filter(|_| !seen.method)
}

/// What the beginning of a message shows.
#[derive(Default)]
struct Seen<'a> {
    ids: Vec<&'a RawValue>,
    method: bool,
}

impl<'a> Seen<'a> {
    fn of(message: &'a [u8]) -> Self {
        let mut seen = Self::default();
        // An error ends the search; what was found until then counts.
        let _ = serde_json::Deserializer::from_slice(message).deserialize_map(&mut seen);
        seen
    }

    fn id(&self) -> Option<&'a RawValue> {
        match self.ids.as_slice() {
            [id] if Key::new(id).is_some() => Some(id),
            _ => None,
        }
    }
}

impl<'a> Visitor<'a> for &mut Seen<'a> {
    type Value = ();
    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }
    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(name) = map.next_key::<Cow<'a, str>>()? {
            if name == "id" {
                self.ids.push(map.next_value()?);
            } else {
                self.method |= name == "method";
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// The first byte that is not white space.
pub fn first_byte(message: &[u8]) -> Option<u8> {
    message
        .iter()
        .copied()
        .find(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}

/// Whether a parser that does not care about case, or stops at a NUL, could take `key` for `known` (which is ASCII).
pub fn resembles(key: &str, known: &str) -> bool {
    let plain = |c: char| !c.is_whitespace() && !c.is_control();
    if key.is_ascii() && key.bytes().all(|byte| byte > b' ' && byte != 0x7f) {
        return key.eq_ignore_ascii_case(known);
    }
    let key = key.split('\0').next().unwrap_or_default();
    // Upper case first: it makes one letter of the several that fold to it, as the long s.
    key.chars()
        .filter(|&c| plain(c))
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .eq(known.chars().map(|c| c.to_ascii_lowercase()))
}

/// What a member of an object is to its reader.
pub enum Member {
    /// The one of the known names at this place.
    Known(usize),
    /// Not one of them for any parser.
    Other,
}

/// Reads a member's name against the `known` ones; an error where parsers could differ about it.
pub struct MemberName<'k>(pub &'k [&'static str]);

impl<'de> DeserializeSeed<'de> for MemberName<'_> {
    type Value = Member;
    fn deserialize<D: Deserializer<'de>>(self, name: D) -> Result<Member, D::Error> {
        name.deserialize_str(self)
    }
}

impl Visitor<'_> for MemberName<'_> {
    type Value = Member;
    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a member's name")
    }
    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Member, E> {
        if let Some(index) = self.0.iter().position(|known| *known == name) {
            return Ok(Member::Known(index));
        }
        match self.0.iter().find(|known| resembles(name, known)) {
            Some(known) => Err(E::custom(format!(
                "a member {name:?} that could be taken for {known:?}"
            ))),
            None => Ok(Member::Other),
        }
    }
}

/// Puts a member's value into its place, once.
pub fn once<'de, T: Deserialize<'de>, M: MapAccess<'de>>(
    map: &mut M,
    place: &mut Option<T>,
    name: &str,
) -> Result<(), M::Error> {
    if place.is_some() {
        return Err(M::Error::custom(format!("the member {name:?} twice")));
    }
    *place = Some(map.next_value()?);
    Ok(())
}

struct Members<'a, 'h>(&'h mut Head<'a>);

const MEMBERS: [&str; 5] = ["id", "method", "params", "result", "error"];

impl<'a> Visitor<'a> for Members<'a, '_> {
    type Value = ();
    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON-RPC message (an object)")
    }
    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<(), M::Error> {
        let head = self.0;
        while let Some(member) = map.next_key_seed(MemberName(&MEMBERS))? {
            match member {
                Member::Known(0) => once(&mut map, &mut head.id, "id")?,
                Member::Known(1) => {
                    let mut method: Option<Text<'a>> = head.method.take().map(Text);
                    once(&mut map, &mut method, "method")?;
                    head.method = method.map(|method| method.0);
                }
                Member::Known(2) => once(&mut map, &mut head.params, "params")?,
                Member::Known(3) => once(&mut map, &mut head.result, "result")?,
                Member::Known(_) => once(&mut map, &mut head.error, "error")?,
                Member::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// A string that is borrowed where it has no escapes.
#[derive(Deserialize)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Head<'_>, Unreadable> {
        Head::read(text.as_bytes())
    }

    #[test]
    fn reads_what_it_needs_and_leaves_the_rest() {
        let head = read(r#" {"x":{"method":"y"},"id" : 1e0,"method":"a\u002fb"} "#).unwrap();
        assert_eq!(head.id.unwrap().get(), "1e0");
        assert_eq!(head.method.as_deref(), Some("a/b"));
        assert!(head.params.is_none());
    }

    #[test]
    fn refuses_what_two_parsers_could_read_differently() {
        for text in [
            r#"{"method":"a","method":"b"}"#,
            r#"{"method":"a","m\u0065thod":"b"}"#,
            r#"{"id":1,"id":2}"#,
            r#"{"params":{},"params":{}}"#,
            r#"{"Method":"tools/call"}"#,
            r#"{"METHOD":"tools/call"}"#,
            "{\"param\u{17f}\":{}}",
            r#"{"param\u017f":{}}"#,
            r#"{"method\u0000":"x"}"#,
            r#"{"method ":"x"}"#,
            r#"{"Id":1}"#,
            r#"{"method":1}"#,
            r#"{"method":null}"#,
            r#"{"method":["tools/call"]}"#,
            "17",
            "\"tools/call\"",
            "null",
        ] {
            assert!(
                matches!(read(text), Err(Unreadable::NotAMessage(_))),
                "{text}: {:?}",
                read(text)
            );
        }
        for text in [
            "",
            "{",
            r#"{"method":"a"} {"method":"b"}"#,
            r#"{"method":"a"}x"#,
            "\u{feff}{\"method\":\"a\"}",
            "\0{\"method\":\"a\"}",
            "{\"method\":\"a\"}\0",
            r#"{"method":"\ud800"}"#,
            r#"{"\ud800":1}"#,
            r#"{'method':"a"}"#,
            r#"{"method":"a",}"#,
            r#"{"method":"a"/**/}"#,
            r#"{"x":NaN}"#,
        ] {
            assert!(
                matches!(read(text), Err(Unreadable::NotJson(_))),
                "{text}: {:?}",
                read(text)
            );
        }
        assert!(matches!(read(" \t[]"), Err(Unreadable::Batch)));
        assert!(matches!(
            Head::read(b"{\"a\":\"\xff\"}"),
            Err(Unreadable::NotJson(_))
        ));
    }

    #[test]
    fn what_is_not_looked_at_may_be_anything_that_is_json() {
        let deep = format!("{{\"x\":{}{}}}", "[".repeat(200_000), "]".repeat(200_000));
        for text in [
            r#"{"x":"\ud800","methods":1,"idx":2,"x":3}"#,
            r#"{"params":{"a":"\udfff","n":1e999,"a":1,"a":2}}"#,
            deep.as_str(),
        ] {
            assert!(read(text).is_ok(), "{:.40}", text);
        }
    }

    #[test]
    fn ids_are_compared_as_the_least_careful_server_would() {
        let key = |text: &str| Key::new(serde_json::from_str(text).unwrap());
        assert_eq!(key("1"), key("1.0"));
        assert_eq!(key("1"), key("10e-1"));
        assert_eq!(key("\"a\""), key("\"\\u0061\""));
        assert_ne!(key("1"), key("\"1\""));
        for text in [
            "null",
            "1.5",
            "true",
            "[1]",
            "{}",
            "9007199254740993",
            "1e300",
            "\"\\ud800\"",
        ] {
            assert_eq!(key(text), None, "{text}");
        }
    }

    #[test]
    fn a_broken_message_is_attributed_where_it_has_one_id() {
        let request = |text: &str| request_id(text.as_bytes()).map(|id| id.get().to_owned());
        let answer = |text: &str| answer_id(text.as_bytes()).map(|id| id.get().to_owned());
        let twice = r#"{"id":7,"method":"a","method":"b"}"#;
        assert_eq!(request(twice).as_deref(), Some("7"));
        assert_eq!(answer(twice), None);
        let cut = r#"{"id":"x","method":"y","params":{"cut":"o"#;
        assert_eq!(request(cut).as_deref(), Some("\"x\""));
        assert_eq!(request(r#"{"method":"a","id":1,"id":2}"#), None);
        assert_eq!(request(r#"{"method":"a","params":{"id":1}}"#), None);
        assert_eq!(request(r#"{"id":1,"result":"#), None);
        assert_eq!(answer(r#"{"id":1,"result":"#).as_deref(), Some("1"));
        assert_eq!(answer("junk"), None);
    }
}
