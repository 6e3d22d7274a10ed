//! FLR sessions that a process of ours left behind, and those that stand in the way. What is not ours is never touched.
use super::{
    leftovers::close_interrupted,
    session::{busy_with, closed, closing, left, unmount_until_gone},
};
use crate::{
    Error,
    clock::ZvmClock,
    rewind::Core,
    state::{FlrMount, OpenSession},
    text,
};
use jiff::{SignedDuration, Timestamp};
use std::{
    collections::{HashMap, hash_map::Entry},
    future::Future,
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};
use zvm_client::{FlrSession, FlrSessionId, FlrStatus};

/// How long after it was asked for a mount may begin: longer than any request is under way. What begins later is somebody else's.
const BEGINS_WITHIN: SignedDuration = SignedDuration::from_mins(2);
/// How much earlier than it was asked for a mount may seem to have begun: the ZVM may tell whole seconds.
const EARLIER: SignedDuration = SignedDuration::from_secs(2);

/// How long a command that is done waits for the clean-up beside it.
const MOMENT: Duration = Duration::from_secs(1);

/// Does `work`, and beside it unmounts what processes of ours left behind: no call to the ZVM where there is nothing. Neither
/// its failure nor its length is the work's: what it can't do within a moment after the work goes on in the background for as
/// long as this process lives, and else is left to the next one.
pub(crate) async fn clean_up_beside<T>(core: &Core, work: impl Future<Output = T>) -> T {
    let cleaning = tokio::spawn({
        let core = core.me.upgrade();
        async move {
            let Some(core) = core else { return };
            // One clean-up at a time is enough.
            let Ok(_alone) = core.cleaning.try_lock() else {
                return;
            };
            if let Err(error) = clean_up(&core).await {
                tracing::warn!(%error, "what was left behind can't be cleaned up now");
            }
        }
    });
    let result = work.await;
    let _ = timeout(MOMENT, cleaning).await;
    result
}

/// Unmounts what processes of ours left behind. The number of sessions that are gone now.
pub(crate) async fn clean_up_orphans(core: &Core) -> Result<usize, Error> {
    let _alone = core.cleaning.lock().await;
    clean_up(core).await
}

async fn clean_up(core: &Core) -> Result<usize, Error> {
    close_interrupted(core).await?;
    let (mut gone, mut failure) = (0, None);
    let mut seen = Seen::default();
    for orphan in orphans(core).await? {
        match clean_up_one(core, &orphan, &mut seen).await {
            Ok(true) => {
                gone += 1;
                seen = Seen::default();
            }
            Ok(false) => {}
            Err(error) => failure = Some(error),
        }
    }
    failure.map_or(Ok(gone), Err)
}

/// What was seen at the ZVM: asked for once, however many mounts are looked for, until something has changed.
#[derive(Default)]
struct Seen {
    clock: Option<ZvmClock>,
    /// By VM.
    sessions: HashMap<String, Vec<FlrSession>>,
}

impl Seen {
    async fn now(&mut self, core: &Core) -> Result<Timestamp, Error> {
        let clock = match self.clock {
            Some(clock) => clock,
            None => *self.clock.insert(ZvmClock::read(&core.zvm).await?),
        };
        Ok(clock.now())
    }

    async fn sessions(&mut self, core: &Core, vm: &str) -> Result<&[FlrSession], Error> {
        Ok(match self.sessions.entry(vm.to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(core.zvm.flr_sessions(vm).await?),
        })
    }
}

async fn orphans(core: &Core) -> Result<Vec<OpenSession>, Error> {
    let zvm = core.config.zvm();
    core.with_state(move |state| state.orphaned_sessions(&zvm))
        .await
}

/// See [`Rewind::left_mounted`](crate::Rewind::left_mounted).
pub(crate) async fn left_mounted(core: &Core) -> Result<Vec<(String, String)>, Error> {
    let open = open_sessions(core).await?;
    let left = open.into_iter().filter_map(|open| {
        let session = text::display(&open.session_identifier?, 100);
        Some((session, text::display(&open.left?, 300)))
    });
    Ok(left.collect())
}

/// Those of all processes of this user.
pub(super) async fn open_sessions(core: &Core) -> Result<Vec<OpenSession>, Error> {
    let zvm = core.config.zvm();
    core.with_state(move |state| state.open_sessions(&zvm))
        .await
}

