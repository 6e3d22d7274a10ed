//! A harness's event, normalised: which call it is about, and whether the call is still to come.
use super::{Format, claude, copilot, cursor, docker, fields::cannot_be_read, gemini};
use rewind_core::enforce::Outcome;
use rewind_mcp::proxy::unambiguous;
use serde_json::{Map, Value};

/// The server under which a harness's own tools are listed.
pub const BUILTIN: &str = "builtin";

/// No tool has a longer name: the protocol allows 128 characters, harnesses put a server's name in front.
const MAX_NAME: usize = 512;
/// How many readings of one name are looked at.
const MAX_READINGS: usize = 32;

/// What an event says.
#[derive(Debug)]
pub(super) enum Event {
    /// A tool is about to be called.
    Pre(ToolUse),
    /// A tool was called, with this outcome.
    Post(ToolUse, Outcome),
    /// Something else: a session began, a prompt was sent, …
    Other,
}

/// One call of a tool, as a harness tells it.
#[derive(Debug)]
pub(super) struct ToolUse {
    /// Server and tool, the likeliest reading first, at least one. A joined name such as `mcp__a__b__c` has several, and an entry that
    /// matches any of them holds the call.
    pub readings: Vec<Reading>,
    /// The arguments, or why they cannot be read.
    pub arguments: Result<Value, String>,
    /// Who calls, for the tag.
    pub agent: String,
    /// The harness's id of the session.
    pub session: Option<String>,
    /// The harness's id of this call, the same before and after it.
    pub correlation: Option<String>,
}

/// One way to read a tool's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    /// None while unknown: then every entry's `server` matches.
    pub server: Option<String>,
    /// The tool's own name.
    pub tool: String,
}

impl Reading {
    pub fn new(server: Option<&str>, tool: &str) -> Self {
        Self {
            server: server.map(str::to_owned),
            tool: tool.to_owned(),
        }
    }
}

/// Parses the event of this harness.
pub(super) fn parse(format: Format, event: &Map<String, Value>) -> Result<Event, String> {
    match format {
        Format::Claude | Format::Codex => claude::parse(format, event),
        Format::Gemini => gemini::parse(event),
        Format::Cursor => cursor::parse(event),
        Format::Copilot => copilot::parse(event),
        Format::Docker => docker::parse(event),
    }
}

/// The name of the event, where the harness gives one.
pub(super) fn name(event: &Map<String, Value>) -> &str {
    text(event, "hook_event_name").unwrap_or_default()
}

pub(super) fn text<'a>(event: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    event
        .get(key)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
}

/// Names that only Cursor gives to events about a call.
pub(super) const OF_CURSOR: [&str; 7] = [
    "preToolUse",
    "postToolUse",
    "postToolUseFailure",
    "beforeMCPExecution",
    "afterMCPExecution",
    "beforeShellExecution",
    "afterShellExecution",
];

/// Whether an event carries the call of a tool in the form of any harness, however it writes the words.
pub(super) fn carries_call(event: &Map<String, Value>) -> bool {
    const BEFORE: [&str; 5] = [
        "pretooluse",
        "beforetool",
        "beforemcpexecution",
        "beforeshellexecution",
        "permissionrequest",
    ];
    let before = |(key, value): (&String, &Value)| {
        plain(key) == "hookeventname"
            && value
                .as_str()
                .is_some_and(|name| BEFORE.contains(&plain(name).as_str()))
    };
    event.keys().any(|key| is_name(key) || is_input(key))
        || event.iter().any(before)
        || event
            .get("params")
            .is_some_and(|params| params.get("name").is_some())
}

fn is_name(key: &str) -> bool {
    plain(key) == "toolname"
}

fn is_input(key: &str) -> bool {
    ["toolinput", "toolargs", "toolarguments"].contains(&plain(key).as_str())
}

