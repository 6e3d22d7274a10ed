//! One command's dealings with the ZVM.
use std::path::Path;

use rewind_core::{
    Call, Error, ErrorCode, Rewind,
    config::Config,
    state::{LoginBlocked, LoginError, LoginOutcome, State},
};
use tokio_util::sync::CancellationToken;

use crate::{interrupt::Interrupt, output, progress::Bar, terminal};

/// Opens what the configuration names; sends nothing.
///
/// # Errors
/// What is wrong with the configuration.
pub fn open(config: Option<&Path>) -> Result<Rewind, Error> {
    Rewind::new(load(config)?)
}

/// Loads the configuration.
///
/// # Errors
/// What is wrong with it.
pub fn load(config: Option<&Path>) -> Result<Config, Error> {
    Ok(Config::load(&Config::locate(config)?)?)
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
        Ok(Self {
            rewind: open(config)?,
            cancel: interrupt.token(),
            change_id: rewind_mcp::new_change_id(),
        })
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
        let error = match work(&self.rewind, self.call()).await {
            Err(error) if error.code == ErrorCode::LoginRefused && terminal::is_there() => error,
            result => return result,
        };
        if !self.logins_are_blocked() {
            return Err(error);
        }
        output::note(&output::lines(&error.message));
        let agrees = tokio::select! {
            agrees = terminal::agrees("Try to log in once more?") => agrees,
            () = self.cancel.cancelled() => false,
        };
        if !agrees {
            return Err(error);
        }
        self.rewind.allow_one_login()?;
        work(&self.rewind, self.call()).await
    }

    /// Whether the state permits no login. An attempt that it does permit is given back.
    fn logins_are_blocked(&self) -> bool {
        let config = self.rewind.config();
        let state = State::new(&config.state_dir);
        let credentials = &config.credentials;
        match state.login_permitted(&config.zvm(), credentials.account(), credentials.secret()) {
            Err(LoginError::Blocked(LoginBlocked::Busy { .. })) => false,
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

    fn call(&self) -> Call {
        Call {
            progress: Some(Bar::new()),
            cancel: self.cancel.clone(),
            caller: caller(),
            session_change_id: self.change_id.clone(),
        }
    }
}

/// Who works at this command line, for the tag.
pub fn caller() -> String {
    format!("cli/{}", user())
}

/// The name of the user, as the environment has it.
fn user() -> String {
    ["USER", "LOGNAME", "USERNAME"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown".into())
}
