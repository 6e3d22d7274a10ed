//! A server behind a URL, offered over standard streams.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]
mod proxy_support;

use proxy_support::{Client, upstream::Server};
use rewind_mcp::proxy::{RECEIPT_KEY, REFUSAL_KEY};
use serde_json::{Value, json};

fn modern(id: Value, tool: &str, arguments: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": arguments, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} } } })
}

#[test]
fn a_legacy_session_is_kept_and_ended() {
    let server = Server::start();
    let mut client = Client::of_url(&server.url);
    // All at once, as a client on a pipe may: the session's id is there before what needs it.
    client.raw(concat!(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"c","version":"1"}}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        "\r\n\n",
        r#"{"jsonrpc":"2.0", "id":1,"method":"tools/call","params":{"name":"free"}}"#,
        "\n",
    ));
    assert_eq!(client.answer()["result"]["serverInfo"]["name"], "http");
    let mut ids = [client.answer(), client.answer()].map(|message| message["id"].clone());
    ids.sort_by_key(Value::is_null);
    assert_eq!(ids, [json!(1), Value::Null]);
    let initialize = server.wait("initialize", 1);
    assert_eq!(
        (
            initialize.header("mcp-session-id"),
            initialize.header("mcp-protocol-version")
        ),
        (None, None)
    );
    assert_eq!(
        initialize.header("accept"),
        Some("application/json, text/event-stream")
    );
    for received in [
        server.wait("notifications/initialized", 1),
        server.wait("tools/call", 1),
        server.wait("GET", 1),
    ] {
        assert_eq!(
            received.header("mcp-session-id"),
            Some("s1"),
            "{received:?}"
        );
        assert_eq!(
            received.header("mcp-protocol-version"),
            Some("2025-11-25"),
            "{received:?}"
        );
        assert_eq!(received.header("mcp-method"), None, "{received:?}");
    }
    let call = server.wait("tools/call", 1);
    assert_eq!(
        call.body,
        br#"{"jsonrpc":"2.0", "id":1,"method":"tools/call","params":{"name":"free"}}"#
    );
    client.close();
    assert_eq!(client.exit_code(), 0);
    assert_eq!(
        server.wait("DELETE", 1).header("mcp-session-id"),
        Some("s1")
    );
    server.wait_gone(1);
}

#[test]
fn events_come_as_lines_and_json_on_one_line() {
    let server = Server::start();
    let mut client = Client::of_url(&server.url);
    client.call(1, "free", &json!({ "how": "events" }));
    assert_eq!(client.answer()["params"]["progress"], 0);
    assert_eq!(client.answer()["params"]["progress"], 1);
    assert_eq!(client.answer()["result"]["content"][0]["text"], "done");
    client.call(2, "free", &json!({ "how": "pretty" }));
    assert_eq!(
        client.text(),
        "{    \"jsonrpc\": \"2.0\",   \"id\": 2,   \"result\": {     \"x\": 1.50   } } \n"
    );
    client.nothing_more();
}

#[test]
fn a_listed_call_is_guarded_over_http_as_well() {
    let server = Server::start();
    let mut client = Client::of_url(&server.url);
    for (id, how) in ["json", "events", "pretty"].into_iter().enumerate() {
        client.call(
            id,
            "listed",
            &json!({ "guard": { "wait": true }, "how": how }),
        );
        client.script.wait("guarding listed", id + 1);
        client.call("free", "free", &json!({}));
        assert_eq!(client.answer()["id"], "free");
        assert_eq!(server.of("tools/call").len(), 2 * id + 1);
        client.script.release();
        let answer = loop {
            let message = client.answer();
            if message["id"] == id {
                break message;
            }
        };
        assert!(
            answer["result"]["_meta"][RECEIPT_KEY].is_object(),
            "{answer}"
        );
        client.script.wait("Ok listed", id + 1);
    }
    client.call("no", "listed", &json!({ "guard": { "fail": "down" } }));
    let answer = client.answer();
    assert_eq!(
        answer["result"]["_meta"][REFUSAL_KEY]["code"],
        "zvm_unreachable"
    );
    assert_eq!(server.of("tools/call").len(), 6);
    assert_eq!(server.of("tools/list").len(), 1);
}

