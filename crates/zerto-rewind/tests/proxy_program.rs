//! `zerto-rewind proxy` as a program: a client before it, a server that writes down what it gets behind it, and a simulated ZVM.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod support;

use std::{fs, process::Stdio, time::Duration};

use rustix::process::Signal;
use serde_json::{Value, json};
use support::{PATIENCE, Run, World, signal, stdio::Server, terminal::Terminal, wire_server};
use tokio::{io::AsyncWriteExt as _, task::JoinSet, time::timeout};
use zvm_sim::{Fault, Scenario};

const RECEIPT: &str = "io.github.zerto-rewind/receipt";
const REFUSAL: &str = "io.github.zerto-rewind/refusal";

const CATALOG: &str = r#"
version = 1

[[guard]]
server = "wire"
tool   = "listed"
vm     = { arg = "/vm" }
action = "listed {{ args.vm }}"

[[guard]]
server = "wire"
tool   = "denied"
vm     = { arg = "/vm" }
action = "denied"
mode   = "deny"
"#;

struct Stage {
    world: World,
}

impl Stage {
    async fn new() -> Self {
        Self::of(Scenario::fast(), json!({})).await
    }

    async fn of(scenario: Scenario, mut keys: Value) -> Self {
        let world = World::with(scenario).await;
        keys["catalog"] = "catalog.toml".into();
        world.configure(keys);
        fs::write(world.path("catalog.toml"), CATALOG).unwrap();
        Self { world }
    }

    /// Runs a command at a terminal, where this is typed at each question. Its exit code.
    async fn at_terminal(&self, arguments: &[&str], typed: &[(&str, &str)]) -> i32 {
        let (mut terminal, mut child) = Terminal::start(&mut self.world.command(arguments), true);
        for (question, answer) in typed {
            terminal.shows(question).await;
            terminal.types(answer);
        }
        let status = timeout(PATIENCE, child.wait()).await.unwrap().unwrap();
        status.code().unwrap()
    }

    /// The proxy with the server behind it, initialised.
    async fn proxy(&self) -> Server {
        let mut command = self.world.command(&["proxy", "--"]);
        command
            .arg(wire_server())
            .env("WIRE_LOG", self.world.path("received"));
        let mut proxy = Server::of(&mut command);
        proxy.initialize("2025-11-25").await;
        proxy
    }

    /// The tool calls that reached the server.
    fn received(&self) -> Vec<Value> {
        let log = fs::read_to_string(self.world.path("received")).unwrap_or_default();
        log.lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|message| message["method"] == "tools/call")
            .collect()
    }

    fn tags(&self, vpg: &str) -> Vec<String> {
        let journal = self.world.sim.journal(vpg).into_iter();
        journal
            .map(|entry| entry.tag)
            .filter(|tag| !tag.is_empty())
            .collect()
    }

    fn outcomes(&self) -> Vec<String> {
        let database = rusqlite::Connection::open(self.world.path("state/state.db")).unwrap();
        let mut query = database
            .prepare("SELECT outcome FROM call_outcome ORDER BY call")
            .unwrap();
        let rows = query.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    }

    async fn ends(&self, mut proxy: Server) -> i32 {
        proxy.close_stdin();
        proxy.end().await.0
    }
}

fn refusal(result: &Value) -> (&str, String) {
    assert_eq!(result["isError"], true, "{result}");
    let code = result["_meta"][REFUSAL]["code"]
        .as_str()
        .unwrap_or_else(|| panic!("{result}"));
    (
        code,
        result["content"][0]["text"].as_str().unwrap().to_owned(),
    )
}

#[tokio::test]
async fn an_unlisted_call_passes_and_nothing_is_asked_of_the_zvm() {
    let stage = Stage::new().await;
    let mut proxy = stage.proxy().await;
    let result = proxy.call("echo", json!({ "vm": "jp-ubuntu" })).await;
    assert_eq!(
        result,
        json!({ "content": [{ "type": "text", "text": "done" }] })
    );
    assert_eq!(stage.received().len(), 1);
    assert_eq!(stage.ends(proxy).await, 0);
    assert!(stage.world.sim.requests().is_empty());
    assert!(!stage.world.path("state").exists());
}

