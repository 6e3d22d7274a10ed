//! Tables: drawn on a terminal, plain columns that are never wrapped elsewhere.
use std::io::{self, IsTerminal};

use comfy_table::{ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle, presets};

use crate::output;

/// Of a terminal, in columns.
const USUAL_WIDTH: u16 = 80;

/// One line, below the headings.
const RULED: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Whether tables are drawn for a person, whose screen is only so wide.
pub fn is_drawn() -> bool {
    io::stdout().is_terminal()
}

/// A table with these headings. On a terminal the last column gives way when there is not room for all. Cells are cleaned:
/// they may come from outside.
pub fn table<const N: usize>(
    headings: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut table = Table::new();
    table.set_header(headings);
    for row in rows {
        table.add_row(row.map(|cell| output::lines(&cell)));
    }
    if is_drawn() {
        table.load_style(RULED);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        // Some terminals don't know how wide they are, and say 0.
        if table.width().is_none_or(|width| width < USUAL_WIDTH / 2) {
            table.set_width(USUAL_WIDTH);
        }
        for column in table.column_iter_mut().take(N.saturating_sub(1)) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    } else {
        table.load_style(presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Disabled);
    }
    table.trim_fmt()
}

/// A moment as the domain has it (ISO 8601, UTC), as a person reads it: to the second, without letters.
pub fn moment(iso: &str) -> String {
    let seconds = iso.split_once('.').map_or(iso, |(seconds, _)| seconds);
    seconds.trim_end_matches('Z').replacen('T', " ", 1)
}
