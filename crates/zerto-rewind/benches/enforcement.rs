//! Measures what enforcement costs the calls that it lets pass: the proxy and the hook as built, beside the same server without them.
//!
//! `cargo bench -p zerto-rewind --bench enforcement` prints a table and writes it to `target/bench/enforcement.json`.
//! `-- NAME` runs the parts whose name contains NAME: `stdio`, `http`, `hook`. Where `OTHER_PROXY` names the command of PyPI's
//! `mcp-proxy`, that is measured beside ours.

// `value["member"]` of a JSON value reads null where nothing is.
#![allow(clippy::indexing_slicing)]

#[path = "enforcement/client.rs"]
mod client;
#[path = "enforcement/echo.rs"]
mod echo;
#[allow(dead_code)]
#[path = "support/table.rs"]
mod table;

use std::{
    error::Error,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use client::Client;
use serde_json::json;
use table::{Table, median, quantile};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

type Part = fn(&Stage, &mut Table) -> Result<()>;

const ZERTO_REWIND: &str = env!("CARGO_BIN_EXE_zerto-rewind");
/// Calls before the measured ones.
const WARM_UP: usize = 500;
const PIPELINED: usize = 10_000;

fn main() -> Result<()> {
    if std::env::args().nth(1).as_deref() == Some(echo::ARGUMENT) {
        return echo::on_stdio();
    }
    // Cargo passes `--bench`.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let stage = Stage::new()?;
    let mut table = Table::default();
    let parts: [(&str, Part); 3] = [("stdio", stdio), ("http", http), ("hook", hook)];
    for (name, part) in parts {
        if wanted.is_empty() || wanted.iter().any(|w| name.contains(w.as_str())) {
            eprintln!("measuring: {name}");
            part(&stage, &mut table)?;
        }
    }
    println!("{table}");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../bench");
    fs::create_dir_all(&folder)?;
    fs::write(
        folder.join("enforcement.json"),
        serde_json::to_vec_pretty(&table.json())?,
    )?;
    Ok(())
}

/// A configuration with the example catalog; its ZVM is never asked.
struct Stage {
    _folder: tempfile::TempDir,
    config: PathBuf,
    echo: PathBuf,
}

impl Stage {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let config = folder.path().join("config.json");
        let catalog = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalog.example.toml");
        let keys = json!({
            "zerto_url": "https://127.0.0.1:9", "username": "nobody", "password": "none", "state_dir": folder.path().join("state"),
            "catalog": catalog,
        });
        fs::write(&config, keys.to_string())?;
        #[cfg(unix)]
        fs::set_permissions(&config, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        Ok(Self {
            _folder: folder,
            config,
            echo: std::env::current_exe()?,
        })
    }

    fn direct(&self) -> Command {
        let mut command = Command::new(&self.echo);
        command.arg(echo::ARGUMENT);
        command
    }

    /// The server behind two programs that only copy: what the way through another process costs on this machine.
    fn copied(&self) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", "cat | \"$0\" \"$1\" | cat"])
            .arg(&self.echo)
            .arg(echo::ARGUMENT);
        command
    }

    fn program(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(ZERTO_REWIND);
        command
            .args(arguments)
            .env("ZERTO_REWIND_CONFIG", &self.config);
        command
    }

    fn proxied(&self) -> Command {
        let mut command = self.program(&["proxy", "--name", "vmware", "--"]);
        command.arg(&self.echo).arg(echo::ARGUMENT);
        command
    }
}

/// Before a server on standard input and output.
fn stdio(stage: &Stage, table: &mut Table) -> Result<()> {
    let (mut alone, mut behind) = (Vec::new(), Vec::new());
    for _ in 0..50 {
        for (times, command) in [(&mut alone, stage.direct()), (&mut behind, stage.proxied())] {
            let begun = Instant::now();
            let client = Client::start(command)?;
            times.push(begun.elapsed());
            client.stop()?;
        }
    }
    table.row(
        "stdio: start to the initialize answer, server alone, median of 50",
        median(&alone),
        "ms",
        None,
    );
    table.row(
        "stdio: start to the initialize answer, proxy and server, median of 50",
        median(&behind),
        "ms",
        None,
    );

    round_trips(stage, table, "any core")?;
    on_one_core(|| round_trips(stage, table, "one core"))?;

    let mut direct = Client::start(stage.direct())?;
    let mut proxied = Client::start(stage.proxied())?;
    for (name, client) in [("direct", &mut direct), ("through the proxy", &mut proxied)] {
        let took = client.pipelined(PIPELINED)?;
        table.row(
            &format!("stdio: 10,000 pipelined calls, {name}"),
            took.as_secs_f64() * 1e3,
            "ms",
            None,
        );
    }
    table.row(
        "stdio: the proxy's resident memory after 10,000 calls",
        proxied.resident_mib()?,
        "MiB",
        None,
    );
    direct.stop()?;
    proxied.stop()
}

