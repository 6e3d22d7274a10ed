//! An MCP server for tests: it speaks every kind of message, in every protocol revision, over stdio or (`--listen ADDR`)
//! streamable HTTP. Its tools, prompts and resources have the names that the official conformance suite asks for.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]
// Sampling, logging and roots: newer revisions have given them up, older clients have not.
#![allow(deprecated)]
mod content;
mod rounds;
mod server;
mod tasks;
mod tools;

use rmcp::{
    ServiceExt,
    transport::{
        StreamableHttpServerConfig, StreamableHttpService, io::stdio,
        streamable_http_server::session::local::LocalSessionManager,
    },
};
use server::Fixture;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        None => {
            if let Ok(running) = Fixture::new().serve(stdio()).await {
                running.waiting().await.unwrap();
            }
        }
        Some("--listen") => listen(&arguments.next().expect("--listen ADDR")).await,
        Some(other) => panic!("{other}"),
    }
}

/// Serves until it is ended; says where on standard output.
async fn listen(address: &str) {
    let fixture = Fixture::new();
    let config = StreamableHttpServerConfig::default().with_allowed_origins([
        "http://localhost:*",
        "http://127.0.0.1:*",
        "http://[::1]:*",
    ]);
    let service = StreamableHttpService::new(
        move || Ok(fixture.clone()),
        LocalSessionManager::default().into(),
        config,
    );
    let listener = TcpListener::bind(address).await.unwrap();
    println!(
        r#"{{"url":"http://{}/mcp"}}"#,
        listener.local_addr().unwrap()
    );
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service))
        .await
        .unwrap();
}
