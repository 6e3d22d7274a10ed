//! The certificate that a ZVM is known by: remembered at the first use, and nothing goes on with another one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod support;

use futures::future::join_all;
use rusqlite::Connection;
use serde_json::{Value, json};
use support::{World, stdio::Server};
use zvm_sim::Fault;

const FIND: [&str; 3] = ["find", "jp-ubuntu", "--json"];

/// As `openssl x509 -fingerprint` shows it.
fn shown(fingerprint: &str) -> String {
    let digits: Vec<char> = fingerprint.to_uppercase().chars().collect();
    let pairs: Vec<String> = digits.chunks(2).map(|pair| pair.iter().collect()).collect();
    pairs.join(":")
}

/// Without an authority, and with these keys.
async fn unverified(keys: Value) -> World {
    let world = World::new().await;
    configure(&world, keys);
    world
}

fn configure(world: &World, keys: Value) {
    let mut all = json!({ "verify_tls": false, "ca_file": null });
    for (key, value) in keys.as_object().unwrap() {
        all[key] = value.clone();
    }
    world.configure(all);
}

/// What is remembered: event, fingerprint, who accepted it.
fn remembered(world: &World) -> Vec<(String, String, Option<String>)> {
    let state = Connection::open(world.path("state").join("state.db")).unwrap();
    let mut query = state
        .prepare("SELECT event, sha256, accepted_by FROM certificate ORDER BY id")
        .unwrap();
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    rows.unwrap().map(Result::unwrap).collect()
}

#[tokio::test]
async fn the_first_certificate_is_shown_and_remembered() {
    let world = unverified(json!({})).await;
    let fingerprint = shown(world.sim.fingerprint());
    let run = world.run(&FIND).await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(
        run.stderr.starts_with("warning: ") && run.stderr.contains(&fingerprint),
        "{}",
        run.stderr
    );
    assert_eq!(
        remembered(&world),
        [("first".to_owned(), fingerprint, None)]
    );
    let again = world.run(&FIND).await;
    assert_eq!((again.code, &*again.stderr), (0, ""));
    let trust = world.run(&["trust", "--json"]).await;
    assert_eq!(trust.code, 0, "{}", trust.stdout);
    let trust = trust.json();
    assert_eq!(
        (&trust["trusted"], &trust["why"], &trust["accepted"]),
        (&json!(true), &json!("first_use"), &json!(false))
    );
}

#[tokio::test]
async fn another_certificate_stops_everything_before_anything_is_sent() {
    let mut world = unverified(json!({})).await;
    let first = shown(world.sim.fingerprint());
    assert_eq!(world.run(&FIND).await.code, 0);
    let second = shown(world.sim.renew_certificate().unwrap());
    world.sim.clear_requests();
    for arguments in [
        &FIND[..],
        &["guard", "jp-ubuntu", "--action", "edit", "--json"],
        &["checkpoints", "jp-ubuntu", "--json"],
    ] {
        let run = world.run(arguments).await;
        assert_eq!(run.code, 5, "{}", run.stdout);
        let error = &run.json()["error"];
        assert_eq!(error["code"], "certificate_changed");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains(&first) && message.contains(&second),
            "{message}"
        );
        assert!(
            error["next"]
                .as_str()
                .unwrap()
                .contains("`zerto-rewind trust`")
        );
    }
    // Advice is for the configuration that was given, and not for one that is found by itself.
    let config = world.config();
    let config = config.to_str().unwrap();
    let advice = format!("`zerto-rewind --config {config} trust`");
    for command in [&FIND[..2], &FIND, &["doctor"], &["doctor", "--json"]] {
        let named = [&["--config", config], command].concat();
        let mut named = world.command(&named);
        let run = world.finish(named.env_remove("ZERTO_REWIND_CONFIG")).await;
        assert_eq!(run.code, 5, "{}", run.stderr);
        let said = format!("{}{}", run.stdout, run.stderr);
        assert!(said.contains(&advice), "{command:?}: {said}");
        assert!(!said.contains("`zerto-rewind trust`"), "{said}");
    }
    let hint = world.run(&["trust"]).await;
    assert_eq!(hint.code, 3, "no person is there: {}", hint.stderr);
    assert!(
        hint.stderr.contains(&first) && hint.stderr.contains(&second),
        "{}",
        hint.stderr
    );
    assert!(world.sim.requests().is_empty(), "something was sent");
    assert_eq!(remembered(&world).len(), 1);
}

#[tokio::test]
async fn the_configuration_pins_without_asking_and_wins() {
    let mut world = unverified(json!({})).await;
    assert_eq!(world.run(&FIND).await.code, 0);
    let old = world.sim.fingerprint().to_owned();
    let new = world.sim.renew_certificate().unwrap().to_owned();
    world.sim.clear_requests();
    for written in [new.clone(), shown(&new)] {
        configure(&world, json!({ "tls_fingerprint": written }));
        let run = world.run(&FIND).await;
        assert_eq!((run.code, &*run.stderr), (0, ""), "{}", run.stdout);
        assert_eq!(world.run(&["trust"]).await.code, 0);
    }
    // With `verify_tls` both count.
    world.sim.clear_requests();
    for keys in [
        json!({ "verify_tls": false, "ca_file": null, "tls_fingerprint": old }),
        json!({ "tls_fingerprint": old }),
    ] {
        world.configure(keys);
        let run = world.run(&FIND).await;
        assert_eq!(run.code, 5, "{}", run.stdout);
        let error = &run.json()["error"];
        assert_eq!(error["code"], "certificate_changed", "{error}");
        assert!(
            error["next"]
                .as_str()
                .unwrap()
                .contains("`tls_fingerprint`"),
            "{error}"
        );
    }
    assert!(world.sim.requests().is_empty(), "something was sent");
    world.configure(json!({ "tls_fingerprint": new }));
    assert_eq!(world.run(&FIND).await.code, 0);
    let nothing_to_decide = world.run(&["trust"]).await;
    assert_eq!(nothing_to_decide.code, 2, "{}", nothing_to_decide.stderr);
}

