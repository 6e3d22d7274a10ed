//! What is not held passes as it is; what two parsers could understand differently does not pass.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]
mod proxy_support;

use proxy_support::{Client, script::Script, settings};
use rewind_mcp::proxy::Settings;
use serde_json::{Value, json};

#[test]
fn the_clients_bytes_reach_the_server_as_they_are() {
    let mut client = Client::start();
    let sent = [
        "{\"jsonrpc\":\"2.0\",\"id\":1.50,\"method\":\"x/unknown\",\"params\":[1, 2.0e3,\"\\ud800\"]}\n",
        "\r\n",
        "   \n",
        " {\"jsonrpc\" : \"1.0\", \"method\":\"notifications/x\", \"x\":{\"x\":1,\"x\":2} } \r\n",
        "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{\"action\":\"accept\"}}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":9,\"error\":{\"code\":-1,\"message\":\"no\"}}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"x/y\"}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x/y\"}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x/y\"}\n",
        "{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{\"name\":\"other\",\"arguments\":{\"a\":1,\"a\":\"\\ud800\"}}}\n",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":77}}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"\u{1f600}\u{2028}\"}\n",
        "{\"id\":3}\n",
    ];
    for line in sent {
        client.raw(line);
    }
    // The last line without an end.
    client.raw("{\"jsonrpc\":\"2.0\",\"method\":\"x/last\"}");
    client.close();
    assert_eq!(client.exit_code(), 0);
    let expected = sent.concat() + "{\"jsonrpc\":\"2.0\",\"method\":\"x/last\"}";
    assert_eq!(String::from_utf8(client.received()).unwrap(), expected);
    assert_eq!(client.rest(), b"");
}

#[test]
fn the_servers_bytes_reach_the_client_as_they_are() {
    let mut client = Client::start();
    let said: Vec<Vec<u8>> = vec![
        b"junk\n".to_vec(),
        b"\n".to_vec(),
        b"{\"half\n".to_vec(),
        b"\xff\xfe\x00 not UTF-8\n".to_vec(),
        b"{\"id\":1,\"result\":{\"a\":1.0e0,\"a\":2}}\r\n".to_vec(),
        b"[{\"id\":1,\"result\":{}}]\n".to_vec(),
        b"{\"id\":5,\"method\":\"sampling/createMessage\",\"params\":{}}\n".to_vec(),
        b"{\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,\"progress\":0}}\n".to_vec(),
        b"{\"id\":1,\"id\":2,\"result\":{}}\n".to_vec(),
        b"no end".to_vec(),
    ];
    let bytes = said.concat();
    client.send(&json!({ "method": "x/bytes", "params": { "bytes": bytes } }));
    client.close();
    assert_eq!(client.exit_code(), 0);
    assert_eq!(client.rest(), bytes);
}

#[test]
fn long_lines_pass() {
    let mut client = Client::start();
    client.raw(format!(
        "{{\"id\":1,\"method\":\"x/y\",\"params\":\"{}\"}}\n",
        "x".repeat(50 << 20)
    ));
    client.send(&json!({ "method": "x/flood", "params": { "bytes": 50 << 20 } }));
    assert_eq!(client.line().len(), (50 << 20) + 1);
    assert!(client.received().len() > (50 << 20));
}

#[test]
fn lines_that_are_too_long_are_refused() {
    const LONGEST: usize = 1 << 20;
    let mut client = Client::with(
        Script::new(),
        Settings {
            longest: LONGEST,
            ..settings()
        },
    );
    client.raw(format!(
        "{{\"id\":2,\"method\":\"x/y\",\"params\":\"{}\"}}\n",
        "x".repeat(LONGEST)
    ));
    let refused = client.answer();
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!(2), &json!(-32600))
    );

    client.send(&json!({ "method": "x/flood", "params": { "bytes": LONGEST + 100_000, "id": 3 } }));
    let refused = client.answer();
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!(3), &json!(-32603))
    );
    // It belongs to nobody.
    client.send(&json!({ "method": "x/flood", "params": { "bytes": 10 * LONGEST } }));
    client.nothing_more();
    assert!(client.received().len() < 1000);
}