#[tokio::test]
async fn a_listed_call_is_pinned_on_every_vpg_before_it_is_forwarded() {
    let stage = Stage::new().await;
    let mut proxy = stage.proxy().await;
    let vpgs = ["app01-archive", "app01-dr", "app01-local"];
    let result = proxy
        .call(
            "listed",
            json!({ "vm": "app01", "result": { "content": [], "x": 1 } }),
        )
        .await;
    let receipt = &result["_meta"][RECEIPT];
    let pins = receipt["receipts"][0]["pins"]
        .as_array()
        .unwrap_or_else(|| panic!("{result}"));
    assert_eq!(pins.len(), vpgs.len());
    for pin in pins {
        let tags = stage.tags(pin["vpg"].as_str().unwrap());
        assert_eq!(tags, [pin["tag"].as_str().unwrap()]);
        assert!(
            tags[0].starts_with("ai:wire-client | listed app01 | vm=app01 | change="),
            "{tags:?}"
        );
    }
    assert_eq!(result["x"], 1);
    assert_eq!(stage.received().len(), 1);
    let failed = proxy
        .call(
            "listed",
            json!({ "vm": "app01", "result": { "isError": true, "content": [] } }),
        )
        .await;
    assert!(failed["_meta"][RECEIPT].is_object());
    assert_eq!(stage.ends(proxy).await, 0);
    assert_eq!(stage.outcomes(), ["ok", "is_error"]);
}

#[tokio::test]
async fn what_cannot_be_guarded_is_not_forwarded() {
    let stage = Stage::new().await;
    let mut proxy = stage.proxy().await;
    for (arguments, code, says) in [
        (json!({ "vm": "lonely" }), "vm_not_protected", "lonely"),
        (json!({ "vm": "nobody" }), "vm_not_found", "nobody"),
        (json!({ "vm": "web" }), "vm_ambiguous", "web"),
        (
            json!({ "vm": "cloud01" }),
            "protected_site_is_cloud",
            "cloud01",
        ),
        (json!({ "vm": "paused01" }), "vpg_not_ready", "paused01"),
        (json!({}), "invalid_argument", "/vm"),
        (json!({ "vm": null }), "invalid_argument", "/vm"),
        (json!({ "vm": 7 }), "invalid_argument", "7"),
        (
            json!({ "vm": (0..1000).map(|vm| vm.to_string()).collect::<Vec<_>>() }),
            "invalid_argument",
            "more than 32 VMs",
        ),
    ] {
        let result = proxy.call("listed", arguments.clone()).await;
        let (found, text) = refusal(&result);
        assert!(text.contains(says), "{arguments}: {text}");
        assert_eq!(found, code, "{arguments}: {text}");
    }
    let (code, _) = {
        let result = proxy.call("denied", json!({ "vm": "jp-ubuntu" })).await;
        let (code, text) = refusal(&result);
        (code.to_owned(), text)
    };
    assert_eq!(code, "denied");
    assert_eq!(stage.received(), Vec::<Value>::new());
    assert_eq!(stage.ends(proxy).await, 0);
    assert_eq!(
        stage
            .world
            .sim
            .requests()
            .iter()
            .filter(|request| request.method == "POST" && request.path.contains("checkpoints"))
            .count(),
        0
    );
}

#[tokio::test]
async fn a_name_that_could_be_taken_for_a_listed_one_is_not_forwarded() {
    let stage = Stage::new().await;
    let mut proxy = stage.proxy().await;
    for name in ["LISTED", " listed", "Listed\u{a0}"] {
        let params = json!({ "name": name, "arguments": { "vm": "lonely" } });
        let answer = proxy.request("tools/call", params).await;
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("listed"), "{answer}");
    }
    assert_eq!(stage.received(), Vec::<Value>::new());
    assert_eq!(stage.ends(proxy).await, 0);
}

#[tokio::test]
async fn a_server_that_no_entry_is_for_is_warned_about() {
    let stage = Stage::new().await;
    for (name, warned) in [("wire", false), ("wires", true)] {
        let mut command = stage.world.command(&["proxy", "--name", name, "--"]);
        command.arg(wire_server());
        let mut proxy = Server::of(&mut command);
        proxy.initialize("2025-11-25").await;
        proxy.close_stdin();
        let (code, log) = proxy.end().await;
        assert_eq!(code, 0);
        assert_eq!(
            log.contains("no entry of the catalog is for this server"),
            warned,
            "{log}"
        );
    }
}

