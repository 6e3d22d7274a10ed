//! The user's own OpenSSH client, as the way to a guest's SFTP server.
//!
//! It brings keys, agents, `known_hosts`, jump hosts. It may ask nobody anything, accepts no host key that is not known, and leaves
//! no connection behind. No path ever stands in a remote command line: SFTP carries them all.
use super::GuestError;
use crate::{
    config::{Guest, SECRET_ENVS},
    text,
};
use std::{
    io,
    pin::Pin,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf},
    process::{Child, ChildStderr, ChildStdout, Command},
    sync::watch,
    time::timeout,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// To reach the host, and to log in, each.
const CONNECT_SECONDS: &str = "20";
/// A connection on which nothing comes back any more is dead after three of these.
const ALIVE_SECONDS: &str = "15";
/// A client whose input has ended ends by itself.
const END: Duration = Duration::from_secs(2);
/// The guest's shell could not run the SFTP server.
const NOT_RUN: [i32; 2] = [126, 127];
/// It was ended from outside.
const UNKNOWN: i32 = -1;
/// So much of what it says last is kept.
const SAID_MAX: usize = 4096;
const SHOWN_MAX: usize = 600;

/// Where common systems keep their SFTP server. `sh` reads this; nothing in it comes from outside.
const FIND_AND_RUN: &str = "exec sh -c 'for server in /usr/lib/openssh/sftp-server /usr/libexec/openssh/sftp-server \
     /usr/lib/ssh/sftp-server /usr/libexec/sftp-server /usr/lib64/ssh/sftp-server /usr/local/libexec/sftp-server; \
     do if test -x \"$server\"; then exec sudo -n -- \"$server\"; fi; done; \
     echo \"no sftp-server was found\" >&2; exit 127'";

/// A client that runs. Dropping it ends it.
pub(super) struct Ssh {
    said: Arc<Mutex<Vec<u8>>>,
    /// Its exit code, once it has ended.
    ended: watch::Receiver<Option<i32>>,
    silent: watch::Receiver<bool>,
    _alive: DropGuard,
}

/// What it is started with.
fn arguments(guest: &Guest) -> Vec<String> {
    let mut arguments: Vec<String> = ["-T", "-a", "-x"].map(str::to_owned).into();
    for option in [
        "BatchMode=yes",
        "StrictHostKeyChecking=yes",
        // One that the user has open may be used; none is opened that would outlive us.
        "ControlMaster=no",
        "ClearAllForwardings=yes",
        "PermitLocalCommand=no",
        "RemoteCommand=none",
        "LogLevel=ERROR",
        &format!("ConnectTimeout={CONNECT_SECONDS}"),
        &format!("ServerAliveInterval={ALIVE_SECONDS}"),
        "ServerAliveCountMax=3",
    ] {
        arguments.extend(["-o".to_owned(), option.to_owned()]);
    }
    if let Some(file) = &guest.ssh_config {
        arguments.extend(["-F".to_owned(), file.to_string_lossy().into_owned()]);
    }
    let server = guest.sftp_server.as_deref();
    let remote = match (guest.sudo, server) {
        (false, None) => {
            arguments.push("-s".to_owned());
            "sftp".to_owned()
        }
        // The configuration takes a server only without a character that a shell would see anything in.
        (false, Some(server)) => format!("exec {server}"),
        (true, Some(server)) => format!("exec sudo -n -- {server}"),
        (true, None) => FIND_AND_RUN.to_owned(),
    };
    arguments.extend(["--".to_owned(), guest.ssh.clone(), remote]);
    arguments
}

impl Ssh {
    /// Starts a client. Whether it gets through shows when its stream is used.
    pub fn start(
        guest: &Guest,
    ) -> Result<(Self, impl AsyncRead + AsyncWrite + Unpin + Send + 'static), GuestError> {
        let mut command = Command::new("ssh");
        command
            .args(arguments(guest))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        for secret in SECRET_ENVS {
            command.env_remove(secret);
        }
        // A Ctrl-C at our terminal is ours: what was begun in the guest is cleaned up over this connection.
        #[cfg(unix)]
        command.process_group(0);
        let no_client = |error: io::Error| GuestError::NoClient(error.to_string());
        let mut child = command.spawn().map_err(no_client)?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(GuestError::Unreachable("`ssh` has no pipes".to_owned()));
        };
        let said = Arc::<Mutex<Vec<u8>>>::default();
        let token = CancellationToken::new();
        let (ending, ended) = watch::channel(None);
        let (silence, silent) = watch::channel(false);
        let stdout = UntilSilent {
            output: stdout,
            silence,
        };
        tokio::spawn(keep(child, stderr, said.clone(), token.clone(), ending));
        let ssh = Self {
            said,
            ended,
            silent,
            _alive: token.drop_guard(),
        };
        Ok((ssh, tokio::io::join(stdout, stdin)))
    }

    /// Turns true once all that it will ever answer was read.
    pub fn silent(&self) -> watch::Receiver<bool> {
        self.silent.clone()
    }

    pub fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Why there is no connection: what it said, once it has ended.
    pub async fn why(&self) -> GuestError {
        let mut ended = self.ended.clone();
        let _ = timeout(END, ended.wait_for(Option::is_some)).await;
        let code = *self.ended.borrow();
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        classify(&String::from_utf8_lossy(&said), code)
    }
}

/// What the client answers; tells when that has ended.
struct UntilSilent {
    output: ChildStdout,
    silence: watch::Sender<bool>,
}

