//! Where a password or client secret comes from: the configuration itself, a file, the environment, a command, or the keyring.

use std::{
    fmt,
    io::{self, Read as _},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

use secrecy::{
    SecretString,
    zeroize::{Zeroize as _, Zeroizing},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::Command,
    time::timeout,
};
use zvm_client::SecretSource;

use super::{ConfigError, error::Mistake, owned, private};
use crate::{keyring, text};

/// Gives the password, where the configuration does not.
pub const PASSWORD_ENV: &str = "ZERTO_REWIND_PASSWORD";
/// Gives the client secret, where the configuration does not.
pub const CLIENT_SECRET_ENV: &str = "ZERTO_REWIND_CLIENT_SECRET";
/// What must not be handed on to other programs.
pub const SECRET_ENVS: [&str; 2] = [PASSWORD_ENV, CLIENT_SECRET_ENV];

/// Takes the secrets out of the environment that a program is started with. For each one that is not this program itself.
pub fn withhold_secrets(command: &mut std::process::Command) {
    for secret in SECRET_ENVS {
        command.env_remove(secret);
    }
}

/// How long a command may take. Hooks of harnesses have 25 s for everything.
const LIMIT: Duration = Duration::from_secs(15);
/// A longer text is no secret.
const MAX_BYTES: u64 = 16 * 1024;
/// Of what a command says on stderr.
const MAX_COMPLAINT: usize = 500;
/// For what a command said on stderr right before it ended.
const AFTERWARDS: Duration = Duration::from_millis(100);

/// A password or client secret, or how to get it. `Debug` shows neither the secret nor a command's arguments.
#[derive(Debug, Clone)]
pub enum Secret {
    /// This one.
    Known(SecretString),
    /// The content of a file.
    File(Arc<SecretFile>),
    /// What a command prints.
    Command(Arc<SecretCommand>),
    /// An entry of the system's keyring.
    Keyring(Arc<SecretEntry>),
}

/// The content of a file that is this user's alone.
#[derive(Debug)]
pub struct SecretFile {
    pub(super) config: PathBuf,
    pub(super) key: String,
    pub(super) path: PathBuf,
}

/// What a program prints that is started without a shell.
pub struct SecretCommand {
    pub(super) config: PathBuf,
    pub(super) key: String,
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
}

/// An entry of the system's keyring.
#[derive(Debug)]
pub struct SecretEntry {
    pub(super) config: PathBuf,
    pub(super) key: String,
    pub(super) service: String,
    pub(super) account: String,
}

impl fmt::Debug for SecretCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretCommand")
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}

impl Secret {
    /// The secret as it is now: reads the file, runs the command or asks the keyring, for up to 15 s. Blocks.
    ///
    /// # Errors
    /// Why there is none. No part of it is in the error, and nothing of what a command printed on stdout.
    pub fn get(&self) -> Result<SecretString, ConfigError> {
        match self {
            Self::Known(secret) => Ok(secret.clone()),
            Self::File(file) => file.read(),
            Self::Command(command) => command.run(LIMIT),
            Self::Keyring(entry) => entry.read(),
        }
    }

    /// Where it comes from, for people, unless it is known.
    pub(super) fn origin(&self) -> Option<String> {
        Some(match self {
            Self::Known(_) => return None,
            Self::File(file) => format!("`{}` ({})", file.key, file.path.display()),
            Self::Command(command) => format!("`{}` ({})", command.key, command.program.display()),
            Self::Keyring(entry) => format!("`{}` ({})", entry.key, entry.service),
        })
    }

    /// With its file read, where it is in one.
    pub(super) fn with_file_read(self) -> Result<Self, ConfigError> {
        match self {
            Self::File(file) => file.read().map(Self::Known),
            other => Ok(other),
        }
    }
}

impl From<SecretString> for Secret {
    fn from(secret: SecretString) -> Self {
        Self::Known(secret)
    }
}

impl From<Secret> for zvm_client::Secret {
    fn from(secret: Secret) -> Self {
        match secret {
            Secret::Known(secret) => secret.into(),
            other => Self::Asked(Arc::new(Source(other))),
        }
    }
}

#[derive(Debug)]
struct Source(Secret);

