//! Where each harness keeps its settings, and what is written there.
use super::command::HookCommand;
use crate::commands::hook::Format;
use jsonc_parser::cst::CstInputValue;
use std::{
    env,
    path::{Path, PathBuf},
    time::Duration,
};

/// How long a harness waits for the hook before a call, in seconds. A guard of ours gives up after 240 s by default.
const TIMEOUT: u64 = 300;
/// Our own deadline, before the harness's.
pub(super) const DEADLINE: Duration = Duration::from_secs(285);
/// Recording an outcome takes no ZVM.
const POST_TIMEOUT: u64 = 30;
pub(super) const POST_DEADLINE: Duration = Duration::from_secs(25);

/// A harness that `install` knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Harness {
    /// Claude Code.
    Claude,
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Cursor.
    Cursor,
}

/// Whose settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    User,
    Project,
}

/// One file and what belongs into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub path: PathBuf,
    pub hooks: bool,
    pub server: bool,
}

/// How the handlers of an event are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// `[{ matcher, hooks: [handler] }]`
    Groups { matcher: &'static str },
    /// `[handler]`
    Flat,
}

impl Harness {
    pub(super) fn format(self) -> Format {
        match self {
            Self::Claude => Format::Claude,
            Self::Codex => Format::Codex,
            Self::Gemini => Format::Gemini,
            Self::Cursor => Format::Cursor,
        }
    }

