//! Measures the ledger: what a row costs while others write, what checking all of it takes, and its part of a list of checkpoints.
//!
//! `cargo bench -p zerto-rewind --bench ledger` prints a table and writes it to `target/bench/ledger.json`. `-- NAME` runs the parts whose
//! name contains NAME: `append`, `verify`, `list`.

#[allow(dead_code)]
#[path = "support/table.rs"]
mod table;

use std::{
    error::Error,
    fs,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use rewind_core::{
    ledger::{Ledger, ListedPin},
    state::{GuardRecord, InsertOutcome, PinRecord, Placed, RecoveryRecord, State},
};
use table::{Table, median, quantile};
use tempfile::TempDir;

type Result<T> = std::result::Result<T, Box<dyn Error>>;
type Part = fn(&mut Table) -> Result<()>;

const WRITERS: usize = 8;
/// Of each writer, of each kind.
const APPENDS: usize = 500;
const WRITER: &str = "writer";
const ZVM: &str = "zvm.example.com:443";
const VM: &str = "11111111-2222-3333-4444-555555555555.vm-101";
const VPG: &str = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [writer, dir] = arguments.as_slice()
        && writer == WRITER
    {
        return write(Path::new(dir));
    }
    // Cargo passes `--bench`.
    let wanted: Vec<_> = arguments.iter().filter(|a| !a.starts_with("--")).collect();
    let mut table = Table::default();
    let parts: [(&str, Part); 3] = [("append", append), ("verify", verify), ("list", list)];
    for (name, part) in parts {
        if wanted.is_empty() || wanted.iter().any(|w| name.contains(w.as_str())) {
            eprintln!("measuring: {name}");
            part(&mut table)?;
        }
    }
    println!("{table}");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../bench");
    fs::create_dir_all(&folder)?;
    fs::write(
        folder.join("ledger.json"),
        serde_json::to_vec_pretty(&table.json())?,
    )?;
    Ok(())
}

/// One of the writers: as many rows as it can, each with how long it took.
fn write(dir: &Path) -> Result<()> {
    let state = State::open(dir)?;
    // All begin at once.
    std::io::stdin().read_exact(&mut [0])?;
    let (mut intents, mut outcomes) = (Vec::new(), Vec::new());
    for number in 0..APPENDS {
        let tag = tag(&format!("{}-{number}", std::process::id()));
        let begun = Instant::now();
        let insert = state.insert_sending(ZVM, VPG, &tag)?;
        intents.push(begun.elapsed());
        let begun = Instant::now();
        state.insert_settled(insert, InsertOutcome::Listed)?;
        outcomes.push(begun.elapsed());
    }
    std::io::stdout().write_all(&serde_json::to_vec(&(intents, outcomes))?)?;
    Ok(())
}

fn append(table: &mut Table) -> Result<()> {
    // Where the target folder is, since a folder for what is temporary is often no disk.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    table.row(
        "append: the disk alone, write and sync of 8 KiB, median of 200",
        median(&disk(folder.path())?),
        "ms",
        None,
    );
    let dir = state_in(&folder)?;
    let mut writers = (0..WRITERS)
        .map(|_| {
            Command::new(std::env::current_exe()?)
                .arg(WRITER)
                .arg(&dir)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
        })
        .collect::<std::io::Result<Vec<Child>>>()?;
    for writer in &mut writers {
        writer.stdin.take().ok_or("no stdin")?.write_all(b"!")?;
    }
    let (mut intents, mut outcomes) = (Vec::new(), Vec::new());
    for writer in writers {
        let output = writer.wait_with_output()?;
        let (of_one, others): (Vec<Duration>, Vec<Duration>) =
            serde_json::from_slice(&output.stdout)?;
        intents.extend(of_one);
        outcomes.extend(others);
    }
    let verified = Ledger::of(&dir).verify()?;
    if !verified.clean || verified.rows != (2 * WRITERS * APPENDS) as u64 {
        return Err("the ledger is not what was written".into());
    }
    for (what, times) in [
        ("an intent (survives a power cut)", intents),
        ("an outcome", outcomes),
    ] {
        let count = times.len();
        table.row(
            &format!("append: {what}, {WRITERS} processes as fast as they can, median of {count}"),
            median(&times),
            "ms",
            Some(1.0),
        );
        table.row(
            &format!("append: {what}, the slowest of 100"),
            quantile(&times, 0.99),
            "ms",
            None,
        );
    }
    Ok(())
}

/// What a row that survives a power cut waits for, whoever writes it.
fn disk(folder: &Path) -> Result<Vec<Duration>> {
    let mut file = fs::File::create(folder.join("probe"))?;
    let mut times = Vec::new();
    for _ in 0..200 {
        let begun = Instant::now();
        file.write_all(&[0; 8192])?;
        file.sync_data()?;
        times.push(begun.elapsed());
    }
    Ok(times)
}

