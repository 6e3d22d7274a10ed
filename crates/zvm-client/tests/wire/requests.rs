//! Requests, exactly as they are sent, and the vendor's OpenAPI file as their judge.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use url::Url;
use zvm_client::{CheckpointId, Error, FlrSessionId, VmFilter, Window};

use crate::server::{Request, Server, ok};

const ODD: &str = "11-22.vm 1/2?3#4%ä;&=+";
const ODD_ENCODED: &str = "11-22.vm%201%2F2%3F3%234%25%C3%A4%3B%26%3D%2B";

/// One answer that every call can read.
fn reply(request: &Request) -> crate::server::Reply {
    let path = request.target.split('?').next().unwrap();
    ok(match path.rsplit('/').next().unwrap() {
        "serverDateTimeUtc" => r#""2025-03-01T10:00:05Z""#,
        "localsite" => r#"{"SiteIdentifier":"s"}"#,
        "virtualizationsites" => r#"[{"SiteIdentifier":"site 1"}]"#,
        "stats" => "{}",
        "browse" => r#"{"PathItems":[]}"#,
        "download" => r#""v1/downloads/a""#,
        "flrs" if request.method == "POST" => r#""session""#,
        "checkpoints" if request.method == "POST" => r#""task""#,
        _ if path == format!("/v1/vpgs/{ODD_ENCODED}") => r#"{"VpgIdentifier":"v"}"#,
        _ => "[]",
    })
}

/// Every call once.
async fn every_request() -> Vec<Request> {
    let server = Server::start(reply).await;
    let zvm = server.zvm();
    let session = FlrSessionId(ODD.into());
    let window = Window {
        from: "2024-11-13T00:00:00.0009Z".parse().unwrap(),
        to: "2024-11-13T01:02:03.0001Z".parse().unwrap(),
    };
    zvm.server_time().await.unwrap();
    zvm.local_site().await.unwrap();
    zvm.vms(&VmFilter::default()).await.unwrap();
    zvm.vms(&VmFilter {
        identifier: Some(ODD.into()),
        name: None,
    })
    .await
    .unwrap();
    zvm.vms(&VmFilter {
        identifier: None,
        name: Some("app 01".into()),
    })
    .await
    .unwrap();
    zvm.unprotected_vms().await.unwrap();
    zvm.vpg(ODD).await.unwrap();
    zvm.vpgs().await.unwrap();
    zvm.vpg_statuses().await.unwrap();
    zvm.vpg_sub_statuses().await.unwrap();
    zvm.insert_checkpoint(ODD, "ai:claude | edit \"a\" (b=c)")
        .await
        .unwrap();
    zvm.checkpoints(ODD, window).await.unwrap();
    zvm.journal_stats(ODD).await.unwrap();
    zvm.points_in_time(ODD, "v&pg", window).await.unwrap();
    zvm.task(ODD).await.unwrap();
    zvm.mount("vm", "vpg", CheckpointId(4712)).await.unwrap();
    zvm.flr_sessions("vm").await.unwrap();
    zvm.flr_session(&session).await.unwrap();
    zvm.browse(&session, "partition#0 Ext4/etc", 10)
        .await
        .unwrap();
    zvm.download(&session, &["a", "b"]).await.unwrap();
    zvm.unmount(&session).await.unwrap();
    // Names of statuses are asked for once.
    zvm.clone().vpg_statuses().await.unwrap();
    zvm.vpg_sub_statuses().await.unwrap();
    server.calls()
}

#[tokio::test]
async fn requests_are_as_the_openapi_file_says() {
    let calls = every_request().await;
    let window = "startDate=2024-11-13T00%3A00%3A00.000Z&endDate=2024-11-13T01%3A02%3A03.001Z";
    let odd_query = "11-22.vm+1%2F2%3F3%234%25%C3%A4%3B%26%3D%2B";
    let get = |target: &str| (format!("GET {target}"), Value::Null);
    let post = |target: String, body| (format!("POST {target}"), body);
    let browse = |page: usize| {
        let body = json!({"path": "partition#0 Ext4/etc", "pageNumber": page, "pageSize": 1000});
        post(format!("/v1/flrs/{ODD_ENCODED}/browse"), body)
    };
    let expected = [
        get("/v1/serverDateTime/serverDateTimeUtc"),
        get("/v1/localsite"),
        get("/v1/vms"),
        get(&format!("/v1/vms?vmIdentifier={odd_query}")),
        get("/v1/vms?vmName=app+01"),
        get("/v1/virtualizationsites"),
        get("/v1/virtualizationsites/site%201/vms"),
        get(&format!("/v1/vpgs/{ODD_ENCODED}")),
        get("/v1/vpgs"),
        get("/v1/vpgs/statuses"),
        get("/v1/vpgs/substatuses"),
        post(
            format!("/v1/vpgs/{ODD_ENCODED}/checkpoints"),
            json!({"checkpointName": "ai:claude | edit \"a\" (b=c)"}),
        ),
        get(&format!("/v1/vpgs/{ODD_ENCODED}/checkpoints?{window}")),
        get(&format!("/v1/vpgs/{ODD_ENCODED}/checkpoints/stats")),
        get(&format!(
            "/v1/vms/{ODD_ENCODED}/pointsInTime?vpgIdentifier=v%26pg&{window}"
        )),
        get(&format!("/v1/tasks/{ODD_ENCODED}")),
        post(
            "/v1/flrs".into(),
            json!({"jflr": {"vpgIdentifier": "vpg", "vmIdentifier": "vm", "checkpointIdentifier": "4712"}}),
        ),
        get("/v1/flrs?vmIdentifier=vm"),
        get(&format!("/v1/flrs/{ODD_ENCODED}")),
        browse(0),
        browse(1),
        post(
            format!("/v1/flrs/{ODD_ENCODED}/download"),
            json!({"pathList": ["a", "b"]}),
        ),
        get("/v1/downloads/a"),
        (format!("DELETE /v1/flrs/{ODD_ENCODED}"), Value::Null),
    ];
    let sent = calls.iter().map(|call| {
        (
            call.line(),
            serde_json::from_str(&call.body).unwrap_or_default(),
        )
    });
    assert_eq!(sent.collect::<Vec<_>>(), expected);
    for call in &calls {
        assert_eq!(call.header("authorization"), Some("Bearer access-1"));
        assert_eq!(call.header("cookie"), None);
        if !call.target.starts_with("/v1/downloads") {
            assert_eq!(
                call.header("accept"),
                Some("application/json"),
                "{}",
                call.line()
            );
        }
        let json = call.header("content-type") == Some("application/json");
        assert_eq!(json, call.method == "POST", "{}", call.line());
    }
}

