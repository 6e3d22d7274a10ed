//! Server-sent events, each with the bytes that it came in.
use serde_json::value::RawValue;

/// One event, or a comment between events.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// As it came, with the blank line that ends it.
    pub raw: Vec<u8>,
    /// Its `data` lines, joined.
    pub data: Option<Vec<u8>>,
    pub id: Option<String>,
    /// In milliseconds.
    pub retry: Option<u64>,
    /// The fields other than `data`, as they came.
    other: Vec<u8>,
}

impl Event {
    /// The same event with other data, on one line.
    pub fn with_data(&self, data: &[u8]) -> Vec<u8> {
        let mut raw = self.other.clone();
        raw.extend_from_slice(b"data: ");
        raw.extend_from_slice(data);
        raw.extend_from_slice(b"\n\n");
        raw
    }
}

/// An event of ours.
pub fn event(data: &[u8]) -> Vec<u8> {
    let mut event = b"event: message\n".to_vec();
    event.extend(Event::default().with_data(data));
    event
}

/// Takes a stream of bytes apart into events.
#[derive(Debug)]
pub struct Parser {
    longest: usize,
    buffer: Vec<u8>,
    searched: usize,
    event: Event,
    /// The last line ended with a carriage return: a line feed that follows belongs to it.
    after_return: bool,
}

/// An event that is longer than allowed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event with more than {0} bytes")]
pub struct TooLong(usize);

impl Parser {
    /// For events of at most `longest` bytes.
    pub fn new(longest: usize) -> Self {
        Self {
            longest,
            buffer: Vec::new(),
            searched: 0,
            event: Event::default(),
            after_return: false,
        }
    }

    /// Takes the next bytes, and returns the events that are complete.
    ///
    /// # Errors
    /// For an event that is too long.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Vec<Event>, TooLong> {
        self.buffer.extend_from_slice(bytes);
        let mut events = Vec::new();
        let mut start = 0;
        while let Some(at) = self
            .buffer
            .get(self.searched..)
            .and_then(|rest| memchr::memchr2(b'\r', b'\n', rest))
        {
            let mut end = self.searched + at + 1;
            if self.buffer.get(end - 1..=end) == Some(b"\r\n") {
                end += 1;
            }
            self.searched = end;
            let line = self.buffer.get(start..end).unwrap_or_default();
            start = end;
            if std::mem::replace(&mut self.after_return, line.ends_with(b"\r")) && line == b"\n" {
                // It belongs to the line before, which was taken when this was not there yet.
                if self.event.raw.is_empty() {
                    self.event.other.push(b'\n');
                }
                self.event.raw.push(b'\n');
            } else if self.event.line(line) {
                events.push(std::mem::take(&mut self.event));
            }
        }
        self.buffer.drain(..start);
        self.searched = self.buffer.len();
        if self.buffer.len() + self.event.raw.len() > self.longest {
            return Err(TooLong(self.longest));
        }
        Ok(events)
    }

    /// What came after the last complete event.
    pub fn rest(self) -> Vec<u8> {
        [self.event.raw, self.buffer].concat()
    }
}

