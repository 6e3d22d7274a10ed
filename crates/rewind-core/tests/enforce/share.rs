//! A hook and a proxy that see the same call.
use crate::{
    stage::{
        self, Heard, LONG, checkpoint, enforcer, guard, guard_with, inserts, observed, of_hook,
        outcomes, stage, texts,
    },
    support::call,
};
use rewind_core::{
    GuardDecision, ToolCall,
    enforce::{Enforcer, ObservedCall, Outcome},
};
use serde_json::json;
use std::{
    env,
    process::{Command, Stdio},
    time::Duration,
};
use zvm_sim::Scenario;

/// The configuration for a process that a test has started; such a process runs one test of this file by its name.
const CHILD: &str = "REWIND_TEST_CHILD_CONFIG";

#[tokio::test]
async fn they_take_one_pin() {
    let world = stage().await;
    let (hook, proxy) = (of_hook(&world), enforcer(&world));
    let first = guard(&hook, "vm_stop", "jp-ubuntu").await.unwrap();
    let pin = checkpoint(&first).to_owned();
    let tag = first.receipts[0].tag.clone();
    hook.hand_over(first, Some("toolu_1"));
    drop(hook);

    // The proxy knows other names for the agent and its change, and leaves out what it was not given.
    let mut of_proxy = call();
    of_proxy.caller = "another-name".into();
    of_proxy.session_change_id = "another-change".into();
    let arguments = json!({ "vm": "jp-ubuntu" });
    let unnamed = ObservedCall {
        server: None,
        ..observed("vm_stop", &arguments)
    };
    let second = proxy
        .guard(stage::listed(&proxy, &unnamed), &of_proxy)
        .await
        .unwrap();
    assert!(second.reused);
    assert_eq!(checkpoint(&second), pin);
    let receipt = &second.receipts[0];
    assert_eq!((&receipt.tag, receipt.pins[0].inserts), (&tag, 0));
    assert_eq!(receipt.pins[0].tag, tag);
    assert!(receipt.pins[0].expected_until.is_some());
    assert_eq!(inserts(&world), 1);

    // Two outcomes, each told once: the server's, and what the harness saw.
    proxy.outcome(second, Outcome::IsError);
    drop(proxy);
    let post = enforcer(&world);
    post.outcome_of(
        &observed("vm_stop", &arguments),
        Some("toolu_1"),
        Outcome::Ok,
    )
    .unwrap();
    post.outcome_of(
        &observed("vm_stop", &arguments),
        Some("toolu_1"),
        Outcome::Lost,
    )
    .unwrap();
    post.outcome_of(&observed("vm_start", &arguments), None, Outcome::Ok)
        .unwrap();
    assert_eq!(outcomes(&world), ["ok", "is_error"]);
}

#[tokio::test]
async fn a_call_that_is_repeated_after_its_outcome_gets_its_own_pin() {
    let world = stage().await;
    let proxy = enforcer(&world);
    let arguments = json!({ "vm": "jp-ubuntu" });
    let mut pins = Vec::new();
    for round in 1..=2 {
        let hook = of_hook(&world);
        let guarded = guard(&hook, "vm_stop", "jp-ubuntu").await.unwrap();
        assert!(!guarded.reused, "round {round}");
        pins.push(checkpoint(&guarded).to_owned());
        hook.hand_over(guarded, None);
        let guarded = guard(&proxy, "vm_stop", "jp-ubuntu").await.unwrap();
        assert!(guarded.reused, "round {round}");
        hook.outcome_of(&observed("vm_stop", &arguments), None, Outcome::Ok)
            .unwrap();
        proxy.outcome(guarded, Outcome::Ok);
    }
    assert_ne!(pins[0], pins[1]);
    assert_eq!(inserts(&world), 2);
}

#[tokio::test]
async fn what_one_proxy_sees_twice_are_two_calls() {
    let world = stage().await;
    let proxy = enforcer(&world);
    let first = guard(&proxy, "vm_stop", "jp-ubuntu").await.unwrap();
    let second = guard(&proxy, "vm_stop", "jp-ubuntu").await.unwrap();
    assert!(!second.reused);
    assert_ne!(checkpoint(&first), checkpoint(&second));

    // One of the two had a hook before it: the hook's pin serves one of them.
    let world = stage().await;
    let (hook, proxy) = (of_hook(&world), enforcer(&world));
    hook.hand_over(guard(&hook, "vm_stop", "jp-ubuntu").await.unwrap(), None);
    let both = futures::future::join(
        guard(&proxy, "vm_stop", "jp-ubuntu"),
        guard(&proxy, "vm_stop", "jp-ubuntu"),
    );
    let (first, second) = both.await;
    let (first, second) = (first.unwrap(), second.unwrap());
    assert!(first.reused != second.reused, "{first:?} {second:?}");
    assert_eq!(inserts(&world), 2);
}

