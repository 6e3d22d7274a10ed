//! `mcp`: the server on stdin and stdout.
use std::{path::PathBuf, sync::Arc};

use rewind_mcp::{Backend, Server, serve_stdio};

use crate::{interrupt::Interrupt, output, session};

/// Serves until the client is done or the process is told to stop. A configuration that can't be used is no reason not
/// to start: each call answers with it.
pub async fn run(config: Option<PathBuf>, interrupt: Interrupt) -> u8 {
    let backend = Backend::new(move || session::open(config.as_deref()));
    let server = Server::new(Arc::new(backend));
    match serve_stdio(server, interrupt.token()).await {
        Ok(()) => 0,
        Err(error) => {
            output::note(&format!("error: the MCP session could not begin: {error}"));
            1
        }
    }
}
