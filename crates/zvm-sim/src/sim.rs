//! Starting, steering and stopping a simulated ZVM.

mod builder;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use serde::Serialize;
use tokio::task::JoinSet;

pub use self::builder::SimBuilder;
use crate::app::{App, Wanted};
use crate::faults::Fault;
use crate::guest::GuestError;
use crate::held::{HeldRequest, LetGo};
use crate::record::RequestRecord;
use crate::scenario::{Credentials, Scenario, ScenarioError};
use crate::switches::Switches;
use crate::tls::{self, TlsError};
use crate::view::{self, FlrSession, JournalEntry, View};

/// A simulated ZVM could not be started or steered.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The scenario can't be played.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A guest can't be made.
    #[error(transparent)]
    Guest(#[from] GuestError),
    /// The certificate.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The data folder can't be used.
    #[error("data folder {path}: {source}", path = path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The address can't be listened on.
    #[error("can't listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The runtime stopped while it started.
    #[error("the start was given up: {0}")]
    GivenUp(#[from] tokio::task::JoinError),
    /// There is no such VPG.
    #[error("there is no VPG \"{0}\"")]
    NoVpg(String),
    /// An FLR session could not be opened.
    #[error("no FLR session: {0}")]
    NotMounted(String),
    /// A checkpoint could not be taken.
    #[error("no checkpoint of VPG \"{vpg}\": {reason}")]
    NoCheckpoint {
        /// The VPG.
        vpg: String,
        /// Why.
        reason: String,
    },
}

/// A running simulated ZVM. It stops, and its temporary folder is removed, when this is dropped.
pub struct Sim {
    app: Arc<App>,
    identity: Published,
    credentials: Credentials,
    handle: Handle<SocketAddr>,
    tls: RustlsConfig,
    data: PathBuf,
    address: SocketAddr,
    /// The server and what runs by itself; aborted when dropped.
    jobs: JoinSet<()>,
}

struct Published {
    ca_file: PathBuf,
    fingerprint: String,
}

/// What a client needs to know of a simulator: the line that `zvm-sim serve` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Access {
    /// `https://host:port`.
    pub url: String,
    /// The certificate, in PEM.
    pub ca_file: PathBuf,
    /// SHA-256 of the certificate's DER, in small hexadecimal letters.
    pub fingerprint_sha256: String,
    /// The user.
    pub username: String,
    /// The user's password.
    pub password: String,
    /// The confidential client.
    pub client_id: String,
    /// Its secret.
    pub client_secret: String,
    /// Where the guests' folders are: `<guests_dir>/<vm>/<partition>/…`.
    pub guests_dir: PathBuf,
}

impl Sim {
    /// Starts a simulated ZVM on a free port of 127.0.0.1 with a temporary folder of its own.
    ///
    /// # Errors
    /// See [`SimError`].
    pub async fn start(scenario: Scenario) -> Result<Self, SimError> {
        Self::builder().scenario(scenario).start().await
    }

    /// For more choices.
    pub fn builder() -> SimBuilder {
        SimBuilder::default()
    }

    /// `https://host:port`, without a slash at the end.
    pub fn url(&self) -> &str {
        &self.app.url
    }

    /// The file with the certificate, in PEM. It is self-signed, so it is its own authority.
    pub fn ca_file(&self) -> &Path {
        &self.identity.ca_file
    }

    /// SHA-256 of the certificate's DER, in small hexadecimal letters.
    pub fn fingerprint(&self) -> &str {
        &self.identity.fingerprint
    }

    /// Who can log in.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Where the guests' folders are: `<guests_dir>/<vm>/<partition>/…`.
    pub fn guests_dir(&self) -> &Path {
        &self.app.guests_dir
    }

    /// Everything that a client needs.
    pub fn access(&self) -> Access {
        Access {
            url: self.url().to_owned(),
            ca_file: self.ca_file().to_owned(),
            fingerprint_sha256: self.fingerprint().to_owned(),
            username: self.credentials.username.clone(),
            password: self.credentials.password.clone(),
            client_id: self.credentials.client_id.clone(),
            client_secret: self.credentials.client_secret.clone(),
            guests_dir: self.guests_dir().to_owned(),
        }
    }

    /// Where a path of a guest is on the host: `guest_path("app01", "/home/justin/notes.txt")`. The VM is named by
    /// its key. Nothing if it has no guest disk, or no partition that leads to the path.
    pub fn guest_path(&self, vm: &str, path: &str) -> Option<PathBuf> {
        let index = self
            .app
            .inventory
            .vms
            .iter()
            .position(|own| own.key == vm)?;
        self.app.guests.get(index)?.host_path(path)
    }

    /// The identifier of a VM, by its key.
    pub fn vm_id(&self, vm: &str) -> Option<&str> {
        let mut vms = self.app.inventory.vms.iter();
        vms.find(|own| own.key == vm).map(|own| own.id.as_str())
    }

    /// The identifier of a VPG, by its name.
    pub fn vpg_id(&self, vpg: &str) -> Option<&str> {
        self.app
            .inventory
            .vpg_by_name(vpg)
            .map(|(_, own)| own.id.as_str())
    }

    /// Changes the switches; what is asked next meets them.
    pub fn update(&self, change: impl FnOnce(&mut Switches)) {
        self.app.change_switches(change);
    }

