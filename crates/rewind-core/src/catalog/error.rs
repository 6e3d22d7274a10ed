//! Mistakes in a catalog, and calls that an entry cannot be applied to.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::MAX_VMS;
use crate::text;

/// A mistake in a catalog or in a table that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The file.
    pub file: PathBuf,
    /// Line and column, both from 1 and counted in characters, where the mistake has a place.
    pub position: Option<(usize, usize)>,
    /// What is wrong.
    pub problem: String,
    /// What to write instead.
    pub fix: Option<String>,
    /// The file itself does not exist.
    pub missing: bool,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some((line, column)) = self.position {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.problem)?;
        match &self.fix {
            Some(fix) => write!(f, ": {fix}"),
            None => Ok(()),
        }
    }
}

impl Mistake {
    pub(super) fn unreadable(file: &Path, error: &io::Error) -> Self {
        let fix = (error.kind() == io::ErrorKind::NotFound)
            .then(|| "create it, or correct the path".to_owned());
        let problem = match error.kind() {
            io::ErrorKind::NotFound => "there is no such file".to_owned(),
            _ => format!("cannot be read: {error}"),
        };
        Self {
            file: file.to_owned(),
            position: None,
            problem,
            fix,
            missing: error.kind() == io::ErrorKind::NotFound,
        }
    }
}

/// Why there is no catalog: every mistake that was found, a line each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct CatalogError {
    /// The mistakes, at least one.
    pub mistakes: Vec<Mistake>,
}

impl fmt::Display for CatalogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.mistakes.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            mistake.fmt(f)?;
        }
        Ok(())
    }
}

impl CatalogError {
    /// What to do about it; names the file of the first mistake.
    #[must_use]
    pub fn next(&self) -> String {
        let Some(first) = self.mistakes.first() else {
            return String::new();
        };
        let file = first.file.display();
        if first.missing {
            return format!(
                "Create {file} (catalog.example.toml is a start), or correct the path that names it."
            );
        }
        format!("Correct {file}, and check it with `zerto-rewind catalog validate {file}`.")
    }
}

impl From<Mistake> for CatalogError {
    fn from(mistake: Mistake) -> Self {
        Self {
            mistakes: vec![mistake],
        }
    }
}

/// Something in a catalog that is allowed but probably not meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Where the entry stands, as `file:line`.
    pub entry: String,
    /// What to think about.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.entry, self.message)
    }
}

/// An entry applies to a call but cannot be followed: the call must be refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem} (catalog entry {entry})")]
pub struct RuleError {
    /// Where the entry stands, as `file:line`.
    pub entry: String,
    /// Why.
    pub problem: RuleProblem,
}

/// Why an entry cannot be followed. Texts from the call are cleaned and cut.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleProblem {
    /// The argument that says the VM is not there.
    #[error("the call has no argument `{pointer}`, which must name the VM")]
    Missing {
        /// The JSON Pointer.
        pointer: String,
    },
    /// The argument that says the VM is no text.
    #[error("the argument `{pointer}` is {found}, and must be the text that names the VM")]
    NotText {
        /// The JSON Pointer.
        pointer: String,
        /// What is there.
        found: String,
    },
    /// The argument that says the VM is empty.
    #[error("the argument `{pointer}` is empty, and must name the VM")]
    Empty {
        /// The JSON Pointer.
        pointer: String,
    },
    /// The argument is longer than is looked through.
    #[error("the argument `{pointer}` is too long to be searched for VMs: split the call")]
    TooLong {
        /// The JSON Pointer.
        pointer: String,
    },
    /// Nothing in the argument matches the entry's regular expression.
    #[error("the argument `{pointer}` is {found}, in which the entry's `regex` finds no VM")]
    NoMatch {
        /// The JSON Pointer.
        pointer: String,
        /// What is there.
        found: String,
    },
    /// The entry's table has nothing for the argument.
    #[error(
        "the argument `{pointer}` is {found}, which the entry's `table` does not map to a VM: add it there"
    )]
    NotInTable {
        /// The JSON Pointer.
        pointer: String,
        /// What is there.
        found: String,
    },
    /// The text mentions no host of the entry's table.
    #[error("the argument `{pointer}` mentions no host of the entry's table")]
    NoHost {
        /// The JSON Pointer.
        pointer: String,
    },
    /// The call concerns more VMs than are guarded at once.
    #[error("the call concerns more than {MAX_VMS} VMs: split it")]
    TooMany,
    /// The entry refuses calls and does not say which VM they concern.
    #[error("the entry refuses calls, and does not say which VM they concern")]
    NoRule,
    /// The action's template cannot be filled in.
    #[error("the entry's `action` cannot be filled in with these arguments: {reason}")]
    Action {
        /// What the template engine says.
        reason: String,
    },
    /// The argument that carries the change id is neither text nor a whole number.
    #[error("the argument `{pointer}` is {found}, and must be the change id in a text")]
    NotAChange {
        /// The JSON Pointer.
        pointer: String,
        /// What is there.
        found: String,
    },
}

/// What stands in an argument, to be shown.
pub(super) fn found(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => format!("{value}"),
        Value::Number(number) => text::display(&format!("the number {number}"), 60),
        Value::String(value) => format!("\"{}\"", text::display(value, 60)),
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
    }
}
