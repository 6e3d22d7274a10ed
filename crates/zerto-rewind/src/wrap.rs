//! Text within 80 columns.
use rewind_core::certificate::Fingerprint;

const WIDTH: usize = 79;
/// Where a long word begins.
const LEAST_MARGIN: usize = 6;
/// Of a word that is broken.
const PIECE: usize = 60;

/// Breaks each line of a text at spaces; every line begins with `first`. What is broken goes on below the line's last column.
pub fn hanging(text: &str, first: &str) -> String {
    each_line(text, first, usize::MAX)
}

/// As [`hanging`], and what would be longer than a line is broken, too, after a slash where it has one: to be read, not to be copied.
pub fn fitting(text: &str) -> String {
    each_line(text, "", WIDTH - LEAST_MARGIN)
}

fn each_line(text: &str, first: &str, longest: usize) -> String {
    let lines = text.lines().map(|line| {
        let words = line.trim_start();
        let margin = line.len() - words.len();
        let column = words.find("  ").map_or(0, |gap| {
            words.len() - words.get(gap..).unwrap_or_default().trim_start().len()
        });
        let first = format!("{first}{}", " ".repeat(margin));
        let rest = format!("{first}{}", " ".repeat(column));
        wrap_after(words, &first, &rest, longest)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Breaks a text at spaces. Its first line begins with `first`, the others are as far to the right.
pub fn wrap(sentence: &str, first: &str) -> String {
    let rest = " ".repeat(first.chars().count());
    wrap_after(sentence, first, &rest, usize::MAX)
}

/// Breaks a text at spaces. Its first line begins with `first`, the others with `rest`. What does not fit between these
/// gets a line almost to itself; what is longer than `longest` is broken.
fn wrap_after(sentence: &str, first: &str, rest: &str, longest: usize) -> String {
    let mut wrapped = first.to_owned();
    let mut margin = first.chars().count();
    let mut column = margin;
    let words = sentence.split(' ').flat_map(|word| pieces(word, longest));
    for (word, is_whole) in words {
        if let Some(fingerprint) = fingerprint(word) {
            // On a line of its own it can be copied, whole as it is, and compared.
            if column != margin {
                let rest: String = rest.chars().take(LEAST_MARGIN).collect();
                wrapped = format!("{}\n{rest}", wrapped.trim_end());
            }
            wrapped.push_str(fingerprint);
            margin = rest.chars().count();
            column = WIDTH;
            continue;
        }
        let length = word.chars().count();
        let fresh = column == margin;
        let gap = usize::from(!fresh && is_whole);
        if column + gap + length > WIDTH && !(fresh && margin <= LEAST_MARGIN) {
            let rest: String = match rest.chars().count() + length {
                fits if fits <= WIDTH => rest.to_owned(),
                _ => rest.chars().take(LEAST_MARGIN).collect(),
            };
            margin = rest.chars().count();
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
    if word.chars().count() <= longest {
        return vec![(word, true)];
    }
    let (mut pieces, mut rest) = (Vec::new(), word);
    while !rest.is_empty() {
        let most = rest
            .char_indices()
            .nth(PIECE)
            .map_or(rest.len(), |(at, _)| at);
        let at_most = rest.get(..most).unwrap_or(rest);
        let end = match at_most.rfind('/') {
            Some(slash) if most < rest.len() && slash > 0 => slash + 1,
            _ => most,
        };
        let (piece, after) = rest.split_at(end);
        pieces.push((piece, pieces.is_empty()));
        rest = after;
    }
    pieces
}

/// Of a certificate, without the comma or full stop behind it.
fn fingerprint(word: &str) -> Option<&str> {
    const LENGTH: usize = 95;
    let bare = word.trim_end_matches([',', '.', ';']);
    (bare.len() == LENGTH && bare.parse::<Fingerprint>().is_ok()).then_some(bare)
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
    fn a_fingerprint_has_a_line_of_its_own() {
        let print = ["AB"; 32].join(":");
        let text = format!("expected SHA-256 {print}, shown SHA-256 {print}. They differ");
        let wrapped = wrap(&text, "failed   ");
        let lines: Vec<_> = wrapped.lines().map(str::trim).collect();
        assert_eq!(
            lines,
            [
                "failed   expected SHA-256",
                &print,
                "shown SHA-256",
                &print,
                "They differ"
            ]
        );
        assert_eq!(hanging(&print, ""), print);
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
    fn a_long_word_is_kept_whole() {
        let path = "/x".repeat(60);
        assert!(hanging(&format!("  to      {path}"), "").contains(&path));
    }
}
