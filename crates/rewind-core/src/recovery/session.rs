//! One FLR session of ours, unmounted whatever happens.
//!
//! A task of its own keeps the session: it asks for the mount, waits until its user lets go (by closing, by failing, or
//! because the user's future was dropped), and unmounts. What it is about to do is in the state before it does it, so that
//! the next start finds what a crash left behind.
use super::orphans::{claims, mounts, open_sessions};
use crate::{
    Done, Error, ErrorCode,
    checkpoints::Chosen,
    clock::ZvmClock,
    protection::Found,
    rewind::Core,
    state::{FlrMount, SessionId},
    text,
};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::{
    sync::oneshot::{self, error::TryRecvError},
    time::{Instant, sleep},
};
use zvm_client::{FlrSession, FlrSessionId, FlrStatus};

const POLL_MIN: Duration = Duration::from_millis(100);
const POLL_MAX: Duration = Duration::from_secs(2);
/// How often a ZVM may refuse to unmount a session before that is its answer: it may be busy with it for a moment.
const REFUSALS_MAX: u32 = 4;
/// From the first refusal to the next try; then twice as long each time.
const REFUSED_AGAIN: Duration = Duration::from_millis(500);
/// A session that is still mounted so long after the ZVM took the unmount is unmounted again.
const UNMOUNT_AGAIN: Duration = Duration::from_secs(15);
/// A reason must not be waited for longer than what it is the reason of.
const REASON_TIMEOUT: Duration = Duration::from_secs(10);

/// A session that is asked for. Dropping it unmounts in the background.
pub(super) struct Session {
    id: Arc<OnceLock<FlrSessionId>>,
    opened: Option<oneshot::Receiver<Result<FlrSessionId, Error>>>,
    release: Option<oneshot::Sender<()>>,
    ended: oneshot::Receiver<Result<(), String>>,
}

/// What is mounted.
#[derive(Clone)]
pub(crate) struct Mount {
    pub vm_identifier: String,
    pub chosen: Chosen,
    pub clock: ZvmClock,
}

impl Mount {
    pub fn of(found: &Found, chosen: &Chosen, clock: ZvmClock) -> Self {
        Self {
            vm_identifier: found.vm_identifier.clone(),
            chosen: chosen.clone(),
            clock,
        }
    }

    fn record(&self, core: &Core) -> FlrMount {
        FlrMount {
            zvm: core.config.zvm(),
            vm_identifier: self.vm_identifier.clone(),
            vpg_identifier: self.chosen.vpg.id().to_owned(),
            checkpoint_id: self.chosen.checkpoint.id.to_string(),
            zvm_at: self.clock.now(),
        }
    }
}

impl Session {
    /// Begins to ask for the mount.
    pub fn begin(core: &Arc<Core>, mount: Mount) -> Self {
        let (opening, opened) = oneshot::channel();
        let (release, released) = oneshot::channel();
        let (ending, ended) = oneshot::channel();
        let id = Arc::new(OnceLock::new());
        let keeper = Keeper {
            core: core.clone(),
            mount,
            id: id.clone(),
        };
        tokio::spawn(keeper.keep(opening, released, ending));
        Self {
            id,
            opened: Some(opened),
            release: Some(release),
            ended,
        }
    }

    /// Waits until the ZVM has given the session an identifier. It is not mounted yet: see [`mounted`].
    pub async fn opened(&mut self) -> Result<FlrSessionId, Error> {
        let ending = || Error::new(ErrorCode::Cancelled, "the program is ending");
        match self.opened.take() {
            Some(opened) => opened.await.map_err(|_| ending())?,
            None => self.id.get().cloned().ok_or_else(ending),
        }
    }

    /// Lets go, and waits until the session is gone: unmounted, or never opened. Else the reason why it is not, or may not be.
    pub async fn close(&mut self) -> Result<(), String> {
        self.release.take();
        (&mut self.ended)
            .await
            .unwrap_or_else(|_| Err("the program is ending".to_owned()))
    }

    /// What was done, for an error.
    pub fn done(&self, closed: &Result<(), String>) -> Option<Done> {
        self.id.get()?;
        Some(Done::SessionOpened {
            session: self.shown(),
            closed: closed.is_ok(),
            why: closed.clone().err(),
        })
    }

