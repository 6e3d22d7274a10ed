//! Many who guard at once: every guard gets its tag, in the order of asking, and nobody who dies or stops blocks the others.
use std::{collections::HashSet, time::Duration};

use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::timeout};
use zvm_sim::{Scenario, Spread};

use crate::{
    programs::{Program, finish},
    stage::{Stage, VM},
    support::{PATIENCE, Run, World, signal, stdio::Server},
};

const MANY: usize = 16;
const GUARD: &str = "zerto_create_tagged_checkpoint";

/// Starts so many guards at once, and waits for all.
async fn at_once(world: &World, vms: impl Fn(usize) -> String) -> Vec<Value> {
    let mut guards = JoinSet::new();
    for nth in 0..MANY {
        let (vm, change) = (vms(nth), format!("nth-{nth}"));
        let mut command = world.command(&[
            "guard", &vm, "--action", "edit", "--change", &change, "--json",
        ]);
        guards.spawn(async move { finish(&mut command).await });
    }
    let ended: Vec<Run> = timeout(PATIENCE, guards.join_all())
        .await
        .expect("somebody waits for ever");
    let receipt = |run: &Run| {
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.json()
    };
    ended.iter().map(receipt).collect()
}

/// No two have one tag, and none was inserted twice.
fn each_has_its_own(receipts: &[Value]) {
    let tags: HashSet<&str> = receipts
        .iter()
        .map(|receipt| receipt["tag"].as_str().unwrap())
        .collect();
    assert_eq!(tags.len(), MANY);
    for pin in receipts
        .iter()
        .flat_map(|receipt| receipt["pins"].as_array().unwrap())
    {
        assert_eq!(pin["inserts"], 1, "{pin}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_guards_of_one_vpg_get_a_tag_each_in_the_order_of_asking() {
    let mut scenario = Scenario::fast();
    scenario.timings.auto_checkpoint = Duration::from_secs(5);
    scenario.vms.retain(|vm| vm.name == VM);
    scenario.vms[0].partitions.clear();
    scenario.vpgs.retain(|vpg| vpg.name == VM);
    let world = World::with(scenario).await;
    // All of them together take longer than one may wait for its listing: the time in the queue is not of it.
    world.configure(
        json!({ "guard": { "listed_timeout": "4s", "attempts": 1, "deadline": "55s" } }),
    );
    let receipts = at_once(&world, |_| VM.to_owned()).await;
    each_has_its_own(&receipts);
    assert_eq!(world.sim.journal(VM).len(), MANY);

    // Each asks for the lock right after it has written down what it intends.
    let database = Connection::open(world.path("state/state.db")).unwrap();
    let mut query = database
        .prepare(
            "SELECT (SELECT count(*) FROM guard_intent o WHERE o.id < i.id), (SELECT count(*) FROM insert_sent o WHERE o.id < s.id)
             FROM guard_intent i JOIN insert_sent s ON s.tag = i.tag",
        )
        .unwrap();
    let places = query
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    let places: Vec<(i64, i64)> = places.map(Result::unwrap).collect();
    assert_eq!(places.len(), MANY);
    let furthest = places
        .iter()
        .map(|(asked, served)| (asked - served).abs())
        .max();
    println!("asked and served: {places:?}");
    // Those who ask within the same milliseconds may change places.
    assert!(furthest <= Some(4), "{places:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_guards_of_sixteen_vpgs_do_not_wait_for_each_other() {
    let mut scenario = Scenario::fast().with_bulk_vms(MANY as u32);
    scenario.bulk.vms_per_vpg = 1;
    scenario.vms.clear();
    scenario.vpgs.clear();
    scenario.timings.listing_lag = Spread::fixed(Duration::from_secs(2));
    let world = World::with(scenario).await;
    let receipts = at_once(&world, |nth| format!("bulk-{:05}", nth + 1)).await;
    each_has_its_own(&receipts);
    // The first was listed after the last was inserted.
    let vpg = |nth: usize| {
        world
            .sim
            .journal(&format!("bulk-vpg-{:04}", nth + 1))
            .remove(0)
    };
    let listed = (0..MANY)
        .map(|nth| vpg(nth).listed_at.unwrap())
        .min()
        .unwrap();
    let inserted = (0..MANY).map(|nth| vpg(nth).time).max().unwrap();
    let overlap = listed.duration_since(inserted);
    println!("{overlap} between the last insert and the first listing");
    assert!(
        receipts
            .iter()
            .all(|receipt| receipt["pins"].as_array().unwrap().len() == 1)
    );
}

/// Servers that guard one VPG, in the order of their starts; the first one's tag is held back, so that the others stand in the queue.
struct Queue {
    stage: Stage,
    servers: Vec<(Server, u64)>,
}

impl Queue {
    async fn of(length: usize, deadline: &str) -> Self {
        let guard = json!({ "listed_timeout": deadline, "attempts": 1, "deadline": deadline });
        let stage = Stage::with(guard).await;
        stage
            .world
            .sim
            .update(|switches| switches.hold_listing = true);
        let mut queue = Self {
            stage,
            servers: Vec::new(),
        };
        for place in 0..length {
            queue.join(place).await;
        }
        queue
    }

    /// One more, once it says that it stands there.
    async fn join(&mut self, place: usize) {
        let mut server = Server::initialized(&self.stage.world.config(), "2025-11-25").await;
        let params = json!({
            "name": GUARD, "_meta": { "progressToken": place },
            "arguments": { "vm": VM, "action": "edit", "change_id": format!("place-{place}") },
        });
        let id = server.ask("tools/call", params).await;
        let wanted = match place {
            0 => "for the tag to be listed".to_owned(),
            _ => format!("number {place} in line"),
        };
        loop {
            let message = server.message().await;
            let said = message["params"]["message"].as_str();
            let said = said.unwrap_or_else(|| panic!("no progress: {message}"));
            // On both of its VPGs.
            if said.matches(&wanted).count() == 2 {
                break;
            }
        }
        self.servers.push((server, id));
    }

    fn signal(&self, place: usize, wanted: Signal) {
        signal(&self.servers[place].0.child, wanted);
    }

    async fn kill(&mut self, place: usize) {
        self.servers[place].0.child.kill().await.unwrap();
    }

    fn list(&self) {
        self.stage
            .world
            .sim
            .update(|switches| switches.hold_listing = false);
    }

    /// The answer to this one's guard.
    async fn answer(&mut self, place: usize) -> Value {
        let (server, id) = &mut self.servers[place];
        loop {
            let message = server.message().await;
            if message["id"] == *id {
                return message["result"].clone();
            }
        }
    }

    async fn is_pinned(&mut self, place: usize) {
        let answer = self.answer(place).await;
        assert_eq!(answer["isError"], false, "{place}: {answer}");
        self.stage.holds(&answer["structuredContent"]);
    }

    /// In which order they were served, by the time of their checkpoints.
    fn served(&self) -> Vec<String> {
        let mut journal = self.stage.world.sim.journal(VM);
        journal.sort_by_key(|entry| entry.time);
        let change = |tag: &str| {
            tag.split("| change=")
                .nth(1)
                .and_then(|rest| rest.split(" |").next())
                .map(str::to_owned)
        };
        let changes = journal.iter().filter_map(|entry| change(&entry.tag));
        changes
            .filter(|change| change.starts_with("place-"))
            .collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_wait_are_served_in_exactly_the_order_of_asking() {
    let mut queue = Queue::of(8, "55s").await;
    queue.list();
    for place in 0..8 {
        queue.is_pinned(place).await;
    }
    let expected: Vec<String> = (0..8).map(|place| format!("place-{place}")).collect();
    assert_eq!(queue.served(), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_holder_and_a_killed_waiter_block_nobody() {
    let mut queue = Queue::of(5, "55s").await;
    queue.kill(2).await;
    queue.kill(0).await;
    queue.list();
    for place in [1, 3, 4] {
        queue.is_pinned(place).await;
    }
    assert_eq!(queue.served(), ["place-0", "place-1", "place-3", "place-4"]);
    let stage = &queue.stage;
    stage.find().await;
    for (server, _) in &mut queue.servers {
        server.close_stdin();
        let _ = timeout(PATIENCE, server.child.wait())
            .await
            .expect("it does not end");
    }
    stage.find().await;
    stage.nothing_is_left();
    assert_eq!(stage.interrupted(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_waiter_is_passed_over() {
    let mut queue = Queue::of(4, "55s").await;
    queue.signal(1, Signal::STOP);
    queue.list();
    for place in [0, 2, 3] {
        queue.is_pinned(place).await;
    }
    queue.signal(1, Signal::CONT);
    queue.is_pinned(1).await;
    assert_eq!(queue.served(), ["place-0", "place-2", "place-3", "place-1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_holder_is_waited_for_until_the_deadline_and_named() {
    let mut queue = Queue::of(2, "10s").await;
    queue.signal(0, Signal::STOP);
    queue.list();
    let refused = queue.answer(1).await;
    let error = &refused["structuredContent"]["error"];
    assert_eq!(error["code"], "deadline_passed", "{refused}");
    let pid = queue.servers[0].0.child.id().unwrap().to_string();
    for text in [&error["message"], &error["next"]] {
        assert!(text.as_str().unwrap().contains(&pid), "{error}");
    }
    assert!(
        queue.stage.tags_of(VM, "place-1").is_empty(),
        "it was inserted"
    );
    // It goes on, long after its own deadline: the tag is listed, so the answer is a receipt.
    queue.signal(0, Signal::CONT);
    queue.is_pinned(0).await;
    let (receipt, _) = queue.stage.guard("afterwards").await;
    queue.stage.holds(&receipt);
}

#[tokio::test]
async fn who_guards_holds_no_lock_afterwards() {
    let stage = Stage::new().await;
    let mut running = Program::Guard.start(&stage, "once").await;
    assert!(running.end().await.right);
    stage.nothing_is_left();
}
