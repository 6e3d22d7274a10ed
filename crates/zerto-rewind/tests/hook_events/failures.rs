//! Whatever goes wrong denies, in the way that the harness honours.
use crate::gate::{Does, LONG, Scripted, error};
use rewind_core::{Error, ErrorCode};
use serde_json::json;
use std::{
    io::{self, Cursor, Read},
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;
use zerto_rewind::hook::{self, Format, Output, Understood};

const FORMATS: [Format; 6] = [
    Format::Claude,
    Format::Codex,
    Format::Gemini,
    Format::Cursor,
    Format::Copilot,
    Format::Docker,
];

fn listed(format: Format) -> Vec<u8> {
    match format {
        Format::Claude => json!({"hook_event_name": "PreToolUse", "tool_name": "mcp__vmware__vm_delete", "tool_input": {}}),
        Format::Codex => json!({"hook_event_name": "PreToolUse", "turn_id": "t", "tool_name": "mcp__vmware__vm_delete", "tool_input": {}}),
        Format::Gemini => json!({"hook_event_name": "BeforeTool", "tool_name": "mcp_vmware_vm_delete", "tool_input": {}}),
        Format::Cursor => json!({"hook_event_name": "beforeMCPExecution", "tool_name": "vm_delete", "tool_input": "{}"}),
        Format::Copilot => json!({"toolName": "vmware-vm_delete", "toolArgs": "{}"}),
        Format::Docker => json!({"params": {"name": "vm_delete"}}),
    }
    .to_string()
    .into_bytes()
}

fn assert_denied(format: Format, output: &Output, because: &str) {
    assert_eq!(
        Understood::by(format, output),
        Understood::Denied,
        "{format:?}: {output:?}"
    );
    assert!(
        format!("{}{}", output.stdout, output.stderr).contains(because),
        "{format:?}: {output:?}"
    );
}

#[test]
fn bad_input_is_denied_where_the_format_is_given() {
    for format in FORMATS {
        for (input, because) in [
            (&b""[..], "not the JSON object"),
            (b"{", "not the JSON object"),
            (b"[]", "not the JSON object"),
            (b"null", "not the JSON object"),
            (b"\xff\xfe", "not the JSON object"),
            (b"{}", "zerto-rewind: "),
            (b"{} {}", "not the JSON object"),
        ] {
            assert_denied(
                format,
                &Scripted::new(Does::Pin).answer(Some(format), input),
                because,
            );
        }
        let deep = "[".repeat(100_000);
        let event = format!("{{\"hook_event_name\":\"PreToolUse\",\"tool_input\":{deep}");
        assert_denied(
            format,
            &Scripted::new(Does::Pin).answer(Some(format), event.as_bytes()),
            "not the JSON object",
        );
    }
}

#[test]
fn what_no_harness_sends_is_denied_in_the_form_that_most_honour() {
    for input in [
        &b""[..],
        b"{}",
        b"junk",
        br#"{"hook_event_name":7}"#,
        br#"{"hook_event_name":"_"}"#,
    ] {
        let output = Scripted::new(Does::Pin).answer(None, input);
        assert_eq!((output.stdout.as_str(), output.code), ("", 2));
        assert!(output.stderr.starts_with("zerto-rewind: "), "{output:?}");
        for format in [
            Format::Claude,
            Format::Codex,
            Format::Gemini,
            Format::Cursor,
            Format::Docker,
        ] {
            assert_eq!(Understood::by(format, &output), Understood::Denied);
        }
    }
}

#[test]
fn an_event_without_a_tool_and_arguments_that_cannot_be_read_are_denied() {
    for (event, because) in [
        (json!({"hook_event_name": "PreToolUse"}), "names no tool"),
        (
            json!({"hook_event_name": "PreToolUse", "tool_name": 7}),
            "names no tool",
        ),
        (
            json!({"hook_event_name": "PreToolUse", "tool_name": "x".repeat(600)}),
            "longer than",
        ),
        (
            json!({"hook_event_name": "PreToolUse", "tool_name": "mcp__vmware__vm_delete", "tool_input": "{"}),
            "is no JSON",
        ),
    ] {
        assert_denied(
            Format::Claude,
            &Scripted::new(Does::Pin).answer(None, event.to_string().as_bytes()),
            because,
        );
    }
    // A tool that is not listed stays out of it, whatever its arguments are.
    let event = json!({"hook_event_name": "PreToolUse", "tool_name": "Read", "tool_input": "{"});
    let output = Scripted::new(Does::Pin).answer(None, event.to_string().as_bytes());
    assert_eq!(Understood::by(Format::Claude, &output), Understood::Neutral);
}

#[test]
fn a_configuration_or_catalog_that_cannot_be_used_denies_every_tool() {
    for format in FORMATS {
        let open = || {
            Err::<Scripted, Error>(error(
                ErrorCode::CatalogUnusable,
                "catalog.toml:3: no such key `tol`.",
            ))
        };
        let output = hook::answer(
            Cursor::new(listed(format)),
            None,
            LONG,
            &CancellationToken::new(),
            open,
        );
        assert_denied(format, &output, "no such key `tol`");
    }
}

#[test]
fn a_panic_denies() {
    std::panic::set_hook(Box::new(|_| {}));
    for format in FORMATS {
        assert_denied(
            format,
            &Scripted::new(Does::Panic).answer(None, &listed(format)),
            "a bug of ours",
        );
        let open = || -> Result<Scripted, Error> { panic!("{}", format!("at {}", "opening")) };
        let output = hook::answer(
            Cursor::new(listed(format)),
            None,
            LONG,
            &CancellationToken::new(),
            open,
        );
        assert_denied(format, &output, "at opening");
    }
}

#[test]
fn our_own_deadline_denies_and_cancels_first() {
    for format in FORMATS {
        let gate = Scripted::new(Does::Hang);
        let started = Instant::now();
        let output = gate.answer_within(None, &listed(format), Duration::from_millis(200));
        assert_denied(format, &output, "deadline of 200ms");
        assert!(gate.cancel.is_cancelled());
        assert!(started.elapsed() < Duration::from_secs(10));
    }
}

struct Never;

impl Read for Never {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        loop {
            std::thread::park()
        }
    }
}