#[tokio::test]
async fn a_half_done_guard_forwards_nothing_and_names_the_pins() {
    let stage = Stage::of(
        Scenario::fast(),
        json!({ "guard": { "listed_timeout": "500ms", "attempts": 1, "deadline": "20s" } }),
    )
    .await;
    stage
        .world
        .sim
        .update(|switches| switches.vpg_mut("app01-local").tag_never_shows = Some(true));
    let mut proxy = stage.proxy().await;
    let result = proxy.call("listed", json!({ "vm": "app01" })).await;
    let (code, text) = refusal(&result);
    assert_eq!(code, "not_listed", "{text}");
    assert!(
        text.contains("app01-local") && text.contains("app01-dr"),
        "{text}"
    );
    assert_eq!(stage.received(), Vec::<Value>::new());
    assert_eq!(stage.ends(proxy).await, 0);
    assert_eq!(stage.outcomes(), ["not_forwarded"]);
}

#[tokio::test]
async fn a_zvm_that_is_down_refuses_listed_calls_and_lets_others_pass() {
    let stage = Stage::of(
        Scenario::fast(),
        json!({ "zerto_url": "https://127.0.0.1:9" }),
    )
    .await;
    let mut proxy = stage.proxy().await;
    let result = proxy.call("listed", json!({ "vm": "app01" })).await;
    assert_eq!(refusal(&result).0, "zvm_unreachable");
    proxy.call("echo", json!({})).await;
    assert_eq!(stage.received().len(), 1);
    assert_eq!(stage.ends(proxy).await, 0);
}

#[tokio::test]
async fn a_zvm_that_goes_away_in_the_middle_forwards_nothing() {
    let stage = Stage::of(
        Scenario::fast(),
        json!({ "guard": { "listed_timeout": "1s", "attempts": 1, "deadline": "20s" } }),
    )
    .await;
    let Stage { world } = stage;
    world.sim.update(|switches| switches.hold_listing = true);
    let stage = Stage { world };
    let mut proxy = stage.proxy().await;
    let id = proxy
        .ask(
            "tools/call",
            json!({ "name": "listed", "arguments": { "vm": "jp-ubuntu" } }),
        )
        .await;
    stage
        .world
        .sim
        .wait_for(|view| view.answered("POST", "/checkpoints") == 1)
        .await;
    let World { sim, folder } = stage.world;
    sim.shutdown().await;
    let answer = proxy.message().await;
    assert_eq!(answer["id"], id);
    let (_, text) = refusal(&answer["result"]);
    assert!(text.contains("jp-ubuntu"), "{text}");
    assert!(
        !fs::read_to_string(folder.path().join("received"))
            .unwrap()
            .contains("\"listed\"")
    );
    proxy.close_stdin();
    assert_eq!(proxy.end().await.0, 0);
}

/// The ZVM answers so many requests, and then no more: before it carries out what was asked, or after it.
async fn zvm_that_answers(requests: u32, carries_out: bool) -> bool {
    let stage = Stage::of(
        Scenario::fast(),
        json!({ "guard": { "listed_timeout": "500ms", "attempts": 1, "deadline": "3s" } }),
    )
    .await;
    stage.world.sim.add_fault(Fault {
        skip: requests,
        times: 0,
        effect: carries_out,
        ..Fault::cut_before("", "/**")
    });
    let mut proxy = stage.proxy().await;
    let result = proxy.call("listed", json!({ "vm": "jp-ubuntu" })).await;
    let listed = stage.world.sim.journal("jp-ubuntu").into_iter();
    let listed = listed.filter(|entry| !entry.tag.is_empty() && entry.listed_at.is_some());
    let forwarded = stage.received().len();
    if result["isError"] == true {
        refusal(&result);
        assert_eq!(forwarded, 0, "{result}");
    } else {
        assert_eq!((forwarded, listed.count()), (1, 1), "{result}");
    }
    assert_eq!(stage.ends(proxy).await, 0);
    forwarded == 1
}

#[tokio::test]
async fn a_zvm_that_goes_away_at_any_request_forwards_nothing_without_a_pin() {
    let mut cases = JoinSet::new();
    for requests in 0..10 {
        for carries_out in [false, true] {
            cases.spawn(zvm_that_answers(requests, carries_out));
        }
    }
    let forwarded = cases.join_all().await;
    // It was cut off in the middle of guards, and not only before or after them.
    assert!(forwarded.contains(&false), "{forwarded:?}");
}

