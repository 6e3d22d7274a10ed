//! What can go wrong on the way into a guest and in it.
use crate::{Error, ErrorCode, config::Guest};

/// Texts are bounded and cleaned.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum GuestError {
    /// There is no client to connect with.
    #[error("the OpenSSH client `ssh` can't be run: {0}")]
    NoClient(String),
    /// No connection could be made.
    #[error("there is no connection to the guest: {0}")]
    Unreachable(String),
    /// It ended, and nobody said why.
    #[error("there is no connection to the guest: the connection ended without a word")]
    NoWord,
    /// There is no such configuration of the client's.
    #[error("the OpenSSH configuration that `ssh_config` names can't be used: {0}")]
    NoConfig(String),
    /// The host's key is not in `known_hosts`, or is another one.
    #[error("the guest's host key {}: {said}", if *.changed { "is another one than the known one" } else { "is not known" })]
    HostKey {
        /// Another one is known.
        changed: bool,
        /// The client's words.
        said: String,
    },
    /// The login was refused.
    #[error("the guest refused the login: {0}")]
    LoginRefused(String),
    /// The login worked, but there is no SFTP server behind it.
    #[error("no SFTP server could be started in the guest: {0}")]
    NoServer(String),
    /// The login worked, and `sudo` does not do without asking.
    #[error("`sudo` in the guest does not run the SFTP server without a password: {0}")]
    Sudo(String),
    /// The connection broke. Whether what was asked for last happened is not known.
    #[error("the connection to the guest broke while {0}")]
    Lost(String),
    /// It failed, and so did taking back what had been begun: that is still in the guest.
    #[error("{failed}; and what had been begun could not be taken back: {why}")]
    Left {
        /// What had failed.
        failed: String,
        /// Why it is left.
        why: String,
    },
    /// Nothing is there.
    #[error("{0}: nothing is there")]
    NotThere(String),
    /// The guest's user may not do this.
    #[error("{0}: the guest gives no permission")]
    Denied(String),
    /// No room is left.
    #[error("{0}: no room is left in the guest")]
    NoRoom(String),
    /// The SFTP server lacks what is needed.
    #[error("the guest's SFTP server does not know {0}")]
    Unsupported(&'static str),
    /// What is there is not what was agreed to, or in the way.
    #[error("{0}")]
    Conflict(String),
    /// Anything else, with what the server said.
    #[error("{0}")]
    Failed(String),
    /// The call was cancelled, and what had been begun was taken back.
    #[error("cancelled while {0}")]
    Cancelled(String),
}

impl GuestError {
    /// Whether nothing more can be asked over this connection.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::Unreachable(_) | Self::NoWord)
    }

    /// What to look at first, where the configuration of the guest makes it likely.
    pub fn hint(&self, guest: &Guest) -> Option<&'static str> {
        let starts_its_own = guest.sudo || guest.sftp_server.is_some();
        (matches!(self, Self::NoWord) && starts_its_own).then_some(
            "Check `sudo` and `sftp_server` of this guest in the configuration: what they start there has to be an SFTP server, and \
             has to run without asking. Make sure, too, that `ssh` reaches the guest from here, then try again.",
        )
    }

    /// Whether something may be left in the guest, to be looked at when it is reached again.
    pub fn leaves(&self) -> bool {
        self.is_lost() || matches!(self, Self::Left { .. })
    }

    /// This one, after what had been begun was taken back, or was not.
    pub fn after(self, taken_back: Result<(), Self>) -> Self {
        match taken_back {
            Ok(()) => self,
            Err(why) => Self::Left {
                failed: self.to_string(),
                why: why.to_string(),
            },
        }
    }
}

impl From<GuestError> for Error {
    fn from(error: GuestError) -> Self {
        use GuestError as Of;
        let (code, next) = match &error {
            Of::Unreachable(_) | Of::Lost(_) | Of::NoWord => (ErrorCode::GuestUnreachable, None),
            Of::NoConfig(_) => (
                ErrorCode::GuestUnreachable,
                Some(
                    "Correct `ssh_config` of this guest in the configuration, or leave it out: then your own is used.",
                ),
            ),
            Of::NoClient(_) => (
                ErrorCode::GuestUnreachable,
                Some(
                    "Install the OpenSSH client, or put the folder that it is in into PATH for this program.",
                ),
            ),
            Of::HostKey { changed: false, .. } => (
                ErrorCode::GuestUnreachable,
                Some(
                    "Compare the guest's host key and accept it once by hand: `ssh` to it in a terminal as this user, then try again.",
                ),
            ),
            Of::HostKey { changed: true, .. } => (
                ErrorCode::GuestUnreachable,
                Some(
                    "Find out first who answers at this address. If the guest was made anew, remove its old key (`ssh-keygen -R HOST`), compare the new one and accept it once by hand.",
                ),
            ),
            Of::LoginRefused(_) => (
                ErrorCode::GuestUnreachable,
                Some(
                    "Make sure that `ssh` logs in without asking anything, as this user: a key in the agent or without a passphrase, and the right user in `guests`.",
                ),
            ),
            Of::Sudo(_) => (
                ErrorCode::GuestUnreachable,
                Some(
                    "Let this user run the guest's SFTP server with sudo and without a password: `USER ALL=(root) NOPASSWD: /usr/lib/openssh/sftp-server` \
                     in the guest's sudoers, with the server's own path; or leave `sudo` out of `guests`.",
                ),
            ),
            Of::NoServer(_) => (
                ErrorCode::GuestUnreachable,
                Some(
                    "Enable the SFTP subsystem in the guest's sshd. With `sudo`, install OpenSSH's SFTP server there, and name its path in `sftp_server` where it is not a usual one.",
                ),
            ),
            Of::Conflict(_) => (ErrorCode::GuestConflict, None),
            Of::Denied(_) => (
                ErrorCode::GuestFailed,
                Some(
                    "Give the guest's user the permission, or set `\"sudo\": true` for this guest in the configuration.",
                ),
            ),
            Of::NoRoom(_) => (
                ErrorCode::GuestFailed,
                Some("Make room in the guest, then try again."),
            ),
            Of::Unsupported(_) => (
                ErrorCode::GuestFailed,
                Some(
                    "Restore beside the file instead of replacing it, or use OpenSSH's SFTP server in the guest.",
                ),
            ),
            Of::NotThere(_) | Of::Failed(_) | Of::Left { .. } => (ErrorCode::GuestFailed, None),
            Of::Cancelled(_) => (ErrorCode::Cancelled, None),
        };
        let mapped = Self::new(code, error.to_string());
        match next {
            Some(next) => mapped.with_next(next),
            None => mapped,
        }
    }
}
