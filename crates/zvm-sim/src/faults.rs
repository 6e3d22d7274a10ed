//! Faults: what a network, a proxy in front or a broken appliance does to single requests.
//!
//! A fault names the requests that it meets by method and path, lets the first `skip` of them pass, and
//! then befalls the next `times`. With `effect = true` the request is carried out first, and only its
//! answer is lost or replaced.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fault {
    /// HTTP method; nothing: any.
    pub method: Option<String>,
    /// Path pattern, letter case aside: `*` is one segment, a last `**` is any rest.
    pub path: String,
    /// Only requests whose path names this VPG (its name or identifier).
    pub vpg: Option<String>,
    /// So many matching requests pass first.
    pub skip: u32,
    /// So many are met after that; 0: all.
    pub times: u32,
    /// Waits before anything else happens.
    #[serde(with = "jiff::fmt::serde::unsigned_duration::friendly::compact::required")]
    pub delay: Duration,
    /// Carries the request out before its answer is lost or replaced.
    pub effect: bool,
    /// Holds the request until [`Sim::let_go`](crate::Sim::let_go): before it is carried out, or with `effect` its answer.
    /// As a ZVM does, it goes on with the request whether its client still lives or not.
    pub hold: bool,
    /// What the client gets.
    #[serde(rename = "then")]
    pub outcome: Outcome,
    /// Status of a replaced answer.
    pub status: u16,
    /// `Retry-After` of a replaced answer, in seconds.
    pub retry_after: Option<u32>,
    /// Text of the body [`Outcome::Text`], and of the messages in others.
    pub text: String,
    /// Size of the body [`Outcome::Huge`].
    pub huge_bytes: u64,
    /// The body [`Outcome::File`], on the simulator's host.
    pub file: PathBuf,
    /// Headers of a replaced answer, such as `location`; those that it has already give way.
    pub headers: BTreeMap<String, String>,
}

/// What a request that met a fault gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The true answer (after the delay).
    Answer,
    /// No answer: the connection is cut.
    Cut,
    /// The true answer's head and half its body, then the connection is cut.
    CutBody,
    /// The true answer's head and half its body, then nothing.
    Stall,
    /// The true answer with half its body, complete by its own length.
    TruncatedJson,
    /// The true answer, sent as `text/plain` without quotes when it is one string.
    BareString,
    /// `status` with an HTML page.
    Html,
    /// `status` with no body.
    Empty,
    /// `status` with `{"Message": text}`.
    Message,
    /// `status` with RFC 7807 problem details.
    Problem,
    /// `status` with `text` as JSON.
    Text,
    /// `status` with a JSON array of `huge_bytes` bytes.
    Huge,
    /// `status` with the bytes of `file`.
    File,
}

impl Default for Fault {
    fn default() -> Self {
        Self {
            method: None,
            path: "/**".to_owned(),
            vpg: None,
            skip: 0,
            times: 1,
            delay: Duration::ZERO,
            effect: false,
            hold: false,
            outcome: Outcome::Message,
            status: 503,
            retry_after: None,
            text: "The service is unavailable.".to_owned(),
            huge_bytes: 256 * 1024 * 1024,
            file: PathBuf::new(),
            headers: BTreeMap::new(),
        }
    }
}

impl Fault {
    /// A fault for these requests: method (empty: any) and path pattern.
    pub fn on(method: &str, path: &str) -> Self {
        Self {
            method: Some(method.to_owned()).filter(|method| !method.is_empty()),
            path: path.to_owned(),
            ..Self::default()
        }
    }

    /// The connection is cut before the request is carried out.
    pub fn cut_before(method: &str, path: &str) -> Self {
        Self {
            outcome: Outcome::Cut,
            ..Self::on(method, path)
        }
    }

    /// The request is carried out, but its answer is lost.
    pub fn cut_after(method: &str, path: &str) -> Self {
        Self {
            effect: true,
            ..Self::cut_before(method, path)
        }
    }

    /// The request is held before it is carried out.
    pub fn hold(method: &str, path: &str) -> Self {
        Self {
            hold: true,
            outcome: Outcome::Answer,
            ..Self::on(method, path)
        }
    }

