use crate::{
    stage::{
        beside, enforcer, guard, guard_with, inserts, is_unlisted, observed, outcomes, refused,
        stage,
    },
    support::{call, request},
};
use rewind_core::{Done, ErrorCode, ToolCall, stop::Stop};
use serde_json::json;

#[tokio::test]
async fn a_stop_refuses_listed_calls_at_once_and_nothing_else() {
    let world = stage().await;
    let enforcer = enforcer(&world);
    let stop = Stop::at(&world.folder().join("state"));
    let arguments = json!({ "vm": "jp-ubuntu" });
    stop.engage(Some("the SAN is full"), "cli/ana").unwrap();
    let error = refused(&enforcer, &observed("vm_stop", &arguments));
    assert_eq!(error.code, ErrorCode::Stopped);
    assert!(
        error.message.contains("the SAN is full") && error.message.contains("since"),
        "{error}"
    );
    assert!(error.next.contains("zerto-rewind resume"), "{error:?}");
    assert!(is_unlisted(&enforcer, &observed("list_vms", &arguments)));
    let denied = refused(&enforcer, &observed("vm_delete", &arguments));
    assert_eq!(denied.code, ErrorCode::Denied);

    let ask = |tool: &str| ToolCall {
        server: Some("vmware".into()),
        tool: tool.into(),
        action: "stop".into(),
        vm: None,
        arguments: Some(arguments.clone()),
        agent: None,
        change_id: None,
    };
    let server = beside(&world);
    let error = server.guard_tool_call(ask("vm_stop"), &call()).await;
    assert_eq!(error.unwrap_err().code, ErrorCode::Stopped);
    server
        .guard_tool_call(ask("list_vms"), &call())
        .await
        .unwrap();
    let asked = call();
    let ask_for_a_guard = || server.guard_unless_stopped(request("jp-ubuntu"), &asked);
    let error = ask_for_a_guard().await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Stopped);
    assert_eq!(inserts(&world), 0);

    stop.lift().unwrap();
    ask_for_a_guard().await.unwrap();
    guard(&enforcer, "vm_stop", "jp-ubuntu").await.unwrap();
}

#[tokio::test]
async fn a_stop_in_the_middle_of_a_guard_refuses_its_call() {
    let world = stage().await;
    let enforcer = enforcer(&world);
    let stop = Stop::at(&world.folder().join("state"));
    world.sim.update(|switches| switches.hold_listing = true);
    let call = call();
    let guarding = guard_with(&enforcer, "vm_stop", json!({ "vm": "app01" }), &call);
    let stopping = async {
        world
            .sim
            .wait_for(|view| view.answered("POST", "/checkpoints") == 3)
            .await;
        stop.engage(None, "cli/ana").unwrap();
        world.sim.update(|switches| switches.hold_listing = false);
    };
    let (error, ()) = futures::future::join(guarding, stopping).await;
    let error = error.unwrap_err();
    assert_eq!(error.code, ErrorCode::Stopped);
    assert_eq!(error.done.len(), 3);
    assert!(
        error
            .done
            .iter()
            .all(|done| matches!(done, Done::Pinned { .. }))
    );
    drop(enforcer);
    assert_eq!(outcomes(&world), ["not_forwarded"]);
}
