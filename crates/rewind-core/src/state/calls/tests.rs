use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::{
    enforce::Outcome,
    state::{GuardRecord, PinRecord, arguments_digest},
};

const ZVM: &str = "zvm:443";
const MINUTE: Duration = Duration::from_secs(60);

/// Processes of one user: each has a state of its own in the one folder.
struct Host {
    dir: TempDir,
}

impl Host {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn process(&self, observer: &str) -> Process {
        Process {
            state: State::new(self.dir.path().join("state")),
            observer: observer.to_owned(),
        }
    }
}

struct Process {
    state: State,
    observer: String,
}

fn new_call(observer: &str) -> NewCall {
    NewCall {
        zvm: ZVM.into(),
        observer: observer.into(),
        seen_by: match observer {
            "proxy" => SeenBy::Proxy,
            _ => SeenBy::Hook,
        },
        correlation: Some("toolu".into()),
        call: ToolCall {
            server: Some("vmware".into()),
            tool: "vm_delete".into(),
            arguments_digest: arguments_digest(&json!({"vm": "app01"})),
        },
        agent: observer.into(),
        change: "chg".into(),
    }
}

fn wanted(reuse: Option<Duration>) -> Wanted {
    Wanted {
        vm_identifier: "VM-1".into(),
        reuse,
        patience: 5 * MINUTE,
        not: vec![],
    }
}

fn later(by: Duration) -> Timestamp {
    Timestamp::now() + SignedDuration::try_from(by).unwrap()
}

impl Process {
    fn begins(&self) -> CallId {
        self.state.call_begun(&new_call(&self.observer)).unwrap()
    }

    fn claims(&self, call: CallId) -> Claim {
        self.state.claim(call, &wanted(None)).unwrap()
    }

    fn claims_at(&self, call: CallId, now: Timestamp) -> Claim {
        self.state.claim_at(call, &wanted(None), || now).unwrap()
    }

    fn records(&self, agent: &str) -> i64 {
        let now = Timestamp::now();
        let record = GuardRecord {
            zvm: ZVM.into(),
            agent: agent.into(),
            client: None,
            change: "chg".into(),
            vm_identifier: "vm-1".into(),
            vm_name: "app01".into(),
            tag: "tag".into(),
            call: None,
            started: now,
            ended: now,
            pins: vec![PinRecord {
                vpg_identifier: "vpg".into(),
                vpg_name: "VPG".into(),
                checkpoint_id: "7".into(),
                checkpoint_at: Timestamp::UNIX_EPOCH,
            }],
            failure: None,
        };
        self.state.record_guard(&record).unwrap()
    }

    /// Sees the call and pins for it.
    fn guards(&self) -> (CallId, i64) {
        let call = self.begins();
        let Claim::Pin(claim) = self.claims(call) else {
            panic!("somebody else guards it")
        };
        let guard = self.records(&self.observer);
        self.state.claim_ended(claim, Some(guard)).unwrap();
        (call, guard)
    }
}

fn used(claim: &Claim) -> Option<i64> {
    match claim {
        Claim::Use(_, guard) => Some(guard.id),
        _ => None,
    }
}

fn pins(claim: &Claim) -> bool {
    matches!(claim, Claim::Pin(_))
}

#[test]
fn the_second_one_uses_the_first_ones_guard() {
    let host = Host::new();
    let (hook, proxy) = (host.process("hook"), host.process("proxy"));
    let (_, guard) = hook.guards();
    let call = proxy.begins();
    let Claim::Use(_, earlier) = proxy.claims(call) else {
        panic!()
    };
    assert_eq!(earlier.id, guard);
    assert_eq!(earlier.pins[0].checkpoint_id, "7");
    // What the same one sees again is another call.
    assert!(pins(&proxy.claims(proxy.begins())));
    // And it is the other one's second call, which waits for that guard.
    assert!(matches!(hook.claims(hook.begins()), Claim::Wait));
}

