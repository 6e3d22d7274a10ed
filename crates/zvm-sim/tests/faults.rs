#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::time::{Duration, Instant};

use common::{Zvm, fast, start};
use serde_json::{Value, json};
use zvm_sim::switches::{Casing, Dates, Enums, ErrorBody, Ids, StatusOrder};
use zvm_sim::{Fault, Outcome, Scenario};

async fn failed_insert(zvm: &Zvm) -> (u16, String) {
    let answer = zvm
        .post(
            &zvm.checkpoints("cloud01"),
            json!({ "checkpointName": "x" }),
        )
        .await;
    (answer.status().as_u16(), answer.text().await.unwrap())
}

#[tokio::test]
async fn names_dates_and_numbers_have_dialects() {
    let zvm = fast().await;
    zvm.sim.update(|switches| {
        switches.casing = Casing::Camel;
        switches.dates = Dates::Milliseconds;
        switches.enums = Enums::Names;
        switches.ids = Ids::LinkOnly;
    });
    let rows = zvm.json("/v1/vms?vmName=jp-ubuntu").await;
    let row = &rows[0];
    assert_eq!(row["vmName"], "jp-ubuntu");
    assert_eq!(row["status"], "MeetingSLA");
    assert_eq!(row["entities"]["protected"], "VCVpg");
    assert!(row.get("vmIdentifier").is_none() && row.get("VmIdentifier").is_none());
    let id = format!(
        "{}?VpgIdentifier={}",
        zvm.vm("jp-ubuntu"),
        zvm.vpg("jp-ubuntu")
    );
    assert_eq!(row["link"]["identifier"], id);
    let stats = zvm
        .json(&format!("{}/stats", zvm.checkpoints("jp-ubuntu")))
        .await;
    let time = stats["latest"]["timeStamp"].as_str().unwrap();
    assert!(
        time.starts_with("/Date(") && time.ends_with("000)/"),
        "{time}"
    );
    let task = zvm.insert("jp-ubuntu", "x").await;
    let task = zvm.task(&task).await;
    assert!(task.get("taskIdentifier").is_none());
    assert!(task["link"]["identifier"].is_string());
}

#[tokio::test]
async fn milliseconds_of_checkpoints_can_be_shown() {
    let zvm = fast().await;
    zvm.sim.update(|switches| switches.whole_seconds = false);
    zvm.wait(|world| world.latest_checkpoint("jp-ubuntu").is_some())
        .await;
    let rows = zvm.json(&zvm.checkpoints("jp-ubuntu")).await;
    let parts: Vec<&str> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            row["TimeStamp"]
                .as_str()
                .unwrap()
                .rsplit('.')
                .next()
                .unwrap()
        })
        .collect();
    assert!(parts.iter().all(|part| part.len() == 4), "{parts:?}");
}

#[tokio::test]
async fn statuses_three_and_four_can_be_swapped() {
    let zvm = fast().await;
    let before = zvm.json("/v1/vpgs/statuses").await;
    zvm.sim.update(|switches| {
        switches.statuses = StatusOrder::HistoryFirst;
        switches.vpg_mut("jp-ubuntu").status = Some(3.into());
    });
    let after = zvm.json("/v1/vpgs/statuses").await;
    assert_eq!((&before[3], &before[4]), (&after[4], &after[3]));
    let vpg = zvm
        .json(&format!("/v1/vpgs/{}", zvm.vpg("jp-ubuntu")))
        .await;
    assert_eq!(vpg["StatusDescription"], "HistoryNotMeetingSLA");
}

#[tokio::test]
async fn errors_have_dialects() {
    let zvm = fast().await;
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let (_, text) = failed_insert(&zvm).await;
    assert!(json(&text)["Message"].is_string());
    zvm.sim
        .update(|switches| switches.error_body = ErrorBody::Problem);
    let (status, text) = failed_insert(&zvm).await;
    assert_eq!(json(&text)["status"], status);
    zvm.sim
        .update(|switches| switches.error_body = ErrorBody::Html);
    assert!(failed_insert(&zvm).await.1.starts_with("<html>"));
    zvm.sim
        .update(|switches| switches.error_body = ErrorBody::Empty);
    assert_eq!(failed_insert(&zvm).await, (400, String::new()));
}

