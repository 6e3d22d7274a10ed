//! Cursor. Its answer is the JSON alone, with exit 0: `{}` decides nothing and leaves Cursor's own approval in place, while `allow`
//! would skip it, and silence is a failure for a hook with `failClosed`. Versions before 2.0 read the messages in camel case.
//!
//! One call of an MCP server fires `preToolUse` and `beforeMCPExecution`, one shell command `preToolUse` and `beforeShellExecution`. The
//! same arguments come out of both, so that both share one pin.
use super::{
    answer::{Answer, Output},
    event::{self, BUILTIN, Event, Reading, ToolUse},
    format::Format,
    names,
};
use rewind_core::enforce::Outcome;
use serde_json::{Map, Value, json};

/// As Cursor's `preToolUse` calls it.
const SHELL: &str = "Shell";

pub(super) fn parse(event: &Map<String, Value>) -> Result<Event, String> {
    let name = event::name(event);
    let mut familiar = true;
    let outcome = match name {
        "afterMCPExecution" => Some(event::outcome(failed(event.get("result_json")))),
        "afterShellExecution" => Some(Outcome::Ok),
        "postToolUse" | "PostToolUse" => {
            Some(event::outcome(event::is_error(event.get("tool_output"))))
        }
        "postToolUseFailure" | "PostToolUseFailure" => {
            Some(match event::text(event, "failure_type") {
                Some("permission_denied") => Outcome::NotForwarded,
                _ => Outcome::IsError,
            })
        }
        "beforeMCPExecution" | "beforeShellExecution" | "preToolUse" | "PreToolUse" => None,
        // Whatever else carries a call is taken for the moment before it.
        _ if event::carries_call(event) => {
            familiar = false;
            None
        }
        "" => return Err("the event has no `hook_event_name`".to_owned()),
        _ => return Ok(Event::Other),
    };
    let (readings, arguments) = if name.ends_with("ShellExecution") {
        let command = event::text(event, "command").ok_or("the event has no `command`")?;
        (
            vec![Reading::new(Some(BUILTIN), SHELL)],
            Ok(json!({ "command": command })),
        )
    } else {
        let tool = event::tool_name(event, "tool_name")?;
        let readings = readings(tool, name.ends_with("MCPExecution"), event);
        let arguments = event::arguments(event, "tool_input").map(|arguments| {
            match arguments.get("command") {
                // `beforeShellExecution` tells the command alone.
                Some(command) if tool == SHELL => json!({ "command": command }),
                _ => arguments,
            }
        });
        (event::doubted(readings, tool, familiar), arguments)
    };
    let call = ToolUse {
        readings,
        arguments,
        agent: Format::Cursor.agent().to_owned(),
        session: event::text(event, "conversation_id").map(str::to_owned),
        correlation: event::text(event, "tool_use_id").map(str::to_owned),
    };
    Ok(match outcome {
        None => Event::Pre(call),
        Some(outcome) => Event::Post(call, outcome),
    })
}

/// A bare name, `MCP:tool` or `MCP:server:tool`, with the server beside it in newer versions.
fn readings(tool: &str, of_a_server: bool, event: &Map<String, Value>) -> Vec<Reading> {
    let server = ["mcp_server_name", "server_name"]
        .iter()
        .find_map(|key| event::text(event, key));
    let Some(named) = tool.strip_prefix("MCP:").map(str::trim_start) else {
        let mut readings = vec![if of_a_server || server.is_some() {
            Reading::new(server, tool)
        } else {
            Reading::new(Some(BUILTIN), tool)
        }];
        // Names of other harnesses: their events may come here by mistake.
        readings.extend(names::joined(tool));
        return readings;
    };
    let mut readings = event::cuts(named, ":");
    readings.push(Reading::new(server, named));
    readings
}

fn failed(result: Option<&Value>) -> bool {
    match result {
        Some(Value::String(text)) => {
            serde_json::from_str(text).is_ok_and(|result: Value| event::is_error(Some(&result)))
        }
        other => event::is_error(other),
    }
}

pub(super) fn answer(answer: &Answer) -> Output {
    match answer {
        Answer::Neutral | Answer::Guarded(_) => Output::json(&json!({})),
        Answer::Deny(reason) => Output::json(&json!({
            "agentMessage": reason,
            "agent_message": reason,
            "permission": "deny",
            "userMessage": reason,
            "user_message": reason
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_taken_from_wherever_it_is_told() {
        let with = |event: Value| event.as_object().unwrap().clone();
        let named = with(json!({"mcp_server_name": "vmware"}));
        let none = Map::new();
        assert_eq!(
            readings("vm_delete", true, &named),
            [Reading::new(Some("vmware"), "vm_delete")]
        );
        assert_eq!(
            readings("vm_delete", true, &none),
            [Reading::new(None, "vm_delete")]
        );
        assert_eq!(
            readings("Shell", false, &none),
            [Reading::new(Some(BUILTIN), "Shell")]
        );
        assert!(
            readings("MCP:vmware:vm_delete", false, &none)
                .contains(&Reading::new(Some("vmware"), "vm_delete"))
        );
        assert_eq!(
            readings("MCP:vm_delete", false, &none),
            [Reading::new(None, "vm_delete")]
        );
    }
}
