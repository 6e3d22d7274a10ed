//! Checkpoints of a journal.

use std::{fmt, str::FromStr};

use jiff::Timestamp;
use serde::Deserialize;

use crate::decode::{Maybe, Scalar};

/// A checkpoint of a VPG's journal. Ids rise per VPG and are unique only within it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Its id.
    pub id: CheckpointId,
    /// The moment that it holds.
    pub time: Timestamp,
    /// None: an automatic one. A mounted checkpoint's tag ends in `; Used for File Level Restore` (measured on a 10.x ZVM).
    pub tag: Option<String>,
}

/// A decimal number in a string on the wire. Ordered by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckpointId(pub u64);

impl fmt::Display for CheckpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for CheckpointId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.trim().parse().map(Self)
    }
}

/// A window of a journal, both ends in it. Whether a ZVM counts the ends in is not documented: leave a margin.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// The beginning, sent in milliseconds (rounded down).
    pub from: Timestamp,
    /// The end, sent in milliseconds (rounded up).
    pub to: Timestamp,
}

/// `GET …/checkpoints/stats`. None where the journal is empty.
#[derive(Clone, Debug)]
pub struct JournalStats {
    /// The oldest checkpoint.
    pub earliest: Option<Checkpoint>,
    /// The newest one.
    pub latest: Option<Checkpoint>,
}

/// `GET /v1/vms/{vm}/pointsInTime`: a checkpoint, and whether FLR can mount it.
#[derive(Clone, Debug)]
pub struct PointInTime {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// `CanMount.IsAllowed`
    pub can_mount: Option<bool>,
    /// Why not, in the ZVM's words.
    pub reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(crate) struct CheckpointWire {
    #[serde(alias = "checkpointIdentifier")]
    checkpoint_identifier: Scalar,
    #[serde(alias = "timeStamp", alias = "timestamp", alias = "Timestamp")]
    time_stamp: Scalar,
    #[serde(alias = "tag")]
    tag: Scalar,
}

impl CheckpointWire {
    pub(crate) fn read(self) -> Result<Checkpoint, String> {
        let id = self
            .checkpoint_identifier
            .unsigned()
            .ok_or("the checkpoint has no identifier that is a number")?;
        let time = self
            .time_stamp
            .time()
            .ok_or_else(|| format!("checkpoint {id} has no time that can be read"))?;
        Ok(Checkpoint {
            id: CheckpointId(id),
            time,
            tag: self.tag.text(),
        })
    }

    /// Nothing where the ZVM sent an object without id, as for an empty journal.
    pub(super) fn read_optional(wire: Maybe<Self>) -> Result<Option<Checkpoint>, String> {
        match wire.0 {
            Some(wire) if wire.checkpoint_identifier.clone().text().is_some() => {
                wire.read().map(Some)
            }
            _ => Ok(None),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(crate) struct StatsWire {
    #[serde(alias = "earliest")]
    earliest: Maybe<CheckpointWire>,
    #[serde(alias = "latest")]
    latest: Maybe<CheckpointWire>,
}

impl StatsWire {
    pub(crate) fn read(self) -> Result<JournalStats, String> {
        Ok(JournalStats {
            earliest: CheckpointWire::read_optional(self.earliest)?,
            latest: CheckpointWire::read_optional(self.latest)?,
        })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(crate) struct PointInTimeWire {
    #[serde(alias = "checkpoint")]
    checkpoint: Maybe<CheckpointWire>,
    #[serde(alias = "canMount")]
    can_mount: Maybe<AllowedWire>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct AllowedWire {
    #[serde(alias = "isAllowed")]
    is_allowed: Scalar,
    #[serde(alias = "reason")]
    reason: Scalar,
}

impl PointInTimeWire {
    /// None for a point of another kind (a retention set has no checkpoint).
    pub(crate) fn read(self) -> Result<Option<PointInTime>, String> {
        let Some(checkpoint) = self.checkpoint.0 else {
            return Ok(None);
        };
        let allowed = self.can_mount.0.unwrap_or_default();
        Ok(Some(PointInTime {
            checkpoint: checkpoint.read()?,
            can_mount: allowed.is_allowed.flag(),
            reason: allowed.reason.text(),
        }))
    }
}
