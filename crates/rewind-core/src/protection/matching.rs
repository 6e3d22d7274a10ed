//! Which VM is meant. Never a partial match, and DNS is not asked.
use super::VmCandidate;
use std::{
    collections::{BTreeMap, HashSet},
    net::IpAddr,
};
use zvm_client::{UnprotectedVm, VmRow};

/// What the given text matched, the strictest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchedBy {
    Identifier,
    Name,
    NameIgnoringCase,
    Hostname,
    Address,
}

impl MatchedBy {
    const STRICTEST_FIRST: [Self; 5] = [
        Self::Identifier,
        Self::Name,
        Self::NameIgnoringCase,
        Self::Hostname,
        Self::Address,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Identifier => "identifier",
            Self::Name => "name",
            Self::NameIgnoringCase => "name_ignoring_case",
            Self::Hostname => "hostname",
            Self::Address => "address",
        }
    }
}

/// All rows of one VM: one per VPG.
#[derive(Clone, Debug)]
pub struct Vm {
    pub name: String,
    pub identifier: String,
    pub rows: Vec<VmRow>,
}

impl Vm {
    pub fn candidate(&self) -> VmCandidate {
        VmCandidate {
            name: self.name.clone(),
            identifier: self.identifier.clone(),
            vpgs: self.rows.iter().map(|row| row.vpg_name.clone()).collect(),
        }
    }
}

/// One VM per identifier (compared without case), with every VPG once.
pub fn vms(rows: Vec<VmRow>) -> Vec<Vm> {
    let mut vms: BTreeMap<String, (Vm, HashSet<String>)> = BTreeMap::new();
    for row in rows {
        let (vm, vpgs) = vms.entry(row.identifier.to_lowercase()).or_insert_with(|| {
            let vm = Vm {
                name: row.name.clone(),
                identifier: row.identifier.clone(),
                rows: Vec::new(),
            };
            (vm, HashSet::new())
        });
        if vpgs.insert(row.vpg_identifier.to_ascii_lowercase()) {
            vm.rows.push(row);
        }
    }
    vms.into_values().map(|(vm, _)| vm).collect()
}

/// What a VM is known by.
pub trait Known {
    fn name(&self) -> &str;
    fn identifier(&self) -> &str;
    fn has_address(&self, address: IpAddr) -> bool;
}

impl Known for Vm {
    fn name(&self) -> &str {
        &self.name
    }
    fn identifier(&self) -> &str {
        &self.identifier
    }
    fn has_address(&self, address: IpAddr) -> bool {
        self.rows
            .iter()
            .flat_map(|row| &row.ip_addresses)
            .any(|text| as_address(text) == Some(address))
    }
}

impl Known for UnprotectedVm {
    fn name(&self) -> &str {
        &self.name
    }
    fn identifier(&self) -> &str {
        &self.identifier
    }
    fn has_address(&self, _: IpAddr) -> bool {
        false
    }
}

/// The VMs that match by the strictest rule that matches any.
pub fn matching<'a, T: Known>(vms: &'a [T], wanted: &str) -> Option<(MatchedBy, Vec<&'a T>)> {
    let wanted = Wanted::new(wanted);
    MatchedBy::STRICTEST_FIRST.into_iter().find_map(|rule| {
        let found: Vec<&T> = vms.iter().filter(|vm| wanted.is(rule, *vm)).collect();
        (!found.is_empty()).then_some((rule, found))
    })
}

struct Wanted<'a> {
    text: &'a str,
    lower: String,
    address: Option<IpAddr>,
}

impl<'a> Wanted<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            lower: text.to_lowercase(),
            address: as_address(text),
        }
    }

    fn is<T: Known>(&self, rule: MatchedBy, vm: &T) -> bool {
        match rule {
            MatchedBy::Identifier => vm.identifier().eq_ignore_ascii_case(self.text),
            MatchedBy::Name => vm.name() == self.text,
            MatchedBy::NameIgnoringCase => vm.name().to_lowercase() == self.lower,
            MatchedBy::Hostname => {
                self.address.is_none() && same_host(&self.lower, &vm.name().to_lowercase())
            }
            MatchedBy::Address => self.address.is_some_and(|address| vm.has_address(address)),
        }
    }
}

