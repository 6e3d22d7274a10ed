//! Everything that changes while the simulator runs, behind one lock, and the events that are due.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::faults::Faults;
use crate::flr::{Download, Session};
use crate::held::Held;
use crate::inventory::{Inventory, Vpg};
use crate::journal::{Journal, Row};
use crate::names;
use crate::realm::Realm;
use crate::record::Requests;
use crate::scenario::Scenario;
use crate::spread::millis;
use crate::switches::{Switches, VpgRules};
use crate::tasks::Tasks;

pub(crate) struct World {
    pub(crate) switches: Switches,
    pub(crate) faults: Faults,
    pub(crate) held: Held,
    pub(crate) realm: Realm,
    pub(crate) vpgs: Vec<VpgState>,
    pub(crate) tasks: Tasks,
    pub(crate) sessions: Vec<Session>,
    pub(crate) downloads: HashMap<String, Download>,
    pub(crate) requests: Requests,
    pub(crate) rng: StdRng,
    agenda: BinaryHeap<Reverse<Due>>,
    planned: u64,
}

/// What changes of one VPG.
pub(crate) struct VpgState {
    pub(crate) journal: Journal,
    /// Tagged inserts that will be listed and are not yet.
    pub(crate) unlisted: u32,
    /// Tagged checkpoints that are due to be listed while the listing is held.
    pub(crate) held: Vec<u64>,
    /// Without guest disks, automatic checkpoints are caught up with when somebody looks; this is the last one's time.
    last_tick: i64,
}

/// Something that happens at its time.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A task ends, with this failure if there is one.
    TaskEnds(String, Option<String>),
    /// A tagged checkpoint of a VPG comes into the list.
    Listed(usize, u64),
    /// A tagged checkpoint of a VPG leaves the journal.
    RollsOff(usize),
    /// The mount of a session ends.
    MountEnds(String),
    /// The unmount of a session ends.
    UnmountEnds(String),
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: i64,
    order: u64,
    event: Event,
}

impl World {
    pub(crate) fn new(scenario: &Scenario, inventory: &Inventory, start: i64) -> Self {
        let mut rng = StdRng::seed_from_u64(scenario.seed);
        let scripted: HashMap<&str, &crate::scenario::Vpg> = scenario
            .vpgs
            .iter()
            .map(|vpg| (vpg.name.as_str(), vpg))
            .collect();
        let plain = crate::scenario::Vpg::default();
        let vpgs: Vec<VpgState> = inventory
            .vpgs
            .iter()
            .map(|vpg| VpgState {
                journal: Journal::new(
                    scripted.get(vpg.name.as_str()).copied().unwrap_or(&plain),
                    start,
                    scenario.switches.clock_offset_ms,
                    rand::Rng::random_range(&mut rng, 1_000..150_000),
                ),
                unlisted: 0,
                held: Vec::new(),
                last_tick: start,
            })
            .collect();
        let mut world = Self {
            switches: scenario.switches.clone(),
            faults: Faults::new(scenario.faults.clone()),
            held: Held::default(),
            realm: Realm::new(scenario.credentials.clone(), scenario.realm.clone()),
            vpgs,
            tasks: Tasks::default(),
            sessions: Vec::new(),
            downloads: HashMap::new(),
            requests: Requests::default(),
            rng,
            agenda: BinaryHeap::new(),
            planned: 0,
        };
        for (state, vpg) in world.vpgs.iter_mut().zip(&inventory.vpgs) {
            let own = world.switches.of_vpg(&vpg.name, &vpg.id);
            if let Some(history) = own.history {
                state.journal.set_history(millis(history), start);
            }
        }
        world.plan_roll_offs(start);
        world
    }

    /// When the tags from before the start leave the journal.
    fn plan_roll_offs(&mut self, now: i64) {
        let mut due = Vec::new();
        for (index, state) in self.vpgs.iter().enumerate() {
            let leave = |row: Row<'_>| (state.journal.leaves(row.at), index);
            due.extend(state.journal.tagged(now).map(leave));
        }
        for (at, vpg) in due {
            self.plan(at, Event::RollsOff(vpg));
        }
    }

    pub(crate) fn plan(&mut self, at: i64, event: Event) {
        self.planned += 1;
        self.agenda.push(Reverse(Due {
            at,
            order: self.planned,
            event,
        }));
    }

    /// When the next event is due.
    pub(crate) fn next_due(&self) -> Option<i64> {
        self.agenda.peek().map(|Reverse(due)| due.at)
    }

    /// The next event that is due by now.
    pub(crate) fn pop_due(&mut self, now: i64) -> Option<Event> {
        if self.next_due()? > now {
            return None;
        }
        self.agenda.pop().map(|Reverse(due)| due.event)
    }

    pub(crate) fn rules(&self, vpg: &Vpg) -> VpgRules {
        self.switches.of_vpg(&vpg.name, &vpg.id)
    }

    /// Status and substatus of a VPG.
    pub(crate) fn status(&self, vpg: &Vpg) -> (u8, u8) {
        let rules = self.rules(vpg);
        let own = |code: Option<crate::names::Code>, known, scripted| {
            code.and_then(|code| code.resolve(known))
                .unwrap_or(scripted)
        };
        (
            own(rules.status, &names::STATUSES, vpg.status),
            own(rules.sub_status, &names::SUB_STATUSES, vpg.sub_status),
        )
    }

    /// Whether automatic checkpoints of a VPG are being taken.
    pub(crate) fn ticks(&self, vpg: &Vpg) -> bool {
        let (status, sub_status) = self.status(vpg);
        self.rules(vpg).auto_checkpoints && names::takes_checkpoints(status, sub_status)
    }

    /// Adds the automatic checkpoints up to now to a journal without guest disks.
    pub(crate) fn catch_up(
        &mut self,
        inventory: &Inventory,
        index: usize,
        interval: i64,
        now: i64,
    ) {
        let Some(vpg) = inventory.vpg(index) else {
            return;
        };
        if vpg
            .vms
            .iter()
            .any(|&vm| inventory.vm(vm).is_some_and(|vm| vm.has_disk()))
        {
            return;
        }
        let ticks = self.ticks(vpg);
        let Some(state) = self.vpgs.get_mut(index) else {
            return;
        };
        if ticks {
            state.tick_until(now, interval);
        } else {
            state.last_tick = now;
        }
    }

    pub(crate) fn session(&mut self, guid: &str) -> Option<&mut Session> {
        self.sessions
            .iter_mut()
            .find(|session| session.guid == guid)
    }

    /// As after a restart of the ZVM: tasks, FLR sessions and logins are forgotten, journals are not.
    pub(crate) fn restart(&mut self) {
        self.tasks.forget_all();
        self.sessions.clear();
        self.downloads.clear();
        self.realm.revoke_all();
    }
}

impl VpgState {
    fn tick_until(&mut self, now: i64, interval: i64) {
        let reach = self.journal.reach(now);
        if self.last_tick < reach {
            // Nobody has looked for longer than the history: what lies before it need not be made.
            self.last_tick += (reach - self.last_tick) / interval * interval;
        }
        while self.last_tick + interval <= now {
            self.last_tick += interval;
            // A tagged checkpoint may have been taken in the meantime; times rise strictly.
            let at = self
                .journal
                .latest_at()
                .map_or(self.last_tick, |latest| self.last_tick.max(latest + 1));
            self.journal.push(at, None);
        }
        self.journal.trim(now);
    }
}
