//! What agents plan, and what a person at a terminal decides about it.
use std::fs;

use serde_json::{Value, json};
use tokio::process::Child;

use crate::{
    FILE, guarded,
    support::{self, Run, World, stdio::Server, terminal::Terminal},
};

const RECOVER: &str = "zerto_recover_file";

/// A plan that an agent without forms has asked for.
pub async fn planned(world: &World, wanted: Value) -> String {
    let mut agent = Server::initialized(&world.config(), "2025-11-25").await;
    let answer = agent.call(RECOVER, wanted).await;
    let error = &answer["structuredContent"]["error"];
    assert_eq!(error["code"], "confirmation_required", "{answer}");
    error["plan_id"].as_str().unwrap().to_owned()
}

pub async fn planned_file(world: &World, checkpoint: &str) -> String {
    let wanted = json!({ "vm": "jp-ubuntu", "path": FILE, "checkpoint": checkpoint });
    planned(world, wanted).await
}

/// Starts a command at a terminal of its own.
pub fn at_terminal(world: &World, arguments: &[&str]) -> (Terminal, Child) {
    Terminal::start(&mut world.command(arguments), true)
}

/// How it ended, and what was shown.
pub async fn end(terminal: Terminal, child: Child) -> (i32, String) {
    let run = Run::of(child.wait_with_output().await.unwrap());
    (run.code, terminal.end())
}

/// Runs it, with this typed at the question.
async fn answering(
    world: &World,
    arguments: &[&str],
    question: &str,
    typed: &str,
) -> (i32, String) {
    let (mut terminal, child) = at_terminal(world, arguments);
    terminal.shows(question).await;
    terminal.types(typed);
    end(terminal, child).await
}

async fn status(world: &World, id: &str) -> Value {
    let run = world.run(&["approvals", id, "--json"]).await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    run.json()["status"].clone()
}

fn mounts(world: &World) -> usize {
    let requests = world.sim.requests();
    requests
        .iter()
        .filter(|request| request.method == "POST" && request.path.ends_with("/v1/flrs"))
        .count()
}

#[tokio::test]
async fn approve_shows_the_plan_asks_and_only_writes_the_answer_down() {
    let (world, checkpoint, before) = guarded().await;
    let id = planned_file(&world, &checkpoint).await;
    let listed = world.run(&["approvals"]).await;
    for word in [&*id, "waiting", "jp-ubuntu", &checkpoint, FILE] {
        assert!(
            listed.stdout.contains(word),
            "{word:?} is not in {}",
            listed.stdout
        );
    }
    let (code, shown) = answering(&world, &["approve", &id], "Approve this? [y/N]", "y").await;
    assert_eq!(code, 0, "{shown}");
    for word in [
        "Recover from the Zerto journal",
        FILE,
        &id,
        "Approved",
        "recover --plan",
    ] {
        assert!(shown.contains(word), "{word:?} is not in {shown}");
    }
    assert_eq!(mounts(&world), 0);
    assert_eq!(status(&world, &id).await, "approved");

    let (code, shown) = end_of(at_terminal(&world, &["approve", &id])).await;
    assert_eq!(code, 3, "{shown}");
    assert!(
        shown.contains("[plan_decided]") && shown.contains("cli/justin"),
        "{shown}"
    );

    // Who has approved it has said all that there is to say.
    let run = world
        .run(&["recover", "--plan", &id.to_uppercase(), "--json"])
        .await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(
        fs::read(run.json()["local_path"].as_str().unwrap()).unwrap(),
        before
    );
    assert_eq!(status(&world, &id).await, "carried out");
    let again = world.run(&["recover", "--plan", &id]).await;
    assert_eq!(again.code, 3);
    assert!(again.stderr.contains("[plan_used]"), "{}", again.stderr);
    assert_eq!(mounts(&world), 1);
}

async fn end_of((terminal, child): (Terminal, Child)) -> (i32, String) {
    end(terminal, child).await
}

#[tokio::test]
async fn the_agent_carries_out_what_was_approved() {
    let (world, checkpoint, before) = guarded().await;
    let wanted = json!({ "vm": "jp-ubuntu", "path": FILE, "checkpoint": checkpoint });
    let mut agent = Server::initialized(&world.config(), "2025-11-25").await;
    let answer = agent.call(RECOVER, wanted.clone()).await;
    let id = answer["structuredContent"]["error"]["plan_id"]
        .as_str()
        .unwrap();
    let (code, shown) = answering(&world, &["approve", id], "[y/N]", "yes").await;
    assert_eq!(code, 0, "{shown}");
    let answer = agent.call(RECOVER, json!({ "plan_id": id })).await;
    assert_eq!(answer["isError"], false, "{answer}");
    let local = answer["structuredContent"]["local_path"].as_str().unwrap();
    assert_eq!(fs::read(local).unwrap(), before);
}

