use crate::support::{World, call, request};
use rewind_core::ErrorCode;
use serde_json::json;
use std::time::Duration;
use zvm_sim::{
    Scenario,
    scenario::{Vm, Vpg},
    switches::{Casing, Enums, Filters, Ids},
};

fn vm(name: &str, key: &str, ips: &[&str]) -> Vm {
    Vm {
        name: name.into(),
        key: Some(key.into()),
        ips: ips.iter().map(|&ip| ip.to_owned()).collect(),
        ..Vm::default()
    }
}

fn scenario() -> Scenario {
    let mut scenario = Scenario::fast();
    scenario.vms.extend([
        vm("DB01", "db-upper", &["10.9.0.1"]),
        vm("mail.example.com", "mail", &["10.9.0.2", "172.17.0.1"]),
        vm("proxy (old)", "proxy", &["172.17.0.1"]),
        vm("spare", "spare", &[]),
    ]);
    scenario.vpgs.extend([
        Vpg::of("db", &["db-upper"]),
        Vpg::of("mail", &["mail"]),
        Vpg::of("proxy", &["proxy"]),
    ]);
    scenario
}

#[tokio::test]
async fn one_vm_is_found_by_identifier_name_hostname_and_address() {
    let world = World::of(scenario()).await;
    let id = |key: &str| world.sim.vm_id(key).unwrap().to_owned();
    let (app, db) = (id("app01"), id("db-upper"));
    for filters in [Filters::Exact, Filters::Substring, Filters::Ignored] {
        world.sim.update(|switches| switches.filters = filters);
        for (wanted, key, by) in [
            (app.as_str(), "app01", "identifier"),
            (&app.to_uppercase(), "app01", "identifier"),
            ("app01", "app01", "name"),
            ("  app01 ", "app01", "name"),
            ("APP01", "app01", "name_ignoring_case"),
            ("db01", "db-upper", "name_ignoring_case"),
            (&db, "db-upper", "identifier"),
            ("app01.example.com", "app01", "hostname"),
            ("mail", "mail", "hostname"),
            ("MAIL.example.com.", "mail", "hostname"),
            ("proxy (old)", "proxy", "name"),
            ("10.20.1.21", "app01", "address"),
            ("10.9.0.2", "mail", "address"),
        ] {
            let found = world.rewind.find(wanted, &call()).await.unwrap();
            assert_eq!(found.vm_identifier, id(key), "{wanted} {filters:?}");
            assert_eq!(found.matched_by, by, "{wanted} {filters:?}");
        }
    }
}

#[tokio::test]
async fn every_vpg_of_the_vm_is_told_with_its_state() {
    let world = World::new().await;
    let found = world.rewind.find("app01", &call()).await.unwrap();
    let names: Vec<_> = found.vpgs.iter().map(|vpg| vpg.vpg.as_str()).collect();
    assert_eq!(names, ["app01-archive", "app01-dr", "app01-local"]);
    let vpg = &found.vpgs[0];
    assert_eq!(
        vpg.vpg_identifier,
        world.sim.vpg_id("app01-archive").unwrap()
    );
    assert_eq!(
        (vpg.status.as_str(), vpg.sub_status.as_str()),
        ("MeetingSLA", "None")
    );
    assert!(vpg.can_be_tagged && vpg.why_not.is_none());
    assert_eq!(vpg.configured_history_minutes, Some(24 * 60));
    assert_eq!(vpg.protected_site.as_deref(), Some("Production"));
    assert_eq!(vpg.recovery_site.as_deref(), Some("Recovery"));
    assert!(vpg.earliest_checkpoint.is_some());
}

#[tokio::test]
async fn what_can_not_be_tagged_is_told() {
    let world = World::new().await;
    for (vm, why) in [
        ("cloud01", "AWS"),
        ("paused01", "ReplicationPausedUserInitiated"),
    ] {
        let found = world.rewind.find(vm, &call()).await.unwrap();
        assert!(!found.vpgs[0].can_be_tagged, "{vm}");
        assert!(
            found.vpgs[0].why_not.as_ref().unwrap().contains(why),
            "{vm}: {:?}",
            found.vpgs[0]
        );
    }
}

#[tokio::test]
async fn none_and_several_stop_with_candidates() {
    let world = World::of(scenario()).await;
    let find = async |wanted: &str| world.rewind.find(wanted, &call()).await.unwrap_err();

    let error = find("web").await;
    assert_eq!(error.code, ErrorCode::VmAmbiguous);
    assert_eq!(error.candidates.len(), 2);
    for key in ["web-a", "web-b"] {
        let id = world.sim.vm_id(key).unwrap();
        assert!(
            error
                .candidates
                .iter()
                .any(|candidate| candidate.contains(id)),
            "{:?}",
            error.candidates
        );
    }
    // An address that two VMs have belongs to neither.
    assert_eq!(find("172.17.0.1").await.code, ErrorCode::VmAmbiguous);

    let error = find("lonely").await;
    assert_eq!(error.code, ErrorCode::VmNotProtected);
    assert_eq!(
        find("LONELY.example.com").await.code,
        ErrorCode::VmNotProtected
    );

    for wanted in [
        "app",
        "app0",
        "pp01",
        "mail.other.org",
        "10.20.1",
        "10.20.1.22",
        "*",
        "app01%",
        "nobody",
    ] {
        assert_eq!(find(wanted).await.code, ErrorCode::VmNotFound, "{wanted}");
    }
    let error = find("app02").await;
    assert_eq!(error.code, ErrorCode::VmNotFound);
    let error = find("app").await;
    assert!(
        error.candidates[0].starts_with("app01"),
        "{:?}",
        error.candidates
    );
}