/// True: it was open, and is gone now.
async fn clean_up_one(core: &Core, orphan: &OpenSession, seen: &mut Seen) -> Result<bool, Error> {
    let id = match &orphan.session_identifier {
        Some(id) => Some(FlrSessionId(id.clone())),
        None => match begun(core, orphan, seen).await? {
            Begun::AsThis(id) => Some(id),
            Begun::NotYet => return Ok(false),
            Begun::Never => None,
        },
    };
    let was_open = match &id {
        Some(id) => core.zvm.flr_session(id).await?.is_some(),
        None => false,
    };
    if let Some(id) = id.filter(|_| was_open) {
        tracing::info!(session = %id, "unmounting an FLR session that was left behind");
        closing(core, orphan.id).await;
        if let Err(why) = unmount_until_gone(core, &id).await {
            left(core, orphan.id, &why).await;
            return Ok(false);
        }
    }
    closed(core, orphan.id).await;
    Ok(was_open)
}

/// What became of a mount that was asked for and whose answer nobody read.
enum Begun {
    AsThis(FlrSessionId),
    NotYet,
    Never,
}

/// A session is the one that was asked for where it mounts the same, no process of ours has it, and it began when ours was asked for, by
/// the ZVM's own clock; anything less is not enough.
async fn begun(core: &Core, orphan: &OpenSession, seen: &mut Seen) -> Result<Begun, Error> {
    let asked = orphan.mount.zvm_at;
    let now = seen.now(core).await?;
    let mut others = open_sessions(core).await?;
    others.retain(|open| open.id != orphan.id);
    let sessions = seen.sessions(core, &orphan.mount.vm_identifier).await?;
    let ours = sessions.iter().find(|session| {
        let after = session.mount_time.map(|time| time.duration_since(asked));
        mounts(session, &orphan.mount)
            && !others.iter().any(|open| claims(open, session))
            && after.is_some_and(|after| after >= -EARLIER && after < BEGINS_WITHIN)
    });
    // Where a clock was set, the other one tells.
    let young = |now: Timestamp, asked| now.duration_since(asked) < BEGINS_WITHIN;
    Ok(match ours {
        Some(session) => Begun::AsThis(session.id.clone()),
        None if young(now, asked) || young(core.state.now(), orphan.since) => Begun::NotYet,
        None => Begun::Never,
    })
}

/// Whether a session may be the one that a recovery of ours opened: by its identifier, or, while the ZVM's answer is on its way to a
/// living process, by what it mounts.
pub(crate) fn claims(open: &OpenSession, session: &FlrSession) -> bool {
    match &open.session_identifier {
        Some(id) => FlrSessionId(id.clone()).same_as(&session.id),
        None => !open.is_orphan() && mounts(session, &open.mount),
    }
}

/// Whether the ZVM says that a session mounts exactly this.
pub(crate) fn mounts(session: &FlrSession, mount: &FlrMount) -> bool {
    let is = |said: &Option<String>, id: &str| {
        said.as_deref()
            .is_some_and(|said| said.eq_ignore_ascii_case(id))
    };
    is(&session.vm_identifier, &mount.vm_identifier)
        && is(&session.vpg_identifier, &mount.vpg_identifier)
        && session
            .checkpoint
            .is_some_and(|id| id.to_string() == mount.checkpoint_id)
}

/// Whether a checkpoint of this VM may be mounted: no session is open on it, once those that were left behind are gone.
pub(super) async fn make_way(core: &Core, vm_identifier: &str) -> Result<(), Error> {
    let until = Instant::now() + core.patience.unmount;
    if let Err(error) = clean_up_orphans(core).await {
        tracing::warn!(%error, "what was left behind can't be cleaned up now");
    }
    loop {
        let sessions = core.zvm.flr_sessions(vm_identifier).await?;
        let staying = sessions
            .iter()
            .find(|session| session.status != FlrStatus::Unmounting);
        let leaving = sessions.first();
        match (staying, leaving) {
            (None, None) => return Ok(()),
            (Some(session), _) => {
                let known = open_sessions(core).await?;
                let ours = known.iter().find(|open| claims(open, session));
                return Err(match ours {
                    Some(OpenSession { left: Some(why), .. }) => {
                        busy_with(
                            session,
                            &format!("was left behind by an earlier recovery of this user and can't be unmounted: {why}"),
                        )
                        .with_next("Put the reason right or unmount the session in the ZVM's own interface, then try again.")
                    }
                    Some(_) => busy_with(session, "and belongs to another recovery of this user")
                        .with_next("Wait until that recovery has ended, then try again."),
                    None => busy_with(session, "and is not ours"),
                });
            }
            (None, Some(session)) if Instant::now() >= until => {
                return Err(busy_with(session, "and does not go away"));
            }
            (None, Some(_)) => sleep(Duration::from_millis(500)).await,
        }
    }
}
