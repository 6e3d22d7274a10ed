//! The hook as a program: the catalog and a simulated ZVM behind it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod support;

use serde_json::{Value, json};
use std::{fs, process::Stdio};
use support::{PATIENCE, Run, World};
use tokio::{io::AsyncWriteExt, time::timeout};
use zerto_rewind::hook::{Format, Output, Understood};

const CATALOG: &str = r#"
version = 1

[[guard]]
server = "vmware"
tool   = "vm_*"
vm     = { arg = "/name" }
action = "{{ tool }} {{ args.name }}"

[[guard]]
server = "vmware"
tool   = "datastore_delete"
vm     = { fixed = "jp-ubuntu" }
action = "delete"
mode   = "deny"
"#;

async fn world() -> World {
    let world = World::new().await;
    world.configure(json!({"catalog": "catalog.toml"}));
    fs::write(world.path("catalog.toml"), CATALOG).unwrap();
    world
}

async fn hook(world: &World, words: &[&str], event: &[u8]) -> Run {
    let mut command = world.command(&[&["hook"], words].concat());
    command.stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(event).await.unwrap();
    drop(stdin);
    Run::of(
        timeout(PATIENCE, child.wait_with_output())
            .await
            .expect("it does not end")
            .unwrap(),
    )
}

async fn claude(world: &World, event: &str, tool: &str, input: Value) -> Run {
    let event = json!({
        "hook_event_name": event, "session_id": "0194c6a2-7b1e-4000-8000-0123456789ab", "tool_name": tool, "tool_input": input,
        "tool_use_id": "toolu_1", "tool_response": {},
    });
    hook(world, &[], event.to_string().as_bytes()).await
}

fn denied(run: &Run) -> bool {
    let output = Output {
        stdout: run.stdout.clone(),
        stderr: run.stderr.clone(),
        code: run.code.try_into().unwrap(),
    };
    Understood::by(Format::Claude, &output) == Understood::Denied
}

fn tags(world: &World) -> Vec<String> {
    let tags = world
        .sim
        .journal("jp-ubuntu")
        .into_iter()
        .map(|entry| entry.tag);
    tags.filter(|tag| !tag.is_empty()).collect()
}

#[tokio::test]
async fn an_unlisted_call_is_silent_and_asks_nothing_of_the_zvm() {
    let world = world().await;
    for tool in ["Read", "mcp__other__vm_delete", "mcp__vmware__list"] {
        let run = claude(&world, "PreToolUse", tool, json!({})).await;
        assert_eq!(
            (run.code, run.stdout.as_str(), run.stderr.as_str()),
            (0, "", ""),
            "{tool}"
        );
    }
    assert!(world.sim.requests().is_empty());
    assert!(!world.path("state").exists());
}

#[tokio::test]
async fn a_listed_call_is_pinned_first_and_its_end_is_recorded() {
    let world = world().await;
    let vm = json!({"name": "jp-ubuntu"});
    let run = claude(&world, "PreToolUse", "mcp__vmware__vm_delete", vm.clone()).await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    let tags = tags(&world);
    assert_eq!(tags.len(), 1);
    assert!(
        tags[0].starts_with(
            "ai:claude-code | vm_delete jp-ubuntu | vm=jp-ubuntu | change=ses-0123456789ab | "
        ),
        "{tags:?}"
    );
    let said = run.json();
    let context = said["hookSpecificOutput"]["additionalContext"]
        .as_str()
        .unwrap();
    assert!(context.contains(&tags[0]), "{context}");
    assert!(
        said["hookSpecificOutput"]
            .get("permissionDecision")
            .is_none()
    );

    let run = claude(&world, "PostToolUse", "mcp__vmware__vm_delete", vm).await;
    assert_eq!(
        (run.code, run.stdout.as_str(), run.stderr.as_str()),
        (0, "", "")
    );
}

