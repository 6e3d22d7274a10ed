//! What each answer of a ZVM is read as: every body that this client reads, without a connection.
//!
//! Bodies come from outside. Reading one takes memory in proportion to its size, and never fails in any other way than by saying, on one
//! bounded line, what came instead.

use jiff::Timestamp;
use tokio::time::Instant;
use url::Url;

pub use crate::auth::Token;
use crate::{
    Checkpoint, FlrSession, FlrSessionId, JournalStats, PathItem, PointInTime, Site, Task,
    UnprotectedVm, VmRow, Vpg,
    auth::TokenWire,
    decode::{self, Rows, Scalar},
    download,
    model::{
        BrowseWire, CheckpointWire, FlrSessionWire, PointInTimeWire, SiteWire, StatsWire, TaskWire,
        UnprotectedVmWire, VirtualizationSiteWire, VmWire, VpgWire,
    },
};

/// What was read, or on one line what came instead.
type Read<T> = Result<T, String>;

/// The token endpoint's success.
pub fn token(body: &[u8], asked: Instant) -> Read<Token> {
    decode::object(body).and_then(|wire: TokenWire| wire.read(asked))
}

/// What an answer that is no success says, on one line of at most 300 characters.
pub fn reason(body: &[u8]) -> String {
    decode::reason(body)
}

/// `GET /v1/serverDateTime/serverDateTimeUtc`.
pub fn time(body: &[u8]) -> Read<Timestamp> {
    let text = decode::string(body)?;
    decode::timestamp(&text)
        .ok_or_else(|| format!("a time was expected, {} came", decode::quoted(&text)))
}

/// `GET /v1/localsite`.
pub fn site(body: &[u8]) -> Read<Site> {
    decode::object(body).and_then(SiteWire::read)
}

/// `GET /v1/virtualizationsites`: their identifiers.
pub fn virtualization_sites(body: &[u8]) -> Read<Vec<String>> {
    decode::rows(body, VirtualizationSiteWire::read)
}

/// `GET /v1/virtualizationsites/{id}/vms`.
pub fn unprotected_vms(body: &[u8]) -> Read<Vec<UnprotectedVm>> {
    decode::rows(body, UnprotectedVmWire::read)
}

/// `GET /v1/vms`.
pub fn vms(body: &[u8]) -> Read<Vec<VmRow>> {
    decode::rows(body, VmWire::read)
}

/// `GET /v1/vpgs/{id}`.
pub fn vpg(body: &[u8]) -> Read<Vpg> {
    decode::object(body).and_then(VpgWire::read)
}

/// `GET /v1/vpgs`.
pub fn vpgs(body: &[u8]) -> Read<Vec<Vpg>> {
    decode::rows(body, VpgWire::read)
}

/// `GET /v1/vpgs/statuses` and its like. A name that can't be read keeps its place: the place is the number.
pub fn names(body: &[u8]) -> Read<Vec<String>> {
    let Rows(names): Rows<Scalar> = decode::json(body)?;
    Ok(names
        .into_iter()
        .map(|name| name.text().unwrap_or_default())
        .collect())
}

/// The identifier that a POST answers with; empty where it answers with nothing.
pub fn identifier(body: &[u8]) -> Read<String> {
    decode::identifier(body)
}

/// `GET /v1/vpgs/{id}/checkpoints`, by rising id.
pub fn checkpoints(body: &[u8]) -> Read<Vec<Checkpoint>> {
    let mut checkpoints = decode::rows(body, CheckpointWire::read)?;
    checkpoints.sort_by_key(|checkpoint| checkpoint.id);
    Ok(checkpoints)
}

/// `GET /v1/vpgs/{id}/checkpoints/stats`.
pub fn journal_stats(body: &[u8]) -> Read<JournalStats> {
    decode::object(body).and_then(StatsWire::read)
}

/// `GET /v1/vms/{id}/pointsInTime`, by rising id.
pub fn points_in_time(body: &[u8]) -> Read<Vec<PointInTime>> {
    let points = decode::rows(body, PointInTimeWire::read)?;
    let mut points: Vec<_> = points.into_iter().flatten().collect();
    points.sort_by_key(|point| point.checkpoint.id);
    Ok(points)
}

/// `GET /v1/tasks/{id}`: one, or one in a list. `asked` is its id, where the answer has none.
pub fn task(body: &[u8], asked: &str) -> Read<Option<Task>> {
    let tasks = decode::one_or_many(body, |wire: TaskWire| Ok(wire.read(asked)))?;
    Ok(tasks.into_iter().next())
}

/// `GET /v1/tasks`.
pub fn tasks(body: &[u8]) -> Read<Vec<Task>> {
    decode::rows(body, |wire: TaskWire| Ok(wire.read("")))
}

/// `GET /v1/flrs`.
pub fn flr_sessions(body: &[u8]) -> Read<Vec<FlrSession>> {
    decode::rows(body, |wire: FlrSessionWire| wire.read(None))
}

/// `GET /v1/flrs/{id}`. None: gone.
pub fn flr_session(body: &[u8], asked: &FlrSessionId) -> Read<Option<FlrSession>> {
    let sessions = decode::one_or_many(body, |wire: FlrSessionWire| wire.read(Some(asked)))?;
    if sessions.is_empty() {
        return Ok(None);
    }
    let session = sessions
        .into_iter()
        .find(|session| session.id.same_as(asked));
    session
        .map(Some)
        .ok_or_else(|| "it is about another FLR session".into())
}

/// `POST /v1/flrs/{id}/browse`: one page of the folder `parent`.
pub fn path_items(body: &[u8], parent: &str) -> Read<Vec<PathItem>> {
    decode::object(body).and_then(|wire: BrowseWire| wire.read(parent))
}

/// `POST /v1/flrs/{id}/download`: the URL, absolute. It may lead to another host than `base`, the ZVM.
pub fn download_url(base: &Url, body: &[u8]) -> Read<Url> {
    decode::string(body).and_then(|text| download::resolve(base, &text))
}
