//! What is left when all is over, and must not be.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rewind_core::ledger::Ledger;
use rusqlite::Connection;

use super::{Result, open_rows::OPEN, town::Town};

/// Until what was left behind is unmounted: some commands see to it, whoever they are.
const SETTLES_WITHIN: Duration = Duration::from_secs(60);

/// Other commands come, until the only session is the one that is none of ours.
pub async fn settle(town: &Town) -> Result<()> {
    let begun = Instant::now();
    loop {
        for host in 0..town.hosts.len() {
            let found = town
                .cli(host, &["find", "plain-a", "--json"])?
                .output()
                .await?;
            if !found.status.success() {
                return Err("a ZVM without troubles does not answer".into());
            }
        }
        let sessions = town.sim.flr_sessions();
        town.took("until all sessions were unmounted", begun);
        match sessions.as_slice() {
            [kept] if kept.vm == "kept" => return Ok(()),
            _ if begun.elapsed() < SETTLES_WITHIN => {}
            _ => {
                town.wrong(format!("sessions are open, or gone: {sessions:?}"));
                return Ok(());
            }
        }
    }
}

pub fn look(town: &Town) -> Result<()> {
    for path in all_below(town.path())? {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let is_left = ["owner-", ".zerto-rewind-", ".tmp"]
            .iter()
            .any(|mark| name.starts_with(mark));
        if is_left || name.contains(".wait-") {
            town.wrong(format!("{} is left", path.display()));
        }
        if name.ends_with(".lock") && File::open(&path)?.try_lock().is_err() {
            town.wrong(format!("{} is locked", path.display()));
        }
    }
    for host in &town.hosts {
        let database = Connection::open(host.state.join("state.db"))?;
        for (what, query) in OPEN {
            let open: i64 = database.query_row(query, [], |row| row.get(0))?;
            if open > 0 {
                town.wrong(format!(
                    "{open} {what} are open in {}",
                    host.state.display()
                ));
            }
        }
        for finding in Ledger::of(&host.state).verify()?.findings {
            town.wrong(format!("the ledger in {}: {finding}", host.state.display()));
        }
    }
    let log = fs::read_to_string(town.path().join("log"))?;
    for line in log.lines().filter(|line| line.contains("panicked")) {
        town.wrong(line.to_owned());
    }
    Ok(())
}

fn all_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(all_below(&path)?);
        }
        found.push(path);
    }
    Ok(found)
}
