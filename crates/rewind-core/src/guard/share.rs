//! One VM of a listed call: pinned for it, or covered by an earlier guard.
use super::{Receipt, run::Guarding, tag::Intent};
use crate::{
    Error, ErrorCode,
    protection::Found,
    state::{
        self, EarlierGuard,
        calls::{CallId, Claim, ClaimId, Wanted},
    },
};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use tokio::time::{sleep, timeout_at};

/// How soon, and how seldom at most, the other guard's end is looked for: there is no event of another process to await.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
const LOOK_SELDOM: Duration = Duration::from_millis(400);
/// How much longer than its own deadline a guard may take to be written down.
const MARGIN: Duration = Duration::from_secs(30);

/// A VM's guard.
#[derive(Debug)]
pub(crate) struct Covered {
    pub receipt: Receipt,
    /// It was taken before, or for another who saw the same call.
    pub reused: bool,
}

impl Covered {
    pub fn into_receipt(self) -> Receipt {
        self.receipt
    }
}

/// A listed call whose VMs are being covered.
pub(crate) struct Sharing<'a> {
    pub guarding: &'a Guarding<'a>,
    pub id: CallId,
    pub call: &'a state::ToolCall,
    pub intent: &'a Intent,
    pub reuse: Option<Duration>,
}

impl Sharing<'_> {
    /// Pins the VM, unless an earlier guard covers it.
    pub async fn cover(&self, found: &Found) -> Result<Covered, Error> {
        let mut wanted = wanted(self.guarding, found, self.reuse);
        loop {
            match self.claim(found, &wanted).await? {
                Claim::Pin(claim) => {
                    let call = Some(self.call.clone());
                    let result = self.guarding.pin_all(found, self.intent, call).await;
                    let guard = result.as_ref().ok().and_then(|(_, guard)| *guard);
                    self.ended(claim, guard).await;
                    let (receipt, _) = result?;
                    return Ok(Covered {
                        receipt,
                        reused: false,
                    });
                }
                Claim::Use(claim, earlier) => {
                    let receipt = self.guarding.still_listed(found, &earlier).await;
                    let stands = matches!(receipt, Ok(Some(_)));
                    self.ended(claim, stands.then_some(earlier.id)).await;
                    if let Some(receipt) = receipt? {
                        return Ok(Covered {
                            receipt,
                            reused: true,
                        });
                    }
                    wanted.not.push(earlier.id);
                }
                // Waited for within.
                Claim::Wait => {}
            }
        }
    }

    /// Claims the VM, once no other guard that may cover it is under way.
    async fn claim(&self, found: &Found, wanted: &Wanted) -> Result<Claim, Error> {
        let Guarding { core, watch, .. } = self.guarding;
        let waits = AtomicBool::new(false);
        let claiming = async {
            let mut pause = LOOK_AGAIN;
            loop {
                let (id, wanted) = (self.id, wanted.clone());
                let claim = core
                    .with_state(move |state| state.claim(id, &wanted))
                    .await?;
                if !matches!(claim, Claim::Wait) {
                    return Ok(claim);
                }
                waits.store(true, Ordering::Relaxed);
                sleep(pause).await;
                pause = (pause * 2).min(LOOK_SELDOM);
            }
        };
        let doing = || {
            if waits.load(Ordering::Relaxed) {
                format!(
                    "{}: another guard that covers it is on its way",
                    found.told()
                )
            } else {
                format!("{}: about to be pinned", found.told())
            }
        };
        let bounded = async {
            timeout_at(self.guarding.deadline, claiming)
                .await
                .unwrap_or_else(|_| {
                    Err(Error::new(
                        ErrorCode::DeadlinePassed,
                        format!(
                            "another guard of {} that covers this call was not done by the deadline; nothing was inserted for this one",
                            found.told()
                        ),
                    ))
                })
        };
        watch.during(doing, bounded).await
    }

    /// Where it can't be written down, others take guards of their own.
    async fn ended(&self, claim: ClaimId, guard: Option<i64>) {
        let ended = self
            .guarding
            .core
            .with_state(move |state| state.claim_ended(claim, guard))
            .await;
        if let Err(error) = ended {
            tracing::warn!(%error, "who guards a call can't be remembered");
        }
    }
}

impl Guarding<'_> {
    /// As a guard that an agent asks for: pins the VM, unless a guard of the same agent, VM and change stands.
    pub async fn cover(
        &self,
        found: &Found,
        intent: &Intent,
        call: state::ToolCall,
        reuse: Option<Duration>,
    ) -> Result<Receipt, Error> {
        let mut wanted = wanted(self, found, reuse);
        while let Some(earlier) = self.to_reuse(intent, &wanted).await? {
            match self.still_listed(found, &earlier).await? {
                Some(receipt) => return Ok(receipt),
                None => wanted.not.push(earlier.id),
            }
        }
        let (receipt, _) = self.pin_all(found, intent, Some(call)).await?;
        Ok(receipt)
    }

    async fn to_reuse(
        &self,
        intent: &Intent,
        wanted: &Wanted,
    ) -> Result<Option<EarlierGuard>, Error> {
        if wanted.reuse.is_none() {
            return Ok(None);
        }
        let zvm = self.core.config.zvm();
        let (agent, change) = (intent.agent.clone(), intent.change.clone());
        let wanted = wanted.clone();
        self.core
            .with_state(move |state| state.guard_to_reuse(&zvm, &agent, &change, &wanted))
            .await
    }
}

fn wanted(guarding: &Guarding<'_>, found: &Found, reuse: Option<Duration>) -> Wanted {
    Wanted {
        vm_identifier: found.vm_identifier.clone(),
        reuse,
        patience: guarding.core.config.guard.deadline.saturating_add(MARGIN),
        not: Vec::new(),
    }
}
