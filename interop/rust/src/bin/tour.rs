//! Lists the tools of a server and calls one of them, by the Rust SDK, and prints both results, as
//! JSON. Standard input has the target, {url} or {argv}, the era, legacy, modern or auto, the
//! tool, and its arguments.

use std::{error::Error, io::Read};

use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient,
    model::{CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation, ProtocolVersion},
    service::RunningService,
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::{Value, from_value, json};

type Failure = Box<dyn Error>;

struct Handler;

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("interop-rmcp", "1"))
    }
}

async fn connect(told: &Value) -> Result<RunningService<RoleClient, Handler>, Failure> {
    let modern = vec![ProtocolVersion::V_2026_07_28];
    let mode = match told["era"].as_str() {
        Some("legacy") => ClientLifecycleMode::Initialize,
        Some("modern") => ClientLifecycleMode::Discover {
            preferred_versions: modern,
        },
        _ => ClientLifecycleMode::Auto {
            preferred_versions: modern,
            legacy_version: None,
        },
    };
    if let Some(url) = told["url"].as_str() {
        let transport = StreamableHttpClientTransport::from_uri(url);
        return Ok(Handler.serve_with_lifecycle(transport, mode).await?);
    }
    let argv: Vec<String> = from_value(told["argv"].clone())?;
    let mut command = tokio::process::Command::new(&argv[0]);
    command.args(&argv[1..]);
    Ok(Handler
        .serve_with_lifecycle(TokioChildProcess::new(command)?, mode)
        .await?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let told: Value = serde_json::from_str(&text)?;
    let client = connect(&told).await?;
    let tools = client.list_all_tools().await?;
    let name = told["tool"].as_str().ok_or("no tool")?.to_owned();
    let arguments = told["arguments"].as_object().cloned().unwrap_or_default();
    let called = client
        .call_tool(CallToolRequestParams::new(name).with_arguments(arguments))
        .await?;
    client.cancel().await?;
    println!("{}", json!({"tools": tools, "called": called}));
    Ok(())
}
