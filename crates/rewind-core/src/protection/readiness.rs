//! Whether a VPG takes tagged checkpoints, judged by the ZVM's own names. Their numbers are not trusted: sources
//! disagree on what some of them mean.
use crate::text;
use zvm_client::{EnumValue, Vpg, Zvm};

const SHOWN_MAX_LEN: usize = 100;

/// Statuses and substatuses in which no checkpoint is added to the journal (Zerto's documentation of VPG statuses;
/// bitmap sync is documented as such, the others have no replication to put a checkpoint into).
const STATUSES_WITHOUT_CHECKPOINTS: &[&str] = &["initializing", "deleting"];
const SUB_STATUSES_WITHOUT_CHECKPOINTS: &[&str] = &[
    "initialsync",
    "creating",
    "deleting",
    "fullsync",
    "bitmapsync",
    "needsconfiguration",
];
const SUB_STATUS_PREFIXES_WITHOUT_CHECKPOINTS: &[&str] =
    &["replicationpaused", "disconnectedfrompeer"];

/// Status and substatus of a VPG by name. The ZVM's tables are asked for only where the VPG doesn't carry the names itself.
pub async fn state_names(zvm: &Zvm, vpg: &Vpg) -> Result<(String, String), zvm_client::Error> {
    let status = match own_name(&vpg.status, vpg.status_description.as_deref()) {
        Some(name) => name,
        None => by_number(&vpg.status, &zvm.vpg_statuses().await?),
    };
    let sub_status = match own_name(&vpg.sub_status, vpg.sub_status_description.as_deref()) {
        Some(name) => name,
        None => by_number(&vpg.sub_status, &zvm.vpg_sub_statuses().await?),
    };
    Ok((status, sub_status))
}

fn own_name(value: &EnumValue, description: Option<&str>) -> Option<String> {
    [value.name.as_deref(), description]
        .into_iter()
        .flatten()
        .map(str::trim)
        .find(|name| !name.is_empty())
        .map(str::to_owned)
}

fn by_number(value: &EnumValue, names: &[String]) -> String {
    let Some(number) = value.number else {
        return "not told".into();
    };
    usize::try_from(number)
        .ok()
        .and_then(|index| names.get(index))
        .cloned()
        .unwrap_or_else(|| format!("unknown ({number})"))
}

/// Letters and digits in lower case: `Bitmap Sync` and `BitmapSync` are one name.
fn plain(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// Why the journal takes no checkpoints in this state; None where it is worth a try.
pub fn refusal(status: &str, sub_status: &str) -> Option<String> {
    let sub = plain(sub_status);
    if STATUSES_WITHOUT_CHECKPOINTS.contains(&plain(status).as_str()) {
        return Some(format!(
            "its status is {}",
            text::named(status, SHOWN_MAX_LEN)
        ));
    }
    let refused = SUB_STATUSES_WITHOUT_CHECKPOINTS.contains(&sub.as_str())
        || SUB_STATUS_PREFIXES_WITHOUT_CHECKPOINTS
            .iter()
            .any(|prefix| sub.starts_with(prefix));
    refused.then(|| {
        format!(
            "its substatus is {}",
            text::named(sub_status, SHOWN_MAX_LEN)
        )
    })
}

/// The cloud that this entity type stands for, if it is one. Numbers: the only two that all sources agree on.
pub fn cloud(entity: &EnumValue) -> Option<&'static str> {
    match (entity.name.as_deref().map(plain).as_deref(), entity.number) {
        (Some("aws" | "publiccloud"), _) | (None, Some(3)) => Some("AWS"),
        (Some("azure"), _) | (None, Some(5)) => Some("Azure"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_without_new_checkpoints_are_known_by_name() {
        for (status, sub_status, refused) in [
            ("MeetingSLA", "None", false),
            ("RpoNotMeetingSLA", "DeltaSync", false),
            ("HistoryNotMeetingSLA", "Error", false),
            ("Initializing", "None", true),
            ("Deleting", "None", true),
            ("NotMeetingSLA", "BitmapSync", true),
            ("NotMeetingSLA", "Bitmap Sync", true),
            ("NotMeetingSLA", "ReplicationPausedSystemInitiated", true),
            ("NotMeetingSLA", "ReplicationPausedUserInitiated", true),
            (
                "NotMeetingSLA",
                "DisconnectedFromPeerNoRecoveryPoints",
                true,
            ),
            ("NotMeetingSLA", "NeedsConfiguration", true),
            ("NotMeetingSLA", "VolumeDeltaSync", false),
            ("SomethingNew", "unknown (42)", false),
        ] {
            assert_eq!(
                refusal(status, sub_status).is_some(),
                refused,
                "{status}/{sub_status}"
            );
        }
    }

    #[test]
    fn clouds_are_told_from_sites() {
        let number = |number| EnumValue {
            number: Some(number),
            name: None,
        };
        let name = |name: &str| EnumValue {
            number: None,
            name: Some(name.into()),
        };
        assert_eq!(cloud(&number(3)), Some("AWS"));
        assert_eq!(cloud(&number(5)), Some("Azure"));
        assert_eq!(cloud(&name("PublicCloud")), Some("AWS"));
        assert_eq!(cloud(&name("Azure")), Some("Azure"));
        for other in [
            number(0),
            number(1),
            number(4),
            name("VCVpg"),
            EnumValue::default(),
        ] {
            assert_eq!(cloud(&other), None);
        }
    }
}
