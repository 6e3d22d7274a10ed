//! The simulated appliance: its parts, and what it does in the background.

mod insert;
mod restore;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::disk::DiskError;
use crate::guest::Guests;
use crate::inventory::Inventory;
use crate::scenario::Timings;
use crate::spread::{Spread, millis};
use crate::sync::lock;
use crate::world::{Event, World};

pub(crate) use self::restore::Wanted;

pub(crate) struct App {
    pub(crate) inventory: Inventory,
    pub(crate) guests: Guests,
    pub(crate) clock: Clock,
    pub(crate) timings: Timings,
    /// `https://host:port`, without a slash at the end.
    pub(crate) url: String,
    pub(crate) control: bool,
    pub(crate) guests_dir: PathBuf,
    /// Connections and what was begun for them, all of which hold on to the app.
    pub(crate) work: TaskTracker,
    world: Mutex<World>,
    /// Something in the world has changed.
    changed: Notify,
    /// Something was put on the agenda.
    planned: Notify,
    /// The folder of guests and disks, removed with the last holder of this; nothing if it is the user's own.
    _folder: Option<tempfile::TempDir>,
}

/// The parts of an [`App`] that its maker chooses.
pub(crate) struct Parts {
    pub(crate) inventory: Inventory,
    pub(crate) guests: Guests,
    pub(crate) clock: Clock,
    pub(crate) timings: Timings,
    pub(crate) world: World,
    pub(crate) url: String,
    pub(crate) control: bool,
    pub(crate) guests_dir: PathBuf,
    pub(crate) folder: Option<tempfile::TempDir>,
}

impl App {
    pub(crate) fn new(parts: Parts) -> Arc<Self> {
        Arc::new(Self {
            inventory: parts.inventory,
            guests: parts.guests,
            clock: parts.clock,
            timings: parts.timings,
            url: parts.url,
            control: parts.control,
            guests_dir: parts.guests_dir,
            work: TaskTracker::new(),
            world: Mutex::new(parts.world),
            changed: Notify::new(),
            planned: Notify::new(),
            _folder: parts.folder,
        })
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        lock(&self.world)
    }

    /// Wakes everybody who waits for a change.
    pub(crate) fn tell(&self) {
        self.changed.notify_waiters();
    }

    /// Puts an event on the agenda.
    pub(crate) fn plan(&self, world: &mut World, at: i64, event: Event) {
        world.plan(at, event);
        self.planned.notify_one();
    }

    /// Waits until this holds; it is looked at after every change.
    pub(crate) async fn wait_until(&self, mut holds: impl FnMut(&World) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if holds(&self.world()) {
                return;
            }
            changed.await;
        }
    }

    pub(crate) fn interval(&self) -> i64 {
        millis(self.timings.auto_checkpoint).max(1)
    }

    /// Changes the switches; journals without disks are caught up with first, so that the change counts from now.
    pub(crate) fn change_switches(&self, change: impl FnOnce(&mut crate::switches::Switches)) {
        let mut world = self.world();
        let (now, interval) = (self.clock.now(), self.interval());
        for index in 0..self.inventory.vpgs.len() {
            world.catch_up(&self.inventory, index, interval, now);
        }
        change(&mut world.switches);
        let offset = world.switches.clock_offset_ms;
        for (index, vpg) in self.inventory.vpgs.iter().enumerate() {
            let rules = world.rules(vpg);
            let Some(state) = world.vpgs.get_mut(index) else {
                continue;
            };
            let history = rules.history.map_or(vpg.history_ms, millis);
            state.journal.set_history(history, now);
            state.journal.set_offset(offset);
            let due = if rules.hold_listing {
                Vec::new()
            } else {
                std::mem::take(&mut state.held)
            };
            for checkpoint in due {
                self.plan(&mut world, now, Event::Listed(index, checkpoint));
            }
        }
        drop(world);
        self.tell();
    }

    /// Takes a checkpoint of a VPG: its guests' disks and its journal come to the same moment. `recorded` runs in the same
    /// step, with the new checkpoint's identifier.
    pub(crate) async fn checkpoint<T: Send + 'static>(
        self: &Arc<Self>,
        vpg: usize,
        tag: Option<String>,
        recorded: impl FnOnce(&App, &mut World, u64, i64) -> T + Send + 'static,
    ) -> Result<Option<T>, DiskError> {
        let disks = self.inventory.disks_of(vpg);
        if disks.is_empty() {
            return Ok(self.record(vpg, tag, None, recorded));
        }
        let app = Arc::clone(self);
        let work = move || {
            let recorded = app.guests.sync(
                &disks,
                || app.clock.point(),
                |point| app.record(vpg, tag, Some(point), recorded),
            );
            app.forget(&disks);
            recorded
        };
        self.blocking(work).await
    }

    /// Runs what waits for disks.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, DiskError> + Send + 'static,
    ) -> Result<T, DiskError> {
        match self.work.spawn_blocking(work).await {
            Ok(done) => done,
            Err(stopped) => Err(DiskError::Broken {
                reason: stopped.to_string(),
            }),
        }
    }

    fn record<T>(
        &self,
        vpg: usize,
        tag: Option<String>,
        point: Option<i64>,
        recorded: impl FnOnce(&App, &mut World, u64, i64) -> T,
    ) -> Option<T> {
        let mut world = self.world();
        let now = self.clock.now();
        if point.is_none() {
            world.catch_up(&self.inventory, vpg, self.interval(), now);
        }
        let point = point.unwrap_or_else(|| self.clock.point());
        let state = world.vpgs.get_mut(vpg)?;
        let id = state.journal.push(point, tag);
        state.journal.trim(now);
        let done = recorded(self, &mut world, id, point);
        drop(world);
        self.tell();
        Some(done)
    }

    /// Lets the disks forget what no journal of their VPGs reaches any more.
    fn forget(&self, disks: &[usize]) {
        let now = self.clock.now();
        for &vm in disks {
            let reach = self.inventory.vm(vm).and_then(|own| {
                let world = self.world();
                let journals = own.vpgs.iter().filter_map(|&vpg| world.vpgs.get(vpg));
                journals.map(|state| state.journal.reach(now)).min()
            });
            if let Some(reach) = reach
                && let Err(error) = self.guests.forget_before(vm, reach)
            {
                tracing::warn!(%error, "a guest disk could not forget its oldest points");
            }
        }
    }

    /// A length of time: as switched, else as in the scenario.
    pub(crate) fn draw(world: &mut World, switched: Option<Spread>, usual: Spread) -> i64 {
        switched.unwrap_or(usual).draw(&mut world.rng)
    }
}

