//! The same answers in every dialect, and bodies that are none.

use jiff::Timestamp;
use zvm_client::{EnumValue, Error, VmFilter, VmRow, Vpg, Window, Zvm};
use zvm_sim::{
    Fault, Outcome,
    switches::{Casing, Dates, Enums, ErrorBody, Filters, Ids},
};

use crate::{ended, sim_without_disks, until, zvm};

fn all() -> Window {
    Window {
        from: Timestamp::UNIX_EPOCH,
        to: "2100-01-01T00:00:00Z".parse().unwrap(),
    }
}

fn by_name(name: &str) -> VmFilter {
    VmFilter {
        identifier: None,
        name: Some(name.into()),
    }
}

fn by_id(id: &str) -> VmFilter {
    VmFilter {
        identifier: Some(id.into()),
        name: None,
    }
}

/// The name of a value, whichever way it came.
fn named(value: &EnumValue, names: &[String]) -> String {
    match (&value.name, value.number) {
        (Some(name), _) => name.clone(),
        (None, Some(number)) => names[usize::try_from(number).unwrap()].clone(),
        (None, None) => panic!("nothing came"),
    }
}

/// Everything of a row that does not depend on the dialect or on the time.
fn essence(row: &VmRow, names: &[Vec<String>; 3]) -> String {
    format!(
        "{} {} {} {} {} {} {:?} {:?} {:?} {:?} {:?} {} {:?}",
        row.identifier,
        row.name,
        row.vpg_identifier,
        row.vpg_name,
        named(&row.status, &names[0]),
        named(&row.sub_status, &names[1]),
        row.ip_addresses,
        row.guest_os,
        row.protected_here,
        row.protected_site,
        row.recovery_site,
        named(&row.protected_entity, &names[2]),
        row.flr_enabled,
    )
}

fn vpg_essence(vpg: &Vpg, names: &[Vec<String>; 3]) -> String {
    format!(
        "{} {} {} {} {} {} {:?} {:?} {:?} {:?}",
        vpg.identifier,
        vpg.name,
        named(&vpg.status, &names[0]),
        named(&vpg.sub_status, &names[1]),
        named(&vpg.protected_entity, &names[2]),
        named(&vpg.recovery_entity, &names[2]),
        vpg.protected_here,
        vpg.protected_site,
        vpg.recovery_site,
        vpg.configured_history_minutes,
    )
}

/// Everything that can be read, in one text; `inserted` is a task and `tag` its tag.
async fn reading(zvm: &Zvm, inserted: &str, tag: &str) -> String {
    let entities = ["VCVpg", "VCvApp", "VCDvApp", "AWS", "HyperV", "Azure"].map(str::to_owned);
    let names = [
        zvm.vpg_statuses().await.unwrap(),
        zvm.vpg_sub_statuses().await.unwrap(),
        entities.to_vec(),
    ];
    let site = zvm.local_site().await.unwrap();
    let rows = zvm.vms(&VmFilter::default()).await.unwrap();
    let vpgs = zvm.vpgs().await.unwrap();
    let vpg = vpgs.iter().find(|vpg| vpg.name == "jp-ubuntu").unwrap();
    let row = rows.iter().find(|row| row.name == "jp-ubuntu").unwrap();
    let one = zvm.vpg(&vpg.identifier).await.unwrap();
    let listed = zvm.checkpoints(&vpg.identifier, all()).await.unwrap();
    let pin = listed
        .iter()
        .find(|checkpoint| checkpoint.tag.as_deref() == Some(tag))
        .unwrap();
    let stats = zvm.journal_stats(&vpg.identifier).await.unwrap();
    let points = zvm
        .points_in_time(&row.identifier, &vpg.identifier, all())
        .await
        .unwrap();
    let point = points
        .iter()
        .find(|point| point.checkpoint.id == pin.id)
        .unwrap();
    let task = zvm.task(inserted).await.unwrap().unwrap();
    let unprotected = zvm.unprotected_vms().await.unwrap();
    let clock = zvm.server_time().await.unwrap();
    assert!(clock.duration_since(Timestamp::now()).abs().as_secs() < 5);
    assert!(stats.earliest.unwrap().id < pin.id);
    assert!(stats.latest.unwrap().id >= pin.id);
    assert!(listed.is_sorted_by_key(|checkpoint| checkpoint.id));
    assert!(vpgs.iter().all(|vpg| vpg.earliest_checkpoint.is_some()));
    let mut text = vec![
        format!("{site:?}"),
        format!("{pin:?}"),
        format!("{point:?}"),
        format!("{task:?}"),
        vpg_essence(&one, &names),
    ];
    text.extend(rows.iter().map(|row| essence(row, &names)));
    text.extend(vpgs.iter().map(|vpg| vpg_essence(vpg, &names)));
    text.extend(unprotected.iter().map(|vm| format!("{vm:?}")));
    text.join("\n")
}

#[tokio::test]
async fn every_dialect_reads_the_same() {
    let sim = sim_without_disks().await;
    let zvm = zvm(&sim);
    let tag = "ai:test | edit /etc/hosts (a=b)";
    let vpg = sim.vpg_id("jp-ubuntu").unwrap();
    let task = zvm.insert_checkpoint(vpg, tag).await.unwrap();
    ended(&zvm, &task).await;
    sim.wait_for(|world| world.is_listed("jp-ubuntu", tag))
        .await;

    let expected = reading(&zvm, &task, tag).await;
    assert!(expected.contains("lonely") && expected.contains("ReplicationPausedUserInitiated"));
    assert_eq!(expected.matches("app01-dr").count(), 2, "{expected}");
    for casing in [Casing::Pascal, Casing::Camel] {
        for dates in [Dates::Iso, Dates::Milliseconds] {
            for enums in [Enums::Numbers, Enums::Names] {
                for ids in [Ids::TopLevel, Ids::LinkOnly] {
                    sim.update(|switches| {
                        switches.casing = casing;
                        switches.dates = dates;
                        switches.enums = enums;
                        switches.ids = ids;
                    });
                    let read = reading(&zvm, &task, tag).await;
                    assert_eq!(read, expected, "{casing:?} {dates:?} {enums:?} {ids:?}");
                }
            }
        }
    }
    // Names of statuses were asked for once in all this.
    let requests = sim.requests();
    let asked = |path| {
        requests
            .iter()
            .filter(|request| request.is("GET", path))
            .count()
    };
    assert_eq!(
        (asked("/v1/vpgs/statuses"), asked("/v1/vpgs/substatuses")),
        (1, 1)
    );
}

