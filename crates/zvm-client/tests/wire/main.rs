//! What goes over the wire and what is made of what comes back, against a server that does what each test tells it, bytes cut
//! off and connections dropped included.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod bodies;
mod certificates;
mod download;
mod gate;
mod limits;
mod login;
mod requests;
mod retries;
mod server;
