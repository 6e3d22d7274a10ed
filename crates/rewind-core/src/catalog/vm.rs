//! How the VMs of a call are found.

use std::fmt;

use regex::Regex;
use serde_json::Value;

use super::{
    MAX_VMS,
    error::{RuleProblem, found},
    pattern::{Pointer, plain},
    table::{Hosts, Table},
};

/// The longest text that is searched, in bytes.
const MAX_TEXT: usize = 4 << 20;
/// The longest name of a VM, in characters.
const MAX_NAME: usize = 512;
/// The most matches of a regular expression that are looked at.
const MAX_MATCHES: usize = 10_000;
/// The name of the group that captures the VM.
pub(super) const GROUP: &str = "vm";

/// How the VMs of a call are found.
#[derive(Debug)]
pub struct VmRule(pub(super) Rule);

#[derive(Debug)]
pub(super) enum Rule {
    /// Only in entries that refuse calls.
    None,
    Fixed(String),
    /// The argument names the VM, or is a list of names.
    Arg(Pointer),
    /// Every match in the argument names a VM.
    Regex(Pointer, Regex),
    /// The argument, or each in a list, is looked up.
    Table(Pointer, Table),
    /// Every host that the text mentions.
    Hosts(Pointer, Hosts),
}

impl VmRule {
    /// A `hosts` rule that finds no host means that its entry does not apply. A text too long to be searched applies, and then finds
    /// nothing: the call is refused.
    pub(super) fn applies(&self, arguments: &Value) -> bool {
        match &self.0 {
            Rule::Hosts(pointer, hosts) => match texts(pointer, arguments) {
                Ok(texts) => texts.iter().any(|text| !hosts.mentioned(text).is_empty()),
                Err(_) => true,
            },
            _ => true,
        }
    }

    /// Whether its entry applies to every call that the other one's applies to.
    pub(super) fn covers(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Rule::Hosts(pointer, hosts), Rule::Hosts(same, others)) => {
                pointer == same && hosts.include(others)
            }
            (Rule::Hosts(..), _) => false,
            _ => true,
        }
    }

    /// How many rows the rule's table has, where it has one.
    pub(super) fn rows(&self) -> Option<usize> {
        match &self.0 {
            Rule::Table(_, table) => Some(table.len()),
            Rule::Hosts(_, hosts) => Some(hosts.len()),
            _ => None,
        }
    }

    /// Whether an entry without a VM in the call does not apply, and so lets it pass.
    pub(super) fn may_not_apply(&self) -> bool {
        matches!(self.0, Rule::Hosts(..))
    }

    pub(super) fn resolve(&self, arguments: &Value) -> Result<Vec<String>, RuleProblem> {
        let mut vms = Names(Vec::new());
        match &self.0 {
            Rule::None => return Err(RuleProblem::NoRule),
            Rule::Fixed(vm) => vms.add(vm)?,
            Rule::Arg(pointer) => {
                for item in items(pointer, arguments)? {
                    let name = text(pointer, item)?.trim();
                    if name.is_empty() {
                        return Err(RuleProblem::Empty {
                            pointer: pointer.to_string(),
                        });
                    }
                    if name.chars().nth(MAX_NAME).is_some() {
                        return Err(RuleProblem::NotText {
                            pointer: pointer.to_string(),
                            found: found(item),
                        });
                    }
                    vms.add(name)?;
                }
            }
            Rule::Regex(pointer, regex) => {
                for item in items(pointer, arguments)? {
                    find(pointer, regex, item, &mut vms)?;
                }
            }
            Rule::Table(pointer, table) => {
                for item in items(pointer, arguments)? {
                    let problem = |found| RuleProblem::NotInTable {
                        pointer: pointer.to_string(),
                        found,
                    };
                    let Some(key) = plain(item) else {
                        return Err(RuleProblem::NotText {
                            pointer: pointer.to_string(),
                            found: found(item),
                        });
                    };
                    for vm in table.get(key.trim()).ok_or_else(|| problem(found(item)))? {
                        vms.add(vm)?;
                    }
                }
            }
            Rule::Hosts(pointer, hosts) => {
                for text in texts(pointer, arguments)? {
                    for vm in hosts.mentioned(text) {
                        vms.add(vm)?;
                    }
                }
                if vms.0.is_empty() {
                    return Err(RuleProblem::NoHost {
                        pointer: pointer.to_string(),
                    });
                }
            }
        }
        Ok(vms.0)
    }
}

