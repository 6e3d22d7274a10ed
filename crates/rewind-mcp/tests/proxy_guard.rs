//! A listed call is not forwarded without a guard, and the rest goes on around it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]
mod proxy_support;

use proxy_support::{Client, script::Script, settings};
use rewind_mcp::proxy::{RECEIPT_KEY, REFUSAL_KEY, Settings};
use serde_json::{Value, json};

const MODERN: &str = "io.modelcontextprotocol/protocolVersion";

fn modern_meta() -> Value {
    json!({ MODERN: "2026-07-28", "io.modelcontextprotocol/clientInfo": { "name": "modern", "version": "1" }, "io.modelcontextprotocol/clientCapabilities": {} })
}

/// The code of a refusal.
fn refused(answer: &Value) -> &str {
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    answer["result"]["_meta"][REFUSAL_KEY]["code"]
        .as_str()
        .unwrap_or_else(|| panic!("no refusal: {answer}"))
}

#[test]
fn a_listed_call_is_guarded_then_forwarded_and_its_result_carries_the_receipt() {
    let mut client = Client::legacy();
    client.nothing_more();
    let call = "{\"jsonrpc\":\"2.0\", \"id\":1.0,\"method\":\"tools/call\",\"params\":{\"name\":\"listed\",\"arguments\":{\"guard\":{\"wait\":true},\"silent\":true}}}\r\n";
    client.raw(call);
    client.script.wait("guarding listed", 1);
    client.nothing_more();
    assert_eq!(client.calls_received(), Vec::<Value>::new());
    client.script.release();
    client.script.wait("guarded listed", 1);
    // Wait for it to arrive: the proxy asked for the tools before, and now there is the call.
    while client.calls_received().is_empty() {
        client.nothing_more();
    }
    assert!(
        client
            .received()
            .windows(call.len())
            .any(|window| window == call.as_bytes())
    );
    client.have_said(&["{\"id\":1,\"jsonrpc\":\"2.0\",\"result\":{\"z\":1.50, \"content\":[],\"a\":9007199254740993,\"x\":\"\\ud800\"}}\r"]);
    let answer = client.text();
    let (before, after) = answer.split_once("\"_meta\":{").unwrap();
    assert_eq!(before, "{\"id\":1,\"jsonrpc\":\"2.0\",\"result\":{");
    let (receipt, after) = after.split_once("},\"z\"").unwrap();
    assert_eq!(
        after,
        ":1.50, \"content\":[],\"a\":9007199254740993,\"x\":\"\\ud800\"}}\r\n"
    );
    let receipt: Value = serde_json::from_str(&format!("{{{receipt}}}")).unwrap();
    let receipt = &receipt[RECEIPT_KEY];
    assert_eq!(receipt["receipts"][0]["vm"], "vm1");
    assert_eq!(receipt["receipts"][0]["agent"], "tester");
    assert!(
        receipt["receipts"][0]["change_id"]
            .as_str()
            .unwrap()
            .starts_with("chg-")
    );
    assert_eq!(receipt["reused"], false);
    client.script.wait("Ok listed", 1);
}

#[test]
fn what_is_not_guarded_is_not_forwarded() {
    let mut client = Client::legacy();
    client.call(
        1,
        "listed",
        &json!({ "guard": { "fail": "the ZVM is down" } }),
    );
    let answer = client.answer();
    assert_eq!(
        (refused(&answer), &answer["id"]),
        ("zvm_unreachable", &json!(1))
    );
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("the ZVM is down") && text.contains("do what the script says"),
        "{text}"
    );
    assert_eq!(answer["result"].get("resultType"), None);
    assert_eq!(answer["result"].get("structuredContent"), None);

    client.call(2, "denied", &json!({}));
    assert_eq!(refused(&client.answer()), "denied");
    client.call(3, "listed", &json!({ "guard": { "panic": true } }));
    assert_eq!(refused(&client.answer()), "state");
    client.raw("{\"id\":4,\"method\":\"tools/call\",\"params\":{\"name\":\"listed\",\"arguments\":{\"vm\":1,\"vm\":2}}}\n");
    assert_eq!(refused(&client.answer()), "invalid_argument");
    client.nothing_more();
    assert_eq!(client.calls_received(), Vec::<Value>::new());

    // The ids are free again.
    client.call(1, "listed", &json!({}));
    assert_eq!(client.answer()["result"]["content"][0]["text"], "done");
}

