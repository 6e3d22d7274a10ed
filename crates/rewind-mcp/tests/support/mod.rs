//! A simulated ZVM, the server over an in-process pipe, and a client on the other end.
#![allow(dead_code)]

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Instant,
};

use rewind_core::{Rewind, config::Config};
use rewind_mcp::{Backend, Server, tools};
use rmcp::{
    ClientHandler, ErrorData, RoleClient, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig,
        ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
        Implementation, ProgressNotificationParam, ProtocolVersion,
    },
    service::{
        ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RequestContext,
        RunningService,
    },
};
use serde_json::{Value, json};
use tempfile::TempDir;
use zvm_sim::{Scenario, Sim};

/// A simulated ZVM and a configuration for it.
pub struct World {
    pub sim: Sim,
    pub folder: TempDir,
    extra: Value,
}

impl World {
    pub async fn new() -> Self {
        Self::with(Scenario::fast()).await
    }

    pub async fn with(scenario: Scenario) -> Self {
        Self {
            sim: Sim::start(scenario).await.unwrap(),
            folder: tempfile::tempdir().unwrap(),
            extra: json!({}),
        }
    }

    /// More keys of the configuration.
    pub fn configured(mut self, extra: Value) -> Self {
        self.extra = extra;
        self
    }

    pub fn config(&self) -> Value {
        let credentials = self.sim.credentials();
        let mut config = json!({
            "zerto_url": self.sim.url(),
            "username": credentials.username,
            "password": credentials.password,
            "verify_tls": true,
            "ca_file": self.sim.ca_file(),
            "state_dir": self.folder.path().join("state"),
            "recover_dir": self.recover_dir(),
        });
        for (key, value) in self.extra.as_object().unwrap() {
            config[key] = value.clone();
        }
        config
    }

    pub fn recover_dir(&self) -> PathBuf {
        self.folder.path().join("recovered")
    }

    pub fn server(&self) -> Server {
        let config = self.config().to_string();
        let file = self.folder.path().join("config.json");
        server(move || Ok(Config::parse(&config, &file).unwrap()))
    }

    /// The domain beside the servers, as a person's commands have it.
    pub fn beside(&self) -> Rewind {
        let config = self.config().to_string();
        let file = self.folder.path().join("config.json");
        Rewind::new(Config::parse(&config, &file).unwrap()).unwrap()
    }

    /// A client of a server of its own, that opens with `initialize`.
    pub async fn client(&self) -> Client {
        Client::of(self.server(), "test-client").await
    }
}

pub fn server(
    load: impl Fn() -> Result<Config, rewind_core::Error> + Send + Sync + 'static,
) -> Server {
    Server::new(Arc::new(Backend::new(load)))
}

/// How a client opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    Old,
    Current,
}

/// An MCP client that holds every structured content against the tool's schema.
pub struct Client(pub RunningService<RoleClient, Handler>);

pub struct Handler {
    name: String,
    progress: Mutex<Vec<(Instant, ProgressNotificationParam)>>,
    /// What is done about a form. None: it can't show one, and says so.
    filled_in: Option<FilledIn>,
    forms: Mutex<Vec<Form>>,
}

/// What comes back from a form: an action and the content, or an error of the client's.
pub type FilledIn = Box<dyn Fn(&Form) -> Result<ElicitResult, ErrorData> + Send + Sync>;

/// A form as a client gets it.
#[derive(Clone, Debug)]
pub struct Form {
    pub message: String,
    pub schema: Value,
}

/// What a person does who types this.
pub fn types(name: &str) -> FilledIn {
    accepts(json!({ "vm_name": name }))
}

/// What a client does that accepts with this content.
pub fn accepts(content: Value) -> FilledIn {
    Box::new(
        move |_| Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content.clone())),
    )
}

/// What a person does who says no, in one way or the other.
pub fn says(action: ElicitationAction) -> FilledIn {
    Box::new(move |_| Ok(ElicitResult::new(action.clone())))
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if self.filled_in.is_some() {
            capabilities.elicitation = Some(ElicitationCapability::new());
        }
        ClientConfig::new(capabilities, Implementation::new(&self.name, "1"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams {
            message,
            requested_schema,
            ..
        } = request
        else {
            panic!("no form: {request:?}");
        };
        let form = Form {
            message,
            schema: serde_json::to_value(requested_schema).unwrap(),
        };
        self.forms.lock().unwrap().push(form.clone());
        self.filled_in.as_ref().expect("it shows no forms")(&form)
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.progress
            .lock()
            .unwrap()
            .push((Instant::now(), progress));
    }
}

impl Client {
    pub async fn of(server: Server, name: &str) -> Self {
        Self::in_era(server, name, Era::Old, None).await
    }

    /// A client of the stateless revision.
    pub async fn modern(server: Server, name: &str) -> Self {
        Self::in_era(server, name, Era::Current, None).await
    }

    /// A client that shows forms, and what comes back from them.
    pub async fn with_forms(server: Server, era: Era, filled_in: FilledIn) -> Self {
        Self::in_era(server, "test-client", era, Some(filled_in)).await
    }

    async fn in_era(server: Server, name: &str, era: Era, filled_in: Option<FilledIn>) -> Self {
        let era = match era {
            Era::Old => ClientLifecycleMode::Initialize,
            Era::Current => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
        };
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        tokio::spawn(async move { server.serve(theirs).await.unwrap().waiting().await });
        let handler = Handler {
            name: name.into(),
            progress: Mutex::default(),
            filled_in,
            forms: Mutex::default(),
        };
        Self(handler.serve_with_lifecycle(ours, era).await.unwrap())
    }

    /// The forms that were shown.
    pub fn forms(&self) -> Vec<Form> {
        self.0.service().forms.lock().unwrap().clone()
    }

    pub async fn call(&self, tool: &'static str, arguments: Value) -> CallToolResult {
        let request =
            CallToolRequestParams::new(tool).with_arguments(arguments.as_object().unwrap().clone());
        let result = self.0.call_tool(request).await.unwrap();
        let content = result.structured_content.as_ref().unwrap();
        let schema = tools::find(tool).unwrap().output_schema.as_ref().unwrap();
        let schema = Value::Object(schema.as_ref().clone());
        if let Err(error) = jsonschema::validate(&schema, content) {
            panic!("{tool} answered against its schema: {error}\n{content:#}");
        }
        result
    }

    /// Calls a tool that succeeds; its structured content.
    pub async fn ok(&self, tool: &'static str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await;
        assert_eq!(
            result.is_error,
            Some(false),
            "{:#}",
            result.structured_content.unwrap()
        );
        result.structured_content.unwrap()
    }

    /// Calls a tool that fails; its error.
    pub async fn err(&self, tool: &'static str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await;
        let content = result.structured_content.unwrap();
        assert_eq!(result.is_error, Some(true), "{content:#}");
        let text = &result.content[0].as_text().unwrap().text;
        let error = content["error"].clone();
        assert!(text.contains(error["message"].as_str().unwrap()), "{text}");
        assert!(text.contains(error["next"].as_str().unwrap()), "{text}");
        error
    }

    /// What came as progress, with the moments.
    pub fn progress(&self) -> Vec<(Instant, ProgressNotificationParam)> {
        self.0.service().progress.lock().unwrap().clone()
    }
}

/// The text of a result.
pub fn text(result: &CallToolResult) -> &str {
    &result.content[0].as_text().unwrap().text
}
