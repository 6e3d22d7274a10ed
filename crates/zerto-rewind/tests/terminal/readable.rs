//! What a person reads: what was recovered, what waits for a decision, and what to do next.
use rewind_core::state::{Placed, RecoveryRecord, State};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;

use super::{
    FILE,
    decisions::{at_terminal, end, planned, planned_file},
    guarded,
    guest::with_guest,
    support::{self, World, stdio::Server},
};

/// What a command with the person's word beforehand shows at a terminal.
async fn screen(world: &World, arguments: &[&str]) -> (i32, String) {
    let mut command = world.command(arguments);
    let (terminal, child) = support::terminal::Terminal::start(command.env("NO_COLOR", "1"), true);
    let (code, shown) = end(terminal, child).await;
    // What was shown last, after the progress.
    let last = shown.split("\u{1b}[2K").last().unwrap_or_default();
    (code, last.replace('\r', ""))
}

/// But for what `sha256sum` would print, which is copied.
fn fits(shown: &str) {
    let digest = |line: &str| line.split("  ").next().is_some_and(|word| word.len() == 64);
    for line in shown.lines().filter(|line| !digest(line)) {
        assert!(line.trim_end().width() <= 80, "{line:?} in:\n{shown}");
    }
}

/// Words, however they are broken into lines.
fn flowing(shown: &str) -> String {
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn recovered_to_this_host(world: &World, listed: &Value, checkpoint: &Value, times: u64) {
    let state = State::new(world.path("state"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    for number in 0..times {
        let record = RecoveryRecord {
            plan: format!("p-{number:08}"),
            zvm: world
                .sim
                .url()
                .trim_start_matches("https://")
                .trim_end_matches('/')
                .to_owned(),
            vm_identifier: text(&listed["vm_identifier"]),
            vm_name: "jp-ubuntu".into(),
            vpg_identifier: text(&checkpoint["vpg_identifier"]),
            vpg_name: "jp-ubuntu".into(),
            checkpoint_id: text(&checkpoint["checkpoint"]),
            checkpoint_at: "2026-01-01T00:00:00Z".parse().unwrap(),
            tag: None,
            client: None,
            change: "chg-1".into(),
            path: FILE.into(),
        };
        let recovery = state.recoveries_beginning(&[record]).unwrap()[0];
        let placing = state
            .placing(recovery, FILE, "/back/app-config.yaml")
            .unwrap();
        let placed = Placed {
            files: 1,
            bytes: 158,
            sha256: "ab".repeat(32),
        };
        state.placed(placing, Ok(&placed)).unwrap();
        state.recovery_ended(recovery, None).unwrap();
    }
}

#[tokio::test]
async fn many_recoveries_from_a_checkpoint_are_told_in_a_few_words_and_listed_for_scripts() {
    let Some((world, _sshd, checkpoint, before)) = with_guest().await else {
        return;
    };
    let listed = world
        .run(&["checkpoints", "jp-ubuntu", "--json"])
        .await
        .json();
    recovered_to_this_host(&world, &listed, &listed["checkpoints"][0], 19);
    let file = world.sim.guest_path("jp-ubuntu", FILE).unwrap();
    let replace = [
        "recover",
        "jp-ubuntu",
        FILE,
        "--at",
        &checkpoint,
        "--restore",
        "replace",
        "--yes",
    ];
    let (code, shown) = screen(&world, &replace).await;
    assert_eq!(code, 0, "{shown}");
    fits(&shown);
    assert_eq!(std::fs::read(&file).unwrap(), before);
    let id = shown.split("undo-restore ").nth(1).unwrap();
    let id: String = id
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '-')
        .collect();
    let (code, shown) = screen(&world, &["undo-restore", &id, "--yes"]).await;
    assert_eq!(code, 0, "{shown}");
    fits(&shown);
    assert_eq!(std::fs::read(&file).unwrap(), b"broken");

    let (code, shown) = screen(&world, &["checkpoints", "jp-ubuntu"]).await;
    assert_eq!(code, 0, "{shown}");
    fits(&shown);
    let said = flowing(&shown);
    assert!(said.contains("recovered 20x, last 20"), "{shown}");
    assert!(
        said.contains("(1 replaced in the guest, 19 to this host), 1 undone"),
        "{shown}"
    );
    assert!(shown.lines().count() < 40, "{shown}");

    let of = |list: &Value| -> Value {
        let checkpoints = list["checkpoints"].as_array().unwrap();
        let ours = checkpoints
            .iter()
            .find(|listed| listed["checkpoint"] == *checkpoint);
        ours.unwrap().clone()
    };
    let all = of(&world
        .run(&["checkpoints", "jp-ubuntu", "--json"])
        .await
        .json());
    let recoveries = all["recoveries"].as_array().unwrap();
    assert_eq!((recoveries.len(), &all["recovery_count"]), (21, &json!(21)));
    let last = |key: &str| -> Vec<&Value> {
        recoveries[18..]
            .iter()
            .map(|recovery| &recovery[key])
            .collect()
    };
    assert_eq!(last("kind"), ["host", "replace", "undo"]);
    assert_eq!(last("outcome"), ["recovered", "restored", "restored"]);
    assert_eq!(last("path"), [FILE; 3]);
    assert!(recoveries[20]["at"].as_str().unwrap().ends_with('Z'));

    let mut agent = Server::initialized(&world.config(), "2025-11-25").await;
    let answer = agent
        .call("zerto_list_checkpoints", json!({ "vm": "jp-ubuntu" }))
        .await;
    let told = of(&answer["structuredContent"]);
    let newest = told["recoveries"].as_array().unwrap();
    assert_eq!((newest.len(), &told["recovery_count"]), (10, &json!(21)));
    assert_eq!(
        (&newest[8]["kind"], &newest[9]["kind"]),
        (&json!("replace"), &json!("undo"))
    );
}

#[tokio::test]
async fn what_waits_is_listed_with_what_it_is_and_who_asks() {
    let Some((world, _sshd, checkpoint, _)) = with_guest().await else {
        return;
    };
    let wanted = |more: Value| -> Value {
        let mut wanted = json!({ "vm": "jp-ubuntu", "checkpoint": checkpoint });
        wanted
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        wanted
    };
    let mut ids = Vec::new();
    for more in [
        json!({ "paths": ["/etc/host*"] }),
        json!({ "path": FILE }),
        json!({ "path": FILE, "restore": "beside" }),
        json!({ "path": FILE, "restore": "replace" }),
    ] {
        ids.push(planned(&world, wanted(more)).await);
    }
    let run = world
        .run(&["diff", "jp-ubuntu", FILE, "--at", &checkpoint])
        .await;
    assert_eq!(run.code, 3, "nobody has agreed to look: {}", run.stderr);

    let listed = world.run(&["approvals", "--json"]).await.json();
    let of = |key: &str| -> Vec<Value> {
        let rows = listed.as_array().unwrap().iter().rev();
        rows.map(|row| row[key].clone()).collect()
    };
    assert_eq!(
        of("kind"),
        ["preview", "host", "beside", "replace", "comparison"]
    );
    assert_eq!(of("plan_id")[..4], ids);
    let (agent, person) = ("wire-client", "cli/justin");
    assert_eq!(of("asked_by"), [agent, agent, agent, agent, person]);
    let plain = world.run(&["approvals"]).await.stdout;
    let (code, drawn) = screen(&world, &["approvals"]).await;
    assert_eq!(code, 0);
    fits(&drawn);
    let drawn = flowing(&drawn);
    for word in [
        "look for",
        "recover to this host",
        "put beside in the guest",
        "replace in the guest",
        "look, to compare",
        agent,
        person,
    ] {
        assert!(plain.contains(word), "{word:?} is not in {plain}");
        assert!(drawn.contains(word), "{word:?} is not in {drawn}");
    }
    let one = world.run(&["approvals", &ids[0]]).await.stdout;
    assert!(flowing(&one).contains("asked for by wire-client"), "{one}");
}

#[tokio::test]
async fn a_look_for_a_comparison_is_no_plan_of_a_recovery() {
    let (world, checkpoint, _) = guarded().await;
    let run = world
        .run(&["diff", "jp-ubuntu", FILE, "--at", &checkpoint])
        .await;
    assert_eq!(run.code, 3, "{}", run.stderr);
    let listed = world.run(&["approvals", "--json"]).await.json();
    let id = listed[0]["plan_id"].as_str().unwrap();
    let run = world.run(&["recover", "--plan", id]).await;
    assert_eq!(run.code, 3, "{}", run.stderr);
    for words in [
        "error[plan_altered]".to_owned(),
        format!("plan {id} only agrees to look into checkpoint {checkpoint}"),
        format!("`zerto-rewind diff jp-ubuntu {FILE} --at {checkpoint}`"),
        format!("`zerto-rewind recover jp-ubuntu {FILE} --at {checkpoint}`"),
    ] {
        assert!(
            run.stderr.contains(&words),
            "{words:?} is not in {}",
            run.stderr
        );
    }
    let mut agent = Server::initialized(&world.config(), "2025-11-25").await;
    let answer = agent
        .call("zerto_recover_file", json!({ "plan_id": id }))
        .await;
    let error = &answer["structuredContent"]["error"];
    assert_eq!(error["code"], "plan_altered", "{answer}");
    let listed = world.run(&["approvals", "--json"]).await.json();
    assert_eq!(
        listed.as_array().unwrap().len(),
        1,
        "no other plan was made: {listed}"
    );
}

#[tokio::test]
async fn what_a_look_finds_is_a_plan_of_its_own_and_that_is_said() {
    let (world, checkpoint, _) = guarded().await;
    let wanted = json!({ "vm": "jp-ubuntu", "paths": ["/etc/host*"], "checkpoint": checkpoint });
    let id = planned(&world, wanted).await;
    let (mut terminal, child) = at_terminal(&world, &["approve", &id]);
    terminal.shows("Approve this? [y/N]").await;
    terminal.types("y");
    assert_eq!(end(terminal, child).await.0, 0);
    let (mut terminal, child) = at_terminal(&world, &["recover", "--plan", &id]);
    terminal.shows("Recover this? [y/N]").await;
    terminal.types("y");
    let (code, shown) = end(terminal, child).await;
    assert_eq!(code, 0, "{shown}");
    let said = flowing(&shown);
    let words = format!(
        "Plan {id} only agrees to look into checkpoint {checkpoint}. Of what was found there, plan p-"
    );
    assert!(said.contains(&words), "{shown}");
}

#[tokio::test]
async fn advice_at_a_terminal_is_for_the_person_there() {
    let (world, checkpoint, _) = guarded().await;
    let id = planned_file(&world, &checkpoint).await;
    assert_eq!(world.run(&["deny", &id]).await.code, 0);
    for (arguments, code) in [
        (&["approve", &id][..], "declined"),
        (&["recover", "--plan", &id], "declined"),
        (&["deny", &id], "plan_decided"),
    ] {
        let run = world.run(arguments).await;
        assert_eq!(run.code, 3, "{}", run.stderr);
        assert!(run.stderr.contains(&format!("[{code}]")), "{}", run.stderr);
        assert!(
            run.stderr.contains("recover VM PATH --at CHECKPOINT`")
                && !run.stderr.contains("the human")
                && !run.stderr.contains("plan id"),
            "{arguments:?}: {}",
            run.stderr
        );
    }
    let audit = world.run(&["audit", "list", "--vm", "jp-ubuntu"]).await;
    let refused = format!("recovery by plan {id}: declined");
    assert!(
        flowing(&audit.stdout).contains(&refused),
        "{}",
        audit.stdout
    );
    // An agent is told what is for an agent.
    let mut agent = Server::initialized(&world.config(), "2025-11-25").await;
    let answer = agent
        .call("zerto_recover_file", json!({ "plan_id": id }))
        .await;
    let next = &answer["structuredContent"]["error"]["next"];
    assert!(next.as_str().unwrap().contains("ask the human"), "{answer}");

    for arguments in [
        &["approve", "p-00000000"][..],
        &["deny", "p-00000000"],
        &["approvals", "p-00000000"],
        &["recover", "--plan", "p-00000000"],
    ] {
        let run = world.run(arguments).await;
        assert_eq!(run.code, 4, "{arguments:?}: {}", run.stderr);
        assert!(
            run.stderr.contains("[plan_foreign]")
                && run.stderr.contains("`zerto-rewind approvals`"),
            "{}",
            run.stderr
        );
    }
}

#[tokio::test]
async fn results_fit_a_screen_and_what_is_copied_stays_whole() {
    let (world, checkpoint, _) = guarded().await;
    let recover = ["recover", "jp-ubuntu", FILE, "--at", &checkpoint, "--yes"];
    let (code, shown) = screen(&world, &recover).await;
    assert_eq!(code, 0, "{shown}");
    let local = world
        .path("recovered/jp-ubuntu")
        .join(&checkpoint)
        .join(&FILE[1..]);
    let local = local.to_str().unwrap();
    let result = shown.split("Recovered ").nth(1).unwrap();
    assert!(
        result.lines().any(|line| line.trim_end().ends_with(local)),
        "{result}"
    );
    fits(&result.replace(local, ""));
    let (code, shown) = screen(
        &world,
        &["diff", "jp-ubuntu", FILE, "--at", &checkpoint, "--yes"],
    )
    .await;
    assert_eq!(code, 0, "{shown}");
    let result = shown.split("has changed since").nth(1).unwrap();
    let (said, unified) = result.split_once("\n---").unwrap();
    fits(said);
    assert!(unified.contains("+broken"), "{unified}");
    let missing = [
        "recover",
        "jp-ubuntu",
        FILE,
        "/etc/nothing",
        "--at",
        &checkpoint,
        "--to",
        "back",
        "--yes",
    ];
    let mut command = world.command(&missing);
    command
        .current_dir(world.folder.path())
        .env("NO_COLOR", "1");
    let (terminal, child) = support::terminal::Terminal::start(&mut command, true);
    let (code, shown) = end(terminal, child).await;
    assert_eq!(code, 1, "{shown}");
    let why = shown.split("failed /etc/nothing").nth(1).unwrap();
    fits(why.split("[not_all_recovered]").next().unwrap());
}
