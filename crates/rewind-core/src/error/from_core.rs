//! The errors of the parts of this crate as the domain's.
use super::{Error, ErrorCode};
use crate::{config::ConfigError, lock::LockError, state::StateError};

impl From<StateError> for Error {
    fn from(error: StateError) -> Self {
        let mapped = Self::new(ErrorCode::State, error.to_string());
        match error.next() {
            Some(next) => mapped.with_next(next),
            None => mapped,
        }
    }
}

impl From<LockError> for Error {
    fn from(error: LockError) -> Self {
        let code = match error {
            LockError::Ending => ErrorCode::Cancelled,
            _ => ErrorCode::State,
        };
        let mapped = Self::new(code, error.to_string());
        let next = match &error {
            LockError::Folder(folder) => Some(folder.next()),
            LockError::File(file) => file.next(),
            LockError::Io { .. } | LockError::Ending => None,
        };
        match next {
            Some(next) => mapped.with_next(next),
            None => mapped,
        }
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        Self::new(ErrorCode::Configuration, error.to_string()).with_next(error.next())
    }
}