/// Whether two lower-case names are of one host. Two full names have to be equal; a bare one is the first label of a full one.
fn same_host(one: &str, other: &str) -> bool {
    if as_address(other).is_some() {
        return false;
    }
    let (one, other) = (one.trim_end_matches('.'), other.trim_end_matches('.'));
    if one.is_empty() || other.is_empty() {
        return false;
    }
    match (one.split_once('.'), other.split_once('.')) {
        (Some(_), Some(_)) | (None, None) => one == other,
        (Some((label, _)), None) => label == other,
        (None, Some((label, _))) => label == one,
    }
}

fn as_address(text: &str) -> Option<IpAddr> {
    let text = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(text);
    text.parse::<IpAddr>()
        .ok()
        .map(|address| address.to_canonical())
}

/// Names that resemble `wanted`, to help a person who mistyped. They are told, never used.
pub fn resembling<'a, T: Known>(vms: &'a [T], wanted: &str, at_most: usize) -> Vec<&'a T> {
    let wanted = wanted.to_lowercase();
    let label = wanted.split('.').next().unwrap_or(&wanted);
    if label.chars().count() < 3 {
        return Vec::new();
    }
    vms.iter()
        .filter(|vm| {
            let name = vm.name().to_lowercase();
            name.contains(label) || (name.chars().count() >= 3 && label.contains(&name))
        })
        .take(at_most)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, identifier: &str, vpg: &str, addresses: &[&str]) -> VmRow {
        VmRow {
            identifier: identifier.into(),
            name: name.into(),
            vpg_identifier: vpg.into(),
            vpg_name: vpg.into(),
            status: Default::default(),
            sub_status: Default::default(),
            ip_addresses: addresses.iter().map(|&a| a.to_owned()).collect(),
            guest_os: None,
            protected_here: None,
            protected_site: None,
            recovery_site: None,
            protected_entity: Default::default(),
            flr_enabled: None,
        }
    }

    fn site() -> Vec<Vm> {
        vms(vec![
            row("app01", "s.vm-1", "v1", &["10.0.0.11", "172.17.0.1"]),
            row("app01", "S.VM-1", "v2", &["10.0.0.11"]),
            row("app01", "s.vm-1", "V2", &[]),
            row("app01.example.com", "s.vm-2", "v3", &["172.17.0.1"]),
            row("Web", "s.vm-3", "v4", &["fe80::1"]),
            row("web", "s.vm-4", "v5", &[]),
            row("db.example.com", "s.vm-5", "v6", &[]),
            row("10", "s.vm-6", "v7", &[]),
            row("10.0.0.99", "s.vm-7", "v8", &[]),
            row("s.vm-1", "s.vm-8", "v9", &[]),
        ])
    }

    fn find(wanted: &str) -> Option<(MatchedBy, Vec<String>)> {
        let site = site();
        matching(&site, wanted)
            .map(|(by, vms)| (by, vms.iter().map(|vm| vm.identifier.clone()).collect()))
    }

    #[test]
    fn rows_of_one_vm_are_grouped_whatever_the_case_of_its_identifier() {
        let site = site();
        assert_eq!(
            site.iter()
                .find(|vm| vm.identifier == "s.vm-1")
                .unwrap()
                .rows
                .len(),
            2
        );
    }

    #[test]
    fn the_strictest_rule_decides() {
        use MatchedBy::*;
        let one = |by, id: &str| Some((by, vec![id.to_owned()]));
        for (wanted, found) in [
            ("s.vm-1", one(Identifier, "s.vm-1")),
            ("S.VM-5", one(Identifier, "s.vm-5")),
            ("app01", one(Name, "s.vm-1")),
            ("web", one(Name, "s.vm-4")),
            ("APP01", one(NameIgnoringCase, "s.vm-1")),
            (
                "WEB",
                Some((NameIgnoringCase, vec!["s.vm-3".into(), "s.vm-4".into()])),
            ),
            ("db", one(Hostname, "s.vm-5")),
            ("db.example.com.", one(Hostname, "s.vm-5")),
            ("app01.other.org", one(Hostname, "s.vm-1")),
            ("db.other.org", None),
            ("10.0.0.11", one(Address, "s.vm-1")),
            (
                "172.17.0.1",
                Some((Address, vec!["s.vm-1".into(), "s.vm-2".into()])),
            ),
            ("[fe80::1]", one(Address, "s.vm-3")),
            ("::ffff:10.0.0.11", one(Address, "s.vm-1")),
            ("10.0.0.12", None),
            ("10", one(Name, "s.vm-6")),
            ("app", None),
            ("app0", None),
            ("example.com", None),
            (".", None),
        ] {
            assert_eq!(find(wanted), found, "{wanted}");
        }
    }
}