#[tokio::test]
async fn calls_that_differ_do_not_share() {
    let world = stage().await;
    let hook = of_hook(&world);
    hook.hand_over(guard(&hook, "vm_stop", "jp-ubuntu").await.unwrap(), None);
    let proxy = enforcer(&world);
    let more = json!({ "vm": "jp-ubuntu", "force": true });
    let guarded = guard_with(&proxy, "vm_stop", more, &call()).await.unwrap();
    assert!(!guarded.reused);
    assert!(!guard(&proxy, "vm_start", "jp-ubuntu").await.unwrap().reused);
    assert_eq!(inserts(&world), 3);
}

#[tokio::test]
async fn an_agents_own_guard_is_not_taken_for_the_calls() {
    let world = stage().await;
    let asked = ToolCall {
        server: Some("vmware".into()),
        tool: "vm_stop".into(),
        action: "only looking".into(),
        vm: None,
        arguments: Some(json!({ "vm": "jp-ubuntu" })),
        agent: None,
        change_id: None,
    };
    let decision = world.rewind.guard_tool_call(asked, &call()).await.unwrap();
    assert!(matches!(decision, GuardDecision::Guarded { .. }));
    let guarded = guard(&enforcer(&world), "vm_stop", "jp-ubuntu")
        .await
        .unwrap();
    assert!(!guarded.reused);
    assert_eq!(guarded.receipts[0].action, "vm_stop jp-ubuntu");
}

#[tokio::test]
async fn the_second_waits_while_the_first_is_pinning() {
    let world = stage().await;
    let (hook, proxy) = (of_hook(&world), enforcer(&world));
    world.sim.update(|switches| switches.hold_listing = true);
    let (heard, of_proxy) = Heard::call();
    let arguments = json!({ "vm": "app01" });
    let of_hook = call();
    let first = guard_with(&hook, "vm_stop", arguments.clone(), &of_hook);
    let second = async {
        let pinning = world
            .sim
            .wait_for(|view| view.answered("POST", "/checkpoints") == 3);
        tokio::time::timeout(LONG, pinning).await.unwrap();
        guard_with(&proxy, "vm_stop", arguments.clone(), &of_proxy).await
    };
    let release = async {
        heard.wait_for("another guard that covers it").await;
        world.sim.update(|switches| switches.hold_listing = false);
    };
    let (first, second, ()) = futures::future::join3(first, second, release).await;
    let (first, second) = (first.unwrap(), second.unwrap());
    assert!(!first.reused && second.reused);
    assert_eq!(first.receipts[0].tag, second.receipts[0].tag);
    assert_eq!(second.receipts[0].pins.len(), 3);
    assert_eq!(inserts(&world), 3);
}

#[tokio::test]
async fn a_first_one_that_gives_up_holds_nobody_up() {
    let world = stage().await;
    let (hook, proxy) = (of_hook(&world), enforcer(&world));
    world.sim.update(|switches| switches.hold_listing = true);
    let (heard, of_proxy) = Heard::call();
    let of_hook = call();
    let cancel = of_hook.cancel.clone();
    let arguments = json!({ "vm": "jp-ubuntu" });
    let first = guard_with(&hook, "vm_stop", arguments.clone(), &of_hook);
    let second = async {
        world
            .sim
            .wait_for(|view| view.answered("POST", "/checkpoints") == 1)
            .await;
        guard_with(&proxy, "vm_stop", arguments.clone(), &of_proxy).await
    };
    let give_up = async {
        heard.wait_for("another guard that covers it").await;
        world.sim.update(|switches| switches.hold_listing = false);
        cancel.cancel();
    };
    let (first, second, ()) = futures::future::join3(first, second, give_up).await;
    first.unwrap_err();
    assert!(!second.unwrap().reused);
    assert_eq!(inserts(&world), 2);
}

/// In a process of its own: guards and never comes to an end.
#[tokio::test]
async fn child_that_pins() {
    let Ok(config) = env::var(CHILD) else { return };
    let config = rewind_core::config::Config::load(config.as_ref()).unwrap();
    let hook = Enforcer::of_hook(rewind_core::Rewind::new(config).unwrap()).unwrap();
    let _ = guard(&hook, "vm_stop", "jp-ubuntu").await;
}

