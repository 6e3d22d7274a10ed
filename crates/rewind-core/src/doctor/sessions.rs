//! FLR sessions that were left behind. They are looked at, not unmounted.
use super::{Check, LOCAL, id, on_this_host};
use crate::{
    recovery::{claims, mounts},
    state::{OpenSession, State},
    text::{self, counted},
};
use zvm_client::{FlrSession, FlrSessionId};

const SHOWN_MAX_LEN: usize = 300;
const LATELY: jiff::SignedDuration = jiff::SignedDuration::from_hours(24);

/// What the state has, compared with the sessions that are open on the ZVM where it said which those are.
pub(super) async fn check(zvm: String, state: State, open: Option<&[FlrSession]>) -> Check {
    let ours = match on_this_host(LOCAL, move || state.open_sessions(&zvm)).await {
        None => return Check::silent(id::SESSIONS, "the state"),
        Some(Err(error)) => return Check::of_error(id::SESSIONS, error.into()),
        Some(Ok(ours)) => ours,
    };
    let left: Vec<_> = ours
        .iter()
        .filter(|session| is_left(session, open))
        .collect();
    if !left.is_empty() {
        return Check::warning(
            id::SESSIONS,
            format!("left mounted by earlier recoveries: {}", counted(left.len(), "FLR session", "FLR sessions")),
            "The next command that asks the ZVM unmounts them, such as `zerto-rewind find VM`; or unmount them in the ZVM's own interface.",
        )
        .with_details(left.into_iter().map(described));
    }
    let running = ours.iter().filter(|session| !session.is_orphan()).count();
    let mut found = match running {
        0 => "none was left behind".to_owned(),
        _ => format!(
            "none was left behind; {} in progress",
            counted(running, "recovery is", "recoveries are")
        ),
    };
    let others = open.unwrap_or_default().iter();
    match others
        .filter(|session| !ours.iter().any(|open| claims(open, session)))
        .count()
    {
        0 => {}
        others => found.push_str(&format!(
            "; on the ZVM {} open, which no recovery touches",
            counted(others, "session of others is", "sessions of others are")
        )),
    }
    Check::ok(id::SESSIONS, found)
}

/// Guards and recoveries of the last day whose process died before they ended.
pub(super) async fn interrupted(state: State) -> Check {
    let since = state
        .now()
        .checked_sub(LATELY)
        .unwrap_or(jiff::Timestamp::MIN);
    let look = on_this_host(LOCAL, move || state.interrupted_since(since));
    let (guards, folders) = match look.await {
        None => return Check::silent(id::INTERRUPTED, "the state"),
        Some(Err(error)) => return Check::of_error(id::INTERRUPTED, error.into()),
        Some(Ok(found)) => found,
    };
    if guards.is_empty() && folders.is_empty() {
        return Check::ok(id::INTERRUPTED, "none in the last 24 hours");
    }
    let counts = [
        (guards.len(), "guard", "guards"),
        (folders.len(), "recovery", "recoveries"),
    ];
    let counts: Vec<_> = counts
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, many)| counted(count, one, many))
        .collect();
    let guards = guards
        .iter()
        .map(|guard| format!("guard begun at {:.0}: {}", guard.at, guard.tag));
    let folders = folders
        .iter()
        .map(|folder| format!("recovery to {}", folder.display()));
    Check::warning(
        id::INTERRUPTED,
        format!("{} ended with the process, in the last 24 hours", counts.join(" and ")),
        "See whether the change was made all the same: nobody was told that it may be. Where it is still wanted, guard again. What a recovery \
         left incomplete, the next command that asks the ZVM removes.",
    )
    .with_details(
        guards
            .chain(folders)
            .map(|detail| text::display(&detail, SHOWN_MAX_LEN)),
    )
}

/// Nobody uses it, and it is not known to be gone.
fn is_left(session: &OpenSession, open: Option<&[FlrSession]>) -> bool {
    let is_open = |open: &[FlrSession]| match &session.session_identifier {
        Some(id) => {
            let id = FlrSessionId(id.clone());
            open.iter().any(|session| session.id.same_as(&id))
        }
        // Its mount was asked for, and the answer was lost.
        None => open.iter().any(|open| mounts(open, &session.mount)),
    };
    session.is_orphan() && open.is_none_or(is_open)
}

fn described(session: &OpenSession) -> String {
    let checkpoint = &session.mount.checkpoint_id;
    let of = match &session.session_identifier {
        Some(id) => format!("{id}, of checkpoint {checkpoint}"),
        None => format!("a mount of checkpoint {checkpoint} whose answer was lost"),
    };
    let why = session
        .left
        .as_ref()
        .map_or_else(String::new, |why| format!(": {why}"));
    text::display(
        &format!("{of}, since {:.0}{why}", session.since),
        SHOWN_MAX_LEN,
    )
}