    /// As `--format` takes it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor",
        }
    }

    /// As people call it.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex CLI",
            Self::Gemini => "Gemini CLI",
            Self::Cursor => "Cursor",
        }
    }

    /// The files, `home` being the user's and `project` the current folder.
    pub(super) fn places(self, scope: Scope, home: &Path, project: &Path) -> Vec<Place> {
        let own = |variable: &str, name: &str| match env::var_os(variable) {
            Some(folder) if !folder.is_empty() => PathBuf::from(folder),
            _ => home.join(name),
        };
        let hooks = |path| Place {
            path,
            hooks: true,
            server: false,
        };
        let server = |path| Place {
            path,
            hooks: false,
            server: true,
        };
        let both = |path| Place {
            path,
            hooks: true,
            server: true,
        };
        match (self, scope) {
            (Self::Claude, Scope::User) => {
                let moved = env::var_os("CLAUDE_CONFIG_DIR").filter(|folder| !folder.is_empty());
                let beside = moved.map_or_else(|| home.to_owned(), PathBuf::from);
                vec![
                    hooks(own("CLAUDE_CONFIG_DIR", ".claude").join("settings.json")),
                    server(beside.join(".claude.json")),
                ]
            }
            (Self::Claude, Scope::Project) => vec![
                hooks(project.join(".claude/settings.json")),
                server(project.join(".mcp.json")),
            ],
            (Self::Codex, scope) => {
                let folder = match scope {
                    Scope::User => own("CODEX_HOME", ".codex"),
                    Scope::Project => project.join(".codex"),
                };
                vec![
                    hooks(folder.join("hooks.json")),
                    server(folder.join("config.toml")),
                ]
            }
            (Self::Gemini, Scope::User) => vec![both(home.join(".gemini/settings.json"))],
            (Self::Gemini, Scope::Project) => vec![both(project.join(".gemini/settings.json"))],
            (Self::Cursor, scope) => {
                let folder = match scope {
                    Scope::User => home.join(".cursor"),
                    Scope::Project => project.join(".cursor"),
                };
                vec![
                    hooks(folder.join("hooks.json")),
                    server(folder.join("mcp.json")),
                ]
            }
        }
    }

    /// The events before a call.
    pub(super) fn pre_events(self) -> &'static [&'static str] {
        match self {
            Self::Claude | Self::Codex => &["PreToolUse"],
            Self::Gemini => &["BeforeTool"],
            Self::Cursor => &["preToolUse", "beforeMCPExecution", "beforeShellExecution"],
        }
    }

    /// The events after it.
    pub(super) fn post_events(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["PostToolUse", "PostToolUseFailure"],
            Self::Codex => &["PostToolUse"],
            Self::Gemini => &["AfterTool"],
            Self::Cursor => &[
                "postToolUse",
                "postToolUseFailure",
                "afterMCPExecution",
                "afterShellExecution",
            ],
        }
    }

    /// Every tool reaches the hook: the catalog alone decides what is listed, and it may change.
    pub(super) fn layout(self) -> Layout {
        match self {
            Self::Claude => Layout::Groups { matcher: "*" },
            // For Codex `*` matched nothing in some versions; Gemini takes a regular expression.
            Self::Codex | Self::Gemini => Layout::Groups { matcher: ".*" },
            Self::Cursor => Layout::Flat,
        }
    }

    /// The handler of an event, with the harness's time-out above our deadline.
    pub(super) fn handler(self, command: &HookCommand) -> CstInputValue {
        let seconds = if command.before {
            TIMEOUT
        } else {
            POST_TIMEOUT
        };
        let text = |value: &str| CstInputValue::String(value.to_owned());
        let number = |value: u64| CstInputValue::Number(value.to_string());
        let fields = match self {
            Self::Claude => {
                let arguments = command.arguments.iter().map(|word| text(word)).collect();
                let mut fields = vec![
                    ("type", text("command")),
                    ("command", text(&command.program)),
                    ("args", CstInputValue::Array(arguments)),
                    ("timeout", number(seconds)),
                ];
                if command.before {
                    // From 2.1.295 on, a hook that is missing or timed out blocks, too; older versions pass over the key.
                    fields.push(("onFailure", text("block")));
                }
                fields
            }
            Self::Codex => vec![
                ("type", text("command")),
                ("command", text(&command.shell())),
                ("timeout", number(seconds)),
            ],
            Self::Gemini => vec![
                ("name", text("zerto-rewind")),
                ("type", text("command")),
                ("command", text(&command.shell())),
                ("timeout", number(seconds * 1000)),
            ],
            // Whether Cursor counts seconds or milliseconds is told differently; seconds are what most say. Where it were milliseconds,
            // Cursor would end the hook at once, and block by `failClosed`: seen at the first call, and on the safe side.
            Self::Cursor => {
                let mut fields = vec![
                    ("command", text(&command.shell())),
                    ("timeout", number(seconds)),
                ];
                if command.before {
                    fields.push(("failClosed", CstInputValue::Bool(true)));
                }
                fields
            }
        };
        object(fields)
    }

    /// The entry of our MCP server, where it is JSON.
    pub(super) fn server(self, program: &str, config: &str) -> CstInputValue {
        let text = |value: &str| CstInputValue::String(value.to_owned());
        let mut fields = Vec::new();
        if self == Self::Claude {
            fields.push(("type", text("stdio")));
        }
        fields.push(("command", text(program)));
        fields.push(("args", CstInputValue::Array(vec![text("mcp")])));
        fields.push(("env", object(vec![("ZERTO_REWIND_CONFIG", text(config))])));
        object(fields)
    }

    /// A call before which the hook has to deny.
    pub(super) fn proof_event(self, server: &str, tool: &str) -> serde_json::Value {
        use serde_json::json;
        match self {
            Self::Claude => json!({
                "hook_event_name": "PreToolUse", "session_id": "install", "tool_name": format!("mcp__{server}__{tool}"), "tool_input": {}
            }),
            Self::Codex => json!({
                "hook_event_name": "PreToolUse", "session_id": "install", "turn_id": "install",
                "tool_name": format!("mcp__{server}__{tool}"), "tool_input": {}
            }),
            Self::Gemini => json!({
                "hook_event_name": "BeforeTool", "session_id": "install", "tool_name": format!("mcp_{server}_{tool}"), "tool_input": {},
                "mcp_context": { "server_name": server, "tool_name": tool }
            }),
            Self::Cursor => json!({
                "hook_event_name": "beforeMCPExecution", "conversation_id": "install", "generation_id": "install",
                "tool_name": tool, "tool_input": "{}", "mcp_server_name": server
            }),
        }
    }

    /// What a person still has to do.
    pub(super) fn notes(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["Restart Claude Code, and see with /hooks that the hook is there."],
            Self::Codex => &[
                "Codex runs a new or changed hook only once you have trusted it: start it and say so in /hooks.",
                "Project settings count in trusted projects only.",
            ],
            Self::Gemini => {
                &["Restart Gemini CLI. It runs hooks of a project only in trusted folders."]
            }
            Self::Cursor => &[
                "Restart Cursor, and enable the server zerto-rewind under its MCP settings.",
                "Where Cursor also loads the hooks of Claude Code, one of the two installations is enough.",
            ],
        }
    }
}

pub(super) fn object(fields: Vec<(&str, CstInputValue)>) -> CstInputValue {
    CstInputValue::Object(
        fields
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
    )
}
