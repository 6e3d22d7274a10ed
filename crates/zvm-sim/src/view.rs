//! What tests and tools see of the world.

use jiff::Timestamp;
use serde::Serialize;

use crate::app::App;
use crate::clock::timestamp;
use crate::flr::Status;
use crate::held::HeldRequest;
use crate::record::RequestRecord;
use crate::world::World;

/// A tagged checkpoint in a VPG's journal. Times are by the host's clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JournalEntry {
    /// Its identifier.
    pub id: String,
    /// Its tag as the API shows it, with the suffix if it was used for FLR.
    pub tag: String,
    /// The moment that its disks show.
    pub time: Timestamp,
    /// When it came into the list; nothing while it has not.
    pub listed_at: Option<Timestamp>,
}

/// An FLR session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlrSession {
    /// Its identifier, `<guid>.<siteGuid>`.
    pub id: String,
    /// Name of its VM.
    pub vm: String,
    /// Name of its VPG.
    pub vpg: String,
    /// Identifier of the mounted checkpoint.
    pub checkpoint: String,
    /// Where it is.
    pub state: FlrState,
    /// Downloads that are running.
    pub downloads: u32,
}

/// Where an FLR session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FlrState {
    /// Being mounted.
    Mounting,
    /// Mounted.
    Mounted,
    /// The mount failed.
    MountFailed,
    /// Being unmounted.
    Unmounting,
    /// The unmount failed.
    UnmountFailed,
}

/// The world at one moment, for [`Sim::wait_for`](crate::Sim::wait_for).
pub struct View<'a> {
    app: &'a App,
    world: &'a World,
}

impl<'a> View<'a> {
    pub(crate) fn new(app: &'a App, world: &'a World) -> Self {
        Self { app, world }
    }

    /// The requests that were seen, oldest first.
    pub fn requests(&self) -> impl Iterator<Item = &RequestRecord> {
        self.world.requests.iter()
    }

    /// How many requests of this method have arrived whose path contains this text, letter case aside.
    pub fn received(&self, method: &str, path_part: &str) -> usize {
        self.requests()
            .filter(|request| request.is(method, path_part))
            .count()
    }

    /// How many of them were answered.
    pub fn answered(&self, method: &str, path_part: &str) -> usize {
        self.requests()
            .filter(|request| request.is(method, path_part) && request.status.is_some())
            .count()
    }

    /// The requests that are held by a fault.
    pub fn held(&self) -> impl Iterator<Item = &HeldRequest> {
        self.world.held.iter()
    }

    /// The FLR sessions.
    pub fn sessions(&self) -> Vec<FlrSession> {
        sessions(self.app, self.world)
    }

    /// The tagged checkpoints of a VPG (by name or identifier), oldest first, listed or not yet.
    pub fn journal(&self, vpg: &str) -> Vec<JournalEntry> {
        tagged(self.app, self.world, vpg).unwrap_or_default()
    }

    /// Whether a checkpoint with this tag is listed in a VPG's journal.
    pub fn is_listed(&self, vpg: &str, tag: &str) -> bool {
        self.journal(vpg)
            .iter()
            .any(|entry| entry.listed_at.is_some() && entry.tag.starts_with(tag))
    }

    /// The identifier of a VPG's newest listed checkpoint. Without guest disks, as of when the journal was last looked at.
    pub fn latest_checkpoint(&self, vpg: &str) -> Option<u64> {
        let (index, _) = self.app.inventory.vpg_by_name(vpg)?;
        let journal = &self.world.vpgs.get(index)?.journal;
        journal.latest(self.app.clock.now()).map(|row| row.id)
    }

    /// How many tasks are in progress.
    pub fn running_tasks(&self) -> usize {
        self.world
            .tasks
            .iter()
            .filter(|task| task.completed.is_none())
            .count()
    }
}

pub(crate) fn sessions(app: &App, world: &World) -> Vec<FlrSession> {
    let name = |name: Option<&String>| name.cloned().unwrap_or_default();
    world
        .sessions
        .iter()
        .map(|session| FlrSession {
            id: session.id.clone(),
            vm: name(app.inventory.vm(session.vm).map(|vm| &vm.name)),
            vpg: name(app.inventory.vpg(session.vpg).map(|vpg| &vpg.name)),
            checkpoint: session.checkpoint.to_string(),
            state: match session.status {
                Status::Mounting => FlrState::Mounting,
                Status::Mounted => FlrState::Mounted,
                Status::MountFailed => FlrState::MountFailed,
                Status::Unmounting => FlrState::Unmounting,
                Status::UnmountFailed => FlrState::UnmountFailed,
            },
            downloads: session.running,
        })
        .collect()
}

/// The tagged checkpoints of a VPG; nothing if there is no such VPG.
pub(crate) fn journal(app: &App, vpg: &str) -> Option<Vec<JournalEntry>> {
    tagged(app, &app.world(), vpg)
}

fn tagged(app: &App, world: &World, vpg: &str) -> Option<Vec<JournalEntry>> {
    let (index, _) = app.inventory.vpg_by_name(vpg)?;
    let journal = &world.vpgs.get(index)?.journal;
    let entries = journal.tagged(app.clock.now()).filter_map(|row| {
        let tag = row.tag?;
        Some(JournalEntry {
            id: row.id.to_string(),
            tag: tag.shown(),
            time: timestamp(row.at),
            listed_at: tag.listed_at.map(timestamp),
        })
    });
    Some(entries.collect())
}
