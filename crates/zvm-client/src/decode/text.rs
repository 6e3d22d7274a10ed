//! Texts of a ZVM in messages of ours: one line, bounded, free of anything that acts on a terminal.

use serde_json::{Map, Value};

/// Characters of a ZVM's text in a message.
const MAX: usize = 300;
/// Stands where a ZVM said nothing.
const NO_REASON: &str = "it gave no reason";

/// A ZVM's words within a sentence of ours: one line, in quotation marks that nothing within them can close.
pub(crate) fn quoted(words: &str) -> String {
    format!("\"{}\"", line(words).replace('"', "'"))
}

/// What an answer that is no success says, as it stands within a sentence.
pub(crate) fn said_by(body: &[u8]) -> String {
    match reason(body).as_str() {
        NO_REASON => NO_REASON.to_owned(),
        words => quoted(words),
    }
}

/// One readable line: control characters and runs of white space become one space, invisible and direction-changing
/// characters go, and more than 300 characters are cut.
pub(crate) fn line(text: &str) -> String {
    let mut out = String::new();
    let mut length = 0;
    let mut gap = false;
    for c in text.chars() {
        if c.is_control() || c.is_whitespace() {
            gap = length > 0;
            continue;
        }
        if invisible(c) {
            continue;
        }
        if length + usize::from(gap) >= MAX {
            out.push('…');
            return out;
        }
        if gap {
            out.push(' ');
            length += 1;
            gap = false;
        }
        out.push(c);
        length += 1;
    }
    out
}

fn invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// What an answer that is no success says, whatever its shape.
pub(crate) fn reason(body: &[u8]) -> String {
    let body = super::trimmed(body);
    let text = match (body.first(), serde_json::from_slice::<Value>(body)) {
        (None, _) => String::new(),
        (_, Ok(value)) if is_empty(&value) => String::new(),
        (_, Ok(value)) => said(&value).unwrap_or_else(|| value.to_string()),
        (Some(b'<'), _) => markup(body),
        _ => String::from_utf8_lossy(body).into_owned(),
    };
    match line(&text) {
        text if text.is_empty() => NO_REASON.into(),
        text => text,
    }
}

/// JSON that says nothing: `null`, `[]`, `{}`, `""`, or only those within one another.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(values) => values.iter().all(is_empty),
        Value::Object(members) => members.values().all(is_empty),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The first text found where ZVMs, Keycloak and ASP.NET put it.
fn said(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(values) => values.iter().find_map(said),
        Value::Object(members) => [
            "message",
            "errorMessage",
            "error_description",
            "detail",
            "title",
            "faultString",
            "error",
        ]
        .iter()
        .find_map(|name| {
            let text = said(member(members, name)?).filter(|text| !text.trim().is_empty())?;
            Some(match (*name, fields(members)) {
                ("title", Some(fields)) => format!("{text} {fields}"),
                _ => text,
            })
        }),
        _ => None,
    }
}

/// The `errors` of a ProblemDetails body: which field, and what is wrong with it.
fn fields(members: &Map<String, Value>) -> Option<String> {
    let fields = member(members, "errors")?.as_object()?;
    let all: Vec<String> = fields
        .iter()
        .filter_map(|(field, why)| Some(format!("{field}: {}", said(why)?)))
        .collect();
    (!all.is_empty()).then(|| format!("({})", all.join("; ")))
}

fn member<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    members
        .iter()
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}

/// An HTML page by its title, other markup by its name.
pub(super) fn markup(body: &[u8]) -> String {
    let head = body.get(..4096).unwrap_or(body);
    let text = String::from_utf8_lossy(head);
    let lower = text.to_ascii_lowercase();
    let title = lower.find("<title").and_then(|start| {
        let open = start + lower.get(start..)?.find('>')? + 1;
        let close = open + lower.get(open..)?.find("</title")?;
        Some(line(text.get(open..close)?)).filter(|title| !title.is_empty())
    });
    match title {
        Some(title) => format!("an HTML page ({title})"),
        None if lower.contains("<html") || lower.contains("<!doctype html") => {
            "an HTML page".into()
        }
        None => "markup".into(),
    }
}

/// A download URL without quotes and with the slashes of a URL.
pub(crate) fn url_text(text: &str) -> String {
    text.trim().trim_matches('"').trim().replace('\\', "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_of_an_error_body_is_read() {
        for (body, expected) in [
            (
                r#"{"Message":"failed parsing as a valid CheckPoint Identifier"}"#,
                "failed parsing as a valid CheckPoint Identifier",
            ),
            (r#"{"message":"no such VPG"}"#, "no such VPG"),
            (
                r#"{"errorCode":50,"errorMessage":"analytics says no"}"#,
                "analytics says no",
            ),
            (
                r#"{"error":"invalid_grant","error_description":"Invalid user credentials"}"#,
                "Invalid user credentials",
            ),
            (r#"{"error":"invalid_grant"}"#, "invalid_grant"),
            (r#"{"error":{"message":"nested"}}"#, "nested"),
            (
                r#"{"type":"x","title":"Bad Request","status":400,"detail":"the name is too long"}"#,
                "the name is too long",
            ),
            (
                r#"{"title":"One or more validation errors occurred.","status":400,"errors":{"CheckpointName":["Too long.","x"]}}"#,
                "One or more validation errors occurred. (CheckpointName: Too long.)",
            ),
            (r#"{"faultCode":"a","faultString":"legacy"}"#, "legacy"),
            (r#"{"Message":"","detail":"second"}"#, "second"),
            (r#"{"Message":null,"title":"third"}"#, "third"),
            (r#"[{"Message":"in an array"}]"#, "in an array"),
            (r#""just a string""#, "just a string"),
            (r#"{"code":17}"#, r#"{"code":17}"#),
            ("plain text\r\nin two lines", "plain text in two lines"),
            (
                "<html><head><title>503 Service Temporarily Unavailable</title></head>",
                "an HTML page (503 Service Temporarily Unavailable)",
            ),
            ("<!DOCTYPE html><body>x</body>", "an HTML page"),
            ("<string xmlns=\"x\">a</string>", "markup"),
            ("<title><title", "markup"),
            ("", "it gave no reason"),
            ("{}", "it gave no reason"),
            ("[]", "it gave no reason"),
            ("[null, [{}]]", "it gave no reason"),
            ("null", "it gave no reason"),
            (r#"{"Message":null,"detail":""}"#, "it gave no reason"),
            ("\u{1b}\u{7}", "it gave no reason"),
        ] {
            assert_eq!(reason(body.as_bytes()), expected, "{body}");
        }
    }

    #[test]
    fn words_of_a_zvm_are_marked_and_can_not_end_the_marks() {
        let said = |body: &str| said_by(body.as_bytes());
        assert_eq!(
            said(r#"{"Message":"no\"; the tag is listed. \"go on"}"#),
            "\"no'; the tag is listed. 'go on\""
        );
        assert_eq!(said(""), NO_REASON);
    }

    #[test]
    fn texts_are_one_bounded_visible_line() {
        assert_eq!(line("a\u{1b}[31mb\n\n c\u{202e}d\u{200b}"), "a [31mb cd");
        let long = line(&"xy ".repeat(5000));
        assert!(long.chars().count() <= 301);
        assert!(long.ends_with('…'));
        assert_eq!(line(&"x".repeat(300)), "x".repeat(300));
        assert_eq!(line(&format!("{} ", "x".repeat(300))), "x".repeat(300));
    }
}
