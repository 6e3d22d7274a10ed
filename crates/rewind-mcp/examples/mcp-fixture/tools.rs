//! The tools that answer by themselves or talk to the client meanwhile.
use std::time::Duration;

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
        CreateMessageRequestParams, ElicitRequestParams, LoggingLevel,
        LoggingMessageNotificationParam, ProgressNotificationParam, SamplingMessage, Tool,
    },
    service::RequestContext,
};
use serde_json::{Value, json};

use crate::content::{AUDIO, IMAGE};

const PAUSE: Duration = Duration::from_millis(50);

/// A result of one text.
pub fn text(text: &str) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn error(text: impl std::fmt::Display) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text.to_string())])
}

/// All tools, in one order.
pub fn all() -> Vec<Tool> {
    let plain = [
        "test_simple_text",
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_tool_with_logging",
        "test_logging_tool",
        "test_error_handling",
        "test_tool_with_progress",
        "test_cancellation",
        "test_elicitation_sep1034_defaults",
        "test_elicitation_sep1330_enums",
        "test_reconnection",
        "test_missing_capability",
        "test_streaming_elicitation",
        "test_trigger_tool_change",
        "test_trigger_prompt_change",
        "test_input_required_result_elicitation",
        "test_input_required_result_sampling",
        "test_input_required_result_list_roots",
        "test_input_required_result_request_state",
        "test_input_required_result_tampered_state",
        "test_input_required_result_multiple_inputs",
        "test_input_required_result_multi_round",
        "test_input_required_result_capabilities",
        "failing_job",
        "protocol_error_job",
        "confirm_delete",
        "multi_input",
        "test_tool_with_task",
    ];
    let mut tools: Vec<Value> = plain
        .into_iter()
        .map(|name| tool(name, json!({})))
        .collect();
    tools.extend([
        tool("test_sampling", json!({ "prompt": { "type": "string" } })),
        tool("test_elicitation", json!({ "message": { "type": "string" } })),
        tool("greet", json!({ "name": { "type": "string" } })),
        tool("slow_compute", json!({ "seconds": { "type": "number" } })),
        tool("test_header", json!({ "region": { "type": "string", "x-mcp-header": "Region" } })),
        json!({ "name": "json_schema_2020_12_tool", "description": "Tool with JSON Schema 2020-12 features", "inputSchema": rich_schema() }),
    ]);
    serde_json::from_value(tools.into()).unwrap()
}

fn tool(name: &str, properties: Value) -> Value {
    json!({ "name": name, "description": format!("Tool {name}"), "inputSchema": { "type": "object", "properties": properties } })
}

fn rich_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
        } },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