/// A word without case and what joins its parts.
fn plain(word: &str) -> String {
    word.chars()
        .filter(|c| !matches!(c, '_' | '-' | ' '))
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

/// The readings, and, where the event is not a `familiar` one, also the name as that of any server's tool.
pub(super) fn doubted(mut readings: Vec<Reading>, name: &str, familiar: bool) -> Vec<Reading> {
    if !familiar {
        readings.push(Reading::new(None, name));
    }
    readings
}

/// Refuses an event that says in another member of the same meaning something else than in `key`.
fn said_once(
    event: &Map<String, Value>,
    key: &str,
    means: impl Fn(&str) -> bool,
) -> Result<(), String> {
    let said = event.get(key);
    match event
        .iter()
        .find(|(other, value)| *other != key && means(other) && Some(*value) != said)
    {
        Some((other, _)) => Err(format!(
            "the event says in `{}` something else than in `{key}`",
            other.escape_debug()
        )),
        None => Ok(()),
    }
}

/// The tool's name. An event about a tool that names none cannot be judged.
pub(super) fn tool_name<'a>(event: &'a Map<String, Value>, key: &str) -> Result<&'a str, String> {
    said_once(event, key, |other| {
        is_name(other) || plain(other) == plain(key)
    })?;
    match text(event, key) {
        Some(name) if name.len() <= MAX_NAME => Ok(name),
        Some(_) => Err(format!(
            "the event's `{key}` is longer than {MAX_NAME} bytes"
        )),
        None => Err(format!(
            "the event names no tool: `{key}` is missing. Next: See that --format is that of the harness."
        )),
    }
}

/// Arguments as an object, or as a text that holds one: harnesses differ, and some did both over time. Left out means none.
pub(super) fn arguments(event: &Map<String, Value>, key: &str) -> Result<Value, String> {
    said_once(event, key, |other| {
        is_input(other) || plain(other) == plain(key)
    })?;
    match event.get(key) {
        None | Some(Value::Null) => Ok(Value::Object(Map::new())),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(Value::Object(Map::new())),
        Some(Value::String(text)) => {
            unambiguous(text).map_err(|reason| match serde_json::from_str::<Value>(text) {
                Ok(_) => cannot_be_read(key, &reason),
                Err(error) => format!("the event's `{key}` is no JSON: {error}"),
            })
        }
        Some(value) => Ok(value.clone()),
    }
}

/// Every way to cut a joined name in two at `separator`, the shortest server first.
pub(super) fn cuts(joined: &str, separator: &str) -> Vec<Reading> {
    joined
        .match_indices(separator)
        .filter_map(|(at, _)| {
            let (server, rest) = joined.split_at_checked(at)?;
            let tool = rest.strip_prefix(separator)?;
            (!server.is_empty() && !tool.is_empty()).then(|| Reading::new(Some(server), tool))
        })
        .take(MAX_READINGS)
        .collect()
}

/// Whether an MCP result says of itself that it is an error.
pub(super) fn is_error(result: Option<&Value>) -> bool {
    result.is_some_and(|result| {
        ["isError", "is_error"]
            .iter()
            .any(|key| result.get(key) == Some(&Value::Bool(true)))
    })
}

pub(super) fn outcome(failed: bool) -> Outcome {
    if failed {
        Outcome::IsError
    } else {
        Outcome::Ok
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn joined_names_are_cut_everywhere() {
        let pairs = |joined, separator| -> Vec<(String, String)> {
            cuts(joined, separator)
                .into_iter()
                .map(|reading| (reading.server.unwrap(), reading.tool))
                .collect()
        };
        assert_eq!(
            pairs("a__b__c", "__"),
            [("a".into(), "b__c".into()), ("a__b".into(), "c".into())]
        );
        assert_eq!(pairs("__x", "__"), []);
        assert_eq!(pairs("x__", "__"), []);
        assert_eq!(pairs("ü_ö", "_"), [("ü".into(), "ö".into())]);
        assert!(cuts(&"_a".repeat(500), "_").len() <= MAX_READINGS);
    }

    #[test]
    fn arguments_may_be_an_object_or_a_text_of_one() {
        let event = |value: Value| json!({ "a": value }).as_object().unwrap().clone();
        let vm = json!({"vm": "x"});
        assert_eq!(arguments(&event(vm.clone()), "a").unwrap(), vm);
        assert_eq!(arguments(&event(json!("{\"vm\":\"x\"}")), "a").unwrap(), vm);
        for none in [Value::Null, json!(""), json!(" ")] {
            assert_eq!(arguments(&event(none), "a").unwrap(), json!({}));
        }
        assert_eq!(arguments(&Map::new(), "a").unwrap(), json!({}));
        assert!(arguments(&event(json!("{\"vm\":")), "a").is_err());
    }
}
