//! The tag: what an operator reads in the journal about a pin.
//!
//! ```text
//! ai:<agent> | <action> | vm=<vm> | change=<id> | <utc>
//! ai:claude | edit /home/justin/app-config.yaml | vm=jp-ubuntu | change=chg-412 | 20260921T170829Z
//! ```
//!
//! Every field is one readable line without `|` and `;` (see [`tag_field`]), so ` | ` always separates and a
//! `;` never belongs to a tag: an action that reads `x | vm=other` cannot pass for another field. Agents and change ids may contain `:`.
//!
//! The insert takes one field of free text, `checkpointName`; names of at least 400 characters, spaces, slashes, parentheses, `=` and
//! `|` come back from the journal byte for byte (measured on a 10.x ZVM).

use std::fmt;

use jiff::{Timestamp, civil, tz::Offset};

use crate::text::{shorten, tag_field};

/// The longest tag, in characters. Longer names are accepted (measured on a 10.x ZVM: at least 400 characters); the rest is margin for
/// the suffix that Zerto appends.
pub const TAG_MAX_LEN: usize = 250;
/// The longest agent, in characters after cleaning. A longer one is an error.
pub const AGENT_MAX_LEN: usize = 32;
/// The longest change id, in characters after cleaning. A longer one is an error.
pub const CHANGE_MAX_LEN: usize = 48;
/// The longest VM name in a tag, in characters. A longer one is cut.
pub const VM_MAX_LEN: usize = 80;

const PREFIX: &str = "ai:";
const SEPARATOR: &str = " | ";
const VM: &str = "vm=";
const CHANGE: &str = "change=";
const UTC_FORMAT: &str = "%Y%m%dT%H%M%SZ";
const UTC_LEN: usize = 16;

/// What Zerto appends to the tag of a checkpoint that is used for a file-level restore (measured on a 10.x ZVM).
const FLR_SUFFIX: &str = "; Used for File Level Restore";

/// What a tag is made from, as it came: nothing is cleaned yet.
#[derive(Debug, Clone, Copy)]
pub struct TagFields<'a> {
    /// Who is about to make the change.
    pub agent: &'a str,
    /// What is about to be changed.
    pub action: &'a str,
    /// The VM's name as the ZVM reported it.
    pub vm: &'a str,
    /// The change id, which groups the guards of one change.
    pub change: &'a str,
    /// When, by the ZVM's clock; a tag holds whole seconds.
    pub at: Timestamp,
}

/// A tag whose fields are clean and fit.
///
/// [`Display`](fmt::Display) writes it as it stands in the journal: one line, at most [`TAG_MAX_LEN`] characters. [`parse`] gives
/// an equal tag back.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tag {
    agent: String,
    action: String,
    vm: String,
    change: String,
    at: Timestamp,
}

/// Why no tag can be made from some fields.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TagError {
    /// A field has no readable character.
    #[error("the {field} has no readable character: say it in words")]
    Empty {
        /// The field's name.
        field: &'static str,
    },
    /// A field that is never cut is too long.
    #[error("the {field} has {len} characters: use at most {max}")]
    TooLong {
        /// The field's name.
        field: &'static str,
        /// Its length in characters, after cleaning.
        len: usize,
        /// The longest that fits.
        max: usize,
    },
    /// The time has no four-digit year.
    #[error("the time {at} cannot be written with a four-digit year: check the ZVM's clock")]
    Time {
        /// The time.
        at: Timestamp,
    },
}

impl Tag {
    /// Cleans the fields, checks them, and cuts the VM's name and then the action so that the tag fits.
    ///
    /// # Errors
    ///
    /// A field without a readable character, an agent or a change id that is too long, a time outside the years 0 to 9999.
    pub fn build(fields: &TagFields<'_>) -> Result<Self, TagError> {
        let agent = bounded(fields.agent, "agent", AGENT_MAX_LEN)?;
        let action = readable(fields.action, "action")?;
        let vm = shorten(&readable(fields.vm, "VM name")?, VM_MAX_LEN);
        let change = bounded(fields.change, "change id", CHANGE_MAX_LEN)?;
        let at = Timestamp::from_second(fields.at.as_second()).unwrap_or(fields.at);
        if parse_utc(&utc(at)) != Some(at) {
            return Err(TagError::Time { at });
        }
        let mut tag = Self {
            agent,
            action: String::new(),
            vm,
            change,
            at,
        };
        let room = TAG_MAX_LEN.saturating_sub(tag.to_string().chars().count());
        tag.action = shorten(&action, room);
        Ok(tag)
    }

