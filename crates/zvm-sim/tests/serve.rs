#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

//! The program `zvm-sim`.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

fn zvm_sim(arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_zvm-sim"))
        .args(arguments)
        .env("RUST_LOG", "info")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn ready(child: &mut Child) -> Value {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    serde_json::from_str(&line).unwrap()
}

#[cfg(unix)]
fn terminate(child: &Child) {
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &id])
            .status()
            .unwrap()
            .success()
    );
}

#[cfg(unix)]
#[test]
fn it_says_how_to_reach_it_and_cleans_up_when_it_is_terminated() {
    let mut child = zvm_sim(&["serve"]);
    let ready = ready(&mut child);
    let mut members: Vec<&str> = ready
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    members.sort_unstable();
    assert_eq!(
        members,
        [
            "ca_file",
            "client_id",
            "client_secret",
            "fingerprint_sha256",
            "guests_dir",
            "password",
            "url",
            "username",
        ]
    );
    let guests = Path::new(ready["guests_dir"].as_str().unwrap());
    let config = guests.join("jp-ubuntu/0/home/justin/app-config.yaml");
    assert_eq!(std::fs::metadata(config).unwrap().len(), 158);
    assert_eq!(ready["fingerprint_sha256"].as_str().unwrap().len(), 64);
    terminate(&child);
    assert!(child.wait().unwrap().success());
    assert!(!guests.exists());
    let mut log = String::new();
    child.stderr.unwrap().read_to_string(&mut log).unwrap();
    assert!(log.contains("stopping"), "{log}");
}

#[cfg(unix)]
#[test]
fn its_data_folder_stays() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = zvm_sim(&["serve", "--data", folder.path().to_str().unwrap()]);
    let ready = ready(&mut child);
    terminate(&child);
    assert!(child.wait().unwrap().success());
    assert!(Path::new(ready["guests_dir"].as_str().unwrap()).starts_with(folder.path()));
    assert!(
        folder
            .path()
            .join("guests/app01/1/justin/app-config.yaml")
            .exists()
    );
}

#[test]
fn a_scenario_that_can_not_be_played_is_an_error_with_its_reason() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "[switches]\ncasing = \"shouting\"\n").unwrap();
    let output = zvm_sim(&["serve", "--scenario", file.path().to_str().unwrap()])
        .wait_with_output()
        .unwrap();
    assert!(!output.status.success());
    assert!(output.stdout.is_empty());
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("shouting") && error.contains("camel"),
        "{error}"
    );
}

#[test]
fn it_prints_a_scenario_to_start_from() {
    let output = zvm_sim(&["scenario"]).wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        zvm_sim::Scenario::from_toml(&text).unwrap(),
        zvm_sim::Scenario::default()
    );
}