impl fmt::Display for VmRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Rule::None => f.write_str("none"),
            Rule::Fixed(vm) => write!(f, "always {vm}"),
            Rule::Arg(pointer) => write!(f, "argument {pointer}"),
            Rule::Regex(pointer, regex) => write!(f, "matches of {regex} in argument {pointer}"),
            Rule::Table(pointer, table) => {
                write!(f, "argument {pointer} by a table of {}", table.len())
            }
            Rule::Hosts(pointer, hosts) => {
                write!(
                    f,
                    "hosts that argument {pointer} mentions, of {}",
                    hosts.len()
                )
            }
        }
    }
}

/// Names of VMs, each once.
struct Names(Vec<String>);

impl Names {
    fn add(&mut self, name: &str) -> Result<(), RuleProblem> {
        if self.0.iter().any(|known| known == name) {
            return Ok(());
        }
        if self.0.len() == MAX_VMS {
            return Err(RuleProblem::TooMany);
        }
        self.0.push(name.to_owned());
        Ok(())
    }
}

/// The argument, or the members of the list that it is; at least one.
fn items<'a>(pointer: &Pointer, arguments: &'a Value) -> Result<&'a [Value], RuleProblem> {
    match pointer.get(arguments) {
        None => Err(RuleProblem::Missing {
            pointer: pointer.to_string(),
        }),
        Some(Value::Array(items)) if items.is_empty() => Err(RuleProblem::Empty {
            pointer: pointer.to_string(),
        }),
        Some(Value::Array(items)) => Ok(items),
        Some(value) => Ok(std::slice::from_ref(value)),
    }
}

fn text<'a>(pointer: &Pointer, value: &'a Value) -> Result<&'a str, RuleProblem> {
    match value {
        Value::String(text) if text.len() > MAX_TEXT => Err(RuleProblem::TooLong {
            pointer: pointer.to_string(),
        }),
        Value::String(text) => Ok(text),
        other => Err(RuleProblem::NotText {
            pointer: pointer.to_string(),
            found: found(other),
        }),
    }
}

fn find(
    pointer: &Pointer,
    regex: &Regex,
    item: &Value,
    vms: &mut Names,
) -> Result<(), RuleProblem> {
    let mut any = false;
    for (index, captures) in regex.captures_iter(text(pointer, item)?).enumerate() {
        if index == MAX_MATCHES {
            return Err(RuleProblem::TooLong {
                pointer: pointer.to_string(),
            });
        }
        if let Some(vm) = captures
            .name(GROUP)
            .map(|vm| vm.as_str().trim())
            .filter(|vm| !vm.is_empty())
        {
            if vm.chars().nth(MAX_NAME).is_some() {
                return Err(RuleProblem::TooLong {
                    pointer: pointer.to_string(),
                });
            }
            vms.add(vm)?;
            any = true;
        }
    }
    if any {
        Ok(())
    } else {
        Err(RuleProblem::NoMatch {
            pointer: pointer.to_string(),
            found: found(item),
        })
    }
}

/// Every text in the argument, at any depth: commands come as one text, as a list of words, or in parts.
fn texts<'a>(pointer: &Pointer, arguments: &'a Value) -> Result<Vec<&'a str>, RuleProblem> {
    fn collect<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
        match value {
            Value::String(text) => texts.push(text),
            Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
            Value::Object(members) => members.values().for_each(|member| collect(member, texts)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut texts = Vec::new();
    if let Some(value) = pointer.get(arguments) {
        collect(value, &mut texts);
    }
    if texts.iter().map(|text| text.len()).sum::<usize>() > MAX_TEXT {
        return Err(RuleProblem::TooLong {
            pointer: pointer.to_string(),
        });
    }
    Ok(texts)
}