struct Endless;

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        buffer.fill(b' ');
        Ok(buffer.len())
    }
}

struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("torn"))
    }
}

#[test]
fn an_input_that_never_ends_or_breaks_is_denied() {
    for format in FORMATS {
        let open = || Ok(Scripted::new(Does::Pin));
        let cancel = CancellationToken::new();
        let output = hook::answer(
            Never,
            Some(format),
            Duration::from_millis(50),
            &cancel,
            open,
        );
        assert_denied(format, &output, "deadline");
        let output = hook::answer(Broken, Some(format), LONG, &CancellationToken::new(), open);
        assert_denied(format, &output, "torn");
    }
    let open = || Ok(Scripted::new(Does::Pin));
    let output = hook::answer(
        Endless,
        Some(Format::Claude),
        LONG,
        &CancellationToken::new(),
        open,
    );
    assert_denied(Format::Claude, &output, "larger than");
}

#[test]
fn input_that_is_read_in_two_ways_is_denied_for_a_listed_tool() {
    for format in FORMATS {
        for input in [
            r#"{"name":"test-1","name":"jp-ubuntu"}"#,
            r#"{"name":"test-1","NAME":"jp-ubuntu"}"#,
            r#"{"x":[{"k":1,"k":2}]}"#,
        ] {
            let text = String::from_utf8(listed(format)).unwrap();
            let (plain, quoted) = match format {
                Format::Docker => (
                    text.replace("\"name\":", &format!("\"arguments\":{input},\"name\":")),
                    None,
                ),
                Format::Copilot => (
                    text.replace("\"{}\"", input),
                    Some(text.replace("\"{}\"", &json!(input).to_string())),
                ),
                Format::Cursor => (
                    text.replace("\"{}\"", input),
                    Some(text.replace("\"{}\"", &json!(input).to_string())),
                ),
                _ => (
                    text.replace("{}", input),
                    Some(text.replace("{}", &json!(input).to_string())),
                ),
            };
            for event in std::iter::once(plain).chain(quoted) {
                assert!(event.len() > text.len(), "{event}");
                let gate = Scripted::new(Does::Pin);
                assert_denied(
                    format,
                    &gate.answer(Some(format), event.as_bytes()),
                    "in one way alone",
                );
                assert_eq!(gate.heard(), []);
                let other = event.replace("vm_delete", "vm_list");
                let output = gate.answer(Some(format), other.as_bytes());
                assert_eq!(
                    Understood::by(format, &output),
                    Understood::Neutral,
                    "{output:?}"
                );
            }
        }
    }
    // An event of which two parsers read different tools, or different moments, is no event.
    for event in [
        r#"{"hook_event_name":"PreToolUse","hook_event_name":"PostToolUse","tool_name":"Read","tool_input":{}}"#,
        r#"{"hook_event_name":"PreToolUse","tool_name":"mcp__vmware__vm_delete","tool_name":"Read","tool_input":{}}"#,
        r#"{"hook_event_name":"PreToolUse","tool_name":"Read","toolName":"mcp__vmware__vm_delete","tool_input":{}}"#,
    ] {
        let output = Scripted::new(Does::Pin).answer(Some(Format::Claude), event.as_bytes());
        assert_denied(Format::Claude, &output, "zerto-rewind: ");
    }
}

#[test]
fn reasons_are_sentences_and_say_what_to_do_next() {
    let open = || {
        let unfinished = Error {
            candidates: vec!["lonely".into()],
            next: "Leave".into(),
            ..error(ErrorCode::State, "no VPG protects it")
        };
        Err::<Scripted, Error>(unfinished)
    };
    let output = hook::answer(
        Cursor::new(listed(Format::Claude)),
        None,
        LONG,
        &CancellationToken::new(),
        open,
    );
    assert_eq!(
        output.stderr,
        "zerto-rewind: no VPG protects it. Candidates: lonely. Next: Leave.\n"
    );
    let open = || Err::<Scripted, Error>(error(ErrorCode::Stopped, "zerto-rewind is stopped"));
    let output = hook::answer(
        Cursor::new(listed(Format::Claude)),
        None,
        LONG,
        &CancellationToken::new(),
        open,
    );
    assert_eq!(
        output.stderr,
        "zerto-rewind is stopped. Next: Do not make the change.\n"
    );
    for input in [&b""[..], b" \n", b"{"] {
        let output = Scripted::new(Does::Pin).answer(None, input);
        assert!(
            output.stderr.contains(". Next: Let a harness run the hook"),
            "{output:?}"
        );
        assert_eq!(
            output.stderr.contains("is empty"),
            input != b"{",
            "{output:?}"
        );
    }
}

#[test]
fn reasons_are_one_bounded_line() {
    let open = || {
        Err::<Scripted, Error>(error(
            ErrorCode::State,
            &format!("a\nb\u{1b}[31m{}", "x".repeat(100_000)),
        ))
    };
    let output = hook::answer(
        Cursor::new(listed(Format::Codex)),
        None,
        LONG,
        &CancellationToken::new(),
        open,
    );
    assert_denied(Format::Codex, &output, "zerto-rewind: a. b [31mxxx");
    assert!(output.stderr.len() < 5_000 && output.stderr.lines().count() == 1);
    assert!(!output.stderr.contains('\u{1b}'));
}
