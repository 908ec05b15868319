//! Plays with the tasks of a server like python/fastmcp_server.py, on the Rust SDK, and
//! prints what it found, as JSON. Standard input has the target, {url} or {argv}, a label
//! for what is run, and the id resume of a task that an earlier run left, to look for that.

use std::{collections::BTreeMap, error::Error, io::Read, time::Duration};

use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, ClientCapabilities, ClientConfig, GetTaskParams,
        Implementation, ProtocolVersion, TASKS_EXTENSION_ID, UpdateTaskParams,
    },
    service::{RunningService, ServiceError},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::{Map, Value, from_value, json, to_value};

type Failure = Box<dyn Error>;

struct Handler;

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let declared = json!({"elicitation": {"form": {}}, "extensions": {TASKS_EXTENSION_ID: {}}});
        let capabilities: ClientCapabilities = from_value(declared).expect("capabilities");
        ClientConfig::new(capabilities, Implementation::new("interop-rmcp", "1"))
    }
}

struct Client(RunningService<RoleClient, Handler>);

impl Client {
    async fn connect(told: &Value) -> Result<Self, Failure> {
        let mode = ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        };
        if let Some(url) = told["url"].as_str() {
            let transport = StreamableHttpClientTransport::from_uri(url);
            return Ok(Self(Handler.serve_with_lifecycle(transport, mode).await?));
        }
        let argv: Vec<String> = from_value(told["argv"].clone())?;
        let mut command = tokio::process::Command::new(&argv[0]);
        command.args(&argv[1..]);
        Ok(Self(
            Handler
                .serve_with_lifecycle(TokioChildProcess::new(command)?, mode)
                .await?,
        ))
    }

    async fn call(&self, name: &'static str, arguments: Value) -> Result<CallToolResponse, Failure> {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        Ok(self
            .0
            .call_tool_once(CallToolRequestParams::new(name).with_arguments(arguments))
            .await?)
    }

    /// Calls a tool and returns the id of the task that it runs as.
    async fn begin(&self, name: &'static str, arguments: Value) -> Result<String, Failure> {
        match self.call(name, arguments).await? {
            CallToolResponse::Task(made) => Ok(made.task.task_id),
            other => Err(format!("{name} did not run as a task: {other:?}").into()),
        }
    }

    /// Looks at a task.
    async fn look(&self, id: &str) -> Result<Value, ServiceError> {
        let got = self.0.get_task(GetTaskParams::new(id)).await?;
        Ok(to_value(got).expect("a task"))
    }

    /// Waits for the end of a task, answers what it asks meanwhile, and says what it asked.
    async fn end(&self, id: &str) -> Result<(Value, Vec<String>), Failure> {
        let mut asked = Vec::new();
        loop {
            let task = self.look(id).await?;
            match task["status"].as_str() {
                Some("working") => tokio::time::sleep(Duration::from_millis(50)).await,
                Some("input_required") => self.answer(id, &task["inputRequests"], &mut asked).await?,
                _ => return Ok((task, asked)),
            }
        }
    }

    async fn answer(&self, id: &str, requests: &Value, asked: &mut Vec<String>) -> Result<(), Failure> {
        let mut responses = BTreeMap::new();
        for (key, request) in requests.as_object().ok_or("no requests")? {
            let params = &request["params"];
            asked.push(params["message"].as_str().unwrap_or_default().to_owned());
            let names = params["requestedSchema"]["properties"]
                .as_object()
                .ok_or("no properties")?;
            let answers = json!({"confirm": true, "name": "Ada"});
            let content: Map<_, _> = names.keys().map(|name| (name.clone(), answers[name].clone())).collect();
            responses.insert(key.clone(), json!({"action": "accept", "content": content}));
        }
        asked.sort();
        Ok(self.0.update_task(UpdateTaskParams::new(id, responses)).await?)
    }

    /// Runs a tool as a task to its end.
    async fn run(&self, name: &'static str, arguments: Value) -> Result<Value, Failure> {
        let id = self.begin(name, arguments).await?;
        let (task, asked) = self.end(&id).await?;
        let mut found = outcome(&task);
        if !asked.is_empty() {
            found["asked"] = json!(asked);
        }
        Ok(found)
    }

    async fn play(&self, label: &str) -> Result<Value, Failure> {
        let info = to_value(self.0.peer_info().ok_or("no peer")?.as_ref())?;
        let plain = match self.call("greet", json!({"name": "World"})).await? {
            CallToolResponse::Complete(result) => outcome(&json!({"status": "completed", "result": result})),
            other => return Err(format!("greet did not complete: {other:?}").into()),
        };
        let slow = self
            .begin("slow_compute", json!({"seconds": 1, "label": "slow"}))
            .await?;
        let looked = self.look(&slow).await?;
        let own = self.begin("own_id", json!({})).await?;
        let said = outcome(&self.end(&own).await?.0);

        let endless = self
            .begin("slow_compute", json!({"seconds": 600, "label": "endless"}))
            .await?;
        self.0.cancel_task(CancelTaskParams::new(&endless)).await?;
        let unknown = match self.look("nobody-has-this").await {
            Ok(task) => outcome(&task),
            Err(ServiceError::McpError(e)) => json!({"code": e.code.0}),
            Err(e) => return Err(e.into()),
        };
        Ok(json!({
            "offered": info["capabilities"]["extensions"],
            "plain": plain,
            "looked": {
                // A busy machine looks when it has completed.
                "status": looked["status"].as_str().unwrap_or_default().replace("completed", "working"),
                "pollIntervalMs": looked["pollIntervalMs"],
                "sameId": looked["taskId"] == json!(slow),
            },
            "slow": outcome(&self.end(&slow).await?.0),
            "ownId": said["text"] == json!(own),
            "confirm": self.run("confirm_delete", json!({"filename": "a.txt"})).await?,
            "two": self.run("multi_input", json!({})).await?,
            "failing": self.run("failing_job", json!({})).await?,
            "broken": self.run("protocol_error_job", json!({})).await?,
            "cancelled": outcome(&self.end(&endless).await?.0),
            "unknown": unknown,
            "left": self.begin("slow_compute", json!({"seconds": 2, "label": label})).await?,
        }))
    }

    /// Waits for a task that another connection made, and says how often it was run.
    async fn resumed(&self, id: &str, label: &str) -> Result<Value, Failure> {
        let mut found = outcome(&self.end(id).await?.0);
        if let CallToolResponse::Complete(result) = self.call("tally", json!({"label": label})).await? {
            found["entered"] = to_value(result)?["structuredContent"]["result"].clone();
        }
        Ok(found)
    }
}

/// Says how a task ended: its status, and its text, or error.
fn outcome(task: &Value) -> Value {
    let mut found = json!({"status": task["status"]});
    if let Some(result) = task.get("result") {
        found["text"] = result["content"][0]["text"].clone();
        found["isError"] = json!(result["isError"] == json!(true));
    }
    if let Some(error) = task.get("error") {
        found["code"] = error["code"].clone();
        found["message"] = error["message"].clone();
    }
    found
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let told: Value = serde_json::from_str(&text)?;
    let client = Client::connect(&told).await?;
    let label = told["label"].as_str().unwrap_or_default();
    let found = match told["resume"].as_str() {
        Some(id) => client.resumed(id, label).await?,
        None => client.play(label).await?,
    };
    client.0.cancel().await?;
    println!("{found}");
    Ok(())
}
