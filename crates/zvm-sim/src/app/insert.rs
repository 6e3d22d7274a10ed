//! Inserting tagged checkpoints.

use std::sync::Arc;

use super::App;
use crate::inventory::Vpg;
use crate::names;
use crate::spread::millis;
use crate::switches::{Insert, NotReady, TaskFate};
use crate::tasks::{Kind, State, Task};
use crate::world::{Event, World};

/// Why an insert was refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InsertRefused {
    #[error("The checkpoint name is missing.")]
    NoName,
    #[error(
        "Cannot insert a tagged checkpoint to VPG '{0}': inserting checkpoints is not supported when the protected site is {1}."
    )]
    Cloud(String, &'static str),
    #[error("Cannot insert a tagged checkpoint to VPG '{0}' in its current state: {1}.")]
    NotReady(String, String),
    #[error("{0}")]
    Switched(String),
}

/// What will become of an accepted insert.
enum Fate {
    Inserted,
    /// The task completes, and nothing appears.
    Dropped,
    /// The task fails, and nothing appears.
    Failed(String),
}

impl App {
    /// Accepts an insert and answers with its task; the checkpoint itself is taken right after.
    pub(crate) fn insert(
        self: &Arc<Self>,
        index: usize,
        vpg: &Vpg,
        name: &str,
        initiated_by: &str,
    ) -> Result<String, InsertRefused> {
        if name.trim().is_empty() {
            return Err(InsertRefused::NoName);
        }
        let mut world = self.world();
        let now = self.clock.now();
        let fate = fate(&mut world, index, vpg)?;
        let rules = world.rules(vpg);
        let length = Self::draw(&mut world, rules.task_duration, self.timings.task);
        let lag = Self::draw(&mut world, rules.listing_lag, self.timings.listing_lag);
        let task = Task {
            id: self.task_id(&mut world),
            kind: Kind::InsertTag,
            state: State::InProgress,
            started: now,
            due: now + length,
            completed: None,
            reason: String::new(),
            initiated_by: initiated_by.to_owned(),
            vpg: index,
            session: None,
            disappears: rules.task == TaskFate::Disappears,
        };
        let id = task.id.clone();
        let due = task.due;
        world.tasks.add(task);
        let ends = rules.task != TaskFate::NeverEnds;
        match fate {
            Fate::Inserted => {
                if let Some(state) = world.vpgs.get_mut(index) {
                    state.unlisted += 1;
                }
                let take =
                    self.clone()
                        .take_tagged(index, name.to_owned(), id.clone(), due, lag, ends);
                self.work.spawn(take);
            }
            Fate::Dropped if ends => {
                self.plan(&mut world, due, Event::TaskEnds(id.clone(), None));
            }
            Fate::Dropped => {}
            Fate::Failed(reason) => {
                self.plan(&mut world, due, Event::TaskEnds(id.clone(), Some(reason)));
            }
        }
        drop(world);
        self.tell();
        Ok(id)
    }

    /// Takes the checkpoint; the task ends at `due` or as soon as the checkpoint is taken, and `lag` later it is listed.
    async fn take_tagged(
        self: Arc<Self>,
        vpg: usize,
        tag: String,
        task: String,
        due: i64,
        lag: i64,
        ends: bool,
    ) {
        let ending = task.clone();
        let taken = self
            .checkpoint(vpg, Some(tag), move |app, world, id, at| {
                let ended = due.max(app.clock.now());
                if ends {
                    app.plan(world, ended, Event::TaskEnds(ending, None));
                }
                app.plan(world, ended + lag, Event::Listed(vpg, id));
                let leaves = world.vpgs.get(vpg).map(|state| state.journal.leaves(at));
                if let Some(leaves) = leaves {
                    app.plan(world, leaves, Event::RollsOff(vpg));
                }
            })
            .await;
        if let Err(error) = taken {
            tracing::warn!(%error, "no tagged checkpoint");
            let mut world = self.world();
            if let Some(state) = world.vpgs.get_mut(vpg) {
                state.unlisted = state.unlisted.saturating_sub(1);
            }
            self.plan(
                &mut world,
                due,
                Event::TaskEnds(task, Some(error.to_string())),
            );
        }
    }

    /// `<taskGuid>.<siteGuid>`.
    pub(crate) fn task_id(&self, world: &mut World) -> String {
        let guid = crate::realm::uuid(&mut world.rng);
        format!("{guid}.{}", self.inventory.own_site_id())
    }

    /// Whether a new task is not known yet.
    pub(crate) fn is_hidden(&self, world: &World, task: &Task) -> bool {
        let hidden = millis(world.switches.task_unknown_for);
        self.clock.now() < task.started + hidden
    }
}

fn fate(world: &mut World, index: usize, vpg: &Vpg) -> Result<Fate, InsertRefused> {
    let rules = world.rules(vpg);
    if names::is_cloud(vpg.protected) {
        let platform = names::name_of(&names::ENTITY_TYPES, vpg.protected).unwrap_or_default();
        return Err(InsertRefused::Cloud(vpg.name.clone(), platform));
    }
    if rules.insert == Insert::Refused {
        return Err(InsertRefused::Switched(
            world.switches.insert_message.clone(),
        ));
    }
    let (status, sub_status) = world.status(vpg);
    if !names::takes_checkpoints(status, sub_status) {
        let state = names::name_of(&names::SUB_STATUSES, sub_status)
            .filter(|_| sub_status != 0)
            .or_else(|| names::name_of(&names::STATUSES, status))
            .unwrap_or("unknown");
        return match rules.not_ready {
            NotReady::Refused => Err(InsertRefused::NotReady(vpg.name.clone(), state.to_owned())),
            NotReady::Dropped => Ok(Fate::Dropped),
            NotReady::TaskFails => Ok(Fate::Failed(format!(
                "The VPG '{}' does not take checkpoints: {state}.",
                vpg.name
            ))),
        };
    }
    if rules.task == TaskFate::Fails {
        return Ok(Fate::Failed(world.switches.task_message.clone()));
    }
    let busy = world.switches.drop_back_to_back
        && world
            .vpgs
            .get(index)
            .is_some_and(|state| state.unlisted > 0);
    if busy || rules.never_shows || world.switches.take_drop(&vpg.name, &vpg.id) {
        return Ok(Fate::Dropped);
    }
    Ok(Fate::Inserted)
}
