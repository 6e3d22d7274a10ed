//! Tables that map what a call says to VMs.

use std::{collections::BTreeMap, net::Ipv4Addr};

use aho_corasick::{AhoCorasick, MatchKind};

/// A table in the order of its keys: what a call says → VMs.
pub(super) type Rows = BTreeMap<String, Vec<String>>;

/// Maps an argument to VMs.
#[derive(Debug)]
pub(super) struct Table(Rows);

impl Table {
    pub(super) fn new(rows: Rows) -> Self {
        Self(rows)
    }

    pub(super) fn get(&self, key: &str) -> Option<&[String]> {
        self.0.get(key).map(Vec::as_slice)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Finds hosts in a text.
///
/// A host is mentioned where its name stands as a whole word, in any letter case: letters, digits, `_` and `-` are part of a word. Its
/// first label alone also stands for it when a domain follows (`app01` in `app01.example.com`); a longer host of the table that
/// stands there wins.
#[derive(Debug)]
pub(super) struct Hosts {
    rows: Vec<(String, Vec<String>)>,
    searcher: AhoCorasick,
}

impl Hosts {
    pub(super) fn new(rows: Rows) -> Result<Self, String> {
        let rows: Vec<_> = rows.into_iter().collect();
        let searcher = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .build(rows.iter().map(|(host, _)| host))
            .map_err(|error| error.to_string())?;
        Ok(Self { rows, searcher })
    }

    /// Whether every host of the other table is in this one, too.
    pub(super) fn include(&self, others: &Self) -> bool {
        others.rows.iter().all(|(other, _)| {
            self.rows
                .iter()
                .any(|(host, _)| host.eq_ignore_ascii_case(other))
        })
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The VMs of the hosts that the text mentions, in the order of mention; some may come several times.
    pub(super) fn mentioned(&self, text: &str) -> Vec<&str> {
        let mut found: Vec<_> = self
            .searcher
            .find_overlapping_iter(text)
            .filter(|found| is_whole(text, found.start(), found.end()))
            .collect();
        found.sort_unstable_by_key(|found| (found.start(), std::cmp::Reverse(found.end())));
        let mut end = 0;
        let mut vms = Vec::new();
        for host in found {
            // What lies within a longer host is not a mention of its own.
            if host.end() <= end {
                continue;
            }
            end = host.end();
            if let Some((_, mapped)) = self.rows.get(host.pattern().as_usize()) {
                vms.extend(mapped.iter().map(String::as_str));
            }
        }
        vms
    }
}

/// Whether a key can be found as a whole word.
pub(super) fn is_host(key: &str) -> bool {
    !key.is_empty()
        && key.chars().all(|c| is_word(c) || c == '.' || c == ':')
        && key.starts_with(|c| is_word(c) || c == ':')
        && key.ends_with(|c| is_word(c) || c == ':')
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

fn is_whole(text: &str, start: usize, end: usize) -> bool {
    let (Some(before), Some(host), Some(after)) =
        (text.get(..start), text.get(start..end), text.get(end..))
    else {
        return false;
    };
    let mut before = before.chars().rev();
    let mut after = after.chars();
    let (last, last_but_one) = (before.next(), before.next());
    let (first, second) = (after.next(), after.next());
    let is_v4 = host.parse::<Ipv4Addr>().is_ok();
    let is_v6 = host.contains(':');
    let begins = match last {
        Some('.') => !last_but_one.is_some_and(is_word),
        Some(':') if is_v6 => !last_but_one.is_some_and(|c| c.is_ascii_hexdigit() || c == ':'),
        Some(c) => !is_word(c),
        None => true,
    };
    let ends = match first {
        Some('.') if is_v4 => !second.is_some_and(|c| c.is_ascii_digit()),
        Some(':') if is_v6 => !second.is_some_and(|c| c.is_ascii_hexdigit() || c == ':'),
        Some(c) => !is_word(c),
        None => true,
    };
    begins && ends
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(names: &[&str]) -> Hosts {
        Hosts::new(
            names
                .iter()
                .map(|name| ((*name).to_owned(), vec![format!("vm {name}")]))
                .collect(),
        )
        .unwrap()
    }

    fn mentions(host: &str, text: &str) -> bool {
        !hosts(&[host]).mentioned(text).is_empty()
    }

    #[test]
    fn whole_words_are_mentions() {
        for text in [
            "app01",
            "ssh app01",
            "ssh root@app01 'rm x'",
            "scp x app01:/etc",
            "--limit=app01,web",
            "http://app01/",
            "(APP01)",
            "\"app01\"",
            "app01;ls",
            "app01\n",
            "ping app01.",
            "ssh app01.example.com",
            "\\\\app01\\c$",
            "é app01",
            "./app01",
        ] {
            assert!(mentions("app01", text), "{text}");
        }
        for text in [
            "",
            "app011",
            "myapp01",
            "app01-old",
            "old-app01",
            "app01_old",
            "x.app01",
            "äapp01",
            "app01é",
            "app0 1",
        ] {
            assert!(!mentions("app01", text), "{text}");
        }
    }

    #[test]
    fn addresses_are_not_found_in_longer_ones() {
        for text in [
            "ssh 10.0.0.5",
            "10.0.0.5:22",
            "10.0.0.5.",
            "10.0.0.5/24",
            "[10.0.0.5]",
        ] {
            assert!(mentions("10.0.0.5", text), "{text}");
        }
        for text in [
            "10.0.0.51",
            "110.0.0.5",
            "10.0.0.5.6",
            "1.10.0.0.5",
            "10.0.0.50.0.0.5",
        ] {
            assert!(!mentions("10.0.0.5", text), "{text}");
        }
        assert!(mentions("fe80::1", "ssh [fe80::1]:22") && mentions("fe80::1", "fe80::1%eth0"));
        assert!(
            !mentions("fe80::1", "fe80::12")
                && !mentions("fe80::1", "fe80::1:2")
                && !mentions("fe80::1", "a:fe80::1")
        );
        assert!(mentions("::1", "ping ::1") && !mentions("::1", "fe80::1"));
    }

    #[test]
    fn the_longest_host_wins_and_order_is_kept() {
        let hosts = hosts(&["app01", "app01.example.com", "web"]);
        assert_eq!(
            hosts.mentioned("web then app01.example.com"),
            ["vm web", "vm app01.example.com"]
        );
        assert_eq!(hosts.mentioned("app01.example.community"), ["vm app01"]);
        assert_eq!(
            hosts.mentioned("app01 web app01"),
            ["vm app01", "vm web", "vm app01"]
        );
        assert!(
            super::Hosts::new(Rows::new())
                .unwrap()
                .mentioned("anything")
                .is_empty()
        );
    }

    #[test]
    fn keys_that_no_word_can_be_are_told() {
        for key in ["app01", "10.0.0.5", "fe80::1", "::1", "a_b-c.d", "größe"] {
            assert!(is_host(key), "{key}");
        }
        for key in ["", "app 01", "app01.", ".x", "user@host", "a/b"] {
            assert!(!is_host(key), "{key}");
        }
    }
}
