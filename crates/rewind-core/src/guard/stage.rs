//! How far the pin on each VPG is: told as progress, and as what was done when a guard stops early.
use crate::{Done, checkpoints::shown_tag, text};
use std::sync::{Mutex, PoisonError};
use tokio::time::Instant;
use zvm_client::Checkpoint;

const SHOWN_MAX_LEN: usize = 256;

#[derive(Clone, Debug)]
pub enum Stage {
    /// Other guards insert into this VPG first; 1 is the next.
    Queued {
        place: usize,
    },
    /// What an interrupted guard inserted is on its way to the journal.
    Behind {
        until: Instant,
    },
    Inserting {
        attempt: u32,
    },
    Waiting {
        attempt: u32,
        since: Instant,
    },
    Pinned {
        checkpoint: Checkpoint,
    },
    Failed {
        reason: String,
    },
}

/// One VPG's stage.
#[derive(Debug)]
pub struct Stages {
    vpg: String,
    now: Mutex<(Stage, bool)>,
}

impl Stages {
    pub fn new(vpg: String) -> Self {
        Self {
            vpg,
            now: Mutex::new((Stage::Queued { place: 0 }, false)),
        }
    }

    pub fn enter(&self, stage: Stage) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        // The ZVM has, or may have, taken the insert.
        now.1 |= matches!(stage, Stage::Waiting { .. });
        now.0 = stage;
    }

    fn now(&self) -> (Stage, bool) {
        self.now
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The pin, once it is listed.
    pub fn pinned(&self) -> Option<Checkpoint> {
        match self.now().0 {
            Stage::Pinned { checkpoint } => Some(checkpoint),
            _ => None,
        }
    }

    /// For a person who waits.
    pub fn message(&self) -> String {
        let again = |attempt: u32| {
            if attempt > 1 {
                format!(" (attempt {attempt})")
            } else {
                String::new()
            }
        };
        let what = match self.now().0 {
            Stage::Queued { place: 0 } => "about to insert".to_owned(),
            Stage::Queued { place } => {
                format!("waiting for another guard to finish, number {place} in line")
            }
            Stage::Behind { until } => format!(
                "waiting for the tag of an earlier, interrupted guard to be listed, {} s at most",
                until.duration_since(Instant::now()).as_secs() + 1
            ),
            Stage::Inserting { attempt } => format!("inserting the tag{}", again(attempt)),
            Stage::Waiting { attempt, since } => {
                format!(
                    "waiting {} s for the tag to be listed{}",
                    since.elapsed().as_secs(),
                    again(attempt)
                )
            }
            Stage::Pinned { checkpoint } => format!("pinned as checkpoint {}", checkpoint.id),
            Stage::Failed { reason } => format!("failed: {reason}"),
        };
        format!("{}: {what}", text::named(&self.vpg, SHOWN_MAX_LEN))
    }

    /// What is in the journal, as far as it is known.
    pub fn done(&self, tag: &str) -> Done {
        let vpg = self.vpg.clone();
        match self.now() {
            (Stage::Pinned { checkpoint }, _) => Done::Pinned {
                vpg,
                checkpoint: checkpoint.id.to_string(),
                tag: checkpoint.tag.as_deref().map(shown_tag).unwrap_or_default(),
            },
            (Stage::Inserting { .. }, _) | (_, true) => Done::InsertedNotListed {
                vpg,
                tag: tag.to_owned(),
            },
            (Stage::Failed { reason }, false) => Done::NotPinned { vpg, reason },
            (_, false) => Done::NotPinned {
                vpg,
                reason: "not inserted yet".to_owned(),
            },
        }
    }
}
