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
mod find;
mod guard;
mod guard_failures;
mod interrupted;
mod ledger;
mod orphans;
mod recover;
mod recover_failures;
mod settings;
mod support;
mod tool_call;