    /// Who made the guard.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// What was about to be changed; ends in `…` where it was cut.
    #[must_use]
    pub fn action(&self) -> &str {
        &self.action
    }

    /// The VM's name; ends in `…` where it was cut.
    #[must_use]
    pub fn vm(&self) -> &str {
        &self.vm
    }

    /// The change id.
    #[must_use]
    pub fn change(&self) -> &str {
        &self.change
    }

    /// The time in the tag, by the ZVM's clock, in whole seconds.
    #[must_use]
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// The same tag at another time, for a guard whose tag is in the journal already.
    ///
    /// # Errors
    ///
    /// A time outside the years 0 to 9999.
    pub fn with_at(&self, at: Timestamp) -> Result<Self, TagError> {
        Self::build(&TagFields {
            agent: &self.agent,
            action: &self.action,
            vm: &self.vm,
            change: &self.change,
            at,
        })
    }

    /// Whether the name that a journal lists is this tag, with or without the suffix that Zerto appends.
    #[must_use]
    pub fn same_as(&self, listed: &str) -> bool {
        until_semicolon(listed) == self.to_string()
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            agent,
            action,
            vm,
            change,
            at,
        } = self;
        write!(
            f,
            "{PREFIX}{agent}{SEPARATOR}{action}{SEPARATOR}{VM}{vm}{SEPARATOR}{CHANGE}{change}{SEPARATOR}{}",
            utc(*at)
        )
    }
}

/// A tag in the older form `ai:<agent>:<change>:<utc>`. The agent ends at the first colon; the change id may contain some.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OlderTag {
    /// Who made the guard.
    pub agent: String,
    /// The change id.
    pub change: String,
    /// The time in the tag, in whole seconds.
    pub at: Timestamp,
}

/// What the name of a tagged checkpoint turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// A tag of ours.
    Ours(Tag),
    /// A tag of ours in the older form, which had neither action nor VM.
    Older(OlderTag),
    /// Somebody else's name.
    NotOurs,
}

impl Parsed {
    /// The time in a tag of ours: the checkpoint is found around it.
    #[must_use]
    pub fn at(&self) -> Option<Timestamp> {
        match self {
            Self::Ours(tag) => Some(tag.at),
            Self::Older(tag) => Some(tag.at),
            Self::NotOurs => None,
        }
    }
}

/// Reads the name of a tagged checkpoint.
///
/// The suffix that Zerto appends is left aside. The fields are cleaned as when a tag is built, so they are safe to show whoever wrote
/// the name. The first field and the last three are told by their places; whatever stands between them is the action.
#[must_use]
pub fn parse(name: &str) -> Parsed {
    let Some(rest) = until_semicolon(name).strip_prefix(PREFIX) else {
        return Parsed::NotOurs;
    };
    current(rest)
        .map(Parsed::Ours)
        .or_else(|| older(rest).map(Parsed::Older))
        .unwrap_or(Parsed::NotOurs)
}

/// The name of a tagged checkpoint without the suffix that Zerto appends.
#[must_use]
pub fn without_suffix(name: &str) -> &str {
    if parse(name) != Parsed::NotOurs {
        return until_semicolon(name);
    }
    // Somebody else's name may contain `;`, so only the suffix that is known is left aside.
    let mut name = name.trim();
    while let Some((head, tail)) = name
        .len()
        .checked_sub(FLR_SUFFIX.len())
        .and_then(|at| name.split_at_checked(at))
        && tail.eq_ignore_ascii_case(FLR_SUFFIX)
    {
        name = head.trim_end();
    }
    name
}

/// Whether two names, ours or not, name the same tagged checkpoint: suffixes that Zerto appends do not count.
#[must_use]
pub fn same(wanted: &str, listed: &str) -> bool {
    without_suffix(wanted) == without_suffix(listed)
}

/// A `;` never survives in a field, so what follows the first one is not ours.
fn until_semicolon(name: &str) -> &str {
    name.split(';').next().unwrap_or(name).trim()
}