#[tokio::test]
async fn both_events_of_one_cursor_call_share_one_pin() {
    let world = world().await;
    let common = json!({"cursor_version": "3", "conversation_id": "c", "generation_id": "g"});
    for more in [
        json!({"hook_event_name": "preToolUse", "tool_name": "MCP:vm_delete", "tool_input": {"name": "jp-ubuntu"}}),
        json!({"hook_event_name": "beforeMCPExecution", "tool_name": "vm_delete", "tool_input": "{\"name\":\"jp-ubuntu\"}"}),
    ] {
        let mut event = common.clone();
        event
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let run = hook(
            &world,
            &["--format", "cursor"],
            event.to_string().as_bytes(),
        )
        .await;
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (0, "{}\n"),
            "{}",
            run.stderr
        );
    }
    assert_eq!(tags(&world).len(), 1);
}

#[tokio::test]
async fn what_must_not_run_is_denied() {
    let world = world().await;
    for (tool, input) in [
        ("mcp__vmware__datastore_delete", json!({})),
        ("mcp__vmware__vm_delete", json!({})),
        ("mcp__vmware__vm_delete", json!({"name": "nobody"})),
        ("mcp__vmware__vm_delete", json!({"name": "lonely"})),
        ("mcp__vmware__vm_delete", json!({"name": "web"})),
    ] {
        let run = claude(&world, "PreToolUse", tool, input.clone()).await;
        assert!(denied(&run), "{tool} {input}: {} {}", run.code, run.stdout);
        assert!(!run.stderr.contains("the hook failed"), "{}", run.stderr);
    }
    assert!(tags(&world).is_empty());
}

#[tokio::test]
async fn a_zvm_that_is_away_a_broken_catalog_and_a_stop_deny() {
    let world = world().await;
    let vm = json!({"name": "jp-ubuntu"});
    let stopped = world.run(&["stop", "--reason", "maintenance"]).await;
    assert_eq!(stopped.code, 0, "{}", stopped.stderr);
    let run = claude(&world, "PreToolUse", "mcp__vmware__vm_delete", vm.clone()).await;
    assert!(
        denied(&run) && run.stderr.contains("maintenance"),
        "{}",
        run.stderr
    );
    let run = claude(&world, "PreToolUse", "Read", json!({})).await;
    assert_eq!((run.code, run.stdout.as_str()), (0, ""));
    assert_eq!(world.run(&["resume"]).await.code, 0);

    world.configure(json!({"catalog": "catalog.toml", "zerto_url": "https://127.0.0.1:1"}));
    let run = claude(&world, "PreToolUse", "mcp__vmware__vm_delete", vm).await;
    assert!(denied(&run), "{}", run.stdout);

    fs::write(
        world.path("catalog.toml"),
        "version = 1\n[[guard]]\ntol = \"x\"\n",
    )
    .unwrap();
    let run = claude(&world, "PreToolUse", "Read", json!({})).await;
    assert!(
        denied(&run) && run.stderr.contains("catalog.toml"),
        "{}",
        run.stderr
    );

    // Taking the key away disarms no hook.
    world.configure(json!({}));
    let run = claude(&world, "PreToolUse", "Read", json!({})).await;
    assert!(
        denied(&run) && run.stderr.contains("names no catalog"),
        "{}",
        run.stderr
    );

    fs::write(world.config(), "{").unwrap();
    let run = claude(&world, "PreToolUse", "Read", json!({})).await;
    assert!(
        denied(&run) && run.stderr.contains("config.json"),
        "{}",
        run.stderr
    );
}

#[tokio::test]
async fn the_hooks_own_deadline_denies_and_says_what_was_done() {
    let world = world().await;
    world.sim.update(|switches| switches.tag_never_shows = true);
    let event = json!({"hook_event_name": "PreToolUse", "tool_name": "mcp__vmware__vm_delete", "tool_input": {"name": "jp-ubuntu"}});
    let run = hook(&world, &["--deadline", "3s"], event.to_string().as_bytes()).await;
    assert!(denied(&run), "{}", run.stdout);
    assert!(
        run.stderr.contains("deadline") && run.stderr.contains("Next: Try again"),
        "{}",
        run.stderr
    );
}

#[tokio::test]
async fn bad_arguments_of_the_hook_itself_are_exit_2_with_a_reason() {
    let world = world().await;
    for words in [
        &["--format", "emacs"][..],
        &["--deadline", "5"],
        &["--nonsense"],
    ] {
        let run = hook(&world, words, b"").await;
        assert_eq!((run.code, run.stdout.as_str()), (2, ""));
        assert!(!run.stderr.is_empty());
    }
}
