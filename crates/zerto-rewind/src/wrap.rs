//! Text within 80 columns, or what a narrower terminal has.
use anstream::adapter::strip_str;
use rewind_core::certificate::Fingerprint;
use unicode_width::UnicodeWidthStr as _;

use crate::table::{columns, is_drawn};

const WIDTH: usize = 79;
/// Where a long word begins.
const LEAST_MARGIN: usize = 6;
/// Of a word that is broken.
const PIECE: usize = 60;

/// A text for stdout: a screen would break it in the middle of words; elsewhere its lines stay as they are.
pub fn prose(text: &str) -> String {
    match is_drawn() {
        true => hanging(text, ""),
        false => text.to_owned(),
    }
}

/// A text, and behind it a value that is read and copied whole: where both don't fit on one line, it gets one of its own.
pub fn beside(text: &str, value: &str) -> String {
    if !is_drawn() || visible(text) + 1 + visible(value) <= widest() {
        return format!("{text} {value}");
    }
    format!("{}\n{}{value}", prose(text), " ".repeat(LEAST_MARGIN))
}

/// The columns that a text takes on a screen, where styles take none.
fn visible(text: &str) -> usize {
    strip_str(text).to_string().width()
}

fn widest() -> usize {
    WIDTH.min(usize::from(columns()).saturating_sub(1))
}

/// Breaks each line of a text at spaces; every line begins with `first`. What is broken goes on below the line's last column.
pub fn hanging(text: &str, first: &str) -> String {
    each_line(text, first, usize::MAX)
}

/// As [`hanging`], and what would be longer than a line is broken, too, after a slash where it has one, else after another mark: to be
/// read, not to be copied.
pub fn fitting(text: &str) -> String {
    each_line(text, "", WIDTH - LEAST_MARGIN)
}

