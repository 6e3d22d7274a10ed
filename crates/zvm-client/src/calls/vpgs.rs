//! VPGs, and the names of their states.

use tokio::sync::OnceCell;

use crate::{
    Error, Vpg, Zvm, bodies,
    client::{Call, LIST, OBJECT},
    decode,
};

impl Zvm {
    /// `GET /v1/vpgs/{id}`
    ///
    /// # Errors
    /// Those of a GET.
    pub async fn vpg(&self, vpg_identifier: &str) -> Result<Vpg, Error> {
        let what = format!("read VPG {}", decode::line(vpg_identifier));
        let call = Call::get(
            &what,
            self.url(&what, "v1/vpgs/{}", &[vpg_identifier])?,
            OBJECT,
        );
        let body = self.call(&call).await?;
        bodies::vpg(&body).map_err(|why| call.unreadable(why))
    }

    /// `GET /v1/vpgs`
    ///
    /// # Errors
    /// Those of a GET; [`Error::Unreadable`] names a row without identifier.
    pub async fn vpgs(&self) -> Result<Vec<Vpg>, Error> {
        let what = "list the VPGs";
        let call = Call::get(what, self.url(what, "v1/vpgs", &[])?, LIST);
        let body = self.call(&call).await?;
        bodies::vpgs(&body).map_err(|why| call.unreadable(why))
    }

    /// Names of statuses by number: `GET /v1/vpgs/statuses`. Asked once; clones share the answer.
    ///
    /// # Errors
    /// Those of a GET.
    pub async fn vpg_statuses(&self) -> Result<Vec<String>, Error> {
        self.names(
            "list the statuses of VPGs",
            "v1/vpgs/statuses",
            self.status_names(),
        )
        .await
    }

    /// Names of substatuses by number: `GET /v1/vpgs/substatuses`. Asked once; clones share the answer.
    ///
    /// # Errors
    /// Those of a GET.
    pub async fn vpg_sub_statuses(&self) -> Result<Vec<String>, Error> {
        self.names(
            "list the substatuses of VPGs",
            "v1/vpgs/substatuses",
            self.sub_status_names(),
        )
        .await
    }

    async fn names(
        &self,
        what: &str,
        path: &str,
        known: &OnceCell<Vec<String>>,
    ) -> Result<Vec<String>, Error> {
        let names = known
            .get_or_try_init(|| async {
                let call = Call::get(what, self.url(what, path, &[])?, OBJECT);
                let body = self.call(&call).await?;
                bodies::names(&body).map_err(|why| call.unreadable(why))
            })
            .await?;
        Ok(names.clone())
    }
}
