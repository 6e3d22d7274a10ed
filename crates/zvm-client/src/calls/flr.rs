//! File-level restore.

mod paging;

use serde_json::json;

use self::paging::{PAGE, Pages};
use crate::{
    CheckpointId, Error, FlrSession, FlrSessionId, PathItem, Zvm, bodies,
    client::{Call, LIST, OBJECT},
    decode,
};

impl Zvm {
    /// Mounts a checkpoint of a VM: `POST /v1/flrs`. Mounting goes on in the background: follow [`Zvm::flr_session`].
    ///
    /// # Errors
    /// [`Error::Unknown`], or [`Error::Deadline`] with `unknown`, where the answer was lost: look at [`Zvm::flr_sessions`].
    /// After every other error nothing was mounted.
    pub async fn mount(
        &self,
        vm_identifier: &str,
        vpg_identifier: &str,
        checkpoint: CheckpointId,
    ) -> Result<FlrSessionId, Error> {
        let what = format!(
            "mount checkpoint {checkpoint} of VM {}",
            decode::line(vm_identifier)
        );
        let body = json!({ "jflr": {
            "vpgIdentifier": vpg_identifier,
            "vmIdentifier": vm_identifier,
            "checkpointIdentifier": checkpoint.to_string(),
        }});
        let call = Call::post(&what, self.url(&what, "v1/flrs", &[])?, body);
        let body = self.call(&call).await?;
        match bodies::identifier(&body) {
            Ok(id) if !id.is_empty() => Ok(FlrSessionId(id)),
            Ok(_) => Err(call.unreadable("it names no FLR session".into())),
            Err(why) => Err(call.unreadable(why)),
        }
    }

    /// The open sessions of a VM: `GET /v1/flrs`. Those of another VM are left out, should the ZVM list them.
    ///
    /// # Errors
    /// Those of a GET; [`Error::Unreadable`] names a row without identifier.
    pub async fn flr_sessions(&self, vm_identifier: &str) -> Result<Vec<FlrSession>, Error> {
        let what = format!(
            "list the FLR sessions of VM {}",
            decode::line(vm_identifier)
        );
        let mut sessions = self.sessions(&what, Some(vm_identifier)).await?;
        sessions.retain(|session| {
            session
                .vm_identifier
                .as_ref()
                .is_none_or(|vm| vm.eq_ignore_ascii_case(vm_identifier))
        });
        Ok(sessions)
    }

    /// The open sessions of every VM: `GET /v1/flrs`.
    ///
    /// # Errors
    /// As [`Zvm::flr_sessions`].
    pub async fn all_flr_sessions(&self) -> Result<Vec<FlrSession>, Error> {
        self.sessions("list the FLR sessions", None).await
    }

    async fn sessions(&self, what: &str, vm: Option<&str>) -> Result<Vec<FlrSession>, Error> {
        let mut url = self.url(what, "v1/flrs", &[])?;
        if let Some(vm) = vm {
            url.query_pairs_mut().append_pair("vmIdentifier", vm);
        }
        let call = Call::get(what, url, LIST);
        let body = self.call(&call).await?;
        bodies::flr_sessions(&body).map_err(|why| call.unreadable(why))
    }

    /// `GET /v1/flrs/{id}`. None: gone.
    ///
    /// # Errors
    /// Those of a GET, but for a 404.
    pub async fn flr_session(&self, id: &FlrSessionId) -> Result<Option<FlrSession>, Error> {
        let what = format!("read FLR session {}", decode::line(&id.0));
        let call = Call::get(&what, self.url(&what, "v1/flrs/{}", &[&id.0])?, OBJECT);
        let body = match self.call(&call).await {
            Err(Error::NotFound { .. }) => return Ok(None),
            other => other?,
        };
        bodies::flr_session(&body, id).map_err(|why| call.unreadable(why))
    }

    /// All items of one folder (`""`: the partitions): `POST /v1/flrs/{id}/browse`, page by page. Each comes once, whether the
    /// ZVM counts pages from 0 or from 1, caps their size, or ignores paging.
    ///
    /// # Errors
    /// [`Error::TooLarge`] over `limit` items; else those of a GET.
    pub async fn browse(
        &self,
        session: &FlrSessionId,
        path: &str,
        limit: usize,
    ) -> Result<Vec<PathItem>, Error> {
        let what = match path {
            "" => "list the partitions".to_owned(),
            path => format!("list the folder {}", decode::line(path)),
        };
        let url = self.url(&what, "v1/flrs/{}/browse", &[&session.0])?;
        let mut pages = Pages::default();
        while let Some(number) = pages.next() {
            let body = json!({ "path": path, "pageNumber": number, "pageSize": PAGE });
            let call = Call::ask(&what, url.clone(), body, LIST);
            let page = match self.call(&call).await {
                Ok(body) => bodies::path_items(&body, path).map_err(|why| call.unreadable(why))?,
                Err(error) => {
                    pages.failed(error)?;
                    continue;
                }
            };
            pages.add(page);
            if pages.len() > limit {
                return Err(Error::TooLarge {
                    what,
                    limit: limit as u64,
                    unit: "items",
                });
            }
        }
        Ok(pages.finish())
    }

    /// `DELETE /v1/flrs/{id}`; a 404 is a success. Unmounting goes on in the background.
    ///
    /// # Errors
    /// [`Error::Unknown`], or [`Error::Deadline`] with `unknown`, where the answer was lost: look at [`Zvm::flr_session`].
    pub async fn unmount(&self, id: &FlrSessionId) -> Result<(), Error> {
        let what = format!("unmount FLR session {}", decode::line(&id.0));
        let call = Call::delete(&what, self.url(&what, "v1/flrs/{}", &[&id.0])?);
        match self.call(&call).await {
            // What it answers (a task, a word, nothing) is of no use: whether it is gone is seen in the session.
            Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