#[test]
fn calls_that_differ_do_not_share() {
    let host = Host::new();
    host.process("hook").guards();
    let proxy = host.process("proxy");
    let differ: [fn(&mut NewCall); 4] = [
        |call| call.zvm = "other:443".into(),
        |call| call.call.server = Some("proxmox".into()),
        |call| call.call.tool = "vm_stop".into(),
        |call| call.call.arguments_digest = arguments_digest(&json!({"vm": "app02"})),
    ];
    for differ in differ {
        let mut call = new_call("proxy");
        differ(&mut call);
        let call_id = proxy.state.call_begun(&call).unwrap();
        assert!(pins(&proxy.claims(call_id)), "{call:?}");
    }
    let other_vm = Wanted {
        vm_identifier: "vm-2".into(),
        ..wanted(None)
    };
    let claim = proxy.state.claim(proxy.begins(), &other_vm).unwrap();
    assert!(pins(&claim));
    // The server's name counts where both know it, and its punctuation does not.
    for server in [None, Some("VMware")] {
        let proxy = host.process("another");
        let mut call = new_call("another");
        call.call.server = server.map(str::to_owned);
        call.observer = format!("{server:?}");
        let call = proxy.state.call_begun(&call).unwrap();
        assert!(used(&proxy.claims(call)).is_some(), "{server:?}");
    }
    assert!(same_name("My Server", "my_server") && !same_name("my", "my_server"));
}

#[test]
fn an_outcome_or_two_minutes_end_the_sharing() {
    let host = Host::new();
    let (hook, proxy) = (host.process("hook"), host.process("proxy"));
    let (call, _) = hook.guards();
    let late = proxy.begins();
    assert!(used(&proxy.claims_at(late, later(MINUTE))).is_some());
    let host = Host::new();
    let (hook, proxy) = (host.process("hook"), host.process("proxy"));
    let (_, _) = hook.guards();
    assert!(pins(&proxy.claims_at(proxy.begins(), later(3 * MINUTE))));
    // The clock was set back: nothing is known.
    let early = Timestamp::now() - SignedDuration::from_mins(10);
    assert!(pins(
        &host
            .process("x")
            .claims_at(host.process("x").begins(), early)
    ));
    let _ = call;

    let host = Host::new();
    let (hook, proxy) = (host.process("hook"), host.process("proxy"));
    let (call, _) = hook.guards();
    hook.state.call_ended(call, Outcome::Ok).unwrap();
    assert!(pins(&proxy.claims(proxy.begins())));

    // So does the outcome of the other one.
    let host = Host::new();
    let (hook, proxy) = (host.process("hook"), host.process("proxy"));
    hook.guards();
    let call = proxy.begins();
    assert!(used(&proxy.claims(call)).is_some());
    proxy.state.call_ended(call, Outcome::IsError).unwrap();
    assert!(pins(
        &host
            .process("next hook")
            .claims(host.process("next hook").begins())
    ));
}

#[test]
fn a_guard_on_its_way_is_waited_for_while_its_owner_lives() {
    let host = Host::new();
    let (hook, proxy) = (host.process("hook"), host.process("proxy"));
    let Claim::Pin(claim) = hook.claims(hook.begins()) else {
        panic!()
    };
    let call = proxy.begins();
    assert!(matches!(proxy.claims(call), Claim::Wait));
    // Beyond the time that a guard may take, it is not.
    let slow = host.process("slow");
    assert!(pins(&slow.claims_at(slow.begins(), later(6 * MINUTE))));
    // It failed.
    hook.state.claim_ended(claim, None).unwrap();
    assert!(pins(&proxy.claims(call)));

    let host = Host::new();
    let (hook, proxy) = (host.process("hook"), host.process("proxy"));
    assert!(pins(&hook.claims(hook.begins())));
    let call = proxy.begins();
    assert!(matches!(proxy.claims(call), Claim::Wait));
    // It died.
    drop(hook);
    assert!(pins(&proxy.claims(call)));

    // It gave up without a word about its claims.
    let host = Host::new();
    let (hook, proxy) = (host.process("hook"), host.process("proxy"));
    let given_up = hook.begins();
    assert!(pins(&hook.claims(given_up)));
    hook.state
        .call_ended(given_up, Outcome::NotForwarded)
        .unwrap();
    assert!(pins(&proxy.claims(proxy.begins())));
}

#[test]
fn two_equal_calls_take_two_guards_in_their_order() {
    let host = Host::new();
    let proxy = host.process("proxy");
    let first = host.process("hook 1").guards().1;
    // The second hook takes the first call for its own: they cannot be told apart.
    let second = host.process("hook 2");
    assert_eq!(used(&second.claims(second.begins())), Some(first));
    assert_eq!(used(&proxy.claims(proxy.begins())), Some(first));
    assert!(pins(&proxy.claims(proxy.begins())));
}

