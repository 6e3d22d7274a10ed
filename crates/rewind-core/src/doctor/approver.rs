//! The approver's passphrase: a choice, so that to have none is no fault.
use super::{Check, LOCAL, id, on_this_host};
use crate::{approver::Approver, state::StateError};
use jiff::Timestamp;
use std::path::PathBuf;

/// For programs with this state folder.
pub(super) async fn check(state_dir: PathBuf) -> Check {
    let shown = state_dir.display().to_string();
    let look = move || {
        let approver = Approver::of(&state_dir);
        Ok::<_, StateError>((approver.since()?, approver.locked_until()?))
    };
    match on_this_host(LOCAL, look).await {
        None => Check::silent(id::PASSPHRASE, &shown),
        Some(Err(error)) => Check::of_error(id::PASSPHRASE, error.into()),
        Some(Ok((since, locked))) => judged(since, locked),
    }
}

fn judged(since: Option<Timestamp>, locked: Option<Timestamp>) -> Check {
    match (since, locked) {
        (None, _) => Check::ok(
            id::PASSPHRASE,
            "none is set: a yes at a terminal counts, whoever types it. `zerto-rewind approver set` sets one",
        ),
        (Some(since), None) => Check::ok(id::PASSPHRASE, format!("one is set, since {since:.0}")),
        (Some(_), Some(until)) => Check::warning(
            id::PASSPHRASE,
            format!(
                "one is set, and wrong ones were tried: none is accepted before {until:.0}, so that nobody can agree to anything"
            ),
            "Wait until then; and find out who tried, if it was none of you.",
        ),
    }
}
