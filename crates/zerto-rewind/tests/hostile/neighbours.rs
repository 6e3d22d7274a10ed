//! Other users of the host: what they can plant in the way of a state, lock, destination, configuration or settings file.
use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    faces::{files, person, pinned},
    support::{Run, World, given_away},
};

const FILE: &str = "/home/justin/app-config.yaml";

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A screen's text, however its lines are broken.
fn plain(screen: &str) -> String {
    let words: Vec<_> = screen.split_whitespace().collect();
    words.join(" ")
}

/// It was refused with an error that names the path and the fix.
fn refused(run: &Run, path: &Path, fix: &str) {
    assert_ne!(run.code, 0, "{}", run.stdout);
    let said = run.stderr.replace(['\n', '\r'], " ");
    assert!(
        said.contains(path.to_str().unwrap()) && said.contains(fix),
        "{path:?}, {fix:?}: {said}"
    );
}

/// A person recovers the file; the exit code and the screen.
async fn recovers(world: &World, checkpoint: &str, to: Option<&Path>) -> (i32, String) {
    let mut arguments = vec!["recover", "jp-ubuntu", FILE, "--at", checkpoint, "--yes"];
    if let Some(to) = to {
        arguments.extend(["--to", to.to_str().unwrap()]);
    }
    person(world, &arguments).await
}

async fn guard(world: &World) -> Run {
    world.run(&["guard", "jp-ubuntu", "--action", "edit"]).await
}

/// A world whose state folder has everything in it, and a file that nobody may touch.
async fn used() -> (World, PathBuf) {
    let world = World::new().await;
    pinned(&world, "jp-ubuntu").await;
    let victim = world.path("victim");
    fs::write(&victim, "precious").unwrap();
    (world, victim)
}

fn untouched(victim: &Path) {
    assert_eq!(fs::read_to_string(victim).unwrap(), "precious");
}

/// The files in the state folder that are opened by name, and the one of the queue.
fn names(world: &World) -> Vec<String> {
    let lock = files(&world.path("state"))
        .into_iter()
        .find(|name| name.starts_with("vpg-") && name.ends_with(".lock"))
        .unwrap();
    let first_in_line = format!(
        "{}.wait-00000000000000000000-planted",
        lock.trim_end_matches(".lock")
    );
    vec![
        "state.db".into(),
        "state.db-wal".into(),
        "state.db-shm".into(),
        lock,
        first_in_line,
    ]
}

#[tokio::test]
async fn links_planted_in_the_state_folder_are_refused() {
    let (world, victim) = used().await;
    for name in names(&world) {
        let path = world.path("state").join(&name);
        let kept = fs::read(&path).ok();
        let _ = fs::remove_file(&path);
        symlink(&victim, &path).unwrap();
        let began = Instant::now();
        refused(&guard(&world).await, &path, "remove it");
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{name}: nobody waits for it"
        );
        untouched(&victim);
        fs::remove_file(&path).unwrap();
        if let Some(kept) = kept {
            fs::write(&path, kept).unwrap();
        }
        assert_eq!(guard(&world).await.code, 0, "{name}: mended");
    }
}

