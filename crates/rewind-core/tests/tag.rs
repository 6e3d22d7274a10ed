#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]
//! The rules of the tag over arbitrary Unicode.

use jiff::Timestamp;
use proptest::prelude::*;
use rewind_core::{
    tag::{self, AGENT_MAX_LEN, CHANGE_MAX_LEN, Parsed, TAG_MAX_LEN, Tag, TagError, TagFields},
    text::{shorten, tag_field},
};

/// Text in which the characters that matter to a tag are frequent.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => any::<String>(),
        1 => Just(" | ".to_owned()),
        1 => Just("|".to_owned()),
        1 => Just("; Used for File Level Restore".to_owned()),
        1 => Just("vm=x".to_owned()),
        1 => Just("change=y".to_owned()),
        1 => Just("20200101T000000Z".to_owned()),
        1 => Just("\r\n\u{202E}\u{200B}\u{E0041}\u{FE0F}".to_owned()),
        1 => Just("e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}".to_owned()),
        1 => "[a-z :]{0,40}",
    ];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

fn timestamps() -> impl Strategy<Value = Timestamp> {
    (
        Timestamp::MIN.as_second()..=Timestamp::MAX.as_second(),
        0..1_000_000_000i32,
    )
        .prop_filter_map("in range", |(s, ns)| Timestamp::new(s, ns).ok())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_built_tag_is_one_bounded_visible_line_and_reads_back(
        agent in hostile(), action in hostile(), vm in hostile(), change in hostile(), at in timestamps(),
    ) {
        let fields = TagFields { agent: &agent, action: &action, vm: &vm, change: &change, at };
        match Tag::build(&fields) {
            Ok(tag) => {
                let text = tag.to_string();
                prop_assert!(text.chars().count() <= TAG_MAX_LEN);
                prop_assert_eq!(text.lines().count(), 1);
                prop_assert!(!text.chars().any(|c| c.is_control() || is_bidi_or_invisible(c)), "{:?}", text);
                prop_assert_eq!(text.matches(" | ").count(), 4);
                prop_assert!(!text.contains(';'));

                prop_assert_eq!(tag.agent(), tag_field(&agent));
                prop_assert_eq!(tag.vm(), shorten(&tag_field(&vm), tag::VM_MAX_LEN));
                prop_assert_eq!(tag.change(), tag_field(&change));
                prop_assert_eq!(tag.at().as_second(), at.as_second());
                let clean = tag_field(&action);
                match tag.action().strip_suffix('…') {
                    Some(head) if tag.action() != clean => prop_assert!(clean.starts_with(head)),
                    _ => prop_assert_eq!(tag.action(), clean),
                }

                prop_assert_eq!(tag::parse(&text), Parsed::Ours(tag.clone()));
                let suffixed = format!("{text}; Used for File Level Restore");
                prop_assert!(tag.same_as(&text) && tag.same_as(&suffixed));
                prop_assert!(tag::same(&suffixed, &text));
                prop_assert_eq!(tag::parse(&suffixed), Parsed::Ours(tag));
            }
            Err(TagError::Empty { .. }) => {
                prop_assert!([&agent, &action, &vm, &change].iter().any(|field| tag_field(field).is_empty()));
            }
            Err(TagError::TooLong { .. }) => {
                prop_assert!(
                    tag_field(&agent).chars().count() > AGENT_MAX_LEN
                        || tag_field(&change).chars().count() > CHANGE_MAX_LEN
                );
            }
            Err(_) => prop_assert!(at < "0000-01-01T00:00:00Z".parse().unwrap()),
        }
    }

    #[test]
    fn any_name_can_be_read(name in hostile(), other in hostile()) {
        let _ = tag::parse(&name);
        let bare = tag::without_suffix(&name);
        prop_assert!(name.contains(bare));
        prop_assert!(tag::same(&name, &name));
        prop_assert_eq!(tag::same(&name, &other), tag::same(&other, &name));
    }
}

fn is_bidi_or_invisible(c: char) -> bool {
    matches!(c, '\u{61C}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}'
        | '\u{FE00}'..='\u{FE0F}' | '\u{E0000}'..='\u{E0FFF}' | '\u{AD}')
}
