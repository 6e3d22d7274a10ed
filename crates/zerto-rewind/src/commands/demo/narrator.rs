//! The demo's voice: calm, and within 80 columns.
use std::path::{Path, PathBuf};

use owo_colors::OwoColorize as _;
use rmcp::model::JsonObject;

use super::stage::{self, Kept};
use crate::{
    output,
    wrap::{hanging, wrap},
};

const INDENT: &str = "   ";

/// What is going to happen.
pub fn opening() {
    open(
        "zerto-rewind: an agent breaks a file, a human gets it back",
        "Git never had the file, and last night's backup is hours old. But the VM is protected by Zerto, whose journal \
         holds a point every few seconds. The agent has to pin one, with its name and its intent in the tag, before it \
         changes anything.",
        "Only the ZVM is simulated here. The MCP server, the tag, the journal, the guest's ext4 disk and the restore are \
         real.",
    );
}

/// What is going to happen to the agent that asks nobody.
pub fn rogue_opening() {
    open(
        "zerto-rewind: an agent that asks nobody, and gets past nobody",
        "This agent knows nothing of guards, and calls for none. But its tools are behind a proxy, and a catalog lists \
         those that change something. Such a call reaches its server only after a checkpoint was pinned in the journal of \
         every VPG that protects the VM. Otherwise it doesn't.",
        "Only the ZVM is simulated here, with its guests. The agent, the server, the proxy between them, the guests' ext4 \
         disks and the restore are real.",
    );
}

fn open(title: &str, why: &str, real: &str) {
    let (why, real) = (wrap(why, ""), wrap(real, ""));
    output::print(&format!("{}\n\n{why}\n\n{real}", title.bold()));
}

/// A new act.
pub fn act(number: u8, title: &str) {
    output::print(&format!(
        "\n{} {}",
        format!("{number}.").cyan().bold(),
        title.bold()
    ));
}

/// What happens, and why.
pub fn say(sentence: &str) {
    output::print(&wrap(sentence, INDENT));
}

/// What an agent asks of its MCP server.
pub fn asks(agent: &str, tool: &str, arguments: &JsonObject) {
    let arguments = arguments
        .iter()
        .map(|(name, value)| format!(" {name}={value}"));
    let call = format!("{tool}{}", arguments.collect::<String>());
    output::print(&format!(
        "{}",
        wrap(&call, &format!("{INDENT}{agent} → ")).magenta()
    ));
}

/// An empty line.
pub fn pause() {
    output::print("");
}

/// What a person would type for the same.
pub fn command(line: &str) {
    output::print(&format!("{INDENT}{}", format!("$ {line}").green()));
}

/// A fact, under its name.
pub fn fact(name: &str, value: &str) {
    let value = wrap(&output::lines(value), &format!("{INDENT}{name:<12}"));
    output::print(&value);
}

/// A text from elsewhere, as it is, each line cleaned. What is broken in a line goes on below its last column.
pub fn quote(quoted: &str) {
    output::print(&hanging(&output::lines(quoted), "   │ "));
}

/// What changed from `old` to `new`, line by line.
pub fn difference(old: &str, new: &str) {
    for line in old.lines() {
        if new.lines().any(|other| other == line) {
            output::print(&format!("{INDENT}  {line}"));
        } else {
            output::print(&format!("{INDENT}{}", format!("- {line}").red()));
        }
    }
    for line in new
        .lines()
        .filter(|line| !old.lines().any(|other| other == *line))
    {
        output::print(&format!("{INDENT}{}", format!("+ {line}").green()));
    }
}

/// The end that everybody wants.
pub fn success(sentence: &str) {
    output::print(&format!("\n{}", wrap(sentence, "").green().bold()));
}

/// What to do next.
pub fn goodbye() {
    let program = program();
    let next = [
        format!("{program} demo --keep   try the commands by hand on this simulated ZVM"),
        format!("{program} --help        the commands and their options"),
    ];
    output::print(&format!(
        "\nNext:\n{}\n\n{}",
        next.map(|line| format!("  {line}")).join("\n"),
        wrap(
            "With a ZVM of your own: `init` asks for what is needed and tries it (by hand: install -m 600 config.example.json \
             config.json, and fill it in), and `doctor` says what is missing. The README has the rest under \"Set up\".",
            ""
        )
    ));
}

/// How to go on by hand.
pub fn kept(kept: &Kept) {
    let program = program();
    let commands = [
        format!("export ZERTO_REWIND_CONFIG={}", kept.config.display()),
        format!("{program} find {}", stage::VM),
        format!("{program} guard {} --action \"try it\"", stage::VM),
        format!("{program} checkpoints {}", stage::VM),
        format!(
            "{program} recover {} {} --at CHECKPOINT",
            stage::VM,
            stage::FILE
        ),
    ];
    output::print(&format!(
        "\nThe ZVM keeps running, and everything is kept:\n\n  {:<17}{}\n  {:<17}{}\n  {:<17}{}\n\nIn another terminal:\n\n{}\n\n\
         Ctrl-C here stops the ZVM; the folder stays.",
        "folder",
        kept.folder.display(),
        "configuration",
        kept.config.display(),
        "the VM's file",
        kept.file.display(),
        commands
            .map(|line| format!("  {}", line.green()))
            .join("\n")
    ));
}

/// The end of what was kept.
pub fn closed(folder: &Path) {
    output::print(&format!(
        "\nThe simulated ZVM has stopped. What it left is in {0}: rm -r {0}",
        folder.display()
    ));
}

/// This program as it was called, so that its commands can be typed.
fn program() -> String {
    let called = std::env::args_os().next().map(PathBuf::from);
    match called {
        Some(path) if path.components().count() > 1 => path.display().to_string(),
        _ => "zerto-rewind".to_owned(),
    }
}
