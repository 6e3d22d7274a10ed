//! Reading what a ZVM answers. Bodies differ by release and by endpoint, and the vendor's OpenAPI file is no reliable picture
//! of them: member names in PascalCase or camelCase, enumerations as numbers or names, two kinds of dates, strings with or
//! without quotes. What a caller can't do without is checked; anything else may be missing, null or of the wrong type.

mod scalar;
mod text;
mod time;

pub(crate) use scalar::{Many, Maybe, Rows, Scalar};
pub(crate) use text::{line, quoted, reason, said_by, url_text};
pub(crate) use time::{query_time, timestamp};

use serde::de::{DeserializeOwned, DeserializeSeed};

use scalar::Each;

/// A JSON body as `T`; the error says what came instead.
pub(crate) fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    let body = trimmed(body);
    serde_json::from_slice(body).map_err(|error| no_json(body, &error))
}

/// What came instead of the JSON that was expected.
fn no_json(body: &[u8], error: &serde_json::Error) -> String {
    match body.first() {
        None => "the body is empty".into(),
        Some(b'<') => format!("JSON was expected, {} came", text::markup(body)),
        // It may repeat what stands in the body.
        Some(_) => line(&format!("not the JSON that was expected ({error})")),
    }
}

/// A JSON object as `W`.
pub(crate) fn object<W: DeserializeOwned>(body: &[u8]) -> Result<W, String> {
    json::<Maybe<W>>(body)?
        .0
        .ok_or_else(|| "an object was expected, other JSON came".into())
}

/// A JSON array of objects, each of which must convert; the error names the row that does not.
pub(crate) fn rows<W, T>(
    body: &[u8],
    convert: impl Fn(W) -> Result<T, String>,
) -> Result<Vec<T>, String>
where
    W: DeserializeOwned,
{
    let body = trimmed(body);
    let (mut rows, mut wrong) = (Vec::new(), None);
    // Each is converted as it is read: what a row is read into is larger than the row.
    let each = Each::new(|row: Maybe<W>| {
        match row
            .0
            .ok_or_else(|| "not an object".into())
            .and_then(&convert)
        {
            Ok(row) => rows.push(row),
            Err(why) => wrong = Some(format!("row {}: {why}", rows.len() + 1)),
        }
        wrong.is_none()
    });
    let mut json = serde_json::Deserializer::from_slice(body);
    let read = each.deserialize(&mut json).and_then(|()| json.end());
    match (wrong, read) {
        (Some(wrong), _) => Err(wrong),
        (None, Err(error)) => Err(no_json(body, &error)),
        (None, Ok(())) => Ok(rows),
    }
}

/// One object, several in an array, or none at all (an empty body or null).
pub(crate) fn one_or_many<W, T>(
    body: &[u8],
    convert: impl Fn(W) -> Result<T, String>,
) -> Result<Vec<T>, String>
where
    W: DeserializeOwned,
{
    match trimmed(body) {
        b"" | b"null" => Ok(Vec::new()),
        [b'[', ..] => rows(body, convert),
        _ => object(body).and_then(convert).map(|one| vec![one]),
    }
}

/// A result that is a string: in quotes (JSON), bare, or nothing at all (then empty). An object or an HTML page is neither.
pub(crate) fn string(body: &[u8]) -> Result<String, String> {
    let body = trimmed(body);
    match body.first() {
        None => Ok(String::new()),
        Some(b'"') => json(body),
        Some(b'<') => Err(format!(
            "a string was expected, {} came",
            text::markup(body)
        )),
        Some(b'{' | b'[') => Err("a string was expected, other JSON came".into()),
        Some(_) if body == b"null" => Ok(String::new()),
        Some(_) => std::str::from_utf8(body)
            .map(str::to_owned)
            .map_err(|_| "a string was expected, bytes that are not text came".into()),
    }
}

/// A result that is an identifier, or nothing at all (then empty). Words are none.
pub(crate) fn identifier(body: &[u8]) -> Result<String, String> {
    let text = string(body)?;
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(format!(
            "an identifier was expected, {} came",
            quoted(&text)
        ));
    }
    Ok(text)
}

/// Without white space and byte order mark at the ends.
fn trimmed(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xEF\xBB\xBF")
        .unwrap_or(body)
        .trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_come_quoted_bare_or_not_at_all() {
        for (body, text) in [
            (&b"\"9f.6b\""[..], "9f.6b"),
            (b"9f.6b", "9f.6b"),
            (b" \"9f.6b\"\r\n", "9f.6b"),
            (b"\xEF\xBB\xBF\"9f.6b\"", "9f.6b"),
            (b"\"\"", ""),
            (b"", ""),
            (b"null", ""),
            (b"\"v1\\\\downloads\\\\a\"", "v1\\downloads\\a"),
        ] {
            assert_eq!(string(body).as_deref(), Ok(text));
        }
    }

    #[test]
    fn what_is_no_string_is_told() {
        for (body, why) in [
            (
                &b"<html><head><title>Sign in</title></head></html>"[..],
                "Sign in",
            ),
            (b"{\"a\":1}", "other JSON"),
            (b"[\"a\"]", "other JSON"),
            (b"\"cut of", "not the JSON"),
            (b"\xff\xfe", "not text"),
        ] {
            let error = string(body).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn words_are_no_identifier() {
        assert_eq!(identifier(b"\"9f.6b\"").as_deref(), Ok("9f.6b"));
        assert_eq!(identifier(b"").as_deref(), Ok(""));
        for body in [&b"Service is starting"[..], b"\"a b\"", b"\"a\\u0000\""] {
            assert!(
                identifier(body)
                    .unwrap_err()
                    .starts_with("an identifier was expected")
            );
        }
    }

    #[test]
    fn bodies_that_are_no_json_are_told() {
        for (body, why) in [
            (&b""[..], "empty"),
            (b"  ", "empty"),
            (
                b"<!DOCTYPE html><title>502 Bad Gateway</title>",
                "502 Bad Gateway",
            ),
            (b"[1, 2", "EOF"),
            (b"{}", "expected a sequence"),
            (b"null", "expected a sequence"),
        ] {
            let error = json::<Vec<u8>>(body).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
