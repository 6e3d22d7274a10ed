//! What processes of ours left on this host when they died: their unfinished guards and calls are closed, their incomplete files
//! removed, and who waited in a queue leaves it. The ZVM is asked nothing.
use super::folders::{has_marked, remove_marked};
use crate::{
    Error, private,
    rewind::Core,
    state::{
        State, StateError,
        interrupted::InterruptedGuard,
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

/// A place of which the state knows that something incomplete may be left there.
pub(super) struct Noted {
    /// None: the state can't know it.
    id: Option<PlaceId>,
    place: WorkPlace,
}

/// Writes down where a recovery is about to work.
pub(super) async fn note(core: &Core, place: WorkPlace) -> Result<Noted, Error> {
    let noted = place.clone();
    let id = core
        .with_state(move |state| state.place_begun(&noted))
        .await?;
    Ok(Noted { id, place })
}

impl Noted {
    /// The recovery makes nothing there any more. What a cancelled one is still busy with stays noted, until this process has ended.
    pub async fn left(self, core: &Core) {
        let Self { id, place } = self;
        let Some(id) = id else { return };
        let clean = core.with_state(move |state| {
            if has_marked(&place) {
                Ok(())
            } else {
                state.place_clean(id)
            }
        });
        if let Err(error) = clean.await {
            tracing::warn!(%error, "it can't be remembered that a recovery left nothing behind");
        }
    }
}

pub(super) async fn close_interrupted(core: &Core) -> Result<(), Error> {
    let locks = core.locks.clone();
    let closed = core.with_state(move |state| {
        let closed = close(state);
        if let Err(error) = locks.forget_dead() {
            tracing::debug!(%error, "who waited for a lock and died can't be told");
        }
        closed
    });
    for guard in closed.await? {
        core.warn(format!(
            "a guard was interrupted: its process ended before the tag was known to be listed, and nobody was told that the change may be \
             made. {} (begun at {:.0})",
            text::display(&guard.tag, 500),
            guard.at
        ));
    }
    Ok(())
}

fn close(state: &State) -> Result<Vec<InterruptedGuard>, StateError> {
    if state.dead_owners()?.is_empty() {
        return Ok(Vec::new());
    }
    let Some(_alone) = alone(state) else {
        return Ok(Vec::new());
    };
    let mut guards = Vec::new();
    // Another process may have been quicker.
    for owner in state.dead_owners()? {
        for place in state.places_left(&owner)? {
            remove_marked(&place);
        }
        guards.extend(state.close_interrupted(&owner)?);
    }
    Ok(guards)
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
