//! The ZVM's answers, as far as they are needed.

mod checkpoint;
mod enumeration;
mod flr;
mod site;
mod task;
mod vm;
mod vpg;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

pub use checkpoint::{Checkpoint, CheckpointId, JournalStats, PointInTime, Window};
pub use enumeration::EnumValue;
pub use flr::{FlrSession, FlrSessionId, FlrStatus, PathItem, PathKind};
pub use site::Site;
pub use task::{Task, TaskState};
pub use vm::{UnprotectedVm, VmFilter, VmRow};
pub use vpg::Vpg;

pub(crate) use checkpoint::{CheckpointWire, PointInTimeWire, StatsWire};
pub(crate) use flr::{BrowseWire, FlrSessionWire};
pub(crate) use site::{SiteWire, VirtualizationSiteWire};
pub(crate) use task::TaskWire;
pub(crate) use vm::{UnprotectedVmWire, VmWire};
pub(crate) use vpg::VpgWire;

use serde::Deserialize;

use crate::decode::Scalar;

/// A link to another object. Its members are lower case where others are not.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LinkWire {
    #[serde(alias = "Identifier")]
    identifier: Scalar,
    #[serde(alias = "Type")]
    r#type: Scalar,
    #[serde(alias = "vpgIdentifier", alias = "VpgIdentifier")]
    vpg_identifier: Scalar,
}

impl LinkWire {
    /// The identifier without the query that VM links carry (`<vm>?VpgIdentifier=<vpg>`).
    fn identifier(self) -> Option<String> {
        let whole = self.identifier.text()?;
        let cut = whole.split('?').next().unwrap_or_default();
        (!cut.is_empty()).then(|| cut.to_owned())
    }

    /// The VPG of a VM link: a member of its own, or in the query of the identifier.
    fn vpg(&self) -> Option<String> {
        self.vpg_identifier.clone().text().or_else(|| {
            let whole = self.identifier.clone().text()?;
            let (_, query) = whole.split_once('?')?;
            url::form_urlencoded::parse(query.as_bytes())
                .find(|(name, value)| {
                    name.eq_ignore_ascii_case("VpgIdentifier") && !value.is_empty()
                })
                .map(|(_, value)| value.into_owned())
        })
    }

    /// True where the link leads to a site of this ZVM, false where to a peer.
    fn is_local(&self) -> Option<bool> {
        match &self.r#type {
            Scalar::Text(text) if text.eq_ignore_ascii_case("LocalSiteApi") => Some(true),
            Scalar::Text(text) if text.eq_ignore_ascii_case("PeerSiteApi") => Some(false),
            _ => None,
        }
    }
}

/// What the two sides of a replication are.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(crate) struct EntitiesWire {
    #[serde(alias = "protected")]
    protected: EnumValue,
    #[serde(alias = "recovery")]
    recovery: EnumValue,
}
