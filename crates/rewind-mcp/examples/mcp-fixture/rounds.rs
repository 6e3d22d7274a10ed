//! Multi-round-trip requests: what the server asks back, and what it makes of the answers.
use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, CallToolResponse, ClientCapabilities, InputRequest,
        InputRequiredResult, InputResponses, RequestStateCodec,
    },
};
use serde_json::{Value, json};

use crate::tools::text;

type Question = (&'static str, Value);

/// Asks for one string.
pub fn elicit(key: &'static str, message: &str, field: &str) -> Question {
    let schema = json!({ "type": "object", "properties": { field: { "type": "string" } }, "required": [field] });
    (
        key,
        json!({ "method": "elicitation/create", "params": { "message": message, "requestedSchema": schema } }),
    )
}

fn sample(key: &'static str, prompt: &str, tokens: u32) -> Question {
    let messages = json!([{ "role": "user", "content": { "type": "text", "text": prompt } }]);
    (
        key,
        json!({ "method": "sampling/createMessage", "params": { "messages": messages, "maxTokens": tokens } }),
    )
}

fn roots(key: &'static str) -> Question {
    (key, json!({ "method": "roots/list", "params": {} }))
}

fn confirm(key: &'static str) -> Question {
    let schema = json!({ "type": "object", "properties": { "ok": { "type": "boolean" } }, "required": ["ok"] });
    (
        key,
        json!({ "method": "elicitation/create", "params": { "message": "Please confirm", "requestedSchema": schema } }),
    )
}

fn requests(
    questions: impl IntoIterator<Item = Question>,
) -> std::collections::BTreeMap<String, InputRequest> {
    questions
        .into_iter()
        .map(|(key, request)| (key.to_owned(), serde_json::from_value(request).unwrap()))
        .collect()
}

/// Asks, without a state.
pub fn ask(questions: impl IntoIterator<Item = Question>) -> InputRequiredResult {
    InputRequiredResult::from_input_requests(requests(questions))
}

fn given<'a>(responses: &'a Option<InputResponses>, key: &str) -> Option<&'a Value> {
    responses.as_ref()?.get(key)
}

/// A string that a person has filled into a form.
pub fn answer(responses: &Option<InputResponses>, key: &str, field: &str) -> Option<String> {
    let answer = given(responses, key)?;
    (answer["action"] == "accept").then_some(())?;
    answer["content"][field].as_str().map(Into::into)
}

/// The tools that ask back.
pub fn call(
    request: &CallToolRequestParams,
    capabilities: &ClientCapabilities,
    codec: &RequestStateCodec,
) -> Option<Result<CallToolResponse, ErrorData>> {
    let given = |key| given(&request.input_responses, key);
    let answer = |key, field| answer(&request.input_responses, key, field);
    let with_state = |question: Vec<Question>, state: Value| {
        let state = codec.seal_json(&state).unwrap();
        Ok(InputRequiredResult::new(Some(requests(question)), Some(state)).into())
    };
    // A state that was not sealed here is refused, whatever it says.
    let state: Option<Value> = match request
        .request_state
        .as_deref()
        .map(|state| codec.open_json(state))
    {
        Some(Err(error)) => {
            return Some(Err(ErrorData::invalid_params(
                format!("requestState: {error}"),
                None,
            )));
        }
        Some(Ok(state)) => Some(state),
        None => None,
    };
    let name = || elicit("user_name", "What is your name?", "name");
    Some(match request.name.as_ref() {
        "test_input_required_result_elicitation" | "test_streaming_elicitation" => {
            match answer("user_name", "name") {
                Some(name) => Ok(text(&format!("Hello, {name}!")).into()),
                None => Ok(ask([name()]).into()),
            }
        }
        "test_input_required_result_sampling" => match given("capital_question") {
            Some(answer) => {
                Ok(text(&format!("The model said: {}", answer["content"]["text"])).into())
            }
            None => Ok(ask([sample(
                "capital_question",
                "What is the capital of France?",
                100,
            )])
            .into()),
        },
        "test_input_required_result_list_roots" => match given("client_roots") {
            Some(answer) => Ok(text(&format!("The roots are {}", answer["roots"])).into()),
            None => Ok(ask([roots("client_roots")]).into()),
        },
        "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => match (given("confirm"), &state) {
            (Some(_), Some(state)) if *state == json!("confirming") => Ok(text("state-ok").into()),
            _ => with_state(vec![confirm("confirm")], json!("confirming")),
        },
        "test_input_required_result_multiple_inputs" => {
            match (
                answer("user_name", "name"),
                given("greeting"),
                given("client_roots"),
                &state,
            ) {
                (Some(name), Some(_), Some(_), Some(_)) => {
                    Ok(text(&format!("Everything is there, {name}.")).into())
                }
                _ => with_state(
                    vec![
                        name(),
                        sample("greeting", "Generate a greeting", 50),
                        roots("client_roots"),
                    ],
                    json!("asking"),
                ),
            }
        }
        "test_input_required_result_multi_round" => {
            match (answer("step1", "name"), answer("step2", "color"), &state) {
                (_, Some(color), Some(state)) if state["name"].is_string() => Ok(text(&format!(
                    "{} likes {color}.",
                    state["name"].as_str().unwrap()
                ))
                .into()),
                (Some(name), _, Some(_)) => with_state(
                    vec![elicit(
                        "step2",
                        "Step 2: What is your favorite color?",
                        "color",
                    )],
                    json!({ "name": name }),
                ),
                _ => with_state(
                    vec![elicit("step1", "Step 1: What is your name?", "name")],
                    json!({}),
                ),
            }
        }
        "test_input_required_result_capabilities" => {
            let possible = [
                (
                    capabilities.sampling.is_some(),
                    sample("capital_question", "What is the capital of France?", 100),
                ),
                (capabilities.elicitation.is_some(), name()),
                (capabilities.roots.is_some(), roots("client_roots")),
            ];
            let questions: Vec<_> = possible
                .into_iter()
                .filter_map(|(can, question)| can.then_some(question))
                .collect();
            match (questions.is_empty(), &request.input_responses) {
                (false, None) => Ok(ask(questions).into()),
                _ => Ok(text("There is nothing to ask.").into()),
            }
        }
        _ => return None,
    })
}
