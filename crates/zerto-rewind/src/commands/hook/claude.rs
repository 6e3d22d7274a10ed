//! Claude Code and Codex CLI, whose forms are the same but for what Codex does not accept. VS Code's agent hooks use this form, too.
//!
//! Claude Code blocks on exit 2 and on a JSON denial with exit 0; both are given. Codex reads standard error on exit 2, which must not
//! be empty, and takes a denial with any key that it does not know for a failed hook: the object stays minimal.
use super::{
    answer::{Answer, Output},
    event::{self, BUILTIN, Event, Reading, ToolUse},
    format::Format,
};
use rewind_core::enforce::Outcome;
use serde_json::{Map, Value, json};

const PERMISSION_REQUEST: &str = "PermissionRequest";

pub(super) fn parse(format: Format, event: &Map<String, Value>) -> Result<Event, String> {
    let outcome = match event::name(event) {
        "PreToolUse" => None,
        "PostToolUse" => Some(event::outcome(event::is_error(event.get("tool_response")))),
        "PostToolUseFailure" if event.get("is_interrupt") == Some(&Value::Bool(true)) => {
            Some(Outcome::Lost)
        }
        "PostToolUseFailure" => Some(Outcome::IsError),
        // Whatever else names a tool is taken for the moment before the call.
        _ if event.contains_key("tool_name") => None,
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
        readings: readings(name),
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

/// `mcp__<server>__<tool>`; a server of a plugin is `plugin_<plugin>_<server>`.
fn readings(name: &str) -> Vec<Reading> {
    let Some(joined) = name.strip_prefix("mcp__") else {
        return vec![Reading::new(Some(BUILTIN), name)];
    };
    let mut readings = event::cuts(joined, "__");
    let of_plugins: Vec<Reading> = readings
        .iter()
        .filter_map(|reading| {
            let server = reading.server.as_deref()?.strip_prefix("plugin_")?;
            Some(event::cuts(server, "_").into_iter().map(|cut| Reading {
                server: Some(cut.tool),
                tool: reading.tool.clone(),
            }))
        })
        .flatten()
        .collect();
    readings.extend(of_plugins);
    if readings.is_empty() {
        readings.push(Reading::new(None, joined));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tools_name_is_read_in_every_way() {
        let names = |name| -> Vec<(Option<String>, String)> {
            readings(name)
                .into_iter()
                .map(|reading| (reading.server, reading.tool))
                .collect()
        };
        let pair = |server: &str, tool: &str| (Some(server.to_owned()), tool.to_owned());
        assert_eq!(names("Bash"), [pair(BUILTIN, "Bash")]);
        assert_eq!(
            names("mcp__vmware__vm_delete"),
            [pair("vmware", "vm_delete")]
        );
        assert_eq!(
            names("mcp__plugin_acme_vm_ware__vm_delete"),
            [
                pair("plugin_acme_vm_ware", "vm_delete"),
                pair("vm_ware", "vm_delete"),
                pair("ware", "vm_delete"),
            ]
        );
        assert_eq!(names("mcp__odd"), [(None, "odd".to_owned())]);
    }
}
