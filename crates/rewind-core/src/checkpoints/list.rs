//! Lists tagged checkpoints from the newest day backwards.
use super::{
    CheckpointList, ListedCheckpoint,
    window::{Backwards, as_shown, earlier, expected_until, later},
};
use crate::{
    Error, ErrorCode,
    protection::{Found, FoundVpg},
    tag::{self, Parsed},
    text,
};
use futures::future::try_join_all;
use jiff::Timestamp;
use std::{cmp::Reverse, collections::BTreeMap, time::Duration};
use zvm_client::{Checkpoint, CheckpointId, Zvm};

const SINCE_DEFAULT: Duration = Duration::from_secs(24 * 60 * 60);
const LIMIT_DEFAULT: usize = 50;
const LIMIT_MAX: usize = 500;
/// What one request asks for: a day, as Zerto's own interface does.
pub(crate) const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How far the clock behind a journal's times may be from the ZVM's, or have been before it was set.
pub(crate) const OFF: Duration = DAY;
/// The longest foreign tag that is shown.
pub(super) const TAG_SHOWN_MAX: usize = 500;
const NOTE: &str = "Times are by the ZVM's clock. expected_until is an estimate from the configured history: a full \
                    journal or a resync removes checkpoints earlier.";

/// The tagged checkpoints of the last `since` (default: a day), at most `limit` (default: 50).
pub(crate) async fn list(
    zvm: &Zvm,
    found: &Found,
    since: Option<Duration>,
    limit: Option<usize>,
) -> Result<CheckpointList, Error> {
    let limit = limit.unwrap_or(LIMIT_DEFAULT);
    if limit == 0 || limit > LIMIT_MAX {
        return Err(Error::new(
            ErrorCode::InvalidArgument,
            format!("`limit` is {limit}; it goes from 1 to {LIMIT_MAX}"),
        ));
    }
    let now = zvm.server_time().await?;
    let since = earlier(now, since.unwrap_or(SINCE_DEFAULT));
    let journals = try_join_all(
        found
            .vpgs
            .iter()
            .map(|vpg| tagged(zvm, vpg, since, later(now, OFF), limit)),
    )
    .await?;
    let mut truncated = journals.iter().any(|(_, more)| *more);
    let mut rows: Vec<(&FoundVpg, Checkpoint)> = found
        .vpgs
        .iter()
        .zip(journals)
        .flat_map(|(vpg, (rows, _))| rows.into_iter().map(move |row| (vpg, row)))
        .collect();
    // Stable: VPGs are in the order of their names.
    rows.sort_by_key(|(_, row)| Reverse(row.time));
    truncated |= rows.len() > limit;
    rows.truncate(limit);
    let protection = found.protection();
    Ok(CheckpointList {
        vm: protection.vm,
        vm_identifier: protection.vm_identifier,
        since: as_shown(since),
        checkpoints: rows.iter().map(|(vpg, row)| listed(vpg, row)).collect(),
        truncated,
        note: NOTE.to_owned(),
    })
}

/// The newest tagged checkpoints of one journal, newest first, and whether there are more than `limit`.
async fn tagged(
    zvm: &Zvm,
    vpg: &FoundVpg,
    since: Timestamp,
    to: Timestamp,
    limit: usize,
) -> Result<(Vec<Checkpoint>, bool), Error> {
    let Some(earliest) = earliest(zvm, vpg).await? else {
        return Ok((Vec::new(), false));
    };
    let mut rows: BTreeMap<Reverse<CheckpointId>, Checkpoint> = BTreeMap::new();
    for window in Backwards::new(since.max(earliest), to, DAY) {
        let day = zvm
            .checkpoints(vpg.id(), window)
            .await
            .map_err(|error| vpg.failed(error))?;
        rows.extend(
            day.into_iter()
                .filter(|row| row.time >= since && tag_of(row).is_some())
                .map(|row| (Reverse(row.id), row)),
        );
        if rows.len() > limit {
            break;
        }
    }
    let more = rows.len() > limit;
    Ok((rows.into_values().take(limit).collect(), more))
}

/// Before which there is nothing in the journal: nothing before it is asked for.
pub(super) async fn earliest(zvm: &Zvm, vpg: &FoundVpg) -> Result<Option<Timestamp>, Error> {
    let first = begins(zvm, vpg).await?;
    Ok(first.map(|first| earlier(first, OFF)))
}

/// The time of the first checkpoint of the journal.
pub(crate) async fn begins(zvm: &Zvm, vpg: &FoundVpg) -> Result<Option<Timestamp>, Error> {
    Ok(match &vpg.vpg.earliest_checkpoint {
        Some(first) => Some(first.time),
        None => zvm
            .journal_stats(vpg.id())
            .await
            .map_err(|error| vpg.failed(error))?
            .earliest
            .map(|first| first.time),
    })
}

/// A checkpoint with an empty tag is an automatic one.
pub(super) fn tag_of(checkpoint: &Checkpoint) -> Option<&str> {
    checkpoint
        .tag
        .as_deref()
        .filter(|tag| !tag.trim().is_empty())
}

/// A tag, safe to show; our own tags are as they are in the journal.
pub(crate) fn shown_tag(tag: &str) -> String {
    text::display(tag, TAG_SHOWN_MAX)
}

fn listed(vpg: &FoundVpg, row: &Checkpoint) -> ListedCheckpoint {
    let tag = tag_of(row).unwrap_or_default();
    let mut listed = ListedCheckpoint {
        vpg: vpg.name(),
        vpg_identifier: text::display(vpg.id(), TAG_SHOWN_MAX),
        checkpoint: row.id.0.to_string(),
        time: as_shown(row.time),
        tag: shown_tag(tag),
        ours: false,
        agent: None,
        action: None,
        tagged_vm: None,
        change_id: None,
        tagged_at: None,
        used_for_flr: tag::without_suffix(tag) != tag.trim(),
        expected_until: expected_until(&vpg.vpg, row.time),
        guard: None,
        recovery_count: 0,
        recoveries: Vec::new(),
    };
    let parsed = tag::parse(tag);
    listed.tagged_at = parsed.at().map(as_shown);
    match parsed {
        Parsed::Ours(ours) => {
            listed.ours = true;
            listed.agent = Some(ours.agent().to_owned());
            listed.action = Some(ours.action().to_owned());
            listed.tagged_vm = Some(ours.vm().to_owned());
            listed.change_id = Some(ours.change().to_owned());
        }
        Parsed::Older(older) => {
            listed.ours = true;
            listed.agent = Some(older.agent);
            listed.change_id = Some(older.change);
        }
        Parsed::NotOurs => {}
    }
    listed
}