#[test]
fn modern_requests_are_mirrored_in_headers() {
    let server = Server::start();
    let mut client = Client::of_url(&server.url);
    client.send(&modern(json!(1), "caf\u{e9}", &json!({})));
    client.answer();
    let call = server.wait("tools/call", 1);
    assert_eq!(call.header("mcp-method"), Some("tools/call"));
    assert_eq!(call.header("mcp-name"), Some("=?base64?Y2Fmw6k=?="));
    assert_eq!(call.header("mcp-protocol-version"), Some("2026-07-28"));
    // The server wants an argument in a header, and the client never asked for its tools.
    client.send(&modern(
        json!(2),
        "free",
        &json!({ "how": "refused", "vm": "a b" }),
    ));
    assert_eq!(client.answer()["result"]["content"][0]["text"], "done");
    assert_eq!(
        server.wait("tools/call", 3).header("mcp-param-vm"),
        Some("a b")
    );
    let list = server.wait("tools/list", 1);
    assert_eq!(
        (list.header("mcp-method"), list.header("mcp-name")),
        (Some("tools/list"), None)
    );
    client.send(&modern(
        json!(3),
        "free",
        &json!({ "how": "refused", "vm": "c" }),
    ));
    client.answer();
    assert_eq!(
        server.wait("tools/call", 4).header("mcp-param-vm"),
        Some("c")
    );
    // What can't be mended is passed on as it is.
    client.send(&modern(json!(4), "free", &json!({ "how": "refused" })));
    assert_eq!(client.answer()["error"]["code"], -32020);
}

#[test]
fn a_modern_request_is_cancelled_by_the_end_of_its_stream() {
    let server = Server::start();
    let mut client = Client::of_url(&server.url);
    client.send(&modern(json!(1), "listed", &json!({ "how": "hang" })));
    server.wait("tools/call", 1);
    client.answer();
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }));
    server.wait_gone(1);
    client.script.wait("Lost listed", 1);
    assert_eq!(server.of("notifications/cancelled").len(), 0);
    // A held one never leaves.
    client.send(&modern(
        json!(2),
        "listed",
        &json!({ "guard": { "wait": true } }),
    ));
    client.script.wait("guarding listed", 2);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } }));
    client.script.wait("failed listed", 1);
    client.nothing_more();
    assert_eq!(server.of("tools/call").len(), 1);
    // Legacy servers are told.
    client.call(3, "free", &json!({ "how": "hang" }));
    client.answer();
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 3 } }));
    server.wait("notifications/cancelled", 1);
}

#[test]
fn a_stream_that_breaks_off_is_taken_up_again_where_the_era_can() {
    let server = Server::start();
    let mut client = Client::of_url(&server.url);
    client.call(1, "listed", &json!({ "how": "resumed" }));
    let answer = client.answer();
    assert_eq!(answer["result"]["resumed"], true);
    assert!(answer["result"]["_meta"][RECEIPT_KEY].is_object());
    assert_eq!(server.wait("GET", 1).header("last-event-id"), Some("e1"));
    client.script.wait("Ok listed", 1);

    client.send(&modern(json!(2), "listed", &json!({ "how": "resumed" })));
    assert_eq!(client.answer()["error"]["code"], -32603);
    client.script.wait("Lost listed", 1);
    client.call(3, "free", &json!({ "how": "broken" }));
    assert_eq!(client.answer()["params"]["progress"], 0);
    assert_eq!(client.answer()["error"]["code"], -32603);
    assert_eq!(server.of("GET").len(), 1);
}

