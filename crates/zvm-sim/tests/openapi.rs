//! The vendor's OpenAPI document is the judge: every operation that the simulator serves is in it, and every answer has its
//! shape, up to letter case and the extra members that are known from real answers.
//!
//! The document is not part of this repository and can't be installed. `ZVM_OPENAPI` names it; without it the check is skipped, even
//! with `ZERTO_REWIND_REQUIRE_ALL=1`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use common::{Zvm, fast};
use reqwest::Method;
use serde_json::{Value, json};
use zvm_sim::OPERATIONS;

/// Members that real answers have and the document does not: schema, member, and how it is known.
const EXTRA: &[(&str, &str, &str)] = &[
    (
        "VmApi",
        "VmIdentifier",
        "10.x clients read it as a required member",
    ),
    (
        "VmApi",
        "VpgIdentifier",
        "10.x clients read it as a required member",
    ),
    (
        "VmApi",
        "SourceSite",
        "recorded on 7.0, printed by clients of 9.5 and later",
    ),
    ("VmApi", "TargetSite", "recorded on 7.0"),
    (
        "VpgApi",
        "VpgIdentifier",
        "10.x clients read it as a required member",
    ),
    ("VpgApi", "SourceSite", "recorded on 7.0"),
    ("VpgApi", "TargetSite", "recorded on 7.0"),
    ("VpgEntitiesApi", "Source", "recorded on 7.0"),
    ("VpgEntitiesApi", "Target", "recorded on 7.0"),
    ("TaskApi", "TaskIdentifier", "the vendor's 7.0 page"),
    (
        "LocalSiteApi",
        "SiteIdentifier",
        "recorded on 7.0; 10.x clients read it",
    ),
    (
        "PeerSiteApi",
        "SiteIdentifier",
        "left out of the document like that of the local site",
    ),
];

/// Served, and not in the document: the download URL is only known from an answer, and the document names no such path.
const UNDOCUMENTED: &[&str] = &["/v1/downloads/{download}"];

fn document() -> Option<Value> {
    let Some(path) = std::env::var_os("ZVM_OPENAPI").filter(|path| !path.is_empty()) else {
        // Written past the test harness, which shows what println! says only of tests that fail.
        let said = std::io::stderr().write_all(
            b"SKIPPED: ZVM_OPENAPI does not name the vendor's OpenAPI document; the simulator is not checked against it
",
        );
        said.unwrap();
        return None;
    };
    let text = std::fs::read_to_string(&path).expect("ZVM_OPENAPI can be read");
    Some(serde_json::from_str(&text).expect("ZVM_OPENAPI is JSON"))
}

/// The operation's path in the document: the realm is a fixed one there.
fn documented_path(path: &str) -> String {
    path.replace("{realm}", "zerto")
}

