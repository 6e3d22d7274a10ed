//! What processes of ours left on this host when they died: their unfinished guards and calls are closed, their incomplete files
//! removed, and who waited in a queue leaves it. The ZVM is asked nothing.
use super::{
    folders::{has_marked, remove_marked},
    interrupted::{self, Told},
};
use crate::{
    Error, private,
    rewind::Core,
    state::{
        Interrupted, State, StateError,
        places::{PlaceId, WorkPlace},
    },
    text,
};
use std::{
    fs::{File, OpenOptions, TryLockError},
    thread,
    time::{Duration, Instant},
};

/// Held while this is done: two at once would take from each other's feet the folders that a new recovery is about to use.
const LOCK: &str = "clean-up.lock";
/// One that takes longer, or was stopped, is not waited for: the next one tries again.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Places of which the state knows that something incomplete may be left there.
pub(super) struct Noted(Vec<(PlaceId, WorkPlace)>);

/// Writes down where a recovery is about to work.
pub(super) async fn note(core: &Core, places: Vec<WorkPlace>) -> Result<Noted, Error> {
    let noted = core
        .with_state(move |state| state.places_begun(places))
        .await?;
    Ok(Noted(noted))
}

impl Noted {
    /// The recovery makes nothing there any more. What a cancelled one is still busy with stays noted, until this process has ended.
    pub async fn left(self, core: &Core) {
        let clean = core.with_state(move |state| {
            let clean = self.0.into_iter().filter(|(_, place)| !has_marked(place));
            state.places_clean(clean.map(|(id, _)| id).collect())
        });
        if let Err(error) = clean.await {
            tracing::warn!(%error, "it can't be remembered that a recovery left nothing behind");
        }
    }
}

pub(crate) async fn close_interrupted(core: &Core) -> Result<(), Error> {
    let locks = core.locks.clone();
    let closed = core.with_state(move |state| {
        let closed = close(state);
        if let Err(error) = locks.forget_dead() {
            tracing::debug!(%error, "who waited for a lock and died can't be told");
        }
        closed
    });
    let Interrupted {
        guards,
        plans,
        guest_writes,
    } = closed.await?;
    for warning in interrupted::restores_and_recoveries(plans, guest_writes) {
        match warning {
            Told::OfRestore { id, text } => core.warnings.add_about(&id, text),
            Told::Of(text) => core.warnings.add(text),
        }
    }
    for guard in guards {
        core.warnings.add(format!(
            "a guard was interrupted: its process ended before it could write down how it ended. Whether its tag is listed, the journal \
             says. {} (begun at {:.0})",
            text::display(&guard.tag, 500),
            guard.at
        ));
    }
    Ok(())
}

fn close(state: &State) -> Result<Interrupted, StateError> {
    let mut closed = Interrupted::default();
    if state.dead_owners()?.is_empty() {
        return Ok(closed);
    }
    let Some(_alone) = alone(state) else {
        return Ok(closed);
    };
    // Another process may have been quicker.
    for owner in state.dead_owners()? {
        for place in state.places_left(&owner)? {
            remove_marked(&place);
        }
        let of_this = state.close_interrupted(&owner)?;
        closed.guards.extend(of_this.guards);
        closed.plans.extend(of_this.plans);
        closed.guest_writes.extend(of_this.guest_writes);
    }
    Ok(closed)
}

fn alone(state: &State) -> Option<File> {
    let file = private::open(&state.dir().join(LOCK), OpenOptions::new().create(true)).ok()?;
    let until = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Some(file),
            Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(LOOK_AGAIN),
            Err(_) => return None,
        }
    }
}
