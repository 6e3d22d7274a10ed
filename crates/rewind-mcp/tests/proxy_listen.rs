//! A server behind a URL, offered over streamable HTTP on this host.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]
mod proxy_support;

use std::{io::Write as _, net::TcpStream};

use proxy_support::{script::Script, settings, upstream::Server};
use reqwest::{
    Client, Method, Response, StatusCode,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use rewind_mcp::proxy::{Listener, RECEIPT_KEY, REFUSAL_KEY, Settings, Upstream, extra_headers};
use serde_json::{Value, json};

struct Proxy {
    server: Server,
    script: Script,
    url: String,
    client: Client,
}

impl Proxy {
    fn start() -> Self {
        Self::with(settings(), &[])
    }

    fn with(settings: Settings, extra: &[(&str, &str)]) -> Self {
        let (server, script) = (Server::start(), Script::new());
        let extra = extra_headers(
            extra
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into())),
        );
        let upstream = Upstream::new(&server.url, extra.unwrap()).unwrap();
        let domain = script.clone();
        let (send, url) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = Listener::bind("127.0.0.1:0".parse().unwrap())
                    .await
                    .unwrap();
                send.send(listener.url(&upstream).unwrap()).unwrap();
                listener.serve(domain, settings, upstream).await.unwrap()
            })
        });
        let client = Client::builder().no_proxy().build().unwrap();
        Self {
            server,
            script,
            url: url.recv().unwrap(),
            client,
        }
    }

    async fn send(&self, headers: &[(&str, &str)], body: impl Into<reqwest::Body>) -> Response {
        let mut all = HeaderMap::new();
        all.insert("content-type", HeaderValue::from_static("application/json"));
        all.insert(
            "accept",
            HeaderValue::from_static("application/json, text/event-stream"),
        );
        for (name, value) in headers {
            all.insert(
                HeaderName::try_from(*name).unwrap(),
                HeaderValue::try_from(*value).unwrap(),
            );
        }
        self.client
            .post(&self.url)
            .headers(all)
            .body(body)
            .send()
            .await
            .unwrap()
    }

    async fn post(&self, message: &Value) -> Response {
        self.send(&[], message.to_string()).await
    }

    async fn call(&self, id: Value, tool: &str, arguments: Value) -> Response {
        self.post(&call(id, tool, &arguments)).await
    }
}

fn call(id: Value, tool: &str, arguments: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": arguments } })
}

async fn value(response: Response) -> Value {
    let body = response.bytes().await.unwrap();
    serde_json::from_slice(&body).unwrap_or_else(|error| panic!("{error}: {body:?}"))
}

/// The messages of a whole stream.
async fn messages(response: Response) -> Vec<Value> {
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let body = response.text().await.unwrap();
    let data = body.lines().filter_map(|line| line.strip_prefix("data:"));
    data.map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

#[tokio::test]
async fn what_is_not_held_passes_with_status_headers_and_bytes() {
    let proxy = Proxy::start();
    let body = r#" { "jsonrpc":"2.0", "id":1.0,"method":"tools/call","params":{"name":"free","arguments":{"how":"pretty"}} }"#;
    let response = proxy
        .send(
            &[
                ("x-mine", "1"),
                ("authorization", "Bearer me"),
                ("connection", "x-hop"),
                ("x-hop", "1"),
                ("te", "trailers"),
                ("accept-encoding", "gzip"),
            ],
            body,
        )
        .await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["etag"], "\"kept\"");
    assert_eq!(
        response.headers()["content-type"],
        "application/json; charset=utf-8"
    );
    assert!(
        response
            .text()
            .await
            .unwrap()
            .starts_with("{\r\n  \"jsonrpc\"")
    );
    let received = proxy.server.wait("tools/call", 1);
    assert_eq!(received.body, body.as_bytes());
    assert_eq!(
        (received.header("x-mine"), received.header("authorization")),
        (Some("1"), Some("Bearer me"))
    );
    for hop in ["x-hop", "te", "accept-encoding"] {
        assert_eq!(received.header(hop), None, "{hop}");
    }
    assert!(proxy.server.url.contains(received.header("host").unwrap()));

    let teapot = json!({ "how": "status", "status": 418, "body": "short" });
    let response = proxy.call(json!(2), "free", teapot).await;
    assert_eq!(
        (
            response.status(),
            response.headers()["x-more"].to_str().unwrap()
        ),
        (StatusCode::IM_A_TEAPOT, "kept")
    );
    assert_eq!(response.text().await.unwrap(), "short");

    let response = proxy
        .call(json!(3), "free", json!({ "how": "events" }))
        .await;
    let text = response.text().await.unwrap();
    assert!(
        text.starts_with(": hello\n\nevent: message\ndata: {"),
        "{text}"
    );
    assert!(text.contains("id: 1\r\ndata:{"), "{text}");
    assert_eq!(
        proxy
            .post(&json!({ "jsonrpc": "2.0", "method": "notifications/x" }))
            .await
            .status(),
        202
    );
    assert_eq!(
        proxy
            .post(&json!({ "jsonrpc": "2.0", "id": 9, "result": {} }))
            .await
            .status(),
        202
    );
    assert_eq!(proxy.script.events(), Vec::<String>::new());
}

