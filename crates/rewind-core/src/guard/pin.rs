//! The pin on one VPG: insert, and believe only the journal.
//!
//! Tagged inserts fired back to back at one VPG are silently dropped: POST answers 200, the task completes, and no checkpoint
//! appears (measured on a 10.x ZVM). So inserts into a VPG go one after another, and one counts when its tag is listed.
use super::{
    look::{LOOK_TIMEOUT, Others, RECENT, carrying},
    stage::{Stage, Stages},
};
use crate::{
    Error, ErrorCode,
    checkpoints::earlier,
    clock::ZvmClock,
    config::GuardSettings,
    protection::FoundVpg,
    rewind::Core,
    state::{InsertId, InsertOutcome},
    tag::Tag,
    text,
};
use jiff::Timestamp;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use zvm_client::{Checkpoint, TaskState, Zvm};

/// Until the first look; most inserts take longer.
const FIRST_LOOK: Duration = Duration::from_millis(250);
const LOOK_EVERY: Duration = Duration::from_millis(500);
const LOOK_EVERY_LATER: Duration = Duration::from_secs(1);
/// When looks become rarer.
const LATER: Duration = Duration::from_secs(15);
/// Every so often a look is wide.
const WIDE_EVERY: u32 = 10;
/// While the task runs the journal is looked at every so often: a task that hangs decides nothing.
const JOURNAL_EVERY: u32 = 4;
/// A task that the ZVM does not know: just created, or never to be known.
const TASK_UNKNOWN_MAX: u32 = 3;
/// What was seen of a journal so long before an insert says what is listed when it is sent.
const FRESH: Duration = Duration::from_secs(1);

/// By how much one tag may take longer than another until it is listed.
const LAG_MARGIN: Duration = Duration::from_millis(500);
/// To a refusal that is none for certain.
const UNCERTAIN: &str = " (whether it was inserted all the same is not known)";

/// What inserts one tag into one VPG.
pub(super) struct Pinning<'a> {
    pub core: &'a Core,
    pub zvm: &'a Zvm,
    pub vpg: &'a FoundVpg,
    pub tag: &'a Tag,
    pub clock: ZvmClock,
    /// The tags of others that were listed when the clock was read.
    pub others: &'a Others,
    pub settings: GuardSettings,
    /// Of the whole guard.
    pub deadline: Instant,
    pub stages: &'a Stages,
}

/// A tag that is listed.
pub(super) struct Pinned {
    /// The earliest that carries the tag.
    pub checkpoint: Checkpoint,
    pub inserts: u32,
}

enum Look {
    Listed(Checkpoint),
    NotListed,
    /// Another's tag came into the list instead.
    Overtaken,
    TaskFailed(String),
}

/// An insert that the ZVM has, or may have, taken.
struct Sent {
    id: InsertId,
    /// The task to follow. An error where the answer was lost: then only the journal can tell.
    task: Result<String, zvm_client::Error>,
}