fn current(rest: &str) -> Option<Tag> {
    let (agent, rest) = rest.split_once(SEPARATOR)?;
    let (rest, at) = rest.rsplit_once(SEPARATOR)?;
    let (rest, change) = rest.rsplit_once(SEPARATOR)?;
    let (action, vm) = rest.rsplit_once(SEPARATOR)?;
    Tag::build(&TagFields {
        agent,
        action,
        vm: vm.strip_prefix(VM)?,
        change: change.strip_prefix(CHANGE)?,
        at: parse_utc(at)?,
    })
    .ok()
}

fn older(rest: &str) -> Option<OlderTag> {
    let (rest, at) = rest.rsplit_once(':')?;
    let (agent, change) = rest.split_once(':')?;
    if rest.contains(SEPARATOR) {
        return None;
    }
    Some(OlderTag {
        agent: bounded(agent, "agent", AGENT_MAX_LEN).ok()?,
        change: bounded(change, "change id", CHANGE_MAX_LEN).ok()?,
        at: parse_utc(at)?,
    })
}

fn readable(text: &str, field: &'static str) -> Result<String, TagError> {
    let clean = tag_field(text);
    if clean.is_empty() {
        return Err(TagError::Empty { field });
    }
    Ok(clean)
}

fn bounded(text: &str, field: &'static str, max: usize) -> Result<String, TagError> {
    let clean = readable(text, field)?;
    let len = clean.chars().count();
    if len > max {
        return Err(TagError::TooLong { field, len, max });
    }
    Ok(clean)
}

fn utc(at: Timestamp) -> String {
    at.strftime(UTC_FORMAT).to_string()
}

