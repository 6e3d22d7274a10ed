//! A catalog, and those who stand in a call's way.
use crate::support::{World, call};
use rewind_core::{
    Call, Error, Progress, ProgressUpdate, Rewind,
    enforce::{Enforcer, Guarded, ListedCall, ObservedCall, Verdict},
};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::{fs, sync::Arc, time::Duration};
use tokio::{sync::watch, time::timeout};
use zvm_sim::Scenario;

pub const CATALOG: &str = r#"
version = 1

[[guard]]
server = "vmware"
tool = "vm_delete*"
mode = "deny"

[[guard]]
server = "vmware"
tool = "vm_*"
vm = { arg = "/vm" }
action = "{{ tool }} {{ args.vm }}"
change = { arg = "/ticket" }
when = [{ arg = "/dry_run", not_equals = true }]

[[guard]]
server = "vmware"
tool = "quick_*"
vm = { arg = "/vm" }
action = "{{ tool }} {{ args.vm }}"
change = { arg = "/ticket" }
reuse = "10m"

[[guard]]
tool = "lenient"
vm = { arg = "/vm" }
action = "lenient"
unprotected = "pass"

[[guard]]
server = "builtin"
tool = "Bash"
vm = { arg = "/command", hosts = "hosts.toml" }
action = "{{ args.command }}"
"#;

const HOSTS: &str = "\"app01\" = \"app01\"\n\"ubuntu\" = \"jp-ubuntu\"\n";
/// Longer than anything here takes on a busy machine.
pub const LONG: Duration = Duration::from_secs(60);

pub async fn stage() -> World {
    of(Scenario::fast(), json!({})).await
}

pub async fn of(scenario: Scenario, mut keys: Value) -> World {
    keys["catalog"] = "catalog.toml".into();
    let world = World::with(scenario, keys).await;
    fs::write(world.folder().join("catalog.toml"), CATALOG).unwrap();
    fs::write(world.folder().join("hosts.toml"), HOSTS).unwrap();
    world
}

/// Another process of the same user.
pub fn beside(world: &World) -> Rewind {
    world.with_config(&json!({ "catalog": "catalog.toml" }))
}

/// A proxy, with a process of its own.
pub fn enforcer(world: &World) -> Enforcer {
    Enforcer::new(beside(world)).unwrap()
}

/// A hook, with a process of its own.
pub fn of_hook(world: &World) -> Enforcer {
    Enforcer::of_hook(beside(world)).unwrap()
}

pub fn observed<'a>(tool: &'a str, arguments: &'a Value) -> ObservedCall<'a> {
    ObservedCall {
        server: Some("vmware"),
        tool,
        arguments,
    }
}

pub fn listed(enforcer: &Enforcer, call: &ObservedCall<'_>) -> ListedCall {
    match enforcer.verdict(call) {
        Verdict::Listed(listed) => *listed,
        other => panic!("{other:?}"),
    }
}

pub fn refused(enforcer: &Enforcer, call: &ObservedCall<'_>) -> Error {
    match enforcer.verdict(call) {
        Verdict::Refused(error) => error,
        other => panic!("{other:?}"),
    }
}

pub fn is_unlisted(enforcer: &Enforcer, call: &ObservedCall<'_>) -> bool {
    matches!(enforcer.verdict(call), Verdict::Unlisted)
}

/// Guards `tool` on `vm` of the server `vmware`.
pub async fn guard(enforcer: &Enforcer, tool: &str, vm: &str) -> Result<Guarded, Error> {
    guard_with(enforcer, tool, json!({ "vm": vm }), &call()).await
}

pub async fn guard_with(
    enforcer: &Enforcer,
    tool: &str,
    arguments: Value,
    call: &Call,
) -> Result<Guarded, Error> {
    movable(enforcer.guard(listed(enforcer, &observed(tool, &arguments)), call)).await
}

/// A proxy guards calls in tasks of their own.
fn movable<F: Future + Send>(future: F) -> F {
    future
}

/// The checkpoint of the only pin.
pub fn checkpoint(guarded: &Guarded) -> &str {
    let [receipt] = guarded.receipts.as_slice() else {
        panic!("{guarded:?}")
    };
    let [pin] = receipt.pins.as_slice() else {
        panic!("{receipt:?}")
    };
    &pin.checkpoint
}

/// Tagged checkpoints that were asked for.
pub fn inserts(world: &World) -> usize {
    world.count("POST", "/checkpoints")
}

pub fn database(world: &World) -> Connection {
    Connection::open(world.folder().join("state/state.db")).unwrap()
}

/// The outcomes that were written down, in their order. Enforcers have to be dropped before.
pub fn outcomes(world: &World) -> Vec<String> {
    texts(world, "SELECT outcome FROM call_outcome ORDER BY call")
}

pub fn texts(world: &World, query: &str) -> Vec<String> {
    let database = database(world);
    let mut query = database.prepare(query).unwrap();
    let rows = query.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Hears what a waiting call says.
pub struct Heard(watch::Sender<Vec<String>>);

impl Heard {
    pub fn call() -> (Arc<Self>, Call) {
        let heard = Arc::new(Self(watch::Sender::new(Vec::new())));
        let call = Call {
            progress: Some(heard.clone()),
            ..call()
        };
        (heard, call)
    }

    pub async fn wait_for(&self, word: &str) {
        let mut said = self.0.subscribe();
        let heard = said.wait_for(|said| said.iter().any(|text| text.contains(word)));
        timeout(LONG, heard).await.unwrap().unwrap();
    }
}

impl Progress for Heard {
    fn update(&self, update: ProgressUpdate) {
        self.0.send_modify(|said| said.push(update.message));
    }
}

/// Awaits what no event tells of.
pub async fn until(mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LONG, waiting).await.unwrap();
}