    /// The request is carried out, and its answer is held.
    pub fn hold_answer(method: &str, path: &str) -> Self {
        Self {
            effect: true,
            ..Self::hold(method, path)
        }
    }

    /// The request gets another answer and is not carried out.
    pub fn answer(method: &str, path: &str, status: u16, outcome: Outcome) -> Self {
        Self {
            status,
            outcome,
            ..Self::on(method, path)
        }
    }

    fn matches(&self, method: &str, path: &str, vpg: Option<(&str, &str)>) -> bool {
        let by_method = self
            .method
            .as_deref()
            .is_none_or(|own| own.eq_ignore_ascii_case(method));
        let by_vpg = self.vpg.as_deref().is_none_or(|own| {
            vpg.is_some_and(|(name, id)| own == name || own.eq_ignore_ascii_case(id))
        });
        by_method && by_vpg && path_matches(&self.path, path)
    }
}

fn path_matches(pattern: &str, path: &str) -> bool {
    let mut wanted = pattern.trim_matches('/').split('/').peekable();
    let mut given = path.trim_matches('/').split('/');
    loop {
        match (wanted.next(), given.next()) {
            (Some("**"), _) if wanted.peek().is_none() => return true,
            (Some("*"), Some(_)) => {}
            (Some(want), Some(got)) if want.eq_ignore_ascii_case(got) => {}
            (None, None) => return true,
            _ => return false,
        }
    }
}

/// The rules in force, each with its count.
#[derive(Default)]
pub(crate) struct Faults {
    rules: Vec<(Fault, u32)>,
}

impl Faults {
    pub(crate) fn new(rules: Vec<Fault>) -> Self {
        let mut faults = Self::default();
        rules.into_iter().for_each(|rule| faults.add(rule));
        faults
    }

    pub(crate) fn add(&mut self, rule: Fault) {
        self.rules.push((rule, 0));
    }

    pub(crate) fn clear(&mut self) {
        self.rules.clear();
    }

    pub(crate) fn list(&self) -> Vec<Fault> {
        self.rules.iter().map(|(rule, _)| rule.clone()).collect()
    }

    /// The first fault that befalls this request. Every rule that matches counts it.
    pub(crate) fn befall(
        &mut self,
        method: &str,
        path: &str,
        vpg: Option<(&str, &str)>,
    ) -> Option<Fault> {
        let mut found = None;
        for (rule, seen) in &mut self.rules {
            if !rule.matches(method, path, vpg) {
                continue;
            }
            *seen = seen.saturating_add(1);
            let after_skip = seen.saturating_sub(rule.skip);
            let met = after_skip > 0 && (rule.times == 0 || after_skip <= rule.times);
            if met && found.is_none() {
                found = Some(rule.clone());
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        assert!(path_matches(
            "/v1/vpgs/*/checkpoints",
            "/V1/vpgs/a/Checkpoints"
        ));
        assert!(!path_matches(
            "/v1/vpgs/*/checkpoints",
            "/v1/vpgs/a/checkpoints/stats"
        ));
        assert!(path_matches("/v1/**", "/v1/a/b"));
        assert!(path_matches("/**", "/"));
        assert!(!path_matches("/v1/vms", "/v1/vpgs"));
    }

    #[test]
    fn the_nth_and_the_next() {
        let mut faults = Faults::new(vec![Fault {
            skip: 1,
            times: 2,
            ..Fault::on("GET", "/v1/vms")
        }]);
        let met: Vec<bool> = (0..5)
            .map(|_| faults.befall("GET", "/v1/vms", None).is_some())
            .collect();
        assert_eq!(met, [false, true, true, false, false]);
        assert!(faults.befall("POST", "/v1/vms", None).is_none());
    }

    #[test]
    fn one_vpg() {
        let mut faults = Faults::new(vec![Fault {
            vpg: Some("db".to_owned()),
            times: 0,
            ..Fault::on("", "/v1/vpgs/*/**")
        }]);
        assert!(
            faults
                .befall("GET", "/v1/vpgs/ID/x", Some(("web", "id2")))
                .is_none()
        );
        assert!(
            faults
                .befall("GET", "/v1/vpgs/ID/x", Some(("db", "id")))
                .is_some()
        );
    }
}
