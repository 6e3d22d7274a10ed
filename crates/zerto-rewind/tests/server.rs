//! The built MCP server over real stdio.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod support;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{World, stdio::Server};
use zvm_sim::{Scenario, Spread};

const GUARD: &str = "zerto_create_tagged_checkpoint";
const OLD: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "stateless-client", "version": "1" },
    })
}

#[tokio::test]
async fn speaks_every_older_revision() {
    let world = World::new().await;
    for revision in OLD {
        let mut server = Server::initialized(&world.config(), revision).await;
        let tools = server.request("tools/list", json!({})).await;
        assert_eq!(
            tools["result"]["tools"].as_array().unwrap().len(),
            6,
            "{revision}"
        );
        let found = server
            .call("zerto_find_protection", json!({ "vm": "jp-ubuntu" }))
            .await;
        assert_eq!(found["structuredContent"]["vm"], "jp-ubuntu", "{revision}");
        assert!(
            found.get("resultType").is_none(),
            "{revision} does not know it"
        );
        server.close_stdin();
        assert_eq!(server.end().await, (0, String::new()), "{revision}");
    }
}

#[tokio::test]
async fn speaks_the_stateless_revision() {
    let world = World::new().await;
    let mut server = Server::start(&world.config());
    let discovered = server
        .request("server/discover", json!({ "_meta": meta() }))
        .await;
    let versions = discovered["result"]["supportedVersions"]
        .as_array()
        .unwrap();
    for version in OLD.into_iter().chain(["2026-07-28"]) {
        assert!(
            versions.iter().any(|known| known == version),
            "{version} is not in {versions:?}"
        );
    }
    let list = server
        .request("tools/list", json!({ "_meta": meta() }))
        .await;
    assert_eq!(list["result"]["cacheScope"], "private");
    assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 6);
    let call = json!({
        "_meta": meta(), "name": GUARD, "arguments": { "vm": "jp-ubuntu", "action": "edit" },
    });
    let receipt = server.request("tools/call", call).await;
    assert_eq!(receipt["result"]["resultType"], "complete");
    assert_eq!(
        receipt["result"]["structuredContent"]["agent"],
        "stateless-client"
    );
}

#[tokio::test]
async fn starts_and_lists_its_tools_without_a_configuration_and_without_a_zvm() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none.json");
    let mut server = Server::initialized(&missing, "2025-11-25").await;
    let tools = server.request("tools/list", json!({})).await;
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 6);
    let result = server
        .call("zerto_find_protection", json!({ "vm": "jp-ubuntu" }))
        .await;
    assert_eq!(result["isError"], true);
    assert_eq!(
        result["structuredContent"]["error"]["code"],
        "configuration"
    );
    assert!(
        result["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("none.json")
    );
}

#[tokio::test]
async fn says_nothing_to_the_zvm_before_the_first_call() {
    let world = World::new().await;
    let mut server = Server::initialized(&world.config(), "2025-11-25").await;
    server.request("tools/list", json!({})).await;
    server.close_stdin();
    // The look for what an earlier run left behind is over, too, when the server has ended.
    assert_eq!(server.end().await.0, 0);
    assert!(
        world.sim.requests().is_empty(),
        "{:?}",
        world.sim.requests()
    );
}

#[tokio::test]
async fn garbage_on_stdin_does_not_end_it() {
    let world = World::new().await;
    let mut server = Server::initialized(&world.config(), "2025-11-25").await;
    for line in ["not json", "{\"jsonrpc\":\"2.0\"}", "[1,2]", "\u{0}", ""] {
        server.raw(line).await;
    }
    let found = server
        .call("zerto_find_protection", json!({ "vm": "jp-ubuntu" }))
        .await;
    assert_eq!(found["structuredContent"]["vm"], "jp-ubuntu");
}

