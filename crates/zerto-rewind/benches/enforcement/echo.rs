//! The server behind: it answers every request at once, over its standard streams or over HTTP.

use std::{
    io::{BufRead as _, Write as _},
    net::TcpListener,
};

use axum::{
    Router,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
    routing::post,
};
use serde_json::{Value, json};

use crate::Result;

/// Starts this program as the server.
pub const ARGUMENT: &str = "--echo-server";

pub fn on_stdio() -> Result<()> {
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut line = String::new();
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if let Some(answer) = answer(line.as_bytes()) {
            output.write_all(format!("{answer}\n").as_bytes())?;
            output.flush()?;
        }
    }
}

/// Serves on a free port until this process ends; the URL.
pub fn over_http() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            axum::serve(listener, Router::new().route("/mcp", post(http))).await
        })
    });
    Ok(format!("http://{address}/mcp"))
}

async fn http(body: String) -> Response {
    match answer(body.as_bytes()) {
        Some(answer) => ([(CONTENT_TYPE, "application/json")], answer.to_string()).into_response(),
        None => StatusCode::ACCEPTED.into_response(),
    }
}

fn answer(message: &[u8]) -> Option<Value> {
    let message: Value = serde_json::from_slice(message).ok()?;
    let id = message.get("id")?;
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"], "capabilities": { "tools": {} },
            "serverInfo": { "name": "echo", "version": "1" },
        }),
        "tools/list" => {
            json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] })
        }
        _ => {
            json!({ "content": [{ "type": "text", "text": "hello, this is an ordinary answer" }] })
        }
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}