#[tokio::test]
async fn calls_that_wait_for_their_guards_hold_up_nobody() {
    let stage = Stage::new().await;
    stage
        .world
        .sim
        .update(|switches| switches.hold_listing = true);
    let mut proxy = stage.proxy().await;
    let mut held = Vec::new();
    for vm in ["jp-ubuntu", "app01"] {
        held.push(
            proxy
                .ask(
                    "tools/call",
                    json!({ "name": "listed", "arguments": { "vm": vm } }),
                )
                .await,
        );
    }
    stage
        .world
        .sim
        .wait_for(|view| view.answered("POST", "/checkpoints") == 4)
        .await;
    let passed = proxy.call("echo", json!({})).await;
    assert_eq!(passed["content"][0]["text"], "done");
    assert_eq!(stage.received().len(), 1);
    // One is cancelled, the other goes on.
    proxy.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": held[0] } })).await;
    stage
        .world
        .sim
        .update(|switches| switches.hold_listing = false);
    loop {
        let answer = proxy.message().await;
        if answer["id"] == held[1] {
            assert!(answer["result"]["_meta"][RECEIPT].is_object(), "{answer}");
            break;
        }
    }
    let received = stage.received();
    assert_eq!(received.len(), 2);
    assert_eq!(received[1]["params"]["arguments"]["vm"], "app01");
    assert_eq!(stage.ends(proxy).await, 0);
}

#[tokio::test]
async fn a_person_stops_and_resumes_a_running_proxy() {
    let stage = Stage::new().await;
    let mut proxy = stage.proxy().await;
    let vm = json!({ "vm": "jp-ubuntu" });
    assert_eq!(
        stage
            .world
            .run(&["stop", "--reason", "looking at it"])
            .await
            .code,
        0
    );
    let refused = proxy.call("listed", vm.clone()).await;
    let (code, text) = refusal(&refused);
    assert_eq!(code, "stopped");
    assert!(text.contains("looking at it"), "{text}");
    proxy.call("echo", vm.clone()).await;
    assert_eq!(stage.world.run(&["resume"]).await.code, 0);
    assert!(proxy.call("listed", vm).await["_meta"][RECEIPT].is_object());
    assert_eq!(stage.received().len(), 2);
    assert_eq!(stage.ends(proxy).await, 0);
}

#[tokio::test]
async fn a_tool_that_changed_is_refused_until_a_person_accepts_it() {
    let stage = Stage::new().await;
    let mut proxy = stage.proxy().await;
    let vm = json!({ "vm": "jp-ubuntu" });
    assert!(proxy.call("listed", vm.clone()).await["_meta"][RECEIPT].is_object());
    let changed = json!({ "name": "listed", "inputSchema": { "type": "object", "properties": {
        "vm": { "type": "string" }, "also": { "type": "string" },
    } } });
    proxy
        .request("x/tools", json!({ "tools": [changed] }))
        .await;
    proxy
        .send(
            &json!({ "jsonrpc": "2.0", "method": "x/say", "params": { "lines": [
        json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }).to_string(),
    ] } }),
        )
        .await;
    assert_eq!(
        proxy.message().await["method"],
        "notifications/tools/list_changed"
    );
    let refused = proxy.call("listed", vm.clone()).await;
    let (code, text) = refusal(&refused);
    assert_eq!(code, "denied");
    assert!(text.contains("catalog accept"), "{text}");
    assert_eq!(stage.received().len(), 1);

    let unasked = stage.world.run(&["catalog", "accept"]).await;
    assert_eq!(unasked.code, 3, "{}", unasked.stderr);
    // Where an approver's passphrase is set, a yes is not enough.
    let words = "five small words";
    let typed = [("New passphrase:", words), ("Once more:", words)];
    assert_eq!(stage.at_terminal(&["approver", "set"], &typed).await, 0);
    let accept = async |passphrase: &str| {
        let said = [("[y/N]", "yes"), ("Approver's passphrase:", passphrase)];
        stage.at_terminal(&["catalog", "accept"], &said).await
    };
    assert_eq!(accept("another guess").await, 3);
    assert_eq!(refusal(&proxy.call("listed", vm.clone()).await).0, "denied");
    assert_eq!(accept(words).await, 0);
    assert!(proxy.call("listed", vm).await["_meta"][RECEIPT].is_object());
    assert_eq!(stage.received().len(), 2);
    assert_eq!(stage.ends(proxy).await, 0);
}

