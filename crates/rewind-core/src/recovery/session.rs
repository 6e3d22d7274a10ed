//! One FLR session of ours, unmounted whatever happens.
//!
//! A task of its own keeps the session: it asks for the mount, waits until its user lets go (by closing, by failing, or
//! because the user's future was dropped), and unmounts. What it is about to do is in the state before it does it, so that
//! the next start finds what a crash left behind.
use super::orphans::open_sessions;
use crate::{
    Done, Error, ErrorCode,
    checkpoints::Chosen,
    protection::Found,
    rewind::Core,
    state::{FlrMount, SessionId},
    text,
};
use std::{
    sync::{Arc, OnceLock, PoisonError},
    time::Duration,
};
use tokio::{
    sync::oneshot::{self, error::TryRecvError},
    time::{Instant, sleep},
};
use zvm_client::{FlrSession, FlrSessionId, FlrStatus};

const POLL_MIN: Duration = Duration::from_millis(100);
const POLL_MAX: Duration = Duration::from_secs(2);

/// A session that is asked for. Dropping it unmounts in the background.
pub(super) struct Session {
    id: Arc<OnceLock<FlrSessionId>>,
    opened: Option<oneshot::Receiver<Result<FlrSessionId, Error>>>,
    release: Option<oneshot::Sender<()>>,
    ended: oneshot::Receiver<bool>,
}

/// What is mounted.
#[derive(Clone)]
pub(super) struct Mount {
    pub vm_identifier: String,
    pub chosen: Chosen,
}

impl Mount {
    pub fn of(found: &Found, chosen: &Chosen) -> Self {
        Self {
            vm_identifier: found.vm_identifier.clone(),
            chosen: chosen.clone(),
        }
    }

