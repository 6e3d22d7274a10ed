//! From a scenario to an inventory.

use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};

use super::{Inventory, Site, Vm, Vpg};
use crate::names;
use crate::scenario::{self, Scenario, ScenarioError};
use crate::spread::millis;

/// Resolves names, gives identifiers, and checks that the scenario can be played.
pub(crate) fn build(scenario: &Scenario) -> Result<Inventory, ScenarioError> {
    if scenario.timings.auto_checkpoint < std::time::Duration::from_millis(20) {
        return Err(ScenarioError::TooFast(scenario.timings.auto_checkpoint));
    }
    let sites = sites(scenario);
    let vms = declared_vms(scenario)
        .chain(bulk_vms(scenario))
        .collect::<Vec<_>>();
    let vpgs = scenario.vpgs.iter().cloned().chain(bulk_vpgs(scenario));
    let mut inventory = Inventory {
        sites,
        vms: resolve_vms(scenario.seed, &vms)?,
        vpgs: Vec::new(),
    };
    resolve_vpgs(scenario.seed, vpgs, &mut inventory)?;
    name_cloud_vms(scenario.seed, &vms, &mut inventory);
    inventory
        .check(&scenario.switches)
        .map_err(ScenarioError::Switches)?;
    Ok(inventory)
}

/// A GUID that follows from the seed and a text.
pub(crate) fn guid(seed: u64, of: &str) -> String {
    let hash = Sha256::new()
        .chain_update(seed.to_le_bytes())
        .chain_update(of.as_bytes())
        .finalize();
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().zip(hash) {
        *to = from;
    }
    uuid::Builder::from_random_bytes(bytes)
        .into_uuid()
        .to_string()
}

fn sites(scenario: &Scenario) -> Vec<Site> {
    std::iter::once(&scenario.site)
        .chain(&scenario.peers)
        .map(|site| Site {
            name: site.name.clone(),
            id: site
                .id
                .clone()
                .unwrap_or_else(|| guid(scenario.seed, &format!("site {}", site.name))),
            site_type: site.site_type.clone(),
            location: site.location.clone(),
            version: site.version.clone(),
        })
        .collect()
}

fn declared_vms(scenario: &Scenario) -> impl Iterator<Item = scenario::Vm> {
    scenario.vms.iter().cloned()
}

fn bulk_vms(scenario: &Scenario) -> impl Iterator<Item = scenario::Vm> {
    (1..=scenario.bulk.vms).map(|number| scenario::Vm {
        name: format!("bulk-{number:05}"),
        ips: vec![format!(
            "10.{}.{}.{}",
            100 + number / 62_500 % 100,
            number / 250 % 250,
            1 + number % 250
        )],
        guest_os: "Red Hat Enterprise Linux 9 (64-bit)".to_owned(),
        ..scenario::Vm::default()
    })
}

fn bulk_vpgs(scenario: &Scenario) -> impl Iterator<Item = scenario::Vpg> {
    let size = match scenario.bulk.vms_per_vpg {
        0 => 10,
        size => size,
    };
    let vms = scenario.bulk.vms;
    (0..vms.div_ceil(size)).map(move |index| {
        let first = index * size + 1;
        let last = first.saturating_add(size - 1).min(vms);
        scenario::Vpg {
            name: format!("bulk-vpg-{:04}", index + 1),
            vms: (first..=last)
                .map(|number| format!("bulk-{number:05}"))
                .collect(),
            ..scenario::Vpg::default()
        }
    })
}

fn resolve_vms(seed: u64, vms: &[scenario::Vm]) -> Result<Vec<Vm>, ScenarioError> {
    let server = guid(seed, "vcenter");
    let mut keys = HashSet::new();
    vms.iter()
        .enumerate()
        .map(|(index, vm)| {
            let number = 101 + index;
            if !keys.insert(vm.key()) {
                return Err(ScenarioError::Twice {
                    what: "VM",
                    name: vm.key().to_owned(),
                });
            }
            if !vm.partitions.is_empty() {
                check_folders(vm)?;
            }
            Ok(Vm {
                name: vm.name.clone(),
                key: vm.key().to_owned(),
                id: vm
                    .id
                    .clone()
                    .unwrap_or_else(|| format!("{server}.vm-{number}")),
                ips: vm.ips.clone(),
                guest_os: vm.guest_os.clone(),
                partitions: vm.partitions.clone(),
                vpgs: Vec::new(),
            })
        })
        .collect()
}

/// Keys and partition folders become folders on the host.
fn check_folders(vm: &scenario::Vm) -> Result<(), ScenarioError> {
    let bad = |what, name: &str| ScenarioError::BadFolder {
        what,
        name: name.to_owned(),
    };
    let usable = |name: &str| {
        !matches!(name, "" | "." | "..")
            && !name.contains(['/', '\\', ':'])
            && !name.contains(char::is_control)
    };
    if !usable(vm.key()) {
        return Err(bad("VM", vm.key()));
    }
    let mut folders = HashSet::new();
    for (index, partition) in vm.partitions.iter().enumerate() {
        let folder = crate::guest::folder_name(partition, index);
        if !usable(&folder) || !folders.insert(folder.clone()) {
            return Err(bad("partition", &folder));
        }
    }
    Ok(())
}

