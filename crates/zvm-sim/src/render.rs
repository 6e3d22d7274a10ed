//! JSON as a ZVM writes it: the dialect is chosen by switches, the shape by the callers.
//!
//! Members are written straight into the answer's bytes, without a tree in between: a list of all VMs of a large
//! site has some 15 MB.

use std::io::Write;

use crate::names;
use crate::switches::{Casing, Dates, Enums, Ids, Switches};

/// How answers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    casing: Casing,
    dates: Dates,
    enums: Enums,
    ids: Ids,
    whole_seconds: bool,
    offset_ms: i64,
}

impl Dialect {
    pub(crate) fn of(switches: &Switches) -> Self {
        Self {
            casing: switches.casing,
            dates: switches.dates,
            enums: switches.enums,
            ids: switches.ids,
            whole_seconds: switches.whole_seconds,
            offset_ms: switches.clock_offset_ms,
        }
    }

    /// A moment by the ZVM's clock.
    pub(crate) fn by_zvm(&self, at: i64) -> i64 {
        at.saturating_add(self.offset_ms)
    }

    /// A checkpoint's time, by the ZVM's clock, as it is shown.
    pub(crate) fn checkpoint_time(&self, at: i64) -> i64 {
        if self.whole_seconds {
            at.div_euclid(1000) * 1000
        } else {
            at
        }
    }
}

/// Writes one JSON value.
pub(crate) struct Writer {
    out: Vec<u8>,
    dialect: Dialect,
}

impl Writer {
    /// The bytes of one object.
    pub(crate) fn object(dialect: Dialect, fill: impl FnOnce(&mut Object)) -> Vec<u8> {
        let mut writer = Self {
            out: Vec::with_capacity(1024),
            dialect,
        };
        writer.put_object(fill);
        writer.out
    }

    /// The bytes of an array of objects.
    pub(crate) fn array<T>(
        dialect: Dialect,
        items: impl IntoIterator<Item = T>,
        mut each: impl FnMut(&mut Object, T),
    ) -> Vec<u8> {
        let mut writer = Self {
            out: Vec::with_capacity(4096),
            dialect,
        };
        writer.put_array(items, |writer, item| {
            writer.put_object(|object| each(object, item));
        });
        writer.out
    }

    /// The bytes of a string.
    pub(crate) fn string(text: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len() + 2);
        put_string(&mut out, text);
        out
    }

    /// The bytes of an array of strings.
    pub(crate) fn strings<'a>(items: impl IntoIterator<Item = &'a str>) -> Vec<u8> {
        let mut out = vec![b'['];
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            put_string(&mut out, item);
        }
        out.push(b']');
        out
    }

    /// The bytes of a date that is already by the ZVM's clock.
    pub(crate) fn date(dialect: Dialect, at: i64) -> Vec<u8> {
        let mut out = Vec::with_capacity(32);
        put_date(&mut out, dialect, at);
        out
    }

    fn put_object(&mut self, fill: impl FnOnce(&mut Object)) {
        self.out.push(b'{');
        let mut object = Object {
            writer: self,
            first: true,
        };
        fill(&mut object);
        self.out.push(b'}');
    }

    fn put_array<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut each: impl FnMut(&mut Self, T),
    ) {
        self.out.push(b'[');
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            each(self, item);
        }
        self.out.push(b']');
    }
}

/// Writes the members of one object.
pub(crate) struct Object<'a> {
    writer: &'a mut Writer,
    first: bool,
}

