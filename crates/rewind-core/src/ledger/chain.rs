//! How a row is written down for its hash, and how it gets into the chain.
//!
//! The hash of a row is SHA-256 over one JSON object in the canonical form of RFC 8785, in UTF-8: names in order, no spaces. Its members
//! are `at` (ISO 8601, UTC, milliseconds), `closes` (the number of the intent, where there is one), `kind`, `prev` (the hash of the row
//! before, hexadecimal; of the first row 64 zeros) and `row`: the columns of the row. What is null is left out, so that a table can be
//! given a further column later. The number itself is not part of it: the order is that of the chain.

use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, Transaction, types::ValueRef};
use sha2::{Digest, Sha256};

use super::kinds::Kind;
use crate::state::timestamp;

/// A hash of the chain.
pub(super) type Hash = [u8; 32];

/// What comes before the first row.
pub(super) const GENESIS: Hash = [0; 32];

/// Puts a row that was just inserted at the end of the chain. `at` is in milliseconds since 1970.
pub(crate) fn append(
    database: &Transaction<'_>,
    kind: &Kind,
    row: i64,
    at: i64,
) -> rusqlite::Result<()> {
    let closes = match kind.closes {
        Some(query) => database
            .prepare_cached(query)?
            .query_row([row], |found| found.get(0))
            .optional()?
            .flatten(),
        None => None,
    };
    let (last, prev): (i64, Hash) = database
        .prepare_cached("SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1")?
        .query_row([], |newest| Ok((newest.get(0)?, newest.get(1)?)))
        .optional()?
        .unwrap_or((0, GENESIS));
    let link = Link {
        at,
        kind: kind.table,
        closes,
        prev,
    };
    let mut canonical = Vec::new();
    if !Content::of(database, kind)?.write(&link, row, &mut canonical)? {
        return Err(rusqlite::Error::QueryReturnedNoRows);
    }
    database
        .prepare_cached(
            "INSERT INTO ledger (seq, at, kind, row_id, closes, prev, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(rusqlite::params![last + 1, at, kind.table, row, closes, prev, hash(&canonical)])?;
    Ok(())
}

/// What the chain itself says of a row.
pub(super) struct Link<'a> {
    pub at: i64,
    pub kind: &'a str,
    pub closes: Option<i64>,
    pub prev: Hash,
}

pub(super) fn hash(canonical: &[u8]) -> Hash {
    Sha256::digest(canonical).into()
}

/// Reads the rows of one kind.
pub(super) struct Content<'a> {
    statement: CachedStatement<'a>,
    /// Places and names, in the order of the names.
    columns: Vec<(usize, String)>,
}

impl<'a> Content<'a> {
    pub fn of(database: &'a Connection, kind: &Kind) -> rusqlite::Result<Self> {
        let Kind { table, key, .. } = kind;
        let statement =
            database.prepare_cached(&format!("SELECT * FROM {table} WHERE {key} = ?1"))?;
        let mut columns: Vec<_> = statement
            .column_names()
            .map(str::to_owned)
            .enumerate()
            .collect();
        columns.sort_unstable_by(|(_, a), (_, b)| a.cmp(b));
        Ok(Self { statement, columns })
    }

    /// Writes a row in its canonical form. False: there is no such row.
    pub fn write(
        &mut self,
        link: &Link<'_>,
        row: i64,
        out: &mut Vec<u8>,
    ) -> rusqlite::Result<bool> {
        let mut rows = self.statement.query([row])?;
        let Some(row) = rows.next()? else {
            return Ok(false);
        };
        out.extend_from_slice(b"{\"at\":\"");
        out.extend_from_slice(iso(link.at).as_bytes());
        out.push(b'"');
        if let Some(closes) = link.closes {
            out.extend_from_slice(b",\"closes\":");
            out.extend_from_slice(closes.to_string().as_bytes());
        }
        out.extend_from_slice(b",\"kind\":");
        text(link.kind, out);
        out.extend_from_slice(b",\"prev\":\"");
        hexadecimal(&link.prev, out);
        out.extend_from_slice(b"\",\"row\":{");
        members(row, &self.columns, out)?;
        out.extend_from_slice(b"}}");
        Ok(true)
    }
}

fn members(row: &Row<'_>, columns: &[(usize, String)], out: &mut Vec<u8>) -> rusqlite::Result<()> {
    let mut first = true;
    for (place, name) in columns {
        let value = row.get_ref(*place)?;
        if matches!(value, ValueRef::Null) {
            continue;
        }
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        text(name, out);
        out.push(b':');
        match value {
            ValueRef::Integer(number) => out.extend_from_slice(number.to_string().as_bytes()),
            ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(readable) => text(readable, out),
                // Nobody writes such a text through us.
                Err(_) => bytes_of(bytes, out),
            },
            ValueRef::Blob(bytes) => bytes_of(bytes, out),
            ValueRef::Real(number) => bytes_of(&number.to_be_bytes(), out),
            ValueRef::Null => {}
        }
    }
    Ok(())
}

/// What is no text and no whole number.
fn bytes_of(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"hex\":\"");
    hexadecimal(bytes, out);
    out.extend_from_slice(b"\"}");
}

fn text(text: &str, out: &mut Vec<u8>) {
    // serde_json escapes as RFC 8785 asks for, and writing to memory does not fail.
    let _ = serde_json::to_writer(out, text);
}

fn hexadecimal(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            out.extend(DIGITS.get(usize::from(digit)));
        }
    }
}

/// A hash as it is shown.
pub(super) fn shown(hash: &Hash) -> String {
    let mut out = Vec::with_capacity(64);
    hexadecimal(hash, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// Milliseconds since 1970 as ISO 8601, always with milliseconds.
pub(super) fn iso(millis: i64) -> String {
    timestamp(millis)
        .strftime("%Y-%m-%dT%H:%M:%S.%3fZ")
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_written_in_the_documented_form() {
        let mut database = Connection::open_in_memory().unwrap();
        database
            .execute_batch(
                "CREATE TABLE t (id INTEGER PRIMARY KEY, b TEXT, a TEXT, n INTEGER) STRICT;
                 INSERT INTO t VALUES (7, 'line
end \"x\" \\ caf\u{e9} \u{1f4a1}' || char(1) || char(127), NULL, -3);",
            )
            .unwrap();
        let kind = Kind {
            table: "t",
            key: "id",
            intent: false,
            headline: false,
            closes: None,
            about: "",
        };
        let link = Link {
            at: 1_790_010_509_070,
            kind: kind.table,
            closes: Some(3),
            prev: [0xab; 32],
        };
        let transaction = database.transaction().unwrap();
        let mut out = Vec::new();
        let mut content = Content::of(&transaction, &kind).unwrap();
        assert!(content.write(&link, 7, &mut out).unwrap());
        assert!(!content.write(&link, 8, &mut out).unwrap());
        assert_eq!(
            String::from_utf8(out).unwrap(),
            format!(
                "{{\"at\":\"2026-09-21T17:08:29.070Z\",\"closes\":3,\"kind\":\"t\",\"prev\":\"{}\",\
                 \"row\":{{\"b\":\"line\\nend \\\"x\\\" \\\\ caf\u{e9} \u{1f4a1}\\u0001\u{7f}\",\"id\":7,\"n\":-3}}}}",
                "ab".repeat(32)
            )
        );
    }
}