#[tokio::test]
async fn a_post_that_took_effect_can_lose_its_answer() {
    let zvm = fast().await;
    zvm.sim
        .add_fault(Fault::cut_after("POST", "/v1/vpgs/*/checkpoints"));
    let path = zvm.checkpoints("jp-ubuntu");
    let body = json!({ "checkpointName": "lost answer" });
    let lost = zvm
        .request(reqwest::Method::POST, &path)
        .json(&body)
        .send()
        .await;
    assert!(lost.is_err());
    zvm.wait(|world| world.is_listed("jp-ubuntu", "lost answer"))
        .await;
    let record = zvm
        .sim
        .requests()
        .into_iter()
        .find(|own| own.is("POST", "/checkpoints"))
        .unwrap();
    assert_eq!(record.status, None);
    zvm.pin("jp-ubuntu", "answered").await;
}

#[tokio::test]
async fn a_connection_can_be_cut_before_anything_happens() {
    let zvm = fast().await;
    zvm.sim
        .add_fault(Fault::cut_before("POST", "/v1/vpgs/*/checkpoints"));
    let path = zvm.checkpoints("jp-ubuntu");
    let body = json!({ "checkpointName": "never arrived" });
    assert!(
        zvm.request(reqwest::Method::POST, &path)
            .json(&body)
            .send()
            .await
            .is_err()
    );
    zvm.pin("jp-ubuntu", "arrived").await;
    assert_eq!(zvm.sim.journal("jp-ubuntu").len(), 1);
}

#[tokio::test]
async fn answers_can_be_replaced() {
    let zvm = fast().await;
    zvm.sim.add_fault(Fault {
        retry_after: Some(7),
        ..Fault::answer("GET", "/v1/vms", 503, Outcome::Html)
    });
    let answer = zvm.get("/v1/vms").await;
    assert_eq!(answer.status(), 503);
    assert_eq!(answer.headers()["retry-after"], "7");
    assert_eq!(answer.headers()["content-type"], "text/html");
    assert_eq!(zvm.get("/v1/vms").await.status(), 200, "once");

    zvm.sim
        .add_fault(Fault::answer("GET", "/v1/vms", 200, Outcome::Empty));
    assert!(zvm.get("/v1/vms").await.bytes().await.unwrap().is_empty());
    zvm.sim
        .add_fault(Fault::answer("GET", "/v1/vms", 500, Outcome::Problem));
    assert_eq!(
        zvm.get("/v1/vms").await.json::<Value>().await.unwrap()["status"],
        500
    );
    zvm.sim
        .add_fault(Fault::answer("GET", "/v1/vms", 0, Outcome::TruncatedJson));
    let text = zvm.get("/v1/vms").await.text().await.unwrap();
    assert!(text.starts_with("[{") && serde_json::from_str::<Value>(&text).is_err());
    zvm.sim
        .add_fault(Fault::answer("GET", "/v1/vms", 0, Outcome::CutBody));
    assert!(zvm.get("/v1/vms").await.bytes().await.is_err());
    zvm.sim.add_fault(Fault {
        text: "[1,2".to_owned(),
        ..Fault::answer("GET", "/v1/vms", 200, Outcome::Text)
    });
    assert_eq!(zvm.get("/v1/vms").await.text().await.unwrap(), "[1,2");
    zvm.sim.add_fault(Fault {
        huge_bytes: 5_000_000,
        ..Fault::answer("GET", "/v1/vms", 200, Outcome::Huge)
    });
    let huge = zvm.get("/v1/vms").await.bytes().await.unwrap();
    assert!(huge.len() > 4_800_000);
    assert!(serde_json::from_slice::<Vec<Option<u8>>>(&huge).is_ok());
}

#[tokio::test]
async fn an_answer_can_lie_in_its_headers_and_its_bytes() {
    let zvm = fast().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("body");
    std::fs::write(&file, b"PK\x03\x04\xff").unwrap();
    let headers = [
        ("Location", "https://elsewhere.example/"),
        ("content-type", "text/html"),
    ];
    zvm.sim.add_fault(Fault {
        file,
        headers: headers
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ..Fault::answer("GET", "/v1/vms", 201, Outcome::File)
    });
    let answer = zvm.get("/v1/vms").await;
    assert_eq!(answer.status(), 201);
    assert_eq!(answer.headers()["location"], "https://elsewhere.example/");
    assert_eq!(answer.headers().get_all("content-type").iter().count(), 1);
    assert_eq!(answer.headers()["content-type"], "text/html");
    assert_eq!(&answer.bytes().await.unwrap()[..], b"PK\x03\x04\xff");
}

