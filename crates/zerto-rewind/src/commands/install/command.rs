//! The command line of an installed hook: how it is written, and how ours is told from others.
use super::harness::{DEADLINE, Harness, POST_DEADLINE};
use serde_json::Value;
use std::path::Path;

const NAME: &str = "zerto-rewind";

/// A hook's command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HookCommand {
    pub program: String,
    pub arguments: Vec<String>,
    /// For the events before a call.
    pub before: bool,
}

impl HookCommand {
    pub fn new(harness: Harness, program: &str, config: &str, before: bool) -> Self {
        let deadline = if before { DEADLINE } else { POST_DEADLINE };
        let arguments = [
            "hook",
            "--format",
            harness.name(),
            "--deadline",
            &format!("{}s", deadline.as_secs()),
            // In the command line and not in the environment, which some harnesses clear.
            "--config",
            config,
        ];
        Self {
            program: program.to_owned(),
            arguments: arguments.map(str::to_owned).to_vec(),
            before,
        }
    }

    /// As one line for a POSIX shell.
    pub fn shell(&self) -> String {
        let words = std::iter::once(&self.program)
            .chain(&self.arguments)
            .map(String::as_str);
        shlex::try_join(words).unwrap_or_default()
    }
}

/// The words of a handler's command, in exec form (`args`) or as a line for a shell.
pub(super) fn words(handler: &Value) -> Option<Vec<String>> {
    let command = handler.get("command")?.as_str()?;
    let Some(arguments) = handler.get("args") else {
        return shlex::split(command);
    };
    let mut words = vec![command.to_owned()];
    for argument in arguments.as_array()? {
        words.push(argument.as_str()?.to_owned());
    }
    Some(words)
}

/// Whether `install` wrote this handler: the program, the format and the deadline together, and no key that it does not write.
pub(super) fn is_ours(harness: Harness, handler: &Value) -> bool {
    const KEYS: [&str; 7] = [
        "type",
        "command",
        "args",
        "timeout",
        "onFailure",
        "name",
        "failClosed",
    ];
    let known = handler
        .as_object()
        .is_some_and(|fields| fields.keys().all(|key| KEYS.contains(&key.as_str())));
    let Some(words) = words(handler).filter(|_| known) else {
        return false;
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    matches!(words.as_slice(), [program, "hook", "--format", format, "--deadline", _, "--config", _]
        if is_our_program(program) && *format == harness.name())
}

/// Whether `install` wrote this entry of an MCP server.
pub(super) fn is_our_server(entry: &Value) -> bool {
    const KEYS: [&str; 5] = ["type", "command", "args", "env", "tool_timeout_sec"];
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    entry
        .as_object()
        .is_some_and(|fields| fields.keys().all(|key| KEYS.contains(&key.as_str())))
        && text("command").is_some_and(is_our_program)
        && entry.get("args") == Some(&serde_json::json!(["mcp"]))
        && entry
            .get("env")
            .and_then(Value::as_object)
            .is_some_and(|env| env.keys().eq(["ZERTO_REWIND_CONFIG"]))
}

fn is_our_program(program: &str) -> bool {
    Path::new(program)
        .file_stem()
        .is_some_and(|name| name == NAME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ours_is_told_from_others() {
        let command = HookCommand::new(
            Harness::Codex,
            "/opt/my tools/zerto-rewind",
            "/c/it's.json",
            true,
        );
        let ours = json!({"type": "command", "command": command.shell(), "timeout": 7});
        assert!(is_ours(Harness::Codex, &ours), "{ours}");
        assert!(!is_ours(Harness::Gemini, &ours));
        let exec = json!({"command": command.program, "args": command.arguments});
        assert!(is_ours(Harness::Codex, &exec));
        for other in [
            json!({"command": "/opt/zerto-rewind hook --format codex"}),
            json!({"command": "/opt/other hook --format codex --deadline 1s --config x"}),
            json!({"command": command.shell(), "comment": "mine"}),
            json!({"command": "'"}),
            json!({"command": 7}),
            json!("zerto-rewind"),
        ] {
            assert!(!is_ours(Harness::Codex, &other), "{other}");
        }
    }

    #[test]
    fn our_server_is_told_from_others() {
        let ours = json!({"command": "/x/zerto-rewind", "args": ["mcp"], "env": {"ZERTO_REWIND_CONFIG": "/c"}});
        assert!(is_our_server(&ours));
        for (key, value) in [
            ("command", json!("docker")),
            ("args", json!([])),
            ("env", json!({})),
            ("cwd", json!("/")),
        ] {
            let mut other = ours.clone();
            other[key] = value;
            assert!(!is_our_server(&other), "{other}");
        }
    }
}