    fn record(&self, core: &Core) -> FlrMount {
        FlrMount {
            zvm: core.config.zvm(),
            vm_identifier: self.vm_identifier.clone(),
            vpg_identifier: self.chosen.vpg.id().to_owned(),
            checkpoint_id: self.chosen.checkpoint.id.to_string(),
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

    /// Lets go, and waits until the session is gone: unmounted, or never opened. False: not yet, or not known.
    pub async fn close(&mut self) -> bool {
        self.release.take();
        (&mut self.ended).await.unwrap_or(false)
    }

    /// What was done, for an error.
    pub fn done(&self, closed: bool) -> Option<Done> {
        let session = text::display(&self.id.get()?.0, 100);
        Some(Done::SessionOpened { session, closed })
    }
}

/// Waits until the ZVM has mounted the checkpoint.
pub(super) async fn mounted(core: &Core, id: &FlrSessionId) -> Result<(), Error> {
    let patience = core.patience;
    let (asked, mut poll, mut seen) = (Instant::now(), POLL_MIN, false);
    loop {
        match core.zvm.flr_session(id).await? {
            Some(session) => {
                seen = true;
                match session.status {
                    FlrStatus::Ready => return Ok(()),
                    FlrStatus::Failed | FlrStatus::Unmounting => {
                        let state = text::display(&session.status_text, 100);
                        return Err(failed(format!("its state is {state}")));
                    }
                    FlrStatus::Pending => {}
                }
            }
            None if seen || asked.elapsed() > patience.appear => {
                return Err(failed("the session vanished".to_owned()));
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
        ending: oneshot::Sender<bool>,
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
                let _ = ending.send(true);
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
            ask(core, &self.mount).await
        };
        let gone = match asked {
            Ok(id) => {
                self.remember(number, &id).await;
                let _ = opening.send(Ok(id.clone()));
                let _ = released.await;
                unmounted(core, &id).await
            }
            Err(NotOpened {
                error,
                nothing_open,
            }) => {
                let _ = opening.send(Err(error));
                nothing_open
            }
        };
        if gone {
            closed(core, number).await;
        } else {
            abandon(core, number);
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

async fn unmounted(core: &Core, id: &FlrSessionId) -> bool {
    unmount_until_gone(core, id).await.unwrap_or_else(|error| {
        tracing::warn!(%error, session = %id, "an FLR session can't be unmounted now");
        false
    })
}

struct NotOpened {
    error: Error,
    /// Whether it is certain that no session was opened.
    nothing_open: bool,
}

async fn ask(core: &Core, mount: &Mount) -> Result<FlrSessionId, NotOpened> {
    let certain = |error: Error| NotOpened {
        error,
        nothing_open: true,
    };
    let zvm = core
        .zvm
        .by((Instant::now() + core.patience.mount).into_std());
    let checkpoint = mount.chosen.checkpoint.id;
    match zvm
        .mount(&mount.vm_identifier, mount.chosen.vpg.id(), checkpoint)
        .await
    {
        Ok(id) => Ok(id),
        Err(
            error @ (zvm_client::Error::Unknown { .. }
            | zvm_client::Error::Unreadable { .. }
            | zvm_client::Error::TooLarge { .. }
            | zvm_client::Error::Deadline { unknown: true, .. }),
        ) => {
            tracing::warn!(%error, "the answer to a mount was lost; looking for the session");
            match appeared(core, mount).await {
                Ok(Some(id)) => Ok(id),
                // It may still appear: the state remembers that it was asked for.
                Ok(None) => Err(NotOpened {
                    error: error.into(),
                    nothing_open: false,
                }),
                Err(look) => Err(NotOpened {
                    error: look,
                    nothing_open: false,
                }),
            }
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
                Some(session) => busy_with(&session, "and the ZVM mounts no second one"),
                None => failed(text::display(&message, 500)),
            }))
        }
        Err(error) => Err(certain(error.into())),
    }
}

/// The session of a mount whose answer was lost: there was none on this VM before, so one of this VM, VPG and checkpoint that
/// no other process of ours has is ours.
async fn appeared(core: &Core, mount: &Mount) -> Result<Option<FlrSessionId>, Error> {
    let until = Instant::now() + core.patience.appear;
    loop {
        let sessions = core.zvm.flr_sessions(&mount.vm_identifier).await?;
        let known = open_sessions(core).await?;
        let is_known = |id: &FlrSessionId| {
            known
                .iter()
                .filter_map(|open| open.session_identifier.clone())
                .any(|known| FlrSessionId(known).same_as(id))
        };
        let ours = sessions.into_iter().find(|session| {
            is_of(
                session,
                &mount.vm_identifier,
                mount.chosen.vpg.id(),
                mount.chosen.checkpoint.id.0,
            ) && !is_known(&session.id)
        });
        match ours {
            Some(session) => return Ok(Some(session.id)),
            None if Instant::now() >= until => return Ok(None),
            None => sleep(Duration::from_secs(1)).await,
        }
    }
}

/// Whether the ZVM says that a session mounts exactly this.
pub(super) fn is_of(session: &FlrSession, vm: &str, vpg: &str, checkpoint: u64) -> bool {
    let is = |said: &Option<String>, id: &str| {
        said.as_deref()
            .is_some_and(|said| said.eq_ignore_ascii_case(id))
    };
    is(&session.vm_identifier, vm)
        && is(&session.vpg_identifier, vpg)
        && session.checkpoint.is_some_and(|id| id.0 == checkpoint)
}

/// Unmounts a session of ours and waits until the ZVM no longer has it. False: it still has it when the time is up.
pub(super) async fn unmount_until_gone(core: &Core, id: &FlrSessionId) -> Result<bool, Error> {
    let until = Instant::now() + core.patience.unmount;
    let zvm = core.zvm.by(until.into_std());
    let mut poll = POLL_MIN;
    let mut asked = false;
    loop {
        if !asked {
            match zvm.unmount(id).await {
                Ok(()) => asked = true,
                Err(error) if Instant::now() >= until => return Err(error.into()),
                // It may be busy or out of reach for a moment; the session tells below whether to ask again.
                Err(error) => tracing::debug!(%error, session = %id, "asked to unmount"),
            }
        }
        match zvm.flr_session(id).await {
            Ok(None) => return Ok(true),
            // A refusal to unmount that came later.
            Ok(Some(session)) if asked && session.status == FlrStatus::Failed => asked = false,
            Ok(Some(session)) => asked |= session.status == FlrStatus::Unmounting,
            Err(error) if Instant::now() >= until => return Err(error.into()),
            Err(error) => tracing::debug!(%error, session = %id, "waiting until it is unmounted"),
        }
        if Instant::now() >= until {
            return Ok(false);
        }
        sleep(poll).await;
        poll = POLL_MAX.min(poll.mul_f64(1.5));
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

fn abandon(core: &Core, number: SessionId) {
    core.abandoned
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(number);
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
            text::display(&session.id.0, 100),
            text::display(&session.status_text, 100),
        ),
    )
}

fn failed(why: String) -> Error {
    Error::new(
        ErrorCode::FlrFailed,
        format!("the checkpoint was not mounted: {why}"),
    )
}