impl SecretSource for Source {
    fn secret(&self) -> Result<SecretString, String> {
        self.0.get().map_err(|error| error.to_string())
    }
}

impl SecretFile {
    fn read(&self) -> Result<SecretString, ConfigError> {
        let path = self.path.display();
        let wrong = |problem: String| {
            Mistake::new(
                &self.key,
                format!("{path}: {problem}"),
                "name a file that has the secret in it and nothing else",
            )
            .in_file(&self.config)
        };
        let unreadable = |error: io::Error| wrong(format!("cannot be read: {error}"));
        // Before it is opened: opening a pipe would wait for its other end.
        if !std::fs::metadata(&self.path).map_err(unreadable)?.is_file() {
            return Err(wrong("is not a regular file".to_owned()));
        }
        let file = std::fs::File::open(&self.path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        owned(&self.path, &metadata)?;
        private(&self.path, &metadata)?;
        let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_BYTES as usize + 1));
        file.take(MAX_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        one_line(&bytes).map_err(|problem| wrong(problem.to_owned()))
    }
}

impl SecretEntry {
    fn read(&self) -> Result<SecretString, ConfigError> {
        let Self {
            service, account, ..
        } = self;
        keyring::get(service, account).map_err(|problem| {
            let problem = format!("the keyring {problem}");
            let fix = format!("see that it is unlocked, and has a secret for service {service:?} and user {account:?}");
            Mistake::new(&self.key, problem, fix).in_file(&self.config)
        })
    }
}

/// A secret that is the one line of a file, of an output or of what was typed, without its end.
///
/// # Errors
/// Why it is none, without any part of it.
pub fn one_line(bytes: &[u8]) -> Result<SecretString, &'static str> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err("is too long for a secret");
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "is not UTF-8")?;
    let line = text.trim_end_matches(['\n', '\r']);
    check(line)?;
    Ok(line.into())
}

/// Whether a text can be a secret that people type and realms know; else why not.
pub(super) fn check(text: &str) -> Result<(), &'static str> {
    if text.is_empty() {
        return Err("is empty");
    }
    if text.contains(['\n', '\r']) {
        return Err("has several lines");
    }
    // What a realm makes of a NUL is anybody's guess, and each one that it refuses is counted.
    if text.contains(char::is_control) {
        return Err("has a control character in it");
    }
    Ok(())
}

/// What a command printed, and how it ended.
struct Ended {
    status: ExitStatus,
    stdout: Zeroizing<Vec<u8>>,
    stderr: Vec<u8>,
}

impl SecretCommand {
    fn run(&self, limit: Duration) -> Result<SecretString, ConfigError> {
        let program = self.program.display();
        let wrong = |problem: String| {
            let fix = "run it by hand as this user: it has to print the secret and nothing else";
            Mistake::new(&self.key, format!("{program} {problem}"), fix).in_file(&self.config)
        };
        // A runtime of its own, on a thread of its own: whoever needs the secret may be on another one.
        let ended = thread::scope(|scope| {
            let run = || {
                tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()?
                    .block_on(async { timeout(limit, self.ended()).await })
                    .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            };
            scope.spawn(run).join()
        });
        let ended = match ended {
            Ok(Ok(ended)) => ended,
            Ok(Err(error)) if error.kind() == io::ErrorKind::TimedOut => {
                return Err(wrong(format!(
                    "did not end within {limit:?}, and was killed"
                )));
            }
            Ok(Err(error)) => return Err(wrong(format!("cannot be run: {error}"))),
            Err(_) => return Err(wrong("could not be awaited".to_owned())),
        };
        if !ended.status.success() {
            let said = complaint(&ended);
            return Err(wrong(format!("failed ({}){said}", ended.status)));
        }
        one_line(&ended.stdout)
            .map_err(|problem| wrong(format!("ended well, but its output {problem}")))
    }

