//! Find, guard, list and recover against the simulated ZVM.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod checkpoints;
mod clocks;
mod company;
#[cfg(unix)]
mod diff;
mod find;
mod guard;
mod guard_failures;
#[cfg(unix)]
mod guest;
mod interrupted;
mod ledger;
mod looks;
mod orphans;
mod paths;
mod plans;
mod recover;
mod recover_failures;
#[cfg(unix)]
#[path = "../sshd/mod.rs"]
mod sshd;
mod support;
mod tool_call;