#[test]
fn every_operation_and_parameter_is_the_vendors() {
    let Some(document) = document() else { return };
    let mut problems = Vec::new();
    for operation in OPERATIONS {
        if UNDOCUMENTED.contains(&operation.path) {
            continue;
        }
        let path = documented_path(operation.path);
        let method = operation.method.to_lowercase();
        let Some(found) = document["paths"]
            .get(&path)
            .and_then(|path| path.get(&method))
        else {
            problems.push(format!("{} {path} is not documented", operation.method));
            continue;
        };
        let known: Vec<&str> = found["parameters"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default()
            .iter()
            .filter(|parameter| parameter["in"] == "query")
            .map(|parameter| parameter["name"].as_str().unwrap())
            .collect();
        for name in operation.query {
            if !known.contains(name) {
                problems.push(format!(
                    "{} {path}: the parameter {name} is not documented",
                    operation.method
                ));
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

/// Schemas by the last part of their names, as JSON Schema: OpenAPI 3.0 has a word of its own for "or null", and
/// can't say it of a reference at all.
struct Schemas {
    components: Value,
    /// References to enumerations: they are never null.
    enumerations: BTreeSet<String>,
}

impl Schemas {
    fn new(document: &Value) -> Self {
        let mut components = document["components"].clone();
        let enumerations = components["schemas"]
            .as_object()
            .unwrap()
            .iter()
            .filter(|(_, schema)| schema.get("enum").is_some())
            .map(|(name, _)| format!("#/components/schemas/{name}"))
            .collect();
        convert(&mut components, &enumerations);
        Self {
            components,
            enumerations,
        }
    }

    /// The schema of an operation's answer or request.
    fn converted(&self, schema: &Value) -> Value {
        let mut schema = schema.clone();
        convert(&mut schema, &self.enumerations);
        schema
    }

    fn resolve<'a>(&'a self, schema: &'a Value) -> (&'a str, &'a Value) {
        let reference = schema["$ref"]
            .as_str()
            .or_else(|| schema["anyOf"][0]["$ref"].as_str());
        match reference {
            Some(reference) => {
                let name = reference.rsplit('/').next().unwrap();
                let short = name.rsplit('.').next().unwrap();
                (short, &self.components["schemas"][name])
            }
            None => ("", schema),
        }
    }

    fn errors(&self, schema: &Value, instance: &Value) -> Vec<String> {
        let mut whole = schema.clone();
        whole["components"] = self.components.clone();
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .should_ignore_unknown_formats(true)
            .build(&whole)
            .unwrap();
        validator
            .iter_errors(instance)
            .map(|error| error.to_string())
            .collect()
    }

    /// Gives members the letter case that the schema has, and takes the known extra ones out.
    fn fit(&self, schema: &Value, instance: &mut Value, found: &mut Found) {
        let (name, schema) = self.resolve(schema);
        match instance {
            Value::Array(items) => {
                for item in items {
                    self.fit(&schema["items"], item, found);
                }
            }
            Value::Object(members) => {
                let Some(properties) = schema["properties"].as_object() else {
                    return;
                };
                for (key, mut value) in std::mem::take(members) {
                    let known = properties
                        .iter()
                        .find(|(own, _)| own.eq_ignore_ascii_case(&key));
                    if let Some((own, schema)) = known {
                        self.fit(schema, &mut value, found);
                        members.insert(own.clone(), value);
                    } else if let Some(extra) = EXTRA
                        .iter()
                        .position(|extra| extra.0 == name && extra.1 == key)
                    {
                        found.extra.insert(extra);
                    } else {
                        found.problems.push(format!("{name} has no member {key}"));
                    }
                }
            }
            _ => {}
        }
    }
}

#[derive(Default)]
struct Found {
    extra: BTreeSet<usize>,
    problems: Vec<String>,
}

fn convert(schema: &mut Value, enumerations: &BTreeSet<String>) {
    match schema {
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| convert(item, enumerations)),
        Value::Object(members) => {
            if members.remove("nullable") == Some(Value::Bool(true)) {
                let kind = members.get("type").cloned().unwrap();
                members.insert("type".to_owned(), json!([kind, "null"]));
            }
            if let Some(Value::Object(properties)) = members.get_mut("properties") {
                for property in properties.values_mut() {
                    let reference = property["$ref"].as_str().unwrap_or_default();
                    if !reference.is_empty() && !enumerations.contains(reference) {
                        *property = json!({ "anyOf": [property.clone(), { "type": "null" }] });
                    }
                }
            }
            members
                .values_mut()
                .for_each(|member| convert(member, enumerations));
        }
        _ => {}
    }
}

/// Answers by operation (`GET /v1/vms`), each with its status.
type Answers = BTreeMap<String, (u16, Value)>;

struct Asked {
    zvm: Zvm,
    answers: Answers,
    bodies: Vec<(String, Value)>,
}

impl Asked {
    /// Asks and remembers; parameters of the template are filled in order.
    async fn ask(
        &mut self,
        method: Method,
        template: &str,
        fill: &[&str],
        query: &str,
        body: Option<Value>,
    ) -> Value {
        let mut path = template.to_owned();
        for value in fill {
            let (from, to) = (path.find('{').unwrap(), path.find('}').unwrap());
            path.replace_range(from..=to, value);
        }
        let operation = format!("{method} {template}");
        let mut request = self.zvm.request(method, &format!("{path}{query}"));
        if let Some(body) = body {
            request = request.json(&body);
            self.bodies.push((operation.clone(), body));
        }
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let value: Value = answer.json().await.unwrap();
        self.answers.insert(operation, (status, value.clone()));
        value
    }

    async fn get(&mut self, template: &str, fill: &[&str]) -> Value {
        self.ask(Method::GET, template, fill, "", None).await
    }
}

/// Every documented operation that is served, asked once.
async fn ask_everything() -> Asked {
    let zvm = fast().await;
    let (vm, vpg) = (zvm.vm("app01"), zvm.vpg("app01-dr"));
    let checkpoint = zvm.pin("app01-dr", "judged").await;
    let login = zvm.password("simulated-password").await;
    let mut asked = Asked {
        zvm,
        answers: Answers::new(),
        bodies: Vec::new(),
    };
    asked.answers.insert(
        "POST /auth/realms/{realm}/protocol/openid-connect/token".to_owned(),
        (login.0.as_u16(), login.1),
    );
    asked.get("/v1/localsite", &[]).await;
    let peers = asked.get("/v1/peersites", &[]).await;
    let peer = peers[0]["SiteIdentifier"].as_str().unwrap().to_owned();
    asked.get("/v1/peersites/{siteIdentifier}", &[&peer]).await;
    let sites = asked.get("/v1/virtualizationsites", &[]).await;
    let site = sites[0]["SiteIdentifier"].as_str().unwrap().to_owned();
    asked
        .get("/v1/virtualizationsites/{siteIdentifier}", &[&site])
        .await;
    let unprotected = asked
        .get("/v1/virtualizationsites/{siteIdentifier}/vms", &[&site])
        .await;
    assert_eq!(unprotected.as_array().unwrap().len(), 1);
    asked.get("/v1/vms", &[]).await;
    let only = format!("?vpgIdentifier={vpg}");
    for template in [
        "/v1/vms/{vmIdentifier}",
        "/v1/vms/{vmIdentifier}/pointsInTime",
        "/v1/vms/{vmIdentifier}/pointsInTime/stats",
    ] {
        asked.ask(Method::GET, template, &[&vm], &only, None).await;
    }
    for list in [
        "vpgs",
        "vpgs/statuses",
        "vpgs/substatuses",
        "vpgs/priorities",
        "vpgs/entitytypes",
        "tasks/types",
    ] {
        asked.get(&format!("/v1/{list}"), &[]).await;
    }
    for template in [
        "/v1/vpgs/{vpgIdentifier}",
        "/v1/vpgs/{vpgIdentifier}/checkpoints",
        "/v1/vpgs/{vpgIdentifier}/checkpoints/stats",
    ] {
        asked.get(template, &[&vpg]).await;
    }
    let template = "/v1/vpgs/{vpgIdentifier}/checkpoints";
    let body = json!({ "checkpointName": "judged, too" });
    let task = asked
        .ask(Method::POST, template, &[&vpg], "", Some(body))
        .await;
    asked
        .get("/v1/tasks/{taskIdentifier}", &[task.as_str().unwrap()])
        .await;

    let body = json!({ "jflr": { "vpgIdentifier": vpg, "vmIdentifier": vm, "checkpointIdentifier": checkpoint } });
    let session = asked
        .ask(Method::POST, "/v1/flrs", &[], "", Some(body))
        .await;
    let session = session.as_str().unwrap().to_owned();
    let mounted =
        |world: &zvm_sim::View<'_>| world.sessions()[0].state == zvm_sim::FlrState::Mounted;
    asked.zvm.wait(mounted).await;
    asked.get("/v1/flrs", &[]).await;
    asked
        .get("/v1/flrs/{flrSessionIdentifier}", &[&session])
        .await;
    let etc = "partition#0 Ext4/etc";
    let body = json!({ "path": etc, "pageNumber": 1, "pageSize": 100 });
    asked
        .ask(
            Method::POST,
            "/v1/flrs/{flrSessionIdentifier}/browse",
            &[&session],
            "",
            Some(body),
        )
        .await;
    let body = json!({ "pathList": [etc] });
    asked
        .ask(
            Method::POST,
            "/v1/flrs/{flrSessionIdentifier}/download",
            &[&session],
            "",
            Some(body),
        )
        .await;
    asked
        .ask(
            Method::DELETE,
            "/v1/flrs/{flrSessionIdentifier}",
            &[&session],
            "",
            None,
        )
        .await;
    asked.get("/v1/tasks", &[]).await;

    asked.get("/v1/serverDateTime/serverDateTimeUtc", &[]).await;
    asked
        .get("/v1/serverDateTime/serverDateTimeLocal", &[])
        .await;
    let template = "/v1/serverDateTime/dateTimeArgument";
    asked
        .ask(
            Method::GET,
            template,
            &[],
            "?dateTime=2025-03-01T10:00:00Z",
            None,
        )
        .await;
    asked
}

fn operation_of<'a>(document: &'a Value, operation: &str) -> &'a Value {
    let (method, path) = operation.split_once(' ').unwrap();
    &document["paths"][documented_path(path)][method.to_lowercase()]
}

#[tokio::test]
async fn every_answer_and_request_has_the_vendors_shape() {
    let Some(document) = document() else { return };
    let schemas = Schemas::new(&document);
    let asked = ask_everything().await;

    let served: BTreeSet<String> = OPERATIONS
        .iter()
        .filter(|operation| !UNDOCUMENTED.contains(&operation.path))
        .map(|operation| format!("{} {}", operation.method, operation.path))
        .collect();
    let answered: BTreeSet<String> = asked.answers.keys().cloned().collect();
    assert_eq!(served, answered, "every operation is asked");

    let mut found = Found::default();
    for (operation, (status, answer)) in &asked.answers {
        assert_eq!(*status, 200, "{operation}: {answer}");
        let schema = schemas.converted(
            &operation_of(&document, operation)["responses"]["200"]["content"]["application/json"]
                ["schema"],
        );
        let mut answer = answer.clone();
        schemas.fit(&schema, &mut answer, &mut found);
        for error in schemas.errors(&schema, &answer) {
            found.problems.push(format!("{operation}: {error}"));
        }
    }
    for (operation, body) in &asked.bodies {
        let schema = &operation_of(&document, operation)["requestBody"]["content"]["application/json"]
            ["schema"];
        for error in schemas.errors(schema, body) {
            found
                .problems
                .push(format!("{operation}, request: {error}"));
        }
    }
    assert!(found.problems.is_empty(), "{:#?}", found.problems);
    let unused: Vec<_> = EXTRA
        .iter()
        .enumerate()
        .filter(|(index, _)| !found.extra.contains(index))
        .collect();
    assert!(unused.is_empty(), "no longer there: {unused:?}");
}

#[tokio::test]
async fn refused_logins_have_the_vendors_shape() {
    let Some(document) = document() else { return };
    let schemas = Schemas::new(&document);
    let zvm = fast().await;
    let (status, body) = zvm.password("wrong").await;
    let responses = &operation_of(
        &document,
        "POST /auth/realms/{realm}/protocol/openid-connect/token",
    )["responses"];
    let schema = &responses[status.as_str()]["content"]["application/json"]["schema"];
    assert_eq!(schemas.errors(schema, &body), Vec::<String>::new());
}

/// The judge itself: what is not the vendor's is found.
#[test]
fn the_judge_finds_strangers() {
    let Some(document) = document() else { return };
    let schemas = Schemas::new(&document);
    let schema =
        json!({ "$ref": "#/components/schemas/Zerto.Zvm.Api.Interfaces.Vpgs.CheckpointApi" });
    let judge = |mut answer: Value| {
        let mut found = Found::default();
        schemas.fit(&schema, &mut answer, &mut found);
        found.problems.len() + schemas.errors(&schema, &answer).len()
    };
    let good = json!({ "CheckpointIdentifier": "1", "TimeStamp": "2025-03-01T10:00:05.000Z", "Tag": null, "Type": 0 });
    assert_eq!(judge(good.clone()), 0);
    for (member, value) in [
        ("Stranger", json!(1)),
        ("Type", json!(3)),
        ("Type", json!(null)),
        ("TimeStamp", json!("yesterday")),
        ("CheckpointIdentifier", json!(1)),
    ] {
        let mut bad = good.clone();
        bad[member] = value;
        assert!(judge(bad) > 0, "{member}");
    }
}
