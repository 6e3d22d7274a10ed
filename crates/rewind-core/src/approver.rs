//! The approver's passphrase: what a person types that an agent with a shell does not know.
//!
//! It is the user's. Where one is set in the state folder of a program or in that of the platform, every command that gives a
//! human's word asks for it.
use crate::{
    Clock, Error, ErrorCode,
    clock::SystemClock,
    config::default_state_dir,
    state::{State, StateError},
};
use argon2::{
    Argon2,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// A shorter one could be guessed, slow as each guess is.
pub const PASSPHRASE_MIN_LEN: usize = 8;
const PASSPHRASE_MAX_LEN: usize = 1024;

const TOO_MANY: &str = "too many wrong passphrases were tried; none is accepted before";
const LAST: &str =
    "the passphrase is wrong, as were those before it; from now on none is accepted before";

/// The passphrases that hold for programs with one state folder.
#[derive(Clone, Debug)]
pub struct Approver {
    /// The program's own, and the platform's.
    states: Vec<PathBuf>,
    clock: Arc<dyn Clock>,
}

impl Approver {
    /// For programs with this state folder. Nothing is made there before a passphrase is set.
    #[must_use]
    pub fn of(state_dir: &Path) -> Self {
        Self::with_clock(state_dir, Arc::new(SystemClock))
    }

    /// As [`of`](Self::of), by another clock than the system's.
    #[must_use]
    pub fn with_clock(state_dir: &Path, clock: Arc<dyn Clock>) -> Self {
        let users = default_state_dir().filter(|users| users != state_dir);
        Self {
            states: [state_dir.to_owned()].into_iter().chain(users).collect(),
            clock,
        }
    }

    /// Whether one is set.
    ///
    /// # Errors
    /// `state`: it can't be told, and so nothing may be agreed to.
    pub fn is_set(&self) -> Result<bool, Error> {
        Ok(self.since()?.is_some())
    }

    /// Since when the one that counts is set; None: none is.
    pub(crate) fn since(&self) -> Result<Option<Timestamp>, StateError> {
        Ok(self.hash()?.map(|(_, _, since)| since))
    }

    /// When one was last set or removed, if ever: what a person has said before at a terminal, they have said under other rules.
    pub(crate) fn changed(&self) -> Result<Option<Timestamp>, StateError> {
        let mut changed = None;
        for state in self.states()? {
            changed = changed.max(state.approver_newest()?.map(|(at, _)| at));
        }
        Ok(changed)
    }

    /// Those of the folders that exist.
    fn states(&self) -> Result<Vec<State>, StateError> {
        let mut states = Vec::new();
        for folder in &self.states {
            if State::is_in(folder)? {
                states.push(State::new(folder));
            }
        }
        Ok(states)
    }

    /// The program's own, and the user's only where that has none: who can set one of them does not get past the other.
    fn hash(&self) -> Result<Option<(State, String, Timestamp)>, StateError> {
        for state in self.states()? {
            if let Some((since, Some(hash))) = state.approver_newest()? {
                return Ok(Some((state, hash, since)));
            }
        }
        Ok(None)
    }

    /// Until when none is accepted, as too many wrong ones were tried; None: one may be tried, or none is set.
    pub(crate) fn locked_until(&self) -> Result<Option<Timestamp>, StateError> {
        match self.hash()? {
            Some((state, ..)) => state.approver_locked_until(self.clock.now()),
            None => Ok(None),
        }
    }

    /// Whether it is of any use to ask for it now, so that nobody types one that can't be accepted.
    ///
    /// # Errors
    /// `passphrase_refused`: none is accepted for a while; `state`.
    pub fn may_be_tried(&self) -> Result<(), Error> {
        match self.locked_until()? {
            Some(until) => Err(locked(TOO_MANY, until)),
            None => Ok(()),
        }
    }

    /// Whether this is it. Slow on purpose.
    ///
    /// # Errors
    /// `passphrase_refused`: it is not, or too many were tried that were not; `state`.
    pub fn check(&self, passphrase: &SecretString) -> Result<(), Error> {
        let Some((state, hash, _)) = self.hash()? else {
            return Ok(());
        };
        let attempt = match state.approver_attempt(self.clock.now())? {
            Ok(attempt) => attempt,
            Err(until) => return Err(locked(TOO_MANY, until)),
        };
        if is_of(passphrase, &hash)? {
            return Ok(state.approver_was_right(attempt, self.clock.now())?);
        }
        Err(match state.approver_locked_until(self.clock.now())? {
            Some(until) => locked(LAST, until),
            None => Error::new(ErrorCode::PassphraseRefused, "the passphrase is wrong"),
        })
    }

    /// Sets one in the program's own state folder. Whoever may do that has to be asked before.
    ///
    /// # Errors
    /// `invalid_argument`: it is too short or too long; `state`.
    pub fn set(&self, passphrase: &SecretString, by: &str) -> Result<(), Error> {
        let length = passphrase.expose_secret().chars().count();
        if !(PASSPHRASE_MIN_LEN..=PASSPHRASE_MAX_LEN).contains(&length) {
            let message = format!(
                "a passphrase has from {PASSPHRASE_MIN_LEN} to {PASSPHRASE_MAX_LEN} characters"
            );
            return Err(Error::new(ErrorCode::InvalidArgument, message)
                .with_next("Choose another one, such as five words."));
        }
        let hash = Argon2::default()
            .hash_password(passphrase.expose_secret().as_bytes())
            .map_err(|error| failed(&error))?;
        self.write(Some(&hash.to_string()), by)
    }

    /// From now on none is asked for on behalf of the program's own state folder. Where none was, nothing changes.
    ///
    /// # Errors
    /// `state`.
    pub fn remove(&self, by: &str) -> Result<(), Error> {
        let Some(own) = self.states.first() else {
            return Ok(());
        };
        if !State::is_in(own)? {
            return Ok(());
        }
        match State::new(own).approver_newest()? {
            Some((_, Some(_))) => self.write(None, by),
            _ => Ok(()),
        }
    }

    fn write(&self, hash: Option<&str>, by: &str) -> Result<(), Error> {
        let Some(folder) = self.states.first() else {
            return Ok(());
        };
        Ok(State::new(folder).approver_set(hash, by, self.clock.now())?)
    }
}

/// The right one is refused then, too.
fn locked(why: &str, until: Timestamp) -> Error {
    Error::new(ErrorCode::PassphraseRefused, format!("{why} {until:.0}")).with_next(format!(
        "Wait until {until:.0}, then run it again. The right one is not accepted earlier, either."
    ))
}

fn is_of(passphrase: &SecretString, hash: &str) -> Result<bool, Error> {
    let hash = PasswordHash::new(hash).map_err(|error| failed(&error))?;
    match Argon2::default().verify_password(passphrase.expose_secret().as_bytes(), &hash) {
        Ok(()) => Ok(true),
        Err(argon2::password_hash::Error::PasswordInvalid) => Ok(false),
        Err(error) => Err(failed(&error)),
    }
}

fn failed(error: &dyn std::fmt::Display) -> Error {
    Error::new(
        ErrorCode::State,
        format!("the approver's passphrase can't be used: {error}"),
    )
}

#[cfg(test)]
mod tests;
