//! A server for tests of the HTTP forms: it notes what it gets, and answers a call as the call's argument `how` says.
//!
//! - `json` (also where nothing is said), `events` (two progress notifications first), `pretty` (JSON on several lines)
//! - `broken`: a stream that ends after its first event; `resumed`: the same with an id, and a GET brings the answer
//! - `hang`: no answer; `status`: this status and body; `refused`: -32020 unless `mcp-param-vm` is there
#![allow(dead_code)]
use std::{
    sync::{Arc, Condvar, Mutex},
    time::Instant,
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use super::script::SOON;

#[derive(Clone, Debug)]
pub struct Received {
    pub method: Method,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    pub message: Value,
}

impl Received {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

#[derive(Default)]
struct Inner {
    received: Mutex<Vec<Received>>,
    changed: Condvar,
    gone: Mutex<usize>,
}

#[derive(Clone)]
pub struct Server {
    pub url: String,
    inner: Arc<Inner>,
}

impl Server {
    pub fn start() -> Self {
        let inner = Arc::new(Inner::default());
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let url = format!("http://{}/mcp", socket.local_addr().unwrap());
        let app = Router::new().fallback(answer).with_state(inner.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime
                .block_on(async {
                    axum::serve(tokio::net::TcpListener::from_std(socket).unwrap(), app).await
                })
                .unwrap();
        });
        Self { url, inner }
    }

    pub fn received(&self) -> Vec<Received> {
        self.inner.received.lock().unwrap().clone()
    }

    /// The requests whose message has this method (or the HTTP method of those without).
    pub fn of(&self, method: &str) -> Vec<Received> {
        let of =
            |received: &Received| received.message["method"] == method || received.method == method;
        self.received().into_iter().filter(of).collect()
    }

    /// Waits for so many of them.
    pub fn wait(&self, method: &str, times: usize) -> Received {
        let until = Instant::now() + SOON;
        loop {
            let found = self.of(method);
            if let Some(last) = times.checked_sub(1).and_then(|last| found.get(last)) {
                return last.clone();
            }
            let received = self.inner.received.lock().unwrap();
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no {method} x{times} among {received:#?}");
            drop(
                self.inner
                    .changed
                    .wait_timeout(received, left.min(SOON / 100))
                    .unwrap(),
            );
        }
    }

    /// Waits until so many streams were left before their end.
    pub fn wait_gone(&self, times: usize) {
        let until = Instant::now() + SOON;
        let mut gone = self.inner.gone.lock().unwrap();
        while *gone < times {
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{gone} streams were left");
            gone = self.inner.changed.wait_timeout(gone, left).unwrap().0;
        }
    }
}

fn events(parts: Vec<String>, hang: Option<Left>) -> Response {
    let stream = async_stream::stream! {
        for part in parts {
            yield Ok::<_, std::io::Error>(part);
        }
        if let Some(left) = hang {
            std::future::pending::<()>().await;
            drop(left);
        }
    };
    (
        [(header::CONTENT_TYPE, "text/event-stream")],
        Body::from_stream(stream),
    )
        .into_response()
}

/// Counts a stream that its reader has left.
struct Left(Arc<Inner>);

impl Drop for Left {
    fn drop(&mut self) {
        *self.0.gone.lock().unwrap() += 1;
        self.0.changed.notify_all();
    }
}

async fn answer(State(inner): State<Arc<Inner>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX)
        .await
        .unwrap()
        .to_vec();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let received = Received {
        method: parts.method.clone(),
        headers: parts.headers,
        body,
        message,
    };
    inner.received.lock().unwrap().push(received.clone());
    inner.changed.notify_all();
    let message = &received.message;
    let id = &message["id"];
    let result = |result: Value| {
        axum::Json(json!({ "jsonrpc": "2.0", "id": id, "result": result })).into_response()
    };
    match (received.method, message["method"].as_str().unwrap_or_default()) {
        (Method::GET, _) if received.headers.get("last-event-id").is_some_and(|last| last == "e1") => {
            let calls = inner.received.lock().unwrap();
            let call = calls.iter().rev().find(|call| call.message["method"] == "tools/call").unwrap();
            let answer = json!({ "jsonrpc": "2.0", "id": call.message["id"], "result": { "content": [], "resumed": true } });
            events(vec![format!("id: e2\ndata: {answer}\n\n")], None)
        }
        (Method::GET, _) => {
            let unasked = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
            events(vec![format!("data: {unasked}\n\n")], Some(Left(inner)))
        }
        (Method::DELETE, _) => StatusCode::NO_CONTENT.into_response(),
        (_, "initialize") => (
            [("mcp-session-id", "s1")],
            result(json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "http", "version": "1" } })),
        )
            .into_response(),
        (_, "tools/list") => {
            let schema = json!({ "type": "object", "properties": { "vm": { "type": "string", "x-mcp-header": "Vm" } } });
            let tool = |name| json!({ "name": name, "inputSchema": schema });
            result(json!({ "tools": [tool("listed"), tool("when"), tool("free")] }))
        }
        (_, "tools/call" | "subscriptions/listen") => call(&inner, &received.headers, message),
        (_, "ping") => result(json!({})),
        _ if id.is_null() || message["method"].is_null() => StatusCode::ACCEPTED.into_response(),
        _ => (
            StatusCode::NOT_FOUND,
            axum::Json(json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "no such method" } })),
        )
            .into_response(),
    }
}

fn call(inner: &Arc<Inner>, headers: &HeaderMap, message: &Value) -> Response {
    let (id, params) = (&message["id"], &message["params"]);
    let arguments = &params["arguments"];
    let done = json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [{ "type": "text", "text": "done" }] } });
    let progress = |value: u64| {
        let token = &params["_meta"]["progressToken"];
        json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": token, "progress": value } })
    };
    match arguments["how"].as_str().unwrap_or("json") {
        "json" => axum::Json(done).into_response(),
        "pretty" => (
            [(header::CONTENT_TYPE, "application/json; charset=utf-8"), (header::ETAG, "\"kept\"")],
            format!("{{\r\n  \"jsonrpc\": \"2.0\",\n  \"id\": {id},\n  \"result\": {{\n    \"x\": 1.50\n  }}\n}}\n"),
        )
            .into_response(),
        "events" => events(
            vec![
                format!(": hello\n\nevent: message\ndata: {}\n\n", progress(0)),
                format!("id: 1\r\ndata:{}\r\n\r\n", progress(1)),
                format!("data: {done}\n\n"),
            ],
            None,
        ),
        "broken" => events(vec![format!("data: {}\n\n", progress(0))], None),
        "resumed" => events(vec!["id: e1\nretry: 1\ndata:\n\n".into()], None),
        "hang" => events(vec![format!("data: {}\n\n", progress(0))], Some(Left(inner.clone()))),
        "status" => (
            StatusCode::from_u16(arguments["status"].as_u64().unwrap() as u16).unwrap(),
            [("x-more", "kept"), ("content-type", arguments["type"].as_str().unwrap_or("text/plain"))],
            arguments["body"].as_str().unwrap_or_default().replace("$id", &id.to_string()),
        )
            .into_response(),
        "refused" if !headers.contains_key("mcp-param-vm") => (
            StatusCode::BAD_REQUEST,
            axum::Json(json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32020, "message": "Mcp-Param-Vm is missing" } })),
        )
            .into_response(),
        "refused" => axum::Json(done).into_response(),
        how => panic!("{how}"),
    }
}