/// One call after the other: direct, through the proxy, and through two programs that only copy.
fn round_trips(stage: &Stage, table: &mut Table, cores: &str) -> Result<()> {
    let mut direct = Client::start(stage.direct())?;
    let mut proxied = Client::start(stage.proxied())?;
    let mut copied = Client::start(stage.copied())?;
    let times = in_turns(&mut [&mut direct, &mut proxied, &mut copied], 20_000)?;
    let [direct_times, proxied_times, copied_times] = times.as_slice() else {
        return Err("three were measured".into());
    };
    for (name, share, aim) in [("median", 0.5, 60.0), ("p99", 0.99, 300.0)] {
        let micros = |times: &[Duration]| quantile(times, share) * 1e3;
        let alone = micros(direct_times);
        table.row(
            &format!("stdio, {cores}: an unlisted call, direct, {name} of 20,000"),
            alone,
            "µs",
            None,
        );
        table.row(
            &format!("stdio, {cores}: through two `cat`s, less direct, {name}"),
            micros(copied_times) - alone,
            "µs",
            None,
        );
        table.row(
            &format!("stdio, {cores}: through the proxy, less direct, {name}"),
            micros(proxied_times) - alone,
            "µs",
            Some(aim),
        );
    }
    direct.stop()?;
    copied.stop()?;
    proxied.stop()
}

/// Runs something, and what it starts, on one core alone: there no process waits until an idle core has woken.
fn on_one_core(work: impl FnOnce() -> Result<()>) -> Result<()> {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let before = sched_getaffinity(None)?;
    let last = (0..CpuSet::MAX_CPU).rev().find(|core| before.is_set(*core));
    let mut one = CpuSet::new();
    one.set(last.ok_or("this process may run on no core")?);
    sched_setaffinity(None, &one)?;
    let result = work();
    sched_setaffinity(None, &before)?;
    result
}

/// From standard input and output to a server over HTTP, beside another program that does the same.
fn http(stage: &Stage, table: &mut Table) -> Result<()> {
    let url = echo::over_http()?;
    let ours = stage.program(&["proxy", "--name", "vmware", "--url", &url]);
    let mut clients = vec![("zerto-rewind proxy --url", Client::start(ours)?)];
    match std::env::var_os("OTHER_PROXY") {
        Some(other) => {
            let mut command = Command::new(other);
            command
                .args(["--transport", "streamablehttp", &url])
                .stderr(Stdio::null());
            clients.push(("mcp-proxy of PyPI", Client::start(command)?));
        }
        None => eprintln!("  SKIPPED: OTHER_PROXY names no other proxy"),
    }
    let mut each: Vec<_> = clients.iter_mut().map(|(_, client)| client).collect();
    let times = in_turns(&mut each, 2_000)?;
    for ((name, _), times) in clients.iter().zip(&times) {
        for (quantile_name, share) in [("median", 0.5), ("p99", 0.99)] {
            table.row(
                &format!("http: an unlisted call, {name}, {quantile_name} of 2,000"),
                quantile(times, share) * 1e3,
                "µs",
                None,
            );
        }
    }
    for (name, mut client) in clients {
        table.row(
            &format!("http: 10,000 pipelined calls, {name}"),
            client.pipelined(PIPELINED)?.as_secs_f64() * 1e3,
            "ms",
            None,
        );
        table.row(
            &format!("http: resident memory, {name}"),
            client.resident_mib()?,
            "MiB",
            None,
        );
        client.stop()?;
    }
    Ok(())
}

/// A hook's event of a tool that the catalog doesn't list.
fn hook(stage: &Stage, table: &mut Table) -> Result<()> {
    let event = json!({
        "hook_event_name": "PreToolUse", "session_id": "0194c6a2-7b1e-4000-8000-0123456789ab", "cwd": "/srv", "tool_use_id": "toolu_1",
        "tool_name": "Read", "tool_input": { "file_path": "/srv/app/README.md" },
    })
    .to_string();
    let mut times = Vec::new();
    for _ in 0..200 {
        let mut command = stage.program(&["hook"]);
        let begun = Instant::now();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        child
            .stdin
            .take()
            .ok_or("no stdin")?
            .write_all(event.as_bytes())?;
        let ended = child.wait_with_output()?;
        times.push(begun.elapsed());
        if !ended.status.success() || !ended.stdout.is_empty() {
            return Err(format!("the hook decided something: {ended:?}").into());
        }
    }
    for (name, share, aim) in [("median", 0.5, Some(10.0)), ("p99", 0.99, None)] {
        table.row(
            &format!("hook: spawn to the end for an unlisted event, {name} of 200"),
            quantile(&times, share),
            "ms",
            aim,
        );
    }
    Ok(())
}

/// Round trips of each client, one after another, so that all meet the same moments of a busy machine.
fn in_turns(clients: &mut [&mut Client], rounds: usize) -> Result<Vec<Vec<Duration>>> {
    let mut times = vec![Vec::with_capacity(rounds); clients.len()];
    for round in 0..WARM_UP + rounds {
        for (client, times) in clients.iter_mut().zip(&mut times) {
            let took = client.round_trip()?;
            if round >= WARM_UP {
                times.push(took);
            }
        }
    }
    Ok(times)
}
