//! Several who guard one VPG without a lock between them: the ZVM drops what is inserted while another's tag is on its way.
use crate::support::{World, call, config, request};
use futures::future::join_all;
use rewind_core::{Error, GuardRequest, Receipt, Rewind};
use serde_json::json;
use std::{collections::HashSet, time::Duration};
use zvm_sim::{Scenario, Spread};

/// So long that waiting for it once would fail the test.
const LISTED_TIMEOUT: &str = "60s";

async fn slow_world() -> World {
    let mut scenario = Scenario::fast();
    scenario.vms.retain(|vm| vm.name == "jp-ubuntu");
    scenario.vms[0].partitions.clear();
    scenario.vpgs.retain(|vpg| vpg.name == "jp-ubuntu");
    scenario.timings.task = Spread::millis(20, 100);
    scenario.timings.listing_lag = Spread::millis(200, 500);
    World::of(scenario).await
}

/// A process of one of several hosts.
fn on_host(world: &World, host: usize) -> Rewind {
    let keys =
        json!({ "guard": { "listed_timeout": LISTED_TIMEOUT, "attempts": 1, "deadline": "60s" } });
    let state = format!("state-{host}");
    Rewind::new(config(&world.sim, world.folder(), &state, &keys)).unwrap()
}

async fn guard(rewind: Rewind, host: usize, nth: usize) -> Result<Receipt, Error> {
    let wanted = GuardRequest {
        change_id: Some(format!("host-{host}-{nth}")),
        ..request("jp-ubuntu")
    };
    rewind.guard(wanted, &call()).await
}

#[tokio::test]
async fn two_hosts_that_guard_one_vpg_get_a_tag_each_without_waiting_for_the_time_out() {
    let world = slow_world().await;
    let guards = (0..8).map(|nth| guard(on_host(&world, nth % 2), nth % 2, nth));
    let receipts = tokio::time::timeout(Duration::from_secs(50), join_all(guards));
    let receipts: Vec<Receipt> = receipts
        .await
        .expect("somebody waited for the time-out")
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let tags: HashSet<&String> = receipts.iter().map(|receipt| &receipt.tag).collect();
    assert_eq!(tags.len(), 8);
    let journal = world.tags("jp-ubuntu");
    for tag in tags {
        assert_eq!(journal.iter().filter(|listed| *listed == tag).count(), 1);
    }
    let inserts: u32 = receipts.iter().map(|receipt| receipt.pins[0].inserts).sum();
    assert!(inserts > 8, "nothing was dropped: this test shows nothing");
}

#[tokio::test]
async fn a_tag_of_others_that_was_listed_before_is_no_sign() {
    let world = slow_world().await;
    let tag = guard(on_host(&world, 1), 1, 0).await.unwrap().tag;
    let receipt = guard(on_host(&world, 2), 2, 0).await.unwrap();
    assert_ne!(receipt.tag, tag);
    assert_eq!(receipt.pins[0].inserts, 1);
}
