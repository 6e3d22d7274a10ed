//! A server for tests of the relay: it does with its standard streams what the messages tell it to, byte for byte.
//!
//! Every byte that it receives is appended to the file that `WIRE_LOG` names, before anything is done about it.
//!
//! - `tools/call`: answers with the argument `result` (or `error`), after `say` (an array of lines); with `silent`, never.
//! - `x/say` prints `lines` as they are, `x/bytes` the bytes, `x/flood` a line of `bytes` bytes, with the id `id` if given.
//! - `x/exit` ends with `code`; `x/abort` by SIGABRT; `x/close` closes standard output and goes on reading.
//! - `initialize`, `ping`, `tools/list` (what the last `x/tools` said) as usual.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::exit
)]
use std::{
    fs::{File, OpenOptions},
    io::{BufRead, Read, Write},
};

use serde_json::{Value, json};

struct Server {
    out: Box<dyn Write>,
    tools: Value,
}

fn main() {
    let mut log = std::env::var_os("WIRE_LOG").map(|path| {
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .unwrap()
    });
    let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object", "properties": { "vm": { "type": "string" } } } });
    let mut server = Server {
        out: Box::new(File::from(stdout())),
        tools: json!([tool("echo"), tool("listed"), tool("when"), tool("denied")]),
    };
    let mut input = std::io::stdin().lock();
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.by_ref().read_until(b'\n', &mut line).unwrap() == 0 {
            return;
        }
        if let Some(log) = &mut log {
            log.write_all(&line).unwrap();
        }
        if let Ok(message) = serde_json::from_slice(&line) {
            server.received(&message);
        }
    }
}

/// Standard output without a buffer.
#[cfg(unix)]
fn stdout() -> std::os::fd::OwnedFd {
    std::os::fd::AsFd::as_fd(&std::io::stdout())
        .try_clone_to_owned()
        .unwrap()
}
#[cfg(windows)]
fn stdout() -> std::os::windows::io::OwnedHandle {
    std::os::windows::io::AsHandle::as_handle(&std::io::stdout())
        .try_clone_to_owned()
        .unwrap()
}

impl Server {
    fn say(&mut self, line: &[u8]) {
        let mut line = line.to_vec();
        line.push(b'\n');
        self.out.write_all(&line).unwrap();
    }

    fn answer(&mut self, id: &Value, result: &Value) {
        if !id.is_null() {
            self.say(
                json!({ "jsonrpc": "2.0", "id": id, "result": result })
                    .to_string()
                    .as_bytes(),
            );
        }
    }

    fn received(&mut self, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => self.answer(
                id,
                &json!({
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": { "tools": {} },
                    "serverInfo": { "name": "wire", "version": "1" },
                    "_meta": { "pid": std::process::id() },
                }),
            ),
            "ping" => self.answer(id, &json!({})),
            "tools/list" => {
                let tools = self.tools.clone();
                self.answer(id, &json!({ "tools": tools }));
            }
            "tools/call" => self.call(id, &params["arguments"]),
            "x/tools" => {
                self.tools = params["tools"].clone();
                self.answer(id, &json!({}));
            }
            "x/say" => {
                for line in params["lines"].as_array().unwrap() {
                    self.say(line.as_str().unwrap().as_bytes());
                }
            }
            "x/bytes" => {
                let bytes: Vec<u8> = params["bytes"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|byte| byte.as_u64().unwrap() as u8)
                    .collect();
                self.out.write_all(&bytes).unwrap();
            }
            "x/flood" => {
                let fill = "x".repeat(params["bytes"].as_u64().unwrap() as usize);
                let line = match &params["id"] {
                    Value::Null => fill,
                    id => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"fill":"{fill}"}}}}"#),
                };
                self.say(line.as_bytes());
            }
            "x/exit" => std::process::exit(params["code"].as_i64().unwrap() as i32),
            "x/abort" => std::process::abort(),
            "x/close" => {
                self.out = Box::new(std::io::sink());
                // The descriptor itself is still standard output: it is closed with this copy only where nothing else has it.
                #[cfg(unix)]
                let _ = rustix::stdio::dup2_stdout(File::open("/dev/null").unwrap());
            }
            _ => {}
        }
    }

    fn call(&mut self, id: &Value, arguments: &Value) {
        for line in arguments["say"].as_array().into_iter().flatten() {
            self.say(line.as_str().unwrap().as_bytes());
        }
        match arguments {
            _ if arguments["silent"] == true => {}
            _ if !arguments["error"].is_null() => {
                self.say(
                    json!({ "jsonrpc": "2.0", "id": id, "error": arguments["error"] })
                        .to_string()
                        .as_bytes(),
                );
            }
            _ if !arguments["result"].is_null() => self.answer(id, &arguments["result"]),
            _ => self.answer(
                id,
                &json!({ "content": [{ "type": "text", "text": "done" }] }),
            ),
        }
    }
}
