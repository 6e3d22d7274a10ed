//! Bodies as ZVMs send them, and as they might.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::decode;

const VM: &str = "11111111-2222-3333-4444-555555555555.vm-101";
const VPG: &str = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee";

/// The real body, trimmed, with what 10.0 adds.
fn vm_body() -> Value {
    json!({
        "VmIdentifier": VM, "VmName": "app01", "VpgIdentifier": VPG, "VpgName": "Payroll",
        "Status": 1, "SubStatus": 0, "Priority": 1, "ActualRPO": 7, "LastTest": null,
        "Entities": {"Protected": 0, "Recovery": 5, "Source": 0, "Target": 0},
        "EnabledActions": {"IsFlrEnabled": true}, "IsVmExists": true,
        "SourceSite": "Site A", "TargetSite": "Site B",
        "ProtectedSite": {"href": "https://zvm/v1/localsite", "identifier": "siteA", "rel": null, "type": "LocalSiteApi"},
        "RecoverySite": {"href": "https://zvm/v1/peersites/b", "identifier": "siteB", "rel": null, "type": "PeerSiteApi"},
        "Link": {"href": "https://zvm/v1/vms/x", "identifier": format!("{VM}?VpgIdentifier={VPG}"), "rel": null, "type": "VmApi"},
        "Link_{0}": {"identifier": "twin"},
        "Volumes": [{"VmVolumeIdentifier": "scsi:0:0"}], "IOPs": 2,
        "GuestOs": "Ubuntu Linux (64-bit)",
        "VmNetworkInformation": {"NetworkAdapters": [
            {"DisplayName": "Network adapter 1", "IpAddresses": ["10.0.0.11", "fe80::1"]}, {"IpAddresses": null}, null
        ]},
        "PlatformInformation": {"Azure": null}
    })
}

