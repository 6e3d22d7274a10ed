//! A call's arguments, held against the schema that the tool publishes.
use rewind_core::{Error, ErrorCode};
use rmcp::model::{JsonObject, Tool};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The longest name of an argument that a message repeats.
const NAME_SHOWN: usize = 40;

/// Reads the arguments of a call of `tool`. What they break is what its input schema says: one rule, published and kept.
///
/// # Errors
/// `invalid_argument`, with the argument and what it should have been.
pub fn read<T: DeserializeOwned>(tool: &Tool, arguments: JsonObject) -> Result<T, Error> {
    // Models fill in what they leave out: null, or an empty text or list where an argument is optional, is as good as absent.
    let left_out = |name: &str, value: &Value| {
        let empty = value == "" || value.as_array().is_some_and(Vec::is_empty);
        value.is_null() || (empty && !required(tool).any(|other| other == name))
    };
    let given: JsonObject = arguments
        .into_iter()
        .filter(|(name, value)| !left_out(name, value))
        .collect();
    let problem = unknown_argument(tool, &given)
        .or_else(|| missing_argument(tool, &given))
        .or_else(|| wrong_value(tool, &given));
    if let Some(problem) = problem {
        return Err(invalid(tool, problem));
    }
    serde_json::from_value(Value::Object(given)).map_err(|error| invalid(tool, error.to_string()))
}

fn invalid(tool: &Tool, problem: String) -> Error {
    Error::new(
        ErrorCode::InvalidArgument,
        format!("{}: {problem}", tool.name),
    )
}

fn properties(tool: &Tool) -> Option<&JsonObject> {
    tool.input_schema.get("properties")?.as_object()
}

fn required(tool: &Tool) -> impl Iterator<Item = &str> {
    let names = tool.input_schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

fn unknown_argument(tool: &Tool, given: &JsonObject) -> Option<String> {
    let known = properties(tool)?;
    let name = given.keys().find(|name| !known.contains_key(*name))?;
    let nearest = known
        .keys()
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    let hint = match nearest {
        Some((_, candidate)) => format!("did you mean `{candidate}`?"),
        None => {
            let names: Vec<_> = known.keys().map(|name| format!("`{name}`")).collect();
            format!("it takes {}", names.join(", "))
        }
    };
    // The name comes from outside: bounded, and quoted so that no control character stays one.
    let shown: String = name.chars().take(NAME_SHOWN).collect();
    Some(format!("there is no argument {shown:?}; {hint}"))
}

fn missing_argument(tool: &Tool, given: &JsonObject) -> Option<String> {
    let name = required(tool).find(|name| !given.contains_key(*name))?;
    Some(format!("the argument `{name}` is missing"))
}

fn wrong_value(tool: &Tool, given: &JsonObject) -> Option<String> {
    let known = properties(tool)?;
    given.iter().find_map(|(name, value)| {
        let problem = mismatch(known.get(name)?, value)?;
        Some(format!("the argument `{name}` {problem}"))
    })
}

/// How `value` breaks `schema`; of JSON Schema the part that our own schemas use.
fn mismatch(schema: &Value, value: &Value) -> Option<String> {
    let expected = schema.get("type")?.as_str()?;
    let bound = |keyword| schema.get(keyword).and_then(Value::as_u64);
    let fits = match expected {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        _ => true,
    };
    if !fits {
        return Some(format!(
            "has to be of type {expected}, and is {}",
            kind(value)
        ));
    }
    if let Some(text) = value.as_str() {
        let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
        if bound("minLength").is_some_and(|least| length < least) {
            return Some("is empty".into());
        }
        if let Some(most) = bound("maxLength").filter(|most| length > *most) {
            return Some(format!("has {length} characters; {most} are allowed"));
        }
    }
    if let Some(items) = value.as_array() {
        let length = u64::try_from(items.len()).unwrap_or(u64::MAX);
        if let Some(most) = bound("maxItems").filter(|most| length > *most) {
            return Some(format!("has {length} items; {most} are allowed"));
        }
        let schema = schema.get("items")?;
        let problem = items.iter().find_map(|item| mismatch(schema, item));
        return problem.map(|problem| format!("has an item that {problem}"));
    }
    if let Some(number) = integer(value) {
        let (least, most) = (
            bound("minimum").map(i128::from),
            bound("maximum").map(i128::from),
        );
        let outside =
            least.is_some_and(|least| number < least) || most.is_some_and(|most| number > most);
        if let (true, Some(least), Some(most)) = (outside, least, most) {
            return Some(format!("is {number}; it has to be from {least} to {most}"));
        }
    }
    None
}

fn integer(value: &Value) -> Option<i128> {
    let negative = value.as_i64().map(i128::from);
    negative.or_else(|| value.as_u64().map(i128::from))
}

/// What a value is, in words.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_u64() || number.is_i64() => "an integer",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
