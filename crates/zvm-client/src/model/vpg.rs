//! VPGs.

use serde::Deserialize;

use super::{Checkpoint, CheckpointWire, EntitiesWire, EnumValue, LinkWire};
use crate::decode::{Maybe, Scalar};

/// One row of `GET /v1/vpgs`.
#[derive(Clone, Debug)]
pub struct Vpg {
    /// A GUID.
    pub identifier: String,
    /// Its name (its identifier where none came).
    pub name: String,
    /// Its status. Sources disagree on the names of 3 and 4: take names from [`crate::Zvm::vpg_statuses`].
    pub status: EnumValue,
    /// Its substatus; from 28 on numbers differ by release: take names from [`crate::Zvm::vpg_sub_statuses`].
    pub sub_status: EnumValue,
    /// The status in the ZVM's words (10.x).
    pub status_description: Option<String>,
    /// The substatus in the ZVM's words (10.x).
    pub sub_status_description: Option<String>,
    /// `Entities.Protected`: VCVpg, AWS, Azure, …
    pub protected_entity: EnumValue,
    /// `Entities.Recovery`
    pub recovery_entity: EnumValue,
    /// False where the ZVM asked is only the recovery site (`ProtectedSite.type` is `PeerSiteApi`).
    pub protected_here: Option<bool>,
    /// The name of the protected site.
    pub protected_site: Option<String>,
    /// The name of the recovery site.
    pub recovery_site: Option<String>,
    /// Seconds; None while initialising (-1).
    pub actual_rpo_seconds: Option<u64>,
    /// How far the journal is meant to reach.
    pub configured_history_minutes: Option<u64>,
    /// How far it reaches; may be more than configured.
    pub actual_history_minutes: Option<u64>,
    /// The oldest checkpoint of the journal.
    pub earliest_checkpoint: Option<Checkpoint>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(crate) struct VpgWire {
    #[serde(alias = "vpgIdentifier")]
    vpg_identifier: Scalar,
    #[serde(alias = "vpgName")]
    vpg_name: Scalar,
    #[serde(alias = "link")]
    link: Maybe<LinkWire>,
    #[serde(alias = "status")]
    status: EnumValue,
    #[serde(alias = "subStatus")]
    sub_status: EnumValue,
    #[serde(alias = "statusDescription")]
    status_description: Scalar,
    #[serde(alias = "subStatusDescription")]
    sub_status_description: Scalar,
    #[serde(alias = "entities")]
    entities: Maybe<EntitiesWire>,
    #[serde(alias = "protectedSite")]
    protected_site: Maybe<LinkWire>,
    #[serde(alias = "protectedSiteName")]
    protected_site_name: Scalar,
    #[serde(alias = "recoverySiteName")]
    recovery_site_name: Scalar,
    #[serde(alias = "sourceSite")]
    source_site: Scalar,
    #[serde(alias = "targetSite")]
    target_site: Scalar,
    #[serde(
        rename = "ActualRPO",
        alias = "actualRPO",
        alias = "actualRpo",
        alias = "ActualRpo"
    )]
    actual_rpo: Scalar,
    #[serde(alias = "historyStatusApi")]
    history_status_api: Maybe<HistoryWire>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct HistoryWire {
    #[serde(alias = "actualHistoryInMinutes")]
    actual_history_in_minutes: Scalar,
    #[serde(alias = "configuredHistoryInMinutes")]
    configured_history_in_minutes: Scalar,
    #[serde(alias = "earliestCheckpoint")]
    earliest_checkpoint: Maybe<CheckpointWire>,
}

impl VpgWire {
    pub(crate) fn read(self) -> Result<Vpg, String> {
        let name = self.vpg_name.text();
        let Some(identifier) = self
            .vpg_identifier
            .text()
            .or_else(|| self.link.0.and_then(LinkWire::identifier))
        else {
            let name = name
                .map(|name| format!(" ({})", crate::decode::line(&name)))
                .unwrap_or_default();
            return Err(format!("the VPG{name} has no identifier"));
        };
        let entities = self.entities.0.unwrap_or_default();
        let history = self.history_status_api.0.unwrap_or_default();
        Ok(Vpg {
            name: name.unwrap_or_else(|| identifier.clone()),
            identifier,
            status: self.status,
            sub_status: self.sub_status,
            status_description: self.status_description.text(),
            sub_status_description: self.sub_status_description.text(),
            protected_entity: entities.protected,
            recovery_entity: entities.recovery,
            protected_here: self.protected_site.0.and_then(|site| site.is_local()),
            protected_site: self
                .protected_site_name
                .text()
                .or_else(|| self.source_site.text()),
            recovery_site: self
                .recovery_site_name
                .text()
                .or_else(|| self.target_site.text()),
            actual_rpo_seconds: self.actual_rpo.unsigned(),
            configured_history_minutes: history.configured_history_in_minutes.unsigned(),
            actual_history_minutes: history.actual_history_in_minutes.unsigned(),
            // Told for information only: one that can't be read is left out.
            earliest_checkpoint: CheckpointWire::read_optional(history.earliest_checkpoint)
                .unwrap_or(None),
        })
    }
}
