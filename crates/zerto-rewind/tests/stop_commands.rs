//! `stop` and `resume`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod support;

use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use support::World;
use tempfile::TempDir;

struct Place(TempDir);

struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let config = json!({
            "zerto_url": "https://127.0.0.1:1", "username": "u", "password": "p", "state_dir": place.path("state"),
        });
        fs::write(place.path("config.json"), config.to_string()).unwrap();
        #[cfg(unix)]
        fs::set_permissions(
            place.path("config.json"),
            std::os::unix::fs::PermissionsExt::from_mode(0o600),
        )
        .unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, words: &[&str]) -> Said {
        self.run_with(Some(&self.path("config.json")), words)
    }

    fn run_with(&self, config: Option<&Path>, words: &[&str]) -> Said {
        said(&mut self.command(config, words))
    }

    fn command(&self, config: Option<&Path>, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zerto-rewind"));
        command
            .args(words)
            .env_remove("ZERTO_REWIND_CONFIG")
            .env_remove("XDG_STATE_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .env("HOME", self.0.path())
            .env("USER", "justin");
        if let Some(config) = config {
            command.env("ZERTO_REWIND_CONFIG", config);
        }
        command
    }
}

fn said(command: &mut Command) -> Said {
    let output = command.output().unwrap();
    Said {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn stop_and_resume_print_what_is_in_force() {
    let place = Place::new();
    let resumed = place.run(&["resume"]);
    assert_eq!(resumed.code, 0);
    assert_eq!(resumed.out, "not stopped: nothing to resume\n");

    let stopped = place.run(&["stop", "--reason", "maintenance\nof the array"]);
    assert_eq!(stopped.code, 0, "{}", stopped.err);
    let first = stopped.out.lines().next().unwrap().to_owned();
    assert!(
        first.starts_with("stopped since ")
            && first.ends_with(" by cli/justin: maintenance of the array"),
        "{first}"
    );
    assert!(place.path("state/stop.json").is_file());

    // Again: the same one, in other words the first.
    let again = place.run(&["stop"]);
    assert_eq!(again.out.lines().next().unwrap(), first);

    // With the configuration that was given.
    let config = place.path("config.json");
    let named = place.run_with(None, &["--config", config.to_str().unwrap(), "stop"]);
    let advice = format!("until `zerto-rewind --config {} resume`", config.display());
    assert!(named.out.contains(&advice), "{}", named.out);

    let resumed = place.run(&["resume"]);
    assert_eq!(resumed.out.trim(), format!("resumed; it was {first}"));
    assert!(!place.path("state/stop.json").exists());
}

#[test]
fn scripts_read_json() {
    let place = Place::new();
    let said: Value =
        serde_json::from_str(&place.run(&["stop", "--reason", "x", "--json"]).out).unwrap();
    assert_eq!(said["stopped"]["reason"], "x");
    assert_eq!(said["before"], Value::Null);
    let said: Value = serde_json::from_str(&place.run(&["resume", "--json"]).out).unwrap();
    assert_eq!(said["stopped"], Value::Null);
    assert_eq!(said["before"]["reason"], "x");
}

#[test]
fn nothing_runs_while_stopped() {
    let place = Place::new();
    place.run(&["stop", "--reason", "maintenance"]);
    let marker = place.path("ran");
    let marker = marker.to_str().unwrap();
    let run = place.run(&["run", "--vm", "v", "--action", "a", "--", "touch", marker]);
    assert_eq!(run.code, 125);
    assert!(
        run.err.contains("maintenance") && run.err.contains("zerto-rewind resume"),
        "{}",
        run.err
    );
    assert!(!Path::new(marker).exists());
}

#[test]
fn a_stop_needs_no_configuration() {
    let place = Place::new();
    let stopped = place.run_with(None, &["stop"]);
    assert_eq!(stopped.code, 0, "{}", stopped.err);
    let file = PathBuf::from(stopped.out.lines().last().unwrap());
    assert!(
        file.starts_with(place.0.path()) && file.is_file(),
        "{file:?}"
    );
    assert_eq!(place.run_with(None, &["resume"]).code, 0);
    assert!(!file.exists());
}

#[test]
fn a_configuration_that_cannot_be_read_is_an_error_and_not_another_stop() {
    let place = Place::new();
    fs::write(place.path("config.json"), "{").unwrap();
    let said = place.run(&["stop"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("config.json"), "{}", said.err);
    assert_eq!(
        place
            .run_with(Some(&place.path("none.json")), &["resume"])
            .code,
        2
    );
}

/// What holds for the user holds for the configuration that nobody has to name, and waits for none.
#[test]
fn a_stop_does_not_wait_for_the_configuration_that_is_found_by_itself_and_a_resume_lifts_its_stop_too()
 {
    let place = Place::new();
    let default = place.run_with(None, &["doctor", "--json"]).out;
    let default: Value = serde_json::from_str(&default).unwrap();
    let message = default["checks"][0]["message"].as_str().unwrap();
    let default = message.strip_prefix("no configuration file is named, and ");
    let default = PathBuf::from(default.unwrap().strip_suffix(" is not there").unwrap());
    assert!(default.starts_with(place.0.path()), "{default:?}");
    fs::create_dir_all(default.parent().unwrap()).unwrap();
    fs::write(&default, "{").unwrap();
    assert_eq!(place.run_with(None, &["stop"]).code, 0);
    let said = place.run_with(None, &["resume"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("config.json"), "{}", said.err);

    fs::rename(place.path("config.json"), &default).unwrap();
    assert_eq!(place.run_with(Some(&default), &["stop"]).code, 0);
    assert!(place.path("state/stop.json").exists());
    assert_eq!(place.run_with(None, &["resume"]).code, 0);
    assert!(!place.path("state/stop.json").exists());
    let said = place.run_with(None, &["resume"]);
    assert!(said.out.starts_with("not stopped"), "{}", said.out);
}

/// Programs that have the folder open go on: what is not written stops nobody.
#[cfg(unix)]
#[test]
fn a_stop_that_is_not_written_says_that_nobody_is_stopped() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let (state, config) = (place.path("state"), place.path("config.json"));
    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o500)).unwrap();
    let mut stop = place.command(Some(&config), &["stop", "--reason", "x"]);
    support::as_mortal(&mut stop, place.0.path());
    let stop = said(&mut stop);
    assert_eq!(stop.code, 1, "{}", stop.out);
    for wanted in ["NOT stopped", "Permission denied", "end their clients"] {
        assert!(stop.err.contains(wanted), "{wanted}: {}", stop.err);
    }
    assert!(!stop.err.contains("call is refused"), "{}", stop.err);
    assert!(!state.join("stop.json").exists());
    // The way that it names.
    let mut of_user = place.command(None, &["stop"]);
    support::as_mortal(&mut of_user, place.0.path());
    let of_user = said(&mut of_user);
    assert_eq!(of_user.code, 0, "{}", of_user.err);
    let run = ["run", "--vm", "v", "--action", "a", "--", "true"];
    let mut run = place.command(Some(&config), &run);
    support::as_mortal(&mut run, place.0.path());
    let run = said(&mut run);
    assert!(run.err.contains("zerto-rewind is stopped"), "{}", run.err);
}

#[cfg(unix)]
#[test]
fn a_stop_needs_no_room() {
    let place = Place::new();
    let config = place.path("config.json");
    let command = place.command(Some(&config), &["stop", "--reason", "x"]);
    let stop = said(&mut support::without_room(&command, 0));
    assert_eq!(stop.code, 0, "{}", stop.err);
    assert!(
        stop.out.contains("can't be written") && !stop.out.contains("at path"),
        "{}",
        stop.out
    );
    let run = place.run(&["run", "--vm", "v", "--action", "a", "--", "true"]);
    assert_eq!(run.code, 125);
    assert!(run.err.contains("zerto-rewind is stopped"), "{}", run.err);
    assert_eq!(place.run(&["resume"]).code, 0);
    assert!(place.run(&["resume"]).out.starts_with("not stopped"));
}

#[test]
fn a_stop_that_cannot_be_written_or_lifted_is_an_error() {
    let place = Place::new();
    fs::create_dir_all(place.path("state/stop.json/x")).unwrap();
    for words in [["stop"], ["resume"]] {
        let said = place.run(&words);
        assert_eq!(said.code, 1, "{}", said.out);
        assert!(said.err.contains("stop.json"), "{}", said.err);
    }
}

/// A person who is in a hurry has no configuration at hand.
#[tokio::test]
async fn a_stop_without_a_configuration_holds_for_every_state_folder_of_the_user() {
    let world = World::new().await;
    let home = world.path("home");
    let of_user = |arguments: &[&str]| {
        let mut command = world.command(arguments);
        command
            .env("HOME", &home)
            .env("XDG_STATE_HOME", home.join("state"));
        command
    };
    let guard = async || {
        let run = world
            .finish(&mut of_user(&["guard", "jp-ubuntu", "--action", "x"]))
            .await;
        (run.code, run.stderr)
    };
    let stop = world
        .finish(of_user(&["stop", "--reason", "3 a.m."]).env_remove("ZERTO_REWIND_CONFIG"))
        .await;
    assert_eq!(stop.code, 0, "{}", stop.stderr);
    assert!(
        stop.stdout.contains("Every listed call of this user"),
        "{}",
        stop.stdout
    );
    let (code, said) = guard().await;
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("3 a.m."), "{said}");
    // With a configuration, a resume lifts both.
    let stop = world.finish(&mut of_user(&["stop"])).await;
    assert!(
        stop.stdout.contains("with this state folder"),
        "{}",
        stop.stdout
    );
    let resume = world.finish(&mut of_user(&["resume"])).await;
    assert_eq!(resume.code, 0, "{}", resume.stderr);
    let (code, said) = guard().await;
    assert_eq!(code, 0, "{said}");
}
