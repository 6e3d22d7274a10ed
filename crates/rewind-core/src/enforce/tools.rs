//! Listed tools as their servers describe them, and whether they are still what their catalog entries were written for.
//!
//! Name and input schema decide how an entry is followed: where they changed, calls are refused until a person accepts it. What only
//! describes a tool is warned about: it is what an agent goes by.
use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::ToolStanding;
use crate::{
    Error, ErrorCode,
    state::{
        State, digest,
        tools::{Definition, Remembered},
    },
    text,
};

/// What only describes a tool.
const DESCRIBING: [&str; 4] = ["annotations", "description", "outputSchema", "title"];
/// A longer text is known by its digest alone.
const KEPT_MAX_LEN: usize = 256 * 1024;
const SHOWN_MAX_LEN: usize = 100;
const SUMMARY_MAX_LEN: usize = 500;

/// A listed tool that is described in another way than was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedTool {
    /// The server's name, where it is known.
    pub server: Option<String>,
    /// The tool's name.
    pub tool: String,
    /// The input schema, where it changed: calls are refused.
    pub schema: Option<Change>,
    /// Title, description, annotations and output schema, where one of them changed: a warning.
    pub described: Option<Change>,
    seen: Definition,
}

/// What was accepted, and what was seen last, as JSON over several lines with its keys in order. None: too long to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What was accepted.
    pub accepted: Option<String>,
    /// What was seen last.
    pub seen: Option<String>,
}

/// A tool as its server described it just now.
pub(super) struct Seen(Definition);

impl Seen {
    /// None where it is no description of a tool.
    pub fn read(server: Option<&str>, definition: &Value) -> Option<Self> {
        let tool = definition.get("name")?.as_str()?;
        let schema = definition.get("inputSchema").unwrap_or(&Value::Null);
        let described: Map<String, Value> = DESCRIBING
            .into_iter()
            .filter_map(|key| Some((key.to_owned(), definition.get(key)?.clone())))
            .collect();
        let described = Value::Object(described);
        Some(Self(Definition {
            server: server.unwrap_or_default().to_owned(),
            tool: tool.to_owned(),
            schema_sha256: digest(&json!([tool, schema])),
            described_sha256: digest(&described),
            schema: kept(schema),
            described: kept(&described),
        }))
    }

    pub fn tool(&self) -> &str {
        &self.0.tool
    }

    pub fn schema_sha256(&self) -> &str {
        &self.0.schema_sha256
    }

    /// Remembers it, and says how it stands. Where that can't be told, it counts as changed.
    pub fn stand(&self, state: &State) -> ToolStanding {
        let accepted = match state.tool_seen(&self.0) {
            Ok(accepted) => accepted,
            Err(error) => {
                return ToolStanding::Changed(format!("whether it changed can't be told: {error}"));
            }
        };
        let changed = changed(&Remembered {
            accepted,
            seen: self.0.clone(),
        });
        match changed {
            None => ToolStanding::Fine,
            Some(ChangedTool {
                schema: Some(change),
                ..
            }) => ToolStanding::Changed(format!(
                "its input schema is not the one that was accepted ({})",
                change.summary()
            )),
            Some(_) => ToolStanding::Described(format!(
                "the description of the tool {} is not the one that was accepted: see `zerto-rewind catalog accept`",
                text::display(self.tool(), SHOWN_MAX_LEN)
            )),
        }
    }
}

/// Refuses the call of a tool whose name or input schema is not what was accepted. `seen` is the digest of what the caller saw itself;
/// without it, what anyone saw last counts.
pub(crate) fn check(remembered: &[Remembered], seen: Option<&str>) -> Result<(), Error> {
    let changed = remembered
        .iter()
        .find(|tool| seen.unwrap_or(&tool.seen.schema_sha256) != tool.accepted.schema_sha256);
    let Some(Remembered { accepted, .. }) = changed else {
        return Ok(());
    };
    let tool = text::display(&accepted.tool, SHOWN_MAX_LEN);
    let of = match text::display(&accepted.server, SHOWN_MAX_LEN) {
        server if server.is_empty() => String::new(),
        server => format!(" of {server}"),
    };
    Err(Error::new(
        ErrorCode::Denied,
        format!("the input schema of {tool}{of} is not the one that its catalog entry was written for"),
    )
    .with_next(
        "Have a person look at the tool and at its catalog entry, and accept it with `zerto-rewind catalog accept`. The call was not made.",
    ))
}

/// See [`Rewind::changed_tools`](crate::Rewind::changed_tools).
pub(crate) fn changed_tools(state: &State) -> Result<Vec<ChangedTool>, Error> {
    Ok(state
        .tools_remembered()?
        .iter()
        .filter_map(changed)
        .collect())
}

/// See [`Rewind::accept_tool`](crate::Rewind::accept_tool).
pub(crate) fn accept_tool(state: &State, tool: &ChangedTool, by: &str) -> Result<(), Error> {
    Ok(state.tool_accepted(&tool.seen, &text::display(by, SHOWN_MAX_LEN))?)
}

fn changed(tool: &Remembered) -> Option<ChangedTool> {
    let Remembered { accepted, seen } = tool;
    if accepted.same_as(seen) {
        return None;
    }
    let change = |before: &Option<String>, after: &Option<String>| Change {
        accepted: before.clone(),
        seen: after.clone(),
    };
    let name = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    Some(ChangedTool {
        server: name(&seen.server),
        tool: seen.tool.clone(),
        schema: (accepted.schema_sha256 != seen.schema_sha256)
            .then(|| change(&accepted.schema, &seen.schema)),
        described: (accepted.described_sha256 != seen.described_sha256)
            .then(|| change(&accepted.described, &seen.described)),
        seen: seen.clone(),
    })
}

impl Change {
    /// Which properties of the schema came, went and changed, in one line.
    fn summary(&self) -> String {
        let read = |text: &Option<String>| -> Option<Value> {
            serde_json::from_str(text.as_deref()?).ok()
        };
        let (Some(before), Some(after)) = (read(&self.accepted), read(&self.seen)) else {
            return "too large to be compared in detail".to_owned();
        };
        let none = Map::new();
        let properties = |schema: &'_ Value| -> Map<String, Value> {
            schema
                .get("properties")
                .and_then(Value::as_object)
                .unwrap_or(&none)
                .clone()
        };
        let (old, new) = (properties(&before), properties(&after));
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        let mut differences: Vec<String> = names
            .into_iter()
            .filter_map(|name| {
                let what = match (old.get(name), new.get(name)) {
                    (None, _) => "new",
                    (_, None) => "gone",
                    (before, after) if before != after => "changed",
                    _ => return None,
                };
                Some(format!("`{}` {what}", text::display(name, SHOWN_MAX_LEN)))
            })
            .collect();
        if differences.is_empty() {
            differences.push("not in its properties".to_owned());
        }
        text::display(&differences.join(", "), SUMMARY_MAX_LEN)
    }
}

/// JSON over several lines with its keys in order, unless it is too long.
fn kept(value: &Value) -> Option<String> {
    let text = serde_json::to_string_pretty(&sorted(value)).ok()?;
    (text.len() <= KEPT_MAX_LEN).then_some(text)
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            let members = members.into_iter();
            Value::Object(
                members
                    .map(|(key, value)| (key.clone(), sorted(value)))
                    .collect(),
            )
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        scalar => scalar.clone(),
    }
}
