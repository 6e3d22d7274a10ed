//! Two texts as a unified diff that can be read and steers nothing.
use crate::text::exact;
use similar::TextDiff;
use std::time::Duration;

/// Of each side.
pub(super) const TEXT_MAX: u64 = 1024 * 1024;
/// Of the diff.
const SHOWN_MAX: usize = 64 * 1024;
const LINE_MAX: usize = 2_000;
/// Then a worse diff is good enough.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether a person would call it text.
pub(super) fn as_text(content: &[u8]) -> Option<&str> {
    std::str::from_utf8(content)
        .ok()
        .filter(|text| !text.contains('\0'))
}

/// From the first to the second, and whether something was left out.
pub(super) fn unified(then: (&str, &str), now: (&str, &str)) -> (String, bool) {
    let diff = TextDiff::configure()
        .timeout(PATIENCE)
        .diff_lines(then.1, now.1);
    let mut shown = String::new();
    let header = (exact(then.0, LINE_MAX), exact(now.0, LINE_MAX));
    let whole = diff
        .unified_diff()
        .context_radius(3)
        .header(&header.0, &header.1)
        .to_string();
    // Not by `lines`, which would take a carriage return for a part of the line's end.
    for line in whole.strip_suffix('\n').unwrap_or(&whole).split('\n') {
        let line = line_of(line);
        if shown.len() + line.len() >= SHOWN_MAX {
            return (shown, true);
        }
        shown.push_str(&line);
        shown.push('\n');
    }
    (shown, false)
}

/// Tabs stay: they are what is meant more often than not.
fn line_of(line: &str) -> String {
    let parts: Vec<String> = line.split('\t').map(|part| exact(part, LINE_MAX)).collect();
    parts.join("\t")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_escaped_and_indentation_stays() {
        let (shown, cut) = unified(
            ("a", "  two\n\tthree\nsame\n"),
            ("b", "  two \u{202e}\n\tthree\r\nsame\n"),
        );
        assert!(!cut);
        assert_eq!(
            shown,
            "--- a\n+++ b\n@@ -1,3 +1,3 @@\n-  two\n-\tthree\n+  two \\u{202e}\n+\tthree\\u{d}\n same\n"
        );
    }

    #[test]
    fn a_diff_is_bounded_and_says_so() {
        let many: String = (0..100_000).map(|line| format!("line {line}\n")).collect();
        let (shown, cut) = unified(("a", ""), ("b", &many));
        assert!(cut && shown.len() <= SHOWN_MAX && shown.ends_with('\n'));
        let (shown, cut) = unified(("a", ""), ("b", &"x".repeat(1_000_000)));
        assert!(!cut && shown.len() < 3_000, "{}", shown.len());
    }

    #[test]
    fn what_is_no_text_is_told() {
        assert!(as_text("grün\n".as_bytes()).is_some() && as_text(b"").is_some());
        assert!(as_text(b"a\0b").is_none() && as_text(&[0xff, 0xfe]).is_none());
    }
}