#[tokio::test]
async fn a_first_one_that_is_killed_holds_nobody_up() {
    let world = stage().await;
    world.sim.update(|switches| switches.hold_listing = true);
    let access = world.sim.access();
    let config = json!({
        "zerto_url": access.url, "username": access.username, "password": access.password,
        "ca_file": access.ca_file, "verify_tls": true, "catalog": "catalog.toml",
        "state_dir": world.folder().join("state"),
    });
    let file = world.folder().join("child.json");
    std::fs::write(&file, config.to_string()).unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "share::child_that_pins"])
        .env(CHILD, &file)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pinning = world
        .sim
        .wait_for(|view| view.answered("POST", "/checkpoints") == 1);
    tokio::time::timeout(LONG, pinning).await.unwrap();

    let proxy = enforcer(&world);
    let (heard, of_proxy) = Heard::call();
    let waiting = guard_with(&proxy, "vm_stop", json!({ "vm": "jp-ubuntu" }), &of_proxy);
    let kill = async {
        heard.wait_for("another guard that covers it").await;
        child.kill().unwrap();
        child.wait().unwrap();
        world.sim.update(|switches| switches.hold_listing = false);
    };
    let (guarded, ()) = futures::future::join(waiting, kill).await;
    assert!(!guarded.unwrap().reused);
    assert_eq!(inserts(&world), 2);
}

#[tokio::test]
async fn waiting_has_an_end() {
    let world = stage::of(Scenario::fast(), json!({})).await;
    world.sim.update(|switches| switches.hold_listing = true);
    let hook = of_hook(&world);
    let hasty = Enforcer::new(world.with_config(&json!({
        "catalog": "catalog.toml", "guard": { "listed_timeout": "1s", "deadline": "1s" },
    })))
    .unwrap();
    let of_hook = call();
    let cancel = of_hook.cancel.clone();
    let arguments = json!({ "vm": "jp-ubuntu" });
    let first = guard_with(&hook, "vm_stop", arguments.clone(), &of_hook);
    let second = async {
        world
            .sim
            .wait_for(|view| view.answered("POST", "/checkpoints") == 1)
            .await;
        let error = guard_with(&hasty, "vm_stop", arguments.clone(), &call())
            .await
            .unwrap_err();
        cancel.cancel();
        error
    };
    let (_, error) = futures::future::join(first, second).await;
    assert_eq!(error.code, rewind_core::ErrorCode::DeadlinePassed);
    assert!(error.message.contains("nothing was inserted"), "{error}");
}

#[tokio::test]
async fn a_pin_that_is_gone_is_not_used() {
    let mut scenario = Scenario::fast();
    scenario.vpg_mut("jp-ubuntu").unwrap().history = Duration::from_secs(1);
    let world = stage::of(scenario, json!({})).await;
    let hook = of_hook(&world);
    hook.hand_over(guard(&hook, "vm_stop", "jp-ubuntu").await.unwrap(), None);
    world
        .sim
        .wait_for(|view| view.journal("jp-ubuntu").is_empty())
        .await;
    let guarded = guard(&enforcer(&world), "vm_stop", "jp-ubuntu")
        .await
        .unwrap();
    assert!(!guarded.reused);
    assert_eq!(inserts(&world), 2);
    let ends = "SELECT iif(guard IS NULL, 'none', 'guarded') FROM claim_ended ORDER BY claim";
    assert_eq!(texts(&world, ends), ["guarded", "none", "guarded"]);
}

#[tokio::test]
async fn two_hooks_share_only_what_their_harness_calls_one_call_and_two_proxies_nothing() {
    let world = stage().await;
    let arguments = json!({ "vm": "jp-ubuntu" });
    let observed = observed("vm_stop", &arguments);
    let by = |session: &str| {
        let mut by = call();
        by.session_change_id = session.into();
        by
    };
    let mut reused = Vec::new();
    for (id, session) in [
        (Some("toolu_1"), "s1"),
        (Some("toolu_1"), "s1"),
        (Some("toolu_2"), "s1"),
        (None, "s2"),
        (None, "s2"),
        (None, "s3"),
    ] {
        let hook = of_hook(&world);
        let listed = stage::listed(&hook, &observed);
        let guarded = hook.guard_known(listed, &by(session), id).await.unwrap();
        reused.push(guarded.reused);
        hook.hand_over(guarded, id);
    }
    assert_eq!(reused, [false, true, false, false, true, false]);

    let world = stage().await;
    let proxies = [enforcer(&world), enforcer(&world)];
    for proxy in &proxies {
        assert!(!guard(proxy, "vm_stop", "jp-ubuntu").await.unwrap().reused);
    }
    assert_eq!(inserts(&world), 2);
}