#[tokio::test]
async fn events_pass_as_they_come() {
    let proxy = Proxy::start();
    let mut response = proxy.call(json!(1), "free", json!({ "how": "hang" })).await;
    assert!(
        response
            .chunk()
            .await
            .unwrap()
            .unwrap()
            .starts_with(b"data: ")
    );
    // The client leaves, and the server sees it.
    drop(response);
    let server = proxy.server.clone();
    tokio::task::spawn_blocking(move || server.wait_gone(1))
        .await
        .unwrap();
    let mut stream = proxy
        .client
        .get(&proxy.url)
        .header("accept", "text/event-stream")
        .send()
        .await
        .unwrap();
    assert!(
        stream
            .chunk()
            .await
            .unwrap()
            .unwrap()
            .starts_with(b"data: ")
    );
}

#[tokio::test]
async fn a_listed_call_is_guarded_first() {
    let proxy = Proxy::start();
    let waiting = json!({ "guard": { "wait": true } });
    let held = tokio::spawn({
        let (client, url, call) = (
            proxy.client.clone(),
            proxy.url.clone(),
            call(json!(1), "listed", &waiting).to_string(),
        );
        async move {
            client
                .post(url)
                .header("content-type", "application/json")
                .body(call)
                .send()
                .await
                .unwrap()
        }
    });
    guarding(&proxy, 1).await;
    assert_eq!(
        value(proxy.call(json!(2), "free", json!({})).await).await["id"],
        2
    );
    assert_eq!(proxy.server.of("tools/call").len(), 1);
    proxy.script.release();
    let response = held.await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(value(response).await["result"]["_meta"][RECEIPT_KEY].is_object());
    assert_eq!(
        proxy.script.events(),
        ["guarding listed", "guarded listed", "Ok listed"]
    );

    for how in ["pretty", "events"] {
        let response = proxy
            .call(json!("x"), "listed", json!({ "how": how }))
            .await;
        let answer = if how == "pretty" {
            value(response).await
        } else {
            messages(response).await.pop().unwrap()
        };
        assert!(
            answer["result"]["_meta"][RECEIPT_KEY].is_object(),
            "{answer}"
        );
    }
    let response = proxy
        .call(json!(3), "listed", json!({ "guard": { "fail": "down" } }))
        .await;
    assert_eq!(response.status(), 200);
    assert_eq!(
        value(response).await["result"]["_meta"][REFUSAL_KEY]["code"],
        "zvm_unreachable"
    );
    let response = proxy.call(json!(4), "denied", json!({})).await;
    assert_eq!(
        value(response).await["result"]["_meta"][REFUSAL_KEY]["code"],
        "denied"
    );
    assert_eq!(proxy.server.of("tools/call").len(), 4);
}

#[tokio::test]
async fn progress_flows_while_a_call_is_held() {
    let proxy = Proxy::start();
    for (id, how, last) in [(1, "events", 2), (2, "json", 0), (3, "pretty", 0)] {
        let mut message = call(
            json!(id),
            "listed",
            &json!({ "guard": { "progress": 2 }, "how": how }),
        );
        message["params"]["_meta"] = json!({ "progressToken": "p" });
        let messages = messages(proxy.post(&message).await).await;
        let (answer, progress) = messages.split_last().unwrap();
        assert!(
            answer["result"]["_meta"][RECEIPT_KEY].is_object(),
            "{answer}"
        );
        assert!(progress.len() > last);
        let values: Vec<f64> = progress
            .iter()
            .map(|message| message["params"]["progress"].as_f64().unwrap())
            .collect();
        assert!(values.is_sorted_by(|a, b| a < b), "{values:?}");
    }
    // What the server says with a status has no other place in a stream that has begun.
    let mut message = call(
        json!(4),
        "listed",
        &json!({ "guard": { "progress": 1 }, "how": "status", "status": 503 }),
    );
    message["params"]["_meta"] = json!({ "progressToken": "p" });
    let messages = messages(proxy.post(&message).await).await;
    assert_eq!(messages.last().unwrap()["error"]["code"], -32603);
    proxy.script.wait("Lost listed", 1);
}

