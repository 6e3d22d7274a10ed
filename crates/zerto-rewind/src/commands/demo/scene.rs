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

/// Asks the human, unless they have agreed beforehand.
pub async fn agreed(question: &str, auto: bool) -> Result<(), Stopped> {
    if auto {
        say(&format!("{question} Agreed by --auto."));
    } else if !terminal::agrees(&format!("   {question}")).await {
        return Err(Stopped::Declined);
    }
    Ok(())
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
