//! What a person at a terminal is asked.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

#[path = "terminal/decisions.rs"]
mod decisions;
#[path = "terminal/guest.rs"]
mod guest;
#[path = "terminal/passphrase.rs"]
mod passphrase;
#[path = "terminal/readable.rs"]
mod readable;
#[path = "../../rewind-core/tests/sshd/mod.rs"]
mod sshd;
mod support;

use std::fs;

use serde_json::json;
use support::{Run, World, terminal::Terminal};

const FILE: &str = "/home/justin/app-config.yaml";

/// A world with a guard: the checkpoint, and what the file was.
async fn guarded() -> (World, String, Vec<u8>) {
    let world = World::new().await;
    let receipt = world
        .run(&["guard", "jp-ubuntu", "--action", "edit", "--json"])
        .await
        .json();
    let file = world.sim.guest_path("jp-ubuntu", FILE).unwrap();
    let before = fs::read(&file).unwrap();
    fs::write(file, "broken").unwrap();
    let checkpoint = receipt["pins"][0]["checkpoint"]
        .as_str()
        .unwrap()
        .to_owned();
    (world, checkpoint, before)
}

#[tokio::test]
async fn recover_shows_its_plan_and_goes_on_after_a_yes() {
    let (world, checkpoint, before) = guarded().await;
    let folder = world.path("back");
    let arguments = [
        "recover",
        "jp-ubuntu",
        FILE,
        "--at",
        &checkpoint,
        "--to",
        folder.to_str().unwrap(),
        "--json",
    ];
    let (mut terminal, child) = Terminal::start(&mut world.command(&arguments), false);
    terminal.shows("Recover this? [y/N]").await;
    let plan = terminal.text();
    for word in [
        "jp-ubuntu",
        &*checkpoint,
        FILE,
        "ai:cli/justin | edit",
        folder.to_str().unwrap(),
    ] {
        assert!(plan.contains(word), "{word:?} is not in {plan}");
    }
    assert!(world.sim.flr_sessions().is_empty());
    terminal.types("Y");
    let run = Run::of(child.wait_with_output().await.unwrap());
    assert_eq!(run.code, 0, "{}{}", run.stdout, terminal.end());
    assert_eq!(
        fs::read(run.json()["local_path"].as_str().unwrap()).unwrap(),
        before
    );
    assert_eq!(fs::read(folder.join("app-config.yaml")).unwrap(), before);
    assert!(world.sim.flr_sessions().is_empty());
}

#[tokio::test]
async fn recover_does_nothing_after_anything_but_a_yes() {
    let (world, checkpoint, _) = guarded().await;
    for answer in ["no", "", "yess"] {
        let arguments = ["recover", "jp-ubuntu", FILE, "--at", &checkpoint];
        let (mut terminal, child) = Terminal::start(&mut world.command(&arguments), false);
        terminal.shows("[y/N]").await;
        terminal.types(answer);
        let run = Run::of(child.wait_with_output().await.unwrap());
        assert_eq!((run.code, &*run.stdout), (3, ""), "{answer:?}");
        assert!(terminal.end().contains("[declined]"));
    }
    assert!(
        !world
            .sim
            .requests()
            .iter()
            .any(|request| request.is("POST", "/flrs"))
    );
}

#[tokio::test]
async fn recover_with_yes_shows_its_plan_and_does_not_ask() {
    let (world, checkpoint, before) = guarded().await;
    let arguments = ["recover", "jp-ubuntu", FILE, "--at", &checkpoint, "--yes"];
    let (terminal, child) = Terminal::start(&mut world.command(&arguments), true);
    let run = Run::of(child.wait_with_output().await.unwrap());
    let shown = terminal.end();
    assert_eq!(run.code, 0, "{shown}");
    assert!(
        shown.contains("Recover from the Zerto journal") && !shown.contains("[y/N]"),
        "{shown}"
    );
    let local = world
        .path("recovered")
        .join("jp-ubuntu")
        .join(&checkpoint)
        .join("home/justin/app-config.yaml");
    assert_eq!(fs::read(local).unwrap(), before);
}