/// Member names in camelCase, as the OpenAPI file has them.
fn camel(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .map(|(name, value)| {
                let mut chars = name.chars();
                let name = chars
                    .next()
                    .map(|c| c.to_ascii_lowercase().to_string() + chars.as_str());
                (name.unwrap_or_default(), camel(value))
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(values) => values.into_iter().map(camel).collect(),
        other => other,
    }
}

fn with(mut body: Value, members: Value) -> Value {
    body.as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    body
}

fn without(mut body: Value, names: &[&str]) -> Value {
    for name in names {
        body.as_object_mut().unwrap().remove(*name).unwrap();
    }
    body
}

fn vm(body: &Value) -> Result<VmRow, String> {
    decode::rows(json!([body]).to_string().as_bytes(), VmWire::read).map(|mut rows| rows.remove(0))
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn number(number: i64) -> EnumValue {
    EnumValue {
        number: Some(number),
        name: None,
    }
}

fn name(name: &str) -> EnumValue {
    EnumValue {
        number: None,
        name: Some(name.into()),
    }
}

#[test]
fn a_vm_is_read_in_either_case() {
    for body in [vm_body(), camel(vm_body())] {
        let row = vm(&body).unwrap();
        assert_eq!((row.identifier.as_str(), row.name.as_str()), (VM, "app01"));
        assert_eq!(
            (row.vpg_identifier.as_str(), row.vpg_name.as_str()),
            (VPG, "Payroll")
        );
        assert_eq!((row.status, row.sub_status), (number(1), number(0)));
        assert_eq!(row.protected_entity, number(0));
        assert_eq!(row.ip_addresses, ["10.0.0.11", "fe80::1"]);
        assert_eq!(row.guest_os.as_deref(), Some("Ubuntu Linux (64-bit)"));
        assert_eq!(
            (row.protected_here, row.flr_enabled),
            (Some(true), Some(true))
        );
        assert_eq!(
            (row.protected_site.as_deref(), row.recovery_site.as_deref()),
            (Some("Site A"), Some("Site B"))
        );
    }
}

#[test]
fn ids_of_a_vm_are_taken_from_its_link_where_they_are_missing() {
    let bare = without(vm_body(), &["VmIdentifier", "VpgIdentifier"]);
    let row = vm(&bare).unwrap();
    assert_eq!(
        (row.identifier.as_str(), row.vpg_identifier.as_str()),
        (VM, VPG)
    );

    let link =
        json!({"Link": {"identifier": VM, "vpg_identifier": VPG, "instance_identifier": "i"}});
    let row = vm(&with(bare.clone(), link)).unwrap();
    assert_eq!(
        (row.identifier.as_str(), row.vpg_identifier.as_str()),
        (VM, VPG)
    );

    for link in [
        json!(null),
        json!({}),
        json!("x"),
        json!({"identifier": VM}),
        json!({"identifier": ""}),
        json!({"identifier": "?a=b"}),
    ] {
        let error = vm(&with(bare.clone(), json!({"Link": link}))).unwrap_err();
        assert!(error.starts_with("row 1: the VM (app01) "), "{error}");
    }
    let error = vm(&with(without(bare, &["VmName"]), json!({"Link": null}))).unwrap_err();
    assert_eq!(error, "row 1: the VM has no identifier");
}

#[test]
fn what_is_not_essential_in_a_vm_never_breaks_it() {
    let essential = json!({"VmIdentifier": VM, "VpgIdentifier": VPG});
    let row = vm(&essential).unwrap();
    assert_eq!((row.name.as_str(), row.vpg_name.as_str()), (VM, VPG));
    assert_eq!((row.protected_here, row.flr_enabled), (None, None));

    let body = vm_body();
    for member in body
        .as_object()
        .unwrap()
        .keys()
        .filter(|name| !name.ends_with("Identifier"))
    {
        for wrong in [
            json!(null),
            json!(""),
            json!("odd"),
            json!(-7),
            json!(1.5),
            json!(true),
            json!([[{}]]),
            json!({"a": {"b": []}}),
        ] {
            let row = vm(&with(vm_body(), json!({ member.as_str(): wrong })));
            assert!(row.is_ok(), "{member}: {wrong}: {row:?}");
        }
    }
}

#[test]
fn a_vm_of_a_peer_and_enumerations_by_name() {
    let body = with(
        vm_body(),
        json!({
            "ProtectedSite": {"type": "PeerSiteApi"}, "ProtectedSiteName": "Ten", "RecoverySiteName": "Eleven",
            "Status": "MeetingSLA", "SubStatus": "23", "Entities": {"Protected": "Azure"}, "EnabledActions": {"IsFlrEnabled": false}
        }),
    );
    let row = vm(&body).unwrap();
    assert_eq!(
        (row.protected_here, row.flr_enabled),
        (Some(false), Some(false))
    );
    assert_eq!(
        (row.protected_site.as_deref(), row.recovery_site.as_deref()),
        (Some("Ten"), Some("Eleven"))
    );
    assert_eq!(
        (row.status, row.sub_status, row.protected_entity),
        (name("MeetingSLA"), number(23), name("Azure"))
    );
}

#[test]
fn rows_that_are_no_objects_are_told() {
    for row in ["null", "1", "\"a\"", "[\"id\",\"name\"]"] {
        let body = format!("[{},{row}]", vm_body());
        let error = decode::rows(body.as_bytes(), VmWire::read).unwrap_err();
        assert_eq!(error, "row 2: not an object");
    }
    assert!(decode::rows(b"[]", VmWire::read).unwrap().is_empty());
}

#[test]
fn a_vpg_is_read_in_either_case() {
    let body = json!({
        "VpgIdentifier": VPG, "VpgName": "Payroll", "VmsCount": 2, "Status": 1, "SubStatus": 0, "ActualRPO": 7,
        "Entities": {"Protected": 3, "Recovery": 5}, "SourceSite": "Site A", "TargetSite": "Site B",
        "StatusDescription": "Meeting SLA", "SubStatusDescription": "None",
        "ProtectedSite": {"identifier": "a", "type": "LocalSiteApi"},
        "HistoryStatusApi": {"ActualHistoryInMinutes": 225, "ConfiguredHistoryInMinutes": 60,
            "EarliestCheckpoint": {"CheckpointIdentifier": "166834", "Tag": null, "TimeStamp": "2019-07-11T13:47:23Z"}},
    });
    let read = |body: &Value| decode::object(body.to_string().as_bytes()).and_then(VpgWire::read);
    for body in [
        body.clone(),
        camel(body.clone()),
        with(
            without(body.clone(), &["VpgIdentifier"]),
            json!({"Link": {"identifier": VPG}}),
        ),
    ] {
        let vpg = read(&body).unwrap();
        assert_eq!(
            (vpg.identifier.as_str(), vpg.name.as_str()),
            (VPG, "Payroll")
        );
        assert_eq!(
            (vpg.protected_entity, vpg.recovery_entity),
            (number(3), number(5))
        );
        assert_eq!(vpg.actual_rpo_seconds, Some(7));
        assert_eq!(
            (vpg.actual_history_minutes, vpg.configured_history_minutes),
            (Some(225), Some(60))
        );
        assert_eq!(vpg.status_description.as_deref(), Some("Meeting SLA"));
        let earliest = vpg.earliest_checkpoint.unwrap();
        assert_eq!(
            (earliest.id, earliest.time, earliest.tag),
            (CheckpointId(166_834), time("2019-07-11T13:47:23Z"), None)
        );
    }
    let vpg = read(&with(body.clone(), json!({"ActualRPO": -1, "HistoryStatusApi": {"EarliestCheckpoint": {"TimeStamp": "0001-01-01T00:00:00"}}}))).unwrap();
    assert_eq!(
        (vpg.actual_rpo_seconds, vpg.earliest_checkpoint),
        (None, None)
    );
    let vpg = read(&with(body.clone(), json!({"HistoryStatusApi": {"EarliestCheckpoint": {"CheckpointIdentifier": "5", "TimeStamp": "?"}}}))).unwrap();
    assert_eq!(vpg.earliest_checkpoint, None);
    assert_eq!(
        read(&without(body, &["VpgIdentifier"])).unwrap_err(),
        "the VPG (Payroll) has no identifier"
    );
}

#[test]
fn checkpoints_have_ids_as_strings_or_numbers_and_times_of_each_form() {
    let body = br#"[
        {"CheckpointIdentifier":"4711","TimeStamp":"2025-03-01T10:00:05.000Z","Tag":null,"Type":0},
        {"CheckpointIdentifier":4712,"TimeStamp":"/Date(1740823210000)/","Tag":"before-upgrade-7f3a","Type":"User"},
        {"checkpointIdentifier":" 18446744073709551615","timeStamp":"2025-03-01T10:00:05","tag":"","vss":false}
    ]"#;
    let rows = decode::rows(body, CheckpointWire::read).unwrap();
    let expected = [
        (4711, "2025-03-01T10:00:05Z", None),
        (4712, "2025-03-01T10:00:10Z", Some("before-upgrade-7f3a")),
        (u64::MAX, "2025-03-01T10:00:05Z", None),
    ];
    for (row, (id, at, tag)) in rows.iter().zip(expected) {
        assert_eq!(
            (row.id, row.time, row.tag.as_deref()),
            (CheckpointId(id), time(at), tag)
        );
    }
    let tag = "ai:claude | edit / (a=b) \u{e9}\u{1f600}\u{202e}; Used for File Level Restore";
    let body =
        json!([{"CheckpointIdentifier": "1", "TimeStamp": "2025-03-01T10:00:05Z", "Tag": tag}])
            .to_string();
    let rows = decode::rows(body.as_bytes(), CheckpointWire::read).unwrap();
    assert_eq!(
        rows[0].tag.as_deref(),
        Some(tag),
        "tags come through as they are"
    );
}

#[test]
fn a_checkpoint_without_id_or_time_is_told() {
    for (row, why) in [
        (
            r#"{"TimeStamp":"2025-03-01T10:00:05Z"}"#,
            "row 1: the checkpoint has no identifier that is a number",
        ),
        (
            r#"{"CheckpointIdentifier":"x","TimeStamp":"2025-03-01T10:00:05Z"}"#,
            "row 1: the checkpoint has no identifier that is a number",
        ),
        (
            r#"{"CheckpointIdentifier":"-1","TimeStamp":"2025-03-01T10:00:05Z"}"#,
            "row 1: the checkpoint has no identifier that is a number",
        ),
        (
            r#"{"CheckpointIdentifier":"5","TimeStamp":null}"#,
            "row 1: checkpoint 5 has no time that can be read",
        ),
        (
            r#"{"CheckpointIdentifier":"5","TimeStamp":"yesterday"}"#,
            "row 1: checkpoint 5 has no time that can be read",
        ),
    ] {
        let error = decode::rows(format!("[{row}]").as_bytes(), CheckpointWire::read).unwrap_err();
        assert_eq!(error, why);
    }
}

#[test]
fn the_ends_of_a_journal() {
    let read = |body: &str| decode::object(body.as_bytes()).and_then(StatsWire::read);
    let stats = read(
        r#"{"Earliest":{"CheckpointIdentifier":"1","TimeStamp":"2025-03-01T10:00:05Z"},
            "latest":{"checkpointIdentifier":9,"timeStamp":"2025-03-02T10:00:05Z","tag":"t"}}"#,
    )
    .unwrap();
    assert_eq!(stats.earliest.unwrap().id, CheckpointId(1));
    assert_eq!(stats.latest.unwrap().tag.as_deref(), Some("t"));
    for empty in [
        r#"{}"#,
        r#"{"Earliest":null,"Latest":null}"#,
        r#"{"Earliest":{"CheckpointIdentifier":null,"TimeStamp":"0001-01-01T00:00:00"}}"#,
    ] {
        let stats = read(empty).unwrap();
        assert!(
            stats.earliest.is_none() && stats.latest.is_none(),
            "{empty}"
        );
    }
    assert!(read(r#"{"Earliest":{"CheckpointIdentifier":"1","TimeStamp":"?"}}"#).is_err());
    assert!(read("[]").is_err());
}

#[test]
fn points_in_time_say_whether_they_can_be_mounted() {
    let body = br#"[
        {"Checkpoint":{"CheckpointIdentifier":"7","TimeStamp":"2025-03-01T10:00:05Z","Tag":null},"RetentionSet":null,
         "CanMount":{"IsAllowed":true,"Reason":null}},
        {"checkpoint":{"checkpointIdentifier":"8","timeStamp":"2025-03-01T10:00:10Z"},"canMount":{"isAllowed":false,"reason":"busy"}},
        {"Checkpoint":null,"RetentionSet":{"Id":1},"CanMount":{"IsAllowed":true}},
        {"Checkpoint":{"CheckpointIdentifier":"9","TimeStamp":"2025-03-01T10:00:15Z"}}
    ]"#;
    let points: Vec<_> = decode::rows(body, PointInTimeWire::read)
        .unwrap()
        .into_iter()
        .flatten()
        .collect();
    let read: Vec<_> = points
        .iter()
        .map(|p| (p.checkpoint.id.0, p.can_mount, p.reason.as_deref()))
        .collect();
    assert_eq!(
        read,
        [
            (7, Some(true), None),
            (8, Some(false), Some("busy")),
            (9, None, None)
        ]
    );
    assert!(
        decode::rows(
            br#"[{"Checkpoint":{"TimeStamp":"2025-03-01T10:00:05Z"}}]"#,
            PointInTimeWire::read
        )
        .is_err()
    );
}

#[test]
fn tasks_in_every_state() {
    let body = |state: &str| {
        format!(
            r#"{{"TaskIdentifier":"9f.6b","Type":"InsertTaggedCP","Started":"2025-03-01T10:00:07.120Z","Completed":null,
                "CompleteReason":"why","Status":{{"Progress":79,"State":{state}}},
                "Link":{{"identifier":"9f.6b"}},"RelatedEntities":{{"Vpgs":[]}}}}"#
        )
    };
    for (state, expected) in [
        ("0", TaskState::Running),
        ("1", TaskState::Running),
        ("2", TaskState::Running),
        ("3", TaskState::Running),
        ("4", TaskState::Failed),
        ("5", TaskState::Failed),
        ("6", TaskState::Completed),
        ("\"6\"", TaskState::Completed),
        ("7", TaskState::Running),
        ("99", TaskState::Running),
        ("null", TaskState::Running),
        ("\"Completed\"", TaskState::Completed),
        ("\"Failed\"", TaskState::Failed),
        ("\"Stopped\"", TaskState::Failed),
        ("\"InProgress\"", TaskState::Running),
        ("{}", TaskState::Running),
    ] {
        let task = decode::object::<TaskWire>(body(state).as_bytes())
            .unwrap()
            .read("asked");
        assert_eq!(task.state, expected, "{state}");
        assert_eq!(
            (task.id.as_str(), task.kind.as_deref(), task.progress),
            ("9f.6b", Some("InsertTaggedCP"), Some(79))
        );
        assert_eq!(task.reason.as_deref(), Some("why"));
    }
    let task = decode::object::<TaskWire>(
        br#"{"status":{"state":6,"progress":300},"link":{"Identifier":"x.y"}}"#,
    )
    .unwrap();
    let task = task.read("asked");
    assert_eq!(
        (task.id.as_str(), task.state, task.progress),
        ("x.y", TaskState::Completed, None)
    );
    assert_eq!(
        decode::object::<TaskWire>(b"{}").unwrap().read("asked").id,
        "asked"
    );
}