#[tokio::test]
async fn processes_that_come_first_at_once_agree_on_one() {
    let world = unverified(json!({})).await;
    let runs = join_all((0..8).map(|_| world.run(&FIND))).await;
    let warned = runs
        .iter()
        .filter(|run| run.stderr.contains("warning"))
        .count();
    for run in &runs {
        assert_eq!(run.code, 0, "{}", run.stdout);
    }
    assert_eq!(warned, 1);
    assert_eq!(remembered(&world).len(), 1);
}

#[tokio::test]
async fn a_first_certificate_can_be_refused() {
    let world = unverified(json!({ "tls_first_use": "refuse" })).await;
    let fingerprint = shown(world.sim.fingerprint());
    let run = world.run(&FIND).await;
    assert_eq!(run.code, 5, "{}", run.stdout);
    let error = &run.json()["error"];
    assert_eq!(error["code"], "certificate_refused");
    assert!(
        error["message"].as_str().unwrap().contains(&fingerprint),
        "{error}"
    );
    assert!(
        error["next"]
            .as_str()
            .unwrap()
            .contains("`zerto-rewind trust`"),
        "{error}"
    );
    assert!(world.sim.requests().is_empty(), "something was sent");
    assert_eq!(remembered(&world), []);
}

#[tokio::test]
async fn a_running_server_warns_stops_and_goes_on_once_a_person_accepted() {
    let mut world = unverified(json!({})).await;
    let first = shown(world.sim.fingerprint());
    let mut client = Server::initialized(&world.config(), "2025-11-25").await;
    let arguments = json!({ "vm": "jp-ubuntu" });
    let result = client
        .call("zerto_find_protection", arguments.clone())
        .await;
    assert_ne!(result["isError"], true, "{result}");

    let second = shown(world.sim.renew_certificate().unwrap());
    // The connection that it has is from before; the next one is not.
    world.sim.add_fault(Fault::cut_before("GET", "/v1/vms"));
    let result = client
        .call("zerto_find_protection", arguments.clone())
        .await;
    let error = &result["structuredContent"]["error"];
    assert_eq!(error["code"], "certificate_changed", "{result}");
    let state = rewind_core::state::State::open(world.path("state")).unwrap();
    let zvm = world.sim.url().strip_prefix("https://").unwrap();
    state
        .certificate_accepted(zvm, second.parse().unwrap(), "cli/ana")
        .unwrap();
    let result = client.call("zerto_find_protection", arguments).await;
    assert_ne!(result["isError"], true, "{result}");
    client.close_stdin();
    let (_, log) = client.end().await;
    assert!(log.contains("WARN") && log.contains(&first), "{log}");
}

#[cfg(unix)]
mod at_a_terminal {
    use super::*;
    use support::{Run, terminal::Terminal};

    #[tokio::test]
    async fn a_person_accepts_a_changed_certificate() {
        let mut world = unverified(json!({})).await;
        let first = shown(world.sim.fingerprint());
        assert_eq!(world.run(&FIND).await.code, 0);
        let second = shown(world.sim.renew_certificate().unwrap());
        for (answer, code) in [("no", 3), ("", 3), ("yes", 0)] {
            let (mut terminal, child) = Terminal::start(&mut world.command(&["trust"]), false);
            terminal.shows("[y/N]").await;
            let text = terminal.text();
            // Each on lines of its own: to be copied and compared.
            let lines: Vec<_> = text.lines().map(str::trim_end).collect();
            for fingerprint in [&first, &second] {
                let (half, other) = fingerprint.split_at(48);
                assert!(lines.windows(2).any(|two| two == [half, other]), "{text}");
            }
            terminal.types(answer);
            let run = Run::of(child.wait_with_output().await.unwrap());
            assert_eq!(run.code, code, "{answer:?}: {}", terminal.end());
        }
        assert_eq!(
            remembered(&world),
            [
                ("first".to_owned(), first, None),
                ("accepted".to_owned(), second, Some("cli/justin".to_owned())),
            ]
        );
        let run = world.run(&FIND).await;
        assert_eq!((run.code, &*run.stderr), (0, ""));
    }

    #[tokio::test]
    async fn a_person_accepts_the_first_certificate() {
        let world = unverified(json!({ "tls_first_use": "refuse" })).await;
        let (mut terminal, child) = Terminal::start(&mut world.command(&["trust"]), false);
        terminal.shows("[y/N]").await;
        terminal.types("y");
        let run = Run::of(child.wait_with_output().await.unwrap());
        assert_eq!(run.code, 0, "{}", terminal.end());
        assert!(world.sim.requests().is_empty(), "something was sent");
        assert_eq!(world.run(&FIND).await.code, 0);
    }
}
