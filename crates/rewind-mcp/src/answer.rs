//! What a tool answers: the structured content, and the same in a short text for a person.
use rewind_core::Error;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::{Value, json};

use crate::text;

/// A tool's success.
pub struct Answer {
    structured: Value,
    text: String,
}

impl Answer {
    /// `result` as structured content, and `text` as the text that says the same.
    pub fn new(result: &impl Serialize, text: String) -> Self {
        // The results of the domain are plain data with string keys: they always serialise.
        let structured = serde_json::to_value(result).unwrap_or_default();
        Self { structured, text }
    }

    /// As MCP has it.
    pub fn into_result(self) -> CallToolResult {
        let mut result = CallToolResult::success(vec![ContentBlock::text(self.text)]);
        result.structured_content = Some(self.structured);
        result
    }
}

/// An expected failure as MCP has it: `isError`, with the error under `error`, which each tool's output schema
/// allows (some clients check the structured content of errors, too).
pub fn failure(error: &Error) -> CallToolResult {
    let mut result = CallToolResult::error(vec![ContentBlock::text(text::error(error))]);
    result.structured_content = Some(json!({ "error": error }));
    result
}
