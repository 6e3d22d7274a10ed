//! How each harness reads what a hook says, by its own rules. `install` proves with it that a denial arrives.
use super::{Format, Output};
use serde_json::{Map, Value};

/// What a harness takes from a hook's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Understood {
    /// The call does not run.
    Denied,
    /// The hook has no opinion; the harness goes on as it would without it.
    Neutral,
    /// The hook wants the call to run without further questions.
    Allowed,
    /// The hook failed; most harnesses run the call.
    Failed,
}

impl Understood {
    /// What this harness takes from this output of a hook before a call.
    #[must_use]
    pub fn by(format: Format, output: &Output) -> Self {
        match format {
            Format::Claude => claude(output),
            Format::Codex => codex(output),
            Format::Gemini => gemini(output),
            Format::Cursor => cursor(output),
            Format::Copilot => copilot(output),
            Format::Docker => docker(output),
        }
    }
}

impl Output {
    /// The reason as text, once, whichever channels it is given on.
    pub(crate) fn reason(&self) -> String {
        const KEYS: [&str; 4] = [
            "user_message",
            "reason",
            "permissionDecisionReason",
            "message",
        ];
        let said = self.stderr.trim();
        if !said.is_empty() {
            return said.to_owned();
        }
        object(&self.stdout)
            .and_then(|object| {
                let found = KEYS.iter().find_map(|key| object.get(*key)?.as_str());
                found.map(str::to_owned)
            })
            .unwrap_or_else(|| self.stdout.trim().to_owned())
    }
}

fn object(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text.trim()).ok()
}

fn word<'a>(object: &'a Map<String, Value>, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn decision(word: &str) -> Understood {
    match word {
        "deny" | "block" => Understood::Denied,
        "allow" | "approve" => Understood::Allowed,
        "" => Understood::Neutral,
        _ => Understood::Failed,
    }
}

/// The answer to a request for permission, which has a form of its own, and what else stands in it.
fn permission(specific: &Map<String, Value>) -> Option<(Understood, impl Iterator<Item = &str>)> {
    if word(specific, "hookEventName") != "PermissionRequest" {
        return None;
    }
    let given = specific.get("decision").and_then(Value::as_object);
    let understood = given.map_or(Understood::Neutral, |it| decision(word(it, "behavior")));
    let inner = given.into_iter().flat_map(|it| it.keys());
    let outer = specific
        .keys()
        .filter(|key| !["hookEventName", "decision"].contains(&key.as_str()));
    let rest = inner.filter(|key| !["behavior", "message"].contains(&key.as_str()));
    Some((understood, rest.chain(outer).map(String::as_str)))
}

fn claude(output: &Output) -> Understood {
    if output.code == 2 {
        return Understood::Denied;
    }
    if output.code != 0 {
        return Understood::Failed;
    }
    if output.stdout.trim().is_empty() {
        return Understood::Neutral;
    }
    match object(&output.stdout) {
        None => Understood::Failed,
        Some(object) => match object.get("hookSpecificOutput").and_then(Value::as_object) {
            Some(specific) => match permission(specific) {
                Some((understood, _)) => understood,
                None => decision(word(specific, "permissionDecision")),
            },
            None => decision(word(&object, "decision")),
        },
    }
}

/// An object with a key too many, or a denial without a reason, is a failed hook.
fn codex(output: &Output) -> Understood {
    const KEYS: [&str; 4] = [
        "hookEventName",
        "permissionDecision",
        "permissionDecisionReason",
        "additionalContext",
    ];
    if output.code == 2 && !output.stderr.trim().is_empty() {
        return Understood::Denied;
    }
    if output.code != 0 {
        return Understood::Failed;
    }
    if output.stdout.trim().is_empty() {
        return Understood::Neutral;
    }
    let Some(object) = object(&output.stdout) else {
        return Understood::Failed;
    };
    let specific = object.get("hookSpecificOutput").and_then(Value::as_object);
    if let Some((understood, mut rest)) = specific.and_then(permission) {
        return match understood {
            _ if object.len() > 1 || rest.next().is_some() => Understood::Failed,
            understood => understood,
        };
    }
    match specific {
        Some(specific)
            if object.len() == 1 && specific.keys().all(|key| KEYS.contains(&key.as_str())) =>
        {
            let reasoned = !word(specific, "permissionDecisionReason").trim().is_empty();
            match decision(word(specific, "permissionDecision")) {
                Understood::Denied if reasoned => Understood::Denied,
                Understood::Neutral if !reasoned => Understood::Neutral,
                _ => Understood::Failed,
            }
        }
        _ => Understood::Failed,
    }
}

fn gemini(output: &Output) -> Understood {
    match output.code {
        0 if output.stdout.trim().is_empty() => Understood::Neutral,
        // Text that is no JSON is shown, and the tool runs.
        0 => object(&output.stdout).map_or(Understood::Allowed, |object| {
            decision(word(&object, "decision"))
        }),
        2 if !output.stderr.trim().is_empty() => Understood::Denied,
        _ => Understood::Failed,
    }
}

fn cursor(output: &Output) -> Understood {
    match output.code {
        0 => object(&output.stdout).map_or(Understood::Failed, |object| {
            decision(word(&object, "permission"))
        }),
        2 => Understood::Denied,
        _ => Understood::Failed,
    }
}

fn copilot(output: &Output) -> Understood {
    match output.code {
        0 if output.stdout.trim().is_empty() => Understood::Neutral,
        0 => object(&output.stdout).map_or(Understood::Failed, |object| {
            decision(word(&object, "permissionDecision"))
        }),
        _ => Understood::Failed,
    }
}

fn docker(output: &Output) -> Understood {
    match output.code {
        0 if output.stdout.trim().is_empty() => Understood::Neutral,
        0 => match object(&output.stdout) {
            Some(result) if result.get("isError") == Some(&Value::Bool(true)) => Understood::Denied,
            _ => Understood::Failed,
        },
        _ => Understood::Denied,
    }
}
