//! What a tool answers: the structured content, and the same in a short text for a person.
use rewind_core::Error;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, InputRequiredResult};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{advice, text};

/// What a call comes to.
pub enum Reply {
    /// It is done.
    Done(Answer),
    /// A person is asked first, and the call comes again.
    Ask(Box<InputRequiredResult>),
}

impl Reply {
    /// As MCP has it.
    pub fn into_response(self) -> CallToolResponse {
        match self {
            Self::Done(answer) => answer.into_result().into(),
            Self::Ask(question) => (*question).into(),
        }
    }
}

/// A tool's result.
pub struct Answer {
    structured: Value,
    text: String,
    failed: bool,
}

impl Answer {
    /// `result` as structured content, and `text` as the text that says the same.
    pub fn new(result: &impl Serialize, text: String) -> Self {
        // The results of the domain are plain data with string keys: they always serialise.
        let structured = serde_json::to_value(result).unwrap_or_default();
        Self {
            structured,
            text,
            failed: false,
        }
    }

    /// A result that is there in part, with what is missing under `error`.
    pub fn failed(result: &impl Serialize, text: String) -> Self {
        Self {
            failed: true,
            ..Self::new(result, text)
        }
    }

    /// As MCP has it.
    pub fn into_result(self) -> CallToolResult {
        let content = vec![ContentBlock::text(self.text)];
        let mut result = match self.failed {
            true => CallToolResult::error(content),
            false => CallToolResult::success(content),
        };
        result.structured_content = Some(self.structured);
        result
    }
}

/// An expected failure as MCP has it: `isError`, with the error under `error`, which each tool's output schema
/// allows (some clients check the structured content of errors, too).
pub fn failure(error: &Error) -> CallToolResult {
    let error = advice::completed(error);
    let mut result = CallToolResult::error(vec![ContentBlock::text(text::error(&error))]);
    result.structured_content = Some(json!({ "error": error }));
    result
}
