//! VMs.

use serde::Deserialize;

use super::{EntitiesWire, EnumValue, LinkWire};
use crate::decode::{Many, Maybe, Scalar};

/// Filters of `GET /v1/vms`; the server's filtering is not trusted (exact or substring, its case: not documented), callers
/// match again.
#[derive(Clone, Debug, Default)]
pub struct VmFilter {
    /// `vmIdentifier`
    pub identifier: Option<String>,
    /// `vmName`
    pub name: Option<String>,
}

/// One row of `GET /v1/vms`: one (VM, VPG) pair.
#[derive(Clone, Debug)]
pub struct VmRow {
    /// `<server guid>.<moref>` on vSphere; other forms elsewhere.
    pub identifier: String,
    /// Not unique (its identifier where none came).
    pub name: String,
    /// The VPG of this row.
    pub vpg_identifier: String,
    /// Its name (its identifier where none came).
    pub vpg_name: String,
    /// The status of the VPG.
    pub status: EnumValue,
    /// The substatus of the VPG.
    pub sub_status: EnumValue,
    /// Addresses of its network adapters; often empty.
    pub ip_addresses: Vec<String>,
    /// The operating system, in words.
    pub guest_os: Option<String>,
    /// False where the ZVM asked is only the recovery site of this VM (`ProtectedSite.type` is `PeerSiteApi`).
    pub protected_here: Option<bool>,
    /// The name of the protected site.
    pub protected_site: Option<String>,
    /// The name of the recovery site.
    pub recovery_site: Option<String>,
    /// `Entities.Protected`: VCVpg, AWS, Azure, …
    pub protected_entity: EnumValue,
    /// `EnabledActions.IsFlrEnabled`
    pub flr_enabled: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(crate) struct VmWire {
    #[serde(alias = "vmIdentifier")]
    vm_identifier: Scalar,
    #[serde(alias = "vmName")]
    vm_name: Scalar,
    #[serde(alias = "vpgIdentifier")]
    vpg_identifier: Scalar,
    #[serde(alias = "vpgName")]
    vpg_name: Scalar,
    #[serde(alias = "status")]
    status: EnumValue,
    #[serde(alias = "subStatus")]
    sub_status: EnumValue,
    #[serde(alias = "entities")]
    entities: Maybe<EntitiesWire>,
    #[serde(alias = "enabledActions")]
    enabled_actions: Maybe<EnabledActionsWire>,
    #[serde(alias = "sourceSite")]
    source_site: Scalar,
    #[serde(alias = "targetSite")]
    target_site: Scalar,
    #[serde(alias = "protectedSite")]
    protected_site: Maybe<LinkWire>,
    #[serde(alias = "protectedSiteName")]
    protected_site_name: Scalar,
    #[serde(alias = "recoverySiteName")]
    recovery_site_name: Scalar,
    #[serde(alias = "link")]
    link: Maybe<LinkWire>,
    #[serde(alias = "guestOs")]
    guest_os: Scalar,
    #[serde(alias = "vmNetworkInformation")]
    vm_network_information: Maybe<NetworkWire>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct EnabledActionsWire {
    #[serde(alias = "isFlrEnabled")]
    is_flr_enabled: Scalar,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct NetworkWire {
    #[serde(alias = "networkAdapters")]
    network_adapters: Many<Maybe<AdapterWire>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct AdapterWire {
    #[serde(alias = "ipAddresses")]
    ip_addresses: Many<Scalar>,
}

impl VmWire {
    pub(crate) fn read(self) -> Result<VmRow, String> {
        let name = self.vm_name.text();
        let link = self.link.0.unwrap_or_default();
        let vpg_identifier = self.vpg_identifier.text().or_else(|| link.vpg());
        let identifier = self.vm_identifier.text().or_else(|| link.identifier());
        let named = || {
            name.as_deref()
                .map(|name| format!(" ({})", crate::decode::line(name)))
                .unwrap_or_default()
        };
        let Some(identifier) = identifier else {
            return Err(format!("the VM{} has no identifier", named()));
        };
        let Some(vpg_identifier) = vpg_identifier else {
            return Err(format!("the VM{} names no VPG", named()));
        };
        let entities = self.entities.0.unwrap_or_default();
        Ok(VmRow {
            name: name.unwrap_or_else(|| identifier.clone()),
            identifier,
            vpg_name: self
                .vpg_name
                .text()
                .unwrap_or_else(|| vpg_identifier.clone()),
            vpg_identifier,
            status: self.status,
            sub_status: self.sub_status,
            ip_addresses: addresses(self.vm_network_information),
            guest_os: self.guest_os.text(),
            protected_here: self.protected_site.0.and_then(|site| site.is_local()),
            protected_site: self
                .protected_site_name
                .text()
                .or_else(|| self.source_site.text()),
            recovery_site: self
                .recovery_site_name
                .text()
                .or_else(|| self.target_site.text()),
            protected_entity: entities.protected,
            flr_enabled: self
                .enabled_actions
                .0
                .and_then(|actions| actions.is_flr_enabled.flag()),
        })
    }
}

fn addresses(network: Maybe<NetworkWire>) -> Vec<String> {
    let adapters = network.0.unwrap_or_default().network_adapters.0;
    adapters
        .into_iter()
        .filter_map(|adapter| adapter.0)
        .flat_map(|adapter| adapter.ip_addresses.0)
        .filter_map(Scalar::text)
        .collect()
}

/// One VM of `GET /v1/virtualizationsites/{site}/vms`: eligible and not protected.
#[derive(Clone, Debug)]
pub struct UnprotectedVm {
    /// As in [`VmRow::identifier`].
    pub identifier: String,
    /// Not unique (its identifier where none came).
    pub name: String,
    /// Addresses of its network adapters; often empty.
    pub ip_addresses: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(crate) struct UnprotectedVmWire {
    #[serde(alias = "vmIdentifier")]
    vm_identifier: Scalar,
    #[serde(alias = "vmName")]
    vm_name: Scalar,
    #[serde(alias = "vmNetworkInformation")]
    vm_network_information: Maybe<NetworkWire>,
}

impl UnprotectedVmWire {
    pub(crate) fn read(self) -> Result<UnprotectedVm, String> {
        let identifier = self
            .vm_identifier
            .text()
            .ok_or("the VM has no identifier")?;
        Ok(UnprotectedVm {
            name: self.vm_name.text().unwrap_or_else(|| identifier.clone()),
            identifier,
            ip_addresses: addresses(self.vm_network_information),
        })
    }
}
