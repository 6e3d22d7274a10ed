//! GitHub Copilot CLI and cloud agent. An event has no name: what came out of the call tells that it is over. A denial is JSON with
//! exit 0; a non-zero exit counts as an error of the hook.
use super::{
    answer::{Answer, Output},
    event::{self, BUILTIN, Event, Reading, ToolUse},
    format::Format,
    names,
};
use rewind_core::enforce::Outcome;
use serde_json::{Map, Value, json};

pub(super) fn parse(event: &Map<String, Value>) -> Result<Event, String> {
    let name = event::tool_name(event, "toolName")?;
    let call = ToolUse {
        readings: readings(name),
        arguments: event::arguments(event, "toolArgs"),
        agent: Format::Copilot.agent().to_owned(),
        session: event::text(event, "sessionId").map(str::to_owned),
        correlation: event::text(event, "toolCallId").map(str::to_owned),
    };
    let told = |key: &str| event.get(key).filter(|value| !value.is_null());
    let outcome = match told("toolResult") {
        Some(result) => match result.get("resultType").and_then(Value::as_str) {
            Some("success") => Outcome::Ok,
            Some("denied" | "rejected") => Outcome::NotForwarded,
            _ => Outcome::IsError,
        },
        None if told("error").is_some() => Outcome::IsError,
        None => return Ok(Event::Pre(call)),
    };
    Ok(Event::Post(call, outcome))
}

/// Tools of a server are `<server>-<tool>` in the CLI and `<server>/<tool>` in the cloud agent. Its own tools have neither sign.
fn readings(name: &str) -> Vec<Reading> {
    let mut readings = event::cuts(name, "/");
    readings.extend(event::cuts(name, "-"));
    readings.push(Reading::new(Some(BUILTIN), name));
    readings.extend(names::joined(name));
    readings
}

pub(super) fn answer(answer: &Answer) -> Output {
    match answer {
        Answer::Neutral | Answer::Guarded(_) => Output::silent(),
        Answer::Deny(reason) => Output::json(&json!({
            "permissionDecision": "deny",
            "permissionDecisionReason": reason
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_stands_before_its_tool() {
        assert!(
            readings("my-vmware-vm_delete").contains(&Reading::new(Some("my-vmware"), "vm_delete"))
        );
        assert!(readings("vmware/vm_delete").contains(&Reading::new(Some("vmware"), "vm_delete")));
        assert_eq!(readings("bash"), [Reading::new(Some(BUILTIN), "bash")]);
    }
}
