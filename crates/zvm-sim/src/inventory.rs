//! The scenario, resolved: who is where, with identifiers. It does not change while the simulator runs.

mod build;

pub(crate) use self::build::build;
use crate::scenario::Partition;
use crate::switches::Switches;

pub(crate) struct Inventory {
    /// The first is this ZVM's own.
    pub(crate) sites: Vec<Site>,
    pub(crate) vms: Vec<Vm>,
    pub(crate) vpgs: Vec<Vpg>,
}

pub(crate) struct Site {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) site_type: String,
    pub(crate) location: String,
    pub(crate) version: String,
}

pub(crate) struct Vm {
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) id: String,
    pub(crate) ips: Vec<String>,
    pub(crate) guest_os: String,
    pub(crate) partitions: Vec<Partition>,
    /// Indexes of the VPGs that protect it.
    pub(crate) vpgs: Vec<usize>,
}

pub(crate) struct Vpg {
    pub(crate) name: String,
    pub(crate) id: String,
    /// Indexes of its VMs.
    pub(crate) vms: Vec<usize>,
    pub(crate) status: u8,
    pub(crate) sub_status: u8,
    pub(crate) priority: u8,
    pub(crate) organization: String,
    pub(crate) protected: u8,
    pub(crate) recovery: u8,
    /// Indexes of sites.
    pub(crate) protected_site: usize,
    pub(crate) recovery_site: usize,
    pub(crate) history_ms: i64,
}

impl Vm {
    pub(crate) fn has_disk(&self) -> bool {
        !self.partitions.is_empty()
    }
}

impl Inventory {
    pub(crate) fn site(&self, index: usize) -> Option<&Site> {
        self.sites.get(index)
    }

    pub(crate) fn own_site_id(&self) -> &str {
        self.sites.first().map_or("", |site| site.id.as_str())
    }

    pub(crate) fn vpg(&self, index: usize) -> Option<&Vpg> {
        self.vpgs.get(index)
    }

    pub(crate) fn vm(&self, index: usize) -> Option<&Vm> {
        self.vms.get(index)
    }

    /// A VPG by its identifier, in any letter case.
    pub(crate) fn vpg_by_id(&self, id: &str) -> Option<(usize, &Vpg)> {
        self.vpgs
            .iter()
            .enumerate()
            .find(|(_, vpg)| vpg.id.eq_ignore_ascii_case(id))
    }

    /// A VPG by its name, else by its identifier.
    pub(crate) fn vpg_by_name(&self, name_or_id: &str) -> Option<(usize, &Vpg)> {
        self.vpgs
            .iter()
            .enumerate()
            .find(|(_, vpg)| vpg.name == name_or_id)
            .or_else(|| self.vpg_by_id(name_or_id))
    }

    /// A protected VM by its identifier, in any letter case.
    pub(crate) fn vm_by_id(&self, id: &str) -> Option<(usize, &Vm)> {
        self.vms
            .iter()
            .enumerate()
            .find(|(_, vm)| !vm.vpgs.is_empty() && vm.id.eq_ignore_ascii_case(id))
    }

    /// Whether switches name only VPGs and states that there are.
    pub(crate) fn check(&self, switches: &Switches) -> Result<(), String> {
        let stranger = |name: &&String| self.vpg_by_name(name).is_none();
        match (switches.vpg.keys().find(stranger), switches.unknown_name()) {
            (Some(name), _) => Err(format!("There is no VPG '{name}'.")),
            (None, Some(unknown)) => Err(unknown),
            (None, None) => Ok(()),
        }
    }

    /// The VMs with guest disks of a VPG, in rising order.
    pub(crate) fn disks_of(&self, vpg: usize) -> Vec<usize> {
        let mut vms: Vec<usize> = self
            .vpg(vpg)
            .map(|vpg| vpg.vms.as_slice())
            .unwrap_or_default()
            .iter()
            .copied()
            .filter(|&vm| self.vm(vm).is_some_and(Vm::has_disk))
            .collect();
        vms.sort_unstable();
        vms.dedup();
        vms
    }
}
