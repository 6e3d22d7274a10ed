//! The way to a configuration that works: `init` makes one, `doctor` says what is wrong with it.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod doctor;
mod guests;
mod init;
#[cfg(all(feature = "keyring", target_os = "linux"))]
mod keyring;
#[path = "../../../rewind-core/tests/sshd/mod.rs"]
mod sshd;
#[path = "../support/mod.rs"]
mod support;