impl Event {
    /// Takes a line of it with its line end. True where that is its last one.
    fn line(&mut self, line: &[u8]) -> bool {
        self.raw.extend_from_slice(line);
        let content = without_end(line);
        if content.is_empty() {
            return true;
        }
        let (field, value) = match memchr::memchr(b':', content) {
            // A comment keeps the connection alive: it is passed on at once where it is not inside an event.
            Some(0) => return self.data.is_none() && self.other.iter().all(|byte| *byte == b'\n'),
            Some(colon) => {
                let (field, value) = content.split_at(colon);
                let value = value.get(1..).unwrap_or_default();
                (field, value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (content, &b""[..]),
        };
        if field == b"data" {
            match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                data => *data = Some(value.to_vec()),
            }
            return false;
        }
        self.other.extend_from_slice(content);
        self.other.push(b'\n');
        let value = std::str::from_utf8(value).unwrap_or_default();
        match field {
            b"id" if !value.contains('\0') => self.id = Some(value.into()),
            b"retry" => self.retry = value.parse().ok().or(self.retry),
            _ => {}
        }
        false
    }
}

fn without_end(line: &[u8]) -> &[u8] {
    let end = match line {
        [.., b'\r', b'\n'] => 2,
        _ => 1,
    };
    line.get(..line.len().saturating_sub(end))
        .unwrap_or_default()
}

/// A message on one line. JSON has line ends only between its tokens.
pub fn on_one_line(mut message: Vec<u8>) -> Vec<u8> {
    for byte in &mut message {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    message
}

/// Whether a message is the answer to the request with this id.
pub fn answers(message: &[u8], id: &RawValue) -> bool {
    use crate::proxy::message::{Head, Key, answer_id};
    let answered = match Head::read(message) {
        Ok(head) if head.method.is_none() => head.id.and_then(Key::new),
        Ok(_) => None,
        Err(_) => answer_id(message).and_then(Key::new),
    };
    answered.is_some() && answered == Key::new(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8], step: usize) -> (Vec<Event>, Vec<u8>) {
        let mut parser = Parser::new(1000);
        let events = bytes
            .chunks(step)
            .flat_map(|chunk| parser.take(chunk).unwrap())
            .collect();
        (events, parser.rest())
    }

    #[test]
    fn events_are_taken_apart_wherever_the_pieces_end() {
        let streams: [&[u8]; 3] = [
            b": hello\nid: 7\ndata: a\ndata:b\nretry: 20\n\n\ndata\n\nid: x\nevent: e\n: c\ndata: {}\n\nrest",
            b": hello\r\nid: 7\r\ndata: a\r\ndata:b\r\nretry: 20\r\n\r\n\r\ndata\r\n\r\nid: x\r\nevent: e\r\n: c\r\ndata: {}\r\n\r\nrest",
            b": hello\rid: 7\rdata: a\rdata:b\rretry: 20\r\r\rdata\r\rid: x\revent: e\r: c\rdata: {}\r\rrest",
        ];
        for stream in streams {
            for step in 1..stream.len() {
                let (events, rest) = parse(stream, step);
                let all: Vec<u8> = events
                    .iter()
                    .flat_map(|event| event.raw.clone())
                    .chain(rest)
                    .collect();
                assert_eq!(all, stream);
                let seen: Vec<_> = events
                    .iter()
                    .map(|event| (event.data.as_deref(), event.id.as_deref(), event.retry))
                    .collect();
                assert_eq!(
                    seen,
                    [
                        (None, None, None),
                        (Some(&b"a\nb"[..]), Some("7"), Some(20)),
                        (None, None, None),
                        (Some(&b""[..]), None, None),
                        (Some(&b"{}"[..]), Some("x"), None),
                    ]
                );
                let other = events[4].with_data(b"[]");
                let other = other.strip_prefix(b"\n").unwrap_or(&other);
                assert_eq!(other, b"id: x\nevent: e\ndata: []\n\n");
            }
        }
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut parser = Parser::new(1000);
        assert!(parser.take(&[b'x'; 900]).unwrap().is_empty());
        assert_eq!(parser.take(&[b'x'; 200]), Err(TooLong(1000)));
        let mut parser = Parser::new(1000);
        let result: Result<Vec<_>, _> = (0..200).map(|_| parser.take(b"data: x\n")).collect();
        assert!(result.is_err());
    }

    #[test]
    fn an_answer_is_known_by_its_id() {
        let id: &RawValue = serde_json::from_str("1").unwrap();
        assert!(answers(br#"{"id":1.0,"result":{}}"#, id));
        assert!(answers(br#"{"id":1,"result":{},"result":{}}"#, id));
        for other in [
            r#"{"id":1,"method":"x"}"#,
            r#"{"id":"1","result":{}}"#,
            r#"{"result":{}}"#,
            "junk",
        ] {
            assert!(!answers(other.as_bytes(), id), "{other}");
        }
    }
}