#[tokio::test]
async fn a_client_that_leaves_cancels_what_is_held() {
    let proxy = Proxy::start();
    let mut message = call(json!(1), "listed", &json!({ "guard": { "wait": true } }));
    tokio::select! {
        response = proxy.post(&message) => panic!("{response:?}"),
        () = guarding(&proxy, 1) => {}
    }
    wait(&proxy, "failed listed", 1).await;
    // The same where the answer is a stream that has begun.
    message["params"]["_meta"] = json!({ "progressToken": "p" });
    let response = proxy.post(&message).await;
    guarding(&proxy, 2).await;
    drop(response);
    wait(&proxy, "failed listed", 2).await;
    assert_eq!(proxy.server.of("tools/call").len(), 0);
}

async fn wait(proxy: &Proxy, event: &str, times: usize) {
    let (script, event) = (proxy.script.clone(), event.to_owned());
    tokio::task::spawn_blocking(move || script.wait(&event, times))
        .await
        .unwrap();
}

async fn guarding(proxy: &Proxy, times: usize) {
    wait(proxy, "guarding listed", times).await;
}

#[tokio::test]
async fn a_cancellation_reaches_a_held_call() {
    let proxy = Proxy::start();
    let initialize = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "clientInfo": { "name": "c", "version": "1" } } });
    let session = proxy.post(&initialize).await.headers()["mcp-session-id"].clone();
    let session = [("mcp-session-id", session.to_str().unwrap())];
    for (times, headers) in [(1, &session[..]), (2, &[])] {
        let message = call(json!(7), "listed", &json!({ "guard": { "wait": true } })).to_string();
        let sending = proxy.send(headers, message);
        let cancelling = async {
            guarding(&proxy, times).await;
            let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } });
            assert_eq!(proxy.send(headers, cancel.to_string()).await.status(), 202);
        };
        let (response, ()) = tokio::join!(sending, cancelling);
        assert_eq!(response.status(), 202);
        wait(&proxy, "failed listed", times).await;
    }
    assert_eq!(proxy.server.of("tools/call").len(), 0);
    assert_eq!(proxy.server.of("notifications/cancelled").len(), 0);
    // The session is the server's: it ends where the client says so.
    let ended = proxy
        .client
        .delete(&proxy.url)
        .header("mcp-session-id", "s1")
        .send()
        .await
        .unwrap();
    assert_eq!(ended.status(), 204);
    assert_eq!(
        proxy.server.wait("DELETE", 1).header("mcp-session-id"),
        Some("s1")
    );
}

#[tokio::test]
async fn an_answer_may_come_on_a_later_stream_of_the_session() {
    let proxy = Proxy::start();
    proxy
        .post(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {} }))
        .await;
    let session = [("mcp-session-id", "s1")];
    let message = call(json!(7), "listed", &json!({ "how": "resumed" })).to_string();
    let first = proxy.send(&session, message).await.text().await.unwrap();
    assert!(first.starts_with("id: e1\n"), "{first}");
    let later = proxy
        .client
        .get(&proxy.url)
        .header("mcp-session-id", "s1")
        .header("last-event-id", "e1")
        .send()
        .await
        .unwrap();
    let messages = messages(later).await;
    assert!(
        messages[0]["result"]["_meta"][RECEIPT_KEY].is_object(),
        "{messages:?}"
    );
    wait(&proxy, "Ok listed", 1).await;
    // Without a session there is no later stream.
    let message = call(json!(8), "listed", &json!({ "how": "resumed" })).to_string();
    proxy.send(&[], message).await.text().await.unwrap();
    wait(&proxy, "Lost listed", 1).await;
}