#[tokio::test]
async fn ctrl_c_at_the_question_ends_it() {
    let (world, checkpoint, _) = guarded().await;
    let arguments = ["recover", "jp-ubuntu", FILE, "--at", &checkpoint];
    let (terminal, child) = Terminal::start(&mut world.command(&arguments), false);
    terminal.shows("[y/N]").await;
    support::interrupt(&child);
    let run = Run::of(child.wait_with_output().await.unwrap());
    assert_eq!(run.code, 130, "{}", terminal.end());
}

#[tokio::test]
async fn a_blocked_login_is_tried_once_more_if_the_person_wants_it() {
    let world = World::new().await;
    world.configure(json!({ "password": "wrong" }));
    let logins = || {
        world
            .sim
            .requests()
            .iter()
            .filter(|request| request.is("POST", "/token"))
            .count()
    };
    // One that comes too soon after another is not sent.
    while logins() < 3 {
        assert_eq!(world.run(&["find", "jp-ubuntu"]).await.code, 5);
    }
    // Nobody to ask: nothing is sent.
    assert_eq!(world.run(&["find", "jp-ubuntu"]).await.code, 5);
    assert_eq!(logins(), 3);

    for (answer, expected) in [("no", 3), ("yes", 4), ("no", 4)] {
        let (mut terminal, child) =
            Terminal::start(&mut world.command(&["find", "jp-ubuntu"]), true);
        terminal.shows("Log in once more? [y/N]").await;
        let before = logins();
        terminal.types(answer);
        let run = Run::of(child.wait_with_output().await.unwrap());
        assert_eq!(run.code, 5);
        let shown = terminal.end();
        assert!(shown.contains(&format!("{before} times")), "{shown}");
        assert_eq!(logins(), expected, "{shown}");
    }
    let (terminal, child) = Terminal::start(&mut world.command(&["find", "jp-ubuntu"]), true);
    terminal.shows("Log in once more? [y/N]").await;
    support::interrupt(&child);
    let run = Run::of(child.wait_with_output().await.unwrap());
    assert_eq!((run.code, logins()), (130, 4), "{}", terminal.end());
}

#[tokio::test]
async fn tables_and_colours_are_for_terminals() {
    let world = World::new().await;
    let (terminal, child) = Terminal::start(&mut world.command(&["find", "jp-ubuntu"]), true);
    assert_eq!(Run::of(child.wait_with_output().await.unwrap()).code, 0);
    let shown = terminal.end();
    assert!(
        shown.contains('─') && shown.contains("\u{1b}[1mjp-ubuntu"),
        "{shown:?}"
    );
    let mut quiet = world.command(&["find", "jp-ubuntu"]);
    let (terminal, child) = Terminal::start(quiet.env("NO_COLOR", "1"), true);
    assert_eq!(Run::of(child.wait_with_output().await.unwrap()).code, 0);
    assert!(!terminal.end().contains("\u{1b}[1m"), "NO_COLOR");
}

/// What a screen has no room for in columns stands below one another, and can be read and copied whole.
#[tokio::test]
async fn long_names_have_lines_of_their_own_on_a_screen() {
    const LONG: &str = "SQL-Production-Cluster-Tier1-London-to-Frankfurt-Gold";
    for name in [LONG, "本番データベースクラスタ東京"] {
        let mut scenario = zvm_sim::Scenario::fast();
        for vpg in &mut scenario.vpgs {
            if vpg.name == "jp-ubuntu" {
                vpg.name = name.into();
            }
        }
        let world = World::with(scenario).await;
        for arguments in [
            &[
                "guard",
                "jp-ubuntu",
                "--action",
                "edit the configuration of the server",
            ][..],
            &["find", "jp-ubuntu"],
            &["checkpoints", "jp-ubuntu"],
        ] {
            let mut command = world.command(arguments);
            let (terminal, child) = Terminal::start(command.env("NO_COLOR", "1"), true);
            assert_eq!(Run::of(child.wait_with_output().await.unwrap()).code, 0);
            let screen = terminal.end();
            let report = screen.split("\u{1b}[2K").last().unwrap();
            assert!(report.contains(name), "{arguments:?}: {report}");
            for line in report.lines() {
                let width = unicode_width::UnicodeWidthStr::width(line.trim_end());
                assert!(width <= 80, "{arguments:?}: {line:?}");
            }
            if arguments[0] == "checkpoints" {
                let tag = report.split_once("Tag ").unwrap().1;
                let words: Vec<_> = tag.split_whitespace().collect();
                assert!(
                    words
                        .join(" ")
                        .contains("| edit the configuration of the server |"),
                    "{report}"
                );
            }
        }
    }
}

