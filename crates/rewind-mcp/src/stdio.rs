//! Serving over standard input and output until the client is done, or the process is told to stop.
use std::{io, time::Duration};

use tokio::io::{AsyncRead, AsyncWrite};

use rmcp::{
    service::{ServerInitializeError, serve_server_with_ct},
    transport::io::stdio_pipes,
};
use tokio_util::sync::CancellationToken;

use crate::{server::Server, transport::LineTransport};

/// How long running calls may clean up (unmount an FLR session, say) after the client has gone.
pub const CLEAN_UP_TIME: Duration = Duration::from_secs(20);

/// Serves one client over stdin and stdout. Ends when stdin ends or `stop` is cancelled: running calls are cancelled
/// then, and get [`CLEAN_UP_TIME`] to clean up. What they can't finish, the next start does.
///
/// # Errors
/// When the client opens with something else than MCP.
pub async fn serve_stdio(server: Server, stop: CancellationToken) -> io::Result<()> {
    let (stdin, stdout) = stdio_pipes();
    serve_lines(server, stdin, stdout, stop).await
}

/// As [`serve_stdio`], over any pair of streams.
///
/// # Errors
/// When the client opens with something else than MCP.
pub async fn serve_lines(
    server: Server,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    stop: CancellationToken,
) -> io::Result<()> {
    let transport = LineTransport::new(input, output, stop.clone());
    let outcome = match serve_server_with_ct(server.clone(), transport, stop.clone()).await {
        Ok(running) => {
            // What a killed server left mounted need not wait for the first call.
            if let Err(error) = server.backend().rewind() {
                tracing::debug!(%error, "the configuration can't be used yet; the calls say so");
            }
            let quit = running.waiting().await;
            tracing::debug!(?quit, "the session ended");
            Ok(())
        }
        // Nobody came, or we were stopped before anybody did.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            Ok(())
        }
        Err(error) => Err(io::Error::other(error)),
    };
    stop.cancel();
    if tokio::time::timeout(CLEAN_UP_TIME, server.idle())
        .await
        .is_err()
    {
        tracing::warn!("a call did not end in time; the next start cleans up after it");
    }
    outcome
}
