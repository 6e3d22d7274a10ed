//! A whole conversation with a server that speaks every kind of message: what the client gets is the same, byte for byte,
//! direct and through the proxy. Where calls are guarded, it differs in the receipts and in the progress before.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]
mod proxy_support;

use std::{
    io::{BufRead, BufReader, Write},
    process::{ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
};

use proxy_support::{example, script::SOON};
use rewind_mcp::proxy::RECEIPT_KEY;
use serde_json::{Value, json};

struct Conversation {
    input: ChildStdin,
    lines: Receiver<String>,
    said: Vec<Vec<String>>,
    meta: Value,
}

impl Conversation {
    fn with(command: &mut Command) -> Self {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let input = process.stdin.take().unwrap();
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines() {
                if send.send(line.unwrap()).is_err() {
                    break;
                }
            }
            process.wait().unwrap();
        });
        Self {
            input,
            lines,
            said: vec![],
            meta: json!({}),
        }
    }

    fn send(&mut self, message: &Value) {
        self.input
            .write_all(format!("{message}\n").as_bytes())
            .unwrap();
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request, answers what the server asks meanwhile, and notes what it says until `count` more messages after
    /// the answer have come.
    fn request(&mut self, method: &str, params: Value, count: usize) -> Value {
        let id = format!("{}-{method}", self.said.len());
        let mut params = params;
        let meta = params["_meta"].take();
        params["_meta"] = merged(&self.meta, &meta);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let (mut lines, mut answer, mut after) = (vec![], Value::Null, count);
        while answer.is_null() || after > 0 {
            let line = self
                .lines
                .recv_timeout(SOON)
                .unwrap_or_else(|_| panic!("{method} {params}: {lines:#?}"));
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id && message.get("method").is_none() {
                answer = message;
            } else if message.get("id").is_some() {
                self.send(
                    &json!({ "jsonrpc": "2.0", "id": message["id"], "result": reply(&message) }),
                );
            } else if message["method"] != "notifications/progress"
                && message["method"] != "notifications/message"
            {
                after -= 1;
            }
            lines.push(line);
        }
        // A notification may come before or after an answer.
        lines.sort();
        self.said.push(lines);
        answer
    }

    /// Waits for a message that answers nothing.
    fn message(&mut self) {
        let line = self.lines.recv_timeout(SOON).unwrap();
        self.said.push(vec![line]);
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
            0,
        )
    }
}

fn merged(one: &Value, other: &Value) -> Value {
    let mut merged = one.as_object().unwrap().clone();
    merged.extend(other.as_object().cloned().unwrap_or_default());
    merged.into()
}

fn reply(request: &Value) -> Value {
    match request["method"].as_str().unwrap() {
        "sampling/createMessage" => {
            json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "sampled" } })
        }
        "elicitation/create" => {
            json!({ "action": "accept", "content": { "username": "u", "email": "e" } })
        }
        other => panic!("{other}"),
    }
}

/// Through initialize, sessions and requests of the server.
fn legacy(to: &mut Conversation) {
    to.request(
        "initialize",
        json!({ "protocolVersion": "2025-11-25", "capabilities": { "sampling": {}, "elicitation": {}, "roots": {} },
            "clientInfo": { "name": "transcript", "version": "1" } }),
        0,
    );
    to.notify("notifications/initialized", json!({}));
    for method in [
        "ping",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "no/such",
    ] {
        to.request(method, json!({}), 0);
    }
    for tool in [
        "test_simple_text",
        "test_image_content",
        "test_multiple_content_types",
        "test_error_handling",
        "test_tool_with_logging",
        "test_elicitation_sep1034_defaults",
        "no_such_tool",
    ] {
        to.call(tool, json!({}));
    }
    to.call("test_sampling", json!({ "prompt": "say something" }));
    to.call("test_elicitation", json!({ "message": "who are you?" }));
    let progress =
        json!({ "name": "test_tool_with_progress", "_meta": { "progressToken": "p\u{e9}" } });
    to.request("tools/call", progress, 0);
    to.request(
        "tools/call",
        json!({ "name": "test_trigger_tool_change" }),
        1,
    );
    to.request(
        "prompts/get",
        json!({ "name": "test_prompt_with_image" }),
        0,
    );
    to.request(
        "resources/read",
        json!({ "uri": "test://template/7/data" }),
        0,
    );
    to.request("resources/read", json!({ "uri": "test://none" }), 0);
    to.request(
        "resources/subscribe",
        json!({ "uri": "test://watched-resource" }),
        0,
    );
    let complete = json!({ "ref": { "type": "ref/prompt", "name": "test_prompt_with_arguments" }, "argument": { "name": "arg1", "value": "par" } });
    to.request("completion/complete", complete, 0);
    // Cancelled: the server owes no answer, and this one gives none.
    to.send(&json!({ "jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": { "name": "test_cancellation" } }));
    to.notify("notifications/cancelled", json!({ "requestId": "c" }));
    to.request("ping", json!({}), 0);
}