#[tokio::test]
async fn what_can_not_be_recovered_is_refused_before_anybody_is_asked() {
    let (world, checkpoint, _) = guarded().await;
    let file = world.path("file");
    fs::write(&file, "mine").unwrap();
    let below = file.join("below");
    let taken = world.path("taken");
    fs::create_dir(&taken).unwrap();
    fs::write(taken.join("app-config.yaml"), "mine").unwrap();
    for (path, to, code, named) in [
        (
            FILE,
            Some(file.as_path()),
            "destination_unusable",
            "not a folder",
        ),
        (FILE, Some(&below), "destination_unusable", "not a folder"),
        (FILE, Some(&taken), "destination_exists", "app-config.yaml"),
        (
            FILE,
            Some("~/back".as_ref()),
            "invalid_argument",
            "only a shell expands",
        ),
        (FILE, Some("~".as_ref()), "invalid_argument", "./~"),
        (
            "home/justin/app-config.yaml",
            None,
            "invalid_argument",
            FILE,
        ),
        ("~/app-config.yaml", None, "invalid_argument", "home folder"),
    ] {
        let mut arguments = vec!["recover", "jp-ubuntu", path, "--at", &checkpoint];
        if let Some(to) = to {
            arguments.extend(["--to", to.to_str().unwrap()]);
        }
        let (terminal, child) = Terminal::start(&mut world.command(&arguments), true);
        let run = Run::of(child.wait_with_output().await.unwrap());
        let shown = terminal.end();
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_ne!(run.code, 0);
        assert!(
            shown.contains(&format!("[{code}]")) && shown.contains(named),
            "{path} to {to:?}: {shown}"
        );
        assert!(!shown.contains("[y/N]"), "{shown}");
    }
    assert!(world.sim.flr_sessions().is_empty());
}

#[tokio::test]
async fn the_question_shows_the_whole_path_and_fits_80_columns() {
    let (world, checkpoint, _) = guarded().await;
    let inner = world.path("a/b");
    fs::create_dir_all(&inner).unwrap();
    let arguments = [
        "recover",
        "jp-ubuntu",
        FILE,
        "--at",
        &checkpoint,
        "--to",
        "../..",
    ];
    let mut command = world.command(&arguments);
    let (mut terminal, child) = Terminal::start(command.current_dir(&inner), true);
    terminal.shows("[y/N]").await;
    terminal.types("n");
    assert_eq!(Run::of(child.wait_with_output().await.unwrap()).code, 3);
    let shown = terminal.end();
    let to = fs::canonicalize(world.folder.path())
        .unwrap()
        .join("app-config.yaml");
    assert!(
        shown.contains(to.to_str().unwrap()) && !shown.contains(".."),
        "{shown}"
    );
    let plan = shown
        .split("Recover from the Zerto journal")
        .nth(1)
        .unwrap();
    let plan = plan.split("Recover this?").next().unwrap();
    for line in plan
        .lines()
        .filter(|line| !line.contains(to.to_str().unwrap()))
    {
        assert!(line.trim_end().chars().count() < 80, "{line:?} in {shown}");
    }
}

