#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use common::{column, fast, message, start};
use serde_json::Value;
use zvm_sim::Scenario;
use zvm_sim::scenario::Vpg;
use zvm_sim::switches::Filters;

#[tokio::test]
async fn a_vm_has_a_row_for_each_of_its_vpgs() {
    let zvm = fast().await;
    let rows = zvm.json("/v1/vms?vmName=app01").await;
    assert_eq!(
        column(&rows, "VpgName"),
        ["app01-local", "app01-dr", "app01-archive"]
    );
    let ids = column(&rows, "VmIdentifier");
    assert!(ids.iter().all(|id| *id == zvm.vm("app01")));
    let link = rows[0]["Link"]["identifier"].as_str().unwrap();
    assert_eq!(
        link,
        format!(
            "{}?VpgIdentifier={}",
            zvm.vm("app01"),
            zvm.vpg("app01-local")
        )
    );
    assert_eq!(rows[0]["Status"], 1);
    assert_eq!(rows[0]["EnabledActions"]["IsFlrEnabled"], true);
    assert_eq!(
        rows[0]["VmNetworkInformation"]["NetworkAdapters"][0]["IpAddresses"][0],
        "10.20.0.21"
    );
    assert_eq!(rows[0]["ProtectedSite"]["type"], "LocalSiteApi");
    assert_eq!(rows[0]["RecoverySite"]["type"], "PeerSiteApi");
}

#[tokio::test]
async fn names_are_not_unique_and_filters_know_no_letter_case() {
    let zvm = fast().await;
    let rows = zvm.json("/v1/vms?VMNAME=WEB").await;
    let ids = column(&rows, "VmIdentifier");
    assert_eq!(ids.len(), 2);
    assert_ne!(ids[0], ids[1]);
    let by_id = zvm
        .json(&format!("/v1/vms?vmidentifier={}", ids[0].to_uppercase()))
        .await;
    assert_eq!(column(&by_id, "VmIdentifier"), [ids[0]]);
    assert_eq!(
        zvm.json("/v1/vms?vmName=we").await,
        Value::Array(Vec::new())
    );
}

#[tokio::test]
async fn filters_can_be_parts_or_ignored() {
    let zvm = fast().await;
    let all = zvm.json("/v1/vms").await.as_array().unwrap().len();
    zvm.sim
        .update(|switches| switches.filters = Filters::Substring);
    assert_eq!(
        zvm.json("/v1/vms?vmName=PP0")
            .await
            .as_array()
            .unwrap()
            .len(),
        3
    );
    zvm.sim
        .update(|switches| switches.filters = Filters::Ignored);
    assert_eq!(
        zvm.json("/v1/vms?vmName=nobody")
            .await
            .as_array()
            .unwrap()
            .len(),
        all
    );
}

#[tokio::test]
async fn enumerations_are_filtered_by_number_or_name() {
    let zvm = fast().await;
    for filter in ["protectedSiteType=AWS", "protectedSiteType=3"] {
        let rows = zvm.json(&format!("/v1/vms?{filter}")).await;
        assert_eq!(column(&rows, "VmName"), ["cloud01"]);
    }
    let rows = zvm
        .json("/v1/vpgs?subStatus=ReplicationPausedUserInitiated")
        .await;
    assert_eq!(column(&rows, "VpgName"), ["paused01"]);
}

#[tokio::test]
async fn the_path_form_needs_the_vpg_where_there_are_several() {
    let zvm = fast().await;
    let one = zvm.json(&format!("/v1/vms/{}", zvm.vm("jp-ubuntu"))).await;
    assert_eq!(one["VmName"], "jp-ubuntu");
    let path = format!("/v1/vms/{}", zvm.vm("app01"));
    let (status, text) = message(zvm.get(&path).await).await;
    assert_eq!(status, 400);
    assert!(text.contains("more than one VPG"), "{text}");
    let vpg = zvm.vpg("app01-dr");
    let one = zvm.json(&format!("{path}?vpgIdentifier={vpg}")).await;
    assert_eq!(one["VpgName"], "app01-dr");
    assert_eq!(zvm.get("/v1/vms/none.vm-1").await.status(), 404);
}

#[tokio::test]
async fn unprotected_vms_are_at_their_site() {
    let zvm = fast().await;
    let site = zvm.json("/v1/localsite").await["SiteIdentifier"]
        .as_str()
        .unwrap()
        .to_owned();
    let vms = zvm
        .json(&format!("/v1/virtualizationsites/{site}/vms"))
        .await;
    assert_eq!(column(&vms, "VmName"), ["lonely"]);
    assert_eq!(
        zvm.json("/v1/vms?vmName=lonely").await,
        Value::Array(Vec::new())
    );
    let sites = zvm.json("/v1/virtualizationsites").await;
    assert_eq!(
        column(&sites, "VirtualizationSiteName"),
        ["Production", "Recovery", "Cloud"]
    );
}