#[test]
fn a_session_comes_as_object_array_or_nothing() {
    let object = r#"{"FlrSessionIdentifier":"2c99.6b4c","FlrSessionStatus":"MountCompletedSuccessfully","FlrSessionType":"jflr",
        "VmIdentifier":"1111.vm-101","VmVolumeIdentifier":null,"VpgIdentifier":"aaaa","CheckpointIdentifier":"4712",
        "MountTime":"2025-03-01T10:05:00.551Z","SelectedPath":null,"NumberOfRelatedRunningTasks":0,"SiteIdentifier":"6b4c"}"#;
    let asked = FlrSessionId("2c99".into());
    let read = |body: &str| {
        decode::one_or_many(body.as_bytes(), |wire: FlrSessionWire| {
            wire.read(Some(&asked))
        })
    };
    for body in [
        object.to_owned(),
        format!("[{object}]"),
        camel(serde_json::from_str(object).unwrap()).to_string(),
    ] {
        let sessions = read(&body).unwrap();
        let [session] = sessions.as_slice() else {
            panic!("{sessions:?}")
        };
        assert_eq!(
            (session.id.0.as_str(), session.status),
            ("2c99.6b4c", FlrStatus::Ready)
        );
        assert_eq!(session.status_text, "MountCompletedSuccessfully");
        assert_eq!(session.checkpoint, Some(CheckpointId(4712)));
        assert_eq!(session.vm_identifier.as_deref(), Some("1111.vm-101"));
        assert_eq!(session.mount_time, Some(time("2025-03-01T10:05:00.551Z")));
    }
    for gone in ["[]", "null", "", " "] {
        assert!(read(gone).unwrap().is_empty(), "{gone}");
    }
    let bare = read(r#"{"CheckPointId": 38, "CheckpointIdentifier": 38}"#).unwrap();
    assert_eq!(
        (bare[0].id.0.as_str(), bare[0].checkpoint, bare[0].status),
        ("2c99", Some(CheckpointId(38)), FlrStatus::Pending)
    );
    for wrong in ["[null]", "\"a\"", "7", "<html>"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
    let error = decode::rows(b"[{}]", |wire: FlrSessionWire| wire.read(None)).unwrap_err();
    assert_eq!(error, "row 1: the FLR session has no identifier");
}

#[test]
fn browse_answers() {
    let read = |parent: &str, body: &str| {
        decode::object(body.as_bytes()).and_then(|wire: BrowseWire| wire.read(parent))
    };
    let body = r#"{"MainPathItem":{"Path":"partition#0 Ext4/etc","Type":"Folder","IsBrowsable":true},
        "PathItems":[
          {"Path":"partition#0 Ext4/etc/hosts","Type":"File","IsBrowsable":false,"SizeInBytes":221,"LastWriteTime":"2025-01-01T00:00:00Z",
           "DownloadInformation":{"IsDownloadable":true,"AdditionalInformation":null}},
          {"Path":"partition#0 Ext4/etc/mtab","Type":"Link","IsBrowsable":false,"SizeInBytes":null,
           "DownloadInformation":{"IsDownloadable":false,"AdditionalInformation":"Cannot restore. Links are not supported."}},
          {"Path":"ssh","Type":"folder","SizeInBytes":0},
          {"FullPath":"","Type":"Folder"}, {"Path":null}, {}, null, 7]}"#;
    for body in [
        body.to_owned(),
        camel(serde_json::from_str(body).unwrap()).to_string(),
    ] {
        let items = read("partition#0 Ext4/etc", &body).unwrap();
        let [hosts, mtab, ssh] = items.as_slice() else {
            panic!("{items:?}")
        };
        assert_eq!(
            (hosts.path.as_str(), &hosts.kind, hosts.size),
            ("partition#0 Ext4/etc/hosts", &PathKind::File, Some(221))
        );
        assert_eq!(hosts.modified, Some(time("2025-01-01T00:00:00Z")));
        assert!(hosts.downloadable && !hosts.browsable);
        assert_eq!(
            (&mtab.kind, mtab.size, mtab.downloadable),
            (&PathKind::Other("Link".into()), None, false)
        );
        assert_eq!(
            mtab.reason.as_deref(),
            Some("Cannot restore. Links are not supported.")
        );
        assert_eq!(
            (ssh.path.as_str(), &ssh.kind),
            ("partition#0 Ext4/etc/ssh", &PathKind::Folder)
        );
        assert!(ssh.browsable && ssh.downloadable);
    }
    let roots = read(
        "",
        r#"{"MainPathItem":{"Path":"","Type":"Partition"},"PathItems":[{"FullPath":"\\Volume1","Type":"Partition"}]}"#,
    );
    assert_eq!(roots.unwrap()[0].path, "/Volume1");
    assert!(
        read("", r#"{"MainPathItem":{"Path":""},"PathItems":null}"#)
            .unwrap()
            .is_empty()
    );
    for wrong in [
        "{}",
        r#"{"PathItems":null}"#,
        r#"{"PathItems":{}}"#,
        r#"{"PathItems":"x"}"#,
        "[]",
        "null",
        "",
    ] {
        assert!(read("", wrong).is_err(), "{wrong}");
    }
}

#[test]
fn sites() {
    let site = decode::object::<SiteWire>(
        br#"{"SiteIdentifier":"s1","SiteName":"Site A","SiteType":"VCenter","Version":"10.0.60"}"#,
    );
    let site = site.unwrap().read().unwrap();
    assert_eq!(
        (site.identifier.as_str(), site.name.as_str()),
        ("s1", "Site A")
    );
    assert_eq!(
        (site.site_type.as_deref(), site.version.as_deref()),
        (Some("VCenter"), Some("10.0.60"))
    );
    let site = decode::object::<SiteWire>(br#"{"link":{"identifier":"s2"}}"#)
        .unwrap()
        .read()
        .unwrap();
    assert_eq!((site.identifier.as_str(), site.name.as_str()), ("s2", "s2"));
    assert!(decode::object::<SiteWire>(b"{}").unwrap().read().is_err());
    let sites = decode::rows(
        br#"[{"SiteIdentifier":"s1","VirtualizationSiteName":"x"}]"#,
        VirtualizationSiteWire::read,
    );
    assert_eq!(sites.unwrap(), ["s1"]);
    let vms = decode::rows(
        br#"[{"VmName":"lonely","VmIdentifier":"g.vm-9","VmNetworkInformation":{"NetworkAdapters":[{"IpAddresses":["10.0.0.9"]}]}}]"#,
        UnprotectedVmWire::read,
    )
    .unwrap();
    assert_eq!(
        (vms[0].name.as_str(), vms[0].identifier.as_str()),
        ("lonely", "g.vm-9")
    );
    assert_eq!(vms[0].ip_addresses, ["10.0.0.9"]);
    assert!(decode::rows(br#"[{"VmName":"lonely"}]"#, UnprotectedVmWire::read).is_err());
}
