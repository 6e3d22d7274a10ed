//! The rows of `table` and `hosts`.

use std::path::Path;

use toml::{Spanned, Value};

use super::Reader;
use crate::{
    catalog::{
        live::Watched,
        raw::{RawRows, RawTable},
        source::{self, Source},
        table::{self, Rows},
    },
    text,
};

impl Reader<'_> {
    /// The rows of a table, in the catalog or in a file of its own.
    pub(super) fn rows(&mut self, raw: Spanned<RawTable>, hosts: bool) -> Option<Rows> {
        let at = raw.span();
        let path = match raw.into_inner() {
            RawTable::Inline(rows) => return self.check_rows(self.source, rows, hosts),
            RawTable::File(path) => path,
        };
        if path.trim().is_empty() || path.starts_with('~') {
            let fix = "write a path that starts at the catalog's folder, or a full one; `~` is not expanded";
            self.mistake(at, "not a usable path", Some(fix.to_owned()));
            return None;
        }
        let path = self
            .source
            .file
            .parent()
            .unwrap_or(Path::new(""))
            .join(path);
        self.files.push(Watched::new(&path));
        let rows = match source::file(&path) {
            Ok(rows) => rows,
            Err(mistake) => {
                let problem = format!(
                    "{}: {}",
                    text::display(&path.display().to_string(), 200),
                    mistake.problem
                );
                self.mistake(at, problem, mistake.fix);
                return None;
            }
        };
        let source = Source::new(&path, &rows);
        match source.parse() {
            Ok(rows) => self.check_rows(source, rows, hosts),
            Err(mistake) => {
                self.mistakes.push(mistake);
                None
            }
        }
    }

    fn check_rows(&mut self, source: Source<'_>, raw: RawRows, hosts: bool) -> Option<Rows> {
        let before = self.mistakes.len();
        let mut rows = Rows::new();
        for (key, value) in raw {
            let at = key.span();
            let key = key.into_inner();
            if hosts && !table::is_host(&key) {
                let fix = "write a host's name or address alone";
                let problem = format!("`{}` is no host", text::display(&key, 80));
                self.mistake_in(source, at, problem, Some(fix.to_owned()));
                continue;
            }
            let span = value.span();
            let is_table = value.get_ref().is_table();
            match vms(value.into_inner()) {
                Some(vms) => {
                    rows.insert(key, vms);
                }
                None => {
                    let key = text::display(&key, 80);
                    let fix = if is_table {
                        format!("put names with dots in quotes: \"{key}.…\" = \"VM\"")
                    } else {
                        format!("write \"{key}\" = \"VM\", or a list of VMs")
                    };
                    let problem = format!("`{key}` is not mapped to the name of a VM");
                    self.mistake_in(source, span, problem, Some(fix));
                }
            }
        }
        (self.mistakes.len() == before).then_some(rows)
    }
}

fn vms(value: Value) -> Option<Vec<String>> {
    let name = |value| match value {
        Value::String(name) if !name.trim().is_empty() => Some(name.trim().to_owned()),
        _ => None,
    };
    match value {
        Value::Array(values) if !values.is_empty() => values.into_iter().map(name).collect(),
        value => Some(vec![name(value)?]),
    }
}
