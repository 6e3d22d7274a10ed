//! The stage: a simulated ZVM with its guests, and a configuration for it, in a temporary folder.
use std::{
    ffi::OsStr,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use rewind_core::config::withhold_secrets;
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;
use zvm_sim::{
    JournalEntry, Scenario, Sim,
    scenario::{Entry, Partition},
};

use super::Stopped;
use crate::output;

/// The VM that the story is about, and the VPG that protects it.
pub const VM: &str = "jp-ubuntu";
pub const VPG: &str = "jp-ubuntu";
/// A VM that no VPG protects.
pub const UNPROTECTED_VM: &str = "lonely";
/// A file on it.
pub const UNPROTECTED_FILE: &str = "/srv/data/orders.csv";
/// The file that the agent breaks.
pub const FILE: &str = "/home/justin/app-config.yaml";

/// What is simulated: the default scenario, and a disk for the VM that nothing protects.
pub fn scenario() -> Scenario {
    let mut scenario = Scenario::default();
    if let Some(vm) = scenario.vm_mut(UNPROTECTED_VM) {
        let orders = "id,item,count\n1,bolts,400\n2,nuts,400\n";
        vm.partitions.push(Partition {
            files: vec![Entry::text(UNPROTECTED_FILE, orders)],
            ..Partition::default()
        });
    }
    scenario
}

/// Everything that is removed at the end.
pub struct Stage {
    sim: Sim,
    folder: TempDir,
    config: PathBuf,
    file: PathBuf,
}

impl Stage {
    /// Starts the simulated ZVM on a free port and writes a configuration for it, with this catalog.
    pub async fn set(catalog: Option<&str>) -> Result<Self, Stopped> {
        let mut folder = tempfile::Builder::new();
        folder.prefix("zerto-rewind-demo-");
        // A password and a key are in it.
        #[cfg(unix)]
        folder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = folder.tempdir()?;
        let sim = Sim::builder()
            .scenario(scenario())
            .data_dir(folder.path().join("zvm"))
            .start()
            .await
            .map_err(|error| Stopped::at("the simulated ZVM did not start")(&error))?;
        let file = sim
            .guest_path(VM, FILE)
            .ok_or_else(|| Stopped::Broken(format!("the simulated VM {VM} has no {FILE}")))?;
        let config = folder.path().join("config.json");
        let credentials = sim.credentials();
        let mut content = json!({
            "zerto_url": sim.url(),
            "username": credentials.username,
            "password": credentials.password,
            "verify_tls": true,
            "ca_file": sim.ca_file(),
            "state_dir": folder.path().join("state"),
            "recover_dir": folder.path().join("recovered"),
        });
        if let (Some(catalog), Some(keys)) = (catalog, content.as_object_mut()) {
            let file = folder.path().join("catalog.toml");
            fs::write(&file, catalog)?;
            keys.insert("catalog".into(), json!(file));
        }
        write_private(&config, &format!("{content:#}\n"))?;
        Ok(Self {
            sim,
            folder,
            config,
            file,
        })
    }

    /// The simulated ZVM's address.
    pub fn url(&self) -> &str {
        self.sim.url()
    }

    /// This program with these arguments, configured for the stage. It ends with its handle.
    pub fn program<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> io::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(arguments)
            .env("ZERTO_REWIND_CONFIG", &self.config)
            // A stop of the user's own must not hold up the story, and the story's must not touch it.
            .env("HOME", self.folder.path())
            .env("XDG_STATE_HOME", self.folder.path().join("home"))
            .kill_on_drop(true);
        // The stage has a password of its own, and another source of one besides would be refused.
        withhold_secrets(command.as_std_mut());
        // The story tells what there is to know.
        if std::env::var_os("RUST_LOG").is_none() {
            command.env("RUST_LOG", "off");
        }
        Ok(command)
    }

    /// A path in the folder that is removed at the end.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where the guests' folders are.
    pub fn guests(&self) -> &Path {
        self.sim.guests_dir()
    }

    /// Where a file of a guest is on this machine.
    pub fn guest_path(&self, vm: &str, path: &str) -> Result<PathBuf, Stopped> {
        self.sim
            .guest_path(vm, path)
            .ok_or_else(|| Stopped::Broken(format!("the simulated VM {vm} has no {path}")))
    }

    /// How many requests the ZVM got.
    pub fn requests(&self) -> usize {
        self.sim.requests().len()
    }

    /// How many of them were to insert a tagged checkpoint.
    pub fn inserts(&self) -> usize {
        let requests = self.sim.requests();
        let insert = |request: &&zvm_sim::RequestRecord| {
            request.method == "POST" && request.path.ends_with("/checkpoints")
        };
        requests.iter().filter(insert).count()
    }

    /// The tagged checkpoints of a VPG, as the simulated ZVM itself has them.
    pub fn journal(&self, vpg: &str) -> Vec<JournalEntry> {
        self.sim.journal(vpg)
    }

    /// Where [`FILE`] of the guest is on this machine: the VM's own disk.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Waits until the VM's journal has a checkpoint that is newer than this one, and says which.
    pub async fn checkpoint_after(&self, checkpoint: u64) -> u64 {
        let mut newest = checkpoint;
        self.sim
            .wait_for(|zvm| {
                newest = zvm.latest_checkpoint(VPG).unwrap_or_default();
                newest > checkpoint
            })
            .await;
        newest
    }

    /// How many FLR sessions are open on the ZVM.
    pub fn open_sessions(&self) -> usize {
        self.sim.flr_sessions().len()
    }

    /// Stops the ZVM and removes everything.
    pub async fn strike(self) {
        self.sim.shutdown().await;
        if let Err(error) = self.folder.close() {
            output::warning(&format!("the demo's folder could not be removed: {error}"));
        }
    }

    /// Keeps the folder, and the ZVM running.
    pub fn keep(self) -> Kept {
        Kept {
            sim: self.sim,
            folder: self.folder.keep(),
            config: self.config,
            file: self.file,
        }
    }
}

/// A stage whose folder stays.
pub struct Kept {
    sim: Sim,
    pub folder: PathBuf,
    pub config: PathBuf,
    pub file: PathBuf,
}

impl Kept {
    /// Stops the ZVM; the folder stays, and this is where.
    pub async fn close(self) -> PathBuf {
        self.sim.shutdown().await;
        self.folder
    }
}

fn write_private(file: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)?.write_all(text.as_bytes())
}