#[test]
fn a_modern_call_is_answered_in_its_own_form() {
    let mut client = Client::start();
    client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "listed", "arguments": { "guard": { "fail": "no" } }, "_meta": modern_meta() } }));
    let answer = client.answer();
    assert_eq!(refused(&answer), "zvm_unreachable");
    assert_eq!(answer["result"]["resultType"], "complete");
    // The proxy's own question was asked in the call's name.
    let asked = String::from_utf8(client.received()).unwrap();
    let asked: Value = serde_json::from_str(asked.lines().next().unwrap()).unwrap();
    assert_eq!(asked["method"], "tools/list");
    assert_eq!(asked["params"]["_meta"], modern_meta());
}

#[test]
fn the_catalog_may_let_a_listed_tool_pass() {
    let mut client = Client::legacy();
    for id in 1..=2 {
        client.call(id, "when", &json!({ "on": false }));
        let answer = client.answer();
        assert_eq!(
            answer["result"],
            json!({ "content": [{ "type": "text", "text": "done" }] })
        );
    }
    client.call(3, "when", &json!({ "on": true }));
    assert!(client.answer()["result"]["_meta"][RECEIPT_KEY].is_object());
    assert_eq!(
        client.script.events(),
        ["guarding when", "guarded when", "Ok when"]
    );
}

#[test]
fn a_servers_name_decides() {
    let mut client = Client::with(
        Script::new(),
        Settings {
            name: Some("harmless".into()),
            ..settings()
        },
    );
    client.initialize();
    client.call(1, "listed", &json!({}));
    assert_eq!(client.answer()["result"].get("_meta"), None);
    assert_eq!(client.script.events(), Vec::<String>::new());
}

#[test]
fn while_its_name_is_unknown_every_entry_matches_and_the_servers_own_word_settles_it() {
    let mut client = Client::start();
    // A modern client that never asked who the server is; the server says so with its tools.
    client.call(1, "listed", &json!({}));
    let asked = loop {
        let received = client.received();
        if let Some(line) = received
            .split(|byte| *byte == b'\n')
            .next()
            .filter(|line| !line.is_empty())
        {
            break serde_json::from_slice::<Value>(line).unwrap();
        }
        std::thread::yield_now();
    };
    assert_eq!(asked["method"], "tools/list");
    // `wire-server` answers without a name: every entry still matches.
    assert!(client.answer()["result"]["_meta"][RECEIPT_KEY].is_object());
    // A list that names it.
    client.send(&json!({ "jsonrpc": "2.0", "id": "l", "method": "x/none" }));
    client.send(&json!({ "jsonrpc": "2.0", "id": "d", "method": "server/discover" }));
    client.have_said(&[r#"{"jsonrpc":"2.0","id":"d","result":{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"harmless","version":"1"}}}}"#]);
    assert_eq!(client.answer()["id"], "d");
    client.call(2, "listed", &json!({}));
    assert_eq!(client.answer()["result"].get("_meta"), None);
    // The first name stays.
    client.send(&json!({ "jsonrpc": "2.0", "id": "i", "method": "initialize", "params": {} }));
    assert_eq!(client.answer()["result"]["serverInfo"]["name"], "wire");
    client.call(3, "listed", &json!({}));
    assert_eq!(client.answer()["result"].get("_meta"), None);
}

#[test]
fn held_calls_do_not_block_anything() {
    let mut client = Client::legacy();
    for id in 0..20 {
        client.call(id, "listed", &json!({ "guard": { "wait": true } }));
    }
    client.script.wait("guarding listed", 20);
    client.call("free", "echo", &json!({}));
    assert_eq!(client.answer()["id"], "free");
    client.nothing_more();
    for _ in 0..20 {
        client.script.release();
    }
    let mut ids: Vec<u64> = (0..20)
        .map(|_| client.answer()["id"].as_u64().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..20).collect::<Vec<_>>());
    assert_eq!(client.calls_received().len(), 21);
}

#[test]
fn too_many_held_calls_are_refused() {
    let mut client = Client::legacy();
    for id in 0..256 {
        client.call(id, "listed", &json!({ "guard": { "wait": true } }));
    }
    client.call("more", "listed", &json!({}));
    let answer = client.answer();
    assert_eq!(
        (refused(&answer), &answer["id"]),
        ("denied", &json!("more"))
    );
    client.call("free", "echo", &json!({}));
    assert_eq!(client.answer()["id"], "free");
}

#[test]
fn a_cancelled_call_is_not_forwarded_and_not_answered() {
    let mut client = Client::legacy();
    client.call(1, "listed", &json!({ "guard": { "wait": true } }));
    client.script.wait("guarding listed", 1);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1, "reason": "no" } }));
    client.script.wait("failed listed", 1);
    client.nothing_more();
    assert_eq!(client.calls_received(), Vec::<Value>::new());
    assert!(
        !String::from_utf8(client.received())
            .unwrap()
            .contains("cancelled")
    );
    // The id is free again.
    client.call(1, "listed", &json!({}));
    assert_eq!(client.answer()["id"], 1);
}