#[tokio::test]
async fn a_gateway_can_fail_after_the_request_took_effect() {
    let zvm = fast().await;
    zvm.sim.add_fault(Fault {
        effect: true,
        ..Fault::answer("POST", "/v1/vpgs/*/checkpoints", 504, Outcome::Html)
    });
    let answer = zvm
        .post(
            &zvm.checkpoints("jp-ubuntu"),
            json!({ "checkpointName": "x" }),
        )
        .await;
    assert_eq!(answer.status(), 504);
    zvm.wait(|world| world.is_listed("jp-ubuntu", "x")).await;
}

#[tokio::test]
async fn a_task_id_can_come_without_quotes() {
    let zvm = fast().await;
    zvm.sim.add_fault(Fault {
        outcome: Outcome::BareString,
        ..Fault::on("POST", "/v1/vpgs/*/checkpoints")
    });
    let answer = zvm
        .post(
            &zvm.checkpoints("jp-ubuntu"),
            json!({ "checkpointName": "x" }),
        )
        .await;
    assert_eq!(
        answer.headers()["content-type"],
        "text/plain; charset=utf-8"
    );
    let id = answer.text().await.unwrap();
    assert_eq!(zvm.task(&id).await["Type"], "InsertTaggedCP");
}

#[tokio::test]
async fn faults_meet_one_vpg_after_some_requests() {
    let zvm = fast().await;
    zvm.sim.add_fault(Fault {
        vpg: Some("app01-dr".to_owned()),
        skip: 1,
        times: 2,
        ..Fault::on("GET", "/v1/vpgs/*/checkpoints/stats")
    });
    let statuses = async |vpg: &str| {
        let mut statuses = Vec::new();
        for _ in 0..4 {
            let path = format!("{}/stats", zvm.checkpoints(vpg));
            statuses.push(zvm.get(&path).await.status().as_u16());
        }
        statuses
    };
    assert_eq!(statuses("app01-local").await, [200, 200, 200, 200]);
    assert_eq!(statuses("app01-dr").await, [200, 503, 503, 200]);
    zvm.sim.add_fault(Fault {
        times: 0,
        ..Fault::on("", "/**")
    });
    assert_eq!(zvm.get("/v1/vms").await.status(), 503);
    zvm.sim.clear_faults();
    assert_eq!(zvm.get("/v1/vms").await.status(), 200);
}

#[tokio::test]
async fn answers_can_be_late_or_stall() {
    let zvm = fast().await;
    zvm.sim.add_fault(Fault {
        delay: Duration::from_millis(120),
        outcome: Outcome::Answer,
        ..Fault::on("GET", "/v1/localsite")
    });
    let start = Instant::now();
    assert_eq!(zvm.get("/v1/localsite").await.status(), 200);
    assert!(start.elapsed() >= Duration::from_millis(120));
    zvm.sim.add_fault(Fault {
        outcome: Outcome::Stall,
        ..Fault::on("GET", "/v1/localsite")
    });
    let answer = zvm.get("/v1/localsite").await;
    assert_eq!(answer.status(), 200);
    assert!(
        tokio::time::timeout(Duration::from_millis(200), answer.bytes())
            .await
            .is_err()
    );
}

#[tokio::test]
async fn the_token_endpoint_has_faults_too() {
    let zvm = fast().await;
    zvm.sim
        .add_fault(Fault::answer("POST", "/auth/**", 502, Outcome::Html));
    let url = zvm.url("/auth/realms/zerto/protocol/openid-connect/token");
    let answer = zvm.http.post(url).form(&[("a", "b")]).send().await.unwrap();
    assert_eq!(answer.status(), 502);
    assert_eq!(zvm.password("simulated-password").await.0, 200);
}

