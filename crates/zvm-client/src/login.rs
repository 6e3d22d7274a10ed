//! Who may try to log in: the realm locks an account after five refusals in 12 h.

use std::time::Duration;

/// One attempt to log in, before it is sent. The gate keeps the count for all processes.
#[derive(Clone, Debug)]
pub struct LoginAttempt<'a> {
    /// Host and port of the ZVM.
    pub zvm: &'a str,
    /// User name or client id.
    pub account: &'a str,
    /// The secret, for the gate to tell a changed one; never kept in the clear.
    pub secret: &'a secrecy::SecretString,
}

/// Why no login is tried.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct LoginBlocked {
    /// What happened and what lifts the block.
    pub reason: String,
    /// The block lifts by itself: ask again after this. Without it, asking again does not help.
    pub retry_after: Option<Duration>,
    /// Whether it may be tried could not be found out: no login was refused, and nothing is wrong with the credentials.
    pub undecided: bool,
}

/// Asked before each password or client secret is sent (blocking calls: short). Refresh tokens don't ask.
/// `permit` reserves the attempt; exactly one of the others follows.
pub trait LoginGate: std::fmt::Debug + Send + Sync {
    /// May this attempt be made? Reserves it.
    ///
    /// # Errors
    /// [`LoginBlocked`] where it may not; nothing is sent then. With `retry_after`, the client waits that long and asks again,
    /// until its deadline.
    fn permit(&self, attempt: &LoginAttempt<'_>) -> Result<(), LoginBlocked>;
    /// The ZVM accepted it.
    fn accepted(&self, attempt: &LoginAttempt<'_>);
    /// The ZVM refused the credentials, in these words: one line in quotation marks, bounded, without the secret.
    fn refused(&self, attempt: &LoginAttempt<'_>, said: &str);
    /// The ZVM said nothing about the credentials: not a refusal. `sent`: they may have arrived, and the answer was lost, so that it
    /// may have been one.
    fn unanswered(&self, attempt: &LoginAttempt<'_>, sent: bool);
}

/// No gate: every attempt may be made.
#[derive(Debug)]
pub struct NoLoginGate;

impl LoginGate for NoLoginGate {
    fn permit(&self, _: &LoginAttempt<'_>) -> Result<(), LoginBlocked> {
        Ok(())
    }
    fn accepted(&self, _: &LoginAttempt<'_>) {}
    fn refused(&self, _: &LoginAttempt<'_>, _: &str) {}
    fn unanswered(&self, _: &LoginAttempt<'_>, _: bool) {}
}
