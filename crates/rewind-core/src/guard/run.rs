//! A guard from the request to the receipt.
use super::{
    GuardRequest, Pin, Receipt,
    look::Others,
    pin::{Pinned, Pinning},
    stage::{Stage, Stages},
    tag::{ChosenTag, Intent, choose},
};
use crate::{
    Call, Done, Error, ErrorCode,
    call::Watch,
    checkpoints::{as_shown, expected_until, shown_tag},
    clock::ZvmClock,
    lock::Holder,
    protection::{self, Found, FoundVpg},
    recovery::clean_up_beside,
    rewind::Core,
    state::{self, GuardRecord, PinRecord},
    tag::Tag,
    text,
};
use futures::future::join_all;
use jiff::Timestamp;
use tokio::time::{Instant, timeout_at};
use zvm_client::{Checkpoint, Zvm};

pub(super) const NOTE: &str = "Crash-consistent within each VPG, not across VPGs. A pin ages out with the journal: expected_until is an \
                    estimate from the configured history, and a full journal or a resync removes checkpoints earlier.";

/// One VPG's part of a guard.
struct Part<'a> {
    vpg: &'a FoundVpg,
    /// The tags of others that were listed when the tag was chosen.
    others: Others,
    stages: Stages,
}

/// One request for a guard, of one VM or of several.
pub(crate) struct Guarding<'a> {
    pub core: &'a Core,
    pub call: &'a Call,
    pub(super) watch: Watch<'a>,
    pub(super) zvm: Zvm,
    started: Instant,
    began: Timestamp,
    pub(super) deadline: Instant,
}

pub(crate) async fn guard(
    core: &Core,
    request: &GuardRequest,
    call: &Call,
) -> Result<Receipt, Error> {
    let intent = Intent::checked(core, request, call)?;
    let guarding = Guarding::new(core, call);
    let found = guarding.find(&request.vm).await?;
    refuse_what_can_not_work(&found)?;
    let (receipt, _) = guarding.pin_all(&found, &intent, None).await?;
    Ok(receipt)
}

/// No insert is tried on any VPG where one of them can't take it.
pub(crate) fn refuse_what_can_not_work(found: &Found) -> Result<(), Error> {
    let refused: Vec<_> = found
        .vpgs
        .iter()
        .filter_map(|vpg| {
            vpg.refused
                .as_ref()
                .map(|(code, why)| (*code, vpg.told(), why))
        })
        .collect();
    let Some((code, ..)) = refused.first() else {
        return Ok(());
    };
    let reasons: Vec<_> = refused
        .iter()
        .map(|(_, vpg, why)| format!("VPG {vpg}: {why}"))
        .collect();
    let message = format!(
        "{} can't be guarded, nothing was inserted. {}",
        found.told(),
        reasons.join("; ")
    );
    Err(Error::new(*code, message))
}

impl<'a> Guarding<'a> {
    pub fn new(core: &'a Core, call: &'a Call) -> Self {
        let started = Instant::now();
        let deadline = started + core.config.guard.deadline;
        Self {
            core,
            call,
            watch: call.watch(),
            zvm: core.zvm.by(deadline),
            started,
            began: core.state.now(),
            deadline,
        }
    }

    pub async fn find(&self, vm: &str) -> Result<Found, Error> {
        let looking = || format!("looking for {}", text::named(vm, 100));
        self.watch
            .during(looking, protection::find(&self.zvm, vm))
            .await
    }