    /// The ZVM's identifier, as far as it is known.
    pub fn shown(&self) -> String {
        self.id
            .get()
            .map_or_else(|| "unknown".to_owned(), |id| text::display(&id.0, 100))
    }
}

/// Waits until the ZVM has mounted the checkpoint.
pub(super) async fn mounted(core: &Core, id: &FlrSessionId) -> Result<(), Error> {
    let patience = core.patience;
    let (asked, mut poll, mut seen) = (Instant::now(), POLL_MIN, false);
    let mut failing = None::<Instant>;
    loop {
        let looked = match core.zvm.flr_session(id).await {
            // The mount goes on without us: a ZVM that does not answer now, or with an error, may answer in a moment.
            Err(error) => {
                let failing = *failing.get_or_insert_with(Instant::now);
                let (since, patience) = match &error {
                    zvm_client::Error::Unreachable { .. } => (asked, patience.mount),
                    zvm_client::Error::Refused { .. } | zvm_client::Error::Unreadable { .. } => {
                        (failing, patience.appear)
                    }
                    _ => return Err(error.into()),
                };
                if since.elapsed() > patience {
                    return Err(error.into());
                }
                tracing::debug!(%error, "the session can't be looked at; looking again");
                sleep(POLL_MAX).await;
                continue;
            }
            Ok(looked) => looked,
        };
        failing = None;
        match looked {
            Some(session) => {
                seen = true;
                match session.status {
                    FlrStatus::Ready => return Ok(()),
                    FlrStatus::Failed | FlrStatus::Unmounting => {
                        let state = text::named(&session.status_text, 100);
                        return Err(failed(
                            with_reason(core, id, &format!("its state is {state}")).await,
                        ));
                    }
                    FlrStatus::Pending => {}
                }
            }
            None if seen || asked.elapsed() > patience.appear => {
                return Err(failed(with_reason(core, id, "the session vanished").await));
            }
            None => {}
        }
        if asked.elapsed() > patience.mount {
            let seconds = patience.mount.as_secs();
            return Err(failed(format!("it is not mounted after {seconds} s")));
        }
        sleep(poll).await;
        poll = POLL_MAX.min(poll.mul_f64(1.5));
    }
}

/// What keeps a session.
struct Keeper {
    core: Arc<Core>,
    mount: Mount,
    id: Arc<OnceLock<FlrSessionId>>,
}

impl Keeper {
    async fn keep(
        self,
        opening: oneshot::Sender<Result<FlrSessionId, Error>>,
        mut released: oneshot::Receiver<()>,
        ending: oneshot::Sender<Result<(), String>>,
    ) {
        let core = &self.core;
        let record = self.mount.record(core);
        let number = match core
            .with_state(move |state| state.session_opening(&record))
            .await
        {
            Ok(number) => number,
            Err(error) => {
                let _ = opening.send(Err(error));
                let _ = ending.send(Ok(()));
                return;
            }
        };
        // Told, or dropped: both mean that nobody needs it any more.
        let given_up = !matches!(released.try_recv(), Err(TryRecvError::Empty));
        let asked = if given_up {
            let error = Error::new(
                ErrorCode::Cancelled,
                "cancelled before the mount was asked for",
            );
            Err(NotOpened {
                error,
                nothing_open: true,
            })
        } else {
            ask(core, &self.mount, number).await
        };
        let gone = match asked {
            Ok(id) => {
                self.remember(number, &id).await;
                let _ = opening.send(Ok(id.clone()));
                let _ = released.await;
                closing(core, number).await;
                unmount_until_gone(core, &id).await
            }
            Err(NotOpened {
                error,
                nothing_open,
            }) => {
                let why = "whether it was opened is not known".to_owned();
                let _ = opening.send(Err(error));
                if nothing_open { Ok(()) } else { Err(why) }
            }
        };
        match &gone {
            Ok(()) => closed(core, number).await,
            Err(why) => left(core, number, why).await,
        }
        let _ = ending.send(gone);
    }

    async fn remember(&self, number: SessionId, id: &FlrSessionId) {
        let _ = self.id.set(id.clone());
        let named = id.0.clone();
        let remembered = self
            .core
            .with_state(move |state| state.session_opened(number, &named));
        if let Err(error) = remembered.await {
            tracing::warn!(%error, session = %id, "an FLR session can't be remembered");
        }
    }
}

