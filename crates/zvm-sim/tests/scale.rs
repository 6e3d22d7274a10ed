#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::time::Instant;

use common::{column, start};
use zvm_sim::Scenario;

#[tokio::test]
async fn ten_thousand_vms() {
    let zvm = start(Scenario::fast().with_bulk_vms(10_000)).await;
    let rows = zvm.json("/v1/vms?vmName=BULK-07777").await;
    assert_eq!(column(&rows, "VpgName"), ["bulk-vpg-0778"]);
    zvm.sim.clear_requests();
    let began = Instant::now();
    let rows = zvm.json("/v1/vms").await;
    let took = began.elapsed();
    // 10,000 and those of the default scenario.
    assert_eq!(rows.as_array().unwrap().len(), 10_000 + 8);
    let bytes = zvm.sim.requests()[0].response_bytes;
    assert!((10_000_000..30_000_000).contains(&bytes), "{bytes}");
    println!("{bytes} bytes in {took:?}");
    zvm.pin("bulk-vpg-1000", "in a crowd").await;
}
