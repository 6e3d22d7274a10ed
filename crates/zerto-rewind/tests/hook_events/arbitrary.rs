//! Arbitrary input never panics and never comes out as an allowance.
use crate::gate::{Does, Scripted};
use proptest::prelude::*;
use serde_json::{Map, Value};
use zerto_rewind::hook::{Format, Output, Understood};

fn format() -> impl Strategy<Value = Option<Format>> {
    prop::option::of(prop::sample::select(vec![
        Format::Claude,
        Format::Codex,
        Format::Gemini,
        Format::Cursor,
        Format::Copilot,
        Format::Docker,
    ]))
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(vec![
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "PermissionRequest",
            "BeforeTool",
            "AfterTool",
            "preToolUse",
            "beforeMCPExecution",
            "beforeShellExecution",
            "afterMCPExecution",
            "mcp__vmware__vm_delete",
            "mcp_vmware_vm_delete",
            "vm_delete",
            "MCP:vmware:vm_delete",
            "vmware-vm_delete",
            "Bash",
            "{\"command\":\"jp-ubuntu\"}",
            "{",
            "mcp__",
            "mcp_",
            "__",
            "MCP:",
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec![
            "hook_event_name", "tool_name", "tool_input", "turn_id", "cursor_version", "conversation_id", "command", "toolName", "toolArgs",
            "toolResult", "params", "name", "arguments", "mcp_context", "server_name", "mcp_server_name", "tool_response", "content",
            "session_id", "tool_use_id", "is_interrupt", "error",
        ]).prop_map(str::to_owned),
        1 => ".{0,8}",
    ]
}

/// The call may run only where nothing is decided, and then only where the gate was not asked to guard it.
fn check(given: Option<Format>, output: &Output) -> Result<(), TestCaseError> {
    let formats = match given {
        Some(format) => vec![format],
        None => vec![
            Format::Claude,
            Format::Codex,
            Format::Gemini,
            Format::Cursor,
            Format::Copilot,
            Format::Docker,
        ],
    };
    for format in formats {
        prop_assert_ne!(
            Understood::by(format, output),
            Understood::Allowed,
            "{:?}: {:?}",
            format,
            output
        );
    }
    if let Some(format) = given {
        prop_assert_ne!(
            Understood::by(format, output),
            Understood::Failed,
            "{:?}: {:?}",
            format,
            output
        );
    }
    Ok(())
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_denied(given in format(), input in prop::collection::vec(any::<u8>(), 0..400)) {
        let gate = Scripted::new(Does::Pin);
        let output = gate.answer(given, &input);
        check(given, &output)?;
        // No event of any harness comes out of noise.
        if serde_json::from_slice::<Map<String, Value>>(&input).is_err() {
            prop_assert_eq!(Understood::by(given.unwrap_or(Format::Claude), &output), Understood::Denied);
        }
        prop_assert_eq!(gate.heard(), []);
    }

    #[test]
    fn arbitrary_events_never_come_out_as_an_allowance(given in format(), fields in prop::collection::btree_map(key(), value(), 0..8)) {
        let event = Value::Object(fields.into_iter().collect());
        let output = Scripted::new(Does::Refuse).answer(given, event.to_string().as_bytes());
        check(given, &output)?;
    }
}
