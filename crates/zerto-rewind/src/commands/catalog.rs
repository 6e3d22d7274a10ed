//! `catalog`: the list of tool calls that must be guarded. Nothing here calls a ZVM.
pub mod accept;
pub mod scan;

use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use owo_colors::OwoColorize as _;
use rewind_core::{
    Error, ErrorCode,
    catalog::{Call, Catalog, Entry, Lookup, Mode, RuleError},
    tag::{Tag, TagFields},
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    cli::{self, CatalogTest},
    interrupt::Interrupt,
    output::{self, Output},
    session,
    table::table,
};

/// Stands in the shown tag for the name of the client that will make the call.
const SOME_AGENT: &str = "some-agent";

/// The longest arguments that are read from stdin, in bytes.
const ARGUMENTS_MAX: u64 = 16 << 20;

pub async fn run(
    config: Option<&Path>,
    command: cli::Catalog,
    output: Output,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    match command {
        cli::Catalog::List { file } => {
            let (file, catalog) = load(config, file, "FILE")?;
            output.result(&Listing::new(&file, &catalog), Listing::show);
        }
        cli::Catalog::Validate { file } => {
            let (file, catalog) = load(config, file, "FILE")?;
            output.result(&Listing::new(&file, &catalog), Listing::show_count);
        }
        cli::Catalog::Test(test) => {
            let (_, catalog) = load(config, test.catalog.clone(), "--catalog FILE")?;
            // The agent's name may be fixed there; a catalog can be tested without it.
            let configured = session::load(config).ok().and_then(|config| config.agent);
            let agent = configured.as_deref().unwrap_or(SOME_AGENT);
            output.result(&decide(&catalog, &test, agent)?, Decision::show);
        }
        cli::Catalog::Scan(arguments) => scan::run(arguments, interrupt).await?,
        cli::Catalog::Accept(arguments) => accept::run(arguments, config, interrupt).await?,
    }
    Ok(())
}

/// The catalog that was named, else the configured one. `argument` is how one is named.
fn load(
    config: Option<&Path>,
    file: Option<PathBuf>,
    argument: &str,
) -> Result<(PathBuf, Catalog), Error> {
    let file = match file {
        Some(file) => file,
        None => {
            let config = session::load(config)?;
            let named = config.file.display();
            config.catalog.ok_or_else(|| {
                Error::new(
                    ErrorCode::Configuration,
                    format!("{named}: the configuration names no catalog, so nothing says which calls have to be guarded"),
                )
                .with_next(format!(
                    "Set `catalog` in {named} to the path of a catalog (catalog.example.toml is a start), or give {argument}."
                ))
            })?
        }
    };
    let catalog = Catalog::load(&file)?;
    Ok((file, catalog))
}

#[derive(Serialize)]
struct Listing {
    file: PathBuf,
    entries: Vec<Row>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct Row {
    place: String,
    server: String,
    tool: String,
    mode: &'static str,
    vm: String,
    action: String,
    when: Vec<String>,
}

impl Listing {
    fn new(file: &Path, catalog: &Catalog) -> Self {
        Self {
            file: file.to_owned(),
            entries: catalog.entries().iter().map(Row::new).collect(),
            warnings: catalog.warnings().iter().map(ToString::to_string).collect(),
        }
    }

    fn show(&self) -> String {
        let rows = self.entries.iter().map(|row| {
            let Row {
                place,
                server,
                tool,
                mode,
                vm,
                action,
                when,
            } = row;
            let action = if when.is_empty() {
                action.clone()
            } else {
                format!("{action} (when {})", when.join(", "))
            };
            [
                place.clone(),
                server.clone(),
                tool.clone(),
                (*mode).into(),
                vm.clone(),
                action,
            ]
        });
        let headings = ["Entry", "Server", "Tool", "Mode", "VM", "Action"];
        format!("{}{}", table(headings, rows), self.show_warnings())
    }

    fn show_count(&self) -> String {
        let count = self.entries.len();
        let entries = if count == 1 { "entry" } else { "entries" };
        format!(
            "{} {}: {count} {entries}, no mistakes{}",
            "ok".green().bold(),
            output::lines(&self.file.display().to_string()),
            self.show_warnings()
        )
    }

