//! What is asked of the programs, over and over.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rand::{Rng as _, rngs::StdRng, seq::IndexedRandom as _};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::{
    io::AsyncWriteExt as _,
    process::Child,
    time::{sleep, timeout},
};

use super::{
    Result,
    client::Client,
    town::{DISKS, FILE, Town, VMS, text},
};

/// Longer than any command here may take.
const PATIENCE: Duration = Duration::from_secs(120);

const GUARD: &str = "zerto_create_tagged_checkpoint";
const RECOVER: &str = "zerto_recover_file";

/// Failures that the troubles explain.
const EXPLAINED: [&str; 12] = [
    "zvm_unreachable",
    "zvm_error",
    "not_listed",
    "not_permitted",
    "insert_refused",
    "deadline_passed",
    "cancelled",
    "login_refused",
    "flr_busy",
    "flr_failed",
    "download_incomplete",
    "checkpoint_gone",
];

fn one(draws: &mut StdRng, names: &[&'static str]) -> &'static str {
    names.choose(draws).copied().unwrap_or_default()
}

/// A long-lived server is asked until all is over; it is handed back.
pub async fn served(
    town: Arc<Town>,
    host: usize,
    mut server: Client,
    mut draws: StdRng,
) -> Option<Client> {
    while !town.over.is_cancelled() {
        if let Err(error) = ask(&town, host, &mut server, &mut draws).await {
            town.wrong(format!("a server of host {host}: {error}"));
            return None;
        }
    }
    Some(server)
}

/// One call of a tool.
async fn ask(town: &Town, host: usize, server: &mut Client, draws: &mut StdRng) -> Result<()> {
    let vm = one(draws, &VMS);
    let (tool, arguments) = match draws.random_range(0..10) {
        0..=1 => ("zerto_find_protection", json!({ "vm": vm })),
        2 => ("zerto_list_checkpoints", json!({ "vm": vm, "limit": 20 })),
        3..=6 => (
            GUARD,
            json!({ "vm": vm, "action": "soak", "change_id": town.change() }),
        ),
        _ => {
            let vm = one(draws, DISKS.get(..2).unwrap_or_default());
            let Some((vpg, checkpoint)) = town.pin(host, vm) else {
                return Ok(());
            };
            let arguments = json!({
                "vm": vm, "path": FILE, "checkpoint": checkpoint, "vpg": vpg, "confirmed": true,
                "destination": format!("{}/", town.change()),
            });
            (RECOVER, arguments)
        }
    };
    let begun = Instant::now();
    let id = server.call(tool, arguments).await?;
    if draws.random_ratio(1, 12) {
        sleep(Duration::from_millis(draws.random_range(0..600))).await;
        town.count("given up: calls of a server");
        return server.cancel(id).await;
    }
    let result = server.answer(id).await?;
    town.took(tool, begun);
    judge(town, host, tool, &result)
}

/// Whether an answer is true.
fn judge(town: &Town, host: usize, tool: &str, result: &Value) -> Result<()> {
    let content = &result["structuredContent"];
    if result["isError"] == true {
        failed(town, tool, &content["error"]);
        return Ok(());
    }
    town.count(&format!("done: {tool}"));
    match tool {
        GUARD => town.receipt(host, content),
        RECOVER => town.recovered(content)?,
        _ => {}
    }
    Ok(())
}

fn failed(town: &Town, what: &str, error: &Value) {
    let code = text(&error["code"]);
    if EXPLAINED.contains(&code.as_str()) {
        town.count(&format!("failed: {what}, {code}"));
    } else {
        town.wrong(format!("{what}: {error}"));
    }
}

/// Calls through a long-lived proxy.
pub async fn proxied(
    town: Arc<Town>,
    host: usize,
    mut proxy: Client,
    mut draws: StdRng,
) -> Option<Client> {
    while !town.over.is_cancelled() {
        if let Err(error) = through(&town, host, &mut proxy, &mut draws).await {
            town.wrong(format!("a proxy of host {host}: {error}"));
            return None;
        }
    }
    Some(proxy)
}

async fn through(town: &Town, host: usize, proxy: &mut Client, draws: &mut StdRng) -> Result<()> {
    let tool = one(draws, &["change", "change", "look"]);
    let arguments = json!({ "vm": one(draws, &VMS), "change": town.change() });
    let begun = Instant::now();
    let id = proxy.call(tool, arguments).await?;
    let result = proxy.answer(id).await?;
    town.took("a call through the proxy", begun);
    let meta = &result["_meta"];
    if result["isError"] == true {
        failed(
            town,
            "a call through the proxy",
            &meta["io.github.zerto-rewind/refusal"],
        );
        return Ok(());
    }
    town.count(&format!("done: {tool} through the proxy"));
    let receipts = meta["io.github.zerto-rewind/receipt"]["receipts"].as_array();
    match (tool, receipts) {
        ("change", Some(receipts)) => {
            for receipt in receipts {
                town.receipt(host, receipt);
            }
        }
        ("change", None) => town.wrong(format!("passed without a guard: {result}")),
        _ => sleep(Duration::from_millis(50)).await,
    }
    Ok(())
}

/// Commands and servers that come and go, many of them before their time.
pub async fn come_and_go(town: Arc<Town>, mut draws: StdRng) {
    while !town.over.is_cancelled() {
        let host = draws.random_range(0..town.hosts.len());
        let come = match draws.random_range(0..10) {
            0 => a_server_dies(&town, host, &mut draws).await,
            1 => a_proxy_dies(&town, host, &mut draws).await,
            _ => a_command(&town, host, &mut draws).await,
        };
        if let Err(error) = come {
            town.wrong(format!("on host {host}: {error}"));
        }
    }
}

async fn a_server_dies(town: &Town, host: usize, draws: &mut StdRng) -> Result<()> {
    let mut server = town.server(host).await?;
    let vm = one(draws, DISKS.get(..2).unwrap_or_default());
    let (tool, arguments) = match town.pin(host, vm) {
        Some((vpg, checkpoint)) if draws.random() => (
            RECOVER,
            json!({
                "vm": vm, "path": FILE, "checkpoint": checkpoint, "vpg": vpg, "confirmed": true,
                "destination": format!("{}/", town.change()),
            }),
        ),
        _ => (
            GUARD,
            json!({ "vm": vm, "action": "soak", "change_id": town.change() }),
        ),
    };
    server.call(tool, arguments).await?;
    sleep(Duration::from_millis(draws.random_range(0..1000))).await;
    town.count("killed: servers");
    server.kill().await
}

async fn a_proxy_dies(town: &Town, host: usize, draws: &mut StdRng) -> Result<()> {
    let mut proxy = town.proxy(host).await?;
    let arguments = json!({ "vm": one(draws, &VMS), "change": town.change() });
    proxy.call("change", arguments).await?;
    sleep(Duration::from_millis(draws.random_range(0..800))).await;
    town.count("killed: proxies");
    proxy.kill().await
}

/// A command, to its end or to an end before.
async fn a_command(town: &Town, host: usize, draws: &mut StdRng) -> Result<()> {
    let (vm, change) = (one(draws, &VMS), town.change());
    let guard = [
        "guard", vm, "--action", "soak", "--change", &change, "--json",
    ];
    let run = [
        "run", "--vm", vm, "--action", "soak", "--change", &change, "--", "true",
    ];
    let list = ["checkpoints", vm, "--limit", "20", "--json"];
    let (name, words): (&'static str, &[&str]) = match draws.random_range(0..8) {
        0..=2 => ("guard", &guard),
        3 => ("find", &["find", vm, "--json"]),
        4 => ("checkpoints", &list),
        5..=6 => ("run", &run),
        _ => ("hook", &["hook"]),
    };
    let mut command = town.cli(host, words)?;
    command.stdin(std::process::Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take()
        && name == "hook"
    {
        let event = json!({
            "hook_event_name": "PreToolUse", "session_id": "0194c6a2-7b1e-4000-8000-0123456789ab",
            "tool_name": "mcp__echo__change", "tool_input": { "vm": vm, "change": change }, "tool_use_id": change,
        });
        stdin.write_all(event.to_string().as_bytes()).await?;
    }
    let begun = Instant::now();
    disturb(town, &child, draws).await;
    let output = timeout(PATIENCE, child.wait_with_output())
        .await
        .map_err(|_| format!("{name} does not end"))??;
    town.took(name, begun);
    if output.status.success() {
        town.count(&format!("done: {name}"));
        if name == "guard" {
            town.receipt(host, &serde_json::from_slice(&output.stdout)?);
        }
        return Ok(());
    }
    match output.status.code() {
        None => town.count("killed: commands"),
        Some(_) if matches!(name, "run" | "hook") => town.count(&format!("failed: {name}")),
        Some(_) => {
            let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            failed(town, name, &told["error"]);
        }
    }
    Ok(())
}

/// Some commands are killed, interrupted, or put to sleep for a while.
async fn disturb(town: &Town, child: &Child, draws: &mut StdRng) {
    let pid = child
        .id()
        .and_then(|pid| i32::try_from(pid).ok())
        .and_then(Pid::from_raw);
    let Some(pid) = pid else { return };
    let signal = match draws.random_range(0..10) {
        0..=2 => Signal::KILL,
        3 => Signal::INT,
        4 => Signal::STOP,
        _ => return,
    };
    sleep(Duration::from_millis(draws.random_range(0..700))).await;
    // It may have ended just now.
    let _ = kill_process(pid, signal);
    if signal == Signal::STOP {
        town.count("stopped for a while: commands");
        sleep(Duration::from_millis(draws.random_range(100..1500))).await;
        let _ = kill_process(pid, Signal::CONT);
    }
}
