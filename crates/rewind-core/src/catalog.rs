//! The catalog: the opt-in list of tool calls that must be guarded.
//!
//! A TOML file with `version = 1` and one `[[guard]]` per entry. Entries are tried in the order of the file; the first one whose globs
//! match the server and the tool, whose conditions all hold and, with a `hosts` rule, whose text mentions a host, decides. While the
//! server's name is unknown, every entry's `server` matches. Tool and server names are matched with their letter case.
//!
//! Nothing here calls a ZVM: the names of VMs that come out are what the call says.

mod action;
mod condition;
mod error;
mod live;
mod pattern;
mod raw;
mod read;
mod source;
mod table;
mod vm;
mod warnings;

use std::{fmt, path::Path, time::Duration};

use serde_json::Value;

pub use condition::Condition;
pub use error::{CatalogError, Mistake, RuleError, RuleProblem, Warning};
pub(crate) use live::{Current, LiveCatalog};
pub use vm::VmRule;

use action::Action;
use live::Watched;
use pattern::{Glob, Pointer};

/// The most VMs that one call may concern.
pub const MAX_VMS: usize = 32;

/// The entries of a catalog file. An empty one lists nothing.
#[derive(Debug, Default)]
pub struct Catalog {
    entries: Vec<Entry>,
    warnings: Vec<Warning>,
}

/// A tool call, as it is looked up.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The MCP server's name, where it is known; `builtin` for a harness's own tools.
    pub server: Option<&'a str>,
    /// The tool's name.
    pub tool: &'a str,
    /// The arguments, normally an object.
    pub arguments: &'a Value,
}

/// What the catalog says of a call.
#[derive(Debug)]
pub enum Lookup<'a> {
    /// No entry names this tool.
    Unlisted,
    /// Entries name this tool, and none applies to these arguments: the call passes as an unlisted one does.
    DoesNotApply(Vec<Skipped<'a>>),
    /// The call must be guarded.
    Listed(&'a Entry),
    /// The call must not be made.
    Denied(&'a Entry),
}

/// An entry that names the tool of a call but does not apply to its arguments.
#[derive(Debug)]
pub struct Skipped<'a> {
    /// The entry.
    pub entry: &'a Entry,
    /// Why it does not apply.
    pub reason: Reason<'a>,
}

/// Why an entry does not apply.
#[derive(Debug)]
pub enum Reason<'a> {
    /// A condition does not hold.
    Condition(&'a Condition),
    /// The text mentions no host of the table.
    NoHost,
}

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Condition(condition) => write!(f, "the condition {condition} does not hold"),
            Self::NoHost => f.write_str("no host of the table is mentioned"),
        }
    }
}

/// What happens to a call that an entry applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It is guarded.
    #[default]
    Guard,
    /// It is refused.
    Deny,
}

/// What happens to a call on a VM that is in no VPG.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unprotected {
    /// It is refused.
    #[default]
    Refuse,
    /// It passes without a pin.
    Pass,
}

/// One entry of the catalog.
#[derive(Debug)]
pub struct Entry {
    place: String,
    server: Glob,
    tool: Glob,
    vm: VmRule,
    action: Action,
    change: Option<Pointer>,
    when: Vec<Condition>,
    reuse: Option<Duration>,
    unprotected: Unprotected,
    mode: Mode,
}

impl Catalog {
    /// Reads and checks a catalog file and the tables that it names.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or mistakes, each with file, line, column and what to write instead.
    pub fn load(path: &Path) -> Result<Self, CatalogError> {
        Self::load_watched(path).0
    }

    /// As [`load`](Self::load), with every file that was looked at, as it was before.
    fn load_watched(path: &Path) -> (Result<Self, CatalogError>, Vec<Watched>) {
        let file = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut files = vec![Watched::new(&file)];
        let catalog = source::file(&file)
            .map_err(CatalogError::from)
            .and_then(|text| Self::read(&text, &file, &mut files));
        (catalog, files)
    }

