//! One command's dealings with the ZVM.
use std::path::{Path, PathBuf};

use rewind_core::{
    Call, Error, ErrorCode, Rewind,
    approver::Approver,
    config::{CONFIG_ENV, Config},
    state::{LoginBlocked, LoginError, LoginOutcome, State},
};
use tokio_util::sync::CancellationToken;

use crate::{interrupt::Interrupt, output, progress::Bar, terminal, wrap::hanging};

/// What a person should know before they try again.
const LOCKS: &str = "A ZVM locks an account after five refused logins: go on only with what was corrected, or if the ZVM was at fault.";

/// Loads the configuration that `--config` or the environment names.
///
/// # Errors
/// What is wrong with it.
pub fn load(config: Option<&Path>) -> Result<Config, Error> {
    Ok(Config::load(&locate(config)?)?)
}

/// The configuration file that `--config` or the environment names, else the one that `init` makes by default.
///
/// # Errors
/// None is named, and there is none.
pub fn locate(config: Option<&Path>) -> Result<PathBuf, Error> {
    Config::locate(config).map_err(|error| {
        Error::from(error).with_next(format!(
            "Run `zerto-rewind init`, which makes one; or name one with --config FILE or the environment variable {CONFIG_ENV}."
        ))
    })
}

/// Loads the configuration that the environment names, for a program without options.
///
/// # Errors
/// What is wrong with it.
pub fn load_from_environment() -> Result<Config, Error> {
    Ok(Config::load(&Config::locate(None)?)?)
}

/// Opens what the configuration names; sends nothing.
///
/// # Errors
/// What is wrong with the configuration.
pub fn open(config: Option<&Path>) -> Result<Rewind, Error> {
    Rewind::new(load(config)?)
}

/// The configured ZVM, and a person or script who asks something of it.
pub struct Session {
    rewind: Rewind,
    cancel: CancellationToken,
    change_id: String,
}

impl Session {
    /// Opens the configured ZVM.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub fn open(config: Option<&Path>, interrupt: &Interrupt) -> Result<Self, Error> {
        Ok(Self::with(open(config)?, interrupt))
    }

    /// With this ZVM.
    pub fn with(rewind: Rewind, interrupt: &Interrupt) -> Self {
        Self {
            rewind,
            cancel: interrupt.token(),
            change_id: rewind_mcp::new_change_id(),
        }
    }

    /// Asks something of the ZVM, with its progress shown meanwhile. Where no login is tried any more because too many were
    /// refused, the person at the terminal may have it tried once more.
    ///
    /// # Errors
    /// As `work` has them.
    pub async fn run<T>(
        &self,
        work: impl AsyncFn(&Rewind, Call) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let before = self.left_mounted().await;
        let result = self.attempt(work).await;
        // What was left before and still is; what is left just now, the result tells.
        for (session, why) in self.left_mounted().await {
            if before.iter().any(|(known, _)| *known == session) {
                output::warning(&format!(
                    "FLR session {session} of an earlier recovery is still mounted: {why}\nIt was tried again beside this command. Put the reason right, or unmount it in the ZVM's own interface."
                ));
            }
        }
        result
    }

    /// Nothing where it can't be told: what the command itself needs of the state says so.
    async fn left_mounted(&self) -> Vec<(String, String)> {
        self.rewind.left_mounted().await.unwrap_or_default()
    }

    async fn attempt<T>(
        &self,
        work: impl AsyncFn(&Rewind, Call) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let result = telling(&self.rewind, work(&self.rewind, self.call())).await;
        let error = match result {
            Err(error) if error.code == ErrorCode::LoginRefused && terminal::is_there() => error,
            result => return result,
        };
        if !self.logins_are_blocked() {
            return Err(error);
        }
        output::note(&hanging(&output::ours(&error.message), ""));
        output::note(&hanging(LOCKS, ""));
        let agrees = tokio::select! {
            agrees = terminal::agrees("Log in once more?") => agrees,
            () = self.cancel.cancelled() => {
                return Err(Error::new(ErrorCode::Cancelled, "no login was sent")
                    .with_next("Run it again to be asked again."));
            }
        };
        if !agrees {
            return Err(error);
        }
        self.rewind.allow_one_login()?;
        telling(&self.rewind, work(&self.rewind, self.call())).await
    }

    /// The configured ZVM.
    pub fn rewind(&self) -> &Rewind {
        &self.rewind
    }

    /// Whether the state permits no login. An attempt that it does permit is given back.
    fn logins_are_blocked(&self) -> bool {
        let config = self.rewind.config();
        let state = State::new(&config.state_dir);
        let credentials = &config.credentials;
        let Ok(secret) = credentials.secret().get() else {
            return false;
        };
        match state.login_permitted(&config.zvm(), credentials.account(), &secret) {
            Err(LoginError::Blocked(LoginBlocked::Busy { .. } | LoginBlocked::TooSoon { .. })) => {
                false
            }
            Err(LoginError::Blocked(_)) => true,
            Err(_) => false,
            Ok(attempt) => {
                if let Err(error) = state.login_ended(attempt, LoginOutcome::Unsent) {
                    tracing::debug!(%error, "the attempt was not given back");
                }
                false
            }
        }
    }

    /// A call of this command.
    pub fn call(&self) -> Call {
        Call {
            session_change_id: self.change_id.clone(),
            seat: self.seat(),
            ..call(self.cancel.clone())
        }
    }

    /// The user; but where there is a passphrase, a shell of an agent's is the same user and does not know it, so that an agreement
    /// is for this command alone.
    fn seat(&self) -> String {
        match Approver::of(&self.rewind.config().state_dir).is_set() {
            Ok(false) => caller(),
            Ok(true) | Err(_) => self.change_id.clone(),
        }
    }
}

/// A call of the person or script at this command line, with its progress shown.
pub fn call(cancel: CancellationToken) -> Call {
    Call {
        progress: Some(Bar::new()),
        cancel,
        caller: caller(),
        session_change_id: String::new(),
        seat: caller(),
    }
}

/// Does this, and tells what came up beside it, whether it failed or not: whoever closes what was interrupted is the only one who
/// can tell it.
pub async fn telling<T>(rewind: &Rewind, work: impl Future<Output = T>) -> T {
    let result = work.await;
    warn(rewind);
    result
}

/// Tells on stderr what a person should know and no call failed with.
pub fn warn(rewind: &Rewind) {
    for warning in rewind.take_warnings() {
        output::warning(&warning);
    }
}

/// Who works at this command line, for the tag.
pub fn caller() -> String {
    format!("cli/{}", user())
}

/// The name of the user: as the environment has it, else as the system knows it, else the number of the user.
fn user() -> String {
    let environment = ["USER", "LOGNAME", "USERNAME"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok());
    environment
        .chain(whoami::username())
        .find(|name| !name.trim().is_empty())
        .unwrap_or_else(number)
}

#[cfg(unix)]
fn number() -> String {
    format!("uid-{}", rustix::process::getuid().as_raw())
}

#[cfg(not(unix))]
fn number() -> String {
    "unknown".into()
}
