//! The built server as a child process, spoken to in plain JSON-RPC lines.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};
use zvm_sim::Sim;

use crate::Result;

pub struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    id: u64,
}

/// Writes a configuration for the simulator into a folder.
pub fn config(sim: &Sim, folder: &Path) -> Result<PathBuf> {
    let path = folder.join("config.json");
    let config = json!({
        "zerto_url": sim.url(),
        "username": sim.credentials().username,
        "password": sim.credentials().password,
        "verify_tls": false,
        "confirmation": "argument",
        "state_dir": folder.join("state"),
        "recover_dir": folder.join("recovered"),
    });
    fs::write(&path, serde_json::to_vec(&config)?)?;
    #[cfg(unix)]
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(path)
}

impl Server {
    /// Starts it and waits for the `initialize` answer.
    pub fn start(config: &Path) -> Result<Self> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_zerto-rewind-mcp"))
            .env("ZERTO_REWIND_CONFIG", config)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("no stdin")?;
        let output = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        let mut server = Self {
            child,
            input,
            output,
            id: 0,
        };
        server.request(
            "initialize",
            &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}),
        )?;
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(server)
    }

    /// Calls a tool; its structured content.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        let mut result =
            self.request("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        if result["isError"] == true {
            return Err(format!("{tool}: {result}").into());
        }
        Ok(result["structuredContent"].take())
    }

    /// Closes its input and waits for its end.
    pub fn stop(mut self) -> Result<()> {
        drop(self.input);
        self.child.wait()?;
        Ok(())
    }

    /// `VmRSS`, in MiB.
    pub fn resident_mib(&self) -> Result<f64> {
        self.status("VmRSS:")
    }

    /// `VmHWM`, in MiB.
    pub fn peak_resident_mib(&self) -> Result<f64> {
        self.status("VmHWM:")
    }

    fn status(&self, name: &str) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status
            .lines()
            .find(|l| l.starts_with(name))
            .ok_or("no such line in /proc")?;
        let kib: f64 = line.split_whitespace().nth(1).ok_or("no value")?.parse()?;
        Ok(kib / 1024.0)
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.id += 1;
        let id = self.id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err("the server ended".into());
            }
            let mut message: Value = serde_json::from_str(&line)?;
            if message["id"] == id {
                return match message.get("error") {
                    Some(error) => Err(format!("{method}: {error}").into()),
                    None => Ok(message["result"].take()),
                };
            }
        }
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.input.write_all(&line)?;
        Ok(self.input.flush()?)
    }
}
