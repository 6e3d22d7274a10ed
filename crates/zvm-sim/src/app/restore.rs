//! Mounting and unmounting for file-level restore.

use std::sync::Arc;

use super::App;
use crate::disk::DiskError;
use crate::flr::{Session, Status};
use crate::inventory::{Vm, Vpg};
use crate::switches::{Mount, Unmount, Vanishes};
use crate::tasks::{Kind, State, Task};
use crate::world::{Event, World};

/// Why a mount was refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MountRefused {
    #[error("Virtual machine '{vm}' is not protected by VPG '{vpg}'.")]
    NotInVpg { vm: String, vpg: String },
    #[error("File level restore is not enabled for virtual machine '{0}'.")]
    NotEnabled(String),
    #[error("The checkpoint {0} was not found in the journal of VPG '{1}'.")]
    NoCheckpoint(String, String),
    #[error("Virtual machine '{0}' is already mounted for file level restore.")]
    AlreadyMounted(String),
    #[error("The disks could not be mounted: {0}")]
    Disk(#[from] DiskError),
}

/// What is to be mounted, by indexes.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) vm: usize,
    pub(crate) vpg: usize,
    pub(crate) checkpoint: u64,
}

impl App {
    /// Whether FLR can be used on a VM in this VPG at all.
    pub(crate) fn flr_enabled(world: &World, vm: &Vm, vpg: &Vpg) -> bool {
        vm.has_disk() && world.rules(vpg).flr_enabled
    }

