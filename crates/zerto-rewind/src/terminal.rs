//! The person at the terminal, if there is one.
use std::io::{self, IsTerminal};

use rewind_core::config::one_line;
use secrecy::{SecretString, zeroize::Zeroizing};

use crate::output;

/// A longer line is no secret.
const SECRET_MAX: usize = 16 * 1024;
/// Of what is read at once.
const PIECE: usize = 1024;

/// Whether a person can be asked: the question goes to stderr, the answer comes from stdin.
pub fn is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks for a typed "y" or "yes". Anything else, and the end of the input, is a no.
pub async fn agrees(question: &str) -> bool {
    let answer = ask(&format!("{question} [y/N]")).await;
    answer.is_some_and(|answer| ["y", "yes"].contains(&&*answer.to_ascii_lowercase()))
}

/// Asks for a line, and returns it without spaces at its ends. None at the end of the input.
pub async fn ask(question: &str) -> Option<String> {
    output::ask(question).ok()?;
    let answer = tokio::task::spawn_blocking(|| {
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).map(|_| answer)
    });
    match answer.await {
        Ok(Ok(answer)) if answer.ends_with('\n') => {
            output::answered();
            Some(answer.trim().to_owned())
        }
        // What was typed before the input ended was not meant to be sent.
        _ => None,
    }
}

/// Asks for a line that is not shown while it is typed. None at the end of the input; else why it is no secret.
pub async fn secret(question: &str) -> Option<Result<SecretString, &'static str>> {
    let _silence = silence::Silence::begin().ok()?;
    output::ask(question).ok()?;
    // A terminal gives less than was asked for, and no end of a line, where the input was ended in the middle of one (Ctrl-D).
    let typed = tokio::task::spawn_blocking(|| {
        read_secret(|read| read.contains(&b'\n') || read.len() < PIECE)
    });
    let typed = typed.await.ok()?.ok()?;
    if !typed.contains(&b'\n') {
        return None;
    }
    output::answered();
    Some(one_line(&typed))
}

/// A secret on stdin, to its end.
///
/// # Errors
/// Stdin can't be read, or why that is no secret.
pub fn secret_from_stdin() -> Result<SecretString, String> {
    let read = read_secret(|_| false).map_err(|error| format!("cannot be read: {error}"))?;
    one_line(&read).map_err(str::to_owned)
}

/// Reads stdin until `is_enough`, or to its end, past the buffer of the standard library: that would keep what was read.
fn read_secret(is_enough: impl Fn(&[u8]) -> bool) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut all = Zeroizing::new(Vec::with_capacity(SECRET_MAX + PIECE));
    let mut some = Zeroizing::new([0; PIECE]);
    while all.len() <= SECRET_MAX {
        let length = stdin::read(&mut *some)?;
        let read = some.get(..length).unwrap_or_default();
        all.extend_from_slice(read);
        if length == 0 || is_enough(read) {
            break;
        }
    }
    Ok(all)
}

#[cfg(unix)]
mod stdin {
    use std::io;

    pub fn read(into: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::retry_on_intr(|| {
            rustix::io::read(io::stdin(), &mut *into)
        })?)
    }
}

#[cfg(not(unix))]
mod stdin {
    use std::io::{self, Read as _};

    pub fn read(into: &mut [u8]) -> io::Result<usize> {
        io::stdin().read(into)
    }
}

#[cfg(unix)]
mod silence {
    use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
    use std::io;

    /// While it lives, the terminal shows nothing of what is typed but the end of the line.
    pub struct Silence {
        before: Termios,
    }

    impl Silence {
        pub fn begin() -> io::Result<Self> {
            let before = tcgetattr(io::stdin())?;
            let mut silent = before.clone();
            silent.local_modes.remove(LocalModes::ECHO);
            silent.local_modes.insert(LocalModes::ECHONL);
            tcsetattr(io::stdin(), OptionalActions::Flush, &silent)?;
            Ok(Self { before })
        }
    }

    impl Drop for Silence {
        fn drop(&mut self) {
            if let Err(error) = tcsetattr(io::stdin(), OptionalActions::Now, &self.before) {
                tracing::debug!(%error, "the terminal was not put back");
            }
        }
    }
}

#[cfg(not(unix))]
mod silence {
    use std::io;

    /// Nothing is asked for that would be shown.
    pub struct Silence;

    impl Silence {
        pub fn begin() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }
}
