//! Files back in the guest, and what differs there.
use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::{Value, json};

use super::{
    FILE, guarded,
    sshd::Sshd,
    support::{Run, World, terminal::Terminal},
};

/// The same world, with a way into the guest.
pub async fn with_guest() -> Option<(World, Sshd, String, Vec<u8>)> {
    let (world, checkpoint, before) = guarded().await;
    let sshd = Sshd::start(&[("/", &world.sim.guest_path("jp-ubuntu", "/").unwrap())])?;
    world.configure(json!({ "guests": { "jp-ubuntu": sshd.guest() } }));
    Some((world, sshd, checkpoint, before))
}

async fn agreed(world: &World, arguments: &[&str], question: &str) -> (Run, String) {
    let (mut terminal, child) = Terminal::start(&mut world.command(arguments), false);
    terminal.shows(question).await;
    terminal.types("y");
    let run = Run::of(child.wait_with_output().await.unwrap());
    (run, terminal.end())
}

#[tokio::test]
async fn a_file_is_replaced_and_put_back() {
    let Some((world, _sshd, checkpoint, before)) = with_guest().await else {
        return;
    };
    let file = world.sim.guest_path("jp-ubuntu", FILE).unwrap();
    let restore = [
        "recover",
        "jp-ubuntu",
        FILE,
        "--at",
        &checkpoint,
        "--restore",
        "replace",
        "--json",
    ];
    let (run, screen) = agreed(&world, &restore, "Recover this? [y/N]").await;
    assert_eq!(run.code, 0, "{}{screen}", run.stdout);
    for word in [
        "in the guest",
        "zerto-replaced-",
        "The VM is guarded first.",
    ] {
        assert!(screen.contains(word), "{word:?} is not in {screen}");
    }
    let result = run.json();
    assert_eq!(result["outcome"], "restored");
    assert_eq!(fs::read(&file).unwrap(), before);
    let id = result["restored"]["restore_id"].as_str().unwrap();

    // Nothing is mounted for that, with a terminal or without.
    let run = world.run(&["undo-restore", id]).await;
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert!(
        run.stderr.contains("nothing was undone") && !run.stderr.contains("mounted"),
        "{}",
        run.stderr
    );
    let (run, screen) = agreed(&world, &["undo-restore", id], "Undo this restore? [y/N]").await;
    assert_eq!(run.code, 0, "{}{screen}", run.stdout);
    assert!(
        run.stdout.contains("Undone") && run.stdout.contains("zerto-undone-"),
        "{}",
        run.stdout
    );
    assert_eq!(fs::read(&file).unwrap(), b"broken");
    // Nobody is asked about what can't be undone, with a terminal or without.
    for (id, code, said) in [
        (id, 2, "was already undone at 20"),
        ("r-0", 4, "no restore r-0"),
    ] {
        let run = world.run(&["undo-restore", id]).await;
        assert_eq!(run.code, code, "{}", run.stderr);
        assert!(run.stderr.contains(said), "{said:?}: {}", run.stderr);
    }
}

#[tokio::test]
async fn a_restore_that_was_killed_leaves_the_old_file_and_is_told_and_cleaned_up() {
    let Some((world, sshd, checkpoint, _)) = with_guest().await else {
        return;
    };
    let on_host = |path: &str| world.sim.guest_path("jp-ubuntu", path).unwrap();
    let names = || {
        let entries = fs::read_dir(on_host("/home/justin")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut ours: Vec<String> = names.filter(|name| name.contains("zerto-")).collect();
        ours.sort();
        ours
    };
    let restore = [
        "recover",
        "jp-ubuntu",
        FILE,
        "--at",
        &checkpoint,
        "--restore",
        "replace",
    ];
    // A first run says which request puts it in its place.
    let (run, screen) = agreed(&world, &restore, "Recover this? [y/N]").await;
    assert_eq!(run.code, 0, "{screen}");
    let asked = sshd.asked();
    let begins = asked.iter().rposition(|line| line.starts_with("1 "));
    let requests = &asked[begins.unwrap()..];
    let first = |what: &str| {
        let found = requests.iter().position(|line| line.contains(what));
        1 + found.unwrap()
    };
    let (rename, looks) = (first("posix-rename"), first("zerto-replaced-"));
    for name in names() {
        fs::remove_file(on_host("/home/justin").join(name)).unwrap();
    }
    fs::write(on_host(FILE), "broken").unwrap();

    let killed = async |request: usize| {
        let (mut terminal, mut child) = Terminal::start(&mut world.command(&restore), false);
        terminal.shows("Recover this? [y/N]").await;
        // What was asked for the plan.
        sshd.asked();
        sshd.control(&format!("hold {request}\n"));
        terminal.types("y");
        sshd.asks(request).await;
        child.kill().await.unwrap();
        drop(terminal);
        sshd.control("");
        assert_eq!(fs::read(on_host(FILE)).unwrap(), b"broken");
    };
    killed(rename).await;
    assert_eq!(names().len(), 2, "{:?}", names());

    // Whatever comes next tells it, and says by which command it is cleaned up.
    let run = world.run(&["find", "app01"]).await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    let said = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("a restore was interrupted"), "{said}");
    assert_eq!(said.matches("interrupted").count(), 1, "{said}");
    let id = said.split("undo-restore ").nth(1).unwrap();
    let id: String = id
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || *c == '-')
        .collect();
    let (_, child) = Terminal::start(&mut world.command(&["undo-restore", &id]), false);
    let run = Run::of(child.wait_with_output().await.unwrap());
    assert_eq!(run.code, 2, "there is nothing to undo");
    assert_eq!(names(), [""; 0]);

    // One that reaches the guest itself says what it has found there, and nothing else about it; and the next one nothing.
    killed(rename).await;
    for told in [1, 0] {
        let (mut terminal, child) = Terminal::start(&mut world.command(&restore), false);
        terminal.shows("Recover this? [y/N]").await;
        terminal.types("n");
        child.wait_with_output().await.unwrap();
        let screen = terminal.end();
        assert_eq!(screen.matches("interrupted").count(), told, "{screen}");
        assert_eq!(names(), [""; 0]);
    }
    // Killed while it looks what is there: nothing was written yet.
    killed(looks).await;
    assert_eq!(names(), [""; 0]);
    for (command, told) in [(&["approvals"][..], 1), (&["find", "app01"], 0)] {
        let run = world.run(command).await;
        assert_eq!(
            run.stderr.matches("interrupted").count(),
            told,
            "{}",
            run.stderr
        );
        let said = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            said.contains("before anything was written in the guest"),
            told == 1,
            "{said}"
        );
    }
    assert_eq!(fs::read(on_host(FILE)).unwrap(), b"broken");
    assert!(world.sim.flr_sessions().is_empty());
}