#[tokio::test]
async fn states_have_their_names_in_a_list() {
    let zvm = fast().await;
    let names = zvm.json("/v1/vpgs/substatuses").await;
    let vpg = zvm.json(&format!("/v1/vpgs/{}", zvm.vpg("paused01"))).await;
    let number = usize::try_from(vpg["SubStatus"].as_u64().unwrap()).unwrap();
    assert_eq!(names[number], "ReplicationPausedUserInitiated");
    assert_eq!(vpg["SubStatusDescription"], names[number]);
    assert_eq!(zvm.json("/v1/vpgs/statuses").await[1], "MeetingSLA");
}

#[tokio::test]
async fn a_vpgs_state_can_be_switched() {
    let zvm = fast().await;
    zvm.sim.update(|switches| {
        let own = switches.vpg_mut("jp-ubuntu");
        own.sub_status = Some("BitmapSync".into());
        own.status = Some(2.into());
    });
    let rows = zvm.json("/v1/vms?vmName=jp-ubuntu").await;
    assert_eq!(
        (&rows[0]["Status"], &rows[0]["SubStatus"]),
        (&2.into(), &23.into())
    );
}

#[tokio::test]
async fn this_zvm_may_be_the_recovery_side() {
    let mut scenario = Scenario::fast();
    scenario.vpgs.push(Vpg {
        protected_site: Some("Recovery".to_owned()),
        recovery_site: Some("Production".to_owned()),
        ..Vpg::of("from-peer", &["lonely"])
    });
    let zvm = start(scenario).await;
    let rows = zvm.json("/v1/vms?vmName=lonely").await;
    assert_eq!(rows[0]["ProtectedSite"]["type"], "PeerSiteApi");
    assert_eq!(rows[0]["RecoverySite"]["type"], "LocalSiteApi");
}

#[tokio::test]
async fn identifiers_and_names_may_have_any_characters() {
    let mut scenario = Scenario::fast();
    let vm = scenario.vm_mut("jp-ubuntu").unwrap();
    vm.id = Some("srv/1?x#y%20z ü.vm-1".to_owned());
    vm.name = "jp\u{1b}[31m\u{202e}\"ubuntu\"".to_owned();
    vm.key = Some("jp-ubuntu".to_owned());
    let zvm = start(scenario).await;
    let rows = zvm
        .json(&format!(
            "/v1/vms?vmIdentifier={}",
            "srv%2F1%3Fx%23y%2520z%20%C3%BC.vm-1"
        ))
        .await;
    assert_eq!(rows[0]["VmName"], "jp\u{1b}[31m\u{202e}\"ubuntu\"");
    let href = rows[0]["Link"]["href"]
        .as_str()
        .unwrap()
        .replace(zvm.sim.url(), "");
    assert_eq!(
        zvm.json(&href).await["VmIdentifier"],
        "srv/1?x#y%20z ü.vm-1"
    );
}

#[tokio::test]
async fn what_is_not_there_is_404_and_other_methods_405() {
    let zvm = fast().await;
    assert_eq!(zvm.get("/v1/vras").await.status(), 404);
    assert_eq!(zvm.get("/").await.status(), 404);
    assert_eq!(zvm.get("/sim/switches").await.status(), 404);
    assert_eq!(zvm.delete("/v1/vms").await.status(), 405);
    let xml = zvm
        .request(reqwest::Method::GET, "/v1/vms")
        .header("accept", "application/xml");
    assert_eq!(xml.send().await.unwrap().status(), 406);
}

#[tokio::test]
async fn the_clock_can_be_another_one() {
    let zvm = fast().await;
    let read = |text: Value| text.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let host = jiff::Timestamp::now();
    let own = read(zvm.json("/v1/serverDateTime/serverDateTimeUtc").await);
    assert!(own.as_millisecond().abs_diff(host.as_millisecond()) < 10_000);
    zvm.sim.update(|switches| {
        switches.clock_offset_ms = -3_600_000;
        switches.utc_offset_minutes = 90;
    });
    let own = read(zvm.json("/v1/serverDateTime/serverDateTimeUtc").await);
    assert!(own.as_millisecond() < host.as_millisecond() - 3_500_000);
    let local = zvm.json("/v1/serverDateTime/serverDateTimeLocal").await;
    assert!(local.as_str().unwrap().ends_with("+01:30"), "{local}");
    assert!(read(local).as_millisecond() < host.as_millisecond() - 3_500_000);
    let argument = zvm
        .json("/v1/serverDateTime/dateTimeArgument?dateTime=2025-03-01T12:00:00")
        .await;
    assert_eq!(argument, "2025-03-01T10:30:00.000Z");
    let stats = zvm
        .json(&format!("{}/stats", zvm.checkpoints("jp-ubuntu")))
        .await;
    assert!(read(stats["Latest"]["TimeStamp"].clone()) < host);
}