#[test]
fn a_cancellation_after_the_forwarding_goes_after_it() {
    let mut client = Client::legacy();
    client.call(1, "listed", &json!({ "silent": true }));
    client.script.wait("guarded listed", 1);
    while client.calls_received().is_empty() {
        client.nothing_more();
    }
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }));
    client.nothing_more();
    let received = String::from_utf8(client.received()).unwrap();
    assert!(
        received.find("\"tools/call\"").unwrap()
            < received.find("notifications/cancelled").unwrap()
    );
    client.close();
    assert_eq!(client.exit_code(), 0);
    assert_eq!(
        client.script.events(),
        ["guarding listed", "guarded listed", "Lost listed"]
    );
}

#[test]
fn progress_keeps_rising_when_the_servers_own_follows() {
    let mut client = Client::legacy();
    for (token, says, expected) in [
        // From zero: raised above ours. The total moves along.
        (
            json!("t\u{e9}"),
            vec!["0", "5, \"total\" : 10"],
            vec![1.0, 6.0],
        ),
        // Greater than ours already: left as it is.
        (json!(7), vec!["50", "51.5"], vec![50.0, 51.5]),
    ] {
        let lines: Vec<String> = says
            .iter()
            .map(|value| format!(r#"{{"jsonrpc":"2.0", "method":"notifications/progress","params":{{"progressToken":{token},"progress":{value}}}}}"#))
            .collect();
        client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "listed", "arguments": { "guard": { "progress": 3 }, "say": lines }, "_meta": { "progressToken": token } } }));
        let mut values = Vec::new();
        let mut last_lines = Vec::new();
        let answer = loop {
            let line = client.text();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == 1 {
                break message;
            }
            assert_eq!(message["params"]["progressToken"], token);
            values.push(message["params"]["progress"].as_f64().unwrap());
            last_lines.push((line, message));
        };
        assert!(answer["result"]["_meta"][RECEIPT_KEY].is_object());
        assert!(values.len() > says.len(), "{values:?}");
        assert!(values.is_sorted_by(|a, b| a < b), "{values:?}");
        let own = values.len() - says.len();
        let base = values[own] - expected[0];
        for (i, expected) in expected.iter().enumerate() {
            assert!(
                (values[own + i] - base - expected).abs() < 1e-9,
                "{values:?}"
            );
        }
        let (line, message) = last_lines.last().unwrap();
        if token == 7 {
            assert_eq!(line.trim_end(), lines.last().unwrap());
        } else {
            assert!(
                (message["params"]["total"].as_f64().unwrap() - values.last().unwrap() - 5.0).abs()
                    < 1e-9
            );
        }
    }
}

#[test]
fn an_id_that_is_in_use_is_refused() {
    let mut client = Client::legacy();
    client.call(1, "listed", &json!({ "guard": { "wait": true } }));
    client.script.wait("guarding listed", 1);
    for id in ["1", "1.0", "1e0"] {
        for call in [
            r#""method":"ping""#,
            r#""method":"tools/call","params":{"name":"listed"}"#,
            r#""method":"tools/call","params":{"name":"echo"}"#,
        ] {
            client.raw(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{call}}}\n"));
            assert_eq!(client.answer()["error"]["code"], -32600, "{id} {call}");
        }
    }
    // An id of a request that only passes, for a listed call: the answers could not be told apart.
    client.call("plain", "echo", &json!({ "silent": true }));
    client.call("plain", "listed", &json!({}));
    assert_eq!(client.answer()["error"]["code"], -32600);
    client.script.release();
    let answer = client.answer();
    assert_eq!(
        (
            &answer["id"],
            answer["result"]["_meta"][RECEIPT_KEY].is_object()
        ),
        (&json!(1), true)
    );
    assert_eq!(client.calls_received(), [json!("plain"), json!(1)]);
}

