//! Gemini CLI. It reads standard output on exit 0 alone; on exit 2 standard error is the reason, and any other exit lets the tool run.
use super::{
    answer::{Answer, Output},
    event::{self, BUILTIN, Event, Reading, ToolUse},
    format::Format,
    names,
};
use serde_json::{Map, Value, json};

pub(super) fn parse(event: &Map<String, Value>) -> Result<Event, String> {
    let mut familiar = true;
    let after = match event::name(event) {
        "BeforeTool" => false,
        "AfterTool" => true,
        // Whatever else carries a call is taken for the moment before it.
        _ if event::carries_call(event) => {
            familiar = false;
            false
        }
        "" => return Err("the event has no `hook_event_name`".to_owned()),
        _ => return Ok(Event::Other),
    };
    let name = event::tool_name(event, "tool_name")?;
    let call = ToolUse {
        readings: event::doubted(readings(name, event.get("mcp_context")), name, familiar),
        arguments: event::arguments(event, "tool_input"),
        agent: Format::Gemini.agent().to_owned(),
        session: event::text(event, "session_id").map(str::to_owned),
        correlation: None,
    };
    if !after {
        return Ok(Event::Pre(call));
    }
    let response = event.get("tool_response");
    let failed = event::is_error(response)
        || response
            .and_then(|response| response.get("error"))
            .is_some_and(|error| !error.is_null());
    Ok(Event::Post(call, event::outcome(failed)))
}

/// `mcp_<server>_<tool>`, told apart by `mcp_context` where it is there.
fn readings(name: &str, context: Option<&Value>) -> Vec<Reading> {
    let told = |key: &str| {
        context
            .and_then(|context| context.get(key))
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let joined = name.strip_prefix("mcp_");
    if let Some(server) = told("server_name") {
        let tool = told("tool_name")
            .or_else(|| joined?.strip_prefix(server)?.strip_prefix('_'))
            .unwrap_or(name);
        return vec![Reading::new(Some(server), tool)];
    }
    let mut readings = match joined {
        Some(joined) => event::cuts(joined, "_"),
        // Older builds joined with two underscores, and only where two servers had the same tool.
        None => event::cuts(name, "__"),
    };
    if joined.is_none() {
        readings.insert(0, Reading::new(Some(BUILTIN), name));
    } else if readings.is_empty() {
        readings.push(Reading::new(None, name));
    }
    // Names of other harnesses: their events may come here by mistake.
    if name.starts_with("mcp__") || joined.is_none() {
        readings.extend(names::joined(name));
    }
    readings
}

pub(super) fn answer(answer: &Answer) -> Output {
    match answer {
        Answer::Neutral => Output::json(&json!({})),
        Answer::Guarded(note) => Output::json(&json!({ "systemMessage": note })),
        Answer::Deny(reason) => {
            Output::json(&json!({ "decision": "deny", "reason": reason })).and_exit_2(reason)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_context_tells_server_and_tool_apart() {
        let name = "mcp_my_server_vm_delete";
        let context = json!({"server_name": "my_server"});
        assert_eq!(
            readings(name, Some(&context)),
            [Reading::new(Some("my_server"), "vm_delete")]
        );
        let without = readings(name, None);
        assert!(without.contains(&Reading::new(Some("my_server"), "vm_delete")));
        assert!(without.contains(&Reading::new(Some("my"), "server_vm_delete")));
        assert_eq!(
            readings("run_shell_command", None),
            [Reading::new(Some(BUILTIN), "run_shell_command")]
        );
    }
}
