//! The template of an action.

use std::{io, sync::LazyLock};

use minijinja::{
    Environment, ErrorKind, UndefinedBehavior, escape_formatter,
    value::{Serde, Value},
};
use serde::Serialize;

use super::{Call, error::RuleProblem};
use crate::text;

/// The names that a template may use.
const NAMES: [&str; 3] = ["args", "server", "tool"];
/// Bounds the time and the memory that a template takes; see [`Environment::set_fuel`].
const FUEL: u64 = 200_000;
const RECURSION: usize = 50;
/// The parser goes down once for each opening bracket and each sign, and has no limit of its own that the stack of a thread holds.
const BRACKETS: [char; 3] = ['(', '[', '{'];
const BRACKETS_MAX: usize = 64;
/// Of the template, in bytes.
const SOURCE_MAX: usize = 1000;
/// How much of the output is kept, in bytes: more than fits into a tag.
const OUTPUT: usize = 4096;

#[derive(Debug)]
pub(super) struct Action {
    source: String,
}

/// What every template may use. Making it takes longer than compiling a template, so there is one.
static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(RECURSION);
    // Arguments are JSON, and are shown as JSON; text is shown as it is.
    environment.set_formatter(|out, state, value| {
        if value.is_undefined() {
            return out.write_str("(missing)").map_err(Into::into);
        }
        if value.as_str().is_none()
            && let Ok(json) = serde_json::to_string(value)
        {
            return out.write_str(&json).map_err(Into::into);
        }
        escape_formatter(out, state, value)
    });
    environment
});

/// What a template sees.
#[derive(Serialize)]
struct Context<'a> {
    args: &'a serde_json::Value,
    server: Option<&'a str>,
    tool: &'a str,
}

impl Action {
    /// The error is what is wrong and, where it can be told, what to write instead.
    pub(super) fn new(source: &str) -> Result<Self, (String, Option<String>)> {
        if text::one_line(source).is_empty() {
            return Err((
                "the action is empty".to_owned(),
                Some("say what the call changes".to_owned()),
            ));
        }
        let short = Some("make it short: a tag has room for one line".to_owned());
        if source.len() > SOURCE_MAX {
            return Err((
                format!("the action has more than {SOURCE_MAX} bytes"),
                short,
            ));
        }
        if source.matches(BRACKETS).count() > BRACKETS_MAX {
            return Err((
                format!("the action has more than {BRACKETS_MAX} opening brackets"),
                short,
            ));
        }
        let action = Self {
            source: source.to_owned(),
        };
        action.check_names()?;
        Ok(action)
    }

    pub(super) fn source(&self) -> &str {
        &self.source
    }

    fn check_names(&self) -> Result<(), (String, Option<String>)> {
        let template = ENVIRONMENT
            .template_from_str(&self.source)
            .map_err(|error| (format!("not a template: {}", reason(&error)), None))?;
        let functions: Vec<&str> = ENVIRONMENT.globals().map(|(name, _)| name).collect();
        let mut unknown: Vec<String> = template.undeclared_variables(false).into_iter().collect();
        unknown
            .retain(|name| !NAMES.contains(&name.as_str()) && !functions.contains(&name.as_str()));
        unknown.sort_unstable();
        if let Some(name) = unknown.first().map(|name| text::display(name, 60)) {
            let fix =
                format!("write `args.{name}` for an argument; `server` and `tool` are known, too");
            return Err((
                format!("the template uses `{name}`, which is not known"),
                Some(fix),
            ));
        }
        // Filters, tests and functions are looked up only when the template runs.
        let nothing = serde_json::Value::Object(serde_json::Map::new());
        let trial = self.run(&Call {
            server: None,
            tool: "tool",
            arguments: &nothing,
        });
        match trial {
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::UnknownFilter | ErrorKind::UnknownTest | ErrorKind::UnknownFunction
                ) =>
            {
                Err((reason(&error), None))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn render(&self, call: &Call<'_>) -> Result<String, RuleProblem> {
        self.run(call).map_err(|error| RuleProblem::Action {
            reason: reason(&error),
        })
    }

    fn run(&self, call: &Call<'_>) -> Result<String, minijinja::Error> {
        let context = Value::from(Serde(Context {
            args: call.arguments,
            server: call.server,
            tool: call.tool,
        }));
        let mut head = Head(Vec::new());
        ENVIRONMENT
            .template_from_str(&self.source)?
            .render_captured_to(context, &mut head)?;
        Ok(text::one_line(&String::from_utf8_lossy(&head.0)))
    }
}

fn reason(error: &minijinja::Error) -> String {
    let text = match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    };
    text::display(&text, 200)
}

/// Keeps the first [`OUTPUT`] bytes of what is written.
struct Head(Vec<u8>);

impl io::Write for Head {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = OUTPUT.saturating_sub(self.0.len());
        self.0.extend(bytes.iter().take(room));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