#[tokio::test]
async fn nobody_approves_without_a_terminal_or_a_yes_and_anybody_may_deny() {
    let (world, checkpoint, _) = guarded().await;
    let id = planned_file(&world, &checkpoint).await;
    let run = world.run(&["approve", &id]).await;
    assert_eq!(run.code, 3);
    assert!(
        run.stderr.contains("[confirmation_required]"),
        "{}",
        run.stderr
    );
    for no in ["", "n", "yess", "jp-ubuntu"] {
        let (code, shown) = answering(&world, &["approve", &id], "[y/N]", no).await;
        assert_eq!(code, 3, "{no:?}: {shown}");
        assert_eq!(status(&world, &id).await, "waiting");
    }
    let run = world.run(&["recover", "--plan", &id]).await;
    assert_eq!(run.code, 3);
    assert!(
        run.stderr.contains("[confirmation_required]"),
        "{}",
        run.stderr
    );

    let run = world.run(&["deny", &id, "--json"]).await;
    assert_eq!((run.code, &run.json()["verdict"]), (0, &json!("declined")));
    assert_eq!(status(&world, &id).await, "declined");
    for arguments in [&["approve", &id][..], &["recover", "--plan", &id]] {
        let (code, shown) = end_of(at_terminal(&world, arguments)).await;
        assert_eq!(code, 3, "{shown}");
        assert!(shown.contains("[declined]"), "{shown}");
    }
    let run = world.run(&["approve", "p-00000000"]).await;
    assert!(
        run.code == 4 && run.stderr.contains("[plan_foreign]"),
        "{}",
        run.stderr
    );
    assert_eq!(mounts(&world), 0);
}

#[tokio::test]
async fn of_two_who_approve_at_once_one_has() {
    let (world, checkpoint, _) = guarded().await;
    let id = planned_file(&world, &checkpoint).await;
    let (mut ana, anas) = at_terminal(&world, &["approve", &id]);
    let (mut bo, bos) = at_terminal(&world, &["approve", &id]);
    ana.shows("[y/N]").await;
    bo.shows("[y/N]").await;
    ana.types("y");
    bo.types("y");
    let ((ana, anas), (bo, bos)) = tokio::join!(end(ana, anas), end(bo, bos));
    let mut codes = [ana, bo];
    codes.sort_unstable();
    assert_eq!(codes, [0, 3], "{anas}\n{bos}");
    assert!(format!("{anas}{bos}").contains("[plan_decided]"));
}

#[tokio::test]
async fn a_plan_of_an_agents_can_be_decided_on_and_carried_out_in_one_go() {
    let (world, checkpoint, before) = guarded().await;
    let id = planned_file(&world, &checkpoint).await;
    let (code, shown) = answering(
        &world,
        &["recover", "--plan", &id],
        "Recover this? [y/N]",
        "y",
    )
    .await;
    assert_eq!(code, 0, "{shown}");
    let local = world
        .path("recovered/jp-ubuntu")
        .join(&checkpoint)
        .join(&FILE[1..]);
    assert_eq!(fs::read(local).unwrap(), before);

    let elsewhere =
        json!({ "vm": "jp-ubuntu", "path": FILE, "checkpoint": checkpoint, "destination": "b" });
    let id = planned(&world, elsewhere).await;
    let (code, shown) = answering(&world, &["recover", "--plan", &id], "[y/N]", "n").await;
    assert_eq!(code, 3, "{shown}");
    assert_eq!(status(&world, &id).await, "declined");
}

#[tokio::test]
async fn several_paths_and_patterns_are_asked_about_as_what_they_are() {
    let (world, checkpoint, before) = guarded().await;
    let arguments = [
        "recover",
        "jp-ubuntu",
        FILE,
        "/etc/host*",
        "--at",
        &checkpoint,
        "--json",
    ];
    let (mut terminal, child) = Terminal::start(&mut world.command(&arguments), false);
    terminal.shows("Look into it? [y/N]").await;
    assert_eq!(mounts(&world), 0);
    terminal.types("y");
    terminal.shows("Recover this? [y/N]").await;
    let shown = terminal.text();
    for word in ["/etc/hostname", "/etc/hosts", "158 bytes"] {
        assert!(shown.contains(word), "{word:?} is not in {shown}");
    }
    terminal.types("y");
    let run = Run::of(child.wait_with_output().await.unwrap());
    assert_eq!(run.code, 0, "{}", terminal.end());
    let paths = run.json()["paths"].clone();
    assert_eq!(paths.as_array().unwrap().len(), 3);
    assert_eq!(
        fs::read(paths[0]["local_path"].as_str().unwrap()).unwrap(),
        before
    );

    // The look was agreed to a moment ago.
    let to = world.path("b");
    let to = to.to_str().unwrap();
    let arguments = [
        "recover",
        "jp-ubuntu",
        "/etc/host*",
        "--at",
        &checkpoint,
        "--to",
        to,
    ];
    let (code, shown) = answering(&world, &arguments, "[y/N]", "n").await;
    assert_eq!(code, 3, "{shown}");
    assert!(!shown.contains("Look into"), "{shown}");
}