#[test]
fn an_answer_to_a_call_that_was_not_forwarded_is_dropped() {
    let mut client = Client::legacy();
    client.call(1, "listed", &json!({ "guard": { "wait": true } }));
    client.script.wait("guarding listed", 1);
    client.have_said(&[r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"early":true}}"#]);
    client.nothing_more();
    client.script.release();
    assert_eq!(client.answer()["result"].get("early"), None);
}

#[test]
fn outcomes_are_recorded() {
    let mut client = Client::legacy();
    client.call(
        1,
        "listed_a",
        &json!({ "result": { "content": [], "isError": true } }),
    );
    assert!(client.answer()["result"]["_meta"][RECEIPT_KEY].is_object());
    client.script.wait("IsError listed_a", 1);
    client.call(
        2,
        "listed_b",
        &json!({ "error": { "code": -32602, "message": "unknown tool" } }),
    );
    assert_eq!(
        client.answer()["error"],
        json!({ "code": -32602, "message": "unknown tool" })
    );
    client.script.wait("ProtocolError listed_b", 1);
    client.call(
        3,
        "listed_c",
        &json!({ "silent": true, "say": ["{\"id\":3,\"result\":{},\"result\":{}}"] }),
    );
    assert_eq!(client.text(), "{\"id\":3,\"result\":{},\"result\":{}}\n");
    client.script.wait("ProtocolError listed_c", 1);
    client.call(
        4,
        "listed_d",
        &json!({ "silent": true, "say": ["{\"id\":4,\"result\":7}"] }),
    );
    assert_eq!(client.text(), "{\"id\":4,\"result\":7}\n");
    client.script.wait("ProtocolError listed_d", 1);
}

#[test]
fn the_clients_end_means_that_nothing_held_is_forwarded() {
    let mut client = Client::legacy();
    client.call(1, "listed", &json!({ "guard": { "wait": true } }));
    client.script.wait("guarding listed", 1);
    client.close();
    let answer = client.answer();
    assert_eq!((refused(&answer), &answer["id"]), ("cancelled", &json!(1)));
    assert_eq!(client.exit_code(), 0);
    assert_eq!(client.calls_received(), Vec::<Value>::new());
}

#[test]
fn the_servers_end_is_an_answer_to_what_is_held_and_a_loss_of_what_was_forwarded() {
    for end in ["x/exit", "x/abort"] {
        let mut client = Client::legacy();
        client.call(1, "listed_sent", &json!({ "silent": true }));
        client.script.wait("guarded listed_sent", 1);
        client.call(2, "listed", &json!({ "guard": { "wait": true } }));
        client.script.wait("guarding listed", 1);
        while client.calls_received().is_empty() {
            client.nothing_more();
        }
        client.send(&json!({ "method": end, "params": { "code": 3 } }));
        let answer = client.answer();
        assert_eq!((refused(&answer), &answer["id"]), ("cancelled", &json!(2)));
        assert_eq!(client.exit_code(), if end == "x/exit" { 3 } else { 134 });
        let events = client.script.events();
        assert!(events.contains(&"Lost listed_sent".into()), "{events:?}");
        assert!(events.contains(&"failed listed".into()), "{events:?}");
        assert!(client.script.flushed());
        assert_eq!(client.calls_received(), [json!(1)]);
    }
}

