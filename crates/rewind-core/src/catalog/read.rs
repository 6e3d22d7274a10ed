//! Turns the text of a catalog into entries, or into the list of its mistakes.

mod conditions;
mod rows;

use std::{ops::Range, path::Path};

use toml::Spanned;

use super::{
    Entry, Mode,
    action::Action,
    error::{CatalogError, Mistake},
    live::Watched,
    pattern::{self, Glob, Pointer},
    place,
    raw::{RawCatalog, RawChange, RawEntry, RawVm},
    source::Source,
    table::{Hosts, Table},
    vm::{GROUP, Rule, VmRule},
};
use crate::text;

const VERSION: i64 = 1;
/// The action of an entry that refuses calls and gives none.
const DENY_ACTION: &str = "{{ tool }}";

/// The entries. `files` gets the tables that they name, as they were before they were read.
pub(super) fn catalog(
    text: &str,
    file: &Path,
    files: &mut Vec<Watched>,
) -> Result<Vec<Entry>, CatalogError> {
    let source = Source::new(file, text);
    let raw: RawCatalog = source.parse()?;
    let mut reader = Reader {
        source,
        files,
        mistakes: Vec::new(),
    };
    reader.version(raw.version);
    let entries: Vec<Entry> = raw
        .guard
        .into_iter()
        .filter_map(|entry| reader.entry(entry))
        .collect();
    if reader.mistakes.is_empty() {
        return Ok(entries);
    }
    Err(CatalogError {
        mistakes: reader.mistakes,
    })
}

struct Reader<'a> {
    source: Source<'a>,
    files: &'a mut Vec<Watched>,
    mistakes: Vec<Mistake>,
}