fn resolve_vpgs(
    seed: u64,
    vpgs: impl Iterator<Item = scenario::Vpg>,
    inventory: &mut Inventory,
) -> Result<(), ScenarioError> {
    let by_key: HashMap<String, usize> = inventory
        .vms
        .iter()
        .enumerate()
        .map(|(index, vm)| (vm.key.clone(), index))
        .collect();
    let mut names = HashSet::new();
    for (index, vpg) in vpgs.enumerate() {
        if !names.insert(vpg.name.clone()) {
            return Err(ScenarioError::Twice {
                what: "VPG",
                name: vpg.name,
            });
        }
        let members = vpg
            .vms
            .iter()
            .map(|key| {
                by_key
                    .get(key)
                    .copied()
                    .ok_or_else(|| ScenarioError::UnknownVm {
                        vpg: vpg.name.clone(),
                        vm: key.clone(),
                    })
            })
            .collect::<Result<Vec<_>, _>>()?;
        for &vm in &members {
            if let Some(vm) = inventory.vms.get_mut(vm) {
                vm.vpgs.push(index);
            }
        }
        let site = |name: &Option<String>, fallback: usize| match name {
            None => Ok(fallback),
            Some(name) => inventory
                .sites
                .iter()
                .position(|site| site.name == *name)
                .ok_or_else(|| ScenarioError::UnknownSite {
                    vpg: vpg.name.clone(),
                    site: name.clone(),
                }),
        };
        let code = |field, code: &names::Code, known: &[&str]| {
            code.resolve(known)
                .ok_or_else(|| ScenarioError::UnknownName {
                    vpg: vpg.name.clone(),
                    field,
                    value: format!("{code:?}"),
                })
        };
        inventory.vpgs.push(Vpg {
            id: vpg
                .id
                .clone()
                .unwrap_or_else(|| guid(seed, &format!("vpg {}", vpg.name))),
            vms: members,
            status: code("status", &vpg.status, &names::STATUSES)?,
            sub_status: code("sub_status", &vpg.sub_status, &names::SUB_STATUSES)?,
            priority: code("priority", &vpg.priority, &names::PRIORITIES)?,
            protected: code("protected", &vpg.protected, &names::ENTITY_TYPES)?,
            recovery: code("recovery", &vpg.recovery, &names::ENTITY_TYPES)?,
            protected_site: site(&vpg.protected_site, 0)?,
            recovery_site: site(&vpg.recovery_site, 1.min(inventory.sites.len() - 1))?,
            organization: vpg.organization,
            history_ms: millis(vpg.history),
            name: vpg.name,
        });
    }
    Ok(())
}

/// VMs that only clouds protect have a cloud's identifiers.
fn name_cloud_vms(seed: u64, declared: &[scenario::Vm], inventory: &mut Inventory) {
    let server = guid(seed, "cloud");
    let Inventory { vms, vpgs, .. } = inventory;
    for (vm, declared) in vms.iter_mut().zip(declared) {
        let clouds = vm
            .vpgs
            .iter()
            .filter_map(|&vpg| vpgs.get(vpg))
            .filter(|vpg| names::is_cloud(vpg.protected))
            .count();
        if declared.id.is_none() && clouds > 0 && clouds == vm.vpgs.len() {
            let instance = guid(seed, &format!("instance {}", vm.key)).replace('-', "");
            let short: String = instance.chars().take(17).collect();
            vm.id = format!("{server}.i-{short}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_scenario_is_the_described_one() {
        let inventory = build(&Scenario::default()).unwrap();
        let vpgs_of = |name: &str| -> Vec<usize> {
            inventory
                .vms
                .iter()
                .filter(|vm| vm.name == name)
                .map(|vm| vm.vpgs.len())
                .collect()
        };
        assert_eq!(vpgs_of("jp-ubuntu"), [1]);
        assert_eq!(vpgs_of("app01"), [3]);
        assert_eq!(vpgs_of("web"), [1, 1]);
        assert_eq!(vpgs_of("lonely"), [0]);
        let (_, cloud) = inventory.vpg_by_name("cloud01").unwrap();
        assert!(names::is_cloud(cloud.protected));
        let (_, paused) = inventory.vpg_by_name("paused01").unwrap();
        assert!(!names::takes_checkpoints(paused.status, paused.sub_status));
    }

    #[test]
    fn mistakes_are_named() {
        let mut scenario = Scenario::default();
        scenario.vpgs[0].vms.push("nobody".to_owned());
        let error = build(&scenario).err().unwrap().to_string();
        assert!(
            error.contains("nobody") && error.contains("jp-ubuntu"),
            "{error}"
        );
        let mut scenario = Scenario::default();
        scenario.vms[0].key = Some("../out".to_owned());
        scenario.vpgs[0].vms = vec!["../out".to_owned()];
        assert!(matches!(
            build(&scenario),
            Err(ScenarioError::BadFolder { .. })
        ));
    }

    #[test]
    fn bulk_vms_fill_their_vpgs() {
        let inventory = build(&Scenario::default().with_bulk_vms(25)).unwrap();
        let sizes: Vec<usize> = inventory
            .vpgs
            .iter()
            .filter(|vpg| vpg.name.starts_with("bulk"))
            .map(|vpg| vpg.vms.len())
            .collect();
        assert_eq!(sizes, [10, 10, 5]);
    }
}