#[tokio::test]
async fn headers_that_contradict_the_body_are_refused() {
    let proxy = Proxy::start();
    let mut message = call(json!(1), "free", &json!({}));
    message["params"]["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
    for header in [
        ("mcp-method", "tools/list"),
        ("mcp-name", "listed"),
        ("mcp-name", "=?base64?bGlzdGVk?="),
        ("mcp-protocol-version", "2025-11-25"),
    ] {
        let response = proxy.send(&[header], message.to_string()).await;
        assert_eq!(response.status(), 400, "{header:?}");
        let answer = value(response).await;
        assert_eq!(
            (&answer["error"]["code"], &answer["id"]),
            (&json!(-32020), &json!(1)),
            "{header:?}"
        );
    }
    let good = [
        ("mcp-method", "tools/call"),
        ("mcp-name", "free"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-param-vm", "x"),
    ];
    assert_eq!(proxy.send(&good, message.to_string()).await.status(), 200);
    let received = proxy.server.wait("tools/call", 1);
    for (name, value) in good {
        assert_eq!(received.header(name), Some(value));
    }
}

#[tokio::test]
async fn only_this_host_comes_in() {
    let proxy = Proxy::start();
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for header in [
        ("host", "example.com"),
        ("origin", "https://example.com"),
        ("origin", "null"),
    ] {
        assert_eq!(
            proxy.send(&[header], ping).await.status(),
            403,
            "{header:?}"
        );
    }
    assert_eq!(
        proxy
            .send(&[("origin", "http://localhost:3000")], ping)
            .await
            .status(),
        200
    );
    assert_eq!(proxy.server.received().len(), 1);
    assert_eq!(proxy.server.wait("ping", 1).header("origin"), None);
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let error = Listener::bind(address.parse().unwrap()).await.unwrap_err();
        assert!(error.to_string().contains("loopback"), "{error}");
    }
}

#[tokio::test]
async fn what_is_no_single_plain_message_is_refused() {
    let proxy = Proxy::with(
        Settings {
            longest: 100_000,
            ..settings()
        },
        &[],
    );
    let call = r#""method":"tools/call","params":{"name":"listed"}"#;
    for (headers, body, status) in [
        (vec![], "junk".to_owned(), 400),
        (vec![], format!("[{{\"id\":1,{call}}}]"), 400),
        (
            vec![],
            format!("{{\"id\":1,{call},\"method\":\"ping\"}}"),
            400,
        ),
        (
            vec![],
            format!("{{\"id\":1,{call}}}{{\"id\":2,{call}}}"),
            400,
        ),
        (vec![], "x".repeat(100_001), 413),
        (
            vec![("content-type", "text/plain")],
            format!("{{\"id\":1,{call}}}"),
            415,
        ),
        (
            vec![("content-encoding", "gzip")],
            format!("{{\"id\":1,{call}}}"),
            415,
        ),
    ] {
        let response = proxy.send(&headers, body).await;
        assert_eq!(response.status(), status);
        assert!(value(response).await["error"]["code"].is_i64());
    }
    let other = proxy.url.replace("/mcp", "/other");
    assert_eq!(proxy.client.post(other).send().await.unwrap().status(), 404);
    let put = proxy
        .client
        .request(Method::PUT, &proxy.url)
        .send()
        .await
        .unwrap();
    assert_eq!(put.status(), 405);
    assert_eq!(proxy.server.received().len(), 0);

    // A client that never ends its message keeps nobody else from being served.
    let address = proxy
        .url
        .trim_start_matches("http://")
        .split('/')
        .next()
        .unwrap();
    let mut half = TcpStream::connect(address).unwrap();
    half.write_all(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{").unwrap();
    assert_eq!(
        proxy
            .send(&[], r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)
            .await
            .status(),
        200
    );
}

#[tokio::test]
async fn the_environments_headers_are_added_and_win() {
    let proxy = Proxy::with(
        settings(),
        &[("ZERTO_REWIND_PROXY_HEADER_AUTHORIZATION", "Bearer ours")],
    );
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    proxy
        .send(&[("authorization", "Bearer theirs")], ping)
        .await;
    assert_eq!(
        proxy.server.wait("ping", 1).header("authorization"),
        Some("Bearer ours")
    );
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_a_bad_gateway() {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp?key=s3cret", socket.local_addr().unwrap());
    drop(socket);
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    let upstream = Upstream::new(&url, HeaderMap::new()).unwrap();
    let here = listener.url(&upstream).unwrap();
    tokio::spawn(listener.serve(Script::new(), settings(), upstream));
    let client = Client::builder().no_proxy().build().unwrap();
    let response = client
        .post(here)
        .json(&json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 502);
    let answer = value(response).await;
    assert_eq!(answer["id"], 1);
    assert!(!answer.to_string().contains("s3cret"));
}