#[tokio::test]
async fn the_bar_moves_with_the_bytes() {
    let world = World::new().await;
    let file = world.sim.guest_path("jp-ubuntu", FILE).unwrap();
    let large = file.with_file_name("large.bin");
    let noise: Vec<u8> = (0..48_u32 << 20)
        .map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    fs::write(&large, &noise).unwrap();
    let receipt = world
        .run(&["guard", "jp-ubuntu", "--action", "edit", "--json"])
        .await
        .json();
    let checkpoint = receipt["pins"][0]["checkpoint"].as_str().unwrap();
    let arguments = [
        "recover",
        "jp-ubuntu",
        "/home/justin/large.bin",
        "--at",
        checkpoint,
        "--yes",
    ];
    let (terminal, child) = Terminal::start(&mut world.command(&arguments), true);
    let run = Run::of(child.wait_with_output().await.unwrap());
    let shown = terminal.end();
    assert_eq!(run.code, 0, "{shown}");
    let mut places: Vec<_> = shown
        .split("/48.00 MiB")
        .filter_map(|before| before.rsplit(['\u{2591}', '\u{2588}', ' ']).nth(1))
        .collect();
    places.dedup();
    assert!(places.len() >= 3, "{places:?}");
    assert!(!shown.contains("of 50331648 bytes"), "said once: {shown}");
}

#[tokio::test]
async fn what_stays_mounted_is_told_by_every_command_until_it_is_gone() {
    let (world, checkpoint, _) = guarded().await;
    let unmount = |how| world.sim.update(|switches| switches.unmount = how);
    unmount(zvm_sim::switches::Unmount::Refused);
    let arguments = ["recover", "jp-ubuntu", FILE, "--at", &checkpoint, "--yes"];
    let (terminal, child) = Terminal::start(&mut world.command(&arguments), true);
    let run = Run::of(child.wait_with_output().await.unwrap());
    let said = terminal.end();
    assert_eq!(run.code, 0, "{said}");
    assert!(!said.contains("of an earlier recovery"), "{said}");

    let find = world.run(&["find", "jp-ubuntu"]).await;
    assert_eq!(find.code, 0);
    assert!(
        find.stderr
            .contains("of an earlier recovery is still mounted"),
        "{}",
        find.stderr
    );
    unmount(zvm_sim::switches::Unmount::Succeeds);
    let find = world.run(&["find", "jp-ubuntu"]).await;
    assert_eq!((find.code, find.stderr.as_str()), (0, ""));
}

/// A VPG's name may hold what no terminal shows.
#[tokio::test]
async fn a_file_comes_back_whatever_the_name_of_its_vpg_is() {
    let mut scenario = zvm_sim::Scenario::fast();
    for vpg in &mut scenario.vpgs {
        if vpg.name == "jp-ubuntu" {
            vpg.name = "Prod  DB\u{200b}".into();
        }
    }
    let world = World::with(scenario).await;
    let receipt = world
        .run(&["guard", "jp-ubuntu", "--action", "edit", "--json"])
        .await
        .json();
    let pin = &receipt["pins"][0];
    let checkpoint = pin["checkpoint"].as_str().unwrap();
    for (to, vpg) in [
        ("a", None),
        ("b", pin["vpg"].as_str()),
        ("c", pin["vpg_identifier"].as_str()),
    ] {
        let folder = world.path(to);
        let mut arguments = vec![
            "recover",
            "jp-ubuntu",
            FILE,
            "--at",
            checkpoint,
            "--yes",
            "--to",
            folder.to_str().unwrap(),
        ];
        arguments.extend(vpg.map(|vpg| ["--vpg", vpg]).into_iter().flatten());
        let (terminal, child) = Terminal::start(&mut world.command(&arguments), true);
        let run = Run::of(child.wait_with_output().await.unwrap());
        assert_eq!(run.code, 0, "{vpg:?}: {}", terminal.end());
    }
}

#[tokio::test]
async fn what_is_waited_for_is_shown_while_the_zvm_says_nothing() {
    let world = World::new().await;
    world.sim.add_fault(zvm_sim::Fault::hold("GET", "/v1/vms"));
    let (terminal, child) = Terminal::start(&mut world.command(&["find", "jp-ubuntu"]), false);
    world.sim.wait_for(|view| view.held().count() > 0).await;
    terminal.shows("looking for jp-ubuntu").await;
    world.sim.let_go();
    let run = Run::of(child.wait_with_output().await.unwrap());
    assert_eq!(run.code, 0, "{}", terminal.end());
}
