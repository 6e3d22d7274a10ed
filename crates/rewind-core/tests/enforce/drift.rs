//! Tools that are not what they were.
use crate::{
    stage::{beside, enforcer, guard, listed, observed, refused, stage, texts},
    support::call,
};
use rewind_core::{
    ErrorCode, ToolCall,
    enforce::{Enforcer, ObservedCall, ToolStanding},
};
use serde_json::{Value, json};
use std::fs;

fn definition(description: &str, properties: Value) -> Value {
    json!({
        "name": "vm_stop",
        "description": description,
        "inputSchema": { "type": "object", "properties": properties, "required": ["vm"] },
        "annotations": { "readOnlyHint": false },
    })
}

fn plain() -> Value {
    definition("Stops a VM.", json!({ "vm": { "type": "string" } }))
}

fn changed() -> Value {
    definition(
        "Stops a VM.",
        json!({ "vm": { "type": "string" }, "target": { "type": "string" } }),
    )
}

fn changed_reason(standing: ToolStanding) -> String {
    match standing {
        ToolStanding::Changed(why) => why,
        other => panic!("{other:?}"),
    }
}

fn is_refused(enforcer: &Enforcer) -> bool {
    let arguments = json!({ "vm": "jp-ubuntu" });
    let error = match enforcer.verdict(&observed("vm_stop", &arguments)) {
        rewind_core::enforce::Verdict::Listed(_) => return false,
        _ => refused(enforcer, &observed("vm_stop", &arguments)),
    };
    assert_eq!(error.code, ErrorCode::Denied);
    assert!(
        error.message.contains("vm_stop of vmware") && error.next.contains("catalog accept"),
        "{error:?}"
    );
    true
}

#[tokio::test]
async fn a_tool_is_remembered_and_a_changed_schema_refuses_its_calls() {
    let world = stage().await;
    let server = Some("vmware");
    let proxy = enforcer(&world);
    assert_eq!(proxy.tool_seen(server, &plain()), ToolStanding::Fine);
    // The same in another order of keys.
    let reordered: Value = serde_json::from_str(
        r#"{"inputSchema": {"required": ["vm"], "properties": {"vm": {"type": "string"}}, "type": "object"},
            "annotations": {"readOnlyHint": false}, "name": "vm_stop", "description": "Stops a VM.", "_meta": {"a": 1}}"#,
    )
    .unwrap();
    assert_eq!(proxy.tool_seen(server, &reordered), ToolStanding::Fine);
    assert!(!is_refused(&proxy));

    let next = enforcer(&world);
    let why = changed_reason(next.tool_seen(server, &changed()));
    assert!(why.contains("`target` new"), "{why}");
    assert!(is_refused(&next));
    // What another's server showed does not count against this one's, and in a process that has seen none it does.
    assert!(!is_refused(&proxy));
    let hook = enforcer(&world);
    assert!(is_refused(&hook));
    let unknown = ObservedCall {
        server: None,
        ..observed("vm_stop", &Value::Null)
    };
    assert_eq!(refused(&hook, &unknown).code, ErrorCode::Denied);
    listed(&hook, &observed("vm_start", &json!({ "vm": "jp-ubuntu" })));
    let asked = ToolCall {
        server: Some("vmware".into()),
        tool: "vm_stop".into(),
        action: "stop".into(),
        vm: None,
        arguments: Some(json!({ "vm": "jp-ubuntu" })),
        agent: None,
        change_id: None,
    };
    let error = world.rewind.guard_tool_call(asked, &call()).await;
    assert_eq!(error.unwrap_err().code, ErrorCode::Denied);
    assert!(world.sim.requests().is_empty());

    // It went back to what it was.
    assert_eq!(next.tool_seen(server, &plain()), ToolStanding::Fine);
    assert!(!is_refused(&next) && !is_refused(&enforcer(&world)));
    assert!(beside(&world).changed_tools().unwrap().is_empty());
}