#[tokio::test]
async fn what_is_missing_is_told_and_is_no_success() {
    let (world, checkpoint, _) = guarded().await;
    let arguments = [
        "recover",
        "jp-ubuntu",
        FILE,
        "/etc/nothing",
        "--at",
        &checkpoint,
        "--yes",
    ];
    let (code, shown) = end_of(at_terminal(&world, &arguments)).await;
    assert_eq!(code, 1, "{shown}");
    for word in [
        "Recovered",
        "failed",
        "/etc/nothing",
        "[not_all_recovered]",
        "1 of 2",
    ] {
        assert!(shown.contains(word), "{word:?} is not in {shown}");
    }
    let to = world.path("b");
    let mut again = arguments.to_vec();
    again.extend(["--to", to.to_str().unwrap(), "--json"]);
    let (terminal, child) = Terminal::start(&mut world.command(&again), false);
    let run = Run::of(child.wait_with_output().await.unwrap());
    assert_eq!(run.code, 1, "{}", terminal.end());
    // One document, with all of it.
    let json = run.json();
    assert_eq!(json["error"]["code"], "not_all_recovered");
    assert_eq!(json["paths"][1]["outcome"], "failed");
    // A folder comes without its link, and that is told, too.
    let arguments = ["recover", "jp-ubuntu", "/home/justin", "--at", &checkpoint];
    let mut yes = arguments.to_vec();
    yes.extend(["--yes", "--to", to.to_str().unwrap()]);
    let (code, shown) = end_of(at_terminal(&world, &yes)).await;
    assert_eq!(code, 1, "{shown}");
    for word in [
        "Recovered in part",
        "1 left out",
        "left out: current-config",
        "[not_all_recovered]",
    ] {
        assert!(shown.contains(word), "{word:?} is not in {shown}");
    }
}

#[tokio::test]
async fn ctrl_c_decides_nothing() {
    let (world, checkpoint, _) = guarded().await;
    let id = planned_file(&world, &checkpoint).await;
    for arguments in [&["approve", &id][..], &["recover", "--plan", &id]] {
        let (terminal, child) = at_terminal(&world, arguments);
        terminal.shows("[y/N]").await;
        support::interrupt(&child);
        let (code, shown) = end(terminal, child).await;
        assert_eq!(code, 130, "{shown}");
        assert_eq!(status(&world, &id).await, "waiting");
    }
}

/// The state as a process leaves it that dies while it carries a plan out.
fn dies_in_the_middle(world: &World, plan: &str) {
    let owner = "owner-00000000000000000099-dead";
    let database = rusqlite::Connection::open(world.path("state/state.db")).unwrap();
    let begun = database.execute(
        "INSERT INTO plan_begun (plan, at, owner) SELECT id, at, ?2 FROM plan WHERE name = ?1",
        [plan, owner],
    );
    assert_eq!(begun.unwrap(), 1);
    // Nobody holds it.
    fs::write(world.path("state").join(owner), "").unwrap();
}

#[tokio::test]
async fn whichever_command_closes_what_was_interrupted_tells_it_once() {
    let (world, checkpoint, _) = guarded().await;
    let told = async |arguments: &[&str]| {
        let run = world.run(arguments).await;
        let said = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        said.matches("a recovery was interrupted").count()
    };
    for command in [
        &["approvals"][..],
        &["approvals", "ID"],
        &["approve", "ID"],
        &["deny", "ID"],
        &["recover", "--plan", "ID"],
        &["find", "app01"],
    ] {
        let id = planned_file(&world, &checkpoint).await;
        dies_in_the_middle(&world, &id);
        // These only read, or only write down what they are told: they close nothing.
        for other in [&["audit", "list"][..], &["audit", "verify"]] {
            assert_eq!(told(other).await, 0, "{other:?}");
        }
        let command: Vec<&str> = command
            .iter()
            .map(|&word| if word == "ID" { &*id } else { word })
            .collect();
        assert_eq!(told(&command).await, 1, "{command:?}");
        for after in [&*command, &["approvals"], &["find", "app01"]] {
            assert_eq!(told(after).await, 0, "{after:?} after {command:?}");
        }
    }
}
