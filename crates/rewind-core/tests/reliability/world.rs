//! A simulated ZVM with one protected VM, what stands before it, and the processes that talk to it.
use crate::{
    clock::{Clock, Push},
    proxy::Proxy,
    row::Operation,
    step::{Request, Step},
};
use jiff::Timestamp;
use rewind_core::{
    Call, Destination, GuardRequest, Paths, RecoverRequest, Rewind,
    config::Config,
    state::{OpenSession, State},
    tag::{Tag, TagFields},
};
use serde_json::json;
use std::{cell::Cell, fs, path::PathBuf, time::Duration};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use zvm_sim::{
    Scenario, Sim,
    scenario::{Entry, Partition, PastTag, Timings, Vm, Vpg},
};

pub const VM: &str = "jp-ubuntu";
/// What is recovered.
const FILE: &str = "/srv/app/app.db";
/// How old the checkpoint is that is recovered from.
const AGE: Duration = Duration::from_secs(600);

pub struct World {
    pub sim: Sim,
    clock: Clock,
    pushing: Cell<Option<Push>>,
    /// Of the checkpoint that is recovered from.
    pub tag: String,
    proxy: Option<Proxy>,
    folder: TempDir,
}

impl World {
    pub async fn new(operation: Operation, proxied: bool, clock: Clock) -> Self {
        let tag = tag();
        let sim = Sim::start(scenario(operation, &tag)).await.unwrap();
        let proxy = proxied.then(|| Proxy::start(sim.url(), sim.ca_file(), clock.clone()));
        Self {
            sim,
            clock,
            pushing: Cell::new(None),
            tag,
            proxy,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn proxy(&self) -> &Proxy {
        self.proxy.as_ref().unwrap()
    }

    /// A process of the user.
    pub fn process(&self) -> Rewind {
        let access = self.sim.access();
        let config = json!({
            "zerto_url": self.proxy.as_ref().map_or(access.url, Proxy::url),
            "username": access.username,
            "password": access.password,
            "verify_tls": true,
            "ca_file": access.ca_file,
            "state_dir": self.folder.path().join("state"),
            "recover_dir": self.recover_dir(),
        });
        let file = self.folder.path().join("config.json");
        Rewind::new(Config::parse(&config.to_string(), &file).unwrap()).unwrap()
    }

    /// Faults are over.
    pub fn heal(&self) {
        self.sim.clear_faults();
        self.sim.update(|switches| *switches = Default::default());
        self.pushing.take();
        if let Some(proxy) = &self.proxy {
            proxy.heal();
        }
    }

    /// How many requests were sent that the ZVM has, or may have, carried out.
    pub fn sent(&self, request: Request) -> usize {
        let may_have = |status: Option<u16>| status.is_none_or(|status| status / 100 != 4);
        let arrived = self
            .sim
            .requests()
            .into_iter()
            .filter(|seen| request.is(&seen.method, &seen.path) && may_have(seen.status));
        let lost = self.proxy.as_ref().map_or(0, |proxy| proxy.lost(request));
        arrived.count() + lost
    }

    /// Waits until this step's request is about to come.
    pub async fn before(&self, step: Step) {
        let Some((request, nth)) = step.after else {
            return;
        };
        let answered = |view: &zvm_sim::View<'_>| {
            let answered = view
                .requests()
                .filter(|seen| seen.status.is_some() && request.is(&seen.method, &seen.path));
            answered.count() >= nth
        };
        self.sim.wait_for(answered).await;
    }

    pub fn recover_dir(&self) -> PathBuf {
        self.folder.path().join("recovered")
    }

    /// The clock goes on even while a blocking task runs, until the fault is over.
    pub fn push_clock(&self) {
        self.pushing.set(Some(self.clock.push()));
    }

    /// Every file below the recovery folder.
    pub fn recovered(&self) -> Vec<PathBuf> {
        let (mut files, mut folders) = (Vec::new(), vec![self.recover_dir()]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    files.push(path);
                }
            }
        }
        files
    }

    /// What the file is in the guest.
    pub fn original(&self) -> Vec<u8> {
        fs::read(self.sim.guest_path(VM, FILE).unwrap()).unwrap()
    }

    /// What the state knows to be open.
    pub fn known_open(&self, zvm: &str) -> Vec<OpenSession> {
        let state = State::open(self.folder.path().join("state")).unwrap();
        state.open_sessions(zvm).unwrap()
    }
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

pub fn guard(change: &str) -> GuardRequest {
    GuardRequest {
        vm: VM.into(),
        action: "edit /srv/app/app.db".into(),
        agent: Some("claude".into()),
        change_id: Some(change.into()),
    }
}

pub fn recovery(tag: &str) -> RecoverRequest {
    RecoverRequest {
        vm: VM.into(),
        paths: Paths::One(FILE.into()),
        checkpoint: tag.into(),
        vpg: None,
        destination: Destination::InRecoverDir(None),
        restore: None,
    }
}

/// As a guard ten minutes ago would have written it.
fn tag() -> String {
    let fields = TagFields {
        agent: "claude",
        action: "edit /srv/app/app.db",
        vm: VM,
        change: "earlier",
        at: Timestamp::now() - AGE,
    };
    Tag::build(&fields).unwrap().to_string()
}

fn scenario(operation: Operation, tag: &str) -> Scenario {
    // Only a recovery needs a disk.
    let partitions = match operation {
        Operation::Guard => Vec::new(),
        Operation::Recovery => vec![Partition {
            size_mib: 64,
            files: vec![
                Entry::text("/etc/hostname", VM),
                Entry {
                    path: FILE.to_owned(),
                    bytes: Some(64 * 1024),
                    ..Entry::default()
                },
            ],
            ..Partition::default()
        }],
    };
    let fast = Scenario::fast();
    Scenario {
        vms: vec![Vm {
            name: VM.to_owned(),
            partitions,
            ..Vm::default()
        }],
        vpgs: vec![Vpg {
            tagged: vec![PastTag {
                tag: tag.to_owned(),
                age: AGE,
            }],
            ..Vpg::of(VM, &[VM])
        }],
        timings: Timings {
            auto_checkpoint: Duration::from_secs(3600),
            mount: zvm_sim::Spread::millis(0, 0),
            ..fast.timings
        },
        ..fast
    }
}
