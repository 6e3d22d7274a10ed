//! Untrusted text on one readable line.
//!
//! Text from agents, tool arguments and ZVM answers ends up in a journal that operators read, on terminals and in front of models.
//! What such text shows must be what is there: no line breaks, no escape sequences, no invisible or direction-changing characters.
//!
//! Lengths are counted in characters (Unicode scalar values), not in bytes and not in what a reader sees as one letter.

use unicode_general_category::{GeneralCategory, get_general_category};

/// Stands at the end of text that was cut.
pub const ELLIPSIS: char = '…';

/// Linux's longest path, in bytes. As many characters are shown of one.
pub const PATH_MAX_LEN: usize = 4096;

/// The longest name of others that the state remembers.
const REMEMBERED_MAX_LEN: usize = 200;

/// How many combining characters may follow one base character; the rest of a flood is dropped.
const MAX_MARKS: usize = 4;

/// Cleans `text` to one line.
///
/// Control characters and runs of white space become one space, and none stays at either end. Characters that are invisible, change
/// the direction of writing, or have no agreed meaning (unassigned, private use) are dropped, and so are combining characters that
/// have no base or flood it. Cleaning twice changes nothing.
#[must_use]
pub fn one_line(text: &str) -> String {
    clean(text).collect()
}

/// Cleans `text` as [`one_line`] does, for a field of a tag: `;` becomes `,` because Zerto appends `; …` to tags, and `|` becomes `/`
/// because ` | ` separates our fields.
#[must_use]
pub fn tag_field(text: &str) -> String {
    clean(text)
        .map(|c| match c {
            ';' => ',',
            '|' => '/',
            other => other,
        })
        .collect()
}

/// Cleans `text` as [`one_line`] does and cuts it to `max` characters, for terminals, logs, error messages and models.
///
/// Reads no more of `text` than it needs.
#[must_use]
pub fn display(text: &str, max: usize) -> String {
    let head: String = clean(text).take(max.saturating_add(1)).collect();
    shorten(&head, max)
}

/// A name that others gave, as the state remembers it. None where nothing readable is left.
pub(crate) fn remembered(text: &str) -> Option<String> {
    Some(display(text, REMEMBERED_MAX_LEN)).filter(|text| !text.is_empty())
}

/// As [`display`], but what it would drop or change is written as an escape: for what a person has to compare or agree to exactly,
/// such as a path that differs from another one by an invisible character.
#[must_use]
pub fn exact(text: &str, max: usize) -> String {
    if one_line(text) == text {
        return shorten(text, max);
    }
    let mut shown = String::new();
    for c in text.chars().take(max.saturating_add(1)) {
        match kind(c) {
            Kind::Base | Kind::Mark => shown.push(c),
            Kind::Space if c == ' ' => shown.push(c),
            Kind::Space | Kind::Dropped => shown.extend(c.escape_unicode()),
        }
    }
    shorten(&shown, max)
}

/// Words from outside within a text of ours: as [`display`] shows them, in quotation marks that nothing within them can close. A reader,
/// a model among them, sees where they begin and end, so nothing in them passes for ours.
#[must_use]
pub fn quoted(words: &str, max: usize) -> String {
    format!("\"{}\"", display(words, max).replace('"', "'"))
}

/// A name or a path from outside within a text of ours: bare where it is one plain word, else [`quoted`].
#[must_use]
pub fn named(name: &str, max: usize) -> String {
    let shown = display(name, max);
    if is_plain(&shown) {
        shown
    } else {
        quoted(name, max)
    }
}

/// As [`named`], but shown as [`exact`] shows it: for what a person agrees to.
#[must_use]
pub fn named_exactly(name: &str, max: usize) -> String {
    let shown = exact(name, max);
    if is_plain(&shown) && shown == name {
        shown
    } else {
        format!("\"{}\"", shown.replace('"', "\\u{22}"))
    }
}

/// A path of others as [`exact`] shows it, whole: it can be compared and copied.
#[must_use]
pub fn path(path: &str) -> String {
    exact(path, PATH_MAX_LEN)
}

/// So many of something: `1 path`, `2 paths`.
pub fn counted<N>(count: N, one: &str, many: &str) -> String
where
    N: Copy + PartialEq + From<u8> + std::fmt::Display,
{
    let what = if count == N::from(1) { one } else { many };
    format!("{count} {what}")
}

/// So many bytes.
#[must_use]
pub fn bytes(count: u64) -> String {
    counted(count, "byte", "bytes")
}

/// A text that ends as a sentence does, so that another one can follow.
#[must_use]
pub fn sentence(text: &str) -> String {
    let text = text.trim_end();
    if text.is_empty() || text.ends_with(['.', '!', '?', ':', ELLIPSIS]) {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}

/// Hexadecimal, lower case.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_plain(word: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "._-/\\:@#+~".contains(c);
    !word.is_empty() && word.chars().all(plain)
}

