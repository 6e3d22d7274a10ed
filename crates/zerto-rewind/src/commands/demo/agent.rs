//! An agent's MCP client, and a server as its child over stdio.
use std::{
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
};

use rewind_core::{Progress as _, ProgressUpdate};
use rewind_mcp::proxy::{RECEIPT_KEY, REFUSAL_KEY};
use rmcp::{
    ClientHandler, RoleClient,
    model::{
        CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation, JsonObject,
        ProgressNotificationParam, ProtocolVersion,
    },
    service::{ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RunningService},
    transport::TokioChildProcess,
};
use serde_json::Value;
use tokio::process::Command;

use super::{Stopped, stage::Stage};
use crate::progress::Bar;

/// The name of the agent that has this program's MCP server: it stands in the tag.
const NAME: &str = "demo-agent";

/// What a tool answered.
pub struct Answer {
    /// The structured content.
    pub content: Value,
    /// What a model reads: the text content.
    pub words: String,
    meta: Value,
    /// Whether it is an error.
    pub is_error: bool,
}

impl Answer {
    /// A text within the structured content, by its JSON pointer.
    pub fn text(&self, pointer: &str) -> Result<&str, Stopped> {
        self.member(pointer, Value::as_str)
    }

    /// A number within the structured content, by its JSON pointer.
    pub fn number(&self, pointer: &str) -> Result<f64, Stopped> {
        self.member(pointer, Value::as_f64)
    }

    /// The receipt that the proxy put into `_meta`.
    pub fn receipt(&self) -> Option<&Value> {
        self.meta.get(RECEIPT_KEY)
    }

    /// A member of the error: the tool's own, or that of a proxy that has not forwarded the call.
    pub fn error(&self, member: &str) -> Option<&str> {
        let error = self.meta.get(REFUSAL_KEY).or(self.content.get("error"))?;
        error.get(member)?.as_str()
    }

    fn member<'a, T>(
        &'a self,
        pointer: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<T, Stopped> {
        let missing = || Stopped::Broken(format!("the answer has no {pointer}: {}", self.content));
        self.content
            .pointer(pointer)
            .and_then(read)
            .ok_or_else(missing)
    }
}

/// An MCP client that knows nothing of a server but its tools.
pub struct Agent {
    /// What the narrator calls it.
    pub called: &'static str,
    client: RunningService<RoleClient, Handler>,
}

/// Shows the progress that the server tells, while a call runs.
struct Handler {
    name: &'static str,
    bar: Mutex<Option<Arc<Bar>>>,
}

impl Handler {
    fn show(&self, bar: Option<Arc<Bar>>) {
        *self.bar.lock().unwrap_or_else(PoisonError::into_inner) = bar;
    }
}

impl Agent {
    /// An agent that has this program's MCP server.
    pub async fn of_this_server(stage: &Stage) -> Result<Self, Stopped> {
        Self::start("agent", NAME, stage.program(["mcp"])?).await
    }

    /// Starts an MCP server and connects to it. The agent tells its name in the handshake.
    pub async fn start(
        called: &'static str,
        name: &'static str,
        server: Command,
    ) -> Result<Self, Stopped> {
        let (transport, _) = TokioChildProcess::builder(server)
            .stderr(Stdio::inherit())
            .spawn()?;
        let newest = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: None,
        };
        let handler = Handler {
            name,
            bar: Mutex::default(),
        };
        let client = handler
            .serve_with_lifecycle(transport, newest)
            .await
            .map_err(|error| Stopped::at("the MCP server did not answer")(&error))?;
        Ok(Self { called, client })
    }

    /// The names of the server's tools.
    pub async fn tools(&self) -> Result<Vec<String>, Stopped> {
        let tools = self
            .client
            .list_all_tools()
            .await
            .map_err(|error| Stopped::at("tools/list")(&error))?;
        Ok(tools.into_iter().map(|tool| tool.name.into()).collect())
    }

    /// Calls a tool.
    pub async fn call(&self, tool: &str, arguments: JsonObject) -> Result<Answer, Stopped> {
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        self.client.service().show(Some(Bar::new()));
        let result = self.client.call_tool(request).await;
        self.client.service().show(None);
        let result = result.map_err(|error| Stopped::at(tool)(&error))?;
        let words = result.content.iter().filter_map(|block| block.as_text());
        Ok(Answer {
            content: result.structured_content.unwrap_or_default(),
            words: words.map(|block| block.text.as_str()).collect(),
            meta: result.meta.map(|meta| meta.0.into()).unwrap_or_default(),
            is_error: result.is_error.unwrap_or(false),
        })
    }

    /// Calls a tool that is expected to succeed.
    pub async fn succeed(&self, tool: &str, arguments: JsonObject) -> Result<Answer, Stopped> {
        let answer = self.call(tool, arguments).await?;
        if answer.is_error {
            return Err(Stopped::Broken(format!(
                "{tool} answered: {}",
                answer.words
            )));
        }
        Ok(answer)
    }

    /// Calls a tool that is expected to fail with this code.
    pub async fn refused(
        &self,
        tool: &str,
        code: &str,
        arguments: JsonObject,
    ) -> Result<Answer, Stopped> {
        let answer = self.call(tool, arguments).await?;
        if !answer.is_error || answer.error("code") != Some(code) {
            return Err(Stopped::Broken(format!(
                "{tool} was to answer {code}, and answered: {}",
                answer.words
            )));
        }
        Ok(answer)
    }

    /// Ends the session; the server ends with it.
    pub async fn leave(self) -> Result<(), Stopped> {
        self.client
            .cancel()
            .await
            .map_err(|error| Stopped::at("the MCP server did not end")(&error))?;
        Ok(())
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new(self.name, env!("CARGO_PKG_VERSION")),
        )
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        if let Some(bar) = &*self.bar.lock().unwrap_or_else(PoisonError::into_inner) {
            bar.update(ProgressUpdate {
                done: progress.progress,
                total: progress.total,
                message: progress.message.unwrap_or_default(),
                transfer: None,
            });
        }
    }
}