    fn show_warnings(&self) -> String {
        let warnings = self.warnings.iter();
        warnings
            .map(|warning| {
                format!(
                    "\n{} {}",
                    "warning:".yellow().bold(),
                    output::lines(warning)
                )
            })
            .collect()
    }
}

impl Row {
    fn new(entry: &Entry) -> Self {
        Self {
            place: entry.place().into(),
            server: entry.server().into(),
            tool: entry.tool().into(),
            mode: match entry.mode() {
                Mode::Guard => "guard",
                Mode::Deny => "deny",
            },
            vm: entry.vm_rule().to_string(),
            action: entry.action_template().into(),
            when: entry.conditions().iter().map(ToString::to_string).collect(),
        }
    }
}

/// What would be done about a call.
#[derive(Serialize)]
#[serde(rename_all = "snake_case", tag = "decision")]
enum Decision {
    /// Nothing: it is not listed, or no entry applies.
    PassThrough { reasons: Vec<String> },
    /// These VMs are pinned first.
    Guard {
        entry: String,
        vms: Vec<String>,
        action: String,
        change_id: Option<String>,
        /// As they would be written, one for each VM. Agent, time, and a change id that the call does not carry are examples.
        tags: Vec<String>,
    },
    /// It is refused.
    Refuse { entry: String, reason: String },
}

fn decide(catalog: &Catalog, test: &CatalogTest, agent: &str) -> Result<Decision, Error> {
    let arguments = arguments(&test.arguments)?;
    let (server, tool) = test.call();
    let call = Call {
        server,
        tool,
        arguments: &arguments,
    };
    Ok(match catalog.lookup(&call) {
        Lookup::Unlisted => Decision::PassThrough {
            reasons: vec!["no entry names this tool".into()],
        },
        Lookup::DoesNotApply(skipped) => Decision::PassThrough {
            reasons: skipped
                .iter()
                .map(|skipped| format!("{}: {}", skipped.entry.place(), skipped.reason))
                .collect(),
        },
        Lookup::Denied(entry) => Decision::Refuse {
            entry: entry.place().into(),
            reason: "the catalog does not allow this tool".into(),
        },
        Lookup::Listed(entry) => guard(entry, &call, agent).unwrap_or_else(|reason| {
            let entry = entry.place().into();
            Decision::Refuse { entry, reason }
        }),
    })
}

fn guard(entry: &Entry, call: &Call<'_>, agent: &str) -> Result<Decision, String> {
    let rule = |error: RuleError| error.to_string();
    let vms = entry.vms(call.arguments).map_err(rule)?;
    let action = entry.action(call).map_err(rule)?;
    let change_id = entry.change(call.arguments).map_err(rule)?;
    let some_change = rewind_mcp::new_change_id();
    let tags = vms.iter().map(|vm| {
        let fields = TagFields {
            agent,
            action: &action,
            vm,
            change: change_id.as_deref().unwrap_or(&some_change),
            at: Timestamp::now(),
        };
        Tag::build(&fields).map(|tag| tag.to_string())
    });
    Ok(Decision::Guard {
        entry: entry.place().into(),
        tags: tags
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())?,
        vms,
        action,
        change_id,
    })
}

fn arguments(given: &str) -> Result<Value, Error> {
    let invalid = |problem: String| {
        Error::new(
            ErrorCode::InvalidArgument,
            format!("the arguments of the call: {problem}"),
        )
        .with_next("Give them as a JSON object, or - to read them from stdin.")
    };
    let mut text = given.to_owned();
    if given == "-" {
        text.clear();
        let read = std::io::stdin()
            .take(ARGUMENTS_MAX)
            .read_to_string(&mut text);
        read.map_err(|error| invalid(error.to_string()))?;
    }
    match serde_json::from_str(&text) {
        Ok(arguments @ Value::Object(_)) => Ok(arguments),
        Ok(_) => Err(invalid("not a JSON object".into())),
        Err(error) => Err(invalid(error.to_string())),
    }
}

impl Decision {
    fn show(&self) -> String {
        match self {
            Self::PassThrough { reasons } => {
                let reasons: String = reasons
                    .iter()
                    .map(|reason| format!("\n  {}", output::lines(reason)))
                    .collect();
                format!("{}{reasons}", "pass through".bold())
            }
            Self::Guard {
                entry,
                vms,
                action,
                change_id,
                tags,
            } => {
                let change = change_id.as_deref().unwrap_or("(one per session)");
                let tags: String = tags
                    .iter()
                    .map(|tag| format!("\n  tag     {}", output::lines(tag)))
                    .collect();
                format!(
                    "{} by {entry}\n  VM      {}\n  action  {}\n  change  {}{tags}",
                    "guard".green().bold(),
                    output::lines(&vms.join(", ")),
                    output::lines(action),
                    output::lines(change)
                )
            }
            Self::Refuse { entry, reason } => {
                format!(
                    "{} by {entry}\n  {}",
                    "refuse".red().bold(),
                    output::lines(reason)
                )
            }
        }
    }
}
