//! Whatever comes from outside: no panic, no unbounded memory, no hang, and what must hold does. See `fuzz/README.md`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::exit,
    missing_docs
)]

mod catalog;
mod config;
mod driver;
mod flr_path;
#[path = "../hook_events/gate.rs"]
#[allow(dead_code)]
mod gate;
mod hook_event;
mod mcp_line;
mod proxy_line;
mod proxy_receipt;
mod tag;
mod text;
mod zip;
mod zvm_body;