    /// As a shell's `$(…)`: until it has ended and its output is closed. A process that it leaves in the background may keep stderr.
    async fn ended(&self) -> io::Result<Ended> {
        let mut command = Command::new(&self.program);
        withhold_secrets(command.as_std_mut());
        // Programs that ask for the secret are started anywhere: what works for one of them has to work for all.
        if let Some(folder) = self.config.ancestors().skip(1).find(|path| path.is_dir()) {
            command.current_dir(folder);
        }
        let mut child = command
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let mut stdout = Zeroizing::new(Vec::with_capacity(MAX_BYTES as usize + 1));
        let mut stderr = Vec::new();
        let status = {
            let complaining = read(err, &mut stderr);
            let ending = async {
                // Longer output is refused; the pipe is closed, so that it ends.
                read(out, &mut stdout).await?;
                child.wait().await
            };
            tokio::pin!(complaining, ending);
            let mut complained = false;
            let status = loop {
                tokio::select! {
                    status = &mut ending => break status?,
                    read = &mut complaining, if !complained => {
                        complained = true;
                        read?;
                    }
                }
            };
            if !complained {
                let _ = timeout(AFTERWARDS, complaining).await;
            }
            status
        };
        Ok(Ended {
            status,
            stdout,
            stderr,
        })
    }
}

async fn read(pipe: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) -> io::Result<()> {
    if let Some(pipe) = pipe {
        pipe.take(MAX_BYTES + 1).read_to_end(into).await?;
    }
    Ok(())
}

/// What it said on stderr; where that repeats its output, nothing.
fn complaint(ended: &Ended) -> String {
    let mut printed = String::from_utf8_lossy(&ended.stdout).into_owned();
    let said = String::from_utf8_lossy(&ended.stderr);
    let repeats = printed
        .lines()
        .any(|line| !line.trim().is_empty() && said.contains(line.trim()));
    printed.zeroize();
    let said = text::display(&said, MAX_COMPLAINT);
    match said.is_empty() || repeats {
        true => String::new(),
        false => format!(": {said}"),
    }
}

/// A program's name is looked for in PATH; a relative path starts at the folder of the configuration.
pub(super) fn program(name: &str, folder: &Path) -> PathBuf {
    match Path::new(name).components().count() {
        0 | 1 => PathBuf::from(name),
        _ => folder.join(name),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use secrecy::ExposeSecret as _;

    fn command(script: &str) -> SecretCommand {
        SecretCommand {
            config: "/c.json".into(),
            key: "password_command".into(),
            program: "sh".into(),
            arguments: vec!["-c".into(), script.into()],
        }
    }

    #[test]
    fn a_command_that_does_not_end_is_killed() {
        let limit = Duration::from_millis(200);
        let error = command("echo hunter2; exec sleep 600")
            .run(limit)
            .unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("did not end within 200ms") && !error.contains("hunter2"),
            "{error}"
        );
    }

    #[test]
    fn what_stays_in_the_background_is_not_waited_for() {
        // It keeps stderr, as an agent that a password store starts.
        let secret = command("sleep 600 >/dev/null & echo \"$!\"")
            .run(LIMIT)
            .unwrap();
        let left = secret.expose_secret().parse().unwrap();
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(left).unwrap(),
            rustix::process::Signal::KILL,
        )
        .unwrap();
    }

    #[test]
    fn endless_output_is_no_secret() {
        let error = command("yes").run(LIMIT).unwrap_err().to_string();
        assert!(
            error.contains("yes") || error.contains("too long") || error.contains("failed"),
            "{error}"
        );
    }

    #[test]
    fn stderr_is_shown_and_stdout_never() {
        let error = command("echo hunter2; echo 'no such\x1b[31m entry' >&2; exit 3")
            .run(LIMIT)
            .unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(
            shown.contains("no such") && shown.contains("exit status: 3"),
            "{shown}"
        );
        assert!(
            !shown.contains("hunter2") && !shown.contains('\x1b'),
            "{shown}"
        );
        let error = command("echo hunter2; echo '+ echo hunter2' >&2; exit 3")
            .run(LIMIT)
            .unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }

    #[test]
    fn only_one_line_is_a_secret() {
        for (printed, problem) in [
            ("", "is empty"),
            ("a\\nb", "several lines"),
            ("\\377", "UTF-8"),
            ("a\\000b", "control character"),
            ("a\\033[D", "control character"),
        ] {
            let error = command(&format!("printf '{printed}'"))
                .run(LIMIT)
                .unwrap_err();
            assert!(error.to_string().contains(problem), "{error}");
        }
        let secret = command("printf ' p w \\r\\n\\n'").run(LIMIT).unwrap();
        assert_eq!(secret.expose_secret(), " p w ");
    }
}
