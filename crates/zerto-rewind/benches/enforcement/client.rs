//! An MCP client with the least work of its own: what it measures is the other side.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use crate::Result;

const CALL: &str = r#""method":"tools/call","params":{"name":"echo","arguments":{"text":"hello, this is an ordinary call"}}"#;
const INITIALIZE: &str = r#""method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}"#;
const INITIALIZED: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";

pub struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    id: u64,
}

impl Client {
    /// Starts it and waits for the `initialize` answer.
    pub fn start(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("no stdin")?;
        let output = BufReader::with_capacity(1 << 20, child.stdout.take().ok_or("no stdout")?);
        let mut client = Self {
            child,
            input,
            output,
            id: 0,
        };
        let line = client.request(INITIALIZE);
        client.input.write_all(&line)?;
        client.answer(client.id)?;
        client.input.write_all(INITIALIZED)?;
        Ok(client)
    }

    pub fn round_trip(&mut self) -> Result<Duration> {
        let line = self.request(CALL);
        let begun = Instant::now();
        self.input.write_all(&line)?;
        self.answer(self.id)?;
        Ok(begun.elapsed())
    }

    /// So many calls at once, until all are answered.
    pub fn pipelined(&mut self, calls: usize) -> Result<Duration> {
        let lines: Vec<u8> = (0..calls).flat_map(|_| self.request(CALL)).collect();
        let Self { input, output, .. } = self;
        let begun = Instant::now();
        std::thread::scope(|scope| -> Result<()> {
            let writing = scope.spawn(move || input.write_all(&lines));
            let mut answer = Vec::new();
            for _ in 0..calls {
                read(output, &mut answer)?;
            }
            writing.join().map_err(|_| "the writer broke off")??;
            Ok(())
        })?;
        Ok(begun.elapsed())
    }

    /// `VmRSS`, in MiB.
    pub fn resident_mib(&self) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .ok_or("no VmRSS")?;
        let kib: f64 = line.split_whitespace().nth(1).ok_or("no value")?.parse()?;
        Ok(kib / 1024.0)
    }

    /// Closes its input and waits for its end.
    pub fn stop(self) -> Result<()> {
        let Self {
            mut child, input, ..
        } = self;
        drop(input);
        child.wait()?;
        Ok(())
    }

    fn request(&mut self, message: &str) -> Vec<u8> {
        self.id += 1;
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{},{message}}}\n", self.id).into_bytes()
    }

    /// The answer to this request; what else is said is passed over.
    fn answer(&mut self, id: u64) -> Result<()> {
        let id = format!("\"id\":{id}");
        let mut line = Vec::new();
        loop {
            read(&mut self.output, &mut line)?;
            let text = String::from_utf8_lossy(&line);
            if text.contains(&id) {
                return Ok(());
            }
        }
    }
}

fn read(output: &mut impl BufRead, line: &mut Vec<u8>) -> Result<()> {
    line.clear();
    if output.read_until(b'\n', line)? == 0 {
        return Err("the server ended".into());
    }
    Ok(())
}