impl Object<'_> {
    /// Member names are given in the ZVM's own case; those of links are lower case in every dialect.
    fn key(&mut self, name: &str) {
        let out = &mut self.writer.out;
        if self.first {
            self.first = false;
        } else {
            out.push(b',');
        }
        out.push(b'"');
        match self.writer.dialect.casing {
            Casing::Pascal => out.extend_from_slice(name.as_bytes()),
            Casing::Camel => put_camel(out, name),
        }
        out.extend_from_slice(b"\":");
    }

    pub(crate) fn text(&mut self, name: &str, value: &str) -> &mut Self {
        self.key(name);
        put_string(&mut self.writer.out, value);
        self
    }

    pub(crate) fn text_or_null(&mut self, name: &str, value: Option<&str>) -> &mut Self {
        match value {
            Some(value) => self.text(name, value),
            None => self.null(name),
        }
    }

    pub(crate) fn null(&mut self, name: &str) -> &mut Self {
        self.key(name);
        self.writer.out.extend_from_slice(b"null");
        self
    }

    pub(crate) fn number(&mut self, name: &str, value: impl Into<i64>) -> &mut Self {
        self.key(name);
        put(&mut self.writer.out, format_args!("{}", value.into()));
        self
    }

    pub(crate) fn float(&mut self, name: &str, value: f64) -> &mut Self {
        self.key(name);
        put(&mut self.writer.out, format_args!("{value:?}"));
        self
    }

    pub(crate) fn flag(&mut self, name: &str, value: bool) -> &mut Self {
        self.key(name);
        put(&mut self.writer.out, format_args!("{value}"));
        self
    }

    /// A value of an enumeration: its number, or its name where the dialect has names.
    pub(crate) fn code(&mut self, name: &str, value: u8, known: &[&'static str]) -> &mut Self {
        match self.writer.dialect.enums {
            Enums::Numbers => self.number(name, value),
            Enums::Names => match names::name_of(known, value) {
                Some(text) => self.text(name, text),
                None => self.number(name, value),
            },
        }
    }

    /// A moment with its milliseconds, from the host's clock.
    pub(crate) fn moment(&mut self, name: &str, at: i64) -> &mut Self {
        let at = self.writer.dialect.by_zvm(at);
        self.fixed_date(name, at)
    }

    /// A checkpoint's time, by the ZVM's clock.
    pub(crate) fn checkpoint_time(&mut self, name: &str, at: i64) -> &mut Self {
        let at = self.writer.dialect.checkpoint_time(at);
        self.fixed_date(name, at)
    }

    /// A date as it is, whatever the ZVM's clock says.
    pub(crate) fn fixed_date(&mut self, name: &str, at: i64) -> &mut Self {
        self.key(name);
        let dialect = self.writer.dialect;
        put_date(&mut self.writer.out, dialect, at);
        self
    }

    pub(crate) fn object(&mut self, name: &str, fill: impl FnOnce(&mut Object)) -> &mut Self {
        self.key(name);
        self.writer.put_object(fill);
        self
    }

    pub(crate) fn objects<T>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        mut each: impl FnMut(&mut Object, T),
    ) -> &mut Self {
        self.key(name);
        self.writer.put_array(items, |writer, item| {
            writer.put_object(|object| each(object, item));
        });
        self
    }

    pub(crate) fn texts<'a>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = &'a str>,
    ) -> &mut Self {
        self.key(name);
        self.writer
            .put_array(items, |writer, item| put_string(&mut writer.out, item));
        self
    }

    /// An identifier at the top level, which some versions have in the link alone.
    pub(crate) fn top_level_id(&mut self, name: &str, id: &str) -> &mut Self {
        match self.writer.dialect.ids {
            Ids::TopLevel => self.text(name, id),
            Ids::LinkOnly => self,
        }
    }

    /// A link object.
    pub(crate) fn link(&mut self, name: &str, href: &str, id: &str, kind: &str) -> &mut Self {
        self.object(name, |link| link.fill_link(href, id, kind))
    }

    /// The members of a link object.
    pub(crate) fn fill_link(&mut self, href: &str, id: &str, kind: &str) {
        self.text("href", href)
            .text("identifier", id)
            .null("rel")
            .text("type", kind);
    }
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a Vec can't fail.
    let _ = out.write_fmt(text);
}

fn put_string(out: &mut Vec<u8>, text: &str) {
    // Neither writing to a Vec nor a string as such can fail.
    let _ = serde_json::to_writer(out, text);
}

fn put_date(out: &mut Vec<u8>, dialect: Dialect, at: i64) {
    match dialect.dates {
        Dates::Iso => put(out, format_args!("\"{:.3}\"", crate::clock::timestamp(at))),
        Dates::Milliseconds => put(out, format_args!("\"\\/Date({at})\\/\"")),
    }
}

/// Lower case for the leading capitals up to the last before a small letter: `IOPs` is `ioPs`, `ActualRPO` is `actualRPO`.
fn put_camel(out: &mut Vec<u8>, name: &str) {
    let bytes = name.as_bytes();
    let mut lower = true;
    for (index, byte) in bytes.iter().enumerate() {
        let next_is_small = bytes
            .get(index + 1)
            .is_some_and(|next| !next.is_ascii_uppercase());
        if index > 0 && next_is_small || !byte.is_ascii_uppercase() {
            lower = false;
        }
        out.push(if lower {
            byte.to_ascii_lowercase()
        } else {
            *byte
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn camel(name: &str) -> String {
        let mut out = Vec::new();
        put_camel(&mut out, name);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn camel_case_is_the_vendors() {
        for (pascal, expected) in [
            ("VpgIdentifier", "vpgIdentifier"),
            ("IOPs", "ioPs"),
            ("ActualRPO", "actualRPO"),
            ("href", "href"),
            ("ThroughputInMB", "throughputInMB"),
        ] {
            assert_eq!(camel(pascal), expected);
        }
    }

    #[test]
    fn dates_and_codes_follow_the_dialect() {
        let mut switches = Switches::default();
        let write = |switches: &Switches| {
            String::from_utf8(Writer::object(Dialect::of(switches), |object| {
                object
                    .checkpoint_time("TimeStamp", 1_740_823_205_678)
                    .moment("Started", 1_740_823_205_678)
                    .code("Status", 1, &names::STATUSES)
                    .code("SubStatus", 40, &names::SUB_STATUSES)
                    .text("Tag", "a\"\u{1}é");
            }))
            .unwrap()
        };
        assert_eq!(
            write(&switches),
            r#"{"TimeStamp":"2025-03-01T10:00:05.000Z","Started":"2025-03-01T10:00:05.678Z","Status":1,"SubStatus":40,"Tag":"a\"\u0001é"}"#
        );
        switches.casing = Casing::Camel;
        switches.dates = Dates::Milliseconds;
        switches.enums = Enums::Names;
        switches.whole_seconds = false;
        switches.clock_offset_ms = -1000;
        assert_eq!(
            write(&switches),
            r#"{"timeStamp":"\/Date(1740823205678)\/","started":"\/Date(1740823204678)\/","status":"MeetingSLA","subStatus":40,"tag":"a\"\u0001é"}"#
        );
    }
}
