//! The state's count of refused logins, as the client asks for it.
use crate::state::{
    LoginAttempt as Reserved, LoginBlocked as Blocked, LoginError, LoginOutcome, State, StateError,
};
use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};
use zvm_client::{LoginAttempt, LoginBlocked, LoginGate};

/// One per client, which has at most one login in flight.
#[derive(Debug)]
pub(crate) struct StateGate {
    state: State,
    /// The key under which the state remembers this ZVM.
    zvm: String,
    reserved: Mutex<Option<Reserved>>,
}

impl StateGate {
    pub fn new(state: State, zvm: String) -> Self {
        Self {
            state,
            zvm,
            reserved: Mutex::new(None),
        }
    }

    fn ended(&self, outcome: LoginOutcome) {
        self.told(|reserved| self.state.login_ended(reserved, outcome));
    }

    fn told(&self, tell: impl FnOnce(Reserved) -> Result<(), StateError>) {
        let reserved = self
            .reserved
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(reserved) = reserved
            && let Err(error) = tell(reserved)
        {
            tracing::warn!(%error, "the outcome of a login can't be remembered; it counts as a refused one");
        }
    }
}

impl StateGate {
    /// Why none is sent, with what the ZVM itself had said.
    fn reason(&self, error: &LoginError, attempt: &LoginAttempt<'_>) -> String {
        match error {
            LoginError::State(error) => error.advice(),
            LoginError::Blocked(Blocked::Busy { .. }) => error.to_string(),
            LoginError::Blocked(blocked) => {
                let said = self
                    .state
                    .login_refusal(&self.zvm, attempt.account, attempt.secret);
                match said {
                    Ok(Some(said)) => {
                        format!("{blocked}. When the ZVM refused it last, it said: {said}")
                    }
                    Ok(None) => blocked.to_string(),
                    Err(error) => {
                        tracing::debug!(%error, "what the ZVM said last can't be told");
                        blocked.to_string()
                    }
                }
            }
        }
    }
}

impl LoginGate for StateGate {
    fn permit(&self, attempt: &LoginAttempt<'_>) -> Result<(), LoginBlocked> {
        let reserved = self
            .state
            .login_permitted(&self.zvm, attempt.account, attempt.secret)
            .map_err(|error| LoginBlocked {
                retry_after: retry_after(&error),
                undecided: matches!(error, LoginError::State(_)),
                reason: self.reason(&error, attempt),
            })?;
        *self.reserved.lock().unwrap_or_else(PoisonError::into_inner) = Some(reserved);
        Ok(())
    }

    fn accepted(&self, _: &LoginAttempt<'_>) {
        self.ended(LoginOutcome::Accepted);
    }

    fn refused(&self, _: &LoginAttempt<'_>, said: &str) {
        self.told(|reserved| self.state.login_refused(reserved, said));
    }

    fn unanswered(&self, _: &LoginAttempt<'_>, sent: bool) {
        self.ended(if sent {
            LoginOutcome::Unknown
        } else {
            LoginOutcome::Unsent
        });
    }
}

/// Where waiting a moment decides it: other processes are logging in right now, or another secret was refused just now.
fn retry_after(error: &LoginError) -> Option<Duration> {
    match error {
        LoginError::Blocked(
            Blocked::Busy { retry_after }
            | Blocked::TooSoon {
                retry_after,
                same_secret: false,
            },
        ) => Some(*retry_after),
        _ => None,
    }
}
