//! The stage: a simulated ZVM with its guests, and a configuration for it, in a temporary folder.
use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::json;
use tempfile::TempDir;
use zvm_sim::Sim;

use super::Stopped;

/// The VM that the story is about, and the VPG that protects it.
pub const VM: &str = "jp-ubuntu";
pub const VPG: &str = "jp-ubuntu";
/// A VM that no VPG protects.
pub const UNPROTECTED_VM: &str = "lonely";
/// The file that the agent breaks.
pub const FILE: &str = "/home/justin/app-config.yaml";

/// Everything that is removed at the end.
pub struct Stage {
    sim: Sim,
    folder: TempDir,
    config: PathBuf,
    file: PathBuf,
}

impl Stage {
    /// Starts the simulated ZVM on a free port and writes a configuration for it.
    pub async fn set() -> Result<Self, Stopped> {
        let mut folder = tempfile::Builder::new();
        folder.prefix("zerto-rewind-demo-");
        // A password and a key are in it.
        #[cfg(unix)]
        folder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = folder.tempdir()?;
        let sim = Sim::builder()
            .data_dir(folder.path().join("zvm"))
            .start()
            .await
            .map_err(|error| Stopped::at("the simulated ZVM did not start")(&error))?;
        let file = sim
            .guest_path(VM, FILE)
            .ok_or_else(|| Stopped::Broken(format!("the simulated VM {VM} has no {FILE}")))?;
        let config = folder.path().join("config.json");
        let credentials = sim.credentials();
        let content = json!({
            "zerto_url": sim.url(),
            "username": credentials.username,
            "password": credentials.password,
            "verify_tls": true,
            "ca_file": sim.ca_file(),
            "state_dir": folder.path().join("state"),
            "recover_dir": folder.path().join("recovered"),
        });
        fs::write(&config, format!("{content:#}\n"))?;
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

    /// The configuration file.
    pub fn config(&self) -> &Path {
        &self.config
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
            tracing::warn!(%error, "the demo's folder could not be removed");
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
    /// Stops the ZVM; the folder stays.
    pub async fn close(self) {
        self.sim.shutdown().await;
    }
}
