//! The messages that the proxy itself writes.
use crate::advice;
use rewind_core::Error;
use serde_json::{Value, json, value::RawValue};

/// Under this key of a result's `_meta` is the receipt of a call that was guarded: `receipts`, `reused`, `warnings`.
pub const RECEIPT_KEY: &str = "io.github.zerto-rewind/receipt";
/// Under this key of a result's `_meta` is the error of a call that was not forwarded: `code`, `message`, `next`, ….
pub const REFUSAL_KEY: &str = "io.github.zerto-rewind/refusal";

/// JSON-RPC: not JSON.
pub const PARSE_ERROR: i32 = -32700;
/// JSON-RPC: not a request.
pub const INVALID_REQUEST: i32 = -32600;
/// JSON-RPC: not these parameters.
pub const INVALID_PARAMS: i32 = -32602;
/// JSON-RPC: failed inside.
pub const INTERNAL_ERROR: i32 = -32603;

/// MCP: the headers say something else than the body.
pub const HEADER_MISMATCH: i32 = -32020;

/// A JSON-RPC error; the id is `null` where there is none to name.
pub fn error(id: Option<&RawValue>, code: i32, message: &str) -> Vec<u8> {
    let message = Value::from(format!("zerto-rewind: {message:.500}"));
    let id = id.map_or("null", RawValue::get);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}}}}}"#)
        .into_bytes()
}

/// The result of a listed call that is not forwarded, in the form of the call's era. It has no structured content:
/// the schema of that belongs to the tool's server.
pub fn refusal(id: &RawValue, modern: bool, error: &Error) -> Vec<u8> {
    let error = advice::completed(error);
    let mut result = json!({
        "content": [{ "type": "text", "text": text(&error) }],
        "isError": true,
        "_meta": { REFUSAL_KEY: error },
    });
    if modern && let Some(result) = result.as_object_mut() {
        result.insert("resultType".into(), "complete".into());
    }
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id.get()).into_bytes()
}

/// What the model reads.
fn text(error: &Error) -> String {
    format!(
        "zerto-rewind did not forward this call; nothing was changed by it.\n{}",
        crate::text::error(error)
    )
}

/// A progress notification. It names no total: what the server still has to do is not known yet.
pub fn progress(token: &RawValue, progress: f64, message: &str) -> Vec<u8> {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{},"progress":{},"message":{}}}}}"#,
        token.get(),
        number(progress),
        Value::from(message)
    )
    .into_bytes()
}

/// A float as JSON, whole numbers without a fraction.
pub fn number(value: f64) -> String {
    if value.is_finite() {
        format!("{value}")
    } else {
        "0".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rewind_core::ErrorCode;

    #[test]
    fn a_refusal_has_the_form_of_the_calls_era() {
        let error = Error::new(ErrorCode::VmNotFound, "no VM \"x\"").with_next("name another");
        let id: &RawValue = serde_json::from_str("\"a\\u0062\"").unwrap();
        let text = String::from_utf8(refusal(id, false, &error)).unwrap();
        assert!(
            text.starts_with(r#"{"jsonrpc":"2.0","id":"a\u0062","result":"#),
            "{text}"
        );
        let legacy: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(legacy["result"]["isError"], true);
        assert_eq!(legacy["result"].get("resultType"), None);
        assert_eq!(legacy["result"].get("structuredContent"), None);
        assert_eq!(
            legacy["result"]["_meta"][REFUSAL_KEY]["code"],
            "vm_not_found"
        );
        let said = legacy["result"]["content"][0]["text"].as_str().unwrap();
        assert!(
            said.contains("vm_not_found: no VM \"x\"\nNext: name another"),
            "{said}"
        );
        let modern: Value = serde_json::from_slice(&refusal(id, true, &error)).unwrap();
        assert_eq!(modern["result"]["resultType"], "complete");
    }

    #[test]
    fn whole_numbers_stay_whole() {
        assert_eq!(number(3.0), "3");
        assert_eq!(number(3.25), "3.25");
        assert_eq!(number(1e21), "1000000000000000000000");
    }
}
