//! The harnesses whose events are understood, and how an event shows which one sent it.
use super::event;
use serde_json::{Map, Value};

/// A harness, by its form of events and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Claude Code.
    Claude,
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Cursor.
    Cursor,
    /// GitHub Copilot CLI and cloud agent.
    Copilot,
    /// Interceptors of the Docker MCP gateway.
    Docker,
}

impl Format {
    /// The agent's name in a tag, where the event says nothing better.
    pub(super) const fn agent(self) -> &'static str {
        match self {
            Self::Claude => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini-cli",
            Self::Cursor => "cursor",
            Self::Copilot => "copilot",
            Self::Docker => "docker-mcp",
        }
    }

    /// Who sent this event. None: no harness that we know.
    pub(super) fn recognise(event: &Map<String, Value>) -> Option<Self> {
        if let Some(name) = event.get("hook_event_name").and_then(Value::as_str) {
            let cursor = event.contains_key("cursor_version")
                || (event.contains_key("conversation_id") && event.contains_key("generation_id"));
            return match name {
                _ if cursor => Some(Self::Cursor),
                "BeforeTool" | "AfterTool" => Some(Self::Gemini),
                _ if event.contains_key("turn_id") => Some(Self::Codex),
                _ if name.starts_with(|first: char| first.is_ascii_uppercase()) => {
                    Some(Self::Claude)
                }
                _ if event::OF_CURSOR.contains(&name) => Some(Self::Cursor),
                // The answer to a call has to be in a form that its harness honours: none is guessed.
                _ if event::carries_call(event) => None,
                _ if name.starts_with(|first: char| first.is_ascii_lowercase()) => {
                    Some(Self::Cursor)
                }
                _ => None,
            };
        }
        if event.contains_key("toolName") {
            Some(Self::Copilot)
        } else if event.get("params").is_some_and(Value::is_object) {
            Some(Self::Docker)
        } else {
            None
        }
    }
}