/// Whoever copies a command from an answer gets to the ZVM that the answer is of.
#[tokio::test]
async fn a_command_in_an_answer_names_the_configuration_that_the_server_was_given() {
    let world = World::new().await;
    let receipt = world
        .run(&["guard", "jp-ubuntu", "--action", "edit", "--json"])
        .await
        .json();
    let wanted = json!({
        "vm": "jp-ubuntu", "path": "/home/justin/app-config.yaml", "checkpoint": receipt["tag"],
    });
    let file = world.config();
    let given = world.path("given.json");
    std::fs::copy(&file, &given).unwrap();
    for (arguments, option) in [
        (vec!["mcp"], String::new()),
        (
            vec!["--config", given.to_str().unwrap(), "mcp"],
            format!("--config {} ", given.display()),
        ),
    ] {
        let mut server = Server::of(&mut world.command(&arguments));
        server.initialize("2025-11-25").await;
        let answer = server.call("zerto_recover_file", wanted.clone()).await;
        let error = error_of(&answer);
        assert_eq!(error["code"], "confirmation_required", "{answer}");
        let id = error["plan_id"].as_str().unwrap();
        let text = answer["content"][0]["text"].as_str().unwrap();
        for said in [text, error["next"].as_str().unwrap()] {
            for word in ["approve", "deny"] {
                let command = format!("`zerto-rewind {option}{word} {id}`");
                assert!(said.contains(&command), "{command} is not in {said}");
            }
        }
        server.close_stdin();
        assert_eq!(server.end().await.0, 0);
    }
}

/// A ZVM that lists no tag for a long time.
async fn waiting_world() -> World {
    let world = World::new().await;
    world.sim.update(|switches| switches.tag_never_shows = true);
    world
}

#[tokio::test]
async fn the_end_of_stdin_in_the_middle_of_a_guard_ends_the_guard_and_the_server() {
    let world = waiting_world().await;
    let mut server = Server::initialized(&world.config(), "2025-11-25").await;
    server
        .ask(
            "tools/call",
            json!({ "name": GUARD, "arguments": { "vm": "jp-ubuntu", "action": "edit" } }),
        )
        .await;
    world
        .sim
        .wait_for(|zvm| zvm.answered("POST", "/checkpoints") == 1)
        .await;
    let begun = Instant::now();
    server.close_stdin();
    let (code, log) = server.end().await;
    assert_eq!(code, 0, "{log}");
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    assert!(
        log.contains("cancelled") && log.contains("InsertedNotListed"),
        "the log tells what was done: {log}"
    );
}

/// A server in the middle of a recovery whose mount takes long.
#[cfg(unix)]
async fn recovering() -> (World, Server) {
    let mut scenario = Scenario::fast();
    scenario.timings.mount = Spread::fixed(Duration::from_secs(30));
    let world = World::with(scenario).await;
    world.configure(json!({ "confirmation": "argument" }));
    let mut server = Server::initialized(&world.config(), "2025-11-25").await;
    let receipt = server
        .call(GUARD, json!({ "vm": "jp-ubuntu", "action": "edit" }))
        .await;
    let checkpoint = &receipt["structuredContent"]["pins"][0]["checkpoint"];
    let recover = json!({ "vm": "jp-ubuntu", "path": "/etc/hosts", "checkpoint": checkpoint, "confirmed": true });
    server
        .ask(
            "tools/call",
            json!({ "name": "zerto_recover_file", "arguments": recover }),
        )
        .await;
    (world, server)
}

#[cfg(unix)]
#[tokio::test]
async fn sigterm_unmounts_before_the_end() {
    let (world, server) = recovering().await;
    world.sim.wait_for(|zvm| !zvm.sessions().is_empty()).await;
    support::signal(&server.child, rustix::process::Signal::TERM);
    let (code, log) = server.end().await;
    assert_eq!(code, 0, "{log}");
    assert!(
        world.sim.flr_sessions().is_empty(),
        "a session is open: {:?}\n{log}",
        world.sim.flr_sessions()
    );
}

#[tokio::test]
async fn a_cancelled_request_gets_no_answer_and_the_log_says_what_was_done() {
    let world = waiting_world().await;
    let mut server = Server::initialized(&world.config(), "2025-11-25").await;
    let id = server
        .ask(
            "tools/call",
            json!({ "name": GUARD, "arguments": { "vm": "jp-ubuntu", "action": "edit" } }),
        )
        .await;
    world
        .sim
        .wait_for(|zvm| zvm.answered("POST", "/checkpoints") == 1)
        .await;
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id, "reason": "enough" } });
    server.send(&cancel).await;
    // The next answer is the next request's.
    let found = server
        .call("zerto_find_protection", json!({ "vm": "jp-ubuntu" }))
        .await;
    assert_eq!(found["structuredContent"]["vm"], "jp-ubuntu");
    server.close_stdin();
    while let Some(message) = server.message_or_end().await {
        assert_ne!(message["id"], id, "{message}");
    }
    let (_, log) = server.end().await;
    assert!(
        log.contains("cancelled") && log.contains("InsertedNotListed"),
        "{log}"
    );
}

