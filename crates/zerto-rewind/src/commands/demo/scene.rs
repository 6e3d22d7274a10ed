//! What the stories have in common.
use std::process::Stdio;

use rmcp::model::object;
use serde_json::Value;

use super::{
    Stopped,
    agent::{Agent, Answer},
    narrator::{asks, command, say},
    stage::Stage,
};
use crate::terminal;

const RECOVER: &str = "zerto_recover_file";

/// A call that succeeds.
pub async fn ask(agent: &Agent, tool: &str, arguments: Value) -> Result<Answer, Stopped> {
    let arguments = object(arguments);
    asks(agent.called, tool, &arguments);
    agent.succeed(tool, arguments).await
}

/// A call that is refused with this code.
pub async fn refuse(
    agent: &Agent,
    tool: &str,
    code: &str,
    arguments: Value,
) -> Result<Answer, Stopped> {
    let arguments = object(arguments);
    asks(agent.called, tool, &arguments);
    agent.refused(tool, code, arguments).await
}

/// Runs the command that an operator would run, on this terminal.
pub async fn operator(stage: &Stage, arguments: &[&str]) -> Result<(), Stopped> {
    let quoted = shlex::try_join(arguments.iter().copied());
    let line = quoted.map_err(|error| Stopped::Broken(error.to_string()))?;
    let line = format!("zerto-rewind {line}");
    command(&line);
    let status = stage
        .program(arguments)?
        .stdin(Stdio::null())
        .status()
        .await?;
    if !status.success() {
        return Err(Stopped::Broken(format!("{line}: {status}")));
    }
    Ok(())
}

/// A recovery that the human is asked about by a form of the agent's client. They type the VM's name, unless they have agreed
/// beforehand. `shown` is what the form says, for those who watch.
pub async fn recovers(
    stage: &Stage,
    agent: &Agent,
    wanted: Value,
    auto: bool,
    shown: impl Fn(&str),
) -> Result<Answer, Stopped> {
    let vm = wanted.get("vm").and_then(Value::as_str).unwrap_or_default();
    let vm = vm.to_owned();
    let arguments = object(wanted);
    asks(agent.called, RECOVER, &arguments);
    let human = async |form: &str| {
        shown(form);
        if stage.open_sessions() != 0 {
            return Err(Stopped::Broken(
                "something was mounted before a human agreed".into(),
            ));
        }
        let question = format!("Recover this? Type {vm} to agree:");
        if auto {
            say(&format!("{question} {vm} (Agreed by --auto.)"));
            return Ok(Some(vm.clone()));
        }
        let typed = terminal::ask(&format!("   {question}")).await;
        Ok(typed.filter(|typed| !typed.is_empty()))
    };
    let answer = agent.call_with_human(RECOVER, arguments, human).await?;
    if answer.error("code") == Some("declined") {
        return Err(Stopped::Declined);
    }
    match answer.is_error {
        false => Ok(answer),
        true => Err(Stopped::Broken(format!(
            "{RECOVER} answered: {}",
            answer.words
        ))),
    }
}

/// Whether a file came back byte for byte.
pub fn same(path: &str, original: &[u8], recovered: &[u8]) -> Result<(), Stopped> {
    if recovered == original {
        return Ok(());
    }
    let at = original.iter().zip(recovered).take_while(|(a, b)| a == b);
    Err(Stopped::Broken(format!(
        "the recovered file is not what {path} was: it differs from byte {} on, and has {} bytes instead of {}",
        at.count(),
        recovered.len(),
        original.len()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_more_less_or_else_is_not_the_same() {
        assert!(same("/f", b"abc", b"abc").is_ok());
        for (other, at) in [(&b"abd"[..], 2), (b"ab", 2), (b"abcd", 3), (b"", 0)] {
            let Err(Stopped::Broken(why)) = same("/f", b"abc", other) else {
                panic!("{other:?} is the same");
            };
            assert!(why.contains(&format!("from byte {at} on")), "{why}");
        }
    }
}
