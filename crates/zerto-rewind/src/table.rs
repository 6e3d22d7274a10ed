//! Rows on a terminal: a table where it fits the screen, else a block of lines for each row. Elsewhere plain columns that are never
//! wrapped.
use std::io::{self, IsTerminal};

use comfy_table::{ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle, presets};
use unicode_width::UnicodeWidthStr as _;

use crate::{output, wrap::hanging};

/// Of a terminal, in columns.
const USUAL_WIDTH: u16 = 80;
/// What a column needs besides its cells: a space on either side, and one to the next.
const PADDING: usize = 3;
/// The last column may be broken into lines of words, but not into narrower ones.
const LAST_LEAST: usize = 30;

/// One line, below the headings.
const RULED: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Whether tables are drawn for a person, whose screen is only so wide.
pub fn is_drawn() -> bool {
    io::stdout().is_terminal()
}

/// Of the terminal that is stdout, or as if it were one.
pub fn columns() -> u16 {
    // Some terminals don't know how wide they are, and say 0.
    let width = Table::new().width();
    width
        .filter(|width| *width >= USUAL_WIDTH / 2)
        .unwrap_or(USUAL_WIDTH)
}

/// Rows below these headings. On a terminal the last column gives way when there is not room for all; where that is not enough, each row
/// is a block. Cells are cleaned: they may come from outside.
pub fn table<const N: usize>(
    headings: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let rows = rows
        .into_iter()
        .map(|row| row.map(|cell| output::lines(&cell)));
    let rows: Vec<_> = rows.collect();
    let mut table = Table::new();
    table.set_header(headings);
    table.add_rows(&rows);
    if !is_drawn() {
        table.load_style(presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Disabled);
        return table.trim_fmt();
    }
    let width = columns();
    // The last one needs no space behind it.
    if least(headings, &rows) > usize::from(width) + 1 {
        return blocks(headings, &rows);
    }
    table.set_width(width);
    table.load_style(RULED);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    for column in table.column_iter_mut().take(N.saturating_sub(1)) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    table.trim_fmt()
}

/// The columns that a table with these rows takes at least.
fn least<const N: usize>(headings: [&str; N], rows: &[[String; N]]) -> usize {
    let mut widest = headings.map(str::width);
    for row in rows {
        for (widest, cell) in widest.iter_mut().zip(row) {
            let cell = cell.lines().map(str::width).max();
            *widest = (*widest).max(cell.unwrap_or_default());
        }
    }
    if let Some(last) = widest.last_mut() {
        *last = (*last).min(LAST_LEAST);
    }
    widest.iter().map(|width| width + PADDING).sum()
}

/// Each row as lines of its own, with the headings before them.
fn blocks<const N: usize>(headings: [&str; N], rows: &[[String; N]]) -> String {
    let longest = headings.map(str::width).into_iter().max();
    let longest = longest.unwrap_or_default();
    let block = |row: &[String; N]| {
        let lines = headings.iter().zip(row).flat_map(|(heading, cell)| {
            let headings = std::iter::once(*heading).chain(std::iter::repeat(""));
            headings
                .zip(cell.lines())
                .map(move |(heading, line)| format!("{heading:<longest$}  {line}"))
        });
        let lines: Vec<_> = lines.map(|line| below(&line, longest)).collect();
        lines.join("\n")
    };
    let blocks: Vec<_> = rows.iter().map(block).collect();
    blocks.join("\n\n")
}

/// A line that begins with spaces has its column there, and one with a heading behind it.
fn below(line: &str, longest: usize) -> String {
    match line.trim_start() {
        words if line.starts_with(' ') => hanging(words, &" ".repeat(longest + 2)),
        _ => hanging(line, ""),
    }
}

/// A moment as the domain has it (ISO 8601, UTC), as a person reads it: to the second, without letters.
pub fn moment(iso: &str) -> String {
    let seconds = iso.split_once('.').map_or(iso, |(seconds, _)| seconds);
    seconds.trim_end_matches('Z').replacen('T', " ", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(vpg: &str, tag: &str) -> [String; 3] {
        ["1197", vpg, tag].map(str::to_owned)
    }

    const HEADINGS: [&str; 3] = ["Checkpoint", "VPG", "Tag"];

    #[test]
    fn the_least_width_is_that_of_the_widest_cells_as_a_terminal_shows_them() {
        let tag = "word ".repeat(20);
        let least = |vpg: &str| least(HEADINGS, &[row("x", "y"), row(vpg, &tag)]);
        assert_eq!(least("12345"), 10 + 5 + 30 + 9);
        assert_eq!(least("日本"), 10 + 4 + 30 + 9);
        assert_eq!(least("a\nlonger"), 10 + 6 + 30 + 9);
    }

    #[test]
    fn a_block_keeps_each_value_whole_below_its_heading() {
        let vpg = "x".repeat(51);
        let tag = format!("{}\nuntil tomorrow", "word ".repeat(20).trim_end());
        let shown = blocks(HEADINGS, &[row(&vpg, &tag), row("b", "c")]);
        let lines: Vec<_> = shown.lines().collect();
        assert_eq!(lines[0], "Checkpoint  1197");
        assert_eq!(lines[1], format!("VPG         {vpg}"));
        assert!(lines[2].starts_with("Tag         word word"), "{shown}");
        assert!(lines[3].starts_with("            word"), "{shown}");
        assert_eq!(lines[4], "            until tomorrow");
        assert_eq!(
            lines[5..],
            ["", "Checkpoint  1197", "VPG         b", "Tag         c"]
        );
        assert!(lines.iter().all(|line| line.width() < 80), "{shown}");
    }
}