#[test]
fn a_guard_is_reused_by_the_same_agent_vm_and_change() {
    let host = Host::new();
    let proxy = host.process("claude");
    let guard = proxy.records("claude");
    let reuse = |process: &Process, call: &NewCall, wanted: &Wanted, now| {
        let call = process.state.call_begun(call).unwrap();
        used(&process.state.claim_at(call, wanted, || now).unwrap())
    };
    let now = Timestamp::now();
    let ten = wanted(Some(10 * MINUTE));
    let mut call = new_call("claude");
    call.call.tool = "another".into();
    assert_eq!(reuse(&proxy, &call, &ten, now), Some(guard));
    assert_eq!(reuse(&proxy, &call, &wanted(None), now), None);
    assert_eq!(reuse(&proxy, &call, &ten, later(11 * MINUTE)), None);
    let not = Wanted {
        not: vec![guard],
        ..ten.clone()
    };
    call.call.tool = "yet another".into();
    assert_eq!(reuse(&proxy, &call, &not, now), None);
    for (agent, change) in [("codex", "chg"), ("claude", "chg-2")] {
        let call = NewCall {
            agent: agent.into(),
            change: change.into(),
            ..call.clone()
        };
        assert_eq!(reuse(&proxy, &call, &ten, now), None);
    }
    let asked = |change| {
        let guard = proxy.state.guard_to_reuse(ZVM, "claude", change, &ten);
        guard.unwrap().map(|guard| guard.id)
    };
    assert_eq!((asked("chg"), asked("other")), (Some(guard), None));
}

#[test]
fn a_guard_that_will_be_reused_is_waited_for() {
    let host = Host::new();
    let (one, two) = (host.process("one"), host.process("two"));
    let of_claude = |observer: &str, tool: &str| {
        let mut call = new_call(observer);
        call.agent = "claude".into();
        call.call.tool = tool.into();
        call
    };
    let first = one.state.call_begun(&of_claude("one", "a")).unwrap();
    let Claim::Pin(claim) = one.claims(first) else {
        panic!()
    };
    let second = two.state.call_begun(&of_claude("two", "b")).unwrap();
    let ten = wanted(Some(10 * MINUTE));
    assert!(matches!(
        two.state.claim(second, &ten).unwrap(),
        Claim::Wait
    ));
    let guard = one.records("claude");
    one.state.claim_ended(claim, Some(guard)).unwrap();
    assert_eq!(used(&two.state.claim(second, &ten).unwrap()), Some(guard));
}

#[test]
fn of_processes_that_come_at_once_one_pins() {
    let host = Host::new();
    let claims: Vec<(Process, Claim)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let process = host.process(&number.to_string());
                scope.spawn(move || {
                    let claim = process.claims(process.begins());
                    (process, claim)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(claims.iter().filter(|(_, claim)| pins(claim)).count(), 1);
    let waits = |claim: &Claim| matches!(claim, Claim::Wait);
    assert_eq!(claims.iter().filter(|(_, claim)| waits(claim)).count(), 7);
}

#[test]
fn outcomes_find_the_calls_that_were_handed_over() {
    let host = Host::new();
    let outcomes = |host: &Host| -> Vec<(i64, String)> {
        let database = rusqlite::Connection::open(host.dir.path().join("state/state.db")).unwrap();
        let mut query = database
            .prepare("SELECT call, outcome FROM call_outcome ORDER BY at, call")
            .unwrap();
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.unwrap().map(Result::unwrap).collect()
    };
    let hand_over = |correlation: Option<&str>| {
        let hook = host.process("hook");
        let call = hook.begins();
        hook.state.call_handed_over(call, correlation).unwrap();
        call.0
    };
    let post = host.process("post").state;
    let told = |correlation, outcome| {
        let call = ToolCall {
            server: None,
            ..new_call("x").call
        };
        post.handed_over_ended(ZVM, &call, correlation, outcome)
            .unwrap();
    };
    told(None, Outcome::Ok);
    assert_eq!(outcomes(&host), []);

    let (a, b) = (hand_over(Some("toolu_a")), hand_over(Some("toolu_b")));
    told(Some("toolu_b"), Outcome::IsError);
    told(Some("toolu_b"), Outcome::Ok);
    told(Some("toolu_c"), Outcome::Ok);
    assert_eq!(outcomes(&host), [(b, "is_error".into())]);

    // Without the harness's id, the oldest one that is open.
    let c = hand_over(None);
    told(None, Outcome::Ok);
    told(Some("toolu_d"), Outcome::Lost);
    told(None, Outcome::Ok);
    let mut all = outcomes(&host);
    all.sort();
    assert_eq!(
        all,
        [(a, "ok".into()), (b, "is_error".into()), (c, "lost".into())]
    );
    // What was not handed over is not found.
    host.process("proxy").begins();
    told(None, Outcome::Ok);
    assert_eq!(outcomes(&host).len(), 3);
}
