//! `audit`: the ledger, to be read and checked.
use std::{path::Path, time::Duration};

use clap::{Args, Subcommand};
use owo_colors::OwoColorize as _;
use rewind_core::{
    Error,
    ledger::{Comparison, Entry, Filter, Ledger, Shown, Verification},
    text::{self, counted},
};
use serde::Serialize;

use super::stop::state_dir;
use crate::{
    cli::{duration, not_blank},
    interrupt::Interrupt,
    output::{self, Output},
    session::Session,
    table::{is_drawn, moment, table},
};

/// Rows that are listed where no number is given.
const ROWS: u32 = 50;
/// More findings than these are counted, not told.
const FINDINGS_TOLD: usize = 100;

#[derive(Subcommand)]
pub enum Audit {
    /// List what happened, newest first
    #[command(after_help = "\
Examples:
  zerto-rewind audit list --vm app01 --since 7d
  zerto-rewind audit list --change CHG-412 --all")]
    List(ListArgs),
    /// Show one row with all that is known of it
    Show {
        /// Its number, as `list` shows it
        row: u32,
    },
    /// Print the rows as JSON lines, oldest first, each with its hash
    #[command(after_help = "\
Examples:
  zerto-rewind audit export > ledger.jsonl
  zerto-rewind audit export --since 24h | jq -c 'select(.kind == \"guard\")'")]
    Export(Which),
    /// Check that no row was changed, removed, inserted or moved
    #[command(after_help = VERIFY_HELP)]
    Verify(VerifyArgs),
}

const VERIFY_HELP: &str = "\
Examples:
  zerto-rewind audit verify
  zerto-rewind audit verify --journal --vm app01

Exits with 1 where something is not as it was written. What the chain can't show: that its newest rows were cut off, or that
all of it was made anew. Note the newest row and its hash elsewhere, or compare with the journal.";

/// Which rows.
#[derive(Args)]
pub struct Which {
    /// Of this VM: its name or its vmIdentifier
    #[arg(long, value_name = "VM", value_parser = not_blank)]
    vm: Option<String>,
    /// Of this agent, as it was declared; for a recovery, of this client
    #[arg(long, value_name = "NAME", value_parser = not_blank)]
    agent: Option<String>,
    /// Of this change
    #[arg(long, value_name = "ID", value_parser = not_blank)]
    change: Option<String>,
    /// How far back to look: 90m, 24h, 7d [default: to the beginning]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = duration)]
    since: Option<Duration>,
}

#[derive(Args)]
pub struct ListArgs {
    #[command(flatten)]
    which: Which,
    /// At most so many rows
    #[arg(long, value_name = "N", default_value_t = ROWS, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Also rows that only belong to others: single pins, inserts, outcomes
    #[arg(long)]
    all: bool,
}

#[derive(Args)]
pub struct VerifyArgs {
    /// Compare with the journals on the ZVM, too
    #[arg(long)]
    journal: bool,
    /// Only the journals of the VPGs that protect this VM [default: of every VPG that the ledger knows]
    #[arg(long, value_name = "VM", requires = "journal", value_parser = not_blank)]
    vm: Option<String>,
    /// How far back to look in the journals: 24h, 7d [default: to their beginnings]
    #[arg(long, value_name = "DURATION", requires = "journal", allow_hyphen_values = true, value_parser = duration)]
    since: Option<Duration>,
}

impl Which {
    fn filter(self) -> Filter {
        Filter {
            vm: self.vm,
            agent: self.agent,
            change: self.change,
            since: self.since,
            everything: true,
            limit: None,
        }
    }
}

/// Runs one of them to its exit code.
///
/// # Errors
/// Those of the state, and with `--journal` of the ZVM.
pub async fn run(
    config: Option<&Path>,
    command: Audit,
    output: Output,
    interrupt: &Interrupt,
) -> Result<u8, Error> {
    let ledger = Ledger::of(&state_dir(config)?);
    match command {
        Audit::List(ListArgs { which, limit, all }) => {
            let filter = Filter {
                everything: all,
                limit: usize::try_from(limit).ok(),
                ..which.filter()
            };
            let entries = ledger.list(&filter)?;
            output.result(&entries, |entries| list(entries, limit));
            Ok(0)
        }
        Audit::Show { row } => {
            output.result(&ledger.show(row.into())?, show);
            Ok(0)
        }
        Audit::Export(which) => {
            ledger.export(&which.filter(), |line| output::print_line(&line))?;
            Ok(0)
        }
        Audit::Verify(arguments) => verify(&ledger, config, arguments, output, interrupt).await,
    }
}

#[derive(Serialize)]
struct Report {
    /// Nothing was found, here or there.
    clean: bool,
    #[serde(flatten)]
    ledger: Verification,
    #[serde(skip_serializing_if = "Option::is_none")]
    journal: Option<Comparison>,
}

async fn verify(
    ledger: &Ledger,
    config: Option<&Path>,
    arguments: VerifyArgs,
    output: Output,
    interrupt: &Interrupt,
) -> Result<u8, Error> {
    let verified = ledger.verify()?;
    let journal = match arguments.journal {
        true => {
            let session = Session::open(config, interrupt)?;
            let compared = session.run(async |rewind, call| {
                rewind
                    .compare_with_journals(arguments.vm.as_deref(), arguments.since, &call)
                    .await
            });
            Some(compared.await?)
        }
        false => None,
    };
    let report = Report {
        clean: verified.findings.is_empty() && journal.as_ref().is_none_or(|journal| journal.clean),
        ledger: verified,
        journal,
    };
    output.result(&report, |report| {
        let journal = report.journal.as_ref().map(compared).unwrap_or_default();
        format!("{}{journal}", checked(&report.ledger))
    });
    Ok(if report.clean { 0 } else { 1 })
}

