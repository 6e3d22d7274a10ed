//! Tasks.

use crate::{
    Error, Task, Zvm,
    client::{Call, OBJECT},
    decode,
    model::TaskWire,
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
        let tasks = decode::one_or_many(&body, |wire: TaskWire| Ok(wire.read(id)))
            .map_err(|why| call.unreadable(why))?;
        Ok(tasks.into_iter().next())
    }
}