    /// Pins every VPG of one VM, at once. With the guard's number in the state, where it could be remembered.
    pub(super) async fn pin_all(
        &self,
        found: &Found,
        intent: &Intent,
        tool_call: Option<state::ToolCall>,
    ) -> Result<(Receipt, Option<i64>), Error> {
        let choosing = || "reading the ZVM's clock and its journals".to_owned();
        let chosen = choose(self.core, &self.zvm, found, intent);
        let ChosenTag { tag, clock, others } = self.watch.during(choosing, chosen).await?;
        let guard = Guard {
            of: self,
            tag: &tag,
            clock,
        };
        let parts: Vec<Part<'_>> = found
            .vpgs
            .iter()
            .zip(others)
            .map(|(vpg, others)| Part {
                vpg,
                others,
                stages: Stages::new(vpg.name()),
            })
            .collect();
        let pinning = || {
            let messages: Vec<_> = parts.iter().map(|part| part.stages.message()).collect();
            messages.join("; ")
        };
        let all = clean_up_beside(self.core, async {
            Ok(join_all(parts.iter().map(|part| guard.pin(part))).await)
        });
        let result = match self.watch.during(pinning, all).await {
            Ok(results) => all_or_failed(found, &parts, &tag, results),
            Err(cancelled) => Err(cancelled.with_done(done(&parts, &tag))),
        };
        let remembered = guard.remember(found, &parts, &result, tool_call).await;
        let receipt = Receipt {
            vm: found.name(),
            vm_identifier: text::display(&found.vm_identifier, 256),
            agent: tag.agent().to_owned(),
            action: tag.action().to_owned(),
            change_id: tag.change().to_owned(),
            tag: tag.to_string(),
            pins: result?,
            seconds: self.watch.seconds(),
            note: NOTE.to_owned(),
        };
        Ok((receipt, remembered))
    }
}

/// The guard of one VM, once its tag is chosen.
struct Guard<'a> {
    of: &'a Guarding<'a>,
    tag: &'a Tag,
    clock: ZvmClock,
}

impl Guard<'_> {
    async fn pin(&self, part: &Part<'_>) -> Result<Pin, Error> {
        match self.insert(part).await {
            Ok(Pinned {
                checkpoint,
                inserts,
            }) => {
                let pin = self.listed(part.vpg, &checkpoint, inserts);
                part.stages.enter(Stage::Pinned { checkpoint });
                Ok(pin)
            }
            Err(error) => {
                part.stages.enter(Stage::Failed {
                    reason: error.message.clone(),
                });
                Err(error)
            }
        }
    }

    async fn insert(&self, part: &Part<'_>) -> Result<Pinned, Error> {
        let vpg = part.vpg;
        let zvm_name = self.of.core.config.zvm();
        let queue = self.of.core.locks.acquire(&zvm_name, vpg.id(), |place| {
            part.stages.enter(Stage::Queued { place })
        });
        // Held until the tag is listed: inserts back to back would be dropped.
        let _lock = match timeout_at(self.of.deadline, queue).await {
            Ok(lock) => lock?,
            Err(_) => return Err(busy(vpg, self.of.core.locks.holder(&zvm_name, vpg.id()))),
        };
        let pinning = Pinning {
            core: self.of.core,
            zvm: &self.of.zvm,
            vpg,
            tag: self.tag,
            clock: self.clock,
            others: &part.others,
            settings: self.of.core.config.guard,
            deadline: self.of.deadline,
            stages: &part.stages,
        };
        pinning.insert_until_listed().await
    }

    fn listed(&self, vpg: &FoundVpg, checkpoint: &Checkpoint, inserts: u32) -> Pin {
        Pin {
            vpg: vpg.name(),
            vpg_identifier: text::display(vpg.id(), 256),
            checkpoint: checkpoint.id.to_string(),
            time: as_shown(checkpoint.time),
            tag: checkpoint.tag.as_deref().map(shown_tag).unwrap_or_default(),
            journal_from: vpg
                .vpg
                .earliest_checkpoint
                .as_ref()
                .map(|first| as_shown(first.time)),
            expected_until: expected_until(&vpg.vpg, checkpoint.time),
            inserts,
            seconds: self.of.started.elapsed().as_secs_f64(),
        }
    }

    /// What was inserted is true whether it can be remembered or not, so this never fails a guard.
    async fn remember(
        &self,
        found: &Found,
        parts: &[Part<'_>],
        result: &Result<Vec<Pin>, Error>,
        tool_call: Option<state::ToolCall>,
    ) -> Option<i64> {
        let Guarding {
            core, call, began, ..
        } = self.of;
        let failure = |error: &Error| format!("{}: {}", error.code.as_str(), error.message);
        let record = GuardRecord {
            zvm: core.config.zvm(),
            agent: self.tag.agent().to_owned(),
            client: text::remembered(&call.caller),
            change: self.tag.change().to_owned(),
            vm_identifier: found.vm_identifier.clone(),
            vm_name: found.vm.clone(),
            tag: self.tag.to_string(),
            call: tool_call,
            started: *began,
            ended: core.state.now(),
            pins: parts.iter().filter_map(pin_record).collect(),
            failure: result.as_ref().err().map(failure),
        };
        core.with_state(move |state| state.record_guard(&record))
            .await
            .inspect_err(|error| core.not_written_down("how this guard ended", error))
            .ok()
    }
}

