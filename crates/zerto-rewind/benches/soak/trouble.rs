//! What goes wrong at the ZVM and on the way to it: each for a short time, so that all of it is overcome.

use std::{sync::Arc, time::Duration};

use rand::{Rng as _, rngs::StdRng, seq::IndexedRandom as _};
use tokio::time::sleep;
use zvm_sim::{Fault, Outcome, Spread, switches::Unmount};

use super::town::Town;

pub async fn happens(town: Arc<Town>, mut draws: StdRng) {
    while !town.over.is_cancelled() {
        sleep(Duration::from_millis(draws.random_range(50..400))).await;
        let sim = &town.sim;
        match draws.random_range(0..20) {
            0 => {
                town.count("trouble: tokens revoked");
                sim.revoke_tokens();
            }
            1 => {
                town.count("trouble: an insert dropped");
                sim.update(|switches| switches.drop_next = 1);
            }
            2 => {
                town.count("trouble: listing slow for a second");
                sim.update(|switches| switches.listing_lag = Some(Spread::millis(500, 1500)));
                sleep(Duration::from_secs(1)).await;
                sim.update(|switches| switches.listing_lag = None);
            }
            3 => {
                town.count("trouble: unmounting refused for a second");
                sim.update(|switches| switches.unmount = Unmount::Refused);
                sleep(Duration::from_secs(1)).await;
                sim.update(|switches| switches.unmount = Unmount::Succeeds);
            }
            4 if town.thorough && draws.random_ratio(1, 4) => {
                town.count("trouble: the ZVM restarted");
                sim.restart();
                if let Err(error) = town.somebody_mounts().await {
                    town.wrong(error.to_string());
                }
            }
            _ => {
                town.count("trouble: requests that met a fault");
                sim.add_fault(fault(&mut draws, town.thorough));
            }
        }
    }
}

fn fault(draws: &mut StdRng, thorough: bool) -> Fault {
    let any = if thorough { "" } else { "GET" };
    let faults = [
        Fault::cut_before(any, "/**"),
        Fault::cut_after("POST", "/v1/vpgs/*/checkpoints"),
        Fault::cut_after("POST", "/v1/flrs"),
        Fault::cut_after("DELETE", "/v1/flrs/*"),
        Fault::cut_before("POST", "/auth/**"),
        Fault::answer("GET", "/**", 503, Outcome::Html),
        Fault::answer("GET", "/v1/tasks/*", 500, Outcome::Message),
        Fault::answer("GET", "/v1/vpgs/*/checkpoints", 502, Outcome::Empty),
        Fault::answer("GET", "/v1/vms", 200, Outcome::TruncatedJson),
        Fault::answer("POST", "/v1/flrs", 500, Outcome::Message),
        Fault::answer("GET", "/v1/downloads/*", 200, Outcome::CutBody),
        Fault {
            delay: Duration::from_millis(700),
            ..Fault::answer("", "/v1/**", 200, Outcome::Answer)
        },
    ];
    let times = draws.random_range(1..=3);
    let mut fault = faults.choose(draws).cloned().unwrap_or_default();
    fault.times = times;
    fault
}
