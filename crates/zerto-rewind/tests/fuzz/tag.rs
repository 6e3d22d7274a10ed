//! The tag: what is built is one bounded line that reads back; any name can be read.
use jiff::Timestamp;
use rewind_core::tag::{self, Parsed, TAG_MAX_LEN, Tag, TagError, TagFields};

use crate::{driver::Target, text::is_readable};

const WORDS: &[&str] = &[
    " | ",
    "ai:",
    "vm=",
    "change=",
    "; Used for File Level Restore",
    "20260921T170829Z",
    "…",
    "ai:claude:chg-1:20260921T170829Z",
];

/// Lines: agent, VM, change; what is left is the action.
#[test]
fn a_tag_that_is_built_reads_back() {
    let target = Target {
        name: "tag_build",
        words: WORDS,
        memory: (64 << 10, 64),
    };
    target.run(|input| {
        let text = String::from_utf8_lossy(input);
        let mut lines = text.splitn(4, '\n');
        let mut next = || lines.next().unwrap_or_default();
        let fields = TagFields {
            agent: next(),
            vm: next(),
            change: next(),
            action: next(),
            at: Timestamp::from_second(1_790_000_000 + input.len() as i64).unwrap(),
        };
        match Tag::build(&fields) {
            Ok(tag) => {
                let built = tag.to_string();
                assert!(
                    built.chars().count() <= TAG_MAX_LEN && is_readable(&built),
                    "{built:?}"
                );
                assert_eq!(built.matches(" | ").count(), 4);
                assert_eq!(tag::parse(&built), Parsed::Ours(tag.clone()));
                let used = format!("{built}; Used for File Level Restore");
                assert!(tag.same_as(&built) && tag.same_as(&used) && tag::same(&used, &built));
                (0, tag.action().ends_with('…'), tag.vm().ends_with('…'))
            }
            Err(TagError::Empty { .. }) => (1, false, false),
            Err(_) => (2, false, false),
        }
    });
}

#[test]
fn any_name_can_be_read_as_a_tag() {
    let target = Target {
        name: "tag_parse",
        words: WORDS,
        memory: (64 << 10, 64),
    };
    target.run(|input| {
        let name = String::from_utf8_lossy(input);
        let bare = tag::without_suffix(&name);
        assert!(name.contains(bare) && tag::same(&name, &name));
        match tag::parse(&name) {
            Parsed::Ours(tag) => {
                // What counts as ours could have been written by us.
                assert_eq!(tag::parse(&tag.to_string()), Parsed::Ours(tag.clone()));
                assert!(is_readable(&tag.to_string()), "{tag:?}");
                (0, bare == name)
            }
            Parsed::Older(older) => {
                assert!(!older.agent.is_empty());
                (1, bare == name)
            }
            Parsed::NotOurs => (2, bare == name),
        }
    });
}
