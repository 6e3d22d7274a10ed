//! `catalog accept`: a person looks at what changed about listed tools, and accepts it. Until then, their calls are refused.
use std::path::Path;

use owo_colors::OwoColorize as _;
use rewind_core::{
    Error, ErrorCode,
    enforce::{Change, ChangedTool},
    text,
};
use similar::{ChangeTag, TextDiff};

use crate::{interrupt::Interrupt, output, permit, session, terminal};

/// Longer differences are cut: nobody reads them.
const LINES_MAX: usize = 400;
const NAME_MAX_LEN: usize = 128;

/// `catalog accept`.
#[derive(Debug, clap::Args)]
pub struct AcceptArgs {
    /// The tool, or the server and the tool [default: all that changed]
    #[arg(value_name = "[SERVER/]TOOL")]
    pub tool: Option<String>,
}

/// Shows every change, and asks.
///
/// # Errors
///
/// `invalid_argument` where no tool of that name changed, `confirmation_required` without a terminal, `declined`, and those of the
/// configuration and the state.
pub async fn run(
    args: AcceptArgs,
    config: Option<&Path>,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let rewind = session::open(config)?;
    let changed = rewind.changed_tools()?;
    let wanted: Vec<&ChangedTool> = changed
        .iter()
        .filter(|tool| {
            args.tool
                .as_deref()
                .is_none_or(|name| is_called(tool, name))
        })
        .collect();
    if let (Some(name), []) = (&args.tool, wanted.as_slice()) {
        return Err(Error::new(
            ErrorCode::InvalidArgument,
            format!(
                "no listed tool that changed is called {}",
                text::display(name, NAME_MAX_LEN)
            ),
        )
        .with_next("Give SERVER/TOOL as it is listed without an argument.")
        .with_candidates(changed.iter().map(name_of)));
    }
    if wanted.is_empty() {
        output::print("No listed tool differs from what was accepted.");
        return Ok(());
    }
    let (mut declined, mut permitted) = (Vec::new(), false);
    for tool in &wanted {
        output::print(&shown(tool));
        if !terminal::is_there() {
            continue;
        }
        if !permitted {
            permit::may_be_tried(&rewind.config().state_dir)?;
        }
        let question = format!(
            "Is its catalog entry still right for {} as it is now?",
            name_of(tool)
        );
        let agrees = tokio::select! {
            agrees = terminal::agrees(&question) => agrees,
            () = interrupt.token().cancelled_owned() => {
                return Err(Error::new(ErrorCode::Cancelled, "not every change was decided on")
                    .with_next("Run `zerto-rewind catalog accept` again."));
            }
        };
        if agrees {
            if !permitted {
                permit::passphrase_until(&rewind.config().state_dir, interrupt).await?;
                permitted = true;
            }
            rewind.accept_tool(tool, &session::caller())?;
            output::note("Accepted.");
        } else {
            declined.push(name_of(tool));
        }
    }
    if !terminal::is_there() {
        return Err(Error::new(
            ErrorCode::ConfirmationRequired,
            "a person has to accept changed tools at a terminal; nothing was accepted",
        )
        .with_next("Run `zerto-rewind catalog accept` in a terminal."));
    }
    if declined.is_empty() {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::Declined,
        format!("not accepted: {}", declined.join(", ")),
    )
    .with_next("Calls of a tool whose input schema changed stay refused. Correct its catalog entry, or the server, and run this again."))
}

/// `TOOL`, or `SERVER/TOOL`; both may contain slashes.
fn is_called(tool: &ChangedTool, name: &str) -> bool {
    tool.tool == name
        || tool
            .server
            .as_deref()
            .and_then(|server| name.strip_prefix(server)?.strip_prefix('/'))
            .is_some_and(|rest| rest == tool.tool)
}

fn name_of(tool: &ChangedTool) -> String {
    let name = text::display(&tool.tool, NAME_MAX_LEN);
    match &tool.server {
        Some(server) => format!("{}/{name}", text::display(server, NAME_MAX_LEN)),
        None => name,
    }
}

fn shown(tool: &ChangedTool) -> String {
    let mut parts = vec![format!("{}", name_of(tool).bold())];
    if let Some(change) = &tool.schema {
        parts.push("Its input schema changed, so its calls are refused:".to_owned());
        parts.push(difference(change));
    }
    if let Some(change) = &tool.described {
        parts.push("Its description or annotations changed, which agents go by:".to_owned());
        parts.push(difference(change));
    }
    parts.join("\n")
}

/// The changed lines and some around them, each cleaned: the text is the server's.
fn difference(change: &Change) -> String {
    let (Some(before), Some(after)) = (&change.accepted, &change.seen) else {
        return "  (too long to be shown: ask the server for its tools/list)".to_owned();
    };
    let diff = TextDiff::from_lines(before.as_str(), after.as_str());
    let mut lines: Vec<String> = diff
        .grouped_ops(3)
        .iter()
        .flatten()
        .flat_map(|op| diff.iter_changes(op))
        .map(|line| {
            let indent: String = line.value().chars().take_while(|c| *c == ' ').collect();
            let value = format!("{indent}{}", text::one_line(line.value()));
            match line.tag() {
                ChangeTag::Delete => format!("{}", format!("- {value}").red()),
                ChangeTag::Insert => format!("{}", format!("+ {value}").green()),
                ChangeTag::Equal => format!("  {value}"),
            }
        })
        .collect();
    if lines.len() > LINES_MAX {
        let more = lines.len() - LINES_MAX;
        lines.truncate(LINES_MAX);
        lines.push(format!("  (and {more} more lines)"));
    }
    lines.join("\n")
}
