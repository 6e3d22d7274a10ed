//! MCP clients, and the server behind the proxy.

use std::{
    io::{BufRead as _, Write as _},
    process::Stdio,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

use super::Result;

/// Starts this program as the server behind the proxy.
pub const ECHO: &str = "--echo-server";

/// Longer than any deadline of a guard or a recovery here.
const PATIENCE: Duration = Duration::from_secs(120);

/// Says "done" to every call.
pub fn echo() -> Result<()> {
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut line = String::new();
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let message: Value = serde_json::from_str(&line)?;
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": message["params"]["protocolVersion"], "capabilities": { "tools": {} },
                "serverInfo": { "name": "echo", "version": "1" },
            }),
            Some("tools/list") => json!({ "tools": [
                { "name": "change", "inputSchema": { "type": "object", "properties": { "vm": {}, "change": {} } } },
                { "name": "look", "inputSchema": { "type": "object" } },
            ] }),
            _ => json!({ "content": [{ "type": "text", "text": "done" }] }),
        };
        if let Some(id) = message.get("id") {
            let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
            output.write_all(format!("{answer}\n").as_bytes())?;
            output.flush()?;
        }
    }
}

pub struct Client {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    id: u64,
}

impl Client {
    /// Starts a server and waits for its `initialize` answer.
    pub async fn start(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("no stdin")?;
        let output = child.stdout.take().ok_or("no stdout")?;
        let mut client = Self {
            child,
            input,
            output: BufReader::new(output).lines(),
            id: 0,
        };
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "soak", "version": "1" } });
        let id = client.ask("initialize", params).await?;
        client.answer(id).await?;
        client
            .send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await?;
        Ok(client)
    }

    pub fn pid(&self) -> Result<u32> {
        Ok(self.child.id().ok_or("it has ended")?)
    }

    /// Asks for a tool; the id of the request.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Result<u64> {
        let params = json!({ "name": tool, "arguments": arguments });
        self.ask("tools/call", params).await
    }

    /// Gives a call up. It gets no answer; one that is on its way is passed over.
    pub async fn cancel(&mut self, id: u64) -> Result<()> {
        let params = json!({ "requestId": id, "reason": "enough" });
        let notice =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
        self.send(&notice).await
    }

    /// The result of a call.
    pub async fn answer(&mut self, id: u64) -> Result<Value> {
        loop {
            let line = timeout(PATIENCE, self.output.next_line())
                .await
                .map_err(|_| "no answer")??
                .ok_or("it has ended")?;
            let mut message: Value = serde_json::from_str(&line)?;
            if message["id"] == id {
                return match message.get("error") {
                    Some(error) => Err(error.to_string().into()),
                    None => Ok(message["result"].take()),
                };
            }
        }
    }

    async fn ask(&mut self, method: &str, params: Value) -> Result<u64> {
        self.id += 1;
        let request =
            json!({ "jsonrpc": "2.0", "id": self.id, "method": method, "params": params });
        self.send(&request).await?;
        Ok(self.id)
    }

    async fn send(&mut self, message: &Value) -> Result<()> {
        let line = format!("{message}\n");
        self.input.write_all(line.as_bytes()).await?;
        Ok(self.input.flush().await?)
    }

    /// Closes its input and waits for its end.
    pub async fn end(self) -> Result<()> {
        let Self {
            mut child, input, ..
        } = self;
        drop(input);
        timeout(PATIENCE, child.wait())
            .await
            .map_err(|_| "it does not end")??;
        Ok(())
    }

    pub async fn kill(mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }
}