impl Pinning<'_> {
    /// Inserts until the tag is listed. The caller holds the VPG's lock.
    pub async fn insert_until_listed(&self) -> Result<Pinned, Error> {
        let waited = self.let_interrupted_be_listed().await?;
        let began = self.clock.now();
        let mut others = self.others_listed(began, waited).await;
        let (mut inserts, mut unanswered, mut overtaken) = (0, 0, 0);
        let (mut lost, mut inserted) = (None, false);
        loop {
            inserts += 1;
            let until = self
                .deadline
                .min(Instant::now() + self.settings.listed_timeout);
            let sent = self.insert(inserts).await?;
            let certain = sent.task.is_ok();
            inserted |= certain;
            let task = sent.task.map_err(|error| lost = Some(error)).ok();
            let look = self.look_until(began, until, task, &mut others).await;
            match look.map_err(|error| self.not_known_to_be_listed(certain, error))? {
                Look::Listed(checkpoint) => {
                    self.settle(sent.id, InsertOutcome::Listed).await;
                    return Ok(Pinned {
                        checkpoint,
                        inserts,
                    });
                }
                Look::TaskFailed(reason) => {
                    self.settle(sent.id, InsertOutcome::NotTaken).await;
                    return Err(self.refused(&reason));
                }
                // Other hosts, or users of this one, insert as well. They had their turn, which is none of our attempts.
                Look::Overtaken => {
                    overtaken += 1;
                    tracing::info!(vpg = %self.vpg.told(), "another's tag was under way and ours was dropped");
                }
                Look::NotListed => {
                    unanswered += 1;
                    tracing::warn!(vpg = %self.vpg.told(), attempt = inserts, "the inserted tag was not listed");
                }
            }
            if Instant::now() >= self.deadline || unanswered >= self.settings.attempts.max(1) {
                return Err(self.not_listed(inserts, overtaken, lost.filter(|_| !inserted)));
            }
        }
    }

    /// As seen when the tag was chosen, unless others were waited for since.
    async fn others_listed(&self, began: Timestamp, waited: bool) -> Others {
        if !waited && self.clock.age() < FRESH {
            return self.others.clone();
        }
        match self.look(began, false).await {
            Ok(rows) => Others::listed(earlier(began, RECENT), &rows),
            // Nothing is older than now: only what is inserted from now on counts.
            Err(error) => {
                tracing::debug!(%error, "the journal can't be read");
                Others::listed(began, &[])
            }
        }
    }

    /// `lost` is why no insert is known to have arrived.
    fn not_listed(&self, inserts: u32, overtaken: u32, lost: Option<zvm_client::Error>) -> Error {
        let vpg = self.vpg.told();
        let (inserted, mut why) = match lost {
            None => ("was", String::new()),
            Some(error) => (
                "may have been",
                format!(" ({})", self.vpg.failed(error).message),
            ),
        };
        if overtaken > 0 {
            why.push_str(&format!(
                " ({overtaken} of {} came to nothing because the tagged checkpoints of others were under way)",
                text::counted(inserts, "insert", "inserts")
            ));
        }
        Error::new(
            ErrorCode::NotListed,
            format!(
                "the tag {inserted} inserted into VPG {vpg} and did not appear in its journal{why}"
            ),
        )
    }

    async fn insert(&self, attempt: u32) -> Result<Sent, Error> {
        self.stages.enter(Stage::Inserting { attempt });
        let (zvm, vpg, tag) = (
            self.core.config.zvm(),
            self.vpg.id().to_owned(),
            self.tag.to_string(),
        );
        let id = self
            .core
            .with_state(move |state| state.insert_sending(&zvm, &vpg, &tag))
            .await?;
        let waiting = Stage::Waiting {
            attempt,
            since: Instant::now(),
        };
        let result = self
            .zvm
            .insert_checkpoint(self.vpg.id(), &self.tag.to_string())
            .await;
        let task = match result {
            Ok(task) => Ok(task),
            Err(
                error @ (zvm_client::Error::Unknown { .. }
                | zvm_client::Error::Deadline { unknown: true, .. }),
            ) => {
                tracing::warn!(vpg = %self.vpg.told(), %error, "the answer to an insert was lost; looking at the journal");
                Err(error)
            }
            Err(error) => {
                self.settle(id, InsertOutcome::NotTaken).await;
                return Err(match error {
                    zvm_client::Error::Refused {
                        status, message, ..
                    } if status >= 500 => {
                        // A refusal, as a rule; but it may have been carried out all the same.
                        self.stages.enter(waiting);
                        let mut error = self.refused(&message);
                        error.message.push_str(UNCERTAIN);
                        error
                    }
                    zvm_client::Error::Refused { message, .. }
                    | zvm_client::Error::NotFound { message, .. } => self.refused(&message),
                    error => self.vpg.failed(error),
                });
            }
        };
        self.stages.enter(waiting);
        Ok(Sent { id, task })
    }

    /// Only the next guard would wait for nothing where this can't be remembered.
    pub(super) async fn settle(&self, insert: InsertId, outcome: InsertOutcome) {
        if let Err(error) = self
            .core
            .with_state(move |state| state.insert_settled(insert, outcome))
            .await
        {
            tracing::warn!(%error, "what became of an insert can't be remembered");
        }
    }

    /// Follows the task, and then the journal, until the tag is listed, another's is instead, or the time is up. An error where the journal could
    /// not be read in the end: then nothing may be inserted again.
    async fn look_until(
        &self,
        began: Timestamp,
        until: Instant,
        mut task: Option<String>,
        others: &mut Others,
    ) -> Result<Look, zvm_client::Error> {
        let started = Instant::now();
        let (mut looks, mut unknown) = (0, 0);
        let (mut failed, mut dropped_after) = (None, None);
        loop {
            sleep_until(next_look(started, looks).min(until)).await;
            looks += 1;
            let last = Instant::now() >= until;
            let journal_only = looks % JOURNAL_EVERY == 0;
            if let Some(id) = task.as_deref().filter(|_| !journal_only) {
                match self.quick().task(id).await {
                    Ok(Some(found)) => match found.state {
                        TaskState::Running => {}
                        TaskState::Completed => task = None,
                        TaskState::Failed => {
                            failed = Some(found.reason.map_or_else(
                                || "no reason given".to_owned(),
                                |reason| text::quoted(&reason, 500),
                            ));
                            task = None;
                        }
                    },
                    Ok(None) => {
                        unknown += 1;
                        if unknown == TASK_UNKNOWN_MAX {
                            task = None;
                        }
                    }
                    // Whoever may insert need not be permitted to look at tasks.
                    Err(zvm_client::Error::NotPermitted { .. }) => task = None,
                    Err(error) if will_stay(&error) => return Err(error),
                    Err(error) => tracing::debug!(%error, "the task can't be asked for"),
                }
            }
            if task.is_some() && unknown == 0 && !last && !journal_only {
                continue;
            }
            let wide = last || failed.is_some() || looks % WIDE_EVERY == 0;
            match self.look(began, wide).await {
                Ok(rows) => match (carrying(&rows, &self.tag.to_string()), failed.take()) {
                    (Some(checkpoint), _) => return Ok(Look::Listed(checkpoint)),
                    (None, Some(reason)) => return Ok(Look::TaskFailed(reason)),
                    (None, None) => {
                        if let Some(lag) = others.newly_listed(&rows, self.clock.now()) {
                            dropped_after = Some(started + lag + LAG_MARGIN);
                        }
                        if dropped_after.is_some_and(|after| Instant::now() >= after) {
                            return Ok(Look::Overtaken);
                        }
                        if last {
                            return Ok(Look::NotListed);
                        }
                    }
                },
                Err(error) if last || will_stay(&error) => return Err(error),
                Err(error) => tracing::debug!(%error, "the journal can't be read"),
            }
        }
    }

    /// The ZVM stopped answering, or answers with errors, between the insert and the listing.
    fn not_known_to_be_listed(&self, certain: bool, error: zvm_client::Error) -> Error {
        let inserted = if certain { "was" } else { "may have been" };
        let error = match error {
            // The limit was that of one look.
            zvm_client::Error::Deadline { what, .. } => zvm_client::Error::Unreachable {
                what,
                host: self.zvm.host().to_owned(),
                detail: format!("no answer within {} s", LOOK_TIMEOUT.as_secs()),
            },
            error => error,
        };
        let mut error = self.vpg.failed(error);
        error.message = format!(
            "the tag {inserted} inserted into VPG {}, and whether it is listed is not known: {}",
            self.vpg.told(),
            error.message
        );
        error
    }

    fn refused(&self, reason: &str) -> Error {
        let reason = text::display(reason, 500);
        Error::new(
            ErrorCode::InsertRefused,
            format!(
                "the ZVM refused the tagged checkpoint in VPG {}: {reason}",
                self.vpg.told()
            ),
        )
    }
}

pub(super) fn next_look(started: Instant, looks: u32) -> Instant {
    if looks == 0 {
        return started + FIRST_LOOK;
    }
    let every = if started.elapsed() < LATER {
        LOOK_EVERY
    } else {
        LOOK_EVERY_LATER
    };
    Instant::now() + every
}

/// Whether asking again can't help.
pub(super) fn will_stay(error: &zvm_client::Error) -> bool {
    use zvm_client::Error as E;
    matches!(
        error,
        E::LoginRefused { .. }
            | E::LoginBlocked(_)
            | E::NotPermitted { .. }
            | E::Certificate { .. }
            | E::Config(_)
    )
}
