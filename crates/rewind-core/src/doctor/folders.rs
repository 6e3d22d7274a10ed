//! The folders that are written to, and the stop.
use super::{Check, LOCAL, Status, id, on_this_host};
use crate::{
    Error, ErrorCode,
    config::Config,
    marker::{self, Marker},
    private,
    recovery::{self, Destination, GuestPath},
    state::{FolderError, State, StateError, folder},
    stop::{StopNote, Stops},
};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The state, if it can be used, and whether files can be locked in its folder.
pub(super) async fn state(config: &Config) -> ((Check, Option<State>), Check) {
    let dir = config.state_dir.clone();
    let shown = dir.display().to_string();
    let open = move || {
        // Before the database, which says of a full disk that it fails.
        private::try_to_write(&folder::prepare(&dir)?).map_err(|source| FolderError::Io {
            dir: dir.clone(),
            source,
        })?;
        let state = State::open(dir)?;
        state.try_to_write()?;
        Ok::<_, StateError>(state)
    };
    let state = match on_this_host(LOCAL, open).await {
        None => Err(Check::silent(id::STATE_FOLDER, &shown)),
        Some(Err(error)) => Err(Check::of_error(id::STATE_FOLDER, error.into())),
        Some(Ok(state)) => Ok(state),
    };
    let state = match state {
        Ok(state) => state,
        Err(check) => {
            let locks = Check::skipped_after(id::LOCKS, check.id);
            return ((check, None), locks);
        }
    };
    let dir = config.state_dir.clone();
    let locks = match on_this_host(LOCAL, move || exclude(&dir)).await {
        None => Check::silent(id::LOCKS, &shown),
        Some(Err(error)) => Check::of_error(id::LOCKS, error.into()),
        Some(Ok(false)) => Check::of_error(
            id::LOCKS,
            Error::new(
                ErrorCode::State,
                format!("{shown}: a lock there keeps nobody out, so that guards of several programs would disturb each other"),
            )
            .with_next("Name a folder on a local file system in `state_dir`."),
        ),
        Some(Ok(true)) => Check::ok(id::LOCKS, "files can be locked there"),
    };
    let found = Check::ok(
        id::STATE_FOLDER,
        format!("{shown}: private, and its database works"),
    );
    ((found, Some(state)), locks)
}

/// Whether a lock keeps others out.
fn exclude(dir: &Path) -> Result<bool, StateError> {
    let dir = folder::prepare(dir)?;
    let marker = Marker::create(&dir, "doctor-")?;
    Ok(marker::lives(&dir, marker.name())?)
}

/// The folder that recovered files are placed in, looked at as a recovery would. It is made by the first one, not here.
pub(super) async fn recover(config: &Config) -> Check {
    let dir = config.recover_dir.clone();
    let shown = dir.display().to_string();
    match on_this_host(LOCAL, move || placeable(&dir)).await {
        None => Check::silent(id::RECOVER_FOLDER, &shown),
        Some(Err(error)) => Check::of_error(
            id::RECOVER_FOLDER,
            error.with_next(
                "Put right what the message names, or name another folder in `recover_dir`.",
            ),
        ),
        Some(Ok(Place::Missing)) => Check::ok(
            id::RECOVER_FOLDER,
            format!("{shown}: is not there yet, and the first recovery can make it"),
        ),
        Some(Ok(Place::Writable(0))) => {
            Check::ok(id::RECOVER_FOLDER, format!("{shown}: can be written to"))
        }
        Some(Ok(Place::Writable(open))) => Check::warning(
            id::RECOVER_FOLDER,
            format!("{shown}: others may write to it ({open:04o})"),
            format!(
                "Run `chmod 700 {}`.",
                crate::config::word(&config.recover_dir)
            ),
        ),
    }
}

enum Place {
    Missing,
    /// With the folder's mode, where others may write to it.
    Writable(u32),
}

fn placeable(dir: &Path) -> Result<Place, Error> {
    // What a recovery looks at before it asks a person, of a file that no checkpoint has.
    let nothing = GuestPath::parse("/zerto-rewind-doctor")?;
    Destination::InRecoverDir(None).lands(dir, "doctor", 0, &nothing)?;
    let there = dir.ancestors().find(|path| path.exists());
    let there = there.unwrap_or(Path::new("/"));
    private::try_to_write(there).map_err(|error| recovery::unusable(there, &error))?;
    match there == dir {
        true => Ok(Place::Writable(open(dir))),
        false => Ok(Place::Missing),
    }
}

#[cfg(unix)]
fn open(dir: &Path) -> u32 {
    use std::os::unix::fs::MetadataExt as _;
    match fs::metadata(dir) {
        Ok(found) if found.mode() & 0o022 != 0 => found.mode() & 0o7777,
        // What can't be looked at could not be written to either.
        _ => 0,
    }
}

#[cfg(not(unix))]
fn open(_: &Path) -> u32 {
    0
}

/// Whether a person has stopped changes.
pub(super) async fn stop(state_dir: PathBuf) -> Check {
    let shown = state_dir.display().to_string();
    let look = on_this_host(LOCAL, move || {
        let stops = Stops::of(&state_dir);
        let notes: Result<Vec<_>, _> = stops.iter().map(|stop| stop.in_force()).collect();
        notes
    });
    match look.await {
        None => Check::silent(id::STOP, &shown),
        Some(Err(error)) => Check::of_error(id::STOP, error),
        Some(Ok(notes)) => in_force(notes),
    }
}

/// The user's own alone, where the configuration that could name a folder with another one can't be read (`hidden`).
pub(super) async fn stop_of_user(state_dir: PathBuf, hidden: bool) -> Check {
    let check = stop(state_dir).await;
    match check.status {
        Status::Ok if hidden => Check::skipped(
            id::STOP,
            format!(
                "not known, because of `{}`, which may name a state folder with a stop; your own for all folders is not in force",
                id::CONFIGURATION
            ),
        ),
        _ => check,
    }
}

fn in_force(notes: Vec<Option<StopNote>>) -> Check {
    match notes.into_iter().flatten().next() {
        None => Check::ok(id::STOP, "none is in force"),
        Some(note) => Check::warning(
            id::STOP,
            format!("{note}; every listed call and every guard is refused"),
            "Lift it when the reason is gone: run `zerto-rewind resume`.",
        ),
    }
}
