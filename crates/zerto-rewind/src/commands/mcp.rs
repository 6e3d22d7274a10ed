//! `mcp`: the server on stdin and stdout.
use std::sync::Arc;

use rewind_core::{Error, config::Config};
use rewind_mcp::{Backend, Server, serve_stdio};

use crate::{interrupt::Interrupt, output};

/// Serves until the client is done or the process is told to stop. A configuration that `load` can't read is no reason not
/// to start: each call answers with it.
pub async fn run(
    load: impl Fn() -> Result<Config, Error> + Send + Sync + 'static,
    interrupt: Interrupt,
) -> u8 {
    let server = Server::new(Arc::new(Backend::new(load)));
    match serve_stdio(server, interrupt.token()).await {
        Ok(()) => 0,
        Err(error) => {
            output::note(&format!("error: the MCP session could not begin: {error}"));
            1
        }
    }
}
