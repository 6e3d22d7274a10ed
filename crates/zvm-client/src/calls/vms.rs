//! Protected VMs.

use crate::{
    Error, VmFilter, VmRow, Zvm, bodies,
    client::{Call, LIST},
    decode,
};

impl Zvm {
    /// One row per (VM, VPG) pair: `GET /v1/vms`. The path form `/v1/vms/{id}` is of no use, as it fails for a VM in several VPGs.
    ///
    /// # Errors
    /// Those of a GET; [`Error::Unreadable`] names a row without identifiers.
    pub async fn vms(&self, filter: &VmFilter) -> Result<Vec<VmRow>, Error> {
        let what = match (&filter.identifier, &filter.name) {
            (Some(wanted), _) | (None, Some(wanted)) => {
                format!("look up VM {}", decode::line(wanted))
            }
            (None, None) => "list the VMs".to_owned(),
        };
        let mut url = self.url(&what, "v1/vms", &[])?;
        for (name, value) in [
            ("vmIdentifier", &filter.identifier),
            ("vmName", &filter.name),
        ] {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        let call = Call::get(&what, url, LIST);
        let body = self.call(&call).await?;
        bodies::vms(&body).map_err(|why| call.unreadable(why))
    }
}
