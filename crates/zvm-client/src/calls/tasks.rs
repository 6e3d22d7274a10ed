//! Tasks.

use crate::{
    Error, FlrSessionId, Task, TaskState, Zvm, bodies,
    client::{Call, LIST, OBJECT},
    decode,
};

impl Zvm {
    /// `GET /v1/tasks/{id}`. None: the ZVM does not know it (just created, purged, restarted, other site; or `id` is empty).
    ///
    /// # Errors
    /// Those of a GET, but for a 404.
    pub async fn task(&self, id: &str) -> Result<Option<Task>, Error> {
        if id.is_empty() {
            return Ok(None);
        }
        let what = format!("read task {}", decode::line(id));
        let call = Call::get(&what, self.url(&what, "v1/tasks/{}", &[id])?, OBJECT);
        let body = match self.call(&call).await {
            Err(Error::NotFound { .. }) => return Ok(None),
            other => other?,
        };
        bodies::task(&body, id).map_err(|why| call.unreadable(why))
    }

    /// Why the last task of an FLR session that failed did so (`FlrJournalMount`, `FlrJournalUnmount`), in the ZVM's words:
    /// `GET /v1/tasks`. None: the ZVM does not say.
    ///
    /// # Errors
    /// Those of a GET.
    pub async fn flr_failure(&self, session: &FlrSessionId) -> Result<Option<String>, Error> {
        let what = format!(
            "list the failed tasks of FLR session {}",
            decode::line(&session.0)
        );
        let mut url = self.url(&what, "v1/tasks", &[])?;
        // The number of Failed.
        url.query_pairs_mut().append_pair("status", "4");
        let call = Call::get(&what, url, LIST);
        let body = self.call(&call).await?;
        let tasks = bodies::tasks(&body).map_err(|why| call.unreadable(why))?;
        Ok(tasks
            .into_iter()
            .filter(|task| {
                task.state == TaskState::Failed
                    && task.flr_sessions.iter().any(|id| id.same_as(session))
            })
            .filter_map(|task| task.reason)
            .next_back())
    }
}
