//! Each harness's events in, exact bytes and exit code out.
use crate::gate::{Does, Heard, Scripted};
use rewind_core::enforce::Outcome;
use serde_json::{Value, json};
use zerto_rewind::hook::{Format, Output, Understood};

const SESSION: &str = "0194c6a2-7b1e-4000-8000-0123456789ab";
const NOTE: &str = "zerto-rewind pinned a checkpoint before this call. VM jp-ubuntu: checkpoint 4711 of VPG jp-ubuntu; tag `ai:claude-code | delete | vm=jp-ubuntu | change=ses-0123456789ab | 20260921T170829Z`.";
const REASON: &str = "zerto-rewind: the catalog denies vm_delete. Next: Do not make the change.";

struct Harness {
    format: Format,
    /// A call of `vm_delete` on the server `vmware`.
    listed: Value,
    /// A call of another tool.
    unlisted: Value,
    /// The call is over, well and badly.
    ended: Vec<(Value, Outcome)>,
    neutral: &'static str,
    guarded: String,
    denied: (String, &'static str, u8),
    agent: &'static str,
    /// Whether the harness tells an id of the call, and one of the session.
    correlation: Option<&'static str>,
    session: bool,
}

fn with(base: &Value, more: &Value) -> Value {
    let mut all = base.as_object().unwrap().clone();
    all.extend(more.as_object().unwrap().clone());
    Value::Object(all)
}

fn harnesses() -> Vec<Harness> {
    let arguments = json!({"name": "jp-ubuntu"});
    let text = arguments.to_string();

    let claude = json!({
        "session_id": SESSION, "prompt_id": "p", "transcript_path": "/t.jsonl", "cwd": "/w", "permission_mode": "default",
        "hook_event_name": "PreToolUse", "tool_name": "mcp__vmware__vm_delete", "tool_input": arguments, "tool_use_id": "toolu_1"
    });
    let codex = with(
        &claude,
        &json!({"turn_id": "turn-1", "model": "gpt", "transcript_path": null}),
    );
    let both = |base: &Value| {
        vec![
            (
                with(
                    base,
                    &json!({"hook_event_name": "PostToolUse", "tool_response": {"content": []}, "duration_ms": 5}),
                ),
                Outcome::Ok,
            ),
            (
                with(
                    base,
                    &json!({"hook_event_name": "PostToolUse", "tool_response": {"isError": true}}),
                ),
                Outcome::IsError,
            ),
            (
                with(
                    base,
                    &json!({"hook_event_name": "PostToolUseFailure", "error": "no", "is_interrupt": false}),
                ),
                Outcome::IsError,
            ),
            (
                with(
                    base,
                    &json!({"hook_event_name": "PostToolUseFailure", "error": "no", "is_interrupt": true}),
                ),
                Outcome::Lost,
            ),
        ]
    };
    let gemini = json!({
        "session_id": SESSION, "transcript_path": "/t", "cwd": "/w", "hook_event_name": "BeforeTool", "timestamp": "2026-09-21T17:08:29Z",
        "tool_name": "mcp_vmware_vm_delete", "tool_input": arguments, "mcp_context": {"server_name": "vmware", "tool_name": "vm_delete", "command": "x"}
    });
    let cursor = json!({
        "conversation_id": SESSION, "generation_id": "g", "model": "m", "hook_event_name": "beforeMCPExecution", "cursor_version": "3.1",
        "workspace_roots": ["/w"], "user_email": null, "tool_name": "vm_delete", "tool_input": text, "mcp_server_name": "vmware", "command": "npx vmware"
    });
    let copilot = json!({"timestamp": 1, "cwd": "/w", "sessionId": SESSION, "toolName": "vmware-vm_delete", "toolArgs": text});
    let docker =
        json!({"method": "tools/call", "params": {"name": "vm_delete", "arguments": arguments}});

    let claude_denied = format!(
        "{{\"hookSpecificOutput\":{{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"{REASON}\"}}}}\n"
    );
    let claude_guarded = format!(
        "{{\"hookSpecificOutput\":{{\"additionalContext\":\"{NOTE}\",\"hookEventName\":\"PreToolUse\"}}}}\n"
    );
    let exit_2 = "zerto-rewind: the catalog denies vm_delete. Next: Do not make the change.\n";
    vec![
        Harness {
            format: Format::Claude,
            listed: claude.clone(),
            unlisted: with(&claude, &json!({"tool_name": "Read"})),
            ended: both(&claude),
            neutral: "",
            guarded: claude_guarded.clone(),
            denied: (claude_denied.clone(), exit_2, 2),
            agent: "claude-code",
            correlation: Some("toolu_1"),
            session: true,
        },
        Harness {
            format: Format::Codex,
            listed: codex.clone(),
            unlisted: with(&codex, &json!({"tool_name": "apply_patch"})),
            ended: both(&codex),
            neutral: "",
            guarded: claude_guarded,
            denied: (claude_denied, exit_2, 2),
            agent: "codex",
            correlation: Some("toolu_1"),
            session: true,
        },
        Harness {
            format: Format::Gemini,
            listed: gemini.clone(),
            unlisted: with(
                &gemini,
                &json!({"tool_name": "read_file", "mcp_context": null}),
            ),
            ended: vec![
                (
                    with(
                        &gemini,
                        &json!({"hook_event_name": "AfterTool", "tool_response": {"llmContent": "x", "returnDisplay": "x"}}),
                    ),
                    Outcome::Ok,
                ),
                (
                    with(
                        &gemini,
                        &json!({"hook_event_name": "AfterTool", "tool_response": {"llmContent": "x", "error": {"message": "no"}}}),
                    ),
                    Outcome::IsError,
                ),
            ],
            neutral: "{}\n",
            guarded: format!("{{\"systemMessage\":\"{NOTE}\"}}\n"),
            denied: (
                format!("{{\"decision\":\"deny\",\"reason\":\"{REASON}\"}}\n"),
                exit_2,
                2,
            ),
            agent: "gemini-cli",
            correlation: None,
            session: true,
        },
        Harness {
            format: Format::Cursor,
            listed: cursor.clone(),
            unlisted: with(&cursor, &json!({"tool_name": "vm_list"})),
            ended: vec![
                (
                    with(
                        &cursor,
                        &json!({"hook_event_name": "afterMCPExecution", "result_json": "{\"content\":[]}", "duration": 5}),
                    ),
                    Outcome::Ok,
                ),
                (
                    with(
                        &cursor,
                        &json!({"hook_event_name": "afterMCPExecution", "result_json": "{\"isError\":true}", "duration": 5}),
                    ),
                    Outcome::IsError,
                ),
                (
                    with(
                        &cursor,
                        &json!({"hook_event_name": "postToolUseFailure", "tool_name": "MCP:vmware:vm_delete", "failure_type": "permission_denied"}),
                    ),
                    Outcome::NotForwarded,
                ),
            ],
            neutral: "{}\n",
            guarded: "{}\n".into(),
            denied: (
                format!(
                    "{{\"agentMessage\":\"{REASON}\",\"agent_message\":\"{REASON}\",\"permission\":\"deny\",\"userMessage\":\"{REASON}\",\"user_message\":\"{REASON}\"}}\n"
                ),
                "",
                0,
            ),
            agent: "cursor",
            correlation: None,
            session: true,
        },
        Harness {
            format: Format::Copilot,
            listed: copilot.clone(),
            unlisted: with(&copilot, &json!({"toolName": "view"})),
            ended: vec![
                (
                    with(
                        &copilot,
                        &json!({"toolResult": {"resultType": "success", "textResultForLlm": "x"}}),
                    ),
                    Outcome::Ok,
                ),
                (
                    with(&copilot, &json!({"toolResult": {"resultType": "failure"}})),
                    Outcome::IsError,
                ),
                (
                    with(&copilot, &json!({"toolResult": {"resultType": "denied"}})),
                    Outcome::NotForwarded,
                ),
                (with(&copilot, &json!({"error": "no"})), Outcome::IsError),
            ],
            neutral: "",
            guarded: String::new(),
            denied: (
                format!(
                    "{{\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"{REASON}\"}}\n"
                ),
                "",
                0,
            ),
            agent: "copilot",
            correlation: None,
            session: true,
        },
        Harness {
            format: Format::Docker,
            listed: docker,
            unlisted: json!({"params": {"name": "vm_list"}}),
            ended: vec![],
            neutral: "",
            guarded: String::new(),
            denied: (
                format!(
                    "{{\"content\":[{{\"text\":\"{REASON}\",\"type\":\"text\"}}],\"isError\":true}}\n"
                ),
                "",
                0,
            ),
            agent: "docker-mcp",
            correlation: None,
            session: false,
        },
    ]
}

fn bytes(event: &Value) -> Vec<u8> {
    event.to_string().into_bytes()
}

fn quiet(stdout: &str) -> Output {
    Output {
        stdout: stdout.into(),
        stderr: String::new(),
        code: 0,
    }
}

#[test]
fn an_unlisted_call_gets_no_decision() {
    for harness in harnesses() {
        for format in [None, Some(harness.format)] {
            let gate = Scripted::new(Does::Refuse);
            let output = gate.answer(format, &bytes(&harness.unlisted));
            assert_eq!(output, quiet(harness.neutral), "{:?}", harness.format);
            assert_eq!(Understood::by(harness.format, &output), Understood::Neutral);
            assert_eq!(gate.heard(), []);
        }
    }
}

#[test]
fn a_listed_call_is_guarded_and_left_to_the_persons_own_prompt() {
    for harness in harnesses() {
        for format in [None, Some(harness.format)] {
            let gate = Scripted::new(Does::Pin);
            let output = gate.answer(format, &bytes(&harness.listed));
            assert_eq!(output, quiet(&harness.guarded), "{:?}", harness.format);
            assert_eq!(Understood::by(harness.format, &output), Understood::Neutral);
            let heard = gate.heard();
            let [
                Heard::Guard {
                    server,
                    tool,
                    arguments,
                    agent,
                    change,
                    correlation,
                },
            ] = heard.as_slice()
            else {
                panic!("{heard:?}")
            };
            let known = harness.format != Format::Docker;
            assert_eq!(server.as_deref(), known.then_some("vmware"));
            assert_eq!(tool, "vm_delete");
            assert_eq!(arguments, &json!({"name": "jp-ubuntu"}));
            assert_eq!(agent, harness.agent);
            assert_eq!(correlation.as_deref(), harness.correlation);
            assert_eq!(change == "ses-0123456789ab", harness.session, "{change}");
        }
    }
}

#[test]
fn a_refused_call_is_denied_in_the_harnesss_own_form() {
    for harness in harnesses() {
        for format in [None, Some(harness.format)] {
            let output = Scripted::new(Does::Refuse).answer(format, &bytes(&harness.listed));
            let (stdout, stderr, code) = &harness.denied;
            assert_eq!(
                (output.stdout.as_str(), output.stderr.as_str(), output.code),
                (stdout.as_str(), *stderr, *code),
                "{:?}",
                harness.format
            );
            assert_eq!(Understood::by(harness.format, &output), Understood::Denied);
        }
    }
}

#[test]
fn a_guard_that_fails_denies_with_the_reason() {
    for harness in harnesses() {
        let output = Scripted::new(Does::Fail).answer(None, &bytes(&harness.listed));
        assert_eq!(Understood::by(harness.format, &output), Understood::Denied);
        assert!(
            output
                .stdout
                .contains("does not answer. Next: Do not make the change."),
            "{output:?}"
        );
    }
}

#[test]
fn the_end_of_a_call_is_recorded_and_never_blocks() {
    for harness in harnesses() {
        for (event, outcome) in &harness.ended {
            let gate = Scripted::new(Does::Pin);
            assert_eq!(
                gate.answer(None, &bytes(event)),
                quiet(harness.neutral),
                "{event}"
            );
            assert_eq!(
                gate.heard(),
                [Heard::Outcome {
                    tool: "vm_delete".into(),
                    arguments: json!({"name": "jp-ubuntu"}),
                    correlation: harness.correlation.map(str::to_owned),
                    outcome: *outcome,
                }],
                "{event}"
            );
            for does in [Does::Fail, Does::Panic] {
                let output = Scripted::new(does).answer(None, &bytes(event));
                assert_eq!(
                    (output.stdout.as_str(), output.code),
                    (harness.neutral, 0),
                    "{event}"
                );
                assert!(!output.stderr.is_empty());
            }
        }
    }
}

#[test]
fn the_harnesss_own_tools_are_builtin() {
    let command = "ssh jp-ubuntu rm -rf /srv";
    let cases = [
        json!({"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_input": {"command": command}}),
        json!({"hook_event_name": "PreToolUse", "turn_id": "t", "tool_name": "Bash", "tool_input": {"cmd": command}}),
        json!({"hook_event_name": "BeforeTool", "tool_name": "run_shell_command", "tool_input": {"command": command}}),
        json!({"hook_event_name": "beforeShellExecution", "cursor_version": "3", "command": command, "cwd": "/w"}),
        json!({"hook_event_name": "preToolUse", "cursor_version": "3", "tool_name": "Shell", "tool_input": {"command": command, "working_directory": "/w"}}),
        json!({"toolName": "bash", "toolArgs": {"command": command, "description": "x"}}),
    ];
    let mut cursors = Vec::new();
    for event in &cases {
        let gate = Scripted::new(Does::Pin);
        let output = gate.answer(None, &bytes(event));
        assert_eq!(output.code, 0, "{event}");
        let heard = gate.heard();
        let [
            Heard::Guard {
                server, arguments, ..
            },
        ] = heard.as_slice()
        else {
            panic!("{event}: {heard:?}")
        };
        assert_eq!(server.as_deref(), Some("builtin"));
        assert_eq!(arguments["command"], command, "{event}");
        if event.get("cursor_version").is_some() {
            cursors.push(arguments.clone());
        }
    }
    // Both events of one shell command have one digest, and so one pin.
    assert_eq!(cursors[0], cursors[1]);
}

#[test]
fn both_events_of_one_cursor_call_tell_the_same_arguments() {
    let common = json!({"cursor_version": "3", "conversation_id": SESSION, "generation_id": "g"});
    let pre = with(
        &common,
        &json!({"hook_event_name": "preToolUse", "tool_name": "MCP:vm_delete", "tool_input": {"name": "jp-ubuntu"}, "tool_use_id": "u"}),
    );
    let before = with(
        &common,
        &json!({"hook_event_name": "beforeMCPExecution", "tool_name": "vm_delete", "tool_input": "{\"name\":\"jp-ubuntu\"}", "command": "npx x"}),
    );
    let told = |event: &Value| {
        let gate = Scripted::new(Does::Pin);
        gate.answer(None, &bytes(event));
        match gate.heard().remove(0) {
            Heard::Guard {
                server,
                tool,
                arguments,
                ..
            } => (server, tool, arguments),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(told(&pre), told(&before));
}

#[test]
fn a_name_that_can_be_read_in_several_ways_is_held_by_any_of_them() {
    let claude =
        |name: &str| json!({"hook_event_name": "PreToolUse", "tool_name": name, "tool_input": {}});
    for event in [
        claude("mcp__plugin_acme_vmware__vm_delete"),
        json!({"hook_event_name": "BeforeTool", "tool_name": "mcp_vmware_vm_delete", "tool_input": {}}),
        json!({"toolName": "vmware/vm_delete"}),
        json!({"params": {"name": "vmware__vm_delete"}}),
    ] {
        let output = Scripted::new(Does::Refuse).answer(None, &bytes(&event));
        assert!(
            output.stdout.contains("the catalog denies"),
            "{event}: {output:?}"
        );
    }
}

#[test]
fn a_call_in_an_event_that_is_not_known_is_judged_as_one_before_it() {
    let call = |more: Value| {
        with(
            &json!({"tool_name": "mcp__vmware__vm_delete", "tool_input": {"name": "jp-ubuntu"}}),
            &more,
        )
    };
    let own = [
        Format::Claude,
        Format::Codex,
        Format::Gemini,
        Format::Cursor,
    ];
    for format in own {
        for event in [
            call(json!({})),
            call(json!({"hook_event_name": "pretooluse"})),
            call(json!({"hook_event_name": "PRE_TOOL_USE"})),
            call(json!({"hook_event_name": "PreToolUse", "session_id": "s"})),
            call(json!({"hook_event_name": "BeforeTool", "session_id": "s"})),
            call(json!({"hook_event_name": ""})),
            call(json!({"hook_event_name": 7})),
            call(json!({"hookEventName": "PreToolUse", "sessionId": "s"})),
            call(json!({"hookEventName": "PostToolUse", "sessionId": "s"})),
            call(json!({"hook_event_name": "x", "tool_name": "vm_delete"})),
            call(json!({"hook_event_name": "x", "tool_name": "mcp_vmware_vm_delete"})),
            call(json!({"hook_event_name": "x", "tool_name": "MCP:vm_delete"})),
            call(json!({"hook_event_name": "x", "tool_name": "MCP:vmware:vm_delete"})),
        ] {
            let output = Scripted::new(Does::Refuse).answer(Some(format), &bytes(&event));
            assert_eq!(
                Understood::by(format, &output),
                Understood::Denied,
                "{format:?} {event}: {output:?}"
            );
            assert!(
                output.stdout.contains("the catalog denies vm_delete"),
                "{format:?} {event}: {output:?}"
            );
            let mut other = event.clone();
            other["tool_name"] = json!("mcp__vmware__vm_list");
            let output = Scripted::new(Does::Refuse).answer(Some(format), &bytes(&other));
            assert_eq!(
                Understood::by(format, &output),
                Understood::Neutral,
                "{format:?} {other}: {output:?}"
            );
        }
    }
    // Nobody's form: denied as most of them honour it.
    for event in [
        call(json!({"hook_event_name": "pretooluse"})),
        call(json!({"hookEventName": "PreToolUse"})),
    ] {
        let output = Scripted::new(Does::Refuse).answer(None, &bytes(&event));
        assert_eq!((output.stdout.as_str(), output.code), ("", 2), "{event}");
    }
}

#[test]
fn a_call_whose_tool_cannot_be_read_is_denied_in_the_given_form() {
    let all = [
        Format::Claude,
        Format::Codex,
        Format::Gemini,
        Format::Cursor,
        Format::Copilot,
        Format::Docker,
    ];
    let events = [
        json!({"hook_event_name": "x", "toolname": "vm_delete"}),
        json!({"hook_event_name": "x", "tool_input": {"name": "jp-ubuntu"}}),
        json!({"hook_event_name": "x", "tool_name": 7}),
        json!({"hook_event_name": "x", "tool_name": "vm_delete", "toolArgs": "{}", "toolName": "Read"}),
        json!({"hookEventName": "preToolUse"}),
        json!({"content": [], "tool_name": "vm_delete", "tool_use_id": "t", "toolname": "x"}),
    ];
    for event in &events {
        for format in all {
            let output = Scripted::new(Does::Pin).answer(Some(format), &bytes(event));
            assert_eq!(
                Understood::by(format, &output),
                Understood::Denied,
                "{format:?} {event}: {output:?}"
            );
        }
    }
    // The call of one harness in the form of another.
    let copilot =
        json!({"toolName": "vmware-vm_delete", "toolArgs": "{}", "hook_event_name": "preToolUse"});
    let docker = json!({"params": {"name": "vm_delete"}, "hook_event_name": "x"});
    let shell = json!({"hook_event_name": "beforeShellExecution", "command": "rm"});
    for (event, formats) in [
        (copilot, &all[..4]),
        (docker, &all[..5]),
        (shell, &all[..3]),
    ] {
        for format in formats {
            let output = Scripted::new(Does::Pin).answer(Some(*format), &bytes(&event));
            assert_eq!(
                Understood::by(*format, &output),
                Understood::Denied,
                "{format:?} {event}: {output:?}"
            );
        }
    }
}

#[test]
fn names_that_other_programs_give_claudes_hooks_are_judged() {
    for name in [
        "mcp_vmware_vm_delete",
        "mcp_shortened_vm_delete",
        "MCP:vm_delete",
        "MCP: vm_delete",
        "MCP:vmware:vm_delete",
    ] {
        let event = json!({"hook_event_name": "PreToolUse", "session_id": "s", "cursor_version": "3.1", "tool_name": name, "tool_input": {}});
        let output = Scripted::new(Does::Refuse).answer(Some(Format::Claude), &bytes(&event));
        assert_eq!(
            Understood::by(Format::Claude, &output),
            Understood::Denied,
            "{name}: {output:?}"
        );
        assert!(
            output.stderr.contains("the catalog denies vm_delete"),
            "{output:?}"
        );
    }
    for name in ["mcp_vmware_list", "MCP:list", "MCP:vmware:list"] {
        let event = json!({"hook_event_name": "PreToolUse", "tool_name": name, "tool_input": {}});
        assert_eq!(
            Scripted::new(Does::Refuse).answer(Some(Format::Claude), &bytes(&event)),
            quiet("")
        );
    }
}

#[test]
fn a_permission_request_is_denied_by_its_decision_alone() {
    let event = json!({"hook_event_name": "PermissionRequest", "tool_name": "mcp__vmware__vm_delete", "tool_input": {}});
    assert_eq!(
        Scripted::new(Does::Refuse).answer(None, &bytes(&event)),
        quiet(&format!(
            "{{\"hookSpecificOutput\":{{\"decision\":{{\"behavior\":\"deny\",\"message\":\"{REASON}\"}},\"hookEventName\":\"PermissionRequest\"}}}}\n"
        ))
    );
    assert_eq!(
        Scripted::new(Does::Pin).answer(None, &bytes(&event)),
        quiet("")
    );
}

#[test]
fn other_events_get_no_decision() {
    for (event, neutral) in [
        (
            json!({"hook_event_name": "SessionStart", "source": "startup"}),
            "",
        ),
        (json!({"hook_event_name": "Stop", "turn_id": "t"}), ""),
        (
            json!({"hook_event_name": "stop", "cursor_version": "3"}),
            "{}\n",
        ),
        (
            json!({"hook_event_name": "beforeReadFile", "cursor_version": "3", "file_path": "/x"}),
            "{}\n",
        ),
    ] {
        assert_eq!(
            Scripted::new(Does::Refuse).answer(None, &bytes(&event)),
            quiet(neutral),
            "{event}"
        );
    }
    let after = json!({"content": [{"type": "text", "text": "x"}]});
    assert_eq!(
        Scripted::new(Does::Refuse).answer(Some(Format::Docker), &bytes(&after)),
        quiet("")
    );
}
