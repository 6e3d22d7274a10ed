//! What stands between a listed call and its server, against the simulated ZVM.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod drift;
mod guard;
mod ledger;
mod logins;
mod reload;
mod reuse;
mod share;
mod stage;
mod stop;
#[path = "../loop/support.rs"]
#[allow(dead_code, reason = "the other tests use all of it")]
mod support;
mod verdict;
