//! A simulated ZVM at which somebody else has a session open, one user of it, and what must hold after a process of theirs has died.
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::Duration,
};

use rewind_core::ledger::Ledger;
use rusqlite::Connection;
use serde_json::{Value, json};
use tokio::time::timeout;
use zvm_sim::{
    FlrSession, JournalEntry, Scenario, View,
    scenario::{Vm, Vpg},
};

use crate::support::{PATIENCE, Run, World, open_rows::OPEN};

pub const VM: &str = "jp-ubuntu";
/// The VPGs that protect it.
pub const VPGS: [&str; 2] = ["jp-ubuntu", "jp-ubuntu-dr"];
/// A file in the guest.
pub const FILE: &str = "/home/justin/app-config.yaml";

const CATALOG: &str = r#"
version = 1

[[guard]]
server = "wire"
tool   = "listed"
vm     = { arg = "/vm" }
action = "listed"
change = { arg = "/change" }

[[guard]]
server = "vmware"
tool   = "vm_*"
vm     = { arg = "/vm" }
action = "{{ tool }}"
change = { arg = "/change" }
"#;

pub struct Stage {
    pub world: World,
    /// The id of a checkpoint of the VM, in the first of its VPGs.
    pub checkpoint: String,
    foreign: Vec<FlrSession>,
}

/// Two VMs with small disks, one of them in two VPGs.
fn scenario() -> Scenario {
    let mut scenario = Scenario::fast();
    // What is recovered here are tagged checkpoints; automatic ones would only keep the disks busy.
    scenario.timings.auto_checkpoint = Duration::from_secs(5);
    scenario
        .vms
        .retain(|vm| [VM, "app01"].contains(&vm.name.as_str()));
    scenario
        .vms
        .iter_mut()
        .for_each(|vm: &mut Vm| vm.partitions.truncate(1));
    scenario.vpgs = vec![
        Vpg::of(VPGS[0], &[VM]),
        Vpg::of(VPGS[1], &[VM]),
        Vpg::of("app01", &["app01"]),
    ];
    scenario
}

impl Stage {
    pub async fn new() -> Self {
        Self::with(json!({ "listed_timeout": "1500ms", "attempts": 3, "deadline": "40s" })).await
    }

    /// With these settings of guards.
    pub async fn with(guard: Value) -> Self {
        let world = World::with(scenario()).await;
        world.configure(
            json!({ "guard": guard, "catalog": "catalog.toml", "confirmation": "argument" }),
        );
        fs::write(world.path("catalog.toml"), CATALOG).unwrap();
        let checkpoint = world.sim.checkpoint_now("app01").await.unwrap();
        world
            .sim
            .mount("app01", "app01", &checkpoint)
            .await
            .unwrap();
        world
            .sim
            .wait_for(|view| view.sessions()[0].state == zvm_sim::FlrState::Mounted)
            .await;
        let foreign = world.sim.flr_sessions();
        let mut stage = Self {
            world,
            checkpoint: String::new(),
            foreign,
        };
        let (receipt, _) = stage.guard("first").await;
        stage.checkpoint = receipt["pins"][0]["checkpoint"]
            .as_str()
            .unwrap()
            .to_owned();
        stage
    }

    pub async fn wait(&self, holds: impl FnMut(&View<'_>) -> bool) {
        timeout(PATIENCE, self.world.sim.wait_for(holds))
            .await
            .expect("the event never came");
    }

    /// Guards the VM under this change id; the receipt, and what was said beside it.
    pub async fn guard(&self, change: &str) -> (Value, String) {
        let words = [
            "guard", VM, "--action", "edit", "--change", change, "--json",
        ];
        let run = self.world.run(&words).await;
        assert_eq!(run.code, 0, "{change}: {}", run.stderr);
        let receipt = run.json();
        assert_eq!(receipt["change_id"], change);
        (receipt, run.stderr)
    }

    pub async fn find(&self) -> Run {
        let run = self.world.run(&["find", "app01", "--json"]).await;
        assert_eq!(run.code, 0, "{}", run.stderr);
        run
    }

    /// The tags of a change in one VPG, listed or not.
    pub fn tags_of(&self, vpg: &str, change: &str) -> Vec<JournalEntry> {
        let mut journal = self.world.sim.journal(vpg);
        journal.retain(|entry| entry.tag.contains(&format!("| change={change} |")));
        journal
    }

    /// Whether the change is pinned on every VPG.
    pub fn is_pinned(&self, change: &str) -> bool {
        VPGS.iter().all(|vpg| {
            let tags = self.tags_of(vpg, change);
            tags.iter().any(|entry| entry.listed_at.is_some())
        })
    }

    /// The receipt tells the truth: on every VPG its pin is the first that carries its tag, which is there no more often than it says.
    pub fn holds(&self, receipt: &Value) {
        let tag = receipt["tag"].as_str().unwrap();
        let pins = receipt["pins"].as_array().unwrap();
        assert_eq!(pins.len(), VPGS.len(), "{receipt}");
        for pin in pins {
            let journal = self.world.sim.journal(pin["vpg"].as_str().unwrap());
            let carrying: Vec<_> = journal.iter().filter(|entry| entry.tag == tag).collect();
            assert_eq!(pin["checkpoint"], carrying[0].id.as_str());
            assert!(carrying[0].listed_at.is_some());
            assert!(
                carrying.len() as u64 <= pin["inserts"].as_u64().unwrap(),
                "{pin} {journal:?}"
            );
        }
    }

    /// After another command has come and gone: nothing of those who died is left. A mount that was asked for and that nobody knows of is
    /// looked for for two minutes; that alone may be open.
    pub fn nothing_is_left(&self) {
        assert_eq!(self.world.sim.flr_sessions(), self.foreign);
        let folder = self.world.folder.path();
        let left: Vec<PathBuf> = all_below(folder)
            .into_iter()
            .filter(|path| {
                let name = path.file_name().unwrap().to_string_lossy();
                ["owner-", ".zerto-rewind-", ".tmp"]
                    .iter()
                    .any(|mark| name.starts_with(mark))
                    || name.contains(".wait-")
            })
            .collect();
        assert_eq!(left, Vec::<PathBuf>::new());
        for path in all_below(&self.world.path("state")) {
            if path
                .extension()
                .is_some_and(|extension| extension == "lock")
            {
                File::open(&path).unwrap().try_lock().unwrap();
            }
        }
        for (what, open) in OPEN {
            assert_eq!(self.count(open), 0, "{what}");
        }
        let ledger = Ledger::of(&self.world.path("state")).verify().unwrap();
        assert!(ledger.clean, "{:?}", ledger.findings);
    }

    fn count(&self, query: &str) -> i64 {
        let database = Connection::open(self.world.path("state/state.db")).unwrap();
        database.query_row(query, [], |row| row.get(0)).unwrap()
    }

    /// Guards that are told as interrupted.
    pub fn interrupted(&self) -> i64 {
        self.count("SELECT count(*) FROM guard WHERE failure LIKE 'interrupted: %'")
    }
}

fn all_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(all_below(&path));
        }
        found.push(path);
    }
    found
}
