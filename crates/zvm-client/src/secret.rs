//! A password or client secret, and where it comes from.

use std::{fmt, sync::Arc};

use secrecy::SecretString;

use crate::Error;

/// Gives a secret whenever a login is about to be sent (blocking calls: they run where that is allowed).
pub trait SecretSource: fmt::Debug + Send + Sync {
    /// The secret as it is now.
    ///
    /// # Errors
    /// Why there is none, without any part of it.
    fn secret(&self) -> Result<SecretString, String>;
}

/// A password or client secret. `Debug` does not show it.
#[derive(Clone, Debug)]
pub enum Secret {
    /// This one.
    Known(SecretString),
    /// The one that is given when a login is about to be sent.
    Asked(Arc<dyn SecretSource>),
}

impl Secret {
    pub(crate) async fn get(&self, account: &str) -> Result<SecretString, Error> {
        let source = match self {
            Self::Known(secret) => return Ok(secret.clone()),
            Self::Asked(source) => Arc::clone(source),
        };
        let given = tokio::task::spawn_blocking(move || source.secret())
            .await
            .unwrap_or_else(|error| Err(error.to_string()));
        given.map_err(|detail| Error::NoSecret {
            account: account.to_owned(),
            detail,
        })
    }
}

impl From<SecretString> for Secret {
    fn from(secret: SecretString) -> Self {
        Self::Known(secret)
    }
}

impl From<String> for Secret {
    fn from(secret: String) -> Self {
        Self::Known(secret.into())
    }
}

impl From<&str> for Secret {
    fn from(secret: &str) -> Self {
        Self::Known(secret.into())
    }
}
