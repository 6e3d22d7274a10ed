//! The MCP face of zerto-rewind: a server with six tools over the domain in `rewind-core`.
//!
//! The decisions about the protocol are in this crate's `README.md`.
pub mod advice;
mod answer;
mod arguments;
mod backend;
mod person;
mod progress;
pub mod proxy;
mod schema;
mod server;
mod stdio;
pub mod text;
pub mod tools;
mod transport;

pub use backend::Backend;
pub use server::{Server, new_change_id};
pub use stdio::{CLEAN_UP_TIME, serve_lines, serve_stdio};