/// Others inserted, or one did not come to its end.
fn busy(vpg: &FoundVpg, holder: Option<Holder>) -> Error {
    let error = |by: &str| {
        let vpg = vpg.name();
        let message = format!("{by} kept VPG {vpg} busy until the deadline; nothing was inserted");
        Error::new(ErrorCode::DeadlinePassed, message)
    };
    let Some(Holder { pid, since }) = holder else {
        return error("other guards");
    };
    error(&format!("other guards, now that of process {pid} since {since:.0},")).with_next(format!(
        "Try again. If process {pid} has held the VPG for long, see whether it hangs or is stopped: `kill -CONT {pid}` lets a stopped one \
         go on, and its end lets the others through. Don't make the change meanwhile."
    ))
}

fn done(parts: &[Part<'_>], tag: &Tag) -> Vec<Done> {
    let tag = tag.to_string();
    parts.iter().map(|part| part.stages.done(&tag)).collect()
}

/// The first failure speaks for all; the message names every VPG that was not pinned.
fn all_or_failed(
    found: &Found,
    parts: &[Part<'_>],
    tag: &Tag,
    results: Vec<Result<Pin, Error>>,
) -> Result<Vec<Pin>, Error> {
    let failures: Vec<_> = results
        .iter()
        .filter_map(|result| result.as_ref().err())
        .cloned()
        .collect();
    let Some(first) = failures.first() else {
        return Ok(results.into_iter().flatten().collect());
    };
    let reasons: Vec<_> = failures
        .iter()
        .map(|error| error.message.as_str())
        .collect();
    let message = format!(
        "{} of {} of {} could not be pinned. {}",
        failures.len(),
        text::counted(parts.len(), "VPG", "VPGs"),
        found.told(),
        reasons.join("; ")
    );
    let done = done(parts, tag);
    let next = next(first, &done);
    Err(Error::new(first.code, message)
        .with_next(next)
        .with_done(done))
}

/// What to do after a failed guard: whatever it is, not the change. The advice for a call that failed knows nothing of the others.
fn next(first: &Error, done: &[Done]) -> String {
    let inserted = |done: &Done| matches!(done, Done::InsertedNotListed { .. });
    if first.code == ErrorCode::ZvmUnreachable && done.iter().any(inserted) {
        return "Don't make the change: tags were inserted and are not known to be listed. Check the network and the ZVM, then guard \
                again; a tag that is listed later does no harm."
            .to_owned();
    }
    let mut next = first.next.clone();
    if !next.contains("Don't make the change") {
        next.push_str(" Don't make the change meanwhile.");
    }
    next
}

fn pin_record(part: &Part<'_>) -> Option<PinRecord> {
    let checkpoint = part.stages.pinned()?;
    Some(PinRecord {
        vpg_identifier: part.vpg.id().to_owned(),
        vpg_name: part.vpg.vpg.name.clone(),
        checkpoint_id: checkpoint.id.to_string(),
        checkpoint_at: checkpoint.time,
    })
}
