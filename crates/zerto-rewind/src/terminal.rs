//! The person at the terminal, if there is one.
use std::io::{self, IsTerminal, Write as _};

use crate::output;

/// Whether a person can be asked: the question goes to stderr, the answer comes from stdin.
pub fn is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks for a typed "y" or "yes". Anything else, and the end of the input, is a no.
pub async fn agrees(question: &str) -> bool {
    let mut out = anstream::stderr();
    let asked = write!(out, "{question} [y/N] ").and_then(|()| out.flush());
    if asked.is_err() {
        return false;
    }
    let answer = tokio::task::spawn_blocking(|| {
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).map(|_| answer)
    });
    match answer.await {
        Ok(Ok(answer)) if ["y", "yes"].contains(&&*answer.trim().to_ascii_lowercase()) => true,
        Ok(Ok(answer)) => {
            if answer.is_empty() {
                // The input ended without a line: end the question's line instead.
                output::note("");
            }
            false
        }
        _ => false,
    }
}