#[tokio::test]
async fn a_catalog_is_followed_and_a_broken_one_keeps_the_last_good_one() {
    let stage = Stage::new().await;
    let mut proxy = stage.proxy().await;
    let file = stage.world.path("catalog.toml");
    let vm = json!({ "vm": "jp-ubuntu" });
    fs::write(&file, CATALOG.replace("\"listed\"", "\"echo\"")).unwrap();
    // A file that changed just now may still be being written, so the old one holds a moment longer.
    while proxy.call("echo", vm.clone()).await.get("_meta").is_none() {}
    let unlisted = proxy.call("listed", vm.clone()).await;
    assert!(unlisted.get("_meta").is_none());
    fs::write(&file, "version = 1\n[[guard]]\ntoool = 1\n").unwrap();
    loop {
        let result = proxy.call("echo", vm.clone()).await;
        let warnings = result["_meta"][RECEIPT]["warnings"].to_string();
        if warnings.contains("catalog.toml") && warnings.contains("last good") {
            break;
        }
    }
    assert_eq!(stage.ends(proxy).await, 0);

    // Without a good one there is no proxy, and no server.
    fs::remove_file(stage.world.path("received")).unwrap();
    let mut command = stage.world.command(&["proxy", "--"]);
    command
        .arg(wire_server())
        .env("WIRE_LOG", stage.world.path("received"));
    let run = stage.world.finish(&mut command).await;
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(
        run.stderr.contains("toool") && run.stderr.contains("catalog.toml"),
        "{}",
        run.stderr
    );
    assert!(!stage.world.path("received").exists());
}

#[tokio::test]
async fn a_hook_and_a_proxy_that_see_the_same_call_take_one_pin() {
    let stage = Stage::new().await;
    let mut proxy = stage.proxy().await;
    let vm = json!({ "vm": "jp-ubuntu" });
    let event = json!({
        "hook_event_name": "PreToolUse", "session_id": "0194c6a2-7b1e-4000-8000-0123456789ab", "tool_name": "mcp__wire__listed",
        "tool_input": vm, "tool_use_id": "toolu_1",
    });
    let mut command = stage.world.command(&["hook"]);
    let mut hook = command.stdin(Stdio::piped()).spawn().unwrap();
    hook.stdin
        .take()
        .unwrap()
        .write_all(event.to_string().as_bytes())
        .await
        .unwrap();
    let run = Run::of(
        timeout(PATIENCE, hook.wait_with_output())
            .await
            .unwrap()
            .unwrap(),
    );
    assert_eq!(run.code, 0, "{}", run.stderr);
    let result = proxy.call("listed", vm.clone()).await;
    assert_eq!(result["_meta"][RECEIPT]["reused"], true, "{result}");
    assert_eq!(stage.tags("jp-ubuntu").len(), 1);
    // The same call once more is another one.
    let result = proxy.call("listed", vm).await;
    assert_eq!(result["_meta"][RECEIPT]["reused"], false, "{result}");
    assert_eq!(stage.tags("jp-ubuntu").len(), 2);
    assert_eq!(stage.ends(proxy).await, 0);
}

/// A killed proxy: the server behind it ends with its input, and has got the call never or once, never without its pins.
#[tokio::test]
async fn a_proxy_that_is_killed_at_any_moment_forwards_once_or_never_and_not_without_a_pin() {
    let stage = Stage::new().await;
    for step in 0..12_u64 {
        let _ = fs::remove_file(stage.world.path("received"));
        let before = stage.tags("jp-ubuntu").len();
        let mut proxy = stage.proxy().await;
        proxy
            .ask(
                "tools/call",
                json!({ "name": "listed", "arguments": { "vm": "jp-ubuntu", "step": step } }),
            )
            .await;
        tokio::time::sleep(Duration::from_millis(step * 12)).await;
        signal(&proxy.child, Signal::KILL);
        // Its standard error is the server's, too: it ends when both have ended.
        assert_eq!(proxy.end().await.0, -1);
        let received = stage.received().len();
        assert!(received <= 1);
        if received == 1 {
            assert!(stage.tags("jp-ubuntu").len() > before);
        }
    }
}