struct NotOpened {
    error: Error,
    /// Whether it is certain that no session was opened.
    nothing_open: bool,
}

async fn ask(core: &Core, mount: &Mount, number: SessionId) -> Result<FlrSessionId, NotOpened> {
    let certain = |error: Error| NotOpened {
        error,
        nothing_open: true,
    };
    let zvm = core.zvm.by(Instant::now() + core.patience.mount);
    let checkpoint = mount.chosen.checkpoint.id;
    match zvm
        .mount(&mount.vm_identifier, mount.chosen.vpg.id(), checkpoint)
        .await
    {
        Ok(id) => Ok(id),
        Err(error) if may_be_open(&error) => {
            tracing::warn!(%error, "whether a mount was begun is not known; looking for the session");
            let error = match appeared(core, &mount.record(core), number).await {
                Ok(Some(id)) => return Ok(id),
                Ok(None) => match error {
                    zvm_client::Error::Refused { message, .. } => {
                        failed(text::display(&message, 500))
                    }
                    error => error.into(),
                },
                Err(look) => look,
            };
            Err(NotOpened {
                error: in_doubt(error),
                nothing_open: false,
            })
        }
        Err(
            zvm_client::Error::Refused { message, .. }
            | zvm_client::Error::NotFound { message, .. },
        ) => {
            let busy = core
                .zvm
                .flr_sessions(&mount.vm_identifier)
                .await
                .ok()
                .and_then(|open| open.into_iter().next());
            Err(certain(match busy {
                Some(session) => busy_with(
                    &session,
                    &format!(
                        "and the ZVM mounts no second one: {}",
                        text::display(&message, 500)
                    ),
                ),
                None => failed(text::display(&message, 500)),
            }))
        }
        Err(error) => Err(certain(error.into())),
    }
}

/// After a lost answer; and a ZVM that failed while it answered may have mounted all the same.
fn may_be_open(error: &zvm_client::Error) -> bool {
    use zvm_client::Error as Zvm;
    matches!(
        error,
        Zvm::Unknown { .. }
            | Zvm::Unreadable { .. }
            | Zvm::TooLarge { .. }
            | Zvm::Deadline { unknown: true, .. }
            | Zvm::Refused { status: 500.., .. }
    )
}

/// It may still appear: the state remembers that it was asked for.
fn in_doubt(mut error: Error) -> Error {
    error.message.push_str(
        "; a mount was asked for, and whether it was begun is not known: every further command of this user looks for it and unmounts it",
    );
    error
}

/// The session of a mount whose answer was lost: there was none on this VM before, so one that mounts the same and that no other
/// recovery of ours may have opened is ours.
async fn appeared(
    core: &Core,
    mount: &FlrMount,
    number: SessionId,
) -> Result<Option<FlrSessionId>, Error> {
    let until = Instant::now() + core.patience.appear;
    loop {
        let sessions = core.zvm.flr_sessions(&mount.vm_identifier).await?;
        let mut others = open_sessions(core).await?;
        others.retain(|open| open.id != number);
        let ours = sessions.into_iter().find(|session| {
            mounts(session, mount) && !others.iter().any(|open| claims(open, session))
        });
        match ours {
            Some(session) => return Ok(Some(session.id)),
            None if Instant::now() >= until => return Ok(None),
            None => sleep(Duration::from_secs(1)).await,
        }
    }
}

