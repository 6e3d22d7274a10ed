//! The demo's voice: calm, and within 80 columns.
use owo_colors::OwoColorize as _;
use rmcp::model::JsonObject;

use super::stage::{self, Kept};
use crate::output;

const WIDTH: usize = 79;
const INDENT: &str = "   ";
/// Where a long word begins.
const LEAST_MARGIN: usize = 6;

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
    const BAR: &str = "   │ ";
    for line in output::lines(quoted).lines() {
        let text = line.trim_start();
        let margin = line.len() - text.len();
        let column = text.find("  ").map_or(0, |gap| {
            text.len() - text.get(gap..).unwrap_or_default().trim_start().len()
        });
        let first = format!("{BAR}{}", " ".repeat(margin));
        let rest = format!("{first}{}", " ".repeat(column));
        output::print(&wrap_after(text, &first, &rest));
    }
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

/// How to go on by hand.
pub fn kept(kept: &Kept) {
    let commands = [
        format!("export ZERTO_REWIND_CONFIG={}", kept.config.display()),
        format!("zerto-rewind find {}", stage::VM),
        format!("zerto-rewind guard {} --action \"try it\"", stage::VM),
        format!("zerto-rewind checkpoints {}", stage::VM),
        format!(
            "zerto-rewind recover {} {} --at CHECKPOINT",
            stage::VM,
            stage::FILE
        ),
    ];
    output::print(&format!(
        "\nThe ZVM keeps running, and everything is kept:\n\n  {}\n  {}\n\nIn another terminal:\n\n{}\n\n\
         Ctrl-C here stops the ZVM; the folder stays.",
        kept.folder.display(),
        kept.file.display(),
        commands
            .map(|line| format!("  {}", line.green()))
            .join("\n")
    ));
}

/// Breaks a text at spaces. Its first line begins with `first`, the others are as far to the right.
fn wrap(sentence: &str, first: &str) -> String {
    wrap_after(sentence, first, &" ".repeat(first.chars().count()))
}

/// Breaks a text at spaces. Its first line begins with `first`, the others with `rest`. What does not fit between these
/// gets a line almost to itself.
fn wrap_after(sentence: &str, first: &str, rest: &str) -> String {
    let mut wrapped = first.to_owned();
    let mut margin = first.chars().count();
    let mut column = margin;
    for word in sentence.split(' ') {
        let length = word.chars().count();
        let fresh = column == margin;
        if column + usize::from(!fresh) + length > WIDTH && !(fresh && margin <= LEAST_MARGIN) {
            let rest: String = match rest.chars().count() + length {
                fits if fits <= WIDTH => rest.to_owned(),
                _ => rest.chars().take(LEAST_MARGIN).collect(),
            };
            margin = rest.chars().count();
            wrapped = format!("{}\n{rest}", wrapped.trim_end());
            column = margin;
        } else if !fresh {
            wrapped.push(' ');
            column += 1;
        }
        wrapped.push_str(word);
        column += length;
    }
    wrapped
}