#[tokio::test]
async fn hard_links_and_pipes_in_the_state_folder_are_refused() {
    let (world, victim) = used().await;
    for name in names(&world) {
        let path = world.path("state").join(&name);
        let kept = fs::read(&path).ok();
        let _ = fs::remove_file(&path);
        fs::hard_link(&victim, &path).unwrap();
        refused(&guard(&world).await, &path, "hard links");
        untouched(&victim);
        fs::remove_file(&path).unwrap();
        assert!(
            Command::new("mkfifo")
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        refused(
            &guard(&world).await,
            &path,
            "is not a regular file: move it away",
        );
        fs::remove_file(&path).unwrap();
        if let Some(kept) = kept {
            fs::write(&path, kept).unwrap();
        }
    }
    assert_eq!(guard(&world).await.code, 0);
}

#[tokio::test]
async fn a_state_file_or_folder_of_another_user_is_refused() {
    let (world, _) = used().await;
    for name in names(&world) {
        let path = world.path("state").join(&name);
        if !path.exists() {
            fs::write(&path, "").unwrap();
        }
        if !given_away(&path) {
            return;
        }
        refused(&guard(&world).await, &path, "move it away");
        let kept = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        if !name.contains(".wait-") {
            fs::write(&path, kept).unwrap();
        }
    }
    assert_eq!(guard(&world).await.code, 0);
    given_away(&world.path("state"));
    refused(
        &guard(&world).await,
        &world.path("state"),
        "name another folder in `state_dir`",
    );
}

#[tokio::test]
async fn a_stop_can_not_be_redirected_or_kept_by_another_user() {
    let (world, victim) = used().await;
    let stop = world.path("state/stop.json");
    symlink(&victim, &stop).unwrap();
    let stopped = world
        .run(&["run", "--vm", "jp-ubuntu", "--action", "x", "--", "true"])
        .await;
    assert!(
        stopped.code != 0 && stopped.stderr.contains("stop"),
        "{}",
        stopped.stderr
    );
    assert_eq!(world.run(&["stop", "--reason", "x"]).await.code, 0);
    untouched(&victim);
    assert!(fs::symlink_metadata(&stop).unwrap().is_file());
    assert_eq!(world.run(&["resume"]).await.code, 0);
    if given_away(&world.path("state")) {
        refused(
            &world.run(&["stop"]).await,
            &world.path("state"),
            "belongs to user",
        );
    }
}

#[tokio::test]
async fn a_parent_that_anybody_can_change_is_refused() {
    let world = World::new().await;
    let parent = world.path("shared");
    fs::create_dir(&parent).unwrap();
    world.configure(
        json!({ "state_dir": parent.join("state"), "recover_dir": parent.join("recovered") }),
    );
    mode(&parent, 0o777);
    let fix = format!("chmod o-w {}", parent.display());
    let run = guard(&world).await;
    refused(&run, &parent, &fix);
    // The folder that is not safe, as itself and in the command; it, as where the state would be.
    let state = parent.join("state");
    let said = run.stderr.replacen(state.to_str().unwrap(), "", 1);
    assert_eq!(
        said.matches(parent.to_str().unwrap()).count(),
        2,
        "{}",
        run.stderr
    );
    world.configure(json!({ "state_dir": parent }));
    let run = guard(&world).await;
    let message = run.stderr.replace(&fix, "");
    assert_eq!(
        message.matches(parent.to_str().unwrap()).count(),
        1,
        "{}",
        run.stderr
    );
    world.configure(
        json!({ "state_dir": parent.join("state"), "recover_dir": parent.join("recovered") }),
    );
    refused(&world.run(&["stop"]).await, &parent, &fix);
    assert_eq!(files(&parent), [""; 0], "nothing is made there");
    // As /tmp.
    mode(&parent, 0o1777);
    let checkpoint = pinned(&world, "jp-ubuntu").await;
    mode(&parent, 0o777);
    world.configure(json!({ "recover_dir": parent.join("recovered") }));
    for to in [
        None,
        Some(parent.to_str().unwrap()),
        Some(parent.join("new").to_str().unwrap()),
    ] {
        let mut arguments = vec!["recover", "jp-ubuntu", FILE, "--at", &checkpoint, "--yes"];
        arguments.extend(to.map(|to| ["--to", to]).into_iter().flatten());
        let (code, screen) = person(&world, &arguments).await;
        assert_ne!(code, 0);
        assert!(
            plain(&screen).contains("[destination_unusable]")
                && plain(&screen).contains("chmod o-w"),
            "{screen}"
        );
    }
    assert!(world.sim.flr_sessions().is_empty());
}

#[tokio::test]
async fn links_planted_at_a_destination_are_refused() {
    let world = World::new().await;
    let checkpoint = pinned(&world, "jp-ubuntu").await;
    let victim = world.path("victim");
    let out = world.path("out");
    fs::create_dir_all(&out).unwrap();
    // Where the file itself would be: a link to something, and one to nothing.
    for target in [world.config(), victim.clone()] {
        let folder = world.path("to");
        fs::create_dir_all(&folder).unwrap();
        symlink(&target, folder.join("app-config.yaml")).unwrap();
        let (code, screen) = recovers(&world, &checkpoint, Some(&folder)).await;
        assert_ne!(code, 0);
        assert!(screen.contains("[destination_exists]"), "{screen}");
        fs::remove_dir_all(&folder).unwrap();
    }
    assert!(!victim.exists());
    // On the way, within the recovery folder.
    let recover_dir = world.path("recovered");
    fs::create_dir_all(&recover_dir).unwrap();
    symlink(&out, recover_dir.join("jp-ubuntu")).unwrap();
    let (code, screen) = recovers(&world, &checkpoint, None).await;
    assert_ne!(code, 0);
    assert!(
        plain(&screen).contains("leads out of the recovery folder"),
        "{screen}"
    );
    assert_eq!(files(&out), [""; 0]);
    // Of another user, on a way that a person has named.
    let link = world.path("link");
    symlink(&out, &link).unwrap();
    if given_away(&link) {
        let (code, screen) = recovers(&world, &checkpoint, Some(&link)).await;
        assert_ne!(code, 0);
        assert!(plain(&screen).contains("without the link"), "{screen}");
        assert_eq!(files(&out), [""; 0]);
        // A folder of another user within the recovery folder.
        fs::remove_file(recover_dir.join("jp-ubuntu")).unwrap();
        fs::create_dir(recover_dir.join("jp-ubuntu")).unwrap();
        given_away(&recover_dir.join("jp-ubuntu"));
        let (code, screen) = recovers(&world, &checkpoint, None).await;
        assert_ne!(code, 0);
        assert!(plain(&screen).contains("belongs to user"), "{screen}");
    }
    assert!(world.sim.flr_sessions().is_empty());
}

#[tokio::test]
async fn a_configuration_or_catalog_that_others_may_change_is_refused() {
    let world = World::new().await;
    let secret = world.path("secret");
    fs::write(&secret, world.sim.credentials().password.as_bytes()).unwrap();
    mode(&secret, 0o600);
    let catalog = world.path("catalog.toml");
    fs::write(
        &catalog,
        "version = 1\n[[guard]]\ntool = \"t\"\nvm = { fixed = \"jp-ubuntu\" }\naction = \"x\"\n",
    )
    .unwrap();
    world.configure(json!({ "password": null, "password_file": secret, "catalog": catalog }));
    // It holds no secret, so others may read it.
    mode(&world.config(), 0o644);
    assert_eq!(world.run(&["find", "jp-ubuntu"]).await.code, 0);
    for open in [0o664, 0o646, 0o777] {
        mode(&world.config(), open);
        refused(
            &world.run(&["find", "jp-ubuntu"]).await,
            &world.config(),
            "chmod go-w",
        );
    }
    mode(&world.config(), 0o600);
    assert_eq!(world.run(&["catalog", "validate"]).await.code, 0);
    mode(&catalog, 0o666);
    refused(
        &world.run(&["catalog", "validate"]).await,
        &catalog,
        "chmod o-w",
    );
    // Whatever their modes are: an owner can change them.
    mode(&catalog, 0o600);
    for file in [secret, world.config()] {
        if !given_away(&file) {
            return;
        }
        refused(
            &world.run(&["find", "jp-ubuntu"]).await,
            &file,
            "belongs to user",
        );
        if file == world.config() {
            refused(&world.run(&["stop"]).await, &file, "sudo chown $USER");
        }
        let text = fs::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        fs::write(&file, text).unwrap();
        mode(&file, 0o600);
    }
    assert_eq!(world.run(&["find", "jp-ubuntu"]).await.code, 0);
}

#[tokio::test]
async fn settings_of_a_harness_are_not_changed_through_what_another_user_planted() {
    let world = World::new().await;
    let project = world.path("project");
    fs::create_dir_all(project.join(".claude")).unwrap();
    let catalog = world.path("catalog.toml");
    fs::write(&catalog, "version = 1\n").unwrap();
    world.configure(json!({ "catalog": catalog }));
    let settings = project.join(".claude/settings.json");
    let victim = world.path("victim.json");
    fs::write(&victim, "{}").unwrap();
    let install = async |world: &World| {
        let mut command = world.command(&["install", "claude", "--project", "--yes"]);
        command.current_dir(&project);
        world.finish(&mut command).await
    };
    // A folder that anybody can change.
    mode(&project, 0o777);
    let run = install(&world).await;
    assert_ne!(run.code, 0, "{}", run.stdout);
    assert!(run.stderr.contains("chmod o-w"), "{}", run.stderr);
    mode(&project, 0o755);
    symlink(&victim, &settings).unwrap();
    if given_away(&settings) {
        let run = install(&world).await;
        assert_ne!(run.code, 0, "{}", run.stdout);
        assert!(
            run.stderr.contains("is a link that belongs to user"),
            "{}",
            run.stderr
        );
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "{}");
}
