//! The client against the simulated ZVM, over real TLS, in everything that differs between ZVMs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod answers;
mod journal;
mod realm;
mod restore;

use std::{sync::Arc, time::Duration};

use url::Url;
use zvm_client::{Credentials, NoLoginGate, Task, TaskState, Timeouts, TlsTrust, Zvm, ZvmConfig};
use zvm_sim::{Scenario, Sim};

/// The default scenario at a test's pace.
async fn sim() -> Sim {
    Sim::start(Scenario::fast()).await.unwrap()
}

/// The same without guest disks, which take the longest to make.
async fn sim_without_disks() -> Sim {
    Sim::start(without_disks(Scenario::fast())).await.unwrap()
}

fn without_disks(mut scenario: Scenario) -> Scenario {
    scenario.vms.iter_mut().for_each(|vm| vm.partitions.clear());
    scenario
}

fn config(sim: &Sim) -> ZvmConfig {
    let credentials = sim.credentials();
    ZvmConfig {
        url: Url::parse(sim.url()).unwrap(),
        credentials: Credentials::Password {
            username: credentials.username.clone(),
            password: credentials.password.clone().into(),
        },
        tls: TlsTrust::CaFile(sim.ca_file().to_owned()),
        judge: None,
        timeouts: Timeouts::default(),
    }
}

fn zvm(sim: &Sim) -> Zvm {
    Zvm::new(config(sim), Arc::new(NoLoginGate)).unwrap()
}

/// Asks every few milliseconds until there is an answer; the simulator makes every one come.
async fn until<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), asking)
        .await
        .expect("it never came")
}

/// The task, once it has ended.
async fn ended(zvm: &Zvm, id: &str) -> Task {
    until(async || {
        let task = zvm.task(id).await.unwrap();
        task.filter(|task| task.state != TaskState::Running)
    })
    .await
}