/// Through discovery, questions in results, tasks and subscriptions.
fn modern(to: &mut Conversation) {
    to.meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "transcript", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {
            "elicitation": {}, "sampling": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } },
    });
    for method in [
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "no/such",
    ] {
        to.request(method, json!({}), 0);
    }
    to.call("test_simple_text", json!({}));
    to.call("test_error_handling", json!({}));
    let progress = json!({ "name": "test_tool_with_progress", "_meta": { "progressToken": 7 } });
    to.request("tools/call", progress, 0);
    let name = json!({ "action": "accept", "content": { "name": "N" } });
    to.call("test_input_required_result_elicitation", json!({}));
    to.request(
        "tools/call",
        json!({ "name": "test_input_required_result_elicitation", "arguments": {}, "inputResponses": { "user_name": name } }),
        0,
    );
    let asked = to.call("test_input_required_result_multi_round", json!({}));
    let state = &asked["result"]["requestState"];
    assert!(state.is_string(), "{asked}");
    to.request(
        "tools/call",
        json!({ "name": "test_input_required_result_multi_round", "arguments": {}, "inputResponses": { "step1": name }, "requestState": state }),
        0,
    );
    let started = to.call("confirm_delete", json!({}));
    let task = &started["result"]["taskId"];
    // It asks in a moment: how often it is looked at until then is no part of the transcript.
    while to.request("tasks/get", json!({ "taskId": task }), 0)["result"]["status"] == "working" {
        to.said.pop();
    }
    to.request("tasks/cancel", json!({ "taskId": task }), 0);
    // A subscription: acknowledged, told, and ended by the client.
    to.send(
        &json!({ "jsonrpc": "2.0", "id": "s", "method": "subscriptions/listen", "params": {
        "notifications": { "toolsListChanged": true }, "_meta": to.meta } }),
    );
    to.message();
    to.request(
        "tools/call",
        json!({ "name": "test_trigger_tool_change" }),
        1,
    );
    to.notify("notifications/cancelled", json!({ "requestId": "s" }));
    to.call("test_simple_text", json!({}));
}

/// What is new in each run.
fn without_chance(line: &str) -> String {
    let mut message: Value = serde_json::from_str(line).unwrap();
    let mut found = false;
    for field in ["taskId", "createdAt", "lastUpdatedAt", "requestState"] {
        if let Some(value) = message["result"].get_mut(field) {
            *value = "…".into();
            found = true;
        }
    }
    if found {
        message.to_string()
    } else {
        line.into()
    }
}

fn transcript(command: &mut Command, conversation: fn(&mut Conversation)) -> Vec<Vec<String>> {
    let mut to = Conversation::with(command);
    conversation(&mut to);
    let normal = |lines: &Vec<String>| lines.iter().map(|line| without_chance(line)).collect();
    to.said.iter().map(normal).collect()
}

fn direct() -> Command {
    Command::new(example("mcp-fixture"))
}

fn proxied() -> Command {
    let mut command = Command::new(example("scripted-proxy"));
    command.arg(example("mcp-fixture"));
    command
}

#[test]
fn unlisted_traffic_is_the_same_to_the_byte() {
    for conversation in [legacy, modern] {
        let expected = transcript(&mut direct(), conversation);
        assert!(expected.len() > 15);
        assert_eq!(transcript(&mut proxied(), conversation), expected);
    }
}

#[test]
fn guarded_traffic_differs_in_receipts_and_progress_alone() {
    for conversation in [legacy, modern] {
        let expected = transcript(&mut direct(), conversation);
        let guarded = transcript(proxied().env("SCRIPT_LISTED", "test_"), conversation);
        assert_eq!(guarded.len(), expected.len());
        let mut receipts = 0;
        for (guarded, expected) in guarded.iter().zip(&expected) {
            let guarded: Vec<Value> = guarded
                .iter()
                .map(|line| serde_json::from_str(line).unwrap())
                .map(|mut message: Value| {
                    let result = message.get_mut("result");
                    let meta = result.and_then(|result| result.get_mut("_meta")?.as_object_mut());
                    if let Some(meta) = meta
                        && meta.remove(RECEIPT_KEY).is_some()
                    {
                        receipts += 1;
                        if meta.is_empty() {
                            message["result"].as_object_mut().unwrap().remove("_meta");
                        }
                    }
                    message
                })
                .collect();
            let expected: Vec<Value> = expected
                .iter()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            for message in &guarded {
                assert!(
                    expected.contains(message),
                    "{message}\nis not among\n{expected:#?}"
                );
            }
            assert_eq!(guarded.len(), expected.len());
        }
        assert!(receipts > 7, "{receipts}");
    }
}
