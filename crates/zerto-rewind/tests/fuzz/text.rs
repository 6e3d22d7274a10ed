//! Text from outside, cleaned for one line.
use rewind_core::text::{display, exact, named, one_line, quoted, shorten, tag_field};

use crate::driver::Target;

const TARGET: Target = Target {
    name: "text",
    words: &[
        "\u{1b}[31m",
        "\u{202e}",
        "e\u{301}\u{301}\u{301}\u{301}\u{301}",
        " | ",
        "; ",
        "\u{2800}",
        "\u{3164}",
    ],
    memory: (64 << 10, 64),
};

/// Nothing in it acts on a reader or a terminal, or can't be seen.
pub fn is_readable(text: &str) -> bool {
    text.chars().all(|c| !c.is_control() && !hides(c)) && text.lines().count() <= 1
}

/// As Unicode's lists of bidirectional controls and of what is ignored by default have it, not as our own table does.
fn hides(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[test]
fn text_is_cleaned_bounded_and_marked() {
    TARGET.run(|input| {
        let text = String::from_utf8_lossy(input);
        let line = one_line(&text);
        assert!(is_readable(&line), "{line:?}");
        assert_eq!(one_line(&line), line);
        let field = tag_field(&text);
        assert!(is_readable(&field) && !field.contains(['|', ';']));
        for max in [0, 1, 20, 500] {
            for shown in [display(&text, max), shorten(&line, max), exact(&text, max)] {
                assert!(
                    is_readable(&shown) && shown.chars().count() <= max,
                    "{shown:?}"
                );
            }
            for marked in [quoted(&text, max), named(&text, max)] {
                assert!(is_readable(&marked) && marked.chars().count() <= max + 2);
                let inner = marked
                    .strip_prefix('"')
                    .and_then(|rest| rest.strip_suffix('"'));
                assert!(!inner.unwrap_or(&marked).contains('"'), "{marked:?}");
                assert!(inner.is_some() || !marked.contains([' ', ';', '!', ',']));
            }
        }
        (line.len().min(3), line == text, exact(&text, 500) == text)
    });
}
