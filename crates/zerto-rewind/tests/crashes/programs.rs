//! The programs at their work, each as its user starts it.
use std::{fs, path::PathBuf, process::Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::{
    io::AsyncWriteExt as _,
    process::{Child, Command},
    time::timeout,
};

use crate::{
    stage::{FILE, Stage, VM},
    support::{PATIENCE, Run, stdio::Server, terminal::Terminal, wire_server},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `zerto-rewind guard`
    Guard,
    /// `zerto-rewind recover`, of a file, at a terminal.
    Recover,
    /// A guard in `zerto-rewind-mcp`.
    McpGuard,
    /// A recovery of a folder in `zerto-rewind-mcp`.
    McpRecover,
    /// A listed call that the proxy holds.
    Proxy,
    /// A hook before a listed call.
    Hook,
    /// `zerto-rewind run`
    Run,
}

/// A program that was started. It is killed when this is dropped.
pub enum Running {
    Command(Child),
    Terminal(Terminal, Child),
    /// With the id of the call that it is busy with.
    Server(Box<Server>, u64),
}

/// How a program ended that nobody killed.
#[derive(Debug)]
pub struct Ended {
    pub right: bool,
    pub said: String,
}

impl Program {
    /// Starts it on a change of this name.
    pub async fn start(self, stage: &Stage, change: &str) -> Running {
        let world = &stage.world;
        match self {
            Self::Guard => {
                let words = [
                    "guard", VM, "--action", "edit", "--change", change, "--json",
                ];
                Running::Command(world.command(&words).spawn().unwrap())
            }
            Self::Run => {
                let script = format!("touch '{}'", self.effect(stage, change).display());
                let words = [
                    "run", "--vm", VM, "--action", "edit", "--change", change, "--", "sh", "-c",
                    &script,
                ];
                Running::Command(world.command(&words).spawn().unwrap())
            }
            Self::Recover => {
                let folder = stage.world.path(change);
                let mut command = world.command(&[
                    "recover",
                    VM,
                    FILE,
                    "--at",
                    &stage.checkpoint,
                    "--yes",
                    "--to",
                ]);
                command.arg(folder);
                let (terminal, child) = Terminal::start(&mut command, false);
                Running::Terminal(terminal, child)
            }
            Self::McpGuard => {
                let arguments = json!({ "vm": VM, "action": "edit", "change_id": change });
                mcp(stage, "zerto_create_tagged_checkpoint", arguments).await
            }
            Self::McpRecover => {
                let arguments = json!({
                    "vm": VM, "path": "/home/justin", "checkpoint": stage.checkpoint, "vpg": VM, "destination": change, "confirmed": true,
                });
                mcp(stage, "zerto_recover_file", arguments).await
            }
            Self::Proxy => {
                let mut command = world.command(&["proxy", "--"]);
                command
                    .arg(wire_server())
                    .env("WIRE_LOG", world.path("received"));
                let mut proxy = Server::of(&mut command);
                proxy.initialize("2025-11-25").await;
                // Known to it, so that nothing is asked in between.
                proxy.request("tools/list", json!({})).await;
                let call = json!({ "name": "listed", "arguments": { "vm": VM, "change": change } });
                let id = proxy.ask("tools/call", call).await;
                Running::Server(Box::new(proxy), id)
            }
            Self::Hook => {
                let event = json!({
                    "hook_event_name": "PreToolUse", "session_id": "0194c6a2-7b1e-4000-8000-0123456789ab",
                    "tool_name": "mcp__vmware__vm_reconfigure", "tool_input": { "vm": VM, "change": change }, "tool_use_id": change,
                });
                let mut command = world.command(&["hook"]);
                let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
                let mut stdin = child.stdin.take().unwrap();
                stdin.write_all(event.to_string().as_bytes()).await.unwrap();
                drop(stdin);
                Running::Command(child)
            }
        }
    }

    /// What it does once it may, and makes only then.
    fn effect(self, stage: &Stage, change: &str) -> PathBuf {
        match self {
            Self::Recover => stage.world.path(change).join("app-config.yaml"),
            Self::McpRecover => stage.world.path("recovered").join(change),
            _ => stage.world.path(&format!("ran-{change}")),
        }
    }

    /// Whatever moment it was killed at: nothing was done unguarded, nothing is there in part.
    pub fn check(self, stage: &Stage, change: &str) {
        let effect = self.effect(stage, change);
        match self {
            Self::Run => assert!(!effect.exists() || stage.is_pinned(change), "{change}"),
            Self::Recover => {
                let original = stage.world.sim.guest_path(VM, FILE).unwrap();
                assert!(
                    !effect.exists() || fs::read(&effect).unwrap() == fs::read(original).unwrap()
                );
            }
            Self::McpRecover => {
                let original = stage.world.sim.guest_path(VM, "/home/justin").unwrap();
                assert!(!effect.exists() || names(&effect) == names(&original));
            }
            Self::Proxy => {
                let log = fs::read_to_string(stage.world.path("received")).unwrap_or_default();
                let received = log.lines().filter(|line| {
                    let message: Value = serde_json::from_str(line).unwrap_or_default();
                    message["method"] == "tools/call"
                        && message["params"]["arguments"]["change"] == change
                });
                let received = received.count();
                assert!(
                    received == 0 || received == 1 && stage.is_pinned(change),
                    "{change}: {received}"
                );
            }
            Self::Guard | Self::McpGuard | Self::Hook => {}
        }
    }
}

/// The names in a folder; what FLR does not carry is left out.
fn names(folder: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let entries = entries.filter(|entry| !entry.path().is_symlink());
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

async fn mcp(stage: &Stage, tool: &str, arguments: Value) -> Running {
    let mut server = Server::initialized(&stage.world.config(), "2025-11-25").await;
    let call = json!({ "name": tool, "arguments": arguments });
    let id = server.ask("tools/call", call).await;
    Running::Server(Box::new(server), id)
}

impl Running {
    fn child(&self) -> &Child {
        match self {
            Self::Command(child) | Self::Terminal(_, child) => child,
            Self::Server(server, _) => &server.child,
        }
    }

    pub fn signal(&self, signal: Signal) {
        let pid = self
            .child()
            .id()
            .and_then(|pid| Pid::from_raw(pid.try_into().unwrap()));
        // It may have ended just now.
        let _ = pid.map(|pid| kill_process(pid, signal));
    }

    /// Waits until it has done its work, and its end.
    pub async fn end(&mut self) -> Ended {
        match self {
            Self::Command(child) | Self::Terminal(_, child) => {
                let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
                let said = async {
                    let (stdout, stderr) = tokio::join!(all(stdout), all(stderr));
                    format!("{stdout}{stderr}")
                };
                let ended = async { tokio::join!(child.wait(), said) };
                let (status, mut said) = timeout(PATIENCE, ended).await.expect("it does not end");
                let denied = said.contains("\"deny\"");
                if let Self::Terminal(terminal, _) = self {
                    said.push_str(&terminal.text());
                }
                Ended {
                    right: status.unwrap().success() && !denied,
                    said,
                }
            }
            Self::Server(server, id) => {
                let answer = loop {
                    let message = server.message().await;
                    if message["id"] == *id {
                        break message;
                    }
                };
                server.close_stdin();
                timeout(PATIENCE, server.child.wait())
                    .await
                    .expect("it does not end")
                    .unwrap();
                let result = &answer["result"];
                Ended {
                    // The folder has a link in it, which is not carried.
                    right: result.is_object()
                        && (result["isError"] != true
                            || result["structuredContent"]["outcome"] == "incomplete"),
                    said: answer.to_string(),
                }
            }
        }
    }

    /// Kills it, wherever it is.
    pub async fn kill(mut self) {
        self.signal(Signal::KILL);
        let child = match &mut self {
            Self::Command(child) | Self::Terminal(_, child) => child,
            Self::Server(server, _) => &mut server.child,
        };
        timeout(PATIENCE, child.wait())
            .await
            .expect("it does not die")
            .unwrap();
    }
}

async fn all(pipe: Option<impl tokio::io::AsyncRead + Unpin>) -> String {
    use tokio::io::AsyncReadExt as _;
    let mut text = String::new();
    if let Some(mut pipe) = pipe {
        pipe.read_to_string(&mut text).await.unwrap();
    }
    text
}

/// Runs a command to its end.
pub async fn finish(command: &mut Command) -> Run {
    let output = timeout(PATIENCE, command.output());
    Run::of(output.await.expect("it does not end").unwrap())
}
