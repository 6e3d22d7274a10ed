//! The short form of the soak in `benches/soak.rs`.
#![cfg_attr(not(unix), allow(unused))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

#[cfg(unix)]
#[path = "../benches/soak/run.rs"]
mod run;

#[cfg(unix)]
fn main() -> run::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().map(String::as_str) == Some(run::ECHO) {
        return run::echo();
    }
    // It is no libtest: a filter that does not mean it is heeded all the same.
    let mut filters = words.iter().filter(|word| !word.starts_with('-'));
    if filters.any(|filter| !"soak".contains(filter.as_str())) {
        return Ok(());
    }
    run::soak(std::time::Duration::from_secs(20), None)
}

#[cfg(not(unix))]
fn main() {}
