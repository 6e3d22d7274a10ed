//! Whoever dies, and whenever: a listed call reaches its server never or once, and never without its guard.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]
mod proxy_support;

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::unix::process::ExitStatusExt,
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
    time::Duration,
};

use proxy_support::{calls, example};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The proxy as a process of its own, and the pid of the server behind it.
struct Proxy {
    process: Child,
    output: BufReader<ChildStdout>,
    server: Pid,
    folder: TempDir,
}

/// What is left when proxy and server are gone.
struct Remains {
    status: ExitStatus,
    said: Vec<Value>,
    calls: Vec<Value>,
    events: Vec<String>,
}

impl Proxy {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut process = Command::new(example("scripted-proxy"))
            .arg(example("wire-server"))
            .env("WIRE_LOG", folder.path().join("received"))
            .env("SCRIPT_LOG", folder.path().join("events"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The server has it, too: it ends when both have ended.
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut proxy = Self {
            process,
            output,
            server: Pid::INIT,
            folder,
        };
        proxy.send(&json!({ "id": 0, "method": "initialize", "params": {} }));
        let pid = proxy.answer()["result"]["_meta"]["pid"].as_i64().unwrap();
        proxy.server = Pid::from_raw(pid as i32).unwrap();
        // The tools are known: nothing is asked in between.
        proxy.send(&json!({ "id": 1, "method": "tools/list" }));
        proxy.answer();
        proxy
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.process)
    }

    fn send(&mut self, message: &Value) {
        let stdin = self.process.stdin.as_mut().unwrap();
        stdin.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    fn call(&mut self, arguments: &Value) {
        self.send(&json!({ "id": 2, "method": "tools/call", "params": { "name": "listed", "arguments": arguments } }));
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn received_calls(&self) -> Vec<Value> {
        calls(&self.folder.path().join("received"))
    }

    /// Waits until both have ended.
    fn remains(mut self) -> Remains {
        let mut stderr = Vec::new();
        self.process
            .stderr
            .take()
            .unwrap()
            .read_to_end(&mut stderr)
            .unwrap();
        let mut said = String::new();
        self.output.read_to_string(&mut said).unwrap();
        let status = self.process.wait().unwrap();
        let events = std::fs::read_to_string(self.folder.path().join("events")).unwrap();
        Remains {
            status,
            said: said
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
            calls: self.received_calls(),
            events: events.lines().map(Into::into).collect(),
        }
    }
}

impl Remains {
    fn check(&self) {
        let count = |event: &str| self.events.iter().filter(|seen| *seen == event).count();
        assert!(self.calls.len() <= 1, "{:?}", self.calls);
        assert!(count("guarding listed") <= 1, "{:?}", self.events);
        if !self.calls.is_empty() {
            assert_eq!(count("guarded listed"), 1, "{:?}", self.events);
            assert_eq!(count("NotForwarded listed"), 0, "{:?}", self.events);
        }
    }
}

/// Moments around a guard that takes 30 ms.
fn moments() -> impl Iterator<Item = Duration> {
    (0..16).map(|step| Duration::from_millis(step * 4))
}

#[test]
fn the_proxy_is_killed_at_any_moment() {
    for moment in moments() {
        let mut proxy = Proxy::start();
        proxy.call(&json!({ "guard": { "ms": 30 } }));
        std::thread::sleep(moment);
        kill_process(proxy.pid(), Signal::KILL).unwrap();
        // That this returns says that the server's standard input was closed: nothing else ends it.
        let remains = proxy.remains();
        assert_eq!(remains.status.signal(), Some(9));
        remains.check();
    }
}

#[test]
fn the_server_is_killed_at_any_moment() {
    for moment in moments() {
        let mut proxy = Proxy::start();
        proxy.call(&json!({ "guard": { "ms": 30 }, "silent": true }));
        std::thread::sleep(moment);
        kill_process(proxy.server, Signal::KILL).unwrap();
        let remains = proxy.remains();
        assert_eq!(remains.status.code(), Some(128 + 9));
        remains.check();
        // A call that was not read goes with the connection; one that was not forwarded is answered; one that was, is lost.
        if remains.events.is_empty() {
            assert!(remains.calls.is_empty());
        } else if remains.calls.is_empty() {
            let lost = remains.events.contains(&"Lost listed".to_owned());
            assert!(
                lost || remains.said.iter().any(|said| said["id"] == 2),
                "{:?}",
                remains.events
            );
        } else {
            assert!(
                remains.events.contains(&"Lost listed".to_owned()),
                "{:?}",
                remains.events
            );
        }
    }
}

#[test]
fn a_killed_proxy_ends_its_server_after_the_call_was_forwarded() {
    let mut proxy = Proxy::start();
    proxy.call(&json!({ "silent": true }));
    while proxy.received_calls().is_empty() {
        std::thread::yield_now();
    }
    kill_process(proxy.pid(), Signal::KILL).unwrap();
    let remains = proxy.remains();
    assert_eq!(remains.calls.len(), 1);
    remains.check();
}

/// Whether this process was started with a signal ignored.
fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    ignored.is_some_and(|bits| bits & (1 << (signal.as_raw() - 1)) != 0)
}

#[test]
fn signals_are_passed_on_and_nothing_is_forwarded_after_them() {
    for (signal, number) in [(Signal::TERM, 15), (Signal::INT, 2), (Signal::HUP, 1)] {
        if is_ignored(signal) {
            // A shell starts what runs in the background so, and then the server ignores it, too.
            println!("skipped: {signal:?} is ignored here");
            continue;
        }
        let mut proxy = Proxy::start();
        proxy.call(&json!({ "guard": { "wait": true } }));
        proxy.send(&json!({ "id": 3, "method": "ping" }));
        assert_eq!(proxy.answer()["id"], 3);
        kill_process(proxy.pid(), signal).unwrap();
        let remains = proxy.remains();
        assert_eq!(remains.status.code(), Some(128 + number));
        assert_eq!(remains.calls, Vec::<Value>::new());
        assert_eq!(
            remains.said[0]["result"]["isError"], true,
            "{:?}",
            remains.said
        );
        remains.check();
    }
}
