//! The hook, with a scripted gate in the place of the catalog and the ZVM.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]
#[path = "hook_events/arbitrary.rs"]
mod arbitrary;
#[path = "hook_events/failures.rs"]
mod failures;
#[path = "hook_events/formats.rs"]
mod formats;
#[path = "hook_events/gate.rs"]
mod gate;