#[tokio::test]
async fn what_is_no_name_is_refused_before_the_zvm_is_asked() {
    let world = World::new().await;
    for wanted in ["", "   ", "a\nb", "a\0", "a\u{1b}[31m", &"x".repeat(300)] {
        let error = world.rewind.find(wanted, &call()).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument, "{wanted:?}");
    }
    assert!(world.sim.requests().is_empty());
}

#[tokio::test]
async fn the_server_filters_and_the_whole_list_is_asked_for_on_a_miss_only() {
    let world = World::of(Scenario::fast().with_bulk_vms(2_000)).await;
    let lists = || {
        world
            .sim
            .requests()
            .iter()
            .filter(|request| request.path == "/v1/vms")
            .count()
    };
    world.rewind.find("bulk-01234", &call()).await.unwrap();
    assert_eq!(lists(), 1);
    let bytes: u64 = world
        .sim
        .requests()
        .iter()
        .map(|request| request.response_bytes)
        .sum();
    assert!(bytes < 32_000, "{bytes} bytes");
    world
        .rewind
        .find("BULK-01234.example.com", &call())
        .await
        .unwrap();
    assert_eq!(lists(), 3);
}

#[tokio::test]
async fn other_forms_of_answers_are_understood() {
    let world = World::new().await;
    world.sim.update(|switches| {
        switches.enums = Enums::Names;
        switches.ids = Ids::LinkOnly;
        switches.casing = Casing::Camel;
    });
    let found = world.rewind.find("app01", &call()).await.unwrap();
    assert_eq!(found.vm_identifier, world.sim.vm_id("app01").unwrap());
    assert_eq!(found.vpgs.len(), 3);
    assert!(
        world.rewind.find("cloud01", &call()).await.unwrap().vpgs[0]
            .why_not
            .is_some()
    );
}

#[tokio::test]
async fn a_wrong_password_is_tried_once_and_told() {
    let world = World::new().await;
    let rewind = world.with_config(&json!({ "password": "wrong" }));
    let error = rewind.find("app01", &call()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::LoginRefused);
    assert_eq!(world.count("POST", "/token"), 1);
    // Another program of this user, at once: nothing is sent, and what remains is told.
    let beside = world.with_config(&json!({ "password": "wrong" }));
    let error = beside.find("app01", &call()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::LoginRefused);
    assert!(
        error.message.contains("none is sent for another"),
        "{}",
        error.message
    );
    assert_eq!(world.count("POST", "/token"), 1);
    // Three refusals, and no more are made.
    let mut told = String::new();
    while !told.contains("3 times") {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let error = rewind.find("app01", &call()).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::LoginRefused);
        told = error.message;
    }
    assert_eq!(world.count("POST", "/token"), 3);
    rewind.allow_one_login().unwrap();
    rewind.find("app01", &call()).await.unwrap_err();
    assert_eq!(world.count("POST", "/token"), 4);
    assert_spaced(&world);
}

#[tokio::test]
async fn a_corrected_password_waits_until_the_realm_no_longer_takes_it_for_quick() {
    let mut scenario = Scenario::fast();
    scenario.realm.quick_login_ms = 1_000;
    let world = World::of(scenario).await;
    let wrong = world.with_config(&json!({ "password": "wrong" }));
    wrong.find("app01", &call()).await.unwrap_err();
    let other = world.with_config(&json!({ "password": "wrong, too" }));
    other.find("app01", &call()).await.unwrap_err();
    // A lock would refuse the right one.
    world.rewind.find("app01", &call()).await.unwrap();
    assert_eq!(world.count("POST", "/token"), 3);
    assert_spaced(&world);
}

fn assert_spaced(world: &World) {
    let logins: Vec<_> = world
        .sim
        .requests()
        .into_iter()
        .filter(|request| request.is("POST", "/token"))
        .map(|request| request.at)
        .collect();
    assert!(
        logins
            .windows(2)
            .all(|pair| pair[1].duration_since(pair[0]).as_secs_f64() >= 2.9),
        "{logins:?}"
    );
}

#[tokio::test]
async fn a_state_folder_that_can_not_be_used_is_told_as_that() {
    let world = World::new().await;
    let file = world.folder().join("file");
    std::fs::write(&file, "").unwrap();
    for dir in [file.clone(), file.join("below"), "/proc/nowhere".into()] {
        let rewind = world.with_config(&json!({ "state_dir": dir }));
        let errors = [
            rewind.find("app01", &call()).await.unwrap_err(),
            rewind.guard(request("app01"), &call()).await.unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.code, ErrorCode::State, "{error}");
            assert!(
                error.message.contains(&*dir.to_string_lossy()),
                "{}",
                error.message
            );
            assert!(error.next.contains("state_dir"), "{}", error.next);
        }
    }
    // The database itself.
    let dir = world.folder().join("damaged");
    std::fs::create_dir_all(dir.join("state.db")).unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&dir, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let rewind = world.with_config(&json!({ "state_dir": dir }));
    let error = rewind.find("app01", &call()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::State, "{error}");
    assert!(error.message.contains("state.db"), "{}", error.message);
    assert!(world.sim.requests().is_empty());
}

#[tokio::test]
async fn a_zvm_that_is_not_there_is_told() {
    let world = World::new().await;
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let rewind = world.with_config(&json!({ "zerto_url": format!("https://{free}/") }));
    assert_eq!(
        rewind.find("app01", &call()).await.unwrap_err().code,
        ErrorCode::ZvmUnreachable
    );
    let rewind = world.with_config(&json!({ "ca_file": null }));
    assert_eq!(
        rewind.find("app01", &call()).await.unwrap_err().code,
        ErrorCode::CertificateRefused
    );
}