#[tokio::test]
async fn progress_comes_with_the_token_that_was_given_and_ends_with_the_answer() {
    let mut scenario = Scenario::fast();
    scenario.timings.listing_lag = Spread::fixed(Duration::from_secs(3));
    let world = World::with(scenario).await;
    let mut server = Server::initialized(&world.config(), "2025-11-25").await;
    let params = json!({
        "name": GUARD, "arguments": { "vm": "jp-ubuntu", "action": "edit" }, "_meta": { "progressToken": "tok-1" },
    });
    let id = server.ask("tools/call", params).await;
    let mut updates = 0;
    let mut last = 0.0;
    loop {
        let message = server.message().await;
        if message["id"] == id {
            assert_eq!(message["result"]["isError"], false);
            break;
        }
        assert_eq!(message["method"], "notifications/progress");
        assert_eq!(message["params"]["progressToken"], "tok-1");
        let progress = message["params"]["progress"].as_f64().unwrap();
        assert!(progress > last, "{progress} after {last}");
        last = progress;
        updates += 1;
    }
    assert!(updates >= 2, "{updates} updates in three seconds");
}

#[cfg(unix)]
#[tokio::test]
async fn a_plan_is_used_up_by_a_server_that_is_killed_in_the_middle() {
    let (world, mut server) = recovering().await;
    world.sim.wait_for(|zvm| !zvm.sessions().is_empty()).await;
    server.child.kill().await.unwrap();
    let plans = world.run(&["approvals", "--json"]).await.json();
    let [plan] = plans.as_array().unwrap().as_slice() else {
        panic!("{plans}");
    };
    assert_eq!(plan["decision"]["how"], "argument");
    assert_eq!(plan["status"], "interrupted");
    let mut next = Server::initialized(&world.config(), "2025-11-25").await;
    let arguments = json!({ "plan_id": plan["plan_id"], "confirmed": true });
    let answer = next.call("zerto_recover_file", arguments).await;
    assert_eq!(error_of(&answer)["code"], "plan_used", "{answer}");
    let mounts = world.sim.requests();
    let mounts = mounts
        .iter()
        .filter(|request| request.method == "POST" && request.path.ends_with("/v1/flrs"));
    assert_eq!(mounts.count(), 1);
}

#[tokio::test]
async fn answers_help_and_version() {
    let world = World::new().await;
    let server = env!("CARGO_BIN_EXE_zerto-rewind-mcp");
    let mut version = support::program(server, &world.config());
    let run = world.finish(version.arg("--version")).await;
    assert_eq!(
        (run.code, &*run.stdout),
        (
            0,
            concat!("zerto-rewind-mcp ", env!("CARGO_PKG_VERSION"), "\n")
        )
    );
    let mut help = support::program(server, &world.config());
    let run = world.finish(help.arg("--help")).await;
    assert!(
        run.code == 0 && run.stdout.contains("ZERTO_REWIND_CONFIG"),
        "{}",
        run.stdout
    );
}

#[cfg(unix)]
#[tokio::test]
async fn the_next_start_unmounts_what_a_killed_server_left_mounted() {
    let (world, mut server) = recovering().await;
    // Once it asks after the session, it has written down which one is its own.
    world
        .sim
        .wait_for(|zvm| zvm.answered("GET", "/flrs/") > 0)
        .await;
    server.child.kill().await.unwrap();
    assert_eq!(world.sim.flr_sessions().len(), 1);

    let next = Server::initialized(&world.config(), "2025-11-25").await;
    let gone = world.sim.wait_for(|zvm| zvm.sessions().is_empty());
    tokio::time::timeout(support::PATIENCE, gone)
        .await
        .expect("it stays mounted");
    drop(next);
}

const FIND: &str = "zerto_find_protection";

fn error_of(result: &Value) -> &Value {
    &result["structuredContent"]["error"]
}

