//! Processes that are killed, stopped, or many: the built programs against a simulated ZVM.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod support;

#[path = "crashes/hosts.rs"]
mod hosts;
#[path = "crashes/killed.rs"]
mod killed;
#[path = "crashes/programs.rs"]
mod programs;
#[path = "crashes/queue.rs"]
mod queue;
#[path = "crashes/stage.rs"]
mod stage;
#[path = "crashes/suspended.rs"]
mod suspended;