#[tokio::test]
async fn no_secret_of_ours_is_handed_to_ssh() {
    let (world, checkpoint, _) = guarded().await;
    let mut config: Value = serde_json::from_slice(&fs::read(world.config()).unwrap()).unwrap();
    let settings = config.as_object_mut().unwrap();
    let secret = settings.remove("password").unwrap();
    settings.insert("previews".into(), json!("free"));
    settings.insert(
        "guests".into(),
        json!({ "jp-ubuntu": { "ssh": "nowhere.invalid" } }),
    );
    world.write_config(&config.to_string());
    let (bin, said) = (world.path("bin"), world.path("said"));
    fs::create_dir(&bin).unwrap();
    fs::write(
        bin.join("ssh"),
        format!("#!/bin/sh\nenv >'{}'\n", said.display()),
    )
    .unwrap();
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(bin.join("ssh"), executable).unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut command = world.command(&["diff", "jp-ubuntu", FILE, "--at", &checkpoint]);
    command
        .env("ZERTO_REWIND_PASSWORD", secret.as_str().unwrap())
        .env("PATH", format!("{}:{path}", bin.display()));
    let run = world.finish(&mut command).await;
    assert_eq!(run.code, 1, "{}", run.stderr);
    let said = fs::read_to_string(said).unwrap();
    assert!(said.contains("ZERTO_REWIND_CONFIG="), "{said}");
    assert!(!said.contains(secret.as_str().unwrap()), "{said}");
}

#[tokio::test]
async fn a_plan_is_shown_with_what_has_changed_since_the_checkpoint() {
    let Some((world, _sshd, checkpoint, _)) = with_guest().await else {
        return;
    };
    let id = super::decisions::planned_file(&world, &checkpoint).await;
    let shown = ["approvals", &id, "--diff"];
    let run = world.run(&shown).await;
    assert_eq!(run.code, 3, "a look is agreed to: {}", run.stderr);
    let (run, screen) = agreed(&world, &shown, "Look into it? [y/N]").await;
    assert_eq!(run.code, 0, "{}{screen}", run.stdout);
    for word in [
        &*id,
        "-  port: 8080",
        "+broken",
        "over SSH",
        "nobody has decided",
    ] {
        assert!(
            run.stdout.contains(word),
            "{word:?} is not in {}",
            run.stdout
        );
    }
    let run = world.run(&["approvals", &id, "--diff", "--json"]).await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    let row = run.json();
    assert_eq!(row["diff"][0]["change"], "changed");
    assert_eq!(row["status"], "waiting", "looking decides nothing");
    assert_eq!(world.run(&["approvals", "--diff"]).await.code, 2);
    // Of a file that is nowhere, that is what is said.
    let wanted = json!({ "vm": "jp-ubuntu", "path": "/no/where", "checkpoint": checkpoint });
    let id = super::decisions::planned(&world, wanted).await;
    let run = world.run(&["approvals", &id, "--diff"]).await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("/no/where"), "{}", run.stdout);
}

#[tokio::test]
async fn a_diff_is_shown_once_somebody_has_agreed_to_look() {
    let Some((world, _sshd, checkpoint, _)) = with_guest().await else {
        return;
    };
    let diff = ["diff", "jp-ubuntu", FILE, "--at", &checkpoint];
    let run = world.run(&diff).await;
    assert_eq!(run.code, 3, "without a terminal: {}", run.stderr);
    let (run, screen) = agreed(&world, &diff, "Look into it? [y/N]").await;
    assert_eq!(run.code, 0, "{}{screen}", run.stdout);
    assert!(
        run.stdout.contains("-  port: 8080") && run.stdout.contains("+broken"),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("over SSH"), "{}", run.stdout);
    // For ten minutes nobody is asked again.
    let run = world
        .run(&[
            "diff",
            "jp-ubuntu",
            "/etc/hosts",
            "--at",
            &checkpoint,
            "--json",
        ])
        .await;
    assert_eq!(
        (run.code, &run.json()["change"]),
        (0, &json!("unchanged")),
        "{}",
        run.stderr
    );
}
