//! A ZVM that lies, other users of the host, and what the documents promise about both.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]
#![cfg(unix)]

mod support;

#[path = "hostile/archives.rs"]
mod archives;
#[path = "hostile/bodies.rs"]
mod bodies;
#[path = "hostile/elsewhere.rs"]
mod elsewhere;
#[path = "hostile/faces.rs"]
mod faces;
#[path = "hostile/names.rs"]
mod names;
#[path = "hostile/neighbours.rs"]
mod neighbours;
#[path = "hostile/promises.rs"]
mod promises;