/// Unmounts a session of ours and waits until the ZVM no longer has it. Else the reason why it still has it: that of a refusal
/// as soon as it is certain, or that the time is up.
pub(super) async fn unmount_until_gone(core: &Core, id: &FlrSessionId) -> Result<(), String> {
    let patience = core.patience.unmount;
    let until = Instant::now() + patience;
    let zvm = core.zvm.by(until);
    let (mut asked, mut poll, mut refusals) = (false, POLL_MIN, 0);
    let mut accepted = None::<Instant>;
    let mut why = format!(
        "the ZVM was still unmounting it after {} s",
        patience.as_secs()
    );
    loop {
        let refused_before = refusals;
        if !asked {
            match zvm.unmount(id).await {
                Ok(()) => {
                    asked = true;
                    accepted = Some(Instant::now());
                }
                Err(error) => {
                    refusals += u32::from(is_refusal(&error));
                    keep_reason(&mut why, error);
                }
            }
        }
        match zvm.flr_session(id).await {
            Ok(None) => return Ok(()),
            Ok(Some(session)) if asked && session.status == FlrStatus::Failed => {
                asked = false;
                // A refusal that came later; a failed mount shows the same until the unmounting begins.
                let state = session.status_text.to_ascii_lowercase();
                if state.contains("unmount") {
                    refusals += 1;
                    let state = text::named(&session.status_text, 100);
                    why = with_reason(core, id, &format!("its state is {state}")).await;
                }
            }
            Ok(Some(session)) if session.status == FlrStatus::Ready => {
                asked &= accepted.is_some_and(|at| at.elapsed() < UNMOUNT_AGAIN);
            }
            Ok(Some(session)) => asked |= session.status == FlrStatus::Unmounting,
            Err(error) => keep_reason(&mut why, error),
        }
        if refusals >= REFUSALS_MAX || Instant::now() >= until {
            tracing::warn!(session = %id, why, "an FLR session can't be unmounted now");
            return Err(why);
        }
        if !asked && refusals > refused_before {
            sleep(REFUSED_AGAIN.saturating_mul(1 << (refusals - 1))).await;
        } else {
            sleep(poll).await;
            poll = POLL_MAX.min(poll.mul_f64(1.5));
        }
    }
}

/// The ZVM's own answer, and no lost one.
fn is_refusal(error: &zvm_client::Error) -> bool {
    use zvm_client::Error as Zvm;
    matches!(error, Zvm::Refused { .. } | Zvm::NotPermitted { .. })
}

/// Our own time limit is no reason.
fn keep_reason(why: &mut String, error: zvm_client::Error) {
    if !matches!(error, zvm_client::Error::Deadline { .. }) {
        *why = Error::from(error).message;
    }
}

/// What is seen of a session, with the reason that its task gives where there is one.
async fn with_reason(core: &Core, id: &FlrSessionId, seen: &str) -> String {
    let zvm = core.zvm.by(Instant::now() + REASON_TIMEOUT);
    match zvm.flr_failure(id).await {
        Ok(Some(reason)) => format!("{} ({seen})", text::quoted(&reason, 500)),
        Ok(None) => format!("{seen}; the ZVM gave no reason"),
        Err(error) => {
            tracing::debug!(%error, session = %id, "the reason can't be asked for");
            seen.to_owned()
        }
    }
}

/// Written before it is asked to be unmounted; but what is mounted is unmounted, whether that can be written or not.
pub(super) async fn closing(core: &Core, number: SessionId) {
    if let Err(error) = core
        .with_state(move |state| state.session_closing(number))
        .await
    {
        tracing::warn!(%error, "it can't be remembered that an FLR session is about to be unmounted");
    }
}

pub(super) async fn closed(core: &Core, number: SessionId) {
    if let Err(error) = core
        .with_state(move |state| state.session_closed(number))
        .await
    {
        tracing::warn!(%error, "it can't be remembered that an FLR session is closed");
    }
}

/// From now on it is anybody's to unmount.
pub(super) async fn left(core: &Core, number: SessionId, why: &str) {
    let why = why.to_owned();
    if let Err(error) = core
        .with_state(move |state| state.session_left(number, &why))
        .await
    {
        tracing::warn!(%error, "it can't be remembered that an FLR session is still mounted");
    }
}

pub(super) fn busy_with(session: &FlrSession, and: &str) -> Error {
    let checkpoint = session
        .checkpoint
        .map_or("an unknown checkpoint".to_owned(), |id| {
            format!("checkpoint {}", id.0)
        });
    let since = session
        .mount_time
        .map_or(String::new(), |time| format!(" since {time}"));
    Error::new(
        ErrorCode::FlrBusy,
        format!(
            "session {} has {checkpoint} of this VM open{since} ({}), {and}",
            text::named(&session.id.0, 100),
            text::named(&session.status_text, 100),
        ),
    )
}

fn failed(why: String) -> Error {
    Error::new(
        ErrorCode::FlrFailed,
        format!("the checkpoint was not mounted: {why}"),
    )
}