    /// Adds a fault.
    pub fn add_fault(&self, fault: Fault) {
        self.app.world().faults.add(fault);
    }

    /// Removes all faults.
    pub fn clear_faults(&self) {
        self.app.world().faults.clear();
    }

    /// The requests that are held by a fault.
    pub fn held(&self) -> Vec<HeldRequest> {
        self.app.world().held.iter().cloned().collect()
    }

    /// Lets the requests that are held go on.
    pub fn let_go(&self) {
        self.app.world().held.let_go(LetGo::On);
        self.app.tell();
    }

    /// Cuts the connections of the requests that are held. What was not carried out never is.
    pub fn cut_held(&self) {
        self.app.world().held.let_go(LetGo::Cut);
        self.app.tell();
    }

    /// The requests that were seen, oldest first; those to `/sim/…` are not among them.
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.app.world().requests.iter().cloned().collect()
    }

    /// Forgets the requests that were seen.
    pub fn clear_requests(&self) {
        self.app.world().requests.clear();
    }

    /// Waits until this holds. It is looked at now and after every change, with the world standing still; there is no time limit.
    /// The closure must not use the [`Sim`] itself, only its view.
    pub async fn wait_for(&self, mut holds: impl FnMut(&View<'_>) -> bool) {
        let app = &self.app;
        app.wait_until(|world| holds(&View::new(app, world))).await;
    }

    /// The tagged checkpoints of a VPG (by name or identifier), oldest first, listed or not yet.
    pub fn journal(&self, vpg: &str) -> Vec<JournalEntry> {
        view::journal(&self.app, vpg).unwrap_or_default()
    }

    /// The FLR sessions.
    pub fn flr_sessions(&self) -> Vec<FlrSession> {
        view::sessions(&self.app, &self.app.world())
    }

    /// Opens an FLR session, as a person does in the ZVM's own interface, and answers with its identifier. The VM is named by its key,
    /// the VPG by its name or identifier.
    ///
    /// # Errors
    /// There is no such VM, VPG or checkpoint, or the VM can't be mounted now.
    pub async fn mount(&self, vm: &str, vpg: &str, checkpoint: &str) -> Result<String, SimError> {
        let refused = |reason: &str| SimError::NotMounted(reason.to_owned());
        let inventory = &self.app.inventory;
        let (vpg, _) = inventory
            .vpg_by_name(vpg)
            .ok_or_else(|| SimError::NoVpg(vpg.to_owned()))?;
        let wanted = Wanted {
            vm: inventory
                .vms
                .iter()
                .position(|own| own.key == vm)
                .ok_or_else(|| refused("there is no such VM"))?,
            vpg,
            checkpoint: checkpoint
                .parse()
                .map_err(|_| refused("this is no checkpoint's identifier"))?,
        };
        self.app
            .mount(wanted, "somebody")
            .await
            .map_err(|error| refused(&error.to_string()))
    }

    /// Makes every token and login session invalid.
    pub fn revoke_tokens(&self) {
        self.app.world().realm.revoke_all();
    }

    /// Forgets refused logins and their locks.
    pub fn unlock(&self) {
        self.app.world().realm.unlock_all();
    }

    /// Other credentials count from now on.
    pub fn set_credentials(&mut self, credentials: Credentials) {
        self.app.world().realm.set_credentials(credentials.clone());
        self.credentials = credentials;
    }

    /// As after a restart of the ZVM: tasks, FLR sessions and tokens are forgotten; journals and disks are not.
    pub fn restart(&self) {
        self.app.world().restart();
        self.app.tell();
    }

    /// Gives the ZVM a new certificate, for new connections, and answers with its fingerprint.
    ///
    /// # Errors
    /// The certificate can't be made or written.
    pub fn renew_certificate(&mut self) -> Result<&str, SimError> {
        let identity = tls::renew(&self.data, self.address.ip())?;
        self.tls.reload_from_config(identity.config);
        self.identity.fingerprint = identity.fingerprint;
        Ok(&self.identity.fingerprint)
    }

    /// Takes an automatic checkpoint of a VPG (by name or identifier) now, whatever its state, and answers with its identifier.
    ///
    /// # Errors
    /// There is no such VPG, or a guest's disk could not be written.
    pub async fn checkpoint_now(&self, vpg: &str) -> Result<String, SimError> {
        let (index, _) = self
            .app
            .inventory
            .vpg_by_name(vpg)
            .ok_or_else(|| SimError::NoVpg(vpg.to_owned()))?;
        let failed = |reason: String| SimError::NoCheckpoint {
            vpg: vpg.to_owned(),
            reason,
        };
        self.app
            .checkpoint(index, None, |_, _, id, _| id.to_string())
            .await
            .map_err(|error| failed(error.to_string()))?
            .ok_or_else(|| failed("it has no journal".to_owned()))
    }

    /// Stops it, and waits until every connection is closed and the temporary folder is removed.
    pub async fn shutdown(mut self) {
        self.handle.shutdown();
        self.end_held();
        self.jobs.shutdown().await;
        self.app.work.close();
        self.app.work.wait().await;
    }
}

impl Sim {
    fn end_held(&self) {
        self.app.world().held.end();
        self.app.tell();
    }
}

impl std::fmt::Debug for Sim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sim")
            .field("url", &self.app.url)
            .finish_non_exhaustive()
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        self.handle.shutdown();
        self.end_held();
    }
}
