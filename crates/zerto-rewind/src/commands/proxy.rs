//! `zerto-rewind proxy`: another MCP server, with the guard before its listed tools.
use std::{
    ffi::OsString,
    io::{self, Write as _},
    net::SocketAddr,
    path::PathBuf,
    process::ExitCode,
};

use clap::Args;
use rewind_core::{Error, ErrorCode, enforce::Enforcer};
use rewind_mcp::proxy::{
    Enforcement, Listener, MAX_MESSAGE, Settings, Upstream, bridge, extra_headers, relay,
};
use tokio::runtime::Runtime;

use crate::{
    logging::{self, ByDefault},
    output::Output,
    session,
};

/// Wrong usage or configuration.
const USAGE: u8 = 2;

/// `proxy`.
#[derive(Debug, Args)]
pub struct ProxyArgs {
    /// The server's name for the catalog [default: the name that the server reports]
    #[arg(long)]
    name: Option<String>,

    /// A server that speaks streamable HTTP, instead of a command. The environment adds headers:
    /// ZERTO_REWIND_PROXY_HEADER_AUTHORIZATION="Bearer …"
    #[arg(long, conflicts_with = "command")]
    url: Option<String>,

    /// Offer the server behind --url over HTTP on this loopback address, instead of standard input and output. The address
    /// is printed as JSON; port 0 is any free port
    #[arg(
        long,
        value_name = "ADDR:PORT",
        requires = "url",
        conflicts_with = "command"
    )]
    listen: Option<SocketAddr>,

    /// The server's command and its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "url")]
    command: Vec<OsString>,
}

/// Stands before the server until it or the client ends. The exit code is the server's. Without a usable configuration and
/// catalog it does not start.
pub fn run(args: ProxyArgs, config: Option<PathBuf>) -> ExitCode {
    logging::start(ByDefault::Warnings);
    let ready = session::open(config.as_deref())
        .and_then(Enforcer::new)
        .and_then(|enforcer| Ok((enforcer, runtime()?)));
    let (enforcer, runtime) = match ready {
        Ok(ready) => ready,
        // Standard output belongs to the client.
        Err(error) => return ExitCode::from(Output::new(false).error(&error)),
    };
    let code = runtime.block_on(args.serve(enforcer));
    // A read of stdin can't be cancelled: don't wait for it.
    runtime.shutdown_background();
    ExitCode::from(code)
}

/// Guards are tasks; the relay's own work is done by threads.
fn runtime() -> Result<Runtime, Error> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| {
            Error::new(
                ErrorCode::State,
                format!("no runtime could be started: {error}"),
            )
            .with_next("See that the limits of open files and processes are not reached.")
        })
}

impl ProxyArgs {
    async fn serve(self, enforcer: impl Enforcement) -> u8 {
        let settings = Settings {
            name: self.name,
            longest: MAX_MESSAGE,
        };
        let ended = match self.url {
            Some(url) => serve_url(&url, self.listen, enforcer, settings).await,
            None => serve_command(self.command, enforcer, settings).await,
        };
        ended.unwrap_or_else(|failure| {
            anstream::eprintln!("error: {}", failure.message);
            failure.code
        })
    }
}

struct Failure {
    message: String,
    code: u8,
}

fn usage(error: impl std::error::Error) -> Failure {
    Failure {
        message: error.to_string(),
        code: USAGE,
    }
}

async fn serve_command(
    command: Vec<OsString>,
    enforcer: impl Enforcement,
    settings: Settings,
) -> Result<u8, Failure> {
    let mut command = command.into_iter();
    // clap asks for it; an empty program can't be started.
    let program = command.next().unwrap_or_default();
    let command = (program, command.collect());
    relay(enforcer, settings, command, io::stdin(), io::stdout())
        .await
        .map_err(|error| Failure {
            message: error.to_string(),
            code: error.exit_code(),
        })
}

async fn serve_url(
    url: &str,
    listen: Option<SocketAddr>,
    enforcer: impl Enforcement,
    settings: Settings,
) -> Result<u8, Failure> {
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let upstream = extra_headers(variables)
        .and_then(|headers| Upstream::new(url, headers))
        .map_err(usage)?;
    let Some(address) = listen else {
        return Ok(bridge(enforcer, settings, upstream, io::stdin(), io::stdout()).await);
    };
    let listener = Listener::bind(address).await.map_err(usage)?;
    let url = listener.url(&upstream).map_err(usage)?;
    let mut stdout = io::stdout();
    writeln!(stdout, "{}", serde_json::json!({ "url": url }))
        .and_then(|()| stdout.flush())
        .map_err(usage)?;
    listener
        .serve(enforcer, settings, upstream)
        .await
        .map_err(|error| Failure {
            message: error.to_string(),
            code: 1,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory as _, FromArgMatches as _, Parser};

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        proxy: ProxyArgs,
    }

    fn parse(arguments: &[&str]) -> Result<ProxyArgs, clap::Error> {
        let matches = Cli::command().try_get_matches_from([&["proxy"], arguments].concat())?;
        Ok(Cli::from_arg_matches(&matches)?.proxy)
    }

    #[test]
    fn a_command_or_a_url() {
        let proxy = parse(&["--name", "vmware", "--", "npx", "-y", "--url", "x"]).unwrap();
        assert_eq!(proxy.command, ["npx", "-y", "--url", "x"]);
        assert!(parse(&["--url", "https://example.com/mcp"]).is_ok());
        assert!(parse(&["--url", "http://x/", "--listen", "127.0.0.1:0"]).is_ok());
        for wrong in [
            &[][..],
            &["--"],
            &["npx"],
            &["--url", "x", "--", "npx"],
            &["--listen", "127.0.0.1:0", "--", "npx"],
            &["--url", "x", "--listen", "here"],
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
