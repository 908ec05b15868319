//! Logs in to a server by the Rust SDK, with no browser of its own (see Login in
//! interop/remote), calls a tool that wants no arguments, and prints the text of its result. Standard
//! input has {url, tool, browser, redirect, document}, the last one unless it registers.

use std::{error::Error, io::Read};

use rmcp::{
    ClientLifecycleMode, ClientServiceExt,
    model::{CallToolRequestParams, ProtocolVersion},
    transport::{
        AuthorizationManager, AuthorizationSession, StreamableHttpClientTransport,
        auth::{AuthClient, AuthorizationRequest},
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Told {
    url: String,
    tool: String,
    browser: String,
    redirect: String,
    document: Option<String>,
}

/// Has the test follow an authorization URL, and returns the URL that the user would come back to.
async fn browse(told: &Told, to: &str) -> Result<String, Box<dyn Error>> {
    let at = reqwest::Url::parse_with_params(&told.browser, [("url", to)])?;
    let answer: serde_json::Value = serde_json::from_str(&reqwest::get(at).await?.text().await?)?;
    let values = answer.as_object().ok_or("no object")?;
    let pairs = values
        .iter()
        .map(|(name, value)| (name, value.as_str().unwrap_or_default()));
    Ok(reqwest::Url::parse_with_params(&told.redirect, pairs)?.into())
}

async fn manager(told: &Told) -> Result<AuthorizationManager, Box<dyn Error>> {
    let mut manager = AuthorizationManager::new(&told.url).await?;
    let found = manager.resolve_metadata().await?;
    manager.set_metadata(found.metadata);
    let mut request = AuthorizationRequest::new(&told.redirect)
        .with_client_name("interop-rust")
        .with_application_type("native");
    if let Some(document) = &told.document {
        request = request.with_client_metadata_url(document);
    }
    let session = AuthorizationSession::new(manager, request).await.map_err(|(_, e)| e)?;
    let back = browse(told, session.get_authorization_url()).await?;
    session.handle_callback_url(&back).await?;
    Ok(session.auth_manager)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let told: Told = serde_json::from_str(&text)?;
    let http = AuthClient::new(reqwest::Client::new(), manager(&told).await?);
    let transport = StreamableHttpClientTransport::with_client(
        http,
        StreamableHttpClientTransportConfig::with_uri(told.url.as_str()),
    );
    let mode = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    };
    let client = ().serve_with_lifecycle(transport, mode).await?;
    let result = client.call_tool(CallToolRequestParams::new(told.tool)).await?;
    let result = serde_json::to_value(result)?;
    println!("{}", result["content"][0]["text"].as_str().ok_or("no text")?);
    client.cancel().await?;
    Ok(())
}
