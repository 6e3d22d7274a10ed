//! Sites.

use serde::Deserialize;

use super::LinkWire;
use crate::decode::{Maybe, Scalar};

/// `GET /v1/localsite`: the site of the ZVM asked.
#[derive(Clone, Debug)]
pub struct Site {
    /// Its identifier.
    pub identifier: String,
    /// Its name (its identifier where none came).
    pub name: String,
    /// `VCenter`, …
    pub site_type: Option<String>,
    /// The ZVM's version.
    pub version: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(crate) struct SiteWire {
    #[serde(alias = "siteIdentifier")]
    site_identifier: Scalar,
    #[serde(alias = "siteName")]
    site_name: Scalar,
    #[serde(alias = "siteType")]
    site_type: Scalar,
    #[serde(alias = "version")]
    version: Scalar,
    #[serde(alias = "link")]
    link: Maybe<LinkWire>,
}

impl SiteWire {
    pub(crate) fn read(self) -> Result<Site, String> {
        let identifier = self
            .site_identifier
            .text()
            .or_else(|| self.link.0.and_then(LinkWire::identifier))
            .ok_or("the site has no identifier")?;
        Ok(Site {
            name: self.site_name.text().unwrap_or_else(|| identifier.clone()),
            identifier,
            site_type: self.site_type.text(),
            version: self.version.text(),
        })
    }
}

/// `GET /v1/virtualizationsites`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(crate) struct VirtualizationSiteWire {
    #[serde(alias = "siteIdentifier")]
    site_identifier: Scalar,
}

impl VirtualizationSiteWire {
    pub(crate) fn read(self) -> Result<String, String> {
        self.site_identifier
            .text()
            .ok_or_else(|| "the virtualization site has no identifier".into())
    }
}
