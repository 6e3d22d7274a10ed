//! What the prompts and resources say.
use rmcp::{
    ErrorData,
    model::{
        GetPromptRequestParams, GetPromptResponse, GetPromptResult, ReadResourceRequestParams,
        ReadResourceResponse, ReadResourceResult,
    },
};
use serde_json::{Value, json};

use crate::rounds;

/// A PNG of one red pixel.
pub const IMAGE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
/// A WAV without a sample.
pub const AUDIO: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

pub fn prompts() -> Value {
    let argument = |name: &str| json!({ "name": name, "description": format!("The {name} of the prompt"), "required": true });
    let prompt = |name: &str, arguments: Vec<Value>| json!({ "name": name, "description": format!("Prompt {name}"), "arguments": arguments });
    json!({ "prompts": [
        prompt("test_simple_prompt", vec![]),
        prompt("test_prompt_with_arguments", vec![argument("arg1"), argument("arg2")]),
        prompt("test_prompt_with_embedded_resource", vec![argument("resourceUri")]),
        prompt("test_prompt_with_image", vec![]),
        prompt("test_input_required_result_prompt", vec![]),
    ] })
}

pub fn prompt(request: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let argument = |name: &str| {
        let value = request
            .arguments
            .as_ref()
            .and_then(|arguments| arguments.get(name));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let text = |text: &str| json!({ "type": "text", "text": text });
    let contents = match request.name.as_str() {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            vec![text(&format!(
                "Prompt with arguments: arg1='{}', arg2='{}'",
                argument("arg1"),
                argument("arg2")
            ))]
        }
        "test_prompt_with_embedded_resource" => vec![
            json!({ "type": "resource", "resource": { "uri": argument("resourceUri"), "mimeType": "text/plain", "text": "Embedded resource content for testing." } }),
            text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image" => vec![
            json!({ "type": "image", "data": IMAGE, "mimeType": "image/png" }),
            text("Please analyze the image above."),
        ],
        "test_input_required_result_prompt" => {
            match rounds::answer(&request.input_responses, "user_context", "context") {
                Some(context) => vec![text(&format!("The context is {context}."))],
                None => {
                    return Ok(rounds::ask([rounds::elicit(
                        "user_context",
                        "What context should the prompt use?",
                        "context",
                    )])
                    .into());
                }
            }
        }
        name => {
            return Err(ErrorData::invalid_params(
                format!("no prompt {name:?}"),
                None,
            ));
        }
    };
    let messages: Vec<Value> = contents
        .into_iter()
        .map(|content| json!({ "role": "user", "content": content }))
        .collect();
    Ok(GetPromptResult::new(serde_json::from_value(messages.into()).unwrap()).into())
}

pub fn resources() -> Value {
    json!({ "resources": [
        { "uri": "test://static-text", "name": "static-text", "description": "A text", "mimeType": "text/plain" },
        { "uri": "test://static-binary", "name": "static-binary", "description": "A picture", "mimeType": "image/png" },
        { "uri": "test://watched-resource", "name": "watched-resource", "description": "One to subscribe to", "mimeType": "text/plain" },
    ] })
}

pub fn templates() -> Value {
    json!({ "resourceTemplates": [
        { "uriTemplate": "test://template/{id}/data", "name": "template", "description": "Data of an id", "mimeType": "application/json" },
    ] })
}

pub fn resource(request: &ReadResourceRequestParams) -> Result<ReadResourceResponse, ErrorData> {
    let uri = request.uri.as_str();
    let templated = uri
        .strip_prefix("test://template/")
        .and_then(|rest| rest.strip_suffix("/data"));
    let content = match (uri, templated) {
        ("test://static-text", _) => {
            json!({ "uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource." })
        }
        ("test://watched-resource", _) => {
            json!({ "uri": uri, "mimeType": "text/plain", "text": "Watch me." })
        }
        ("test://static-binary", _) => {
            json!({ "uri": uri, "mimeType": "image/png", "blob": IMAGE })
        }
        (_, Some(id)) => {
            let data =
                json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            json!({ "uri": uri, "mimeType": "application/json", "text": data.to_string() })
        }
        _ => {
            return Err(ErrorData::resource_not_found(
                "no such resource",
                Some(json!({ "uri": uri })),
            ));
        }
    };
    Ok(ReadResourceResult::new(serde_json::from_value(json!([content])).unwrap()).into())
}
