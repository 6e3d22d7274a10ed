//! One simulated ZVM, two hosts with several users' worth of processes each, and what was seen of them.

use std::{
    collections::{BTreeMap, HashSet},
    fs::{self, File, OpenOptions},
    path::{Path, PathBuf},
    process::Stdio,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rand::{SeedableRng as _, rngs::StdRng};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;
use zvm_sim::{
    Scenario, Sim, Spread,
    scenario::{Entry, Partition, Vm, Vpg},
};

use super::{
    Result,
    client::{Client, ECHO},
    table::Table,
};

/// With a disk: the first two are recovered from, at the last somebody else has a session open.
pub const DISKS: [&str; 3] = ["disk-a", "disk-b", "kept"];
/// Every VM that is guarded.
pub const VMS: [&str; 5] = ["disk-a", "disk-b", "plain-a", "plain-b", "plain-c"];
pub const FILE: &str = "/etc/app.conf";
const CONTENT: &str = "what is taken back has to be exactly this\n";

const CATALOG: &str = r#"
version = 1

[[guard]]
server = "echo"
tool   = "change"
vm     = { arg = "/vm" }
action = "change"
change = { arg = "/change" }
"#;

pub struct Town {
    pub sim: Sim,
    pub hosts: Vec<Host>,
    /// Nothing new is begun.
    pub over: CancellationToken,
    /// With troubles after which a recovery looks for its session for half a minute.
    pub thorough: bool,
    folder: TempDir,
    seed: u64,
    drawn: AtomicU64,
    seen: Mutex<Seen>,
}

/// One state folder.
pub struct Host {
    pub config: PathBuf,
    pub state: PathBuf,
    /// VMs with the checkpoints that were pinned from here.
    pins: Mutex<BTreeMap<String, (String, String)>>,
}

#[derive(Default)]
struct Seen {
    counts: BTreeMap<String, u64>,
    longest: BTreeMap<&'static str, Duration>,
    /// Pins that somebody has a receipt for.
    pins: HashSet<(String, String)>,
    wrong: Vec<String>,
}

fn scenario(seed: u64) -> Scenario {
    let mut scenario = Scenario::fast();
    scenario.seed = seed;
    scenario.timings.auto_checkpoint = Duration::from_secs(5);
    scenario.timings.task = Spread::millis(5, 60);
    scenario.timings.listing_lag = Spread::millis(5, 300);
    scenario.timings.mount = Spread::millis(20, 200);
    scenario.timings.unmount = Spread::millis(5, 100);
    scenario.vms = VMS
        .iter()
        .chain(&["kept"])
        .map(|&name| Vm {
            name: name.to_owned(),
            partitions: match DISKS.contains(&name) {
                true => vec![Partition {
                    files: vec![Entry::text(FILE, CONTENT)],
                    ..Partition::default()
                }],
                false => Vec::new(),
            },
            ..Vm::default()
        })
        .collect();
    let mut vpgs: Vec<Vpg> = VMS.iter().map(|&name| Vpg::of(name, &[name])).collect();
    vpgs.push(Vpg::of("disk-a-dr", &["disk-a"]));
    vpgs.push(Vpg::of("kept", &["kept"]));
    scenario.vpgs = vpgs;
    scenario
}

impl Town {
    pub async fn new(seed: u64, thorough: bool) -> Result<Self> {
        let sim = Sim::start(scenario(seed)).await?;
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("catalog.toml"), CATALOG)?;
        let hosts = ["one", "two"].map(|name| Host::new(&sim, folder.path(), name));
        let town = Self {
            hosts: hosts.into_iter().collect::<Result<_>>()?,
            sim,
            over: CancellationToken::new(),
            thorough,
            folder,
            seed,
            drawn: AtomicU64::new(0),
            seen: Mutex::default(),
        };
        town.somebody_mounts().await?;
        Ok(town)
    }

    /// The session that is none of ours.
    pub async fn somebody_mounts(&self) -> Result<()> {
        let checkpoint = self.sim.checkpoint_now("kept").await?;
        self.sim.mount("kept", "kept", &checkpoint).await?;
        Ok(())
    }

    /// The draws of one more worker.
    pub fn draws(&self) -> StdRng {
        let nth = self.drawn.fetch_add(1, Ordering::Relaxed);
        StdRng::seed_from_u64(self.seed.wrapping_mul(1_000_003).wrapping_add(nth))
    }

    /// A change id that nobody else has.
    pub fn change(&self) -> String {
        format!("chg-{}", self.drawn.fetch_add(1, Ordering::Relaxed))
    }

    /// One of the programs on this host, quiet but for its log.
    pub fn command(&self, host: usize, program: &str) -> Result<Command> {
        let home = self.hosts[host].state.parent().ok_or("no folder")?;
        let mut command = Command::new(program);
        command
            .env("ZERTO_REWIND_CONFIG", &self.hosts[host].config)
            .env("HOME", home)
            .env("XDG_STATE_HOME", home)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(self.log()?)
            .kill_on_drop(true);
        Ok(command)
    }

    fn log(&self) -> Result<File> {
        let log = self.folder.path().join("log");
        Ok(OpenOptions::new().create(true).append(true).open(log)?)
    }

    pub async fn server(&self, host: usize) -> Result<Client> {
        Client::start(self.command(host, env!("CARGO_BIN_EXE_zerto-rewind-mcp"))?).await
    }

    pub async fn proxy(&self, host: usize) -> Result<Client> {
        let mut command = self.command(host, env!("CARGO_BIN_EXE_zerto-rewind"))?;
        command
            .args(["proxy", "--"])
            .arg(std::env::current_exe()?)
            .arg(ECHO);
        Client::start(command).await
    }

    pub fn cli(&self, host: usize, words: &[&str]) -> Result<Command> {
        let mut command = self.command(host, env!("CARGO_BIN_EXE_zerto-rewind"))?;
        command.args(words);
        Ok(command)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn count(&self, what: &str) {
        *self.seen().counts.entry(what.to_owned()).or_default() += 1;
    }

    /// How long something took.
    pub fn took(&self, what: &'static str, begun: Instant) {
        let mut seen = self.seen();
        let longest = seen.longest.entry(what).or_default();
        *longest = begun.elapsed().max(*longest);
    }

    pub fn wrong(&self, what: String) {
        self.seen().wrong.push(what);
    }

    /// Whether a receipt is true: each of its pins is listed with its tag, and nobody else's.
    pub fn receipt(&self, host: usize, receipt: &Value) {
        let (vm, tag) = (text(&receipt["vm"]), text(&receipt["tag"]));
        for pin in receipt["pins"].as_array().into_iter().flatten() {
            let (vpg, id) = (text(&pin["vpg"]), text(&pin["checkpoint"]));
            let is_it = |entry: &zvm_sim::JournalEntry| {
                entry.id == id && entry.tag.starts_with(&tag) && entry.listed_at.is_some()
            };
            if !self.sim.journal(&vpg).iter().any(is_it) {
                self.wrong(format!(
                    "no checkpoint {id} of {vpg} with the tag {tag} is listed"
                ));
            }
            if !self.seen().pins.insert((vpg.clone(), id.clone())) {
                self.wrong(format!("checkpoint {id} of {vpg} is the pin of two guards"));
            }
            let mut pins = self.hosts[host]
                .pins
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            pins.insert(vm.clone(), (vpg, id));
        }
    }

    /// The newest pin of a VM from this host.
    pub fn pin(&self, host: usize, vm: &str) -> Option<(String, String)> {
        let pins = self.hosts[host]
            .pins
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        pins.get(vm).cloned()
    }

    /// Whether what was recovered is what was in the guest.
    pub fn recovered(&self, recovery: &Value) -> Result<()> {
        let file = text(&recovery["local_path"]);
        if fs::read_to_string(&file)? != CONTENT {
            self.wrong(format!("{file} is not what was in the guest"));
        }
        Ok(fs::remove_file(file)?)
    }

    /// Trouble is over.
    pub fn calm(&self) {
        self.sim.clear_faults();
        self.sim.update(|switches| *switches = Default::default());
    }

    pub fn tally(&self, table: &mut Table, length: Duration) {
        table.row("length", length.as_secs_f64(), "s", None);
        for (what, count) in &self.seen().counts {
            table.row(what, *count as f64, "times", None);
        }
        for (what, longest) in &self.seen().longest {
            let what = format!("the longest: {what}");
            table.row(&what, longest.as_secs_f64(), "s", None);
        }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Stops the ZVM; everything that was wrong.
    pub async fn end(self: std::sync::Arc<Self>) -> Result<Vec<String>> {
        let town = std::sync::Arc::into_inner(self).ok_or("somebody is still at work")?;
        let seen = town
            .seen
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        town.sim.shutdown().await;
        Ok(seen.wrong)
    }
}

impl Host {
    fn new(sim: &Sim, folder: &Path, name: &str) -> Result<Self> {
        let home = folder.join(name);
        fs::create_dir(&home)?;
        let state = home.join("state");
        let config = home.join("config.json");
        let credentials = sim.credentials();
        let keys = json!({
            "zerto_url": sim.url(), "username": credentials.username, "password": credentials.password,
            "verify_tls": true, "ca_file": sim.ca_file(), "state_dir": state, "recover_dir": home.join("recovered"),
            "catalog": folder.join("catalog.toml"), "agent": name, "confirmation": "argument",
            "guard": { "listed_timeout": "3s", "attempts": 4, "deadline": "40s" },
        });
        fs::write(&config, keys.to_string())?;
        fs::set_permissions(&config, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        Ok(Self {
            config,
            state,
            pins: Mutex::default(),
        })
    }
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