fn verify(table: &mut Table) -> Result<()> {
    const ROWS: u64 = 100_000;
    let folder = in_memory()?;
    let dir = state_in(&folder)?;
    let state = State::open(&dir)?;
    // Seven rows each.
    for number in 0..ROWS.div_ceil(7) {
        guard(&state, &number.to_string(), 3)?;
    }
    drop(state);
    let ledger = Ledger::of(&dir);
    let (mut times, mut rows) = (Vec::new(), 0);
    for _ in 0..5 {
        let begun = Instant::now();
        let verified = ledger.verify()?;
        times.push(begun.elapsed());
        if !verified.clean || verified.rows < ROWS {
            return Err("the ledger is not what was written".into());
        }
        rows = verified.rows;
    }
    table.row(
        &format!("verify: {rows} rows, median of 5"),
        median(&times),
        "ms",
        Some(1000.0),
    );
    Ok(())
}

fn list(table: &mut Table) -> Result<()> {
    const PINS: usize = 10_000;
    let folder = in_memory()?;
    let state = State::open(state_in(&folder)?)?;
    let mut pins = Vec::new();
    for number in 0..PINS {
        let guard = guard(&state, &number.to_string(), 1)?;
        let pin = guard.pins.first().ok_or("no pin")?;
        if number % 10 == 0 {
            recover(&state, &guard, pin)?;
        }
        pins.push(ListedPin {
            vpg_identifier: pin.vpg_identifier.clone(),
            checkpoint_id: pin.checkpoint_id.clone(),
            tag: guard.tag,
        });
    }
    for (which, pins) in [
        ("all of them", pins.as_slice()),
        (
            "the 500 that a list shows at most",
            pins.get(..500).unwrap_or_default(),
        ),
    ] {
        let mut times = Vec::new();
        for _ in 0..5 {
            let begun = Instant::now();
            let known = state.known(ZVM, VM, pins)?;
            times.push(begun.elapsed());
            if known.iter().any(|known| known.guard.is_none()) {
                return Err("a pin is not known".into());
            }
        }
        table.row(
            &format!("list: the ledger's part for a VM with 10,000 pins, {which}, median of 5"),
            median(&times),
            "ms",
            Some(100.0),
        );
    }
    Ok(())
}

/// What a guard leaves, without the ZVM.
fn guard(state: &State, number: &str, vpgs: usize) -> Result<GuardRecord> {
    let tag = tag(number);
    let now = Timestamp::now();
    let pin = |vpg: usize| PinRecord {
        vpg_identifier: format!("{VPG}-{vpg}"),
        vpg_name: format!("Payroll {vpg}"),
        checkpoint_id: format!("1{number}"),
        checkpoint_at: now,
    };
    let guard = GuardRecord {
        zvm: ZVM.into(),
        agent: "claude".into(),
        client: Some("claude-code".into()),
        change: "chg-412".into(),
        vm_identifier: VM.into(),
        vm_name: "app01".into(),
        tag: tag.clone(),
        call: None,
        started: now,
        ended: now,
        pins: (0..vpgs).map(pin).collect(),
        failure: None,
    };
    state.guard_intended(ZVM, VM, &tag)?;
    let insert = state.insert_sending(ZVM, VPG, &tag)?;
    state.insert_settled(insert, InsertOutcome::Listed)?;
    state.record_guard(&guard)?;
    Ok(guard)
}

fn recover(state: &State, guard: &GuardRecord, pin: &PinRecord) -> Result<()> {
    let recoveries = state.recoveries_beginning(&[RecoveryRecord {
        plan: "p-7k3m9x2q".into(),
        zvm: ZVM.into(),
        vm_identifier: VM.into(),
        vm_name: guard.vm_name.clone(),
        vpg_identifier: pin.vpg_identifier.clone(),
        vpg_name: pin.vpg_name.clone(),
        checkpoint_id: pin.checkpoint_id.clone(),
        checkpoint_at: pin.checkpoint_at,
        tag: Some(guard.tag.clone()),
        client: None,
        change: "chg-412".into(),
        path: "/etc/hosts".into(),
    }])?;
    for recovery in recoveries {
        let placing = state.placing(recovery, "partition#0 Ext4/etc/hosts", "/back/hosts")?;
        let placed = Placed {
            files: 1,
            bytes: 158,
            sha256: "ab".repeat(32),
        };
        state.placed(placing, Ok(&placed))?;
        state.recovery_ended(recovery, None)?;
    }
    Ok(())
}

fn tag(number: &str) -> String {
    format!(
        "ai:claude | edit /etc/nginx/nginx.conf | vm=app01 | change={number} | 20260921T170829Z"
    )
}

fn state_in(folder: &TempDir) -> Result<PathBuf> {
    let dir = folder.path().join("state");
    drop(State::open(&dir)?);
    Ok(dir)
}

/// What is only prepared need not wait for a disk.
fn in_memory() -> std::io::Result<TempDir> {
    match tempfile::tempdir_in("/dev/shm") {
        Ok(folder) => Ok(folder),
        Err(_) => tempfile::tempdir(),
    }
}