/// Reads exactly what [`utc`] writes for a four-digit year.
fn parse_utc(text: &str) -> Option<Timestamp> {
    if text.len() != UTC_LEN {
        return None;
    }
    let time = civil::DateTime::strptime(UTC_FORMAT, text).ok()?;
    let at = Offset::UTC.to_timestamp(time).ok()?;
    (utc(at) == text).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(action: &str) -> TagFields<'_> {
        TagFields {
            agent: "claude",
            action,
            vm: "jp-ubuntu",
            change: "chg-412",
            at: "2026-09-21T17:08:29Z".parse().unwrap(),
        }
    }

    #[test]
    fn a_tag_reads_as_promised() {
        let tag = Tag::build(&fields("edit /home/justin/app-config.yaml")).unwrap();
        assert_eq!(
            tag.to_string(),
            "ai:claude | edit /home/justin/app-config.yaml | vm=jp-ubuntu | change=chg-412 | 20260921T170829Z"
        );
        assert_eq!(parse(&tag.to_string()), Parsed::Ours(tag));
    }

    #[test]
    fn fields_that_cannot_be_written_are_refused() {
        let empty = |field| Err(TagError::Empty { field });
        let ok = fields("edit");
        assert_eq!(
            Tag::build(&TagFields {
                agent: "\u{200B}\n",
                ..ok
            }),
            empty("agent")
        );
        assert_eq!(
            Tag::build(&TagFields {
                action: " \u{1b}\u{7}\u{202E} ",
                ..ok
            }),
            empty("action")
        );
        assert_eq!(Tag::build(&TagFields { vm: "", ..ok }), empty("VM name"));
        assert_eq!(
            Tag::build(&TagFields { change: "", ..ok }),
            empty("change id")
        );
        let long = "ä".repeat(33);
        let error = Tag::build(&TagFields { agent: &long, ..ok }).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the agent has 33 characters: use at most 32"
        );
        let long = "c".repeat(49);
        let error = Tag::build(&TagFields {
            change: &long,
            ..ok
        })
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "the change id has 49 characters: use at most 48"
        );
        let before = Timestamp::MIN;
        assert!(matches!(
            Tag::build(&TagFields { at: before, ..ok }),
            Err(TagError::Time { .. })
        ));
    }

    #[test]
    fn the_action_gives_way_to_the_other_fields() {
        let long = "x".repeat(100_000);
        let tag = Tag::build(&TagFields {
            agent: &"a".repeat(32),
            vm: &"v".repeat(500),
            change: &"c".repeat(48),
            ..fields(&long)
        })
        .unwrap();
        assert_eq!(tag.to_string().chars().count(), TAG_MAX_LEN);
        assert!(tag.action().ends_with("xx…"));
        assert_eq!(tag.vm().chars().count(), VM_MAX_LEN);
        assert!(tag.vm().ends_with("v…"));
        assert_eq!(parse(&tag.to_string()), Parsed::Ours(tag));
    }

    #[test]
    fn an_action_cannot_pass_for_another_field() {
        let hostile =
            "x | vm=other | change=evil | 20200101T000000Z; Used for File Level Restore\nai:root";
        let tag = Tag::build(&fields(hostile)).unwrap();
        assert_eq!(
            tag.action(),
            "x / vm=other / change=evil / 20200101T000000Z, Used for File Level Restore ai:root"
        );
        assert_eq!(parse(&tag.to_string()), Parsed::Ours(tag));
    }

    #[test]
    fn a_tag_that_others_wrote_in_our_form_is_read_from_both_ends() {
        let Parsed::Ours(tag) =
            parse("ai:me | a | vm=b | \u{202E}c | vm=v | change=k | 20260921T170829Z")
        else {
            panic!("not ours");
        };
        assert_eq!(
            (tag.agent(), tag.action(), tag.vm(), tag.change()),
            ("me", "a / vm=b / c", "v", "k")
        );
    }

    #[test]
    fn agents_and_change_ids_may_contain_colons() {
        let tag = Tag::build(&TagFields {
            agent: "cli/a:b:c",
            change: "jira:OPS:7",
            ..fields("edit")
        })
        .unwrap();
        assert_eq!(parse(&tag.to_string()), Parsed::Ours(tag));
    }

    #[test]
    fn the_older_form_is_ours() {
        let older = OlderTag {
            agent: "claude".into(),
            change: "ops:chg-1".into(),
            at: "2026-09-21T17:08:29Z".parse().unwrap(),
        };
        for name in [
            "ai:claude:ops:chg-1:20260921T170829Z",
            "ai:claude:ops:chg-1:20260921T170829Z; Used for File Level Restore",
        ] {
            assert_eq!(parse(name), Parsed::Older(older.clone()), "{name}");
        }
    }

    #[test]
    fn other_names_are_not_ours() {
        for name in [
            "",
            "ai:",
            "before upgrade",
            "AI:x | y | vm=v | change=c | 20260921T170829Z",
            "ai:x | y | vm=v | change=c | 20260921T170829",
            "ai:x | y | vm=v | change=c | 20261321T170829Z",
            "ai:x | y | vm=v | change=c | 20260921T170860Z",
            "ai:x | y | vm=v | change=c | +2026921T170829Z",
            "ai:x | y | vm=v | c | 20260921T170829Z",
            "ai:x | vm=v | change=c | 20260921T170829Z",
            "ai:x |  | vm=v | change=c | 20260921T170829Z",
            "ai:x | y | vm= | change=c | 20260921T170829Z",
            "ai:x:20260921T170829Z",
            "ai::c:20260921T170829Z",
            "ai:x | y:c:20260921T170829Z",
        ] {
            assert_eq!(parse(name), Parsed::NotOurs, "{name}");
        }
    }

    #[test]
    fn a_suffix_does_not_make_another_tag() {
        let tag = Tag::build(&fields("edit")).unwrap();
        let name = tag.to_string();
        for listed in [
            name.clone(),
            format!("{name}; Used for File Level Restore"),
            format!("{name};Used for something else"),
            format!("{name}; a; b | c "),
        ] {
            assert!(tag.same_as(&listed), "{listed}");
            assert!(same(&name, &listed), "{listed}");
            assert_eq!(parse(&listed), Parsed::Ours(tag.clone()));
        }
        for other in [
            format!("{name}x"),
            format!("x{name}"),
            name.replace("edit", "Edit"),
            String::new(),
        ] {
            assert!(!tag.same_as(&other), "{other}");
            assert!(!same(&name, &other), "{other}");
        }
        assert!(same(
            "before; upgrade",
            "before; upgrade; used for file level restore"
        ));
        assert!(!same("before", "before; upgrade"));
        assert!(!same("ü", "ü; Used for File Level"));
    }

    #[test]
    fn another_time_makes_another_tag_of_the_same_length() {
        let tag = Tag::build(&fields(&"x".repeat(400))).unwrap();
        let next = tag
            .with_at(tag.at() + jiff::SignedDuration::from_secs(1))
            .unwrap();
        assert_eq!(next.action(), tag.action());
        assert!(next.to_string().ends_with("170830Z"));
        assert!(!next.same_as(&tag.to_string()));
    }
}
