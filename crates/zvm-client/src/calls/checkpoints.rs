//! A VPG's journal.

use jiff::{RoundMode, Timestamp, TimestampRound, Unit};
use serde_json::json;
use url::Url;

use crate::{
    Checkpoint, Error, JournalStats, PointInTime, Window, Zvm, bodies,
    client::{Call, LIST, OBJECT},
    decode,
};

impl Zvm {
    /// Inserts a tagged checkpoint: `POST /v1/vpgs/{id}/checkpoints`. The answer is the id of a task, *not* of a checkpoint; empty
    /// where the ZVM named none ([`Zvm::task`] then knows none). It says nothing yet: inserts back to back at one VPG are
    /// dropped silently (measured on a 10.x ZVM), so only the journal shows whether there is a checkpoint.
    ///
    /// # Errors
    /// [`Error::Unknown`], or [`Error::Deadline`] with `unknown`, where the answer was lost: look at the journal before trying
    /// again. After every other error nothing was inserted.
    pub async fn insert_checkpoint(
        &self,
        vpg_identifier: &str,
        name: &str,
    ) -> Result<String, Error> {
        let what = format!(
            "insert a checkpoint into VPG {}",
            decode::line(vpg_identifier)
        );
        let url = self.url(&what, "v1/vpgs/{}/checkpoints", &[vpg_identifier])?;
        let call = Call::post(&what, url, json!({ "checkpointName": name }));
        let body = self.call(&call).await?;
        bodies::identifier(&body).map_err(|why| call.unreadable(why))
    }

    /// The checkpoints of a window, sorted by id, ascending: `GET /v1/vpgs/{id}/checkpoints`. There is no paging: a journal
    /// can hold hundreds of thousands.
    ///
    /// # Errors
    /// Those of a GET; [`Error::Unreadable`] names a row without id or time.
    pub async fn checkpoints(
        &self,
        vpg_identifier: &str,
        window: Window,
    ) -> Result<Vec<Checkpoint>, Error> {
        let what = format!(
            "list the checkpoints of VPG {}",
            decode::line(vpg_identifier)
        );
        let mut url = self.url(&what, "v1/vpgs/{}/checkpoints", &[vpg_identifier])?;
        add_window(&mut url, window);
        let call = Call::get(&what, url, LIST);
        let body = self.call(&call).await?;
        bodies::checkpoints(&body).map_err(|why| call.unreadable(why))
    }

    /// The two ends of the journal: `GET /v1/vpgs/{id}/checkpoints/stats`.
    ///
    /// # Errors
    /// Those of a GET.
    pub async fn journal_stats(&self, vpg_identifier: &str) -> Result<JournalStats, Error> {
        let what = format!(
            "read the ends of the journal of VPG {}",
            decode::line(vpg_identifier)
        );
        let call = Call::get(
            &what,
            self.url(&what, "v1/vpgs/{}/checkpoints/stats", &[vpg_identifier])?,
            OBJECT,
        );
        let body = self.call(&call).await?;
        bodies::journal_stats(&body).map_err(|why| call.unreadable(why))
    }

    /// The points in time of a VM in a VPG, and whether FLR can mount them, sorted by id, ascending:
    /// `GET /v1/vms/{vm}/pointsInTime`.
    ///
    /// # Errors
    /// Those of a GET; [`Error::Unreadable`] names a row whose checkpoint has no id or time.
    pub async fn points_in_time(
        &self,
        vm_identifier: &str,
        vpg_identifier: &str,
        window: Window,
    ) -> Result<Vec<PointInTime>, Error> {
        let what = format!(
            "list the points in time of VM {} in VPG {}",
            decode::line(vm_identifier),
            decode::line(vpg_identifier)
        );
        let mut url = self.url(&what, "v1/vms/{}/pointsInTime", &[vm_identifier])?;
        url.query_pairs_mut()
            .append_pair("vpgIdentifier", vpg_identifier);
        add_window(&mut url, window);
        let call = Call::get(&what, url, LIST);
        let body = self.call(&call).await?;
        bodies::points_in_time(&body).map_err(|why| call.unreadable(why))
    }
}

fn add_window(url: &mut Url, window: Window) {
    url.query_pairs_mut()
        .append_pair("startDate", &decode::query_time(window.from))
        .append_pair("endDate", &decode::query_time(rounded_up(window.to)));
}

/// To whole milliseconds, so that the end stays in the window.
fn rounded_up(time: Timestamp) -> Timestamp {
    let rounding = TimestampRound::new()
        .smallest(Unit::Millisecond)
        .mode(RoundMode::Ceil);
    time.round(rounding).unwrap_or(time)
}
