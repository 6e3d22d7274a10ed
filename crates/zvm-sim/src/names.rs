//! Enumerations of the ZVM: numbers in JSON, names in filters and lists.

use serde::{Deserialize, Serialize};

/// VPG status names by number. 3 and 4 as vendor's 7.5 page and UI have them; older sources swap them.
pub(crate) const STATUSES: [&str; 9] = [
    "Initializing",
    "MeetingSLA",
    "NotMeetingSLA",
    "RpoNotMeetingSLA",
    "HistoryNotMeetingSLA",
    "FailingOver",
    "Moving",
    "Deleting",
    "Recovered",
];

/// VPG substatus names by number, as the vendor's 10.x SDK has them. A 10.0 goes up to 42; the names
/// of 33 and above are unknown.
pub(crate) const SUB_STATUSES: [&str; 33] = [
    "None",
    "InitialSync",
    "Creating",
    "VolumeInitialSync",
    "Sync",
    "RecoveryPossible",
    "DeltaSync",
    "NeedsConfiguration",
    "Error",
    "EmptyProtectionGroup",
    "DisconnectedFromPeerNoRecoveryPoints",
    "FullSync",
    "VolumeDeltaSync",
    "VolumeFullSync",
    "FailingOverCommitting",
    "FailingOverBeforeCommit",
    "FailingOverRollingBack",
    "Promoting",
    "MovingCommitting",
    "MovingBeforeCommit",
    "MovingRollingBack",
    "Deleting",
    "PendingRemove",
    "BitmapSync",
    "DisconnectedFromPeer",
    "ReplicationPausedUserInitiated",
    "ReplicationPausedSystemInitiated",
    "RecoveryStorageProfileError",
    "Backup",
    "RollingBack",
    "RecoveryStorageError",
    "JournalStorageError",
    "VmNotProtectedError",
];

/// Platform of a VPG's side, by number.
pub(crate) const ENTITY_TYPES: [&str; 6] = ["VCVpg", "VCvApp", "VCDvApp", "AWS", "HyperV", "Azure"];

/// VPG priorities, by number.
pub(crate) const PRIORITIES: [&str; 3] = ["Low", "Medium", "High"];

/// Task states, by number.
pub(crate) const TASK_STATES: [&str; 8] = [
    "FirstUnusedValue",
    "InProgress",
    "WaitingForUserInput",
    "Paused",
    "Failed",
    "Stopped",
    "Completed",
    "Cancelling",
];

/// Task types that this simulator runs.
pub(crate) const TASK_TYPES: [&str; 3] = ["InsertTaggedCP", "FlrJournalMount", "FlrJournalUnmount"];

/// Checkpoint kinds, by number; the order is inferred from the filters of the vendor's UI.
pub(crate) const CHECKPOINT_TYPES: [&str; 3] = ["Auto", "User", "Vss"];

/// Pairing states, by number.
pub(crate) const PAIRING: [&str; 3] = ["Paired", "Pairing", "Unpaired"];

/// A value of an enumeration in a scenario: its name, or its number where no name is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Code {
    /// The number itself.
    Number(u8),
    /// One of the ZVM's names, in any letter case.
    Name(String),
}

impl Code {
    /// The number, if the name is known.
    pub(crate) fn resolve(&self, names: &[&str]) -> Option<u8> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Name(name) => names
                .iter()
                .position(|known| known.eq_ignore_ascii_case(name))
                .and_then(|index| u8::try_from(index).ok()),
        }
    }
}

impl From<&str> for Code {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl From<u8> for Code {
    fn from(number: u8) -> Self {
        Self::Number(number)
    }
}

/// The name of a number, or nothing where none is known.
pub(crate) fn name_of(names: &[&'static str], number: u8) -> Option<&'static str> {
    names.get(usize::from(number)).copied()
}

/// Whether a filter value (a number or a name, any letter case) means this number.
pub(crate) fn matches(names: &[&'static str], number: u8, filter: &str) -> bool {
    filter.parse::<u8>().map_or_else(
        |_| name_of(names, number).is_some_and(|name| name.eq_ignore_ascii_case(filter)),
        |wanted| wanted == number,
    )
}

/// Whether a VPG in this state takes new checkpoints at all.
pub(crate) fn takes_checkpoints(status: u8, sub_status: u8) -> bool {
    let blocked_status = matches!(status, 0 | 5 | 6 | 7);
    let blocked_sub = matches!(sub_status, 1..=4 | 7 | 8 | 10 | 11 | 13..=16 | 18..=26);
    !blocked_status && !blocked_sub
}

/// Whether the protected side is a public cloud, where no tagged checkpoint can be inserted (measured
/// on a 10.x ZVM).
pub(crate) fn is_cloud(entity: u8) -> bool {
    matches!(entity, 3 | 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_a_name_or_a_number() {
        assert_eq!(Code::from("bitmapsync").resolve(&SUB_STATUSES), Some(23));
        assert_eq!(Code::from(41).resolve(&SUB_STATUSES), Some(41));
        assert_eq!(Code::from("nonsense").resolve(&SUB_STATUSES), None);
    }

    #[test]
    fn states_that_take_no_checkpoints() {
        assert!(takes_checkpoints(1, 0));
        assert!(takes_checkpoints(2, 6));
        for sub in [1, 2, 7, 10, 11, 21, 23, 24, 25, 26] {
            assert!(!takes_checkpoints(1, sub), "{sub}");
        }
        assert!(!takes_checkpoints(0, 0));
        assert!(!takes_checkpoints(7, 0));
    }
}
