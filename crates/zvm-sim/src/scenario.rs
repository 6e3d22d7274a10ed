//! What is simulated: sites, VMs and their guest disks, VPGs and their journals, timings, switches.
//!
//! A scenario file is TOML. What it leaves out is as in [`Scenario::default`]; `[[vm]]` and `[[vpg]]` replace the
//! whole default list.

mod error;
mod standard;
mod vm;

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::error::ScenarioError;
pub use self::vm::{Entry, Partition, Vm};
use crate::faults::Fault;
use crate::names::Code;
use crate::spread::Spread;
use crate::switches::Switches;

/// Everything that a simulated ZVM starts with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// Seed of all draws (durations, lags) and of the identifiers.
    pub seed: u64,
    /// Who can log in.
    pub credentials: Credentials,
    /// The realm's protection against guessing.
    pub realm: Realm,
    /// How long things take.
    pub timings: Timings,
    /// The site of this ZVM.
    pub site: Site,
    /// Further sites, as recovery or protected side of VPGs.
    #[serde(rename = "peer")]
    pub peers: Vec<Site>,
    /// Many more VMs, without guest disks.
    pub bulk: Bulk,
    /// The switches at the start.
    pub switches: Switches,
    /// The faults at the start.
    #[serde(rename = "fault")]
    pub faults: Vec<Fault>,
    /// The VMs.
    #[serde(rename = "vm")]
    pub vms: Vec<Vm>,
    /// The VPGs.
    #[serde(rename = "vpg")]
    pub vpgs: Vec<Vpg>,
}

/// A user of the realm `zerto` (password grant with the public client `zerto-client`), and a confidential
/// client (client-credentials grant).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Credentials {
    /// The user.
    pub username: String,
    /// The user's password.
    pub password: String,
    /// The confidential client.
    pub client_id: String,
    /// The confidential client's secret.
    pub client_secret: String,
}

impl Default for Credentials {
    fn default() -> Self {
        Self {
            username: "admin".to_owned(),
            password: "simulated-password".to_owned(),
            client_id: "rewind".to_owned(),
            client_secret: "simulated-secret".to_owned(),
        }
    }
}

/// Keycloak's brute-force protection, with the values of a real appliance's realm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Realm {
    /// So many refused logins lock the account.
    pub failure_factor: u32,
    /// The lock's length, times the number of times the factor was reached.
    pub wait_seconds: u64,
    /// The longest lock.
    pub max_wait_seconds: u64,
    /// Two refusals within this time lock the account, too; 0: never.
    pub quick_login_ms: u64,
    /// For so long.
    pub quick_login_wait_seconds: u64,
    /// Refusals older than this are forgotten.
    pub forget_after_seconds: u64,
}

impl Default for Realm {
    fn default() -> Self {
        Self {
            failure_factor: 5,
            wait_seconds: 60,
            max_wait_seconds: 900,
            quick_login_ms: 1000,
            quick_login_wait_seconds: 60,
            forget_after_seconds: 43_200,
        }
    }
}

/// How long things take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timings {
    /// From one automatic checkpoint of a VPG to the next; at least 20 ms.
    #[serde(with = "jiff::fmt::serde::unsigned_duration::friendly::compact::required")]
    pub auto_checkpoint: Duration,
    /// From an insert's POST to the end of its task.
    pub task: Spread,
    /// From the end of that task to the tag in the journal.
    pub listing_lag: Spread,
    /// A mount.
    pub mount: Spread,
    /// An unmount.
    pub unmount: Spread,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            auto_checkpoint: Duration::from_secs(5),
            task: Spread::millis(500, 1500),
            listing_lag: Spread::millis(500, 3000),
            mount: Spread::millis(1000, 3000),
            unmount: Spread::millis(300, 1000),
        }
    }
}

/// A site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Site {
    /// Its name.
    pub name: String,
    /// Its identifier; made from the seed if it is not given.
    pub id: Option<String>,
    /// `SiteType` as the API has it: `VCenter`, `AWS`, `Azure`.
    pub site_type: String,
    /// Where it is.
    pub location: String,
    /// The ZVM's version.
    pub version: String,
}

impl Default for Site {
    fn default() -> Self {
        Self {
            name: "Production".to_owned(),
            id: None,
            site_type: "VCenter".to_owned(),
            location: "Simulated rack 1".to_owned(),
            version: "10.0.60".to_owned(),
        }
    }
}

/// Many VMs, spread evenly over VPGs: `bulk-00001` in `bulk-vpg-0001` and so on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bulk {
    /// How many VMs.
    pub vms: u32,
    /// So many in each VPG; 0: 10.
    pub vms_per_vpg: u32,
}

