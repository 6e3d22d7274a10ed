//! The soak: a town of two hosts at one ZVM, their load, their troubles, and what is left of all that.

#[path = "client.rs"]
mod client;
#[path = "load.rs"]
mod load;
#[path = "../../tests/support/open_rows.rs"]
mod open_rows;
#[path = "remains.rs"]
mod remains;
#[allow(dead_code)]
#[path = "../support/table.rs"]
mod table;
#[path = "town.rs"]
mod town;
#[path = "trouble.rs"]
mod trouble;
#[path = "watch.rs"]
mod watch;

use std::{
    error::Error,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use table::Table;
use tokio::task::JoinSet;
use town::Town;
use watch::Watched;

pub use client::{ECHO, echo};

pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Of commands that come and go, at any time.
const COMERS: u64 = 4;

/// From this length on, troubles may take long to get over.
const THOROUGH: Duration = Duration::from_secs(120);

/// Runs it for so long; without a seed, one is drawn from the clock.
pub fn soak(length: Duration, seed: Option<u64>) -> Result<()> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let seed = seed.unwrap_or(u64::from(now.subsec_micros()));
    println!("soak: {} s, --seed {seed}", length.as_secs());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let wrong = runtime.block_on(run(length, seed))?;
    if wrong.is_empty() {
        return Ok(());
    }
    for wrong in &wrong {
        println!("WRONG: {wrong}");
    }
    Err(format!("{} things are wrong; --seed {seed}", wrong.len()).into())
}

async fn run(length: Duration, seed: u64) -> Result<Vec<String>> {
    let begun = Instant::now();
    let town = Arc::new(Town::new(seed, length >= THOROUGH).await?);
    let mut work = JoinSet::new();
    let mut watched = Vec::new();
    for host in 0..town.hosts.len() {
        for _ in 0..2 {
            let server = town.server(host).await?;
            watched.push(Watched::of("server", server.pid()?));
            work.spawn(load::served(town.clone(), host, server, town.draws()));
        }
        let proxy = town.proxy(host).await?;
        watched.push(Watched::of("proxy", proxy.pid()?));
        work.spawn(load::proxied(town.clone(), host, proxy, town.draws()));
    }
    let mut comers = JoinSet::new();
    for _ in 0..COMERS {
        comers.spawn(load::come_and_go(town.clone(), town.draws()));
    }
    comers.spawn(trouble::happens(town.clone(), town.draws()));

    while begun.elapsed() < length {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let share = begun.elapsed().as_secs_f64() / length.as_secs_f64();
        for process in &mut watched {
            process.look(share)?;
        }
    }
    town.over.cancel();
    // All of them end what they are at.
    comers.join_all().await;
    town.calm();
    let long_lived = work.join_all().await;
    for process in &mut watched {
        process.look(1.0)?;
    }
    for client in long_lived.into_iter().flatten() {
        client.end().await?;
    }
    remains::settle(&town).await?;
    remains::look(&town)?;

    let mut table = Table::default();
    town.tally(&mut table, begun.elapsed());
    watch::tell(&watched, &mut table);
    for process in &watched {
        process.judge(&town);
    }
    println!("{table}");
    town.end().await
}
