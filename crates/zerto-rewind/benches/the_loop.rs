//! Measures the loop as a user meets it: the built MCP server, over stdio, against the simulated ZVM over TLS.
//!
//! `cargo bench -p zerto-rewind --bench the_loop` prints a table and writes it to `target/bench/the_loop.json`.
//! `-- NAME` runs the parts whose name contains NAME: `start`, `guard`, `journal`, `find`, `recover`.

// `value["member"]` of a JSON value reads null where nothing is.
#![allow(clippy::indexing_slicing)]

#[path = "the_loop/curl.rs"]
mod curl;
#[path = "the_loop/server.rs"]
mod server;
#[path = "support/table.rs"]
mod table;

use std::{
    error::Error,
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use server::Server;
use table::{Table, median};
use zvm_sim::{
    Scenario, Sim, Spread,
    scenario::{Entry, Partition, Vm, Vpg},
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

type Part = fn(&tokio::runtime::Runtime, &mut Table) -> Result<()>;

fn main() -> Result<()> {
    // Cargo passes `--bench`.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let mut table = Table::default();
    let parts: [(&str, Part); 5] = [
        ("start", start),
        ("guard", guard),
        ("journal", journal),
        ("find", find),
        ("recover", recover),
    ];
    for (name, part) in parts {
        if wanted.is_empty() || wanted.iter().any(|w| name.contains(w.as_str())) {
            eprintln!("measuring: {name}");
            part(&runtime, &mut table)?;
        }
    }
    println!("{table}");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../bench");
    fs::create_dir_all(&folder)?;
    fs::write(
        folder.join("the_loop.json"),
        serde_json::to_vec_pretty(&table.json())?,
    )?;
    Ok(())
}

fn simulator(runtime: &tokio::runtime::Runtime, scenario: Scenario) -> Result<Sim> {
    Ok(runtime.block_on(Sim::start(scenario))?)
}

/// Process start to the `initialize` answer, and memory after 100 calls.
fn start(runtime: &tokio::runtime::Runtime, table: &mut Table) -> Result<()> {
    let sim = simulator(runtime, Scenario::fast())?;
    let folder = tempfile::tempdir()?;
    let config = server::config(&sim, folder.path())?;
    let mut times = Vec::new();
    for _ in 0..100 {
        let begun = Instant::now();
        let server = Server::start(&config)?;
        times.push(begun.elapsed());
        server.stop()?;
    }
    table.row(
        "start: spawn to the initialize answer, median of 100",
        median(&times),
        "ms",
        Some(5.0),
    );

    let mut server = Server::start(&config)?;
    for _ in 0..100 {
        server.call("zerto_find_protection", &json!({"vm": "app01"}))?;
    }
    table.row(
        "start: resident memory after 100 calls",
        server.resident_mib()?,
        "MiB",
        Some(15.0),
    );
    server.stop()
}

/// One VPG against three, from the listing to the receipt, and calls.
fn guard(runtime: &tokio::runtime::Runtime, table: &mut Table) -> Result<()> {
    let mut scenario = Scenario::default();
    scenario.timings.task = Spread::fixed(Duration::from_millis(700));
    scenario.timings.listing_lag = Spread::fixed(Duration::from_millis(900));
    let sim = simulator(runtime, scenario)?;
    let folder = tempfile::tempdir()?;
    let mut server = Server::start(&server::config(&sim, folder.path())?)?;
    let (mut one, mut three) = (Vec::new(), Vec::new());
    for _ in 0..8 {
        for (vm, times) in [("jp-ubuntu", &mut one), ("app01", &mut three)] {
            let begun = Instant::now();
            pin(&mut server, vm)?;
            times.push(begun.elapsed());
        }
    }
    server.stop()?;
    table.row(
        "guard: on 1 VPG, equal lags of 1.6 s, median of 8",
        median(&one),
        "ms",
        None,
    );
    table.row(
        "guard: on 3 VPGs, the same lags, median of 8",
        median(&three),
        "ms",
        None,
    );
    table.row(
        "guard: 3 VPGs divided by 1",
        median(&three) / median(&one),
        "",
        Some(1.2),
    );
    runtime.block_on(sim.shutdown());

    let mut scenario = Scenario::default();
    scenario.timings.listing_lag = Spread::millis(200, 4000);
    let sim = simulator(runtime, scenario)?;
    let mut server = Server::start(&server::config(&sim, folder.path())?)?;
    pin(&mut server, "jp-ubuntu")?; // logs in
    let (mut late, mut spare) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        sim.clear_requests();
        let begun = Instant::now();
        let receipt = pin(&mut server, "jp-ubuntu")?;
        let now = jiff::Timestamp::now();
        let waited = begun.elapsed();
        let tag = receipt["tag"].as_str().unwrap_or_default();
        let listed = sim
            .journal("jp-ubuntu")
            .into_iter()
            .find(|c| c.tag == tag)
            .and_then(|c| c.listed_at)
            .ok_or("the tag is not in the journal")?;
        late.push(Duration::try_from(now.duration_since(listed))?);
        spare.push(sim.requests().len() as f64 - 2.0 * waited.as_secs_f64());
    }
    server.stop()?;
    table.row(
        "guard: from the listing of the tag to the receipt, median of 20",
        median(&late),
        "ms",
        Some(600.0),
    );
    table.row(
        "guard: calls less 2 for each second waited, most of 20",
        spare.into_iter().fold(0.0, f64::max),
        "calls",
        Some(8.0),
    );
    Ok(())
}

/// Bytes that a guard reads where the journal is long.
fn journal(runtime: &tokio::runtime::Runtime, table: &mut Table) -> Result<()> {
    let sim = simulator(runtime, Scenario::default().with_past("jp-ubuntu", 500_000))?;
    let folder = tempfile::tempdir()?;
    let mut server = Server::start(&server::config(&sim, folder.path())?)?;
    let mut most = 0;
    for _ in 0..5 {
        sim.clear_requests();
        pin(&mut server, "jp-ubuntu")?;
        most = most.max(sim.requests().iter().map(|r| r.response_bytes).sum::<u64>());
    }
    server.stop()?;
    table.row(
        "journal: bytes read by a guard, journal of 500,000 checkpoints, most of 5",
        most as f64 / 1024.0,
        "KiB",
        Some(64.0),
    );
    Ok(())
}

/// Find among 10,000 VMs.
fn find(runtime: &tokio::runtime::Runtime, table: &mut Table) -> Result<()> {
    let sim = simulator(runtime, Scenario::default().with_bulk_vms(10_000))?;
    let folder = tempfile::tempdir()?;
    let mut server = Server::start(&server::config(&sim, folder.path())?)?;
    server.call("zerto_find_protection", &json!({"vm": "app01"}))?; // logs in
    for (how, vm) in [
        ("by name", "bulk-05000"),
        (
            "by hostname, which reads the whole list",
            "bulk-05000.example.com",
        ),
    ] {
        let mut times = Vec::new();
        for _ in 0..20 {
            let begun = Instant::now();
            server.call("zerto_find_protection", &json!({ "vm": vm }))?;
            times.push(begun.elapsed());
        }
        table.row(
            &format!("find: among 10,000 VMs {how}, median of 20"),
            median(&times),
            "ms",
            Some(150.0),
        );
    }
    server.stop()
}

/// 1 GiB from the journal, against curl with the same bytes from the same simulator.
fn recover(runtime: &tokio::runtime::Runtime, table: &mut Table) -> Result<()> {
    const GIB: u64 = 1 << 30;
    let mut scenario = Scenario::fast();
    scenario.vms.push(Vm {
        name: "large".to_owned(),
        partitions: vec![Partition {
            size_mib: 2048,
            files: vec![Entry {
                path: "srv/large.bin".to_owned(),
                bytes: Some(GIB),
                ..Entry::default()
            }],
            ..Partition::default()
        }],
        ..Vm::default()
    });
    scenario.vpgs.push(Vpg::of("large", &["large"]));
    let sim = simulator(runtime, scenario)?;
    let folder = tempfile::tempdir()?;
    let config = server::config(&sim, folder.path())?;
    let mut server = Server::start(&config)?;
    let receipt = pin(&mut server, "large")?;
    let checkpoint = text(&receipt["pins"][0]["checkpoint"])?;

    let ids = curl::Ids {
        vm: text(&receipt["vm_identifier"])?,
        vpg: text(&receipt["pins"][0]["vpg_identifier"])?,
        checkpoint: checkpoint.clone(),
    };

    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..4 {
        let result = server.call(
            "zerto_recover_file",
            &json!({"vm": "large", "path": "/srv/large.bin", "checkpoint": checkpoint, "confirmed": true,
                    "destination": format!("round-{round}")}),
        )?;
        let download = result["timing"]["download"].as_f64().ok_or("no timing")?;
        let local = text(&result["local_path"])?;
        let curl = curl::download(
            &sim,
            &ids,
            "/srv/large.bin",
            &folder.path().join("curl.bin"),
        )?;
        if Command::new("cmp")
            .arg(&local)
            .arg(folder.path().join("curl.bin"))
            .status()?
            .code()
            != Some(0)
        {
            return Err("the recovered bytes differ from curl's".into());
        }
        fs::remove_file(local)?;
        if round > 0 {
            ours.push(Duration::from_secs_f64(download));
            theirs.push(curl);
        }
    }
    table.row(
        "recover: 1 GiB, download, hash and placing, median of 3",
        median(&ours),
        "ms",
        None,
    );
    table.row(
        "recover: the same bytes with curl, median of 3",
        median(&theirs),
        "ms",
        None,
    );
    table.row(
        "recover: ours divided by curl's",
        median(&ours) / median(&theirs),
        "",
        Some(1.3),
    );
    table.row(
        "recover: peak resident memory",
        server.peak_resident_mib()?,
        "MiB",
        Some(40.0),
    );
    server.stop()
}

fn pin(server: &mut Server, vm: &str) -> Result<Value> {
    server.call(
        "zerto_create_tagged_checkpoint",
        &json!({"vm": vm, "action": "measure"}),
    )
}

fn text(value: &Value) -> Result<String> {
    Ok(value
        .as_str()
        .ok_or_else(|| format!("not a text: {value}"))?
        .to_owned())
}