/// The tools that answer by themselves.
pub async fn call(
    request: &CallToolRequestParams,
    capabilities: &ClientCapabilities,
    context: &RequestContext<RoleServer>,
) -> Option<Result<CallToolResponse, ErrorData>> {
    let argument = |name: &str| {
        request
            .arguments
            .as_ref()
            .and_then(|arguments| arguments.get(name)?.as_str())
            .unwrap_or_default()
    };
    let image = || ContentBlock::image(IMAGE, "image/png");
    let resource = |uri: &str, kind: &str, text: &str| -> ContentBlock {
        serde_json::from_value(json!({ "type": "resource", "resource": { "uri": uri, "mimeType": kind, "text": text } })).unwrap()
    };
    let result = match request.name.as_ref() {
        "test_simple_text" => text("This is a simple text response for testing."),
        "test_image_content" => CallToolResult::success(vec![image()]),
        "test_audio_content" => {
            let audio = serde_json::from_value(
                json!({ "type": "audio", "data": AUDIO, "mimeType": "audio/wav" }),
            );
            CallToolResult::success(vec![audio.unwrap()])
        }
        "test_embedded_resource" => CallToolResult::success(vec![resource(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content.",
        )]),
        "test_multiple_content_types" => CallToolResult::success(vec![
            ContentBlock::text("Multiple content types test:"),
            image(),
            resource(
                "test://mixed-content-resource",
                "application/json",
                r#"{"test":"data","value":123}"#,
            ),
        ]),
        "test_error_handling" => error("This tool intentionally returns an error for testing"),
        "test_tool_with_logging" => {
            for message in [
                "Tool execution started",
                "Tool processing data",
                "Tool execution completed",
            ] {
                log(context, message).await;
                tokio::time::sleep(PAUSE).await;
            }
            text("logged")
        }
        "test_logging_tool" => {
            if context.meta.log_level().is_some() {
                log(context, "as the request wants it").await;
            }
            text("logged as wanted")
        }
        "test_tool_with_progress" => {
            for progress in [0.0, 50.0, 100.0] {
                if let Some(token) = context.meta.get_progress_token() {
                    let progress =
                        ProgressNotificationParam::new(token, progress).with_total(100.0);
                    context.peer.notify_progress(progress).await.unwrap();
                }
                tokio::time::sleep(PAUSE).await;
            }
            text("all of it")
        }
        "test_cancellation" => {
            tokio::select! {
                () = context.ct.cancelled() => error("cancelled"),
                () = tokio::time::sleep(Duration::from_secs(60)) => text("not cancelled"),
            }
        }
        "test_reconnection" => {
            tokio::time::sleep(PAUSE).await;
            text("still there")
        }
        "test_missing_capability" if capabilities.sampling.is_none() => {
            let required = ClientCapabilities::builder().enable_sampling().build();
            return Some(Err(ErrorData::missing_required_client_capability(required)));
        }
        "test_missing_capability" => text("the capability is there"),
        "test_header" => text(&format!("region {}", argument("region"))),
        "json_schema_2020_12_tool" => text(&format!("Hello, {}!", argument("name"))),
        "test_sampling" => sampling(argument("prompt"), context).await,
        "test_elicitation" => {
            let schema = json!({ "type": "object", "required": ["username", "email"], "properties": {
                "username": { "type": "string", "description": "User's response" },
                "email": { "type": "string", "description": "User's email address" },
            } });
            elicitation("User response", argument("message"), schema, context).await
        }
        "test_elicitation_sep1034_defaults" => {
            elicitation("Elicitation completed", "Defaults", defaults(), context).await
        }
        "test_elicitation_sep1330_enums" => {
            elicitation("Elicitation completed", "Enums", enums(), context).await
        }
        _ => return None,
    };
    Some(Ok(result.into()))
}

async fn log(context: &RequestContext<RoleServer>, message: &str) {
    let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(message))
        .with_logger("fixture");
    context.peer.notify_logging_message(message).await.unwrap();
}

async fn sampling(prompt: &str, context: &RequestContext<RoleServer>) -> CallToolResult {
    let request = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(prompt)], 100);
    match context.peer.create_message(request).await {
        Ok(answer) => {
            let answer = json!(answer);
            let content = if answer["content"].is_array() {
                &answer["content"][0]
            } else {
                &answer["content"]
            };
            text(&format!(
                "LLM response: {}",
                content["text"].as_str().unwrap_or_default()
            ))
        }
        Err(why) => error(why),
    }
}

async fn elicitation(
    says: &str,
    message: &str,
    schema: Value,
    context: &RequestContext<RoleServer>,
) -> CallToolResult {
    let request = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.into(),
        requested_schema: serde_json::from_value(schema).unwrap(),
    };
    match context.peer.create_elicitation(request).await {
        Ok(answer) => {
            let answer = json!(answer);
            text(&format!(
                "{says}: action={}, content={}",
                answer["action"].as_str().unwrap(),
                answer["content"]
            ))
        }
        Err(why) => error(why),
    }
}

fn defaults() -> Value {
    json!({ "type": "object", "properties": {
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    } })
}

fn enums() -> Value {
    let titled = |titles: [&str; 3]| {
        let choice = |(i, title)| json!({ "const": format!("value{}", i + 1), "title": title });
        titles
            .into_iter()
            .enumerate()
            .map(choice)
            .collect::<Vec<_>>()
    };
    json!({ "type": "object", "properties": {
        "untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
        "titledSingle": { "type": "string", "oneOf": titled(["First Option", "Second Option", "Third Option"]) },
        "legacyEnum": { "type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"] },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": ["option1", "option2", "option3"] } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled(["First Choice", "Second Choice", "Third Choice"]) } },
    } })
}