#[tokio::test]
async fn a_changed_configuration_is_used_without_a_restart() {
    let world = World::new().await;
    let mut server = Server::initialized(&world.config(), "2025-11-25").await;
    let edit = json!({ "vm": "jp-ubuntu", "action": "edit" });
    let first = server.call(GUARD, edit.clone()).await;
    assert_eq!(first["structuredContent"]["agent"], "wire-client");

    world.configure(json!({ "agent": "fixed-name" }));
    let second = server.call(GUARD, edit.clone()).await;
    assert_eq!(second["structuredContent"]["agent"], "fixed-name");

    world.configure(json!({ "agnet": "x" }));
    let calls = [
        (FIND, json!({ "vm": "jp-ubuntu" })),
        (GUARD, edit.clone()),
        (
            "zerto_guard_before_mutate",
            json!({ "tool": "t", "action": "edit" }),
        ),
        ("zerto_list_checkpoints", json!({ "vm": "jp-ubuntu" })),
        (
            "zerto_recover_file",
            json!({ "vm": "jp-ubuntu", "path": "/etc/hosts", "checkpoint": "1" }),
        ),
        (
            "zerto_diff_file",
            json!({ "vm": "jp-ubuntu", "path": "/etc/hosts", "checkpoint": "1" }),
        ),
    ];
    for (tool, arguments) in calls {
        let result = server.call(tool, arguments).await;
        let error = error_of(&result);
        assert_eq!(error["code"], "configuration", "{tool}");
        let message = error["message"].as_str().unwrap();
        for word in ["config.json", "agnet", "agent"] {
            assert!(message.contains(word), "{tool}: {message}");
        }
    }
    std::fs::remove_file(world.config()).unwrap();
    let gone = server.call(FIND, json!({ "vm": "jp-ubuntu" })).await;
    assert_eq!(error_of(&gone)["code"], "configuration", "{gone}");

    world.configure(json!({}));
    let mended = server.call(GUARD, edit).await;
    assert_eq!(mended["structuredContent"]["agent"], "wire-client");
}

#[tokio::test]
async fn a_configuration_that_was_missing_or_broken_at_the_start_heals() {
    let world = World::new().await;
    for broken in [None, Some("{")] {
        match broken {
            None => std::fs::remove_file(world.config()).unwrap(),
            Some(text) => world.write_config(text),
        }
        let mut server = Server::initialized(&world.config(), "2025-11-25").await;
        let refused = server.call(FIND, json!({ "vm": "jp-ubuntu" })).await;
        assert_eq!(error_of(&refused)["code"], "configuration", "{refused}");
        world.configure(json!({}));
        let found = server.call(FIND, json!({ "vm": "jp-ubuntu" })).await;
        assert_eq!(found["structuredContent"]["vm"], "jp-ubuntu");
    }
}

#[tokio::test]
async fn a_corrected_password_and_a_corrected_ca_file_log_in_without_a_restart() {
    let world = World::new().await;
    world.configure(json!({ "password": "wrong" }));
    let mut server = Server::initialized(&world.config(), "2025-11-25").await;
    let refused = server.call(FIND, json!({ "vm": "jp-ubuntu" })).await;
    assert_eq!(error_of(&refused)["code"], "login_refused", "{refused}");
    world.configure(json!({}));
    let found = server.call(FIND, json!({ "vm": "jp-ubuntu" })).await;
    assert_eq!(found["structuredContent"]["vm"], "jp-ubuntu", "{found}");

    let ca = world.path("ca.pem");
    let other = World::new().await;
    std::fs::copy(other.sim.ca_file(), &ca).unwrap();
    world.configure(json!({ "ca_file": ca }));
    let refused = server.call(FIND, json!({ "vm": "jp-ubuntu" })).await;
    assert_eq!(
        error_of(&refused)["code"],
        "certificate_refused",
        "{refused}"
    );
    std::fs::copy(world.sim.ca_file(), &ca).unwrap();
    let found = server.call(FIND, json!({ "vm": "jp-ubuntu" })).await;
    assert_eq!(found["structuredContent"]["vm"], "jp-ubuntu", "{found}");
}

