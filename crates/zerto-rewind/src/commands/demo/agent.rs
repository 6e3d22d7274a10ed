//! The agent's MCP client, and the real server as its child over stdio.
use std::{
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
};

use rewind_core::{Progress as _, ProgressUpdate};
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

use super::Stopped;
use crate::progress::Bar;

/// The agent's name, as it tells it in the handshake: it stands in the tag.
pub const NAME: &str = "demo-agent";

/// What a tool answered.
pub struct Answer {
    /// The structured content.
    pub content: Value,
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

/// An MCP client that knows nothing of this program but its tools.
pub struct Agent(RunningService<RoleClient, Handler>);

/// Shows the progress that the server tells, while a call runs.
#[derive(Default)]
struct Handler(Mutex<Option<Arc<Bar>>>);

impl Handler {
    fn show(&self, bar: Option<Arc<Bar>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = bar;
    }
}

impl Agent {
    /// Starts this program as an MCP server and connects to it.
    pub async fn start(config: &Path) -> Result<Self, Stopped> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("mcp").env("ZERTO_REWIND_CONFIG", config);
        let (transport, _) = TokioChildProcess::builder(command)
            .stderr(Stdio::inherit())
            .spawn()?;
        let newest = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: None,
        };
        let client = Handler::default()
            .serve_with_lifecycle(transport, newest)
            .await
            .map_err(|error| Stopped::at("the MCP server did not answer")(&error))?;
        Ok(Self(client))
    }

    /// The names of the server's tools, and the protocol revision that both speak.
    pub async fn tools(&self) -> Result<Vec<String>, Stopped> {
        let tools = self
            .0
            .list_all_tools()
            .await
            .map_err(|error| Stopped::at("tools/list")(&error))?;
        Ok(tools.into_iter().map(|tool| tool.name.into()).collect())
    }

    /// Calls a tool.
    pub async fn call(&self, tool: &'static str, arguments: JsonObject) -> Result<Answer, Stopped> {
        let request = CallToolRequestParams::new(tool).with_arguments(arguments);
        self.0.service().show(Some(Bar::new()));
        let result = self.0.call_tool(request).await;
        self.0.service().show(None);
        let result = result.map_err(|error| Stopped::at(tool)(&error))?;
        Ok(Answer {
            content: result.structured_content.unwrap_or_default(),
            is_error: result.is_error.unwrap_or(false),
        })
    }

    /// Calls a tool that is expected to succeed.
    pub async fn succeed(
        &self,
        tool: &'static str,
        arguments: JsonObject,
    ) -> Result<Answer, Stopped> {
        let answer = self.call(tool, arguments).await?;
        if answer.is_error {
            return Err(Stopped::Broken(format!(
                "{tool} answered {}",
                answer.content
            )));
        }
        Ok(answer)
    }

    /// Calls a tool that is expected to fail with this code.
    pub async fn refused(
        &self,
        tool: &'static str,
        code: &str,
        arguments: JsonObject,
    ) -> Result<Answer, Stopped> {
        let answer = self.call(tool, arguments).await?;
        if !answer.is_error || answer.text("/error/code")? != code {
            return Err(Stopped::Broken(format!(
                "{tool} was to answer {code}, and answered {}",
                answer.content
            )));
        }
        Ok(answer)
    }

    /// Ends the session; the server ends with it.
    pub async fn leave(self) -> Result<(), Stopped> {
        self.0
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
            Implementation::new(NAME, env!("CARGO_PKG_VERSION")),
        )
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        if let Some(bar) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            bar.update(ProgressUpdate {
                done: progress.progress,
                total: progress.total,
                message: progress.message.unwrap_or_default(),
                transfer: None,
            });
        }
    }
}