#[test]
fn what_is_no_answer_becomes_an_error_that_says_what_to_do() {
    let server = Server::start();
    let mut client = Client::of_url(&server.url);
    for (arguments, says) in [
        (json!({ "status": 503, "body": "<html>" }), "503"),
        (
            json!({ "status": 401 }),
            "ZERTO_REWIND_PROXY_HEADER_AUTHORIZATION",
        ),
        (json!({ "status": 307 }), "redirects are not followed"),
        (
            json!({ "status": 200, "body": "hello" }),
            "without an answer",
        ),
        (json!({ "status": 202 }), "without an answer"),
        (
            json!({ "status": 200, "type": "application/json", "body": "{\"id\":77,\"result\":{}}" }),
            "something else",
        ),
        (
            json!({ "status": 400, "type": "application/json", "body": "{\"id\":null,\"error\":{\"code\":1,\"message\":\"no such luck\"}}" }),
            "no such luck",
        ),
    ] {
        let mut arguments = arguments;
        arguments["how"] = "status".into();
        client.call("a", "free", &arguments);
        let answer = loop {
            let message = client.answer();
            if message["id"] == "a" {
                break message;
            }
        };
        let text = answer["error"]["message"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer}"));
        assert!(text.contains(says), "{text}");
    }
    client.call("b", "free", &json!({ "how": "status", "status": 404, "type": "application/json", "body": "{\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"x\"}}" }));
    assert_eq!(client.answer()["error"]["code"], -32601);
    client.call("c", "listed", &json!({ "how": "status", "status": 500 }));
    assert_eq!(client.answer()["error"]["code"], -32603);
    client.script.wait("Lost listed", 1);
}

#[test]
fn a_server_that_cannot_be_reached_is_an_error_of_each_request() {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp?key=s3cret", socket.local_addr().unwrap());
    drop(socket);
    let mut client = Client::of_url(&url);
    client.call(1, "free", &json!({}));
    let answer = client.answer();
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("could not be reached"),
        "{answer}"
    );
    assert!(!answer.to_string().contains("s3cret"), "{answer}");
    // The tools can't be asked for: not forwarded.
    client.call(2, "listed", &json!({}));
    assert_eq!(
        client.answer()["result"]["_meta"][REFUSAL_KEY]["code"],
        "denied"
    );
    client.close();
    assert_eq!(client.exit_code(), 0);
}

#[test]
fn bad_input_does_not_leave() {
    let server = Server::start();
    let mut client = Client::of_url(&server.url);
    for line in [
        "junk\n",
        "[]\n",
        "{\"id\":1,\"method\":\"tools/call\",\"method\":\"ping\"}\n",
        "{\"id\":1,\"method\":\"ping\",\"x\":\r1}\n",
    ] {
        client.raw(line);
        assert!(client.answer()["error"]["code"].is_i64());
    }
    client.raw("\n  \r\n");
    client.nothing_more();
    assert_eq!(server.received().len(), 1);
}

#[test]
fn the_clients_end_is_the_end_of_what_is_held() {
    let server = Server::start();
    let mut client = Client::of_url(&server.url);
    client.call(1, "listed", &json!({ "guard": { "wait": true } }));
    client.script.wait("guarding listed", 1);
    client.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "subscriptions/listen", "params": { "arguments": { "how": "hang" }, "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } } }));
    client.answer();
    client.close();
    assert_eq!(
        client.answer()["result"]["_meta"][REFUSAL_KEY]["code"],
        "cancelled"
    );
    assert_eq!(client.exit_code(), 0);
    assert!(client.script.flushed());
    assert_eq!(server.of("tools/call").len(), 0);
    server.wait_gone(1);
}

#[test]
fn what_hangs_is_bounded_and_makes_way_when_it_is_cancelled() {
    let server = Server::start();
    let mut client = Client::of_url(&server.url);
    for id in 0..300 {
        client.send(&modern(json!(id), "free", &json!({ "how": "hang" })));
    }
    server.wait("tools/call", 256);
    // It was read after all of them, and waits for none.
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/x" }));
    server.wait("notifications/x", 1);
    assert_eq!(server.of("tools/call").len(), 256);
    let with_the_server = &server.of("tools/call")[0].message["id"];
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": with_the_server } }));
    server.wait("tools/call", 257);
}