#[test]
fn what_a_server_could_understand_differently_is_refused() {
    let call = r#""method":"tools/call","params":{"name":"listed"}"#;
    // (message, code, id of the answer)
    let cases: Vec<(Vec<u8>, i64, Value)> = [
        ("{".to_owned(), -32700, Value::Null),
        ("junk".into(), -32700, Value::Null),
        (
            format!("{{\"id\":1,{call}}} {{\"id\":2,{call}}}"),
            -32700,
            json!(1),
        ),
        (format!("\u{feff}{{\"id\":1,{call}}}"), -32700, Value::Null),
        (format!("{{\"id\":1,{call}}}\0"), -32700, json!(1)),
        (format!("[{{\"id\":1,{call}}}]"), -32600, Value::Null),
        ("[]".into(), -32600, Value::Null),
        ("7".into(), -32600, Value::Null),
        (
            format!("{{\"id\":1,\"method\":\"ping\",{call}}}"),
            -32600,
            json!(1),
        ),
        (
            format!("{{\"id\":1,{call},\"m\\u0065thod\":\"ping\"}}"),
            -32600,
            json!(1),
        ),
        (format!("{{\"id\":1,\"id\":2,{call}}}"), -32600, Value::Null),
        (
            format!("{{\"id\":1,{call},\"params\":{{}}}}"),
            -32600,
            json!(1),
        ),
        (
            r#"{"id":1,"Method":"tools/call","params":{"name":"listed"}}"#.into(),
            -32600,
            Value::Null,
        ),
        (
            r#"{"id":1,"method":"ping","METHOD":"tools/call"}"#.into(),
            -32600,
            json!(1),
        ),
        (
            r#"{"id":1,"method":"Tools/Call","params":{"name":"listed"}}"#.into(),
            -32600,
            json!(1),
        ),
        (
            r#"{"id":1,"method":"tools/call\u0000","params":{"name":"listed"}}"#.into(),
            -32600,
            json!(1),
        ),
        (
            r#"{"id":1,"method":" tools/call","params":{"name":"listed"}}"#.into(),
            -32600,
            json!(1),
        ),
        (
            r#"{"id":1,"method":["tools/call"],"params":{"name":"listed"}}"#.into(),
            -32600,
            json!(1),
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"other","name":"listed"}}"#.into(),
            -32602,
            json!(1),
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"other","Name":"listed"}}"#.into(),
            -32602,
            json!(1),
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":["listed"]}}"#.into(),
            -32602,
            json!(1),
        ),
        (
            r#"{"id":1,"method":"tools/call","params":["listed"]}"#.into(),
            -32602,
            json!(1),
        ),
        (r#"{"id":1,"method":"tools/call"}"#.into(), -32602, json!(1)),
        (
            r#"{"id":1.5,"method":"tools/call","params":{"name":"listed"}}"#.into(),
            -32600,
            json!(1.5),
        ),
        (
            r#"{"id":null,"method":"tools/call","params":{"name":"listed"}}"#.into(),
            -32600,
            Value::Null,
        ),
        (
            r#"{"id":{},"method":"tools/call","params":{"name":"listed"}}"#.into(),
            -32600,
            json!({}),
        ),
        // A server that reads lines as Python does, takes what is between the two for a message.
        (
            format!(
                "{{\"id\":1,\"method\":\"ping\",\"params\":{{\"a\":\r{{\"id\":2,{call}}}\r}}}}"
            ),
            -32600,
            json!(1),
        ),
    ]
    .into_iter()
    .map(|(message, code, id)| (message.into_bytes(), code, id))
    .chain([(
        b"{\"id\":1,\"method\":\"p\xff\"}".to_vec(),
        -32700,
        json!(1),
    )])
    .collect();
    let mut client = Client::legacy();
    client.nothing_more();
    let before = client.received();
    for (message, code, id) in cases {
        let shown = String::from_utf8_lossy(&message).into_owned();
        client.raw([message.as_slice(), b"\n"].concat());
        let answer = client.answer();
        assert_eq!(answer["error"]["code"], code, "{shown}: {answer}");
        assert_eq!(answer["id"], id, "{shown}: {answer}");
        assert_eq!(answer["jsonrpc"], "2.0");
    }
    // Without an id nobody can be answered.
    client.raw(format!("{{{call}}}\n"));
    assert_eq!(client.received(), before);
    client.nothing_more();
    assert_eq!(client.script.events(), Vec::<String>::new());
}

