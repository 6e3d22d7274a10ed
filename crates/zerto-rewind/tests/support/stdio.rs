//! An MCP client that speaks plain lines, so that tests see what is on the wire.
#![allow(dead_code)]

use std::{path::Path, process::Stdio};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    time::timeout,
};

use super::{PATIENCE, program};

/// A running server.
pub struct Server {
    pub child: Child,
    stdin: Option<ChildStdin>,
    stdout: Lines<BufReader<ChildStdout>>,
    stderr: ChildStderr,
    next_id: u64,
}

impl Server {
    pub fn start(config: &Path) -> Self {
        Self::of(&mut program(env!("CARGO_BIN_EXE_zerto-rewind-mcp"), config))
    }

    /// What this command starts.
    pub fn of(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()).lines(),
            stderr: child.stderr.take().unwrap(),
            child,
            next_id: 1,
        }
    }

    /// A server that was initialised in this older revision.
    pub async fn initialized(config: &Path, revision: &str) -> Self {
        let mut server = Self::start(config);
        let result = server.initialize(revision).await;
        assert_eq!(result["protocolVersion"], revision);
        server
    }

    pub async fn initialize(&mut self, revision: &str) -> Value {
        let params = json!({
            "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "wire-client", "version": "1" },
        });
        let result = self.request("initialize", params).await;
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        result["result"].clone()
    }

    pub async fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin
            .write_all(format!("{message}\n").as_bytes())
            .await
            .unwrap();
        stdin.flush().await.unwrap();
    }

    /// Sends a line as it is.
    pub async fn raw(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
    }

    /// Sends a request; its id.
    pub async fn ask(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
        id
    }

    /// Sends a request and waits for its answer; notifications before it are dropped.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params).await;
        loop {
            let message = self.message().await;
            if message["id"] == id {
                return message;
            }
        }
    }

    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        self.request("tools/call", params).await["result"].clone()
    }

    pub async fn message(&mut self) -> Value {
        self.message_or_end().await.expect("the server ended")
    }

    pub async fn message_or_end(&mut self) -> Option<Value> {
        let line = timeout(PATIENCE, self.stdout.next_line())
            .await
            .expect("the server is silent")
            .unwrap()?;
        Some(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}")))
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits for its end; the exit code and what it logged.
    pub async fn end(mut self) -> (i32, String) {
        let mut log = String::new();
        let read = self.stderr.read_to_string(&mut log);
        let (status, read) = timeout(PATIENCE, async { tokio::join!(self.child.wait(), read) })
            .await
            .expect("the server does not end");
        read.unwrap();
        (status.unwrap().code().unwrap_or(-1), log)
    }
}
