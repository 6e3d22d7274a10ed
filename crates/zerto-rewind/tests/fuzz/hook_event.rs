//! Events of harnesses on the hook's standard input. None comes out as an allowance of a call that is not guarded.
use clap::ValueEnum as _;
use zerto_rewind::hook::{Format, Understood};

use crate::{
    driver::Target,
    gate::{Does, Scripted},
};

const TARGET: Target = Target {
    name: "hook_event",
    words: &[
        "PreToolUse",
        "PostToolUse",
        "PermissionRequest",
        "BeforeTool",
        "preToolUse",
        "beforeMCPExecution",
        "beforeShellExecution",
        "afterMCPExecution",
        "mcp__vmware__vm_delete",
        "MCP:vmware:vm_delete",
        "vmware-vm_delete",
        "Bash",
        "\"tool_name\":",
        "\"tool_input\":",
        "\"hook_event_name\":",
        "\"toolName\":",
        "\"toolArgs\":",
        "\"params\":",
        "\"arguments\":",
        "\"server_name\":",
        "\"command\":\"ssh jp-ubuntu\"",
        "{",
        "}",
        ",",
        "null",
        "claude\n",
        "codex\n",
        "gemini\n",
        "cursor\n",
        "copilot\n",
        "docker\n",
    ],
    memory: (1 << 20, 64),
};

/// The first line names the format, or none; the rest is the event.
#[test]
fn no_event_comes_out_as_an_allowance() {
    TARGET.run(|input| {
        let (named, event) = match input.iter().position(|byte| *byte == b'\n') {
            Some(end) => (&input[..end], &input[end + 1..]),
            None => (&[][..], input),
        };
        let format = Format::value_variants().iter().copied().find(|format| {
            format
                .to_possible_value()
                .is_some_and(|value| value.get_name().as_bytes() == named)
        });
        let gate = Scripted::new(Does::Refuse);
        let output = gate.answer(format, event);
        let formats =
            format.map_or_else(|| Format::value_variants().to_vec(), |format| vec![format]);
        let understood: Vec<_> = formats
            .into_iter()
            .map(|format| Understood::by(format, &output))
            .collect();
        assert!(!understood.contains(&Understood::Allowed), "{output:?}");
        assert!(
            format.is_none() || understood != [Understood::Failed],
            "{output:?}"
        );
        format!("{format:?} {understood:?} {}", gate.heard().len().min(2))
    });
}
