//! Mixed load with faults and kills, and a look at what is left: `cargo bench -p zerto-rewind --bench soak -- --minutes 10 --seed 7`.
//!
//! What is done is drawn from the seed, which is printed; when it happens, the machine decides. It fails where an answer was not true, or
//! where anything is left or has grown. `--seconds` instead of `--minutes` is for a short one, as the tests have it.
#![cfg(unix)]
// `value["member"]` of a JSON value reads null where nothing is.
#![allow(clippy::indexing_slicing)]

#[path = "soak/run.rs"]
mod run;

use std::time::Duration;

fn main() -> run::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().map(String::as_str) == Some(run::ECHO) {
        return run::echo();
    }
    let number = |name: &str| -> Option<u64> {
        let place = words.iter().position(|word| word == name)?;
        words.get(place + 1)?.parse().ok()
    };
    let seconds = number("--seconds").or_else(|| number("--minutes").map(|minutes| 60 * minutes));
    let length = Duration::from_secs(seconds.unwrap_or(600));
    run::soak(length, number("--seed"))
}