#[tokio::test]
async fn calls_that_run_while_the_configuration_changes_end_as_they_began() {
    let mut scenario = Scenario::fast();
    scenario.timings.mount = Spread::fixed(Duration::from_secs(2));
    let world = World::with(scenario).await;
    world.configure(json!({ "confirmation": "argument" }));
    let mut server = Server::initialized(&world.config(), "2025-11-25").await;
    let receipt = server
        .call(GUARD, json!({ "vm": "jp-ubuntu", "action": "edit" }))
        .await;
    let checkpoint = &receipt["structuredContent"]["pins"][0]["checkpoint"];
    let recover = json!({ "vm": "jp-ubuntu", "path": "/etc/hosts", "checkpoint": checkpoint, "confirmed": true });
    let recovering = server
        .ask(
            "tools/call",
            json!({ "name": "zerto_recover_file", "arguments": recover }),
        )
        .await;
    world.sim.wait_for(|zvm| !zvm.sessions().is_empty()).await;
    // The new one looks for what was left behind, and leaves what another call still has.
    world.configure(json!({ "agent": "fixed-name", "confirmation": "argument" }));
    let found = server.call(FIND, json!({ "vm": "jp-ubuntu" })).await;
    assert_eq!(found["structuredContent"]["vm"], "jp-ubuntu");
    world.write_config("{");
    let recovered = loop {
        let message = server.message().await;
        if message["id"] == recovering {
            break message;
        }
    };
    assert_eq!(recovered["result"]["isError"], false, "{recovered}");
    assert!(world.sim.flr_sessions().is_empty());
}

#[cfg(unix)]
#[tokio::test]
async fn a_configuration_that_others_can_read_is_every_calls_answer() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new().await;
    let mode = |mode| {
        std::fs::set_permissions(world.config(), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(0o644);
    let mut server = Server::initialized(&world.config(), "2025-11-25").await;
    let vm = json!({ "vm": "jp-ubuntu" });
    for tool in [FIND, "zerto_list_checkpoints"] {
        let answer = server.call(tool, vm.clone()).await;
        assert_eq!(answer["isError"], true, "{answer}");
        let error = &answer["structuredContent"]["error"];
        assert_eq!(error["code"], "configuration");
        assert!(
            error["next"].as_str().unwrap().contains("chmod 600"),
            "{error}"
        );
    }
    assert!(world.sim.requests().is_empty(), "the secret was used");
    mode(0o600);
    assert_eq!(server.call(FIND, vm.clone()).await["isError"], false);
    // While it runs, too.
    mode(0o640);
    assert_eq!(server.call(FIND, vm).await["isError"], true);
}

#[tokio::test]
async fn parameters_of_the_wrong_shape_are_invalid_params() {
    let world = World::new().await;
    let mut server = Server::initialized(&world.config(), "2025-11-25").await;
    for (params, named) in [
        (json!({ "name": FIND, "arguments": [1] }), "`arguments`"),
        (json!({ "name": FIND, "arguments": "x" }), "`arguments`"),
        (json!({ "arguments": {} }), "missing"),
    ] {
        let answer = server.request("tools/call", params.clone()).await;
        assert_eq!(answer["error"]["code"], -32602, "{params}: {answer}");
        assert!(
            answer["error"]["message"].as_str().unwrap().contains(named),
            "{params}: {answer}"
        );
    }
    let unknown = server.request("tools/cal", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32601);
}

#[tokio::test]
async fn a_line_that_is_no_json_is_answered_with_a_parse_error() {
    let world = World::new().await;
    let mut server = Server::initialized(&world.config(), "2025-11-25").await;
    for line in ["not json", "{\"jsonrpc\":", "\u{0}", "{\"a\": \"\u{1}\"}"] {
        server.raw(line).await;
        let answer = server.message().await;
        assert_eq!(answer["error"]["code"], -32700, "{line:?}: {answer}");
        assert!(answer.get("id").is_none_or(Value::is_null), "{answer}");
    }
    // Empty lines are nothing.
    server.raw("").await;
    let tools = server.request("tools/list", json!({})).await;
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 6);

    // Also where nothing follows, and before the handshake.
    let mut server = Server::start(&world.config());
    server.raw("not json").await;
    server.close_stdin();
    let answer = server.message().await;
    assert_eq!(answer["error"]["code"], -32700, "{answer}");
    assert_eq!(server.end().await.0, 0);
}

#[tokio::test]
async fn without_a_configuration_the_server_names_the_variable_and_no_option_that_it_has_not() {
    let mut server = Server::start(std::path::Path::new(""));
    server.initialize("2025-11-25").await;
    let refused = server.call(FIND, json!({ "vm": "x" })).await;
    let text = error_of(&refused).to_string();
    assert!(
        text.contains("ZERTO_REWIND_CONFIG") && !text.contains("--config"),
        "{text}"
    );
}
