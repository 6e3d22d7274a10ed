//! An agent's MCP client, and a server as its child over stdio.
use std::{
    pin::pin,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
};

use rewind_core::{Progress as _, ProgressUpdate};
use rewind_mcp::proxy::{RECEIPT_KEY, REFUSAL_KEY};
use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
        ElicitationAction, ElicitationCapability, FormElicitationCapability, Implementation,
        JsonObject, ProgressNotificationParam, ProtocolVersion,
    },
    service::{
        ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RequestContext,
        RunningService,
    },
    transport::TokioChildProcess,
};
use serde_json::{Value, json};
use tokio::{
    process::Command,
    sync::{Mutex as AsyncMutex, mpsc, oneshot},
};

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
    forms: AsyncMutex<mpsc::Receiver<Form>>,
}

/// A form that a server wants filled in by the human: what it says, and where the one text that it asks for goes. None declines.
struct Form {
    message: String,
    answer: oneshot::Sender<Option<String>>,
}

/// Shows the progress that the server tells, while a call runs.
struct Handler {
    name: &'static str,
    bar: Mutex<Option<Arc<Bar>>>,
    forms: mpsc::Sender<Form>,
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
        // One form at a time.
        let (showing, forms) = mpsc::channel(1);
        let handler = Handler {
            name,
            bar: Mutex::default(),
            forms: showing,
        };
        let client = handler
            .serve_with_lifecycle(transport, newest)
            .await
            .map_err(|error| Stopped::at("the MCP server did not answer")(&error))?;
        Ok(Self {
            called,
            client,
            forms: AsyncMutex::new(forms),
        })
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

    /// Calls a tool whose server asks the human first, by a form that `human` fills in.
    pub async fn call_with_human(
        &self,
        tool: &str,
        arguments: JsonObject,
        human: impl AsyncFn(&str) -> Result<Option<String>, Stopped>,
    ) -> Result<Answer, Stopped> {
        let mut forms = self.forms.lock().await;
        let mut calling = pin!(self.call(tool, arguments));
        loop {
            tokio::select! {
                answer = &mut calling => return answer,
                Some(form) = forms.recv() => {
                    // What a bar draws must not stand in the way.
                    self.client.service().show(None);
                    let filled_in = human(&form.message).await?;
                    self.client.service().show(Some(Bar::new()));
                    // Where nobody waits for it any more, the call tells why.
                    let _ = form.answer.send(filled_in);
                }
            }
        }
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
        let mut capabilities = ClientCapabilities::default();
        let form = FormElicitationCapability::default();
        capabilities.elicitation = Some(ElicitationCapability::new().with_form(form));
        ClientConfig::new(
            capabilities,
            Implementation::new(self.name, env!("CARGO_PKG_VERSION")),
        )
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let declined = ElicitResult::new(ElicitationAction::Decline);
        let ElicitRequestParams::FormElicitationParams {
            message,
            requested_schema,
            ..
        } = request
        else {
            return Ok(declined);
        };
        let (answer, filled_in) = oneshot::channel();
        // Nobody is there to fill it in: that is a no.
        let asked = self.forms.send(Form { message, answer }).await.is_ok();
        let text = match asked {
            true => filled_in.await.ok().flatten(),
            false => None,
        };
        let field = requested_schema.properties.keys().next();
        Ok(match (field, text) {
            (Some(field), Some(text)) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(json!({ field: text }))
            }
            _ => declined,
        })
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
