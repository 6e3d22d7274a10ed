//! The parameters of a `tools/call`, and its arguments read so that the catalog decides on what the server will see.
use std::{borrow::Cow, collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Value, value::RawValue};
use sha2::{Digest, Sha256};

use super::message::{Member, MemberName, Text, once};

/// The method that calls a tool.
pub const TOOLS_CALL: &str = "tools/call";

/// What the relay reads of `params`, as slices of the message.
#[derive(Debug, Default)]
pub struct ToolCall<'a> {
    pub name: Cow<'a, str>,
    pub arguments: Option<&'a RawValue>,
    pub meta: RequestMeta<'a>,
    /// In the retry of a multi-round-trip request.
    pub request_state: Option<&'a RawValue>,
    pub is_retry: bool,
}

/// What a request says about itself in `_meta`.
#[derive(Debug, Default, Deserialize)]
pub struct RequestMeta<'a> {
    /// As the client sent it: a string or a number.
    #[serde(borrow, rename = "progressToken")]
    pub progress_token: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    pub protocol_version: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientInfo")]
    pub client_info: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub client_capabilities: Option<&'a RawValue>,
}

impl<'a> RequestMeta<'a> {
    /// Reads `_meta`. What can't be read says nothing: nothing is decided by it.
    pub fn read(meta: Option<&'a RawValue>) -> Self {
        meta.and_then(|meta| serde_json::from_str(meta.get()).ok())
            .unwrap_or_default()
    }

    /// Whether the request is of an era in which each request says its protocol revision (2026-07-28 and later).
    pub fn is_modern(&self) -> bool {
        self.protocol_version.is_some()
    }

    /// The client's own name.
    pub fn client_name(&self) -> Option<String> {
        name_of(self.client_info?)
    }
}

/// The `name` of an `Implementation` object.
pub fn name_of(implementation: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    serde_json::from_str::<Named>(implementation.get())
        .ok()
        .map(|named| named.name)
}

impl<'a> ToolCall<'a> {
    /// Reads the parameters of a `tools/call`.
    ///
    /// # Errors
    /// Says what a server could understand differently.
    pub fn read(params: Option<&'a RawValue>) -> Result<Self, String> {
        let params = params.ok_or("a tools/call without params")?;
        let mut call = Self::default();
        serde_json::Deserializer::from_str(params.get())
            .deserialize_map(Members(&mut call))
            .map_err(|error| error.to_string())?;
        if call.name.chars().any(char::is_control) {
            return Err("a tool's name with control characters".into());
        }
        Ok(call)
    }

    /// The arguments, where every parser reads them alike; `{}` where there are none.
    ///
    /// # Errors
    /// Says what is wrong with them.
    pub fn arguments(&self) -> Result<Value, String> {
        let Some(arguments) = self.arguments else {
            return Ok(Value::Object(serde_json::Map::new()));
        };
        unambiguous(arguments.get())
    }
}

/// Reads JSON that every parser reads alike: no object in it has two members that some parser takes for one.
///
/// # Errors
/// Says what is wrong with it.
pub fn unambiguous(json: &str) -> Result<Value, String> {
    serde_json::from_str::<Unambiguous>(json).map_err(|error| error.to_string())?;
    serde_json::from_str(json).map_err(|error| error.to_string())
}

struct Members<'a, 'c>(&'c mut ToolCall<'a>);

const MEMBERS: [&str; 5] = [
    "name",
    "arguments",
    "_meta",
    "requestState",
    "inputResponses",
];

impl<'a> Visitor<'a> for Members<'a, '_> {
    type Value = ();
    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the params of a tools/call (an object)")
    }
    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<(), M::Error> {
        let call = self.0;
        let mut name: Option<Text<'a>> = None;
        let (mut meta, mut inputs) = (None, None::<IgnoredAny>);
        while let Some(member) = map.next_key_seed(MemberName(&MEMBERS))? {
            match member {
                Member::Known(0) => once(&mut map, &mut name, "name")?,
                Member::Known(1) => once(&mut map, &mut call.arguments, "arguments")?,
                Member::Known(2) => once(&mut map, &mut meta, "_meta")?,
                Member::Known(3) => once(&mut map, &mut call.request_state, "requestState")?,
                Member::Known(_) => once(&mut map, &mut inputs, "inputResponses")?,
                Member::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        call.name = name.ok_or_else(|| M::Error::custom("no tool's name"))?.0;
        call.meta = RequestMeta::read(meta);
        call.is_retry = inputs.is_some() || call.request_state.is_some();
        Ok(())
    }
}

/// What makes two calls the same one: the tool and its arguments, whatever the order of their members.
pub fn digest(tool: &str, arguments: &Value) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(tool.as_bytes());
    digest.update([0]);
    digest.update(arguments.to_string().as_bytes());
    digest.finalize().into()
}

