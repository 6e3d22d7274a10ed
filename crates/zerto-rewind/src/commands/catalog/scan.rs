//! `catalog scan`: asks an MCP server for its tools and prints the draft of a catalog for it. Nothing here calls a ZVM or a tool.
mod draft;

use std::{ffi::OsString, time::Duration};

use rewind_core::{Error, ErrorCode, config::withhold_secrets, text};
use rmcp::{
    RoleClient,
    model::{
        ClientCapabilities, ClientConfig, Implementation, PaginatedRequestParams, ProtocolVersion,
        Tool,
    },
    service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, RunningService},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use tokio::{process::Command, time::timeout};

use crate::{interrupt::Interrupt, output};

pub use draft::{Described, draft};

/// How long a server may take, from its start to its last tool.
const TIME: Duration = Duration::from_secs(60);
/// More tools than these are not asked for.
const TOOLS_MAX: usize = 10_000;
const PAGES_MAX: usize = 1_000;

/// `catalog scan`.
#[derive(Debug, clap::Args)]
pub struct ScanArgs {
    /// The server's name in the entries [default: the name that it reports]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The URL of a server that speaks streamable HTTP
    #[arg(
        long,
        value_name = "URL",
        conflicts_with = "command",
        required_unless_present = "command"
    )]
    pub url: Option<String>,
    /// The command that starts the server, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

type Client = RunningService<RoleClient, ClientConfig>;

/// Prints the draft.
///
/// # Errors
///
/// The server cannot be started or reached, or does not list its tools.
pub async fn run(args: ScanArgs, interrupt: &Interrupt) -> Result<(), Error> {
    let asking = async {
        let client = connect(&args).await?;
        let reported = client
            .peer_info()
            .and_then(|server| server.server_info.as_ref().map(|info| info.name.clone()));
        let tools = tools(&client).await?;
        Ok((client, reported, tools))
    };
    let (client, reported, tools) = tokio::select! {
        asked = timeout(TIME, asking) => asked.unwrap_or_else(|_| {
            let seconds = TIME.as_secs();
            Err(failed(format!("the server did not list its tools within {seconds} s")))
        })?,
        () = interrupt.token().cancelled_owned() => return Err(interrupted()),
    };
    let server = args.name.or(reported);
    output::print(&draft(server.as_deref(), &tools));
    if let Err(error) = client.cancel().await {
        tracing::debug!(%error, "the server did not end in good order");
    }
    Ok(())
}

async fn connect(args: &ScanArgs) -> Result<Client, Error> {
    let newest = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: None,
    };
    let client = ClientConfig::new(
        ClientCapabilities::default(),
        Implementation::new("zerto-rewind", env!("CARGO_PKG_VERSION")),
    );
    let no_answer = |error: ClientInitializeError| {
        let cause = match &error {
            ClientInitializeError::TransportError { error, .. } => cause(&*error.error),
            error => error.to_string(),
        };
        failed(format!(
            "the server does not answer as an MCP server: {cause}"
        ))
    };
    if let Some(url) = &args.url {
        // TLS is needed for https alone; a provider that is there already is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let transport = StreamableHttpClientTransport::from_uri(url.as_str());
        return client
            .serve_with_lifecycle(transport, newest)
            .await
            .map_err(no_answer);
    }
    let Some((program, arguments)) = args.command.split_first() else {
        return Err(failed("neither a command nor --url is given".to_owned()));
    };
    let mut command = Command::new(program);
    command.args(arguments);
    withhold_secrets(command.as_std_mut());
    let transport = TokioChildProcess::new(command)
        .map_err(|error| failed(format!("{} cannot be started: {error}", program.display())))?;
    client
        .serve_with_lifecycle(transport, newest)
        .await
        .map_err(no_answer)
}

/// All pages of the server's list.
async fn tools(client: &Client) -> Result<Vec<Described>, Error> {
    let mut tools = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let page = client
            .list_tools(Some(page))
            .await
            .map_err(|error| failed(format!("the server does not list its tools: {error}")))?;
        tools.extend(page.tools.into_iter().map(Described::from));
        cursor = page.next_cursor;
        if cursor.is_none() || tools.len() > TOOLS_MAX {
            break;
        }
    }
    if cursor.is_some() {
        output::note(
            "The server has more tools than are looked at; the draft holds the first ones.",
        );
    }
    tools.truncate(TOOLS_MAX);
    Ok(tools)
}

fn interrupted() -> Error {
    Error::new(ErrorCode::Cancelled, "the server was not asked to the end")
        .with_next("Run it again when you are ready.")
}

/// What is at the bottom of an error: above it there is only who passed it on.
fn cause(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.last().map_or_else(String::new, ToString::to_string)
}

fn failed(message: String) -> Error {
    Error::new(ErrorCode::InvalidArgument, text::display(&message, 1_000)).with_next(
        "Give the command that starts the server, as it stands in the MCP client's configuration, after `--`, or its URL with --url.",
    )
}

impl From<Tool> for Described {
    fn from(tool: Tool) -> Self {
        let annotations = tool.annotations.unwrap_or_default();
        Self {
            name: tool.name.into_owned(),
            description: tool.description.map(Into::into).unwrap_or_default(),
            schema: tool.input_schema.as_ref().clone().into(),
            read_only: annotations.read_only_hint,
            destructive: annotations.destructive_hint,
        }
    }
}
