//! The proof that a denial comes out of the very command line that was written.
use super::{command, harness::Harness};
use crate::commands::hook::{Output, PROOF_REASON, PROOF_SERVER, PROOF_TOOL, Understood};
use serde_json::Value;
use std::{
    env,
    io::Write,
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

/// A hook that has not answered a made-up event by then is broken.
const PATIENCE: Duration = Duration::from_secs(60);

/// Feeds the installed hook a call that it must refuse, and an event that nobody can read.
pub(super) fn prove(harness: Harness, handlers: &[Value]) -> Result<(), String> {
    if handlers.is_empty() {
        return Err("no hook of ours is in the settings that were written".to_owned());
    }
    let mut proved = Vec::new();
    for handler in handlers {
        let words = command::words(handler).ok_or("the hook that was written has no command")?;
        if !proved.contains(&words) {
            refused(harness, handler)?;
            proved.push(words);
        }
    }
    Ok(())
}

fn refused(harness: Harness, handler: &Value) -> Result<(), String> {
    let event = harness.proof_event(PROOF_SERVER, PROOF_TOOL).to_string();
    let output = feed(handler, event.into_bytes())?;
    let said = format!("{}{}", output.stdout, output.stderr);
    if Understood::by(harness.format(), &output) != Understood::Denied {
        return Err(format!(
            "the hook did not deny a call that it must refuse: exit code {}, {:?}",
            output.code,
            output.reason()
        ));
    }
    if !said.contains(PROOF_REASON) {
        return Err(format!(
            "the hook is in place, but it denies every call, since something else is wrong: {}",
            output.reason().trim_start_matches("zerto-rewind: ")
        ));
    }
    let output = feed(handler, b"{".to_vec())?;
    match Understood::by(harness.format(), &output) {
        Understood::Denied => Ok(()),
        other => Err(format!(
            "the hook did not deny an event that cannot be read: {other:?}"
        )),
    }
}

/// Runs a handler as the harness would, with this event on standard input.
fn feed(handler: &Value, event: Vec<u8>) -> Result<Output, String> {
    let line = handler
        .get("command")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let mut command = match handler.get("args").and_then(Value::as_array) {
        Some(arguments) => {
            let mut command = Command::new(line);
            command.args(arguments.iter().filter_map(Value::as_str));
            command
        }
        None => shell(line),
    };
    // What is written has to be enough by itself: harnesses start elsewhere, with another environment.
    command
        .env_remove("ZERTO_REWIND_CONFIG")
        .current_dir(env::temp_dir());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(|error| format!("the hook cannot be started: {line}: {error}"))?;
    let (send, ended) = mpsc::channel();
    thread::spawn(move || {
        if let Some(mut stdin) = child.stdin.take() {
            // A hook that ends without reading is judged by what it said.
            let _ = stdin.write_all(&event);
        }
        let _ = send.send(child.wait_with_output());
    });
    let output = ended
        .recv_timeout(PATIENCE)
        .map_err(|_| format!("the hook did not answer within {PATIENCE:?}"))?
        .map_err(|error| format!("the hook cannot be awaited: {error}"))?;
    let code = output
        .status
        .code()
        .and_then(|code| u8::try_from(code).ok());
    Ok(Output {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        code: code.ok_or_else(|| format!("the hook was ended: {}", output.status))?,
    })
}

#[cfg(unix)]
fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]);
    command
}

#[cfg(not(unix))]
fn shell(line: &str) -> Command {
    let mut command = Command::new("cmd");
    command.args(["/C", line]);
    command
}
