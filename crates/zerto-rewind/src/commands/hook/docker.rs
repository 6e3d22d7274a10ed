//! Interceptors of the Docker MCP gateway. Empty output forwards the call; any other output is the call's result in its place.
//!
//! `after` interceptors are told the result without the call that it belongs to: no outcome can be recorded from them.
use super::{
    answer::{Answer, Output},
    event::{self, Event, Reading, ToolUse},
    format::Format,
    names,
};
use serde_json::{Map, Value, json};

pub(super) fn parse(event: &Map<String, Value>) -> Result<Event, String> {
    let Some(params) = event.get("params") else {
        if event::carries_call(event) {
            return Err("the event carries a call of a tool, but no `params`".to_owned());
        }
        if event.contains_key("content") || event.contains_key("structuredContent") {
            return Ok(Event::Other);
        }
        return Err("the request has no `params`".to_owned());
    };
    let params = params.as_object().ok_or("`params` is no object")?;
    let name = event::tool_name(params, "name")?;
    Ok(Event::Pre(ToolUse {
        readings: readings(name),
        arguments: event::arguments(params, "arguments"),
        agent: Format::Docker.agent().to_owned(),
        session: None,
        correlation: None,
    }))
}

/// The gateway may put a server's name in front; it does not say so.
fn readings(name: &str) -> Vec<Reading> {
    let mut readings = vec![Reading::new(None, name)];
    for separator in [":", "__"] {
        readings.extend(event::cuts(name, separator));
    }
    readings.extend(names::joined(name));
    readings
}

pub(super) fn answer(answer: &Answer) -> Output {
    match answer {
        Answer::Neutral | Answer::Guarded(_) => Output::silent(),
        Answer::Deny(reason) => Output::json(&json!({
            "content": [{ "text": reason, "type": "text" }],
            "isError": true
        })),
    }
}
