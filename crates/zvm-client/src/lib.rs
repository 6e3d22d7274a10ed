//! The slice of the ZVM REST API that zerto-rewind needs, typed: tolerant in what it reads, exact in what it sends.
//!
//! Start at [`Zvm`]. The decisions behind it are in the crate's README.

mod auth;
pub mod bodies;
mod calls;
mod certificate;
mod client;
mod config;
mod decode;
mod download;
mod error;
mod login;
mod model;
mod secret;
mod tls;
mod transport;

pub use auth::Login;
pub use certificate::{CertificateJudge, CertificateRefusal, Fingerprint, NoFingerprint};
pub use client::Zvm;
pub use config::{Credentials, Timeouts, TlsTrust, ZvmConfig};
pub use download::Download;
pub use error::Error;
pub use login::{LoginAttempt, LoginBlocked, LoginGate, NoLoginGate};
pub use model::*;
pub use secret::{Secret, SecretSource};
pub use tls::authorities;
pub use transport::{proxy_of, shown_certificate};
