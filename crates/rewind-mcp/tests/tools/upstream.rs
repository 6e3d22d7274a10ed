//! `docs/upstream.md`: its tables are made from the tools and from what they send to the simulated ZVM.
use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use rewind_mcp::tools;
use serde_json::{Value, json};
use zvm_sim::RequestRecord;

use super::support::World;

const FIND: &str = "zerto_find_protection";
const INSERT: &str = "zerto_create_tagged_checkpoint";
const RECOVER: &str = "zerto_recover_file";
const AGAIN: &str = "run with UPDATE_DOCS=1 to write the tables of docs/upstream.md anew";

/// What each call is for. A call that is not explained here fails the test.
const WHY: &[(&str, &str)] = &[
    (
        "POST /auth/realms/zerto/protocol/openid-connect/token",
        "log in; the token is used again until shortly before it expires",
    ),
    (
        "GET /v1/vms",
        "the rows of the VM, one for each VPG: filtered by the ZVM, and matched again here",
    ),
    (
        "GET /v1/vpgs/{vpg}",
        "of every VPG of the VM: state, protected site, how far the journal reaches",
    ),
    (
        "GET /v1/serverDateTime/serverDateTimeUtc",
        "the ZVM's clock, by which journals are read",
    ),
    (
        "GET /v1/vpgs/{vpg}/checkpoints",
        "a window of the journal: whether the checkpoint is listed; around an insert, before it that the tag is not there yet, after it until it is",
    ),
    (
        "GET /v1/vpgs/{vpg}/checkpoints/stats",
        "between which times the journal has checkpoints, before windows of it are read",
    ),
    (
        "POST /v1/vpgs/{vpg}/checkpoints",
        "insert the tag; the answer is a task's id, and says nothing about the journal",
    ),
    (
        "GET /v1/tasks/{task}",
        "follow the task: a failure is told early, a success is not believed",
    ),
    (
        "GET /v1/vms/{vm}/pointsInTime",
        "whether the ZVM says that it can mount this checkpoint (`CanMount`)",
    ),
    (
        "GET /v1/flrs",
        "that no other session is open on the VM; one that is not ours is never touched",
    ),
    (
        "POST /v1/flrs",
        "mount the checkpoint; the answer is the session's id",
    ),
    (
        "GET /v1/flrs/{session}",
        "until it is mounted; later, until it is gone",
    ),
    (
        "POST /v1/flrs/{session}/browse",
        "find the path: partitions, then folder by folder, each path as the ZVM gave it",
    ),
    (
        "POST /v1/flrs/{session}/download",
        "a URL for the path, a new one for each try",
    ),
    (
        "GET /v1/downloads/{download}",
        "the content, streamed and hashed; its size is compared with the listing",
    ),
    (
        "DELETE /v1/flrs/{session}",
        "unmount, always: after success, failure, cancellation, and at the next start after a crash",
    ),
];

/// The calls of each capability, in the order in which they are made for the first time.
async fn calls() -> BTreeMap<&'static str, Vec<String>> {
    let world = World::new()
        .await
        .configured(json!({ "confirmation": "argument" }));
    // Looked at several times before it is listed, as on a real ZVM.
    world.sim.update(|switches| switches.hold_listing = true);
    let client = world.client().await;
    let mut calls = BTreeMap::new();
    client.call(FIND, json!({ "vm": "jp-ubuntu" })).await;
    calls.insert(FIND, made(&world));
    let arguments = json!({ "vm": "jp-ubuntu", "action": "edit" });
    let (guarded, ()) = tokio::join!(client.call(INSERT, arguments), async {
        world
            .sim
            .wait_for(|zvm| zvm.answered("GET", "/tasks/") > 0)
            .await;
        world.sim.update(|switches| switches.hold_listing = false);
    });
    calls.insert(INSERT, made(&world));
    let tag = guarded.structured_content.unwrap()["tag"].clone();
    let arguments =
        json!({ "vm": "jp-ubuntu", "path": "/etc/hosts", "checkpoint": tag, "confirmed": true });
    client.call(RECOVER, arguments).await;
    calls.insert(RECOVER, made(&world));
    calls
}

/// What was asked of the ZVM since the last time, each call once.
fn made(world: &World) -> Vec<String> {
    let mut made = Vec::new();
    for request in world.sim.requests() {
        let call = template(&request);
        if !made.contains(&call) {
            made.push(call);
        }
    }
    world.sim.clear_requests();
    made
}

