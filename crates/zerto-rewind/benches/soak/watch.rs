//! Memory and descriptors of the processes that live all the time.

use std::fs;

use super::{Result, table::Table, town::Town};

/// Its first minutes are not looked at: what a process needs, it takes then.
const WARM: f64 = 0.25;
/// The last part, which is compared with the one after the first.
const LATE: f64 = 0.75;
/// How much more memory may be in use late than early: a share, and in MiB what one call more or less at the same time makes.
const GROWTH: f64 = 0.1;
const SLACK_MIB: f64 = 2.0;
/// How many more descriptors: those of connections and of one recovery.
const SLACK_DESCRIPTORS: f64 = 12.0;

pub struct Watched {
    kind: &'static str,
    pid: u32,
    memory: Most,
    descriptors: Most,
}

/// The most that was seen, early and late.
#[derive(Clone, Copy, Default)]
struct Most {
    early: f64,
    late: f64,
}

impl Most {
    fn see(&mut self, share: f64, value: f64) {
        if (WARM..0.5).contains(&share) {
            self.early = self.early.max(value);
        }
        if share >= LATE {
            self.late = self.late.max(value);
        }
    }
}

impl Watched {
    pub fn of(kind: &'static str, pid: u32) -> Self {
        Self {
            kind,
            pid,
            memory: Most::default(),
            descriptors: Most::default(),
        }
    }

    /// Looks at it when this share of the time is over.
    pub fn look(&mut self, share: f64) -> Result<()> {
        self.memory.see(share, resident_mib(self.pid)?);
        self.descriptors.see(share, descriptors(self.pid)?);
        Ok(())
    }

    /// Whether it has grown.
    pub fn judge(&self, town: &Town) {
        let Self {
            kind,
            memory,
            descriptors,
            ..
        } = self;
        if memory.late > memory.early * (1.0 + GROWTH) + SLACK_MIB {
            town.wrong(format!(
                "a {kind} grew from {:.1} to {:.1} MiB",
                memory.early, memory.late
            ));
        }
        if descriptors.late > descriptors.early + SLACK_DESCRIPTORS {
            town.wrong(format!(
                "a {kind} had {} descriptors, and then {}",
                descriptors.early, descriptors.late
            ));
        }
    }
}

/// The most of any of a kind.
pub fn tell(watched: &[Watched], table: &mut Table) {
    for kind in ["server", "proxy"] {
        let those: Vec<&Watched> = watched
            .iter()
            .filter(|process| process.kind == kind)
            .collect();
        let mut row = |what: &str, unit, of: fn(&Watched) -> f64| {
            let most = those.iter().map(|process| of(process)).fold(0.0, f64::max);
            let what = format!("{kind}, the most of {}: {what}", those.len());
            table.row(&what, most, unit, None);
        };
        row("memory, early", "MiB", |process| process.memory.early);
        row("memory, late", "MiB", |process| process.memory.late);
        row("descriptors, early", "", |process| {
            process.descriptors.early
        });
        row("descriptors, late", "", |process| process.descriptors.late);
    }
}

#[cfg(target_os = "linux")]
fn resident_mib(pid: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    Ok(kib.ok_or("no VmRSS in /proc")?.parse::<f64>()? / 1024.0)
}

#[cfg(target_os = "linux")]
fn descriptors(pid: u32) -> Result<f64> {
    Ok(fs::read_dir(format!("/proc/{pid}/fd"))?.count() as f64)
}

#[cfg(not(target_os = "linux"))]
fn resident_mib(_: u32) -> Result<f64> {
    Ok(0.0)
}

#[cfg(not(target_os = "linux"))]
fn descriptors(_: u32) -> Result<f64> {
    Ok(0.0)
}
