//! The server: which request goes where.
use std::sync::{Arc, Mutex};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::*,
    service::{RequestContext, SubscriptionContext},
    task_manager::TaskManager,
};
use serde_json::Value;
use tokio::sync::broadcast;

use crate::{content, rounds, tasks, tools};

/// A list that has changed.
#[derive(Clone, Copy, Debug)]
enum Changed {
    Tools,
    Prompts,
}

#[derive(Clone)]
pub struct Fixture {
    tasks: TaskManager,
    codec: RequestStateCodec,
    changes: broadcast::Sender<Changed>,
    /// Subscribed before the acknowledgement goes out, so that no change is missed after it.
    subscribed: Arc<Mutex<Vec<broadcast::Receiver<Changed>>>>,
}

impl Fixture {
    pub fn new() -> Self {
        let key = [
            uuid::Uuid::new_v4().into_bytes(),
            uuid::Uuid::new_v4().into_bytes(),
        ]
        .concat();
        Self {
            tasks: TaskManager::new(),
            codec: RequestStateCodec::try_new(key).unwrap(),
            changes: broadcast::channel(16).0,
            subscribed: Arc::default(),
        }
    }

    async fn change(
        &self,
        changed: Changed,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        // Nobody may be listening.
        let _ = self.changes.send(changed);
        if !context
            .meta
            .protocol_version()
            .is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
        {
            let told = match changed {
                Changed::Tools => context.peer.notify_tool_list_changed().await,
                Changed::Prompts => context.peer.notify_prompt_list_changed().await,
            };
            told.unwrap();
        }
        tools::text("changed").into()
    }
}

fn typed<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

#[allow(
    deprecated,
    reason = "older revisions have what newer ones have given up"
)]
impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_logging()
            .enable_completions()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("fixture", "1"))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::all().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let capabilities = context.client_capabilities().unwrap_or_default();
        match request.name.as_ref() {
            "test_trigger_tool_change" => return Ok(self.change(Changed::Tools, &context).await),
            "test_trigger_prompt_change" => {
                return Ok(self.change(Changed::Prompts, &context).await);
            }
            _ => {}
        }
        if let Some(result) = tools::call(&request, &capabilities, &context).await {
            return result;
        }
        if let Some(result) = tasks::call(&request, &capabilities, &self.tasks).await {
            return result;
        }
        rounds::call(&request, &capabilities, &self.codec).unwrap_or_else(|| {
            Err(ErrorData::invalid_params(
                format!("no tool {:?}", request.name),
                None,
            ))
        })
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        typed(content::prompts()["prompts"].clone()).map(ListPromptsResult::with_all_items)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        content::prompt(&request)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        typed(content::resources()["resources"].clone()).map(ListResourcesResult::with_all_items)
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        typed(content::templates()["resourceTemplates"].clone())
            .map(ListResourceTemplatesResult::with_all_items)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        content::resource(&request)
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let known = ["paris", "park", "party"];
        let values = known
            .into_iter()
            .filter(|known| known.starts_with(&request.argument.value))
            .map(Into::into)
            .collect();
        let completion =
            CompletionInfo::new(values).map_err(|error| ErrorData::internal_error(error, None))?;
        Ok(CompleteResult::new(completion))
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.subscribed
            .lock()
            .unwrap()
            .push(self.changes.subscribe());
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.subscribed.lock().unwrap().pop().unwrap();
        loop {
            let changed = tokio::select! {
                () = context.cancelled() => return Ok(()),
                changed = changes.recv() => changed,
            };
            let (accepted, sink) = (context.accepted(), context.sink());
            let told = match changed {
                Ok(Changed::Tools) if accepted.tools_list_changed == Some(true) => {
                    sink.notify_tool_list_changed().await
                }
                Ok(Changed::Prompts) if accepted.prompts_list_changed == Some(true) => {
                    sink.notify_prompt_list_changed().await
                }
                _ => continue,
            };
            if told.is_err() {
                return Ok(());
            }
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.tasks
            .get_task(&request.task_id)
            .map(GetTaskResult::new)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks
            .update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }
}