impl Reader<'_> {
    fn mistake(&mut self, at: Range<usize>, problem: impl Into<String>, fix: Option<String>) {
        self.mistake_in(self.source, at, problem, fix);
    }

    fn mistake_in(
        &mut self,
        source: Source<'_>,
        at: Range<usize>,
        problem: impl Into<String>,
        fix: Option<String>,
    ) {
        let mistake = Mistake {
            file: source.file.to_owned(),
            position: Some(source.position(at.start)),
            problem: problem.into(),
            fix,
            missing: false,
        };
        // Several entries may name one table.
        if !self.mistakes.contains(&mistake) {
            self.mistakes.push(mistake);
        }
    }

    fn version(&mut self, version: Option<Spanned<i64>>) {
        let fix = Some(format!("write `version = {VERSION}` at the top"));
        match version {
            None => self.mistake(0..0, "the version is missing", fix),
            Some(version) if *version.get_ref() != VERSION => {
                let problem = format!("version {} is not known", version.get_ref());
                self.mistake(version.span(), problem, fix);
            }
            Some(_) => {}
        }
    }

    fn entry(&mut self, raw: Spanned<RawEntry>) -> Option<Entry> {
        let at = raw.span();
        let raw = raw.into_inner();
        let (line, _) = self.source.position(at.start);
        let denies = raw.mode == Mode::Deny;

        let server = match raw.server {
            Some(server) => self.glob(&server),
            None => Glob::new("*").ok(),
        };
        let tool = match raw.tool {
            Some(tool) => self.glob(&tool),
            None => self.missing(
                &at,
                "tool",
                "write `tool = \"NAME\"`; `*` stands for any characters",
            ),
        };
        let vm = match raw.vm {
            Some(vm) => self.vm(vm),
            None if denies => Some(VmRule(Rule::None)),
            None => self.missing(
                &at,
                "vm",
                "write `vm = { arg = \"/NAME\" }` for the argument that names the VM",
            ),
        };
        let action = match raw.action {
            Some(action) => self.action(action.span(), action.get_ref()),
            None if denies => self.action(at.clone(), DENY_ACTION),
            None => self.missing(
                &at,
                "action",
                "write `action = \"…\"`: what the call changes, for the tag",
            ),
        };
        let change = match raw.change {
            Some(change) => self.change(change).map(Some),
            None => Some(None),
        };
        let when: Vec<_> = raw
            .when
            .into_iter()
            .map(|condition| self.condition(condition))
            .collect();
        Some(Entry {
            place: place(self.source.file, line),
            server: server?,
            tool: tool?,
            vm: vm?,
            action: action?,
            change: change?,
            when: when.into_iter().collect::<Option<_>>()?,
            reuse: raw.reuse.map(|reuse| reuse.0),
            unprotected: raw.unprotected,
            mode: raw.mode,
        })
    }

    fn missing<T>(&mut self, at: &Range<usize>, key: &str, fix: &str) -> Option<T> {
        self.mistake(
            at.clone(),
            format!("the entry has no `{key}`"),
            Some(fix.to_owned()),
        );
        None
    }

    fn glob(&mut self, source: &Spanned<String>) -> Option<Glob> {
        Glob::new(source.get_ref())
            .map_err(|problem| self.mistake(source.span(), problem, None))
            .ok()
    }

    fn pointer(&mut self, source: Option<Spanned<String>>, at: &Range<usize>) -> Option<Pointer> {
        let Some(source) = source else {
            let fix = "write `arg = \"/NAME\"`".to_owned();
            self.mistake(at.clone(), "`arg` is missing", Some(fix));
            return None;
        };
        Pointer::new(source.get_ref())
            .map_err(|meant| {
                let fix = match meant {
                    Some(meant) => format!("write \"{}\"", text::display(&meant, 80)),
                    None => "write `~0` for `~` and `~1` for `/` within a name".to_owned(),
                };
                self.mistake(source.span(), "not a JSON Pointer", Some(fix));
            })
            .ok()
    }

    fn action(&mut self, at: Range<usize>, source: &str) -> Option<Action> {
        Action::new(source)
            .map_err(|(problem, fix)| self.mistake(at, problem, fix))
            .ok()
    }

    fn change(&mut self, raw: Spanned<RawChange>) -> Option<Pointer> {
        let at = raw.span();
        self.pointer(raw.into_inner().arg, &at)
    }

    fn vm(&mut self, raw: Spanned<RawVm>) -> Option<VmRule> {
        const FIX: &str = "write { fixed = \"VM\" }, { arg = \"/NAME\" }, or { arg = \"/NAME\" } with one of `regex`, `table` or `hosts`";
        let at = raw.span();
        let RawVm {
            arg,
            regex,
            fixed,
            table,
            hosts,
        } = raw.into_inner();
        let ways = [
            regex.is_some(),
            fixed.is_some(),
            table.is_some(),
            hosts.is_some(),
        ];
        let ways = ways.into_iter().filter(|given| *given).count();
        if ways > 1 || (fixed.is_some() && arg.is_some()) || (ways == 0 && arg.is_none()) {
            let problem = if ways > 1 || arg.is_some() {
                "the rule says several things"
            } else {
                "the rule is empty"
            };
            self.mistake(at, problem, Some(FIX.to_owned()));
            return None;
        }
        if let Some(fixed) = fixed {
            let vm = fixed.get_ref().trim();
            if vm.is_empty() {
                self.mistake(
                    fixed.span(),
                    "the VM's name is empty",
                    Some("write the VM's name".to_owned()),
                );
                return None;
            }
            return Some(VmRule(Rule::Fixed(vm.to_owned())));
        }
        let pointer = self.pointer(arg, &at);
        let rule = if let Some(regex) = regex {
            let regex = self.vm_regex(&regex);
            Rule::Regex(pointer?, regex?)
        } else if let Some(table) = table {
            let rows = self.rows(table, false);
            Rule::Table(pointer?, Table::new(rows?))
        } else if let Some(hosts) = hosts {
            let at = hosts.span();
            let rows = self.rows(hosts, true)?;
            let hosts = Hosts::new(rows)
                .map_err(|problem| self.mistake(at, problem, None))
                .ok();
            Rule::Hosts(pointer?, hosts?)
        } else {
            Rule::Arg(pointer?)
        };
        Some(VmRule(rule))
    }

    fn vm_regex(&mut self, source: &Spanned<String>) -> Option<regex::Regex> {
        let regex = self.regex(source)?;
        if !regex.capture_names().any(|name| name == Some(GROUP)) {
            let fix = format!("write (?P<{GROUP}>…) around what names the VM");
            self.mistake(
                source.span(),
                format!("the regular expression has no group `{GROUP}`"),
                Some(fix),
            );
            return None;
        }
        Some(regex)
    }

    fn regex(&mut self, source: &Spanned<String>) -> Option<regex::Regex> {
        pattern::regex(source.get_ref())
            .map_err(|problem| self.mistake(source.span(), problem, None))
            .ok()
    }
}
