//! Many processes at once, and what a lost answer to a login means.
use crate::{
    stage::texts,
    support::{World, call},
};
use futures::future::join_all;
use zvm_sim::Fault;

const TOKEN: &str = "/auth/**";

#[tokio::test]
async fn sixteen_processes_that_start_at_once_all_get_in() {
    let world = World::new().await;
    let processes: Vec<_> = (0..16).map(|_| world.beside()).collect();
    let finds = join_all(
        processes
            .iter()
            .map(async |process| process.find("jp-ubuntu", &call()).await),
    );
    for found in finds.await {
        found.unwrap();
    }
    let events = texts(&world, "SELECT DISTINCT event FROM login ORDER BY event");
    assert_eq!(events, ["accepted", "attempt"]);
}

#[tokio::test]
async fn a_login_whose_answer_was_lost_may_have_been_refused() {
    let world = World::new().await;
    world.sim.add_fault(Fault::cut_after("POST", TOKEN));
    world.rewind.find("jp-ubuntu", &call()).await.unwrap_err();
    world.rewind.find("jp-ubuntu", &call()).await.unwrap();
    world
        .sim
        .add_fault(Fault::answer("POST", TOKEN, 503, zvm_sim::Outcome::Html));
    world.beside().find("jp-ubuntu", &call()).await.unwrap();
    let outcomes = texts(
        &world,
        "SELECT event FROM login WHERE event <> 'attempt' ORDER BY id",
    );
    assert_eq!(outcomes, ["unknown", "accepted", "unsent", "accepted"]);
}
