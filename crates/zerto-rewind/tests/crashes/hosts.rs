//! Two hosts without a lock between them: the ZVM drops what one inserts while the other's tag is on its way.
use std::collections::HashSet;

use serde_json::{Value, json};
use tokio::{task::JoinSet, time::timeout};
use zvm_sim::{Scenario, Spread};

use crate::{
    programs::finish,
    stage::VM,
    support::{PATIENCE, World, program},
};

const EACH: usize = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hosts_with_eight_guards_each_get_sixteen_tags() {
    let mut scenario = Scenario::fast();
    scenario.timings.auto_checkpoint = std::time::Duration::from_secs(5);
    scenario.vms.retain(|vm| vm.name == VM);
    scenario.vms[0].partitions.clear();
    scenario.vpgs.retain(|vpg| vpg.name == VM);
    scenario.timings.listing_lag = Spread::millis(100, 400);
    let world = World::with(scenario).await;
    let mut guards = JoinSet::new();
    for host in ["one", "two"] {
        // Waiting for it once would take longer than this test may.
        world.configure(json!({
            "state_dir": world.path(&format!("state-{host}")), "agent": format!("agent-{host}"),
            "guard": { "listed_timeout": "120s", "attempts": 1, "deadline": "120s" },
        }));
        let config = world.path(&format!("config-{host}.json"));
        std::fs::rename(world.config(), &config).unwrap();
        for nth in 0..EACH {
            let mut command = program(env!("CARGO_BIN_EXE_zerto-rewind"), &config);
            command.args(["guard", VM, "--action", "edit", "--change"]);
            command.args([&format!("{host}-{nth}"), "--json"]);
            guards.spawn(async move { finish(&mut command).await });
        }
    }
    let ended = timeout(PATIENCE, guards.join_all());
    let receipts: Vec<Value> = ended
        .await
        .expect("somebody waits for its time-out")
        .iter()
        .map(|run| {
            assert_eq!(run.code, 0, "{}", run.stderr);
            run.json()
        })
        .collect();
    let tags: HashSet<&str> = receipts
        .iter()
        .map(|receipt| receipt["tag"].as_str().unwrap())
        .collect();
    assert_eq!(tags.len(), 2 * EACH);
    let journal = world.sim.journal(VM);
    for tag in tags {
        let carrying = journal
            .iter()
            .filter(|entry| entry.tag == tag && entry.listed_at.is_some());
        assert_eq!(carrying.count(), 1, "{tag}");
    }
    let inserts: u64 = receipts
        .iter()
        .map(|receipt| receipt["pins"][0]["inserts"].as_u64().unwrap())
        .sum();
    println!("{inserts} inserts for {} tags", 2 * EACH);
    assert!(
        inserts > 2 * EACH as u64,
        "nothing was dropped: this test shows nothing"
    );
}