fn each_line(text: &str, first: &str, longest: usize) -> String {
    let lines = text.lines().map(|line| {
        let words = line.trim_start();
        let margin = line.len() - words.len();
        let column = words.find("  ").map_or(0, |gap| {
            let value = words.get(gap..).unwrap_or_default().trim_start();
            words.width() - value.width()
        });
        let first = format!("{first}{}", " ".repeat(margin));
        let rest = format!("{first}{}", " ".repeat(column));
        wrap_after(words, &first, &rest, longest)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Breaks a text at spaces. Its first line begins with `first`, the others are as far to the right.
pub fn wrap(sentence: &str, first: &str) -> String {
    wrap_after(sentence, first, &" ".repeat(first.width()), usize::MAX)
}

/// Breaks a text at spaces. Its first line begins with `first`, the others with `rest`. What does not fit between these
/// gets a line almost to itself; what is longer than `longest` is broken.
fn wrap_after(sentence: &str, first: &str, rest: &str, longest: usize) -> String {
    let widest = widest();
    let mut wrapped = first.to_owned();
    let mut margin = first.width();
    let mut column = margin;
    let words = sentence.split(' ').flat_map(|word| pieces(word, longest));
    for (word, is_whole) in words {
        if let Some((half, other)) = fingerprint(word) {
            // On lines of its own it can be compared, and be copied: spaces don't matter in one.
            if column != margin {
                let rest: String = rest.chars().take(LEAST_MARGIN).collect();
                margin = rest.width();
                wrapped = format!("{}\n{rest}", wrapped.trim_end());
            }
            wrapped.push_str(&format!("{half}\n{}{other}", " ".repeat(margin)));
            margin = rest.width();
            column = widest;
            continue;
        }
        let length = visible(word);
        let fresh = column == margin;
        let gap = usize::from(!fresh && is_whole);
        if column + gap + length > widest && !(fresh && margin <= LEAST_MARGIN) {
            let rest: String = match rest.width() + length {
                fits if fits <= widest => rest.to_owned(),
                _ => rest.chars().take(LEAST_MARGIN).collect(),
            };
            margin = rest.width();
            wrapped = format!("{}\n{rest}", wrapped.trim_end());
            column = margin;
        } else if gap > 0 {
            wrapped.push(' ');
            column += gap;
        }
        wrapped.push_str(word);
        column += length;
    }
    wrapped
}

/// A word, or the pieces of one that is longer than this; each with whether it begins the word.
fn pieces(word: &str, longest: usize) -> Vec<(&str, bool)> {
    if word.width() <= longest {
        return vec![(word, true)];
    }
    let (mut pieces, mut rest) = (Vec::new(), word);
    while rest.width() > longest {
        let most = rest
            .char_indices()
            .nth(PIECE)
            .map_or(rest.len(), |(at, _)| at);
        let at_most = rest.get(..most).unwrap_or(rest);
        let behind = |mark: &[char]| at_most.rfind(mark).filter(|at| *at > 0);
        let end = behind(&['/'])
            .or_else(|| behind(&['.', '-', '_']))
            .map_or(most, |at| at + 1);
        let (piece, after) = rest.split_at(end);
        pieces.push((piece, pieces.is_empty()));
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push((rest, false));
    }
    pieces
}

/// Of a certificate, without the comma or full stop behind it: the two halves of it, as it is wider than a screen.
fn fingerprint(word: &str) -> Option<(&str, &str)> {
    const LENGTH: usize = 95;
    const HALF: usize = 48;
    let bare = word.trim_end_matches([',', '.', ';']);
    if bare.len() != LENGTH || bare.parse::<Fingerprint>().is_err() {
        return None;
    }
    bare.split_at_checked(HALF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_hang_below_their_last_column() {
        let text = format!(
            "Plan:\n  tag     {}\n{}",
            "word ".repeat(20),
            "word ".repeat(20)
        );
        let wrapped = hanging(&text, "");
        assert!(
            wrapped.lines().all(|line| line.chars().count() <= WIDTH),
            "{wrapped}"
        );
        let lines: Vec<_> = wrapped.lines().collect();
        assert_eq!(lines.len(), 5, "{wrapped}");
        assert!(lines[2].starts_with("          word"), "{wrapped}");
        assert!(lines[4].starts_with("word"), "{wrapped}");
    }

    #[test]
    fn a_fingerprint_has_two_lines_of_sixteen_bytes() {
        let print = ["AB"; 32].join(":");
        let half = ["AB"; 16].join(":");
        let text = format!("expected SHA-256 {print}, shown SHA-256 {print}. They differ");
        let wrapped = wrap(&text, "failed   ");
        let lines: Vec<_> = wrapped.lines().map(str::trim).collect();
        let first = format!("{half}:");
        assert_eq!(
            lines,
            [
                "failed   expected SHA-256",
                &first,
                &half,
                "shown SHA-256",
                &first,
                &half,
                "They differ"
            ]
        );
        let alone = hanging(&print, "");
        assert_eq!(alone, format!("{first}\n{half}"));
        assert_eq!(
            alone.parse::<Fingerprint>().ok(),
            print.parse::<Fingerprint>().ok()
        );
    }

    #[test]
    fn what_takes_two_columns_counts_as_two() {
        let wrapped = hanging(&"日本語 ".repeat(20), "");
        assert!(
            wrapped.lines().all(|line| line.width() <= WIDTH),
            "{wrapped}"
        );
    }

    #[test]
    fn a_long_path_is_broken_at_its_slashes_where_it_is_only_read() {
        let path = format!("/home/ana/{}/{}", "recovered/".repeat(9), "n".repeat(100));
        let text = format!("  to           \"{path}\" (nothing is there now)");
        let wrapped = fitting(&text);
        let lines: Vec<_> = wrapped.lines().collect();
        assert!(
            lines.iter().all(|line| line.chars().count() <= WIDTH),
            "{wrapped}"
        );
        assert!(
            lines[0].starts_with("  to           \"/home/ana/") && lines[0].ends_with('/'),
            "{wrapped}"
        );
        assert!(
            lines[1].starts_with("               recovered/"),
            "{wrapped}"
        );
        let joined: String = lines.iter().map(|line| line.trim_start()).collect();
        assert!(joined.contains(&path), "{wrapped}");
    }

    #[test]
    fn the_name_in_a_long_path_is_kept_whole_where_it_fits_and_broken_at_its_marks_where_not() {
        let name = format!("{}.conf.zerto-kept-20261130T100207Z", "n".repeat(33));
        let text = format!("  kept         what is there now, as /etc/nginx/{name}");
        let wrapped = fitting(&text);
        assert!(wrapped.lines().any(|line| line.trim() == name), "{wrapped}");
        let longer = format!("{}{name}", "long-".repeat(9));
        let wrapped = fitting(&format!("  kept         /etc/nginx/{longer}"));
        let lines: Vec<_> = wrapped.lines().map(str::trim).collect();
        assert!(lines.contains(&name.as_str()), "{wrapped}");
        assert!(wrapped.lines().all(|line| line.width() <= WIDTH));
    }

    #[test]
    fn a_long_word_is_kept_whole() {
        let path = "/x".repeat(60);
        assert!(hanging(&format!("  to      {path}"), "").contains(&path));
    }
}
