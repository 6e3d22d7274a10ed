//! Whatever comes, no decoder panics, and what is said about it is fit to be shown.

use proptest::prelude::*;
use serde_json::{Map, Value};

use super::*;
use crate::{bodies, decode};

/// Names that decoders look for, so that values land where they hurt.
const NAMES: &[&str] = &[
    "VmIdentifier",
    "vmIdentifier",
    "VmName",
    "VpgIdentifier",
    "VpgName",
    "Status",
    "SubStatus",
    "Entities",
    "Protected",
    "EnabledActions",
    "IsFlrEnabled",
    "ProtectedSite",
    "Link",
    "identifier",
    "vpg_identifier",
    "type",
    "VmNetworkInformation",
    "NetworkAdapters",
    "IpAddresses",
    "HistoryStatusApi",
    "EarliestCheckpoint",
    "ActualRPO",
    "CheckpointIdentifier",
    "TimeStamp",
    "Tag",
    "Earliest",
    "Latest",
    "Checkpoint",
    "CanMount",
    "IsAllowed",
    "Reason",
    "TaskIdentifier",
    "State",
    "Progress",
    "CompleteReason",
    "FlrSessionIdentifier",
    "FlrSessionStatus",
    "MountTime",
    "MainPathItem",
    "PathItems",
    "Path",
    "FullPath",
    "Type",
    "SizeInBytes",
    "DownloadInformation",
    "SiteIdentifier",
    "Message",
    "errors",
    "title",
    "error",
    "error_description",
];

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        "(/Date\\([-+0-9]{0,25}\\)/|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{0,20}Z?|[0-9]{1,25})"
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        let name = prop_oneof![
            prop::sample::select(NAMES).prop_map(str::to_owned),
            ".{0,8}"
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..8)
                .prop_map(|members| Value::from(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Through every decoder.
fn decode_all(body: &[u8]) {
    let asked = FlrSessionId("asked".into());
    let base = url::Url::parse("https://zvm.example.com/").unwrap();
    let _ = bodies::token(body, tokio::time::Instant::now());
    let _ = bodies::time(body);
    let _ = bodies::site(body);
    let _ = bodies::virtualization_sites(body);
    let _ = bodies::unprotected_vms(body);
    let _ = bodies::vms(body);
    let _ = bodies::vpg(body);
    let _ = bodies::vpgs(body);
    let _ = bodies::names(body);
    let _ = bodies::identifier(body);
    let _ = bodies::checkpoints(body);
    let _ = bodies::journal_stats(body);
    let _ = bodies::points_in_time(body);
    let _ = bodies::task(body, "asked");
    let _ = bodies::tasks(body);
    let _ = bodies::flr_sessions(body);
    let _ = bodies::flr_session(body, &asked);
    for parent in ["", "partition#0 Ext4/etc"] {
        let _ = bodies::path_items(body, parent);
    }
    let _ = bodies::download_url(&base, body);
    let said = bodies::reason(body);
    assert!(said.chars().count() <= 301 && !said.is_empty());
    assert!(!said.chars().any(char::is_control), "{said:?}");
}

proptest! {
    #[test]
    fn bytes_are_read_without_panic(body in prop::collection::vec(any::<u8>(), 0..400)) {
        decode_all(&body);
    }

    #[test]
    fn json_is_read_without_panic(value in value()) {
        decode_all(value.to_string().as_bytes());
        decode_all(Value::from(vec![value]).to_string().as_bytes());
    }

    #[test]
    fn json_that_breaks_off_is_read_without_panic(value in value(), share in 0.0..1.0) {
        let body = value.to_string().into_bytes();
        let end = (body.len() as f64 * share) as usize;
        decode_all(&body[..end]);
    }

    #[test]
    fn texts_are_cleaned_once(text in ".{0,400}") {
        let clean = decode::line(&text);
        prop_assert_eq!(decode::line(&clean), clean);
    }

    #[test]
    fn a_time_that_is_sent_is_the_time_that_is_read(milliseconds in 0_i64..253_402_300_799_000) {
        let time = jiff::Timestamp::from_millisecond(milliseconds).unwrap();
        let text = decode::query_time(time);
        prop_assert_eq!(text.len(), "2024-11-13T00:00:00.000Z".len());
        prop_assert_eq!(decode::timestamp(&text), Some(time));
        prop_assert_eq!(decode::timestamp(&format!("/Date({milliseconds})/")), Some(time));
    }

    #[test]
    fn a_tag_is_what_was_in_the_body(tag in ".{1,300}") {
        let body = serde_json::json!([{"CheckpointIdentifier": "1", "TimeStamp": "2025-03-01T10:00:05Z", "Tag": tag}]);
        let rows = bodies::checkpoints(body.to_string().as_bytes()).unwrap();
        prop_assert_eq!(rows[0].tag.as_deref(), Some(tag.as_str()));
    }

    #[test]
    fn an_item_is_below_its_folder(parent in "[a-z#/ ]{1,20}", item in "[^/\u{0}]{1,20}") {
        let body = serde_json::json!({"PathItems": [{"Path": item}]}).to_string();
        let items = bodies::path_items(body.as_bytes(), &parent).unwrap();
        prop_assert!(items[0].path.ends_with(&item) || item.contains('\\'));
        prop_assert!(parent.trim_matches('/').is_empty() || items[0].path.trim_start_matches('/').starts_with(parent.trim_matches('/')));
    }
}