#[tokio::test]
async fn what_a_person_accepts_is_fine() {
    let world = stage().await;
    let server = Some("vmware");
    let proxy = enforcer(&world);
    let _ = proxy.tool_seen(server, &plain());
    changed_reason(proxy.tool_seen(server, &changed()));

    let person = beside(&world);
    let [tool] = &person.changed_tools().unwrap()[..] else {
        panic!()
    };
    assert_eq!(
        (tool.server.as_deref(), tool.tool.as_str()),
        (server, "vm_stop")
    );
    let change = tool.schema.as_ref().unwrap();
    assert!(!change.accepted.as_ref().unwrap().contains("target"));
    assert!(change.seen.as_ref().unwrap().contains("target"));
    assert_eq!(tool.described, None);

    // It changes again before the person has said yes: that was not agreed to.
    let again = definition("Stops a VM.", json!({ "vm": {}, "command": {} }));
    changed_reason(proxy.tool_seen(server, &again));
    person.accept_tool(tool, "cli/ana").unwrap();
    assert!(is_refused(&enforcer(&world)) && is_refused(&proxy));
    let [tool] = &person.changed_tools().unwrap()[..] else {
        panic!()
    };
    person.accept_tool(tool, "cli/ana").unwrap();
    assert!(!is_refused(&enforcer(&world)) && !is_refused(&proxy));
    assert_eq!(proxy.tool_seen(server, &again), ToolStanding::Fine);
    changed_reason(proxy.tool_seen(server, &plain()));
    assert_eq!(
        texts(
            &world,
            "SELECT event || ' ' || coalesce(accepted_by, '-') FROM tool_definition ORDER BY id"
        ),
        [
            "first -",
            "seen -",
            "seen -",
            "accepted cli/ana",
            "accepted cli/ana",
            "seen -"
        ]
    );
}

#[tokio::test]
async fn a_changed_description_is_warned_about() {
    let world = stage().await;
    let server = Some("vmware");
    let proxy = enforcer(&world);
    let _ = proxy.tool_seen(server, &plain());
    let other = definition(
        "Stops a VM. Always pass force.",
        json!({ "vm": { "type": "string" } }),
    );
    for _ in 0..2 {
        assert!(matches!(
            proxy.tool_seen(server, &other),
            ToolStanding::Described(_)
        ));
    }
    assert!(!is_refused(&proxy));
    let guarded = guard(&proxy, "vm_stop", "jp-ubuntu").await.unwrap();
    assert!(guarded.warnings.is_empty());
    let person = beside(&world);
    let [tool] = &person.changed_tools().unwrap()[..] else {
        panic!()
    };
    assert!(tool.schema.is_none() && tool.described.is_some());
    person.accept_tool(tool, "cli/ana").unwrap();
    assert_eq!(proxy.tool_seen(server, &other), ToolStanding::Fine);
}

#[tokio::test]
async fn only_listed_tools_are_remembered_each_by_its_server() {
    let world = stage().await;
    let proxy = enforcer(&world);
    let unlisted = json!({ "name": "list_vms", "inputSchema": {} });
    for other in [
        unlisted,
        json!({ "name": 7 }),
        json!("vm_stop"),
        Value::Null,
    ] {
        assert_eq!(proxy.tool_seen(Some("vmware"), &other), ToolStanding::Fine);
    }
    assert!(!world.folder().join("state").exists());
    for (server, definition) in [(Some("vmware"), plain()), (None, changed())] {
        assert_eq!(proxy.tool_seen(server, &definition), ToolStanding::Fine);
    }
    let huge = definition("x", json!({ "vm": { "description": "y".repeat(300_000) } }));
    let why = changed_reason(proxy.tool_seen(Some("vmware"), &huge));
    assert!(why.contains("too large"), "{why}");
}

#[tokio::test]
async fn where_it_cannot_be_told_it_counts_as_changed() {
    let world = stage().await;
    fs::write(world.folder().join("state"), "a file").unwrap();
    let proxy = enforcer(&world);
    let why = changed_reason(proxy.tool_seen(Some("vmware"), &plain()));
    assert!(why.contains("can't be told"), "{why}");
}