impl AsyncRead for UntilSilent {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (filled, room) = (buffer.filled().len(), buffer.remaining() > 0);
        let read = Pin::new(&mut self.output).poll_read(context, buffer);
        let over = match &read {
            Poll::Ready(Ok(())) => room && buffer.filled().len() == filled,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if over {
            self.silence.send_replace(true);
        }
        read
    }
}

async fn keep(
    mut child: Child,
    stderr: ChildStderr,
    said: Arc<Mutex<Vec<u8>>>,
    released: CancellationToken,
    ending: watch::Sender<Option<i32>>,
) {
    let listening = tokio::spawn(listen(stderr, said));
    let status = tokio::select! {
        status = child.wait() => status.ok(),
        () = released.cancelled() => {
            if timeout(END, child.wait()).await.is_err() {
                let _ = child.kill().await;
            }
            None
        }
    };
    // What it left in the pipe is read; a child of its own that still holds it is not waited for.
    let mut listening = listening;
    if timeout(END, &mut listening).await.is_err() {
        listening.abort();
    }
    let code = status.and_then(|status| status.code()).unwrap_or(UNKNOWN);
    let _ = ending.send(Some(code));
}

async fn listen(mut stderr: ChildStderr, said: Arc<Mutex<Vec<u8>>>) {
    let mut piece = [0; 1024];
    while let Ok(read @ 1..) = stderr.read(&mut piece).await {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend(piece.iter().take(read));
        let excess = said.len().saturating_sub(SAID_MAX);
        said.drain(..excess);
    }
}

/// What the client's words mean, and its exit code: the one of what it ran in the guest, else 255.
fn classify(said: &str, code: Option<i32>) -> GuestError {
    let lower = said.to_ascii_lowercase();
    let shown = text::display(said, SHOWN_MAX);
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if has(&[
        "host key verification failed",
        "host key is known",
        "host identification has changed",
    ]) {
        return GuestError::HostKey {
            changed: lower.contains("has changed"),
            said: shown,
        };
    }
    if has(&[
        "permission denied (",
        "too many authentication failures",
        "no supported authentication",
    ]) {
        return GuestError::LoginRefused(shown);
    }
    if has(&[
        "a password is required",
        "a terminal is required",
        "not in the sudoers",
        "is not allowed to",
        "may not run sudo",
    ]) {
        return GuestError::Sudo(shown);
    }
    if has(&[
        "sudo:",
        "no sftp-server was found",
        "subsystem request failed",
    ]) || code.is_some_and(|code| NOT_RUN.contains(&code))
    {
        return GuestError::NoServer(shown);
    }
    if has(&["can't open user config file"]) {
        return GuestError::NoConfig(shown);
    }
    match shown.is_empty() {
        true => GuestError::NoWord,
        false => GuestError::Unreachable(shown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest(sudo: bool, server: Option<&str>) -> Guest {
        Guest {
            ssh: "justin@app01".into(),
            sudo,
            ssh_config: None,
            sftp_server: server.map(str::to_owned),
        }
    }

    #[test]
    fn the_destination_cannot_be_an_option_and_nothing_is_asked() {
        let arguments = arguments(&guest(false, None));
        let end = arguments.len() - 3;
        assert_eq!(arguments[end..], ["--", "justin@app01", "sftp"]);
        for option in [
            "BatchMode=yes",
            "StrictHostKeyChecking=yes",
            "ControlMaster=no",
        ] {
            assert!(arguments.contains(&option.to_owned()), "{option}");
        }
        assert!(arguments.contains(&"-s".to_owned()));
    }

    #[test]
    fn with_sudo_only_the_server_is_run() {
        let last = |guest| arguments(&guest).pop().unwrap();
        assert_eq!(
            last(guest(true, Some("/opt/sftp-server"))),
            "exec sudo -n -- /opt/sftp-server"
        );
        assert!(last(guest(true, None)).contains("exec sudo -n -- \"$server\""));
        assert_eq!(last(guest(false, Some("/opt/s"))), "exec /opt/s");
    }

    #[test]
    fn the_clients_words_are_understood() {
        let unknown = "No ED25519 host key is known for app01 and you have requested strict checking.\r\nHost key verification failed.\r\n";
        assert!(matches!(
            classify(unknown, Some(255)),
            GuestError::HostKey { changed: false, .. }
        ));
        let changed =
            "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.";
        assert!(matches!(
            classify(changed, Some(255)),
            GuestError::HostKey { changed: true, .. }
        ));
        let denied = "justin@app01: Permission denied (publickey,password).";
        assert!(matches!(
            classify(denied, Some(255)),
            GuestError::LoginRefused(_)
        ));
        assert!(matches!(
            classify("sudo: a password is required", Some(1)),
            GuestError::Sudo(_)
        ));
        assert!(matches!(
            classify("sudo: /opt/sftp-server: command not found", Some(1)),
            GuestError::NoServer(_)
        ));
        assert!(matches!(
            classify(
                "ssh: connect to host x port 22: Connection refused",
                Some(255)
            ),
            GuestError::Unreachable(_)
        ));
        assert!(matches!(
            classify("sh: 1: exec: /opt/s: not found", Some(127)),
            GuestError::NoServer(_)
        ));
        assert!(matches!(classify("", None), GuestError::NoWord));
        assert!(matches!(
            classify(
                "Can't open user config file /x: Permission denied",
                Some(255)
            ),
            GuestError::NoConfig(_)
        ));
    }
}