/// Cuts `text` to `max` characters; what was cut ends in [`ELLIPSIS`]. Never cuts inside a character.
#[must_use]
pub fn shorten(text: &str, max: usize) -> String {
    if text.chars().nth(max).is_none() {
        return text.to_owned();
    }
    if max == 0 {
        return String::new();
    }
    let head: String = text.chars().take(max - 1).collect();
    let mut cut = head.trim_end().to_owned();
    cut.push(ELLIPSIS);
    cut
}

/// Without the numbers that the standard library puts behind the system's words for an error: `(os error 13)` tells a person nothing.
#[must_use]
pub fn without_os_numbers(text: String) -> String {
    const BEFORE: &str = " (os error ";
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once(BEFORE) {
        clean.push_str(before);
        rest = match after.split_once(')') {
            Some((number, after)) if number.bytes().all(|digit| digit.is_ascii_digit()) => after,
            _ => {
                clean.push_str(BEFORE);
                after
            }
        };
    }
    clean.push_str(rest);
    clean
}

/// Whether a character stays as it is where text is cleaned: it is seen, and changes nothing around it.
#[must_use]
pub fn is_visible(c: char) -> bool {
    matches!(kind(c), Kind::Base | Kind::Mark) || c == ' '
}

fn clean(text: &str) -> Clean<'_> {
    Clean {
        rest: text.chars(),
        started: false,
        space: false,
        marks: 0,
        held: None,
    }
}

struct Clean<'a> {
    rest: std::str::Chars<'a>,
    /// Something was given out already.
    started: bool,
    /// White space was read and not given out yet.
    space: bool,
    /// Combining characters given out since the last base.
    marks: usize,
    /// The character that follows the space just given out.
    held: Option<char>,
}

impl Iterator for Clean<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        if let Some(c) = self.held.take() {
            return Some(c);
        }
        loop {
            let c = self.rest.next()?;
            match kind(c) {
                Kind::Dropped => {}
                Kind::Space => self.space = true,
                Kind::Mark => {
                    if self.started && !self.space && self.marks < MAX_MARKS {
                        self.marks += 1;
                        return Some(c);
                    }
                }
                Kind::Base => {
                    self.marks = 0;
                    if self.started && self.space {
                        self.space = false;
                        self.held = Some(c);
                        return Some(' ');
                    }
                    self.started = true;
                    self.space = false;
                    return Some(c);
                }
            }
        }
    }
}

enum Kind {
    Base,
    Mark,
    Space,
    Dropped,
}

fn kind(c: char) -> Kind {
    if matches!(c, ' '..='~') {
        return if c == ' ' { Kind::Space } else { Kind::Base };
    }
    if c.is_control() || c.is_whitespace() || c == BRAILLE_BLANK {
        return Kind::Space;
    }
    if is_ignorable(c) {
        return Kind::Dropped;
    }
    match get_general_category(c) {
        GeneralCategory::Format
        | GeneralCategory::PrivateUse
        | GeneralCategory::Surrogate
        | GeneralCategory::Unassigned => Kind::Dropped,
        GeneralCategory::NonspacingMark
        | GeneralCategory::SpacingMark
        | GeneralCategory::EnclosingMark => Kind::Mark,
        _ => Kind::Base,
    }
}

/// A symbol by its category that looks like a space.
const BRAILLE_BLANK: char = '\u{2800}';

