//! Claude Code and Codex CLI, whose forms are the same but for what Codex does not accept. Cursor runs hooks of Claude Code, too, with
//! its own names of tools.
//!
//! Claude Code blocks on exit 2 and on a JSON denial with exit 0; both are given. Codex reads standard error on exit 2, which must not
//! be empty, and takes a denial with any key that it does not know for a failed hook: the object stays minimal.
use super::{
    answer::{Answer, Output},
    event::{self, BUILTIN, Event, Reading, ToolUse},
    format::Format,
    names,
};
use rewind_core::enforce::Outcome;
use serde_json::{Map, Value, json};

const PERMISSION_REQUEST: &str = "PermissionRequest";

pub(super) fn parse(format: Format, event: &Map<String, Value>) -> Result<Event, String> {
    let mut familiar = true;
    let outcome = match event::name(event) {
        "PreToolUse" | PERMISSION_REQUEST => None,
        "PostToolUse" => Some(event::outcome(event::is_error(event.get("tool_response")))),
        "PostToolUseFailure" if event.get("is_interrupt") == Some(&Value::Bool(true)) => {
            Some(Outcome::Lost)
        }
        "PostToolUseFailure" => Some(Outcome::IsError),
        // Whatever else carries a call is taken for the moment before it.
        _ if event::carries_call(event) => {
            familiar = false;
            None
        }
        "" => return Err("the event has no `hook_event_name`".to_owned()),
        _ => return Ok(Event::Other),
    };
    let name = event::tool_name(event, "tool_name")?;
    let mut arguments = event::arguments(event, "tool_input");
    if format == Format::Codex
        && let Ok(Value::Object(arguments)) = &mut arguments
    {
        name_the_command(arguments);
    }
    let agent = match event::text(event, "agent_type") {
        Some(kind) => format!("{}/{kind}", format.agent()),
        None => format.agent().to_owned(),
    };
    let call = ToolUse {
        readings: event::doubted(readings(name), name, familiar),
        arguments,
        agent,
        session: event::text(event, "session_id").map(str::to_owned),
        correlation: event::text(event, "tool_use_id").map(str::to_owned),
    };
    Ok(match outcome {
        None => Event::Pre(call),
        Some(outcome) => Event::Post(call, outcome),
    })
}

/// A harness's own tool where the name is not a joined one.
fn readings(name: &str) -> Vec<Reading> {
    let readings = names::joined(name);
    if readings.is_empty() {
        return vec![Reading::new(Some(BUILTIN), name)];
    }
    readings
}

/// Some builds of Codex call a shell tool's command `cmd`. Entries are written for `command`.
fn name_the_command(arguments: &mut Map<String, Value>) {
    if !arguments.contains_key("command")
        && let Some(command) = arguments.get("cmd").cloned()
    {
        arguments.insert("command".to_owned(), command);
    }
}

pub(super) fn answer(event_name: &str, answer: &Answer) -> Output {
    match answer {
        Answer::Neutral => Output::silent(),
        Answer::Guarded(note) if event_name == "PreToolUse" => Output::json(&json!({
            "hookSpecificOutput": { "additionalContext": note, "hookEventName": "PreToolUse" }
        })),
        Answer::Guarded(_) => Output::silent(),
        // Exit 2 does nothing here: only the decision counts.
        Answer::Deny(reason) if event_name == PERMISSION_REQUEST => Output::json(&json!({
            "hookSpecificOutput": {
                "decision": { "behavior": "deny", "message": reason },
                "hookEventName": PERMISSION_REQUEST
            }
        })),
        Answer::Deny(reason) => Output::json(&json!({
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": reason
            }
        }))
        .and_exit_2(reason),
    }
}
