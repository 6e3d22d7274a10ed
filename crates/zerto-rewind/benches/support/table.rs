//! Rows of measurements, as a table and as JSON.

use std::{fmt, time::Duration};

use comfy_table::{CellAlignment, Table as Grid, presets::ASCII_MARKDOWN};
use serde_json::{Value, json};

#[derive(Default)]
pub struct Table(Vec<Row>);

struct Row {
    what: String,
    value: f64,
    unit: &'static str,
    aim: Option<f64>,
}

/// The median, in milliseconds.
pub fn median(times: &[Duration]) -> f64 {
    quantile(times, 0.5)
}

/// The time that this share of them stays below, in milliseconds.
pub fn quantile(times: &[Duration], share: f64) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort();
    sorted
        .get((sorted.len() as f64 * share) as usize)
        .map_or(f64::NAN, |t| t.as_secs_f64() * 1e3)
}

impl Table {
    pub fn row(&mut self, what: &str, value: f64, unit: &'static str, aim: Option<f64>) {
        eprintln!("  {what}: {value:.2} {unit}");
        self.0.push(Row {
            what: what.to_owned(),
            value,
            unit,
            aim,
        });
    }

    pub fn json(&self) -> Value {
        let rows = self.0.iter().map(
            |r| json!({"what": r.what, "value": r.value, "unit": r.unit, "aim_at_most": r.aim}),
        );
        rows.collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut grid = Grid::new();
        grid.load_style(ASCII_MARKDOWN)
            .set_header(["what", "measured", "aim"]);
        for row in &self.0 {
            let aim = row
                .aim
                .map_or(String::new(), |aim| format!("≤ {aim} {}", row.unit));
            grid.add_row([
                row.what.clone(),
                format!("{:.2} {}", row.value, row.unit),
                aim,
            ]);
        }
        for column in 1..3 {
            if let Some(column) = grid.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        grid.fmt(f)
    }
}