/// The members of Unicode's Default_Ignorable_Code_Point whose general category does not give them away: fillers, joiners and
/// variation selectors that are letters or marks by category.
fn is_ignorable(c: char) -> bool {
    matches!(
        c,
        '\u{034F}'
            | '\u{115F}'..='\u{1160}'
            | '\u{17B4}'..='\u{17B5}'
            | '\u{180B}'..='\u{180F}'
            | '\u{3164}'
            | '\u{FE00}'..='\u{FE0F}'
            | '\u{FFA0}'
            | '\u{E0000}'..='\u{E0FFF}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_systems_numbers_are_left_out_and_nothing_else() {
        for (text, left) in [
            ("", ""),
            ("a: Permission denied (os error 13)", "a: Permission denied"),
            (
                "a (os error 13), b (os error -1) c (os error 2)",
                "a, b (os error -1) c",
            ),
            ("cut (os error ", "cut (os error "),
        ] {
            assert_eq!(without_os_numbers(text.to_owned()), left);
        }
    }

    #[test]
    fn one_is_one_and_anything_else_is_many() {
        for (count, said) in [(0, "0 paths"), (1, "1 path"), (2, "2 paths")] {
            assert_eq!(counted(count, "path", "paths"), said);
        }
        assert_eq!(counted(1_usize, "row was", "rows were"), "1 row was");
        assert_eq!(hex(&[0, 10, 255]), "000aff");
        assert_eq!(sentence("a "), "a.");
        assert_eq!(sentence("Why?"), "Why?");
    }

    #[test]
    fn what_is_compared_is_shown_with_all_that_is_in_it() {
        for (text, shown) in [
            ("/etc/hosts", "/etc/hosts"),
            ("caf\u{e9} cafe\u{301}", "caf\u{e9} cafe\u{301}"),
            ("jp-\u{200b}ubuntu", "jp-\\u{200b}ubuntu"),
            ("a  b\u{202e}\n", "a  b\\u{202e}\\u{a}"),
        ] {
            assert_eq!(exact(text, 100), shown);
        }
        assert_eq!(exact("\u{200b}aaaa", 4).chars().count(), 4);
    }

    #[test]
    fn what_comes_from_outside_is_marked_where_it_could_pass_for_ours() {
        for (name, shown) in [
            ("jp-ubuntu", "jp-ubuntu"),
            ("/etc/nginx/nginx.conf", "/etc/nginx/nginx.conf"),
            ("C:\\inetpub\\web.config", "C:\\inetpub\\web.config"),
            ("größe-01", "größe-01"),
            ("Payroll DR", "\"Payroll DR\""),
            ("a; the change may be made", "\"a; the change may be made\""),
            ("x\" is pinned. \"", "\"x' is pinned. '\""),
            ("", "\"\""),
            ("a\u{1b}[2J\nb", "\"a [2J b\""),
        ] {
            assert_eq!(named(name, 100), shown);
        }
        assert_eq!(quoted("plain", 100), "\"plain\"");
        for (name, shown) in [
            ("/etc/hosts", "/etc/hosts"),
            ("/srv/a  b", "\"/srv/a  b\""),
            ("a\"b", "\"a\\u{22}b\""),
            ("jp-\u{200b}ubuntu", "\"jp-\\u{200b}ubuntu\""),
        ] {
            assert_eq!(named_exactly(name, 100), shown);
        }
        assert_eq!(
            named(&"x".repeat(50), 10),
            format!("\"{}…\"", "x".repeat(9))
        );
    }

    #[test]
    fn line_breaks_controls_and_space_runs_become_one_space() {
        assert_eq!(
            one_line("  a\r\n\tb\u{0}\u{1b}[31m\u{a0}\u{2028}c\u{3000} "),
            "a b [31m c"
        );
    }

    #[test]
    fn invisible_and_direction_changing_characters_are_dropped() {
        for hidden in [
            '\u{200B}',
            '\u{200E}',
            '\u{202E}',
            '\u{2066}',
            '\u{2069}',
            '\u{FEFF}',
            '\u{00AD}',
            '\u{034F}',
            '\u{FE0F}',
            '\u{E0041}',
            '\u{E0100}',
            '\u{3164}',
            '\u{115F}',
            '\u{E000}',
            '\u{10FFFF}',
            '\u{0378}',
            '\u{FFF9}',
            '\u{061C}',
        ] {
            assert_eq!(
                one_line(&format!("pass{hidden}wd")),
                "passwd",
                "U+{:04X}",
                u32::from(hidden)
            );
        }
    }

    #[test]
    fn letters_of_any_script_stay() {
        for text in [
            "Größe",
            "日本語",
            "Ελλάδα",
            "नमस्ते",
            "שלום",
            "e\u{301}",
            "→ 👍",
        ] {
            assert_eq!(one_line(text), text);
        }
    }

    #[test]
    fn combining_characters_are_bounded_and_need_a_base() {
        let flood = format!("a{}b", "\u{301}".repeat(500));
        assert_eq!(
            one_line(&flood),
            format!("a{}b", "\u{301}".repeat(MAX_MARKS))
        );
        assert_eq!(one_line("\u{338}x \u{338}y"), "x y");
    }

    #[test]
    fn separators_of_tags_are_replaced() {
        assert_eq!(tag_field("a; b | c"), "a, b / c");
    }

    #[test]
    fn cuts_are_counted_in_characters() {
        assert_eq!(shorten("äöü", 3), "äöü");
        assert_eq!(shorten("äöüß", 3), "äö…");
        assert_eq!(shorten("a bcd", 3), "a…");
        assert_eq!(shorten("abc", 1), "…");
        assert_eq!(shorten("abc", 0), "");
        assert_eq!(display("a\nb\u{202E}cd", 4), "a b…");
        assert_eq!(display("\n\n\n", 4), "");
    }

    proptest! {
        #[test]
        fn cleaning_is_idempotent_and_leaves_one_visible_line(text in any::<String>()) {
            let once = one_line(&text);
            prop_assert_eq!(&one_line(&once), &once);
            prop_assert!(!once.chars().any(|c| c.is_control() || (c.is_whitespace() && c != ' ')));
            prop_assert!(!once.contains("  ") && once.trim() == once);
            let field = tag_field(&text);
            prop_assert_eq!(&tag_field(&field), &field);
            prop_assert!(!field.contains(['|', ';']));
        }

        #[test]
        fn display_is_bounded(text in any::<String>(), max in 0usize..40) {
            let shown = display(&text, max);
            prop_assert!(shown.chars().count() <= max);
            prop_assert_eq!(display(&shown, max), shown);
        }
    }
}