/// Starts what runs by itself: automatic checkpoints and the agenda.
pub(crate) fn run(app: &Arc<App>) -> JoinSet<()> {
    let mut jobs = JoinSet::new();
    jobs.spawn(follow_agenda(Arc::clone(app)));
    for vpg in 0..app.inventory.vpgs.len() {
        if !app.inventory.disks_of(vpg).is_empty() {
            jobs.spawn(take_checkpoints(Arc::clone(app), vpg));
        }
    }
    jobs
}

/// The automatic checkpoints of a VPG with guest disks.
async fn take_checkpoints(app: Arc<App>, vpg: usize) {
    let mut pace = tokio::time::interval(Duration::from_millis(
        u64::try_from(app.interval()).unwrap_or(1),
    ));
    pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        pace.tick().await;
        let Some(own) = app.inventory.vpg(vpg) else {
            return;
        };
        let ticks = app.world().ticks(own);
        if !ticks {
            continue;
        }
        if let Err(error) = app.checkpoint(vpg, None, |_, _, _, _| ()).await {
            tracing::warn!(vpg = %own.name, %error, "no automatic checkpoint");
        }
    }
}

async fn follow_agenda(app: Arc<App>) {
    loop {
        let mut happened = false;
        loop {
            let mut world = app.world();
            let now = app.clock.now();
            let Some(event) = world.pop_due(now) else {
                break;
            };
            happened = true;
            app.happen(&mut world, event, now);
        }
        if happened {
            app.tell();
        }
        let next = app.world().next_due();
        match next {
            Some(at) => tokio::select! {
                () = tokio::time::sleep_until(app.clock.instant(at)) => {}
                () = app.planned.notified() => {}
            },
            None => app.planned.notified().await,
        }
    }
}

impl App {
    fn happen(&self, world: &mut World, event: Event, now: i64) {
        match event {
            Event::TaskEnds(task, failure) => world.tasks.end(&task, now, failure),
            Event::Listed(vpg, checkpoint) => {
                let own = self.inventory.vpg(vpg);
                let held = own.is_some_and(|vpg| world.rules(vpg).hold_listing);
                let Some(state) = world.vpgs.get_mut(vpg) else {
                    return;
                };
                if held {
                    state.held.push(checkpoint);
                } else {
                    state.journal.mark_listed(checkpoint, now);
                    state.unlisted = state.unlisted.saturating_sub(1);
                }
            }
            Event::RollsOff(vpg) => {
                if let Some(state) = world.vpgs.get_mut(vpg) {
                    state.journal.trim(now);
                }
            }
            Event::MountEnds(session) => self.mount_ends(world, &session, now),
            Event::UnmountEnds(session) => self.unmount_ends(world, &session, now),
        }
    }
}
