//! The headers that mirror a message's body: made from it, or checked against it. The body decides.
use std::collections::HashMap;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, value::RawValue};

use crate::proxy::{
    call::{RequestMeta, TOOLS_CALL, ToolCall},
    message::Head,
    splice::member,
};

/// The method of the body.
pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// The tool, prompt, resource or task of the body.
pub const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The protocol revision.
pub const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The session of eras that have one.
pub const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// Where a stream goes on.
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The member of `params` that [`NAME`] mirrors.
fn named_by(method: &str) -> Option<&'static str> {
    match method {
        TOOLS_CALL | "prompts/get" => Some("name"),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" | "tasks/result" => Some("taskId"),
        _ => None,
    }
}

fn string(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

fn name(head: &Head<'_>) -> Option<String> {
    let field = named_by(head.method.as_deref()?)?;
    string(member(head.params?, field).ok()??)
}

/// The headers of a request of an era that mirrors its body: 2026-07-28 and later.
pub fn mirror(head: &Head<'_>, meta: &RequestMeta<'_>, params: &ParamHeaders) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut put = |name: HeaderName, value: Option<&str>| {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(&encode(value)).ok()) {
            headers.insert(name, value);
        }
    };
    put(
        PROTOCOL_VERSION,
        meta.protocol_version.and_then(string).as_deref(),
    );
    put(METHOD, head.method.as_deref());
    put(NAME, name(head).as_deref());
    if head.method.as_deref() == Some(TOOLS_CALL)
        && let Ok(call) = ToolCall::read(head.params)
        && let Some(arguments) = call
            .arguments
            .and_then(|arguments| serde_json::from_str(arguments.get()).ok())
    {
        for (header, value) in params.of(&call.name, &arguments) {
            put(header, Some(&value));
        }
    }
    headers
}

/// What a client's headers say that its body does not.
pub fn contradiction(
    headers: &HeaderMap,
    head: &Head<'_>,
    meta: &RequestMeta<'_>,
) -> Option<String> {
    let version = meta.protocol_version.and_then(string);
    let name = name(head);
    let has_name = head
        .method
        .as_deref()
        .is_some_and(|method| named_by(method).is_some());
    let pairs = [
        (METHOD, head.method.as_deref(), true),
        (NAME, name.as_deref(), has_name),
        (PROTOCOL_VERSION, version.as_deref(), version.is_some()),
    ];
    for (header, body, comparable) in pairs {
        let mut values = headers.get_all(&header).iter();
        let (Some(value), more) = (values.next(), values.next()) else {
            continue;
        };
        if more.is_some() {
            return Some(format!("the header {header} more than once"));
        }
        let value = value.to_str().ok().and_then(decode);
        if value.is_none() || (comparable && value.as_deref() != body) {
            return Some(format!(
                "the header {header} says {}, the body {}",
                Value::from(value),
                Value::from(body)
            ));
        }
    }
    None
}

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// A value as a header can carry it.
pub fn encode(value: &str) -> String {
    let plain = value
        .bytes()
        .all(|byte| matches!(byte, b' '..=b'~' | b'\t'))
        && value.trim_matches([' ', '\t']) == value
        && !(value.starts_with(PREFIX) && value.ends_with(SUFFIX));
    if plain {
        value.into()
    } else {
        format!("{PREFIX}{}{SUFFIX}", BASE64_STANDARD.encode(value))
    }
}

/// The value that a header carries; None where it is none.
pub fn decode(value: &str) -> Option<String> {
    match value
        .strip_prefix(PREFIX)
        .and_then(|value| value.strip_suffix(SUFFIX))
    {
        Some(encoded) => String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok(),
        None => Some(value.into()),
    }
}

/// Which arguments of which tools the server wants to see in headers (`x-mcp-header` in their schemas).
#[derive(Debug, Default)]
pub struct ParamHeaders(HashMap<String, Vec<(Vec<String>, HeaderName)>>);

