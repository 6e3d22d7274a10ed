//! Serving over standard input and output until the client is done, or the process is told to stop.
use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use rmcp::{
    service::{ServerInitializeError, serve_server_with_ct},
    transport::io::stdio_pipes,
};
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;

use crate::server::Server;

/// How long running calls may clean up (unmount an FLR session, say) after the client has gone.
pub const CLEAN_UP_TIME: Duration = Duration::from_secs(20);

/// Serves one client over stdin and stdout. Ends when stdin ends or `stop` is cancelled: running calls are cancelled
/// then, and get [`CLEAN_UP_TIME`] to clean up. What they can't finish, the next start does.
///
/// # Errors
/// When the client opens with something else than MCP.
pub async fn serve_stdio(server: Server, stop: CancellationToken) -> io::Result<()> {
    let (stdin, stdout) = stdio_pipes();
    let stdin = UntilEnd {
        inner: stdin,
        ended: stop.clone(),
    };
    let outcome = match serve_server_with_ct(server.clone(), (stdin, stdout), stop.clone()).await {
        Ok(running) => {
            let cleaning = tokio::spawn(clean_up_orphans(server.clone()));
            let quit = running.waiting().await;
            tracing::debug!(?quit, "the session ended");
            cleaning.abort();
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

/// Unmounts what a killed server left behind. With an unusable configuration there is nothing to do: the calls say so.
async fn clean_up_orphans(server: Server) {
    let Ok(rewind) = server.backend().rewind() else {
        return;
    };
    match rewind.clean_up_orphans().await {
        Ok(0) => {}
        Ok(sessions) => tracing::info!(sessions, "unmounted what an earlier run left behind"),
        Err(error) => {
            tracing::warn!(code = ?error.code, "an earlier run left something behind that could not be unmounted: {error}")
        }
    }
}

/// Standard input that tells when it has ended. The service loop alone would let calls run on for a while.
struct UntilEnd<R> {
    inner: R,
    ended: CancellationToken,
}

impl<R: AsyncRead + Unpin> AsyncRead for UntilEnd<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let poll = Pin::new(&mut self.inner).poll_read(context, buffer);
        let ended = match &poll {
            Poll::Ready(Ok(())) => buffer.filled().len() == before && buffer.remaining() > 0,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if ended {
            self.ended.cancel();
        }
        poll
    }
}
