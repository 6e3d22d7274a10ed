//! Tools that become tasks where the client can follow one.
use std::{future::Future, time::Duration};

use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
        CreateTaskResult, InputRequest,
    },
    task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions},
};
use serde_json::{Value, json};

use crate::{rounds, tools::text};

fn task(
    tasks: &TaskManager,
    work: impl Future<Output = Result<CallToolResult, TaskExit>> + Send + 'static,
) -> Result<CallToolResponse, ErrorData> {
    interactive(tasks, |_| work)
}

fn interactive<F: Future<Output = Result<CallToolResult, TaskExit>> + Send + 'static>(
    tasks: &TaskManager,
    work: impl FnOnce(TaskContext) -> F,
) -> Result<CallToolResponse, ErrorData> {
    let options = TaskOptions::new().with_poll_interval_ms(50);
    let task = tasks.spawn(options, |context| {
        let work = work(context.clone());
        Box::pin(async move {
            tokio::select! {
                done = work => done,
                () = context.cancelled() => Err(TaskExit::Cancelled),
            }
        })
    });
    Ok(CreateTaskResult::new(task).into())
}

fn question(message: &str) -> InputRequest {
    serde_json::from_value(rounds::elicit("", message, "answer").1).unwrap()
}

async fn slow_compute(seconds: f64) -> CallToolResult {
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    text(&format!("computed for {seconds} s"))
}

/// The tools that become tasks.
pub async fn call(
    request: &CallToolRequestParams,
    capabilities: &ClientCapabilities,
    tasks: &TaskManager,
) -> Option<Result<CallToolResponse, ErrorData>> {
    let arguments = Value::Object(request.arguments.clone().unwrap_or_default());
    let follows = capabilities.supports_tasks();
    let required = || {
        let required = ClientCapabilities::builder().enable_tasks().build();
        Err(ErrorData::missing_required_client_capability(required))
    };
    Some(match request.name.as_ref() {
        "greet" => Ok(text(&format!(
            "Hello, {}!",
            arguments["name"].as_str().unwrap_or("you")
        ))
        .into()),
        "slow_compute" => {
            let seconds = arguments["seconds"].as_f64().unwrap_or(1.0);
            if follows && seconds > 0.0 {
                task(tasks, async move { Ok(slow_compute(seconds).await) })
            } else {
                Ok(slow_compute(seconds).await.into())
            }
        }
        "failing_job"
        | "protocol_error_job"
        | "confirm_delete"
        | "multi_input"
        | "test_tool_with_task"
            if !follows =>
        {
            required()
        }
        "failing_job" => task(tasks, async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(CallToolResult::error(vec![ContentBlock::text(
                "the job failed",
            )]))
        }),
        "protocol_error_job" => task(tasks, async {
            Err(TaskExit::Error(ErrorData::internal_error(
                "the job broke",
                None,
            )))
        }),
        "confirm_delete" => interactive(tasks, |context| async move {
            let answer = context
                .request_input("confirm", question("Delete it?"))
                .await?;
            Ok(text(&format!("deleted: {}", answer["action"] == "accept")))
        }),
        "multi_input" => interactive(tasks, |context| async move {
            let (one, two) = tokio::join!(
                context.request_input("first", question("First?")),
                context.request_input("second", question("Second?")),
            );
            Ok(text(&json!([one?, two?]).to_string()))
        }),
        "test_tool_with_task" => {
            match rounds::answer(&request.input_responses, "user_name", "name") {
                Some(name) => task(tasks, async move {
                    Ok(text(&format!("Hello, {name}, from a task!")))
                }),
                None => {
                    Ok(
                        rounds::ask([rounds::elicit("user_name", "What is your name?", "name")])
                            .into(),
                    )
                }
            }
        }
        _ => return None,
    })
}
