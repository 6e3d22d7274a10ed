//! A checkpoint that is mounted for some work, and unmounted whatever comes of it.
use super::{
    StillOpen,
    orphans::make_way,
    session::{Mount, Session, mounted},
};
use crate::{Done, Error, ErrorCode, call::Watch, rewind::Core, text};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, timeout};
use zvm_client::FlrSessionId;

/// A caller that cancelled is not kept waiting for the ZVM.
const CLOSE_AFTER_CANCEL: Duration = Duration::from_secs(15);

/// A session that was let go of.
pub(crate) struct Ended {
    session: Session,
    closed: Result<(), String>,
    /// How long it took to be unmounted.
    pub seconds: f64,
}

/// Makes sure that no session is open on the VM, and that ours may be opened.
pub(crate) async fn free(
    core: &Core,
    mount: &Mount,
    vm: &str,
    watch: &Watch<'_>,
) -> Result<(), Error> {
    let busy = || {
        format!(
            "making sure that no other session is open on {}",
            text::named(vm, 500)
        )
    };
    watch
        .during(busy, make_way(core, &mount.vm_identifier))
        .await
}

/// Mounts, works, unmounts. The work has to watch itself; the mount has to be [`free`].
pub(crate) async fn while_mounted<T>(
    core: &Arc<Core>,
    mount: Mount,
    watch: &Watch<'_>,
    work: impl AsyncFnOnce(&FlrSessionId) -> Result<T, Error>,
) -> (Result<T, Error>, Ended) {
    let checkpoint = mount.chosen.checkpoint.id.to_string();
    let mounting = || format!("mounting checkpoint {checkpoint}");
    let mut session = Session::begin(core, mount);
    let result = match watch.during(mounting, session.opened()).await {
        Ok(id) => {
            let waiting = || format!("waiting until checkpoint {checkpoint} is mounted");
            match watch.during(waiting, mounted(core, &id)).await {
                // The work can be large, and whoever waits for it would be as large.
                Ok(()) => Box::pin(work(&id)).await,
                Err(error) => Err(error),
            }
        }
        Err(error) => Err(error),
    };
    let began = Instant::now();
    let cancelled = matches!(&result, Err(error) if error.code == ErrorCode::Cancelled);
    let closed = if cancelled {
        timeout(CLOSE_AFTER_CANCEL, session.close())
            .await
            .unwrap_or_else(|_| still_unmounting())
    } else {
        let unmounting = || "unmounting the checkpoint".to_owned();
        // A cancellation from here on comes too late to change anything but the waiting.
        watch
            .during(unmounting, async { Ok(session.close().await) })
            .await
            .unwrap_or_else(|_| still_unmounting())
    };
    let ended = Ended {
        session,
        closed,
        seconds: began.elapsed().as_secs_f64(),
    };
    (result, ended)
}

impl Ended {
    /// What was done, for an error.
    pub fn done(&self) -> Option<Done> {
        self.session.done(&self.closed)
    }

    /// The session, where it is not unmounted.
    pub fn still_open(&self) -> Option<StillOpen> {
        let why = self.closed.clone().err()?;
        Some(StillOpen {
            session: self.session.shown(),
            why,
            next: "Put the reason right or unmount the session in the ZVM's own interface. Every further command of this \
                   user that talks to the ZVM tries to unmount it, too."
                .to_owned(),
        })
    }
}

/// Nobody waits for it any longer; it goes on in the background.
fn still_unmounting() -> Result<(), String> {
    Err("it was still being unmounted when nobody waited for it any more".to_owned())
}
