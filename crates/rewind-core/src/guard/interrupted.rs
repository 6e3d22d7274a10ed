//! What a guard that was killed or cancelled left on its way into the journal: an insert right behind it would be dropped.
use super::{
    look::carrying,
    pin::{Pinning, next_look, will_stay},
    stage::Stage,
};
use crate::{Error, ErrorCode, checkpoints::earlier, state::InsertOutcome};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

impl Pinning<'_> {
    /// Waits until the tag that was sent last into this VPG is listed, for what remains of its own `listed_timeout`: after that
    /// it counts as dropped, as it would have for its own guard. The caller holds the VPG's lock. False: there was none to wait for.
    pub async fn let_interrupted_be_listed(&self) -> Result<bool, Error> {
        let patience = self.settings.listed_timeout;
        let (zvm, vpg) = (self.core.config.zvm(), self.vpg.id().to_owned());
        let Some(sent) = self
            .core
            .with_state(move |state| state.unsettled_insert(&zvm, &vpg, patience))
            .await?
        else {
            return Ok(false);
        };
        let ago =
            Duration::try_from(self.core.state.now().duration_since(sent.at)).unwrap_or_default();
        let until = self
            .deadline
            .min(Instant::now() + patience.saturating_sub(ago));
        self.stages.enter(Stage::Behind { until });
        tracing::info!(vpg = %self.vpg.told(), tag = %sent.tag, "waiting for the tag of an interrupted guard to be listed");

        let (began, started) = (earlier(self.clock.now(), ago), Instant::now());
        for looks in 1.. {
            let last = Instant::now() >= until;
            match self.look(began, last).await {
                Ok(rows) if carrying(&rows, &sent.tag).is_some() => {
                    self.settle(sent.id, InsertOutcome::Listed).await;
                    return Ok(true);
                }
                Ok(_) => {}
                Err(error) if will_stay(&error) => return Err(self.vpg.failed(error)),
                Err(error) => tracing::debug!(%error, "the journal can't be read"),
            }
            if last {
                break;
            }
            sleep_until(next_look(started, looks).min(until)).await;
        }
        if Instant::now() < self.deadline {
            return Ok(true);
        }
        Err(Error::new(
            ErrorCode::DeadlinePassed,
            format!(
                "an earlier, interrupted guard kept VPG {} busy until the deadline; nothing was inserted",
                self.vpg.told()
            ),
        ))
    }
}