/// A VPG and its journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Vpg {
    /// Its name.
    pub name: String,
    /// Its identifier; made from the seed if it is not given.
    pub id: Option<String>,
    /// Its VMs, by their keys.
    pub vms: Vec<String>,
    /// How long a checkpoint stays in the journal.
    #[serde(with = "jiff::fmt::serde::unsigned_duration::friendly::compact::required")]
    pub history: Duration,
    /// So many automatic checkpoints were there before the start. They cost neither memory nor time.
    pub past: u64,
    /// From one of these to the next.
    #[serde(with = "jiff::fmt::serde::unsigned_duration::friendly::compact::required")]
    pub past_interval: Duration,
    /// Identifier of the oldest; drawn if it is not given.
    pub first_checkpoint: Option<u64>,
    /// Tagged checkpoints from before the start.
    pub tagged: Vec<PastTag>,
    /// Its status.
    pub status: Code,
    /// Its substatus.
    pub sub_status: Code,
    /// Its priority.
    pub priority: Code,
    /// Its ZORG.
    pub organization: String,
    /// Platform of the protected side: `VCVpg`, `AWS`, `Azure`, …
    pub protected: Code,
    /// Platform of the recovery side.
    pub recovery: Code,
    /// The protected site by name; this ZVM's own if it is not given.
    pub protected_site: Option<String>,
    /// The recovery site by name; the first peer if it is not given.
    pub recovery_site: Option<String>,
}

impl Default for Vpg {
    fn default() -> Self {
        Self {
            name: String::new(),
            id: None,
            vms: Vec::new(),
            history: Duration::from_secs(24 * 3600),
            past: 720,
            past_interval: Duration::from_secs(5),
            first_checkpoint: None,
            tagged: Vec::new(),
            status: "MeetingSLA".into(),
            sub_status: "None".into(),
            priority: "Medium".into(),
            organization: String::new(),
            protected: "VCVpg".into(),
            recovery: "VCVpg".into(),
            protected_site: None,
            recovery_site: None,
        }
    }
}

impl Vpg {
    /// A VPG of this name with these VMs.
    pub fn of(name: &str, vms: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            vms: vms.iter().map(|&vm| vm.to_owned()).collect(),
            ..Self::default()
        }
    }
}

/// A tag on a checkpoint from before the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PastTag {
    /// The tag.
    pub tag: String,
    /// How long before the start; the checkpoint nearest to this carries the tag.
    #[serde(with = "jiff::fmt::serde::unsigned_duration::friendly::compact::required")]
    pub age: Duration,
}

impl Scenario {
    /// The default scenario with timings for tests: checkpoints every 50 ms, everything else within some
    /// milliseconds, and no lock after two refused logins in quick succession (after five still).
    pub fn fast() -> Self {
        Self {
            timings: Timings {
                auto_checkpoint: Duration::from_millis(50),
                task: Spread::millis(5, 15),
                listing_lag: Spread::millis(5, 25),
                mount: Spread::millis(5, 15),
                unmount: Spread::millis(2, 8),
            },
            realm: Realm {
                quick_login_ms: 0,
                ..Realm::default()
            },
            ..Self::default()
        }
    }

    /// Reads a scenario from TOML.
    ///
    /// # Errors
    /// The text is not a scenario; the error names the line.
    pub fn from_toml(text: &str) -> Result<Self, ScenarioError> {
        Ok(toml::from_str(text)?)
    }

    /// Reads a scenario file.
    ///
    /// # Errors
    /// The file can't be read or is not a scenario.
    pub fn from_file(path: &Path) -> Result<Self, ScenarioError> {
        let text = std::fs::read_to_string(path).map_err(|source| ScenarioError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::from_toml(&text)
    }

    /// Adds so many VMs without disks, ten to a VPG.
    #[must_use]
    pub fn with_bulk_vms(mut self, vms: u32) -> Self {
        self.bulk.vms = vms;
        self
    }

    /// Gives a VPG a past of so many checkpoints, one every five seconds, and a journal that holds them all.
    #[must_use]
    pub fn with_past(mut self, vpg: &str, checkpoints: u64) -> Self {
        for vpg in self.vpgs.iter_mut().filter(|own| own.name == vpg) {
            vpg.past = checkpoints;
            let span = Duration::from_secs(5 * checkpoints + 24 * 3600);
            vpg.history = vpg.history.max(span);
        }
        self
    }

    /// The VM of this key, to change it.
    pub fn vm_mut(&mut self, key: &str) -> Option<&mut Vm> {
        self.vms.iter_mut().find(|vm| vm.key() == key)
    }

    /// The VPG of this name, to change it.
    pub fn vpg_mut(&mut self, name: &str) -> Option<&mut Vpg> {
        self.vpgs.iter_mut().find(|vpg| vpg.name == name)
    }
}
