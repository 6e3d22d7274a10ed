//! The requests that were seen.

use std::collections::VecDeque;

use jiff::Timestamp;
use serde::Serialize;

/// How many requests are remembered.
const REMEMBERED: usize = 50_000;

/// So much of a request's body is remembered.
const BODY: usize = 4096;

/// One request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequestRecord {
    /// When it arrived, by the host's clock.
    pub at: Timestamp,
    /// Its method.
    pub method: String,
    /// Its path as it was sent.
    pub path: String,
    /// Its query as it was sent, without `?`; empty if there is none.
    pub query: String,
    /// The first 4096 bytes of its body; left out for the token endpoint.
    pub body: String,
    /// Whether it carried a bearer token.
    pub bearer: bool,
    /// Its `User-Agent`.
    pub user_agent: String,
    /// Status of the answer; nothing while there is none, or when the connection was cut instead.
    pub status: Option<u16>,
    /// Bytes of the answer's body that were handed to the connection so far.
    pub response_bytes: u64,
}

impl RequestRecord {
    /// Whether it has this method and a path that contains this text, letter case aside.
    pub fn is(&self, method: &str, path_part: &str) -> bool {
        self.method.eq_ignore_ascii_case(method)
            && self
                .path
                .to_ascii_lowercase()
                .contains(&path_part.to_ascii_lowercase())
    }
}

#[derive(Default)]
pub(crate) struct Requests {
    seen: VecDeque<RequestRecord>,
    /// Number of the first of them.
    first: u64,
}

impl Requests {
    /// Adds one and gives it a number.
    pub(crate) fn add(&mut self, record: RequestRecord) -> u64 {
        if self.seen.len() >= REMEMBERED {
            self.seen.pop_front();
            self.first += 1;
        }
        self.seen.push_back(record);
        self.first + self.seen.len() as u64 - 1
    }

    pub(crate) fn answered(&mut self, number: u64, status: u16) {
        if let Some(record) = self.get(number) {
            record.status = Some(status);
        }
    }

    pub(crate) fn sent(&mut self, number: u64, bytes: u64) {
        if let Some(record) = self.get(number) {
            record.response_bytes += bytes;
        }
    }

    fn get(&mut self, number: u64) -> Option<&mut RequestRecord> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.seen.get_mut(index)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &RequestRecord> {
        self.seen.iter()
    }

    pub(crate) fn clear(&mut self) {
        self.first += self.seen.len() as u64;
        self.seen.clear();
    }
}

/// The remembered beginning of a body.
pub(crate) fn body_text(body: &[u8]) -> String {
    String::from_utf8_lossy(body.get(..BODY).unwrap_or(body)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_answer_after_a_clear_meets_nobody_else() {
        let record = RequestRecord {
            at: Timestamp::UNIX_EPOCH,
            method: "GET".to_owned(),
            path: "/v1/vms".to_owned(),
            query: String::new(),
            body: String::new(),
            bearer: true,
            user_agent: String::new(),
            status: None,
            response_bytes: 0,
        };
        let mut requests = Requests::default();
        let first = requests.add(record.clone());
        requests.clear();
        let second = requests.add(record);
        requests.answered(first, 500);
        requests.answered(second, 200);
        requests.sent(second, 7);
        let seen: Vec<_> = requests
            .iter()
            .map(|r| (r.status, r.response_bytes))
            .collect();
        assert_eq!(seen, [(Some(200), 7)]);
    }
}