impl ParamHeaders {
    /// Reads a list of tools. Whether it said anything new.
    pub fn read(&mut self, result: &RawValue) -> bool {
        let Ok(result) = serde_json::from_str::<Value>(result.get()) else {
            return false;
        };
        let mut new = false;
        for tool in result
            .get("tools")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let Some(name) = tool.get("name").and_then(Value::as_str) else {
                continue;
            };
            let mut found = Vec::new();
            if let Some(schema) = tool.get("inputSchema") {
                annotated(schema, &mut Vec::new(), &mut found);
            }
            if self.0.get(name) != Some(&found) {
                new |= !found.is_empty() || self.0.contains_key(name);
                self.0.insert(name.into(), found);
            }
        }
        new
    }

    fn of(&self, tool: &str, arguments: &Value) -> Vec<(HeaderName, String)> {
        let value = |path: &[String]| {
            let found = path
                .iter()
                .try_fold(arguments, |value, step| value.get(step))?;
            match found {
                Value::String(text) => Some(text.clone()),
                Value::Bool(_) | Value::Number(_) => Some(found.to_string()),
                _ => None,
            }
        };
        self.0
            .get(tool)
            .into_iter()
            .flatten()
            .filter_map(|(path, header)| Some((header.clone(), value(path)?)))
            .collect()
    }
}

/// Follows `properties`, and nothing else: so the specification has it.
fn annotated(schema: &Value, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, HeaderName)>) {
    for (name, property) in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        path.push(name.clone());
        let header = property.get("x-mcp-header").and_then(Value::as_str);
        if let Some(header) =
            header.and_then(|header| HeaderName::try_from(format!("mcp-param-{header}")).ok())
        {
            found.push((path.clone(), header));
        }
        annotated(property, path, found);
        path.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::conversation::request_meta;

    const CALL: &str = r#"{"id":1,"method":"tools/call","params":{"name":"caf\u00e9","arguments":{"region":"us-west1","deep":{"n":42,"no":null},"off":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    const TOOLS: &str = r#"{"tools":[{"name":"caf\u00e9","inputSchema":{"properties":{"region":{"x-mcp-header":"Region"},"deep":{"properties":{"n":{"x-mcp-header":"N"},"no":{"x-mcp-header":"No"}}},"off":{"x-mcp-header":"bad name"},"list":{"items":{"properties":{"x":{"x-mcp-header":"X"}}}}}}}]}"#;

    fn mirrored(message: &str, params: &ParamHeaders) -> HeaderMap {
        let head = Head::read(message.as_bytes()).unwrap();
        mirror(&head, &request_meta(&head), params)
    }

    #[test]
    fn the_body_is_mirrored() {
        let mut params = ParamHeaders::default();
        assert!(params.read(serde_json::from_str(TOOLS).unwrap()));
        assert!(!params.read(serde_json::from_str(TOOLS).unwrap()));
        let headers = mirrored(CALL, &params);
        let get = |name: &str| headers.get(name).map(|value| value.to_str().unwrap());
        assert_eq!(get("mcp-method"), Some("tools/call"));
        assert_eq!(get("mcp-name"), Some("=?base64?Y2Fmw6k=?="));
        assert_eq!(get("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(get("mcp-param-region"), Some("us-west1"));
        assert_eq!(get("mcp-param-n"), Some("42"));
        assert_eq!(headers.len(), 5);
        let read = mirrored(
            r#"{"id":1,"method":"resources/read","params":{"uri":"file:///x","name":"y"}}"#,
            &params,
        );
        assert_eq!(read.get(NAME).unwrap(), "file:///x");
    }

    #[test]
    fn values_travel_as_the_specification_has_it() {
        for (value, encoded) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encode(value), encoded);
            assert_eq!(decode(encoded).as_deref(), Some(value));
        }
        assert_eq!(decode("=?base64?%?="), None);
    }

    #[test]
    fn a_header_that_contradicts_the_body_is_found() {
        let head = Head::read(CALL.as_bytes()).unwrap();
        let check = |pairs: &[(&str, &str)]| {
            let headers = pairs.iter().map(|(name, value)| {
                (
                    HeaderName::try_from(*name).unwrap(),
                    HeaderValue::try_from(*value).unwrap(),
                )
            });
            let mut map = HeaderMap::new();
            headers.for_each(|(name, value)| {
                map.append(name, value);
            });
            contradiction(&map, &head, &request_meta(&head))
        };
        let good = [
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", "=?base64?Y2Fmw6k=?="),
            ("MCP-Protocol-Version", "2026-07-28"),
        ];
        assert_eq!(check(&[]), None);
        assert_eq!(check(&good), None);
        for bad in [
            ("Mcp-Method", "tools/list"),
            ("Mcp-Method", "Tools/Call"),
            ("Mcp-Name", "cafe"),
            ("Mcp-Name", "=?base64?%?="),
            ("MCP-Protocol-Version", "2025-11-25"),
        ] {
            assert!(check(&[bad]).is_some(), "{bad:?}");
            assert!(check(&[bad, good[0]]).is_some(), "{bad:?}");
        }
        assert!(check(&[good[0], good[0]]).is_some());
    }
}
