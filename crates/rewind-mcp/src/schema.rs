//! JSON Schemas of arguments and results, from the types, in a form that every client reads.
//!
//! No `$schema` (older validators refuse a dialect they don't know), no number formats of Rust's, and no `null` in
//! arguments: an argument that is `null` is as good as absent, but nobody should send it.
use std::sync::Arc;

use rmcp::model::JsonObject;
use schemars::{
    JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, transform::RecursiveTransform,
};
use serde_json::{Value, json};

/// What `T` accepts.
pub fn input<T: JsonSchema>() -> Arc<JsonObject> {
    let mut settings = settings();
    settings.inline_subschemas = true;
    settings = settings.with_transform(RecursiveTransform(without_null));
    Arc::new(root::<T>(&mut settings.into_generator()))
}

/// What a tool with the result `T` answers: `T`, or an error under `error`.
pub fn output<T: JsonSchema>() -> Arc<JsonObject> {
    let settings = settings()
        .for_serialize()
        .with_transform(RecursiveTransform(single_types));
    let mut schema = root::<T>(&mut settings.into_generator());
    let failed = json!({ "required": ["error"] });
    match schema.remove("oneOf") {
        // An enum: the error is one shape more.
        Some(Value::Array(mut shapes)) => {
            shapes.push(failed);
            schema.insert("anyOf".into(), Value::Array(shapes));
            schema.insert("properties".into(), json!({ "error": error() }));
        }
        // A struct: its members or the error.
        _ => {
            let required = schema.remove("required").unwrap_or_else(|| json!([]));
            let alternatives = json!([{ "required": required }, failed]);
            schema.insert("anyOf".into(), alternatives);
            if let Some(Value::Object(properties)) = schema.get_mut("properties") {
                properties.insert("error".into(), error());
            }
        }
    }
    schema.insert("type".into(), json!("object"));
    Arc::new(schema)
}

/// The domain's error. Written down here, since the one made from the type lists every code in every tool, and the
/// codes grow.
fn error() -> Value {
    json!({
        "type": "object",
        "description": "Only where isError is true.",
        "properties": {
            "code": { "type": "string", "description": "A stable name for what went wrong, in snake_case." },
            "message": { "type": "string", "description": "What happened, to what." },
            "next": { "type": "string", "description": "What to do next." },
            "candidates": {
                "type": "array",
                "description": "What it could have been, where that is not clear.",
                "items": { "type": "string" }
            },
            "plan_id": { "type": "string", "description": "The plan that waits for a human's decision." },
            "done": {
                "type": "array",
                "description": "What had already been done, by `kind`.",
                "items": { "type": "object", "required": ["kind"] }
            }
        },
        "required": ["code", "message", "next"]
    })
}

fn settings() -> SchemaSettings {
    let mut settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(simplify));
    settings.meta_schema = None;
    settings
}

/// The schema of `T` with the definitions it needs, without the name and the docs of the Rust type.
fn root<T: JsonSchema>(generator: &mut SchemaGenerator) -> JsonObject {
    let schema = generator.root_schema_for::<T>().to_value();
    let Value::Object(mut schema) = schema else {
        return JsonObject::new();
    };
    schema.remove("title");
    schema.remove("description");
    schema
}

/// `uint64`, `double` and the like say nothing to a client, and some warn about them. A description is one line.
fn simplify(schema: &mut Schema) {
    let numeric = |kind: &Value| {
        let names = kind
            .as_array()
            .map_or(std::slice::from_ref(kind), Vec::as_slice);
        names
            .iter()
            .any(|name| name == "integer" || name == "number")
    };
    if schema.get("type").is_some_and(numeric) {
        schema.remove("format");
    }
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.replace('\n', " ");
    }
}

/// `["string", "null"]` becomes `"string"`, and no value that is listed is null either.
fn without_null(schema: &mut Schema) {
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|one| !one.is_null());
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|one| one != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            schema.insert("type".into(), one);
        }
    }
}

/// `["string", "null"]` becomes a choice of two schemas: not every client reads a list of types.
fn single_types(schema: &mut Schema) {
    if let Some(Value::Array(types)) = schema.get("type") {
        let choice = types.iter().map(|one| json!({ "type": one })).collect();
        schema.remove("type");
        schema.insert("anyOf".into(), Value::Array(choice));
    }
}