#[test]
fn a_repeat_in_a_multi_round_trip_request_is_guarded_once() {
    let mut client = Client::start();
    let asks = |state: Value| json!({ "resultType": "input_required", "inputRequests": {}, "requestState": state });
    let call = |id: u64, result: &Value, extra: &Value| {
        let mut params =
            json!({ "name": "listed", "arguments": { "result": result }, "_meta": modern_meta() });
        params
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let again = |state: &str| json!({ "inputResponses": {}, "requestState": state });
    let ask = asks(json!("s\u{e9}1"));
    client.send(&call(1, &ask, &json!({})));
    let first = client.answer();
    assert_eq!(first["result"]["requestState"], "s\u{e9}1");
    let receipt = first["result"]["_meta"][RECEIPT_KEY].clone();
    assert!(receipt.is_object());
    // The same call with the state that was given: no second guard, and the same receipt.
    client.send(&call(2, &ask, &again("s\u{e9}1")));
    assert_eq!(client.answer()["result"]["_meta"][RECEIPT_KEY], receipt);
    client.script.wait("guarding listed", 1);
    client.send(&call(3, &ask, &again("s\u{e9}1")));
    assert_eq!(client.answer()["result"]["_meta"][RECEIPT_KEY], receipt);
    assert_eq!(
        client.script.events(),
        ["guarding listed", "guarded listed"]
    );

    // Other arguments, another state, no state, or a plain call: new calls.
    let done = json!({ "content": [] });
    for (count, message) in [
        call(4, &done, &again("s\u{e9}1")),
        call(5, &ask, &again("made up")),
        call(6, &ask, &json!({ "inputResponses": {} })),
        call(7, &ask, &json!({})),
    ]
    .into_iter()
    .enumerate()
    {
        client.send(&message);
        client.answer();
        client.script.wait("guarding listed", count + 2);
    }
    client.close();
    assert_eq!(client.exit_code(), 0);
    let events = client.script.events();
    let count = |event: &str| events.iter().filter(|seen| *seen == event).count();
    // Each is told of once. 5 to 7 have replaced each other and 3 under the one state, and wait no more.
    assert_eq!(
        (
            count("guarding listed"),
            count("Ok listed"),
            count("Lost listed")
        ),
        (5, 1, 4),
        "{events:?}"
    );
}

#[test]
fn a_call_that_becomes_a_task_is_guarded_first_and_ends_with_its_task() {
    let mut client = Client::legacy();
    let start = |client: &mut Client, id: u64, task: &str, result: Value| {
        client.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": format!("listed_{task}"), "arguments": { "result": result }, "task": { "ttl": 60000 } } }));
        let answer = client.answer();
        assert!(
            answer["result"]["_meta"][RECEIPT_KEY].is_object(),
            "{answer}"
        );
    };
    let ask = |client: &mut Client, id: &str, method: &str, task: &str, answer: Value| {
        client.send(
            &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": { "taskId": task } }),
        );
        client.have_said(&[&json!({ "jsonrpc": "2.0", "id": id, "result": answer }).to_string()]);
        assert_eq!(client.answer()["result"], answer);
    };
    // 2025-11-25
    start(
        &mut client,
        1,
        "old",
        json!({ "task": { "taskId": "old", "status": "working" } }),
    );
    ask(
        &mut client,
        "a",
        "tasks/get",
        "old",
        json!({ "taskId": "old", "status": "working" }),
    );
    assert!(
        !client
            .script
            .events()
            .iter()
            .any(|event| event.ends_with("k listed_old"))
    );
    ask(
        &mut client,
        "b",
        "tasks/result",
        "old",
        json!({ "content": [], "isError": true }),
    );
    client.script.wait("IsError listed_old", 1);
    // 2026-07-28
    start(
        &mut client,
        2,
        "new",
        json!({ "resultType": "task", "taskId": "new", "status": "working" }),
    );
    ask(
        &mut client,
        "c",
        "tasks/get",
        "new",
        json!({ "taskId": "new", "status": "completed", "result": { "content": [] } }),
    );
    client.script.wait("Ok listed_new", 1);
    // Told, not asked.
    start(
        &mut client,
        3,
        "told",
        json!({ "task": { "taskId": "told", "status": "working" } }),
    );
    client.have_said(&[r#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"told","status":"failed"}}"#]);
    client.answer();
    client.script.wait("IsError listed_told", 1);
    // Never heard of again.
    start(
        &mut client,
        4,
        "gone",
        json!({ "task": { "taskId": "gone", "status": "working" } }),
    );
    client.close();
    client.exit_code();
    client.script.wait("Lost listed_gone", 1);
}

fn tool(name: &str, property: &str, description: &str) -> Value {
    json!({ "name": name, "description": description, "inputSchema": { "type": "object", "properties": { property: {} } } })
}

fn tools(client: &mut Client, tools: Value) {
    client.send(
        &json!({ "jsonrpc": "2.0", "id": "x", "method": "x/tools", "params": { "tools": tools } }),
    );
    assert_eq!(client.answer()["id"], "x");
    client.have_said(&[r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#]);
    assert_eq!(
        client.answer()["method"],
        "notifications/tools/list_changed"
    );
}

#[test]
fn a_tool_that_has_changed_is_refused_until_a_person_accepts_it() {
    let mut client = Client::legacy();
    tools(&mut client, json!([tool("listed", "vm", "one")]));
    client.call(1, "listed", &json!({}));
    assert!(client.answer()["result"]["_meta"][RECEIPT_KEY].is_object());

    tools(&mut client, json!([tool("listed", "vm", "other words")]));
    client.call(2, "listed", &json!({}));
    let warnings = client.answer()["result"]["_meta"][RECEIPT_KEY]["warnings"].clone();
    assert_eq!(warnings, json!(["its description has changed"]));

    tools(&mut client, json!([tool("listed", "host", "one")]));
    // Also where the client itself has asked for the tools.
    client.send(&json!({ "jsonrpc": "2.0", "id": "l", "method": "tools/list" }));
    assert_eq!(client.answer()["result"]["tools"][0]["name"], "listed");
    for id in 3..5 {
        client.call(id, "listed", &json!({}));
        let answer = client.answer();
        assert_eq!(refused(&answer), "denied");
        assert!(answer.to_string().contains("catalog accept"), "{answer}");
    }
    client.script.accept();
    client.call(5, "listed", &json!({}));
    assert!(client.answer()["result"]["_meta"][RECEIPT_KEY].is_object());
}

#[test]
fn the_tools_are_asked_for_once_and_all_of_them() {
    let mut client = Client::legacy();
    client.call(1, "listed", &json!({}));
    client.answer();
    client.call(2, "listed", &json!({}));
    client.answer();
    let received = String::from_utf8(client.received()).unwrap();
    assert_eq!(received.matches("tools/list\"").count(), 1);
    // A tool that the server does not list is guarded all the same, with a word about it.
    client.call(3, "listed_hidden", &json!({}));
    let warnings = client.answer()["result"]["_meta"][RECEIPT_KEY]["warnings"].clone();
    assert!(
        warnings[0]
            .as_str()
            .unwrap()
            .contains("does not list the tool"),
        "{warnings}"
    );
}

#[test]
fn a_server_that_does_not_list_its_tools_gets_no_listed_calls() {
    let mut client = Client::legacy();
    tools(&mut client, json!("no list"));
    client.call(1, "listed", &json!({}));
    assert_eq!(refused(&client.answer()), "denied");
    assert_eq!(client.calls_received(), Vec::<Value>::new());
    // The client's list serves as well.
    tools(&mut client, json!([tool("listed", "vm", "one")]));
    client.send(&json!({ "jsonrpc": "2.0", "id": "l", "method": "tools/list" }));
    client.answer();
    client.call(2, "listed", &json!({}));
    assert!(client.answer()["result"]["_meta"][RECEIPT_KEY].is_object());
}

#[test]
fn an_argument_that_is_spelled_differently_than_the_schema_is_refused() {
    let mut client = Client::legacy();
    for (id, name) in ["VM", "vM", "\u{2006}"].into_iter().enumerate() {
        client.call(id, "when", &json!({ name: "x" }));
        let answer = client.answer();
        if name.is_ascii() {
            assert_eq!(refused(&answer), "invalid_argument");
        } else {
            assert_eq!(answer["result"]["content"][0]["text"], "done");
        }
    }
}

#[test]
fn an_id_that_a_cancelled_call_had_belongs_to_the_next_one() {
    let mut client = Client::legacy();
    for round in 1..=20 {
        client.call(1, "listed", &json!({ "guard": { "wait": true } }));
        client.script.wait("guarding listed", round);
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }));
    }
    // The ends of the cancelled ones say nothing about this one.
    client.call(1, "listed", &json!({ "guard": { "wait": true } }));
    client.script.wait("failed listed", 20);
    client.nothing_more();
    client.script.release();
    assert!(client.answer()["result"]["_meta"][RECEIPT_KEY].is_object());
    assert_eq!(client.calls_received(), [json!(1)]);
}