/// JSON in which no object has two members that some parser takes for one.
struct Unambiguous;

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(Self)
    }
}

impl<'de> DeserializeSeed<'de> for Unambiguous {
    type Value = Self;
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unambiguous {
    type Value = Self;
    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }
    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }
    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }
    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }
    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }
    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }
    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }
    fn visit_seq<S: SeqAccess<'de>>(self, mut items: S) -> Result<Self, S::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }
    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self, M::Error> {
        let mut names = HashSet::new();
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            if !names.insert(folded(&name)) {
                return Err(M::Error::custom(format!(
                    "two members that could be taken for one: {name:?}"
                )));
            }
            map.next_value::<Self>()?;
        }
        Ok(self)
    }
}

/// A name as a parser sees it that does not care about case.
pub fn folded(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    name.chars()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(params: &str) -> Result<ToolCall<'_>, String> {
        ToolCall::read(Some(serde_json::from_str(params).unwrap()))
    }

    #[test]
    fn reads_name_arguments_and_meta() {
        let call = read(
            r#"{"task":{"ttl":1},"name":"vm\u005fdelete","arguments":{"a":[1,{"b":null}]},"_meta":{"progressToken":"t","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}}"#,
        )
        .unwrap();
        assert_eq!(call.name, "vm_delete");
        assert_eq!(call.arguments().unwrap(), json!({"a":[1,{"b":null}]}));
        assert_eq!(call.meta.progress_token.unwrap().get(), "\"t\"");
        assert!(call.meta.is_modern());
        assert_eq!(call.meta.client_name().as_deref(), Some("c"));
        assert!(!call.is_retry);
        assert!(
            read(r#"{"name":"x","inputResponses":{}}"#)
                .unwrap()
                .is_retry
        );
        assert_eq!(read(r#"{"name":"x"}"#).unwrap().arguments(), Ok(json!({})));
    }

    #[test]
    fn refuses_params_that_a_server_could_read_differently() {
        for params in [
            r#"{"name":"a","name":"b"}"#,
            r#"{"name":"a","Name":"b"}"#,
            r#"{"Name":"b"}"#,
            r#"{"name":"a","arguments":{},"Arguments":{}}"#,
            r#"{"name":"a","argument\u017f":{}}"#,
            r#"{"name":"a","arguments":{},"arguments":{}}"#,
            r#"{"name":["a"]}"#,
            r#"{"name":"a\u0000b"}"#,
            r#"{"name":null}"#,
            r#"{"arguments":{}}"#,
            r#"["a",{}]"#,
            r#"{"name":"\ud800"}"#,
        ] {
            assert!(read(params).is_err(), "{params}");
        }
        assert!(ToolCall::read(None).is_err());
    }

    #[test]
    fn refuses_arguments_that_a_server_could_read_differently() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for arguments in [
            r#"{"vm":"a","vm":"b"}"#,
            r#"{"vm":"a","VM":"b"}"#,
            r#"{"x":[{"k":1,"\u212a":2}]}"#,
            r#"{"vm":"\ud800"}"#,
            r#"{"n":1e999}"#,
            deep.as_str(),
        ] {
            let params = format!(r#"{{"name":"a","arguments":{arguments}}}"#);
            assert!(read(&params).unwrap().arguments().is_err(), "{arguments}");
        }
    }

    #[test]
    fn a_digest_does_not_depend_on_order_and_does_on_everything_else() {
        let one = digest(
            "t",
            &serde_json::from_str(r#"{"a":1,"b":{"c":2,"d":3}}"#).unwrap(),
        );
        let two = digest(
            "t",
            &serde_json::from_str(r#"{"b":{"d":3,"c":2},"a":1}"#).unwrap(),
        );
        assert_eq!(one, two);
        assert_ne!(one, digest("u", &json!({"a":1,"b":{"c":2,"d":3}})));
        assert_ne!(one, digest("t", &json!({"a":1,"b":{"c":2,"d":4}})));
    }
}
