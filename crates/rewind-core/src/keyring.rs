//! The system's keyring: Secret Service on Linux and other Unix systems, Keychain on macOS, Credential Manager on Windows.
//!
//! An entry is known by a service and an account. On Linux these are the attributes `service` and `username` of an item, which
//! `secret-tool` and Python's `keyring` use, too.
//!
//! Only a build with the feature `keyring` can reach it: its D-Bus client is large for what most servers have no use for.

use secrecy::SecretString;

/// Whether this build can reach a keyring, and one answers here. Blocks, for up to 15 s.
#[must_use]
pub fn is_available() -> bool {
    BUILT_IN && store::status().is_ok()
}

/// Whether this build can reach a keyring at all.
pub const BUILT_IN: bool = cfg!(feature = "keyring");

/// Keeps a secret, in place of one that is there. Blocks, for up to 15 s.
///
/// # Errors
/// Why it was not kept.
pub fn keep(service: &str, account: &str, secret: &SecretString) -> Result<(), String> {
    store::keep(service, account, secret)
}

/// The secret of an entry. Blocks, for up to 15 s.
pub(crate) fn get(service: &str, account: &str) -> Result<SecretString, String> {
    store::get(service, account)
}

#[cfg(feature = "keyring")]
mod store {
    use crate::{config::one_line, text};
    use keyring::{Entry, Error};
    use secrecy::{ExposeSecret as _, SecretString, zeroize::Zeroizing};
    use std::{sync::mpsc, thread, time::Duration};

    /// One that is locked asks the person at the screen to unlock it.
    const LIMIT: Duration = Duration::from_secs(15);

    pub fn status() -> Result<(), String> {
        within(|| Entry::store_status().as_ref().map(|()| ()).map_err(reason))
    }

    pub fn keep(service: &str, account: &str, secret: &SecretString) -> Result<(), String> {
        status()?;
        let (service, account) = (service.to_owned(), account.to_owned());
        let secret = secret.clone();
        within(move || {
            Entry::new(&service, &account)
                .and_then(|entry| entry.set_password(secret.expose_secret()))
                .map_err(|error| reason(&error))
        })
    }

    pub fn get(service: &str, account: &str) -> Result<SecretString, String> {
        status()?;
        let (service, account) = (service.to_owned(), account.to_owned());
        within(move || {
            let secret = Entry::new(&service, &account).and_then(|entry| entry.get_secret());
            let secret = Zeroizing::new(secret.map_err(|error| reason(&error))?);
            one_line(&secret).map_err(str::to_owned)
        })
    }

    /// On a thread of its own, as some keyrings wait for a person without end.
    fn within<T: Send + 'static>(
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let (tell, told) = mpsc::channel();
        let work = move || {
            // Nobody may be waiting any more.
            let _ = tell.send(work());
        };
        thread::Builder::new()
            .name("keyring".to_owned())
            .spawn(work)
            .map_err(|error| format!("can't be asked: {error}"))?;
        told.recv_timeout(LIMIT).unwrap_or_else(|error| {
            Err(match error {
                mpsc::RecvTimeoutError::Timeout => format!(
                    "did not answer within {} s: it may be locked, and wait for you to unlock it",
                    LIMIT.as_secs()
                ),
                mpsc::RecvTimeoutError::Disconnected => "failed while it was asked".to_owned(),
            })
        })
    }

    /// Without what an error may carry of the secret.
    fn reason(error: &Error) -> String {
        match error {
            Error::NoEntry => "has no such entry".to_owned(),
            Error::Ambiguous(entries) => format!("has {} such entries", entries.len()),
            Error::BadEncoding(_) | Error::BadDataFormat(..) => {
                "has an entry that is no text".to_owned()
            }
            other => format!("can't be used: {}", text::display(&other.to_string(), 300)),
        }
    }
}

#[cfg(not(feature = "keyring"))]
mod store {
    use secrecy::SecretString;

    const NONE: &str = "is not part of this build";

    pub fn status() -> Result<(), String> {
        Err(NONE.to_owned())
    }

    pub fn keep(_: &str, _: &str, _: &SecretString) -> Result<(), String> {
        Err(NONE.to_owned())
    }

    pub fn get(_: &str, _: &str) -> Result<SecretString, String> {
        Err(NONE.to_owned())
    }
}
