//! From the domain's progress to MCP's progress notifications.
use std::{
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
};

use rewind_core::{Progress, ProgressUpdate};
use rmcp::{
    Peer, RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
};
use tokio::sync::Notify;

/// The least step between two progress values: MCP wants each to be greater than the one before.
const STEP: f64 = 0.001;

/// The newest update that was not sent yet. Older ones are dropped, so that a client that does not read costs nothing.
#[derive(Default)]
struct Newest {
    update: Mutex<Option<ProgressUpdate>>,
    arrived: Notify,
}

impl Newest {
    fn take(&self) -> Option<ProgressUpdate> {
        self.update
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

impl Progress for Newest {
    fn update(&self, update: ProgressUpdate) {
        *self.update.lock().unwrap_or_else(PoisonError::into_inner) = Some(update);
        self.arrived.notify_one();
    }
}

/// Sends the progress of one call to the client that gave the token.
pub struct Notifier {
    newest: Arc<Newest>,
    peer: Peer<RoleServer>,
    token: ProgressToken,
    last: f64,
}

impl Notifier {
    /// For the call with this token.
    pub fn new(peer: Peer<RoleServer>, token: ProgressToken) -> Self {
        Self {
            newest: Arc::default(),
            peer,
            token,
            last: 0.0,
        }
    }

    /// Where the call reports to.
    pub fn progress(&self) -> Arc<dyn Progress> {
        self.newest.clone()
    }

    /// Runs `work` and sends its progress meanwhile, the last of it before this returns: MCP allows none after the answer.
    pub async fn during<T>(mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let newest = self.newest.clone();
        let result = loop {
            tokio::select! {
                result = &mut work => break result,
                () = newest.arrived.notified() => {}
            }
            let Some(update) = newest.take() else {
                continue;
            };
            let mut sending = pin!(self.send(update));
            tokio::select! {
                () = &mut sending => {}
                result = &mut work => {
                    sending.await;
                    break result;
                }
            }
        };
        if let Some(update) = newest.take() {
            self.send(update).await;
        }
        result
    }

    /// A client that is gone is no reason to stop the work.
    async fn send(&mut self, update: ProgressUpdate) {
        self.last = update.done.max(self.last + STEP);
        let message = match update.transfer {
            Some(transfer) => format!("{}: {transfer}", update.message),
            None => update.message,
        };
        let mut notification =
            ProgressNotificationParam::new(self.token.clone(), self.last).with_message(message);
        notification.total = update.total.map(|total| total.max(self.last));
        if let Err(error) = self.peer.notify_progress(notification).await {
            tracing::debug!(%error, "progress was not sent");
        }
    }
}