fn list(entries: &[Entry], limit: u32) -> String {
    if entries.is_empty() {
        return "The ledger has no such row.".to_owned();
    }
    let more = match usize::try_from(limit).is_ok_and(|limit| entries.len() >= limit) {
        true => "\n\nThere may be more: raise --limit.",
        false => "",
    };
    let rows = if is_drawn() {
        let headings = ["Row", "Time (UTC)", "Kind", "What"];
        table(headings, entries.iter().map(narrow))
    } else {
        let headings = ["Row", "Time (UTC)", "Kind", "VM", "Agent", "Change", "What"];
        table(headings, entries.iter().map(wide))
    };
    format!("{rows}{more}")
}

fn wide(entry: &Entry) -> [String; 7] {
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let vms = match (entry.vms.as_slice(), entry.vm_identifiers.as_slice()) {
        ([], []) => "-".to_owned(),
        ([], identifiers) => identifiers.join(", "),
        (names, _) => names.join(", "),
    };
    [
        entry.row.to_string(),
        moment(&entry.at),
        entry.kind.clone(),
        vms,
        or_none(&entry.agent),
        or_none(&entry.change_id),
        text::one_line(&entry.what),
    ]
}

/// For a screen: what gives way is the text.
fn narrow(entry: &Entry) -> [String; 4] {
    let [row, time, kind, vm, agent, change, what] = wide(entry);
    let concerns: Vec<_> = [vm, agent, change]
        .into_iter()
        .filter(|one| one != "-")
        .collect();
    let what = match concerns.is_empty() {
        true => what,
        false => format!("{what}\n{}", concerns.join("  ")),
    };
    [row, time, kind, what]
}

fn show(shown: &Shown) -> String {
    let mut rows: Vec<[String; 2]> = Vec::new();
    let mut row = |name: &str, value: String| rows.push([name.to_owned(), value]);
    let entry = &shown.entry;
    let [number, time, kind, vm, agent, change, what] = wide(entry);
    for (name, value) in [
        ("row", number),
        ("time", format!("{time} (UTC)")),
        ("kind", kind),
        ("vm", vm),
        ("agent", agent),
        ("change", change),
        ("what", what),
    ] {
        row(name, value);
    }
    let brief = |entry: &Entry| format!("row {}, {}: {}", entry.row, entry.kind, entry.what);
    if let Some(intent) = &shown.intent {
        row("outcome of", brief(intent));
    }
    for closing in &shown.closed_by {
        row("closed by", brief(closing));
    }
    if let Some(columns) = shown.content.as_object() {
        for (name, value) in columns {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            row(&format!("row.{name}"), text::one_line(&value));
        }
    }
    row("prev", shown.prev.clone());
    row("hash", shown.hash.clone());
    let width = rows.iter().map(|[name, _]| name.len()).max().unwrap_or(0);
    let lines: Vec<_> = rows
        .iter()
        .map(|[name, value]| format!("{name:width$}  {}", output::lines(value)))
        .collect();
    lines.join("\n")
}

fn checked(verified: &Verification) -> String {
    let rows = counted(verified.rows, "row", "rows");
    let mut said = match verified.findings.len() {
        0 => format!(
            "{}: {rows}.\n",
            "The ledger is as it was written".green().bold()
        ),
        found => format!(
            "{}: {} in {rows}.\n",
            "The ledger is not as it was written".red().bold(),
            counted(found, "finding", "findings")
        ),
    };
    said += &findings(&verified.findings);
    if let Some(newest) = &verified.newest {
        said += &format!(
            "Newest row {} of {} (UTC), {}\n",
            newest.row,
            moment(&newest.at),
            newest.hash
        );
    }
    let open = verified.open_intents;
    if open.under_way > 0 {
        said += &format!(
            "{} under way.\n",
            counted(open.under_way, "intent is", "intents are")
        );
    }
    if open.interrupted > 0 {
        said += &format!(
            "{} of processes that died: the next start closes what is theirs as interrupted.\n",
            counted(open.interrupted, "intent is", "intents are")
        );
    }
    said
}

fn findings<T: ToString>(found: &[T]) -> String {
    let told = found.iter().take(FINDINGS_TOLD);
    let mut lines: String = told
        .map(|finding| format!("  - {}\n", output::lines(&finding.to_string())))
        .collect();
    if let Some(more @ 1..) = found.len().checked_sub(FINDINGS_TOLD) {
        lines += &format!("  … and {more} more; --json has them all\n");
    }
    lines
}

fn compared(comparison: &Comparison) -> String {
    let mut said = match (comparison.journals.is_empty(), comparison.clean) {
        (true, _) => {
            return "\nThe ledger knows no VPG of this ZVM: there is nothing to compare.\n"
                .to_owned();
        }
        (false, true) => format!(
            "\n{}.\n",
            "The journals have what the ledger says".green().bold()
        ),
        (false, false) => format!("\n{}.\n", "The journals and the ledger differ".red().bold()),
    };
    for journal in &comparison.journals {
        let from = journal.from.as_deref().map_or_else(
            || "it has no journal".to_owned(),
            |from| format!("from {} (UTC)", moment(from)),
        );
        let aged_out = match journal.aged_out {
            0 => String::new(),
            aged_out => format!(", {aged_out} aged out as expected"),
        };
        let not_looked_at = match journal.not_looked_at {
            0 => String::new(),
            older => format!(", {older} older not looked at"),
        };
        said += &format!(
            "VPG {}, {from}: {} listed{aged_out}{not_looked_at}\n",
            output::lines(&journal.vpg),
            counted(journal.listed, "pin", "pins")
        );
        said += &findings(&journal.findings);
    }
    said
}