#[tokio::test]
async fn switches_and_faults_can_be_in_the_scenario() {
    let scenario = Scenario::from_toml(
        r#"
        [timings]
        auto_checkpoint = "50ms"
        task = "5ms"
        listing_lag = ["1ms", "9ms"]

        [switches]
        casing = "camel"
        error_body = "html"
        task_unknown_for = "1ms"
        [switches.vpg.app01-dr]
        insert = "refused"
        listing_lag = "20ms"

        [[fault]]
        method = "GET"
        path = "/v1/vpgs"
        then = "message"
        status = 500
        delay = "1ms"
        "#,
    )
    .unwrap();
    let zvm = start(scenario).await;
    assert_eq!(zvm.json("/v1/localsite").await["siteName"], "Production");
    assert_eq!(zvm.get("/v1/vpgs").await.status(), 500);
    assert_eq!(zvm.get("/v1/vpgs").await.status(), 200);
    let answer = zvm
        .post(
            &zvm.checkpoints("app01-dr"),
            json!({ "checkpointName": "x" }),
        )
        .await;
    assert_eq!(answer.status(), 400);
    zvm.pin("app01-local", "x").await;
}

#[tokio::test]
async fn a_held_request_waits_until_it_is_let_go() {
    let zvm = fast().await;
    zvm.sim
        .add_fault(Fault::hold("POST", "/v1/vpgs/*/checkpoints"));
    let path = zvm.checkpoints("jp-ubuntu");
    let body = json!({ "checkpointName": "held" });
    let asked = zvm.request(reqwest::Method::POST, &path).json(&body).send();
    let asked = tokio::spawn(asked);
    zvm.wait(|world| world.held().count() == 1).await;
    let held = zvm.sim.held();
    assert_eq!((held[0].method.as_str(), &held[0].path), ("POST", &path));
    assert!(!held[0].carried_out);
    assert_eq!(zvm.sim.journal("jp-ubuntu"), []);
    zvm.sim.let_go();
    assert_eq!(asked.await.unwrap().unwrap().status(), 200);
    zvm.wait(|world| world.is_listed("jp-ubuntu", "held")).await;
    assert_eq!(zvm.sim.held(), []);
}

#[tokio::test]
async fn what_a_dead_client_asked_for_is_carried_out_unless_it_is_cut() {
    let zvm = fast().await;
    let path = zvm.checkpoints("jp-ubuntu");
    let ask = async |tag: &str| {
        let body = json!({ "checkpointName": tag });
        let asked = zvm.request(reqwest::Method::POST, &path).json(&body).send();
        let asked = tokio::spawn(asked);
        zvm.wait(|world| world.held().count() == 1).await;
        asked.abort();
        let _ = asked.await;
    };
    zvm.sim
        .add_fault(Fault::hold("POST", "/v1/vpgs/*/checkpoints"));
    ask("cut").await;
    zvm.sim.cut_held();
    zvm.sim
        .add_fault(Fault::hold("POST", "/v1/vpgs/*/checkpoints"));
    ask("late").await;
    zvm.sim.let_go();
    zvm.wait(|world| world.is_listed("jp-ubuntu", "late")).await;
    assert_eq!(zvm.sim.journal("jp-ubuntu").len(), 1);

    zvm.sim
        .add_fault(Fault::hold_answer("POST", "/v1/vpgs/*/checkpoints"));
    ask("answered").await;
    assert!(zvm.sim.held()[0].carried_out);
    zvm.wait(|world| world.is_listed("jp-ubuntu", "answered"))
        .await;
    // It stops with a request held.
    zvm.sim.shutdown().await;
}

#[tokio::test]
async fn somebody_mounts_and_the_time_stays_what_it_was() {
    let zvm = fast().await;
    let checkpoint = zvm.sim.checkpoint_now("app01-dr").await.unwrap();
    let session = zvm
        .sim
        .mount("app01", "app01-dr", &checkpoint)
        .await
        .unwrap();
    let path = format!("/v1/flrs/{session}");
    let before = zvm.json(&path).await[0]["MountTime"].clone();
    zvm.sim
        .update(|switches| switches.clock_offset_ms = 3_600_000);
    assert_eq!(zvm.json(&path).await[0]["MountTime"], before);
    let again = zvm.sim.mount("app01", "app01-dr", &checkpoint).await;
    assert!(again.unwrap_err().to_string().contains("already mounted"));
}