    /// Checks the text of a catalog file. `file` is named in mistakes, and tables are looked for in its folder.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn parse(text: &str, file: &Path) -> Result<Self, CatalogError> {
        Self::read(text, file, &mut Vec::new())
    }

    fn read(text: &str, file: &Path, files: &mut Vec<Watched>) -> Result<Self, CatalogError> {
        let entries = read::catalog(text, file, files)?;
        let warnings = warnings::of(&entries);
        Ok(Self { entries, warnings })
    }

    /// Whether any entry names this tool: false means that a call of it is certainly unlisted.
    #[must_use]
    pub fn names(&self, server: Option<&str>, tool: &str) -> bool {
        self.entries.iter().any(|entry| entry.names(server, tool))
    }

    /// The entries, in the order of the file.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What is allowed but probably not meant: entries that can never apply, and keys without effect.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Which entry decides about a call.
    #[must_use]
    pub fn lookup(&self, call: &Call<'_>) -> Lookup<'_> {
        let mut skipped = Vec::new();
        for entry in self
            .entries
            .iter()
            .filter(|entry| entry.names(call.server, call.tool))
        {
            match entry.skips(call.arguments) {
                Some(reason) => skipped.push(Skipped { entry, reason }),
                None if entry.mode == Mode::Deny => return Lookup::Denied(entry),
                None => return Lookup::Listed(entry),
            }
        }
        if skipped.is_empty() {
            Lookup::Unlisted
        } else {
            Lookup::DoesNotApply(skipped)
        }
    }
}

impl Entry {
    /// Where the entry stands, as `file:line`.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The glob on the server's name.
    #[must_use]
    pub fn server(&self) -> &str {
        self.server.source()
    }

    /// The glob on the tool's name.
    #[must_use]
    pub fn tool(&self) -> &str {
        self.tool.source()
    }

    /// How the VMs of a call are found.
    #[must_use]
    pub fn vm_rule(&self) -> &VmRule {
        &self.vm
    }

    /// The template of the action.
    #[must_use]
    pub fn action_template(&self) -> &str {
        self.action.source()
    }

    /// The conditions, which must all hold.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        &self.when
    }

    /// How long a pin of the same agent, VM and change may be used again.
    #[must_use]
    pub fn reuse(&self) -> Option<Duration> {
        self.reuse
    }

    /// What happens to a call on a VM that is in no VPG.
    #[must_use]
    pub fn unprotected(&self) -> Unprotected {
        self.unprotected
    }

    /// Whether calls are guarded or refused.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The VMs that a call concerns, as the call names them: at least one, each once, at most [`MAX_VMS`].
    ///
    /// # Errors
    ///
    /// The rule finds no VM, or too many: the call must be refused.
    pub fn vms(&self, arguments: &Value) -> Result<Vec<String>, RuleError> {
        self.vm
            .resolve(arguments)
            .map_err(|problem| self.error(problem))
    }

    /// The action for the tag, cleaned to one line. Arguments that are missing read as `(missing)`.
    ///
    /// # Errors
    ///
    /// The template cannot be filled in with these arguments: the call must be refused.
    pub fn action(&self, call: &Call<'_>) -> Result<String, RuleError> {
        self.action
            .render(call)
            .map_err(|problem| self.error(problem))
    }

    /// The change id that the call carries, where the entry says where to look and the call has one there.
    ///
    /// # Errors
    ///
    /// What is there is neither text nor a whole number: the call must be refused.
    pub fn change(&self, arguments: &Value) -> Result<Option<String>, RuleError> {
        let Some(pointer) = &self.change else {
            return Ok(None);
        };
        match pointer.find(arguments) {
            None => Ok(None),
            Some(value) => match pattern::plain(value) {
                Some(text) if text.trim().is_empty() => Ok(None),
                Some(text) => Ok(Some(text.trim().to_owned())),
                None => Err(self.error(RuleProblem::NotAChange {
                    pointer: pointer.to_string(),
                    found: error::found(value),
                })),
            },
        }
    }

    /// Whether it is for this server.
    #[must_use]
    pub fn is_for(&self, server: &str) -> bool {
        self.server.matches(server)
    }

    fn names(&self, server: Option<&str>, tool: &str) -> bool {
        self.tool.matches(tool) && server.is_none_or(|server| self.server.matches(server))
    }

    fn skips(&self, arguments: &Value) -> Option<Reason<'_>> {
        if let Some(condition) = self
            .when
            .iter()
            .find(|condition| !condition.holds(arguments))
        {
            return Some(Reason::Condition(condition));
        }
        (!self.vm.applies(arguments)).then_some(Reason::NoHost)
    }

    fn error(&self, problem: RuleProblem) -> RuleError {
        RuleError {
            entry: self.place.clone(),
            problem,
        }
    }
}

/// `file:line`, with the file's name alone.
fn place(file: &Path, line: usize) -> String {
    let name = file.file_name().unwrap_or(file.as_os_str());
    format!("{}:{line}", name.display())
}