#[tokio::test]
async fn a_vm_has_a_row_for_each_of_its_vpgs() {
    let sim = sim_without_disks().await;
    let zvm = zvm(&sim);
    for filters in [Filters::Exact, Filters::Substring, Filters::Ignored] {
        sim.update(|switches| switches.filters = filters);
        for filter in [by_name("app01"), by_id(sim.vm_id("app01").unwrap())] {
            let mut rows = zvm.vms(&filter).await.unwrap();
            rows.retain(|row| row.identifier == sim.vm_id("app01").unwrap());
            let mut vpgs: Vec<_> = rows.iter().map(|row| row.vpg_name.as_str()).collect();
            vpgs.sort_unstable();
            assert_eq!(
                vpgs,
                ["app01-archive", "app01-dr", "app01-local"],
                "{filters:?}"
            );
        }
    }
    let cloud = &zvm
        .vms(&by_id(sim.vm_id("cloud01").unwrap()))
        .await
        .unwrap();
    assert!(
        cloud
            .iter()
            .any(|row| row.name == "cloud01" && row.protected_here == Some(false))
    );
}

#[tokio::test]
async fn errors_of_every_shape_say_what_the_zvm_said() {
    let sim = sim_without_disks().await;
    let zvm = zvm(&sim);
    for (shape, says) in [
        (ErrorBody::Message, None),
        (ErrorBody::Problem, None),
        (ErrorBody::Html, Some("an HTML page")),
        (ErrorBody::Empty, Some("it gave no reason")),
    ] {
        sim.update(|switches| switches.error_body = shape);
        let error = zvm
            .vpg("11111111-1111-1111-1111-111111111111")
            .await
            .unwrap_err();
        let Error::NotFound { what, message } = &error else {
            panic!("{shape:?}: {error}")
        };
        assert_eq!(what, "read VPG 11111111-1111-1111-1111-111111111111");
        assert!(
            message.contains(says.unwrap_or("VPG")),
            "{shape:?}: {message}"
        );
    }
}

#[tokio::test]
async fn bodies_that_are_no_answer_are_told_and_the_next_call_works() {
    let sim = sim_without_disks().await;
    let zvm = zvm(&sim);
    for outcome in [
        Outcome::Html,
        Outcome::Empty,
        Outcome::TruncatedJson,
        Outcome::Text,
    ] {
        sim.add_fault(Fault::answer("GET", "/v1/vms", 200, outcome));
        let error = zvm.vms(&VmFilter::default()).await.unwrap_err();
        assert!(
            matches!(error, Error::Unreadable { .. }),
            "{outcome:?}: {error}"
        );
        assert!(!zvm.vms(&VmFilter::default()).await.unwrap().is_empty());
    }
    sim.add_fault(Fault::answer("GET", "/v1/vms", 200, Outcome::Huge));
    let error = zvm.vms(&VmFilter::default()).await.unwrap_err();
    assert!(
        matches!(error, Error::TooLarge { unit: "bytes", .. }),
        "{error}"
    );
    assert!(!zvm.vms(&VmFilter::default()).await.unwrap().is_empty());

    sim.add_fault(Fault::answer(
        "GET",
        "/v1/serverDateTime/*",
        200,
        Outcome::BareString,
    ));
    zvm.server_time().await.unwrap();
}

#[tokio::test]
async fn a_get_outlasts_cuts_and_gateways() {
    let sim = sim_without_disks().await;
    let zvm = zvm(&sim);
    sim.add_fault(Fault::cut_before("GET", "/v1/vms"));
    sim.add_fault(Fault {
        skip: 1,
        ..Fault::answer("GET", "/v1/vms", 200, Outcome::CutBody)
    });
    sim.add_fault(Fault {
        skip: 2,
        ..Fault::answer("GET", "/v1/vms", 503, Outcome::Html)
    });
    assert!(!zvm.vms(&VmFilter::default()).await.unwrap().is_empty());
    sim.wait_for(|world| world.received("GET", "/v1/vms") == 4)
        .await;
}

#[tokio::test]
async fn a_vm_id_of_any_characters_finds_its_way() {
    let id = "f00d.vm 1/2?x=y#z%41&ä";
    let mut scenario = crate::without_disks(zvm_sim::Scenario::fast());
    scenario.vm_mut("jp-ubuntu").unwrap().id = Some(id.into());
    let sim = zvm_sim::Sim::start(scenario).await.unwrap();
    let zvm = zvm(&sim);
    let rows = zvm.vms(&by_id(id)).await.unwrap();
    assert_eq!((rows.len(), rows[0].identifier.as_str()), (1, id));
    let vpg = rows[0].vpg_identifier.clone();
    let points = until(async || {
        let points = zvm.points_in_time(id, &vpg, all()).await.unwrap();
        (!points.is_empty()).then_some(points)
    })
    .await;
    assert!(points.iter().all(|point| point.can_mount.is_some()));
}
