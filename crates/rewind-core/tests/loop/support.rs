//! A simulated ZVM, and the programs that talk to it.
use jiff::{SignedDuration, Timestamp};
use rewind_core::{
    Call, Clock, Destination, Error, GuardRequest, How, KnownPlan, Paths, Patience, Progress,
    ProgressUpdate, Receipt, RecoverRequest, RecoveredFile, Recovery, Rewind, StillOpen, Timing,
    Verdict, config::Config,
};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use zvm_sim::{Scenario, Sim};

pub struct World {
    pub sim: Sim,
    pub rewind: Rewind,
    folder: TempDir,
}

impl World {
    pub async fn new() -> Self {
        Self::of(Scenario::fast()).await
    }

    pub async fn of(scenario: Scenario) -> Self {
        Self::with(scenario, json!({})).await
    }

    /// With further keys in the configuration.
    pub async fn with(scenario: Scenario, keys: Value) -> Self {
        let sim = Sim::start(scenario).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let rewind = open(&sim, folder.path(), "state", &keys);
        Self {
            sim,
            rewind,
            folder,
        }
    }

    /// Another process of the same user.
    pub fn beside(&self) -> Rewind {
        open(&self.sim, self.folder.path(), "state", &json!({}))
    }

    /// A process of another user or host.
    pub fn elsewhere(&self) -> Rewind {
        open(&self.sim, self.folder.path(), "other-state", &json!({}))
    }

    /// Another process of the same user, by this clock, with further keys in the configuration.
    pub fn by(&self, clock: &Arc<Hand>, keys: &Value) -> Rewind {
        let config = config(&self.sim, self.folder.path(), "state", keys);
        Rewind::with_clock(config, PATIENCE, clock.clone()).unwrap()
    }

    pub fn with_config(&self, keys: &Value) -> Rewind {
        open(&self.sim, self.folder.path(), "state", keys)
    }

    /// A process of the same user whose host takes another time for now.
    pub fn with_clock(&self, clock: Arc<dyn Clock>) -> Rewind {
        let config = config(&self.sim, self.folder.path(), "state", &json!({}));
        Rewind::with_clock(config, PATIENCE, clock).unwrap()
    }

    /// Sets the ZVM's clock, to this much ahead of the host's.
    pub fn set_zvm_clock(&self, ahead: SignedDuration) {
        let ahead = i64::try_from(ahead.as_millis()).unwrap();
        self.sim.update(|switches| switches.clock_offset_ms = ahead);
    }

    pub fn zvm_now(&self) -> Timestamp {
        let mut ahead = 0;
        self.sim.update(|switches| ahead = switches.clock_offset_ms);
        Timestamp::now() + SignedDuration::from_millis(ahead)
    }

    /// What the state of this user says to a question with one number as its answer.
    pub fn state(&self, question: &str) -> i64 {
        let file = self.folder.path().join("state/state.db");
        let database = rusqlite::Connection::open(file).unwrap();
        database.query_row(question, [], |row| row.get(0)).unwrap()
    }

