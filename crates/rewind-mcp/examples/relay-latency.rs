//! What the relay costs an unlisted call: round trips to `wire-server`, direct and through `scripted-proxy`, in turns.
//! Run it in release: `cargo run --release -p rewind-mcp --example relay-latency`, after building the two others.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

struct Client {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    id: u64,
}

impl Client {
    fn start(through_proxy: bool) -> Self {
        let folder = std::env::current_exe()
            .unwrap()
            .parent()
            .unwrap()
            .to_owned();
        let mut command = Command::new(folder.join(if through_proxy {
            "scripted-proxy"
        } else {
            "wire-server"
        }));
        if through_proxy {
            command.arg(folder.join("wire-server"));
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::with_capacity(1 << 20, child.stdout.take().unwrap());
        let mut client = Self {
            child,
            stdin,
            stdout,
            id: 0,
        };
        client.round_trip(r#""method":"initialize","params":{"protocolVersion":"2025-11-25"}"#);
        client
    }

    fn line(&mut self, message: &str) -> Vec<u8> {
        self.id += 1;
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{},{message}}}\n", self.id).into_bytes()
    }

    fn round_trip(&mut self, message: &str) -> Duration {
        let line = self.line(message);
        let mut answer = Vec::new();
        let start = Instant::now();
        self.stdin.write_all(&line).unwrap();
        self.stdout.read_until(b'\n', &mut answer).unwrap();
        let took = start.elapsed();
        assert!(!answer.is_empty());
        took
    }
}

const CALL: &str = r#""method":"tools/call","params":{"name":"echo","arguments":{"text":"hello, this is an ordinary call"}}"#;

fn main() {
    let start = Instant::now();
    let mut proxied = Client::start(true);
    println!(
        "start to initialize answer, proxy and server: {:?}",
        start.elapsed()
    );
    let start = Instant::now();
    let mut direct = Client::start(false);
    println!(
        "start to initialize answer, server alone:     {:?}",
        start.elapsed()
    );

    let (mut one, mut other) = (Vec::new(), Vec::new());
    for round in 0..20_000 {
        let (a, b) = (direct.round_trip(CALL), proxied.round_trip(CALL));
        if round >= 1000 {
            one.push(a);
            other.push(b);
        }
    }
    one.sort();
    other.sort();
    for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)] {
        let at = (one.len() as f64 * share) as usize;
        println!(
            "{name}: direct {:?}, proxied {:?}, difference {:?}",
            one[at],
            other[at],
            other[at].saturating_sub(one[at])
        );
    }
    for (name, client) in [("direct", &mut direct), ("proxied", &mut proxied)] {
        println!(
            "10,000 pipelined calls, {name}: {:?}",
            pipelined(client, 10_000)
        );
    }
    for client in [direct, proxied] {
        let Client {
            mut child, stdin, ..
        } = client;
        drop(stdin);
        assert!(child.wait().unwrap().success());
    }
}

fn pipelined(client: &mut Client, calls: usize) -> Duration {
    let lines: Vec<u8> = (0..calls).flat_map(|_| client.line(CALL)).collect();
    let start = Instant::now();
    let Client { stdin, stdout, .. } = client;
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(&lines).unwrap());
        let mut answer = Vec::new();
        for _ in 0..calls {
            answer.clear();
            assert!(stdout.read_until(b'\n', &mut answer).unwrap() > 0);
        }
    });
    start.elapsed()
}
