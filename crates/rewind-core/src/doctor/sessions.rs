//! FLR sessions that were left behind. They are looked at, not unmounted.
use super::{Check, LOCAL, id, on_this_host};
use crate::{
    recovery::{claims, mounts},
    state::{
        OpenSession, State,
        lately::{InterruptedLately, InterruptedRecovery},
    },
    text::{self, counted},
};
use zvm_client::{FlrSession, FlrSessionId};

const SHOWN_MAX_LEN: usize = 300;
const GUARDS: &str = "See whether its tag is in the journal, and whether the change was made all the same. Where it is still wanted, guard again.";
const RECOVERIES: &str = "What a recovery had placed is complete; ask again for what is missing, as a plan is carried out once.";
const FOLDERS: &str = "What is incomplete on this host, the next command that asks the ZVM removes, such as `zerto-rewind find VM`.";
const RESTORES: &str = "A file in a guest is the old one or the new one, never a half; what is beside it is removed when that guest is reached \
    again: by another restore, a comparison, or `zerto-rewind undo-restore ID`.";
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

/// Guards and recoveries of the last day whose process died before they ended, and what is still left of any.
pub(super) async fn interrupted(state: State) -> Check {
    let since = state
        .now()
        .checked_sub(LATELY)
        .unwrap_or(jiff::Timestamp::MIN);
    let look = on_this_host(LOCAL, move || state.interrupted_since(since));
    let lately = match look.await {
        None => return Check::silent(id::INTERRUPTED, "the state"),
        Some(Err(error)) => return Check::of_error(id::INTERRUPTED, error.into()),
        Some(Ok(found)) => found,
    };
    let InterruptedLately {
        guards,
        recoveries,
        restores,
        folders,
    } = lately;
    let counts = [
        (guards.len(), "guard", "guards"),
        (recoveries.len(), "recovery", "recoveries"),
        (restores.len(), "file in a guest", "files in guests"),
        (folders.len(), "folder on this host", "folders on this host"),
    ];
    let counted =
        |(count, one, many): &(usize, &str, &str)| (*count > 0).then(|| counted(*count, one, many));
    let [guard, recovery, restore, folder] = counts.each_ref().map(counted);
    let ended: Vec<_> = guard.iter().chain(&recovery).map(String::as_str).collect();
    let left: Vec<_> = restore.iter().chain(&folder).map(String::as_str).collect();
    let message = match (ended.is_empty(), left.is_empty()) {
        (true, true) => return Check::ok(id::INTERRUPTED, "none in the last 24 hours"),
        (false, true) => format!(
            "{} ended with the process, in the last 24 hours; nothing is left of it",
            ended.join(" and ")
        ),
        (false, false) => format!(
            "{} ended with the process, in the last 24 hours; what is left of it: {}",
            ended.join(" and "),
            left.join(", ")
        ),
        (true, false) => format!("left by what was interrupted: {}", left.join(", ")),
    };
    let fixes = [
        (guard, GUARDS),
        (recovery, RECOVERIES),
        (folder, FOLDERS),
        (restore, RESTORES),
    ];
    let fixes: Vec<_> = fixes
        .into_iter()
        .filter_map(|(there, fix)| there.map(|_| fix))
        .collect();
    let guards = guards
        .iter()
        .map(|guard| format!("guard begun at {:.0}: {}", guard.at, guard.tag));
    let recoveries = recoveries.iter().map(|recovery| {
        let InterruptedRecovery { plan, vm, at, .. } = recovery;
        let since = match recovery.is_closed {
            true => "a later command has cleaned up after it",
            false => "nothing has cleaned up after it yet",
        };
        format!("recovery from {vm} (plan {plan}), begun at {at:.0}: {since}")
    });
    let restores = restores.iter().map(|write| {
        format!(
            "in the guest of {}: {} (restore {})",
            write.vm, write.target, write.name
        )
    });
    let folders = folders
        .iter()
        .map(|folder| format!("on this host: what is incomplete in {}", folder.display()));
    Check::warning(id::INTERRUPTED, message, fixes.join(" ")).with_details(
        guards
            .chain(recoveries)
            .chain(restores)
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