    pub fn recover_dir(&self) -> PathBuf {
        self.folder.path().join("recovered")
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub async fn guard(&self, vm: &str) -> Result<Receipt, Error> {
        self.rewind.guard(request(vm), &call()).await
    }

    /// The listed tags of a VPG.
    pub fn tags(&self, vpg: &str) -> Vec<String> {
        self.sim
            .journal(vpg)
            .into_iter()
            .filter(|entry| entry.listed_at.is_some())
            .map(|entry| entry.tag)
            .collect()
    }

    /// Checkpoints that the ZVM was asked to mount.
    pub fn mounts(&self) -> usize {
        self.count("POST", "/v1/flrs") - self.count("POST", "/v1/flrs/")
    }

    /// Requests with this method whose path contains this.
    pub fn count(&self, method: &str, path_part: &str) -> usize {
        self.sim
            .requests()
            .iter()
            .filter(|request| request.is(method, path_part))
            .count()
    }
}

const PATIENCE: Patience = Patience {
    mount: Duration::from_secs(2),
    appear: Duration::from_secs(1),
    unmount: Duration::from_secs(2),
};

pub fn config(sim: &Sim, folder: &Path, state: &str, keys: &Value) -> Config {
    let text = config_text(sim, folder, state, keys);
    Config::parse(&text, &folder.join("config.json")).unwrap()
}

/// As it stands in the file.
pub fn config_text(sim: &Sim, folder: &Path, state: &str, keys: &Value) -> String {
    let access = sim.access();
    let mut config = json!({
        "zerto_url": access.url,
        "username": access.username,
        "password": access.password,
        "verify_tls": true,
        "ca_file": access.ca_file,
        "state_dir": folder.join(state),
        "recover_dir": folder.join("recovered"),
        "guard": { "listed_timeout": "2s", "attempts": 3, "deadline": "30s" },
    });
    for (key, value) in keys.as_object().unwrap() {
        config[key] = value.clone();
    }
    config.to_string()
}

fn open(sim: &Sim, folder: &Path, state: &str, keys: &Value) -> Rewind {
    Rewind::with_patience(config(sim, folder, state, keys), PATIENCE).unwrap()
}

pub fn call() -> Call {
    Call {
        progress: None,
        cancel: CancellationToken::new(),
        caller: "test-client".into(),
        session_change_id: "session-1".into(),
        seat: "session-1".into(),
    }
}

pub fn request(vm: &str) -> GuardRequest {
    GuardRequest {
        vm: vm.into(),
        action: "edit /home/justin/app-config.yaml".into(),
        agent: Some("claude".into()),
        change_id: Some("chg-412".into()),
    }
}

/// What was reported while a call waited.
#[derive(Default)]
pub struct Heard(pub Mutex<Vec<ProgressUpdate>>);

impl Progress for Heard {
    fn update(&self, update: ProgressUpdate) {
        self.0.lock().unwrap().push(update);
    }
}

impl Heard {
    pub fn call() -> (Arc<Self>, Call) {
        let heard = Arc::new(Self::default());
        let call = Call {
            progress: Some(heard.clone()),
            ..call()
        };
        (heard, call)
    }

    pub fn messages(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap()
            .iter()
            .map(|update| update.message.clone())
            .collect()
    }
}

/// Of one path, to the default destination.
pub fn recovery(vm: &str, path: &str, checkpoint: &str) -> RecoverRequest {
    RecoverRequest {
        vm: vm.into(),
        paths: Paths::One(path.into()),
        checkpoint: checkpoint.into(),
        vpg: None,
        destination: Destination::InRecoverDir(None),
        restore: None,
    }
}

/// One path that was recovered.
#[derive(Debug)]
pub struct Recovered {
    pub checkpoint: String,
    pub tag: Option<String>,
    pub guest_path: String,
    pub is_folder: bool,
    pub local_path: String,
    pub bytes: u64,
    pub files: Vec<RecoveredFile>,
    pub skipped: Vec<String>,
    pub still_open: Option<StillOpen>,
    pub timing: Timing,
}

/// Plans a recovery of one path, agrees to it, and carries it out.
pub async fn recovered(
    rewind: &Rewind,
    request: RecoverRequest,
    call: &Call,
) -> Result<Recovered, Error> {
    let recovery = agreed(rewind, &request, call).await?;
    let one = recovery.one.unwrap();
    // What was left out is no success.
    assert_eq!(recovery.error.is_none(), one.skipped.is_empty());
    assert!(recovery.paths.is_empty());
    Ok(Recovered {
        checkpoint: recovery.checkpoint,
        tag: recovery.tag,
        guest_path: one.guest_path.unwrap(),
        is_folder: one.is_folder,
        local_path: one.local_path.unwrap(),
        bytes: one.bytes,
        files: one.files,
        skipped: one.skipped,
        still_open: recovery.still_open,
        timing: recovery.timing,
    })
}

/// Plans a recovery, agrees to it, and carries it out.
pub async fn agreed(
    rewind: &Rewind,
    request: &RecoverRequest,
    call: &Call,
) -> Result<Recovery, Error> {
    let known = rewind.plan_recovery(request, call).await?;
    approve(rewind, &known).await?;
    rewind.recover(&known.plan.id, call).await
}

pub async fn approve(rewind: &Rewind, known: &KnownPlan) -> Result<(), Error> {
    let decided = rewind.decide(known, Verdict::Approved, How::Terminal, "cli/test");
    decided.await.map(|_| ())
}

/// A clock that is set by hand.
#[derive(Debug)]
pub struct Hand(Mutex<Timestamp>);

impl Hand {
    pub fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Timestamp::now())))
    }

    pub fn forward(&self, by: SignedDuration) {
        *self.0.lock().unwrap() += by;
    }
}

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}