#[tokio::test]
async fn an_identifier_that_is_no_path_segment_is_not_sent() {
    let server = Server::start(reply).await;
    let zvm = server.zvm();
    for id in ["", ".", ".."] {
        assert!(
            matches!(zvm.vpg(id).await, Err(Error::NotFound { .. })),
            "{id}"
        );
        assert!(
            matches!(
                zvm.insert_checkpoint(id, "tag").await,
                Err(Error::NotFound { .. })
            ),
            "{id}"
        );
        zvm.unmount(&FlrSessionId(id.into())).await.unwrap_err();
    }
    assert!(server.seen().is_empty());
}

/// `{"$ref": "#/components/schemas/X"}` → X.
fn resolved<'a>(api: &'a Value, schema: &'a Value) -> &'a Value {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(name) => &api["components"]["schemas"][name.rsplit('/').next().unwrap()],
        None => schema,
    }
}

/// Every member of a body is one of the schema, in its exact spelling and with its type.
fn check_body(api: &Value, schema: &Value, body: &Value, place: &str) {
    let schema = resolved(api, schema);
    match body {
        Value::Object(members) => {
            for (name, value) in members {
                let member = &schema["properties"][name];
                assert!(member.is_object(), "{place}: there is no member {name}");
                check_body(api, member, value, &format!("{place}.{name}"));
            }
        }
        Value::Array(values) => {
            assert_eq!(schema["type"], "array", "{place}");
            for value in values {
                check_body(api, &schema["items"], value, place);
            }
        }
        Value::String(_) => assert_eq!(schema["type"], "string", "{place}"),
        Value::Number(_) => assert_eq!(schema["type"], "integer", "{place}"),
        other => panic!("{place}: {other}"),
    }
}

#[tokio::test]
async fn the_openapi_file_knows_every_request() {
    let Some(file) = std::env::var_os("ZVM_OPENAPI") else {
        eprintln!("SKIPPED: ZVM_OPENAPI names no OpenAPI file");
        return;
    };
    let api: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let paths: BTreeMap<Vec<&str>, &Value> = api["paths"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(path, operations)| (path.split('/').collect(), operations))
        .collect();
    let mut checked = 0;
    for call in every_request().await {
        // Where the bytes are is the ZVM's own affair.
        if call.target.starts_with("/v1/downloads") {
            continue;
        }
        let url = Url::parse(&format!("https://zvm{}", call.target)).unwrap();
        let segments: Vec<&str> = url.path().split('/').collect();
        let matching = |path: &&Vec<&str>| {
            path.len() == segments.len()
                && path
                    .iter()
                    .zip(&segments)
                    .all(|(known, sent)| known == sent || known.starts_with('{'))
        };
        // A path in letters comes before one with a placeholder.
        let path = paths
            .keys()
            .filter(matching)
            .min_by_key(|path| path.iter().filter(|part| part.starts_with('{')).count())
            .unwrap_or_else(|| panic!("no path for {}", call.line()));
        let operation = &paths[path][call.method.to_ascii_lowercase()];
        assert!(operation.is_object(), "no method for {}", call.line());
        for (name, _) in url.query_pairs() {
            let known = operation["parameters"].as_array().unwrap();
            assert!(
                known
                    .iter()
                    .any(|parameter| parameter["in"] == "query" && parameter["name"] == *name),
                "no parameter {name} of {}",
                call.line()
            );
        }
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        assert_eq!(
            schema.is_object(),
            !call.body.is_empty(),
            "body of {}",
            call.line()
        );
        if !call.body.is_empty() {
            check_body(
                &api,
                schema,
                &serde_json::from_str(&call.body).unwrap(),
                &call.line(),
            );
        }
        checked += 1;
    }
    assert_eq!(checked, 23);
}