#[test]
fn names_are_compared_as_what_they_mean() {
    let mut client = Client::legacy();
    client.raw("{\"id\":1,\"m\\u0065thod\":\"tools\\u002fcall\",\"params\":{\"n\\u0061me\":\"list\\u0065d\"}}\n");
    let answer = client.answer();
    assert_eq!(answer["id"], 1);
    assert_eq!(
        client.script.events(),
        ["guarding listed", "guarded listed", "Ok listed"]
    );
}

#[test]
fn hostile_depth_is_no_trouble() {
    let mut client = Client::legacy();
    let deep = format!("{}{}", "[".repeat(1 << 20), "]".repeat(1 << 20));
    client.raw(format!(
        "{{\"id\":1,\"method\":\"x/y\",\"params\":{deep}}}\n"
    ));
    client.raw(format!("{{\"id\":2,\"method\":\"tools/call\",\"params\":{{\"name\":\"other\",\"arguments\":{deep}}}}}\n"));
    client.raw(format!("{{\"id\":3,\"method\":\"tools/call\",\"params\":{{\"name\":\"listed\",\"arguments\":{deep}}}}}\n"));
    let refused = client.answer();
    assert_eq!(
        (&refused["id"], &refused["result"]["isError"]),
        (&json!(3), &json!(true))
    );
    client.nothing_more();
}

#[test]
fn the_servers_end_is_ours() {
    for (method, params, code) in [
        ("x/exit", json!({ "code": 0 }), 0),
        ("x/exit", json!({ "code": 7 }), 7),
        ("x/abort", json!({}), 134),
    ] {
        let mut client = Client::start();
        client.send(&json!({ "method": method, "params": params }));
        assert_eq!(client.exit_code(), code, "{method} {params}");
    }
}

#[test]
fn a_server_that_says_no_more_is_ended() {
    let mut client = Client::legacy();
    client.send(&json!({ "method": "x/close" }));
    // Its standard input closes, and that ends it.
    assert_eq!(client.exit_code(), 0);
}

#[test]
fn a_client_that_reads_no_more_ends_the_server() {
    let (input, output) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
    drop(output.0);
    let settings = settings();
    let command = (
        proxy_support::example("wire-server").into_os_string(),
        vec![],
    );
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut to_relay = input.1;
    std::io::Write::write_all(&mut to_relay, b"{\"id\":1,\"method\":\"ping\"}\n").unwrap();
    let code = runtime.block_on(rewind_mcp::proxy::relay(
        Script::new(),
        settings,
        command,
        input.0,
        output.1,
    ));
    assert_eq!(code.unwrap(), 0);
}

#[test]
fn a_server_that_cannot_be_started_is_told_as_shells_do() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain");
    std::fs::write(&plain, "").unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for (program, code) in [(folder.path().join("missing"), 127), (plain, 126)] {
        let settings = settings();
        let command = (program.clone().into_os_string(), vec![]);
        let error = runtime
            .block_on(rewind_mcp::proxy::relay(
                Script::new(),
                settings,
                command,
                std::io::empty(),
                std::io::sink(),
            ))
            .unwrap_err();
        assert_eq!(error.exit_code(), code);
        assert!(
            error.to_string().contains(program.to_str().unwrap()),
            "{error}"
        );
    }
}
