//! `demo-guest-ops`: an MCP server that changes files of the simulated guests. It asks nobody, and knows nothing of guards.
use std::{fs, io::Write as _, path::PathBuf, sync::Arc};

use jiff::Timestamp;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
        JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
        Tool, ToolAnnotations, object,
    },
    service::{RequestContext, ServerInitializeError, serve_server_with_ct},
    transport::io::stdio_pipes,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::stage;
use crate::{cli::DemoGuestOps, interrupt::Interrupt, output};

mod files;

use files::Guests;

/// The server's name for the catalog.
pub const NAME: &str = "guest-ops";

/// What an agent can ask for. The arguments are those of `tools/call`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "tool", content = "arguments", deny_unknown_fields)]
pub enum Order {
    #[serde(rename = "read_file")]
    Read { vm: String, path: String },
    #[serde(rename = "write_file")]
    Write {
        vm: String,
        path: String,
        content: String,
    },
    #[serde(rename = "move_file")]
    Move {
        vm: String,
        path: String,
        to: String,
    },
    #[serde(rename = "delete_file")]
    Delete { vm: String, path: String },
}

impl Order {
    /// The file that it is about.
    pub fn file(&self) -> (&str, &str) {
        match self {
            Self::Read { vm, path }
            | Self::Write { vm, path, .. }
            | Self::Move { vm, path, .. }
            | Self::Delete { vm, path } => (vm, path),
        }
    }

    /// The tool and its arguments, as `tools/call` has them.
    pub fn call(&self) -> serde_json::Result<(String, Value)> {
        #[derive(Deserialize)]
        struct Call {
            tool: String,
            arguments: Value,
        }
        let call: Call = serde_json::from_value(serde_json::to_value(self)?)?;
        Ok((call.tool, call.arguments))
    }
}

/// A call that has arrived, as the server writes it down before it does anything.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Received {
    pub at: Timestamp,
    pub order: Order,
}

/// Serves until the client is done or the process is told to stop.
pub async fn run(arguments: DemoGuestOps, interrupt: Interrupt) -> u8 {
    let server = Server(Arc::new(Inner {
        guests: Guests::new(stage::scenario(), arguments.guests),
        received: arguments.received,
    }));
    match serve_server_with_ct(server, stdio_pipes(), interrupt.token()).await {
        Ok(running) => {
            let quit = running.waiting().await;
            tracing::debug!(?quit, "the session ended");
            0
        }
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => 0,
        Err(error) => {
            output::note(&format!("error: the MCP session could not begin: {error}"));
            1
        }
    }
}

#[derive(Clone)]
struct Server(Arc<Inner>);

struct Inner {
    guests: Guests,
    received: PathBuf,
}

impl Inner {
    /// Writes the order down and carries it out.
    fn obey(&self, order: Order) -> Result<String, String> {
        let received = Received {
            at: Timestamp::now(),
            order,
        };
        self.note(&received).map_err(|error| {
            format!("nothing was done: the call can't be written down: {error}")
        })?;
        self.guests.obey(&received.order)
    }

    fn note(&self, received: &Received) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(received)?;
        line.push(b'\n');
        let mut file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.received)?;
        file.write_all(&line)
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let this = Implementation::new(NAME, env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(this)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let order = read(&request.name, request.arguments.unwrap_or_default())?;
        let result = match self.0.obey(order) {
            Ok(done) => CallToolResult::success(vec![ContentBlock::text(done)]),
            Err(why) => CallToolResult::error(vec![ContentBlock::text(why)]),
        };
        Ok(result.into())
    }
}

fn read(tool: &str, arguments: JsonObject) -> Result<Order, ErrorData> {
    serde_json::from_value(json!({ "tool": tool, "arguments": arguments }))
        .map_err(|error| ErrorData::invalid_params(error.to_string(), None))
}

fn tools() -> Vec<Tool> {
    let path = (
        "path",
        "The file on the VM: an absolute path, without links",
    );
    let changes = || ToolAnnotations::new().read_only(false).destructive(true);
    let tools = [
        tool(
            "read_file",
            "Read a text file of a VM",
            &[path],
            ToolAnnotations::new()
                .read_only(true)
                .destructive(false)
                .idempotent(true),
        ),
        tool(
            "write_file",
            "Write a text file of a VM, over what is there",
            &[path, ("content", "The file's new text")],
            changes().idempotent(true),
        ),
        tool(
            "move_file",
            "Move a file of a VM to where no file is",
            &[path, ("to", "Its new path on the same VM")],
            changes().idempotent(false),
        ),
        tool(
            "delete_file",
            "Delete a file of a VM",
            &[path],
            changes().idempotent(true),
        ),
    ];
    tools.into()
}

fn tool(
    name: &'static str,
    description: &'static str,
    arguments: &[(&str, &str)],
    annotations: ToolAnnotations,
) -> Tool {
    let all = [&[("vm", "The VM's name")], arguments].concat();
    let properties: JsonObject = all
        .iter()
        .map(|(name, what)| {
            let property = json!({ "type": "string", "description": what });
            ((*name).to_owned(), property)
        })
        .collect();
    let required: Vec<Value> = all.iter().map(|(name, _)| (*name).into()).collect();
    let schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    let mut annotations = annotations.open_world(false);
    annotations.title = Some(description.into());
    Tool::new(name, description, Arc::new(object(schema)))
        .with_title(description)
        .with_annotations(annotations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_takes_exactly_what_its_schema_says() {
        for tool in tools() {
            let schema = &tool.input_schema;
            let names = schema["required"].as_array().unwrap();
            let all: JsonObject = names
                .iter()
                .map(|name| (name.as_str().unwrap().to_owned(), json!("x")))
                .collect();
            assert!(read(&tool.name, all.clone()).is_ok(), "{}", tool.name);
            for name in all.keys() {
                let mut less = all.clone();
                less.remove(name);
                assert!(
                    read(&tool.name, less).is_err(),
                    "{} without {name}",
                    tool.name
                );
            }
            let mut more = all;
            more.insert("force".into(), true.into());
            assert!(read(&tool.name, more).is_err(), "{} with more", tool.name);
        }
        assert!(read("format_disk", JsonObject::new()).is_err());
    }
}
