//! The site, its clock, its platforms.

use jiff::Timestamp;

use crate::{
    Error, Site, UnprotectedVm, Zvm, bodies,
    client::{Call, LIST, OBJECT},
    decode,
};

impl Zvm {
    /// The ZVM's clock, in UTC: `GET /v1/serverDateTime/serverDateTimeUtc`.
    ///
    /// # Errors
    /// Those of a GET.
    pub async fn server_time(&self) -> Result<Timestamp, Error> {
        let what = "read the clock of the ZVM";
        let call = Call::get(
            what,
            self.url(what, "v1/serverDateTime/serverDateTimeUtc", &[])?,
            OBJECT,
        );
        let body = self.call(&call).await?;
        bodies::time(&body).map_err(|why| call.unreadable(why))
    }

    /// The site of this ZVM: `GET /v1/localsite`.
    ///
    /// # Errors
    /// Those of a GET.
    pub async fn local_site(&self) -> Result<Site, Error> {
        let what = "read the site of the ZVM";
        let call = Call::get(what, self.url(what, "v1/localsite", &[])?, OBJECT);
        let body = self.call(&call).await?;
        bodies::site(&body).map_err(|why| call.unreadable(why))
    }

    /// VMs that could be protected and are not, of every virtualization site that the ZVM lists:
    /// `GET /v1/virtualizationsites` and `GET /v1/virtualizationsites/{site}/vms`.
    ///
    /// # Errors
    /// Those of a GET; also where one site of several can't be listed.
    pub async fn unprotected_vms(&self) -> Result<Vec<UnprotectedVm>, Error> {
        let what = "list the virtualization sites";
        let call = Call::get(what, self.url(what, "v1/virtualizationsites", &[])?, LIST);
        let body = self.call(&call).await?;
        let sites = bodies::virtualization_sites(&body).map_err(|why| call.unreadable(why))?;

        let mut vms = Vec::new();
        for site in sites {
            let what = format!("list the unprotected VMs of site {}", decode::line(&site));
            let call = Call::get(
                &what,
                self.url(&what, "v1/virtualizationsites/{}/vms", &[&site])?,
                LIST,
            );
            let body = self.call(&call).await?;
            vms.extend(bodies::unprotected_vms(&body).map_err(|why| call.unreadable(why))?);
        }
        Ok(vms)
    }
}
