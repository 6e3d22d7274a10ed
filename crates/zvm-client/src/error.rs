//! What can go wrong between us and a ZVM; each variant says what the caller can do.

/// What can go wrong. `what` is always the call in words, for example "list the checkpoints of VPG Payroll".
/// Texts from the ZVM are clipped, free of control characters, and in quotation marks.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No answer: name resolution, refused or broken connection, time-out; GETs were retried. Nothing was changed.
    #[error("{what}: the ZVM at {host} can't be reached: {detail}")]
    Unreachable {
        /// The call.
        what: String,
        /// Host and port.
        host: String,
        /// What happened.
        detail: String,
    },
    /// The certificate failed verification. Not retried.
    #[error("the certificate of {host} was not accepted: {detail}")]
    Certificate {
        /// Host and port.
        host: String,
        /// Why, and what to do.
        detail: String,
    },
    /// The certificate is not the one that the [`crate::CertificateJudge`] knows. Nothing was sent. Not retried.
    #[error("the certificate of {host} {refusal}")]
    Untrusted {
        /// Host and port.
        host: String,
        /// Why.
        refusal: crate::CertificateRefusal,
    },
    /// User, password, client or secret refused, or the account is not usable. Not repeated.
    #[error("the ZVM refused the login of {account}: {detail}")]
    LoginRefused {
        /// User name or client id.
        account: String,
        /// The realm's words, and what to do.
        detail: String,
    },
    /// Not tried: the [`crate::SecretSource`] has no secret.
    #[error("there is no secret for the login of {account}: {detail}")]
    NoSecret {
        /// User name or client id.
        account: String,
        /// Why.
        detail: String,
    },
    /// Not tried: too many refused logins, or whether there were is unknown.
    #[error(transparent)]
    LoginBlocked(#[from] crate::LoginBlocked),
    /// 403, or 401 with a fresh token.
    #[error("{what}: not permitted for {account}: {detail}")]
    NotPermitted {
        /// The call.
        what: String,
        /// User name or client id.
        account: String,
        /// The ZVM's words, and what to do.
        detail: String,
    },
    /// 404.
    #[error("{what}: not found: {message}")]
    NotFound {
        /// The call.
        what: String,
        /// The ZVM's words.
        message: String,
    },
    /// Any other answer that is not a success, in the ZVM's words. GETs: 502, 503, 504 were retried.
    #[error("{what}: the ZVM answered {status}: {message}")]
    Refused {
        /// The call.
        what: String,
        /// The HTTP status.
        status: u16,
        /// The ZVM's words.
        message: String,
    },
    /// A POST or DELETE may have taken effect: the request may have arrived, its answer did not (or a gateway answered in
    /// the ZVM's place, or the answer can't be read). Never repeated blindly.
    #[error("{what}: the answer was lost, it may or may not have happened: {detail}")]
    Unknown {
        /// The call.
        what: String,
        /// What happened.
        detail: String,
    },
    /// A success whose body is not what it should be (HTML, empty, truncated, other JSON).
    #[error("{what}: the answer can't be read: {detail}")]
    Unreadable {
        /// The call.
        what: String,
        /// What is wrong with it.
        detail: String,
    },
    /// An answer over the limit.
    #[error("{what}: the answer is larger than {limit} {unit}")]
    TooLarge {
        /// The call.
        what: String,
        /// The limit.
        limit: u64,
        /// What was counted: "bytes" or "items".
        unit: &'static str,
    },
    /// A download URL that points to another host.
    #[error("{what}: refused to follow the download to another host, {host}")]
    ForeignHost {
        /// The call.
        what: String,
        /// That host, with its scheme or port where only these differ.
        host: String,
    },
    /// The caller's deadline passed.
    #[error("{what}: not finished within the time limit")]
    Deadline {
        /// The call.
        what: String,
        /// As in [`Error::Unknown`]: the request may have taken effect.
        unknown: bool,
    },
    /// The configuration can't be used (URL, CA file).
    #[error("{0}")]
    Config(String),
}