    /// Why a point in time of a VM can't be mounted now.
    pub(crate) fn cannot_mount(world: &World, vm: &Vm, vpg: &Vpg) -> Option<&'static str> {
        if !Self::flr_enabled(world, vm, vpg) {
            Some("File level restore is not enabled for this virtual machine.")
        } else if !world.rules(vpg).can_mount {
            Some("This point in time cannot be mounted.")
        } else {
            None
        }
    }

    /// Opens a session; it is mounted in the background.
    pub(crate) async fn mount(
        self: &Arc<Self>,
        wanted: Wanted,
        initiated_by: &str,
    ) -> Result<String, MountRefused> {
        let at = self.check_mount(wanted)?;
        let app = Arc::clone(self);
        let volumes = self
            .blocking(move || match app.guests.get(wanted.vm) {
                Some(guest) => guest.volumes(at),
                None => Ok(Vec::new()),
            })
            .await?;
        let mut world = self.world();
        // Another mount may have come in between.
        self.check_free(&world, wanted.vm)?;
        let now = self.clock.now();
        let guid = crate::realm::uuid(&mut world.rng);
        let id = format!("{guid}.{}", self.inventory.own_site_id());
        let rules = self.inventory.vpg(wanted.vpg).map(|vpg| world.rules(vpg));
        let length = Self::draw(
            &mut world,
            rules.as_ref().and_then(|rules| rules.mount_duration),
            self.timings.mount,
        );
        let task = self.start_task(
            &mut world,
            Kind::Mount,
            &guid,
            wanted.vpg,
            length,
            initiated_by,
        );
        let mounted_at = now.saturating_add(world.switches.clock_offset_ms);
        world.sessions.push(Session {
            guid: guid.clone(),
            id: id.clone(),
            vm: wanted.vm,
            vpg: wanted.vpg,
            checkpoint: wanted.checkpoint,
            mounted_at,
            status: Status::Mounting,
            volumes,
            mount_task: task,
            unmount_task: None,
            running: 0,
        });
        if rules.is_none_or(|rules| rules.mount != Mount::Hangs) {
            self.plan(&mut world, now + length, Event::MountEnds(guid));
        }
        drop(world);
        self.tell();
        Ok(id)
    }

    /// The moment that the disks have to show.
    fn check_mount(&self, wanted: Wanted) -> Result<i64, MountRefused> {
        let world = self.world();
        let (Some(vm), Some(vpg)) = (self.inventory.vm(wanted.vm), self.inventory.vpg(wanted.vpg))
        else {
            return Err(MountRefused::NotEnabled(String::new()));
        };
        if !vm.vpgs.contains(&wanted.vpg) {
            return Err(MountRefused::NotInVpg {
                vm: vm.name.clone(),
                vpg: vpg.name.clone(),
            });
        }
        if Self::cannot_mount(&world, vm, vpg).is_some() {
            return Err(MountRefused::NotEnabled(vm.name.clone()));
        }
        self.check_free(&world, wanted.vm)?;
        world
            .vpgs
            .get(wanted.vpg)
            .and_then(|state| state.journal.find(wanted.checkpoint, self.clock.now()))
            .map(|row| row.at)
            .ok_or_else(|| {
                MountRefused::NoCheckpoint(wanted.checkpoint.to_string(), vpg.name.clone())
            })
    }

    fn check_free(&self, world: &World, vm: usize) -> Result<(), MountRefused> {
        let taken = world.switches.one_mount_per_vm
            && world.sessions.iter().any(|session| session.vm == vm);
        let name = self.inventory.vm(vm).map_or("", |vm| vm.name.as_str());
        if taken {
            return Err(MountRefused::AlreadyMounted(name.to_owned()));
        }
        Ok(())
    }

    fn start_task(
        &self,
        world: &mut World,
        kind: Kind,
        session: &str,
        vpg: usize,
        length: i64,
        initiated_by: &str,
    ) -> String {
        let id = self.task_id(world);
        let now = self.clock.now();
        world.tasks.add(Task {
            id: id.clone(),
            kind,
            state: State::InProgress,
            started: now,
            due: now + length,
            completed: None,
            reason: String::new(),
            initiated_by: initiated_by.to_owned(),
            vpg,
            session: Some(session.to_owned()),
            disappears: false,
        });
        id
    }

    pub(super) fn mount_ends(&self, world: &mut World, guid: &str, now: i64) {
        let Some(session) = world.session(guid) else {
            return;
        };
        if session.status != Status::Mounting {
            return;
        }
        let (vpg, checkpoint, task) = (session.vpg, session.checkpoint, session.mount_task.clone());
        let fails = self
            .inventory
            .vpg(vpg)
            .is_some_and(|vpg| world.rules(vpg).mount == Mount::Fails);
        if let Some(session) = world.session(guid) {
            session.status = if fails {
                Status::MountFailed
            } else {
                Status::Mounted
            };
        }
        let failure = fails.then(|| "The disks could not be mounted.".to_owned());
        world.tasks.end(&task, now, failure);
        if !fails
            && world.switches.flr_suffix
            && let Some(state) = world.vpgs.get_mut(vpg)
        {
            state.journal.mark_used_for_flr(checkpoint);
        }
        if !fails && world.switches.session_vanishes == Vanishes::WhenMounted {
            world.sessions.retain(|session| session.guid != guid);
        }
    }

    /// Begins an unmount and answers with its task; nothing if it is refused.
    pub(crate) fn unmount(&self, guid: &str, initiated_by: &str) -> Option<String> {
        let mut world = self.world();
        let unmount = world.switches.unmount;
        if unmount == Unmount::Refused {
            return None;
        }
        let session = world.session(guid)?;
        if let (Status::Unmounting, Some(task)) = (session.status, &session.unmount_task) {
            return Some(task.clone());
        }
        let (vpg, mount_task) = (session.vpg, session.mount_task.clone());
        session.status = Status::Unmounting;
        let switched = world.switches.unmount_duration;
        let length = Self::draw(&mut world, switched, self.timings.unmount);
        let task = self.start_task(&mut world, Kind::Unmount, guid, vpg, length, initiated_by);
        if let Some(session) = world.session(guid) {
            session.unmount_task = Some(task.clone());
        }
        let now = self.clock.now();
        world.tasks.end(
            &mount_task,
            now,
            Some("The session was unmounted.".to_owned()),
        );
        if unmount != Unmount::Hangs {
            self.plan(
                &mut world,
                now + length,
                Event::UnmountEnds(guid.to_owned()),
            );
        }
        drop(world);
        self.tell();
        Some(task)
    }

    pub(super) fn unmount_ends(&self, world: &mut World, guid: &str, now: i64) {
        let fails = world.switches.unmount == Unmount::Fails;
        let Some(session) = world.session(guid) else {
            return;
        };
        let task = session.unmount_task.clone().unwrap_or_default();
        if fails {
            session.status = Status::UnmountFailed;
        } else {
            world.sessions.retain(|session| session.guid != guid);
            world
                .downloads
                .retain(|_, download| download.session != guid);
        }
        let failure = fails.then(|| "The disks could not be unmounted.".to_owned());
        world.tasks.end(&task, now, failure);
    }
}
