//! A server whose tools run as tasks of the extension io.modelcontextprotocol/tasks, on the
//! TaskManager of the Rust SDK, on standard input and output. It has the tools of
//! python/fastmcp_server.py, and the quiz of node/tasks-server.mjs.

use std::{
    collections::HashMap,
    error::Error,
    sync::{Arc, Mutex},
    time::Duration,
};

use rmcp::{
    ErrorData, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ContentBlock, CreateTaskResult,
        ErrorCode, GetTaskParams, GetTaskResult, InputRequest, JsonObject, ListToolsResult, PaginatedRequestParams,
        ServerCapabilities, ServerConfig, TASKS_EXTENSION_ID, Tool, UpdateTaskParams,
    },
    service::{RequestContext, RoleServer},
    task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions},
};
use serde_json::{Value, from_value, json};

const MISSING_CAPABILITY: ErrorCode = ErrorCode(-32021);

/// The tools, with the types of their arguments.
const TOOLS: [(&str, &[(&str, &str)]); 9] = [
    ("greet", &[("name", "string")]),
    ("tally", &[("label", "string")]),
    ("slow_compute", &[("seconds", "number"), ("label", "string")]),
    ("own_id", &[]),
    ("failing_job", &[]),
    ("protocol_error_job", &[]),
    ("confirm_delete", &[("filename", "string")]),
    ("multi_input", &[]),
    ("quiz", &[("label", "string"), ("rounds", "array")]),
];

#[derive(Clone, Default)]
struct Server {
    tasks: TaskManager,
    entered: Arc<Mutex<HashMap<String, u64>>>,
}

fn object(value: Value) -> JsonObject {
    value.as_object().cloned().unwrap_or_default()
}

fn schema(properties: &[(&str, &str)]) -> Value {
    let types: JsonObject = properties
        .iter()
        .map(|(name, kind)| ((*name).to_owned(), json!({"type": kind})))
        .collect();
    json!({"type": "object", "properties": types})
}

fn text(words: String) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(words)])
}

/// Asks under a key, and returns what the user said of the one property, null if they refused.
async fn ask(task: &TaskContext, key: &str, message: &str, name: &str, kind: &str) -> Result<Value, TaskExit> {
    let params = json!({"mode": "form", "message": message, "requestedSchema": schema(&[(name, kind)])});
    let request: InputRequest = from_value(json!({"method": "elicitation/create", "params": params}))
        .map_err(|e| ErrorData::internal_error(e.to_string(), None))?;
    let said = task.request_input(key, request).await?;
    Ok(said["content"][name].clone())
}

/// Asks so many questions at once in each round; the right answer to each is its message.
async fn quiz(label: &str, rounds: &Value, task: &TaskContext) -> Result<CallToolResult, TaskExit> {
    let (mut asked, mut right, mut refused, mut wrong) = (0, 0, 0, Vec::new());
    for (round, n) in rounds.as_array().into_iter().flatten().enumerate() {
        let questions = (0..n.as_u64().unwrap_or_default()).map(|i| {
            let (task, message) = (task.clone(), format!("{label}/{round}/{i}"));
            tokio::spawn(async move {
                let said = ask(&task, &format!("q{round}-{i}"), &message, "echo", "string").await;
                (message, said)
            })
        });
        for question in questions.collect::<Vec<_>>() {
            let (message, said) = question
                .await
                .map_err(|e| ErrorData::internal_error(e.to_string(), None))?;
            asked += 1;
            match said? {
                Value::Null => refused += 1,
                Value::String(echo) if echo == message => right += 1,
                other => wrong.push(format!("{other} to {message}")),
            }
        }
    }
    let count = json!({"asked": asked, "right": right, "refused": refused, "wrong": wrong});
    Ok(text(count.to_string()))
}

/// Does what a tool does as a task.
async fn work(name: &str, arguments: Value, task: TaskContext) -> Result<CallToolResult, TaskExit> {
    match name {
        "slow_compute" => {
            let (seconds, label) = (
                arguments["seconds"].as_f64().unwrap_or_default(),
                arguments["label"].as_str().unwrap_or_default(),
            );
            tokio::select! {
                () = task.cancelled() => Err(TaskExit::Cancelled),
                () = tokio::time::sleep(Duration::from_secs_f64(seconds)) => Ok(text(format!("computed {label} in {seconds} s"))),
            }
        }
        "own_id" => Ok(text(task.task_id().to_owned())),
        "failing_job" => {
            tokio::time::sleep(Duration::from_millis(300)).await;
            Ok(CallToolResult::error(vec![ContentBlock::text("the job failed")]))
        }
        "confirm_delete" => {
            let name = arguments["filename"].as_str().unwrap_or_default();
            let said = ask(&task, "q1", &format!("Delete {name}?"), "confirm", "boolean").await?;
            let done = if said == json!(true) { "deleted" } else { "kept" };
            Ok(text(format!("{done} {name}")))
        }
        "multi_input" => {
            let (name, right) = tokio::try_join!(
                ask(&task, "q1", "What is its name?", "name", "string"),
                ask(&task, "q2", "Is that right?", "confirm", "boolean"),
            )?;
            let right = if right == json!(true) { "True" } else { "False" };
            Ok(text(format!(
                "name {}, confirmed {right}",
                name.as_str().unwrap_or("None")
            )))
        }
        "quiz" => {
            let label = arguments["label"].as_str().unwrap_or_default();
            quiz(label, &arguments["rounds"], &task).await
        }
        _ => Err(ErrorData::internal_error("the job broke the protocol", None).into()),
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tasks().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = TOOLS.map(|(name, arguments)| Tool::new(name, name, object(schema(arguments))));
        Ok(ListToolsResult::with_all_items(tools.to_vec()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let declared = context.client_capabilities().is_some_and(|c| c.supports_tasks());
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let name = request.name.into_owned();
        let label = arguments["label"].as_str().unwrap_or_default().to_owned();
        match name.as_str() {
            "greet" => {
                let whom = arguments["name"].as_str().unwrap_or_default();
                return Ok(text(format!("Hello, {whom}!")).into());
            }
            "tally" => {
                let n = self.entered.lock().expect("a count").get(&label).copied().unwrap_or(0);
                let mut said = text(n.to_string());
                said.structured_content = Some(json!({"result": n}));
                return Ok(said.into());
            }
            "slow_compute" => {
                *self.entered.lock().expect("a count").entry(label.clone()).or_default() += 1;
                if !declared {
                    let seconds = arguments["seconds"].as_f64().unwrap_or_default();
                    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
                    return Ok(text(format!("computed {label} in {seconds} s")).into());
                }
            }
            _ if !declared => {
                let data = json!({"requiredCapabilities": {"extensions": {TASKS_EXTENSION_ID: {}}}});
                return Err(ErrorData::new(
                    MISSING_CAPABILITY,
                    format!("{name} runs as a task"),
                    Some(data),
                ));
            }
            _ => {}
        }
        let options = TaskOptions::new().with_poll_interval_ms(200);
        let task = self.tasks.spawn(options, move |task| {
            Box::pin(async move { work(&name, arguments, task).await })
        });
        Ok(CallToolResponse::Task(CreateTaskResult::new(task)))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.tasks.get_task(&request.task_id)?))
    }

    async fn update_task(&self, request: UpdateTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let running = Server::default()
        .serve((tokio::io::stdin(), tokio::io::stdout()))
        .await?;
    running.waiting().await?;
    Ok(())
}