/// The request with names for what is its own.
fn template(request: &RequestRecord) -> String {
    let mut path = String::new();
    let mut of = "";
    for segment in request.path.split('/').skip(1) {
        let name = match (of, segment) {
            ("vpgs", _) => Some("{vpg}"),
            ("vms", _) => Some("{vm}"),
            ("tasks", _) => Some("{task}"),
            ("flrs", _) => Some("{session}"),
            ("downloads", _) => Some("{download}"),
            _ => None,
        };
        let _ = write!(path, "/{}", name.unwrap_or(segment));
        of = if name.is_some() { "" } else { segment };
    }
    format!("{} {path}", request.method)
}

fn call_table(calls: &[String]) -> String {
    let mut table = String::from("| | call | why |\n|---|---|---|\n");
    for (call, number) in calls.iter().zip(1..) {
        let (_, why) = WHY
            .iter()
            .find(|(known, _)| known == call)
            .unwrap_or_else(|| panic!("say in WHY what {call} is for"));
        let _ = writeln!(table, "| {number} | `{call}` | {why} |");
    }
    table
}

fn schema_tables(name: &str) -> String {
    let tool = tools::find(name).unwrap();
    let (input, output) = (json!(tool.input_schema), json!(tool.output_schema));
    let mut tables = String::new();
    tables += "| argument | type | | |\n|---|---|---|---|\n";
    for (argument, schema) in properties(&input) {
        let needed = if required(&input, argument) {
            "required"
        } else {
            ""
        };
        let _ = writeln!(
            tables,
            "| `{argument}` | {} | {needed} | {} |",
            kind(schema),
            said(schema)
        );
    }
    tables += "\n| result | type | |\n|---|---|---|\n";
    for (member, schema) in properties(&output) {
        let _ = writeln!(
            tables,
            "| `{member}` | {} | {} |",
            kind(schema),
            said(schema)
        );
    }
    let nested = output["$defs"].as_object();
    for (name, schema) in nested.into_iter().flatten() {
        let _ = writeln!(tables, "\n| `{name}` | type | |\n|---|---|---|");
        for (member, schema) in properties(schema) {
            let _ = writeln!(
                tables,
                "| `{member}` | {} | {} |",
                kind(schema),
                said(schema)
            );
        }
        for value in schema["oneOf"].as_array().into_iter().flatten() {
            let name = value["const"].as_str().unwrap();
            let _ = writeln!(tables, "| `{name}` | value | {} |", said(value));
        }
    }
    tables
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

fn required(schema: &Value, name: &str) -> bool {
    schema["required"]
        .as_array()
        .is_some_and(|required| required.iter().any(|one| one == name))
}

fn kind(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        return format!("`{}`", reference.rsplit('/').next().unwrap());
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let kinds: Vec<_> = any.iter().map(kind).collect();
        return kinds.join(" or ");
    }
    match schema["type"].as_str() {
        Some("array") => format!("array of {}", kind(&schema["items"])),
        Some(kind) => kind.to_owned(),
        None => "any".to_owned(),
    }
}

fn said(schema: &Value) -> String {
    let said = schema["description"].as_str().unwrap_or_default();
    said.replace('\n', " ").replace('|', "\\|")
}

/// The page with what stands between `<!-- NAME -->` and `<!-- end -->` made anew.
fn made_anew(page: &str, parts: &BTreeMap<String, String>) -> String {
    let mut anew = String::new();
    let mut rest = page;
    let mut used = 0;
    while let Some((before, after)) = rest.split_once("<!-- made: ") {
        let (name, after) = after.split_once(" -->\n").unwrap();
        let (_, after) = after.split_once("<!-- end -->").unwrap();
        let part = parts
            .get(name)
            .unwrap_or_else(|| panic!("nothing is made for {name}"));
        let _ = write!(anew, "{before}<!-- made: {name} -->\n{part}<!-- end -->");
        rest = after;
        used += 1;
    }
    assert_eq!(used, parts.len(), "each part stands in the page once");
    anew + rest
}

/// `UPDATE_DOCS=1 cargo test -p rewind-mcp --test tools` writes the tables anew.
#[tokio::test]
async fn the_tables_of_the_page_for_upstream_are_made_from_the_code() {
    let mut parts = BTreeMap::new();
    for (tool, calls) in calls().await {
        parts.insert(format!("{tool} calls"), call_table(&calls));
        parts.insert(format!("{tool} schema"), schema_tables(tool));
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/upstream.md");
    let found = fs::read_to_string(&file).unwrap().replace("\r\n", "\n");
    let page = made_anew(&found, &parts);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &page).unwrap();
    } else {
        for (found, made) in found.lines().zip(page.lines()) {
            assert_eq!(found, made, "{AGAIN}");
        }
        assert!(found == page, "{AGAIN}");
    }
}
