//! Lines on the MCP server's standard input, from the first byte to the end of the input.
use std::{sync::Arc, time::Duration};

use rewind_core::{Error, ErrorCode};
use rewind_mcp::{Backend, Server, serve_lines};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio_util::sync::CancellationToken;

use crate::driver::Target;

const TARGET: Target = Target {
    name: "mcp_line",
    words: &[
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n",
        "\"method\":\"tools/list\"",
        "\"method\":\"tools/call\"",
        "\"params\":",
        "\"name\":\"zerto_find_protection\"",
        "\"name\":\"zerto_recover_file\"",
        "\"arguments\":{\"vm\":\"x\"}",
        "\"_meta\":{\"progressToken\":1}",
        "\"id\":",
        "null",
        "[",
        "]",
        "{",
        "}",
        ",",
        "\n",
        "\r\n",
        "\u{feff}",
        "\\ud800",
        "notifications/cancelled",
        "\"requestId\":1",
        "\"protocolVersion\":\"2025-11-25\"",
        "server/discover",
    ],
    memory: (4 << 20, 256),
};

#[test]
fn every_line_is_answered_or_passed_over_and_the_server_ends() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    TARGET.run(|input| {
        let lines = input.iter().filter(|byte| **byte == b'\n').count() + 1;
        let ending = async { tokio::time::timeout(Duration::from_secs(10), session(input)).await };
        let said = runtime.block_on(ending);
        let said = said.expect("the server does not end");
        let messages: Vec<Value> = said
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| {
                serde_json::from_slice(line)
                    .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(line)))
            })
            .collect();
        assert!(
            messages.len() <= 2 * lines,
            "{} answers to {lines} lines",
            messages.len()
        );
        for message in &messages {
            assert_eq!(message["jsonrpc"], "2.0", "{message}");
        }
        let mut shape: Vec<String> = messages
            .iter()
            .map(
                |message| match (&message["error"]["code"], &message["result"]) {
                    (Value::Number(code), _) => code.to_string(),
                    (_, result) => result
                        .as_object()
                        .map_or_else(String::new, |result| result.keys().cloned().collect()),
                },
            )
            .collect();
        shape.truncate(4);
        shape
    });
}

/// All that the server says to this input.
async fn session(input: &[u8]) -> Vec<u8> {
    let unconfigured = || {
        Err(Error::new(
            ErrorCode::Configuration,
            "there is no configuration",
        ))
    };
    let server = Server::new(Arc::new(Backend::new(unconfigured)));
    let (mut client, server_input) = duplex(1 << 20);
    let (server_output, mut said) = duplex(1 << 20);
    let serving = serve_lines(
        server,
        server_input,
        server_output,
        CancellationToken::new(),
    );
    let talking = async {
        // A server that has ended reads no more.
        let _ = client.write_all(input).await;
        drop(client);
        let mut all = Vec::new();
        said.read_to_end(&mut all).await.unwrap();
        all
    };
    let (_, all) = tokio::join!(serving, talking);
    all
}
