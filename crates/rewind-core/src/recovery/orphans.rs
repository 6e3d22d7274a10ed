//! FLR sessions that a process of ours left behind, and those that stand in the way. What is not ours is never touched.
use super::session::{busy_with, closed, is_of, unmount_until_gone};
use crate::{Error, clock::ZvmClock, rewind::Core, state::OpenSession};
use jiff::{SignedDuration, Timestamp};
use std::{sync::PoisonError, time::Duration};
use tokio::time::{Instant, sleep};
use zvm_client::{FlrSession, FlrSessionId, FlrStatus};

/// How long after it was asked for a mount may have begun.
const BEGINS_WITHIN: SignedDuration = SignedDuration::from_mins(10);
/// How far the clocks of this host and of the ZVM may drift within the life of a session.
const DRIFT: SignedDuration = SignedDuration::from_mins(1);

/// Unmounts what processes of ours left behind. The number of sessions that are gone now.
pub(crate) async fn clean_up_orphans(core: &Core) -> Result<usize, Error> {
    let (mut gone, mut failure) = (0, None);
    for orphan in orphans(core).await? {
        match clean_up(core, &orphan).await {
            Ok(true) => gone += 1,
            Ok(false) => {}
            Err(error) => failure = Some(error),
        }
    }
    failure.map_or(Ok(gone), Err)
}

async fn orphans(core: &Core) -> Result<Vec<OpenSession>, Error> {
    let abandoned = core
        .abandoned
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    let mut open = open_sessions(core).await?;
    open.retain(|session| !session.owner_lives || abandoned.contains(&session.id));
    Ok(open)
}

/// Those of all processes of this user.
pub(super) async fn open_sessions(core: &Core) -> Result<Vec<OpenSession>, Error> {
    let zvm = core.config.zvm();
    core.with_state(move |state| state.open_sessions(&zvm))
        .await
}

/// True: it was open, and is gone now.
async fn clean_up(core: &Core, orphan: &OpenSession) -> Result<bool, Error> {
    let id = match &orphan.session_identifier {
        Some(id) => Some(FlrSessionId(id.clone())),
        None => begun(core, orphan).await?,
    };
    let was_open = match &id {
        Some(id) => core.zvm.flr_session(id).await?.is_some(),
        None if may_still_begin(orphan) => return Ok(false),
        None => false,
    };
    if let Some(id) = id.filter(|_| was_open) {
        tracing::info!(session = %id, "unmounting an FLR session that was left behind");
        if !unmount_until_gone(core, &id).await? {
            return Ok(false);
        }
    }
    closed(core, orphan.id).await;
    core.abandoned
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .retain(|id| *id != orphan.id);
    Ok(was_open)
}

fn may_still_begin(orphan: &OpenSession) -> bool {
    Timestamp::now().duration_since(orphan.since) < BEGINS_WITHIN
}

/// The session of a mount that was asked for and whose answer nobody read. It mounts the same, no process of ours has it, and
/// it began when ours was asked for; anything less is not enough.
async fn begun(core: &Core, orphan: &OpenSession) -> Result<Option<FlrSessionId>, Error> {
    let Ok(checkpoint) = orphan.mount.checkpoint_id.parse() else {
        return Ok(None);
    };
    let clock = ZvmClock::read(&core.zvm).await?;
    let ahead = clock.at().duration_since(Timestamp::now());
    let asked = orphan.since.saturating_add(ahead).unwrap_or(orphan.since);
    let known = open_sessions(core).await?;
    let mount = &orphan.mount;
    Ok(core
        .zvm
        .flr_sessions(&mount.vm_identifier)
        .await?
        .into_iter()
        .find(|session| {
            let after = session.mount_time.map(|time| time.duration_since(asked));
            is_of(
                session,
                &mount.vm_identifier,
                &mount.vpg_identifier,
                checkpoint,
            ) && owner_of(session, &known).is_none()
                && after.is_some_and(|after| after > -DRIFT && after < BEGINS_WITHIN)
        })
        .map(|session| session.id))
}

fn owner_of<'a>(session: &FlrSession, known: &'a [OpenSession]) -> Option<&'a OpenSession> {
    known.iter().find(|open| {
        open.session_identifier
            .as_ref()
            .is_some_and(|id| FlrSessionId(id.clone()).same_as(&session.id))
    })
}

/// Whether a checkpoint of this VM may be mounted: no session is open on it, once those that were left behind are gone.
pub(super) async fn make_way(core: &Core, vm_identifier: &str) -> Result<(), Error> {
    if let Err(error) = clean_up_orphans(core).await {
        tracing::warn!(%error, "what was left behind can't be cleaned up now");
    }
    let until = Instant::now() + core.patience.unmount;
    loop {
        let sessions = core.zvm.flr_sessions(vm_identifier).await?;
        let staying = sessions
            .iter()
            .find(|session| session.status != FlrStatus::Unmounting);
        let leaving = sessions.first();
        match (staying, leaving) {
            (None, None) => return Ok(()),
            (Some(session), _) => {
                let ours = owner_of(session, &open_sessions(core).await?).is_some();
                return Err(if ours {
                    busy_with(session, "and belongs to another recovery of this user")
                        .with_next("Wait until that recovery has ended, then try again.")
                } else {
                    busy_with(session, "and is not ours")
                });
            }
            (None, Some(session)) if Instant::now() >= until => {
                return Err(busy_with(session, "and does not go away"));
            }
            (None, Some(_)) => sleep(Duration::from_millis(500)).await,
        }
    }
}
