//! The relay with a client's end of it in the test's hands, and `wire-server` behind it.
#![allow(dead_code)]
pub mod script;
pub mod upstream;

use std::{
    io::{BufRead, BufReader, PipeReader, PipeWriter, Write},
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, channel},
    thread::JoinHandle,
};

use rewind_mcp::proxy::{MAX_MESSAGE, Settings, Upstream, bridge, relay};
use script::{SOON, Script};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A program of `examples/`, which `cargo test` builds with the tests.
pub fn example(name: &str) -> PathBuf {
    let deps = std::env::current_exe().unwrap();
    let folder = deps.parent().unwrap().parent().unwrap().join("examples");
    let program = folder
        .join(name)
        .with_extension(std::env::consts::EXE_EXTENSION);
    assert!(
        program.exists(),
        "{} is missing: cargo build -p rewind-mcp --examples",
        program.display()
    );
    program
}

pub fn settings() -> Settings {
    Settings {
        name: None,

        longest: MAX_MESSAGE,
    }
}

pub struct Client {
    input: Option<PipeWriter>,
    lines: Receiver<Vec<u8>>,
    relay: Option<JoinHandle<u8>>,
    folder: TempDir,
    pub script: Script,
    pings: u64,
}

impl Client {
    pub fn start() -> Self {
        Self::with(Script::new(), settings())
    }

    /// Started, and initialized as a legacy client.
    pub fn legacy() -> Self {
        let mut client = Self::start();
        client.initialize();
        client
    }

    pub fn with(script: Script, settings: Settings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("received");
        let domain = script.clone();
        // The server is told by its environment where to write; it is started by the relay, so `env` sets it.
        let command = (
            "env".into(),
            vec![
                format!("WIRE_LOG={}", log.display()).into(),
                example("wire-server").into_os_string(),
            ],
        );
        Self::of(script, folder, move |input, output| async move {
            relay(domain, settings, command, input, output)
                .await
                .unwrap()
        })
    }

    /// A client of the server behind `url`.
    pub fn of_url(url: &str) -> Self {
        let script = Script::new();
        let (domain, upstream) = (
            script.clone(),
            Upstream::new(url, Default::default()).unwrap(),
        );
        let folder = tempfile::tempdir().unwrap();
        Self::of(script, folder, |input, output| {
            bridge(domain, settings(), upstream, input, output)
        })
    }

    fn of<F: Future<Output = u8>>(
        script: Script,
        folder: TempDir,
        proxy: impl FnOnce(PipeReader, PipeWriter) -> F + Send + 'static,
    ) -> Self {
        let (input, ours) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
        let relay = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(proxy(input.0, ours.1))
        });
        let (send, lines) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(ours.0);
            loop {
                let mut line = Vec::new();
                if output.read_until(b'\n', &mut line).unwrap() == 0 || send.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            input: Some(input.1),
            lines,
            relay: Some(relay),
            folder,
            script,
            pings: 0,
        }
    }

    pub fn initialize(&mut self) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "tester", "version": "1" } } }));
        let answer = self.answer();
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        answer
    }

    pub fn raw(&mut self, bytes: impl AsRef<[u8]>) {
        self.input
            .as_mut()
            .unwrap()
            .write_all(bytes.as_ref())
            .unwrap();
    }

    pub fn send(&mut self, message: &Value) {
        self.raw(format!("{message}\n"));
    }

    pub fn call(&mut self, id: impl Into<Value>, tool: &str, arguments: &Value) {
        let id: Value = id.into();
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": arguments } }));
    }

    /// Has the server say these lines.
    pub fn have_said(&mut self, lines: &[&str]) {
        self.send(&json!({ "jsonrpc": "2.0", "method": "x/say", "params": { "lines": lines } }));
    }

    /// The next line, with its line end.
    pub fn line(&mut self) -> Vec<u8> {
        self.lines
            .recv_timeout(SOON)
            .expect("a line from the relay")
    }

    pub fn text(&mut self) -> String {
        String::from_utf8(self.line()).unwrap()
    }

    pub fn answer(&mut self) -> Value {
        let line = self.line();
        serde_json::from_slice(&line)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&line)))
    }

    /// Everything that was sent before has been decided upon, and nothing was said meanwhile.
    pub fn nothing_more(&mut self) {
        assert_eq!(self.until_pong(), Vec::<Value>::new());
    }

    /// What comes until the server answers a ping that is sent now.
    pub fn until_pong(&mut self) -> Vec<Value> {
        self.pings += 1;
        let id = format!("ping-{}", self.pings);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }));
        let mut before = Vec::new();
        loop {
            let answer = self.answer();
            if answer["id"] == id {
                return before;
            }
            before.push(answer);
        }
    }

    /// What the server has received until now, byte for byte.
    pub fn received(&mut self) -> Vec<u8> {
        std::fs::read(self.folder.path().join("received")).unwrap_or_default()
    }

    /// The ids of the `tools/call`s that the server has received.
    pub fn calls_received(&mut self) -> Vec<Value> {
        calls(&self.folder.path().join("received"))
    }

    pub fn close(&mut self) {
        self.input = None;
    }

    /// Waits for the relay's end.
    pub fn exit_code(&mut self) -> u8 {
        self.relay.take().unwrap().join().unwrap()
    }

    /// What is said until the end.
    pub fn rest(&mut self) -> Vec<u8> {
        self.lines.iter().flatten().collect()
    }
}

/// The ids of the `tools/call`s in what a server has received.
pub fn calls(log: &Path) -> Vec<Value> {
    let log = std::fs::read(log).unwrap_or_default();
    log.split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
        .filter(|message| message["method"] == "tools/call")
        .map(|message| message["id"].clone())
        .collect()
}
