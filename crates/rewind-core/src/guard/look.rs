//! Looks into a VPG's journal: for the tag that was inserted, and for those of others, who may have been quicker.
use super::pin::Pinning;
use crate::{
    checkpoints::{around, earlier},
    clock::ZvmClock,
    tag,
};
use jiff::Timestamp;
use std::{collections::HashSet, time::Duration};
use tokio::time::Instant;
use zvm_client::{Checkpoint, CheckpointId, Error, Window, Zvm};

/// Before the insert: a tag is listed some time after its own checkpoint's, and others' were inserted before ours.
pub(super) const RECENT: Duration = Duration::from_secs(60);
/// Now and then a look is wider, because the clock behind the checkpoints' times may not be the one that the ZVM tells.
const WIDE: Duration = Duration::from_secs(5 * 60);
/// Behind now: the clocks of the sites may differ.
pub(super) const AHEAD: Duration = Duration::from_secs(10 * 60);
/// One look must not use up the time for all.
pub(super) const LOOK_TIMEOUT: Duration = Duration::from_secs(10);

impl Pinning<'_> {
    /// The checkpoints since shortly before `began`, oldest first. A wide look also asks for the ZVM's clock again: it may have been set, or
    /// this host may have slept.
    pub async fn look(&self, began: Timestamp, wide: bool) -> Result<Vec<Checkpoint>, Error> {
        let now = self.clock.now();
        let margin = if wide { WIDE } else { RECENT };
        let mut rows = self.rows(began, margin, now).await?;
        if wide && let Ok(clock) = ZvmClock::read(&self.quick()).await {
            let moved = clock.now().duration_since(now);
            if Duration::try_from(moved.abs()).unwrap_or_default() > RECENT
                && let Ok(began) = began.checked_add(moved)
            {
                tracing::warn!(vpg = %self.vpg.name(), ?moved, "the ZVM's clock is not where it was expected");
                rows.extend(self.rows(began, margin, clock.now()).await?);
                rows.sort_by_key(|row| row.id);
                rows.dedup_by_key(|row| row.id);
            }
        }
        Ok(rows)
    }

    async fn rows(
        &self,
        began: Timestamp,
        margin: Duration,
        now: Timestamp,
    ) -> Result<Vec<Checkpoint>, Error> {
        let window = Window {
            from: earlier(began, margin),
            to: around(now, Duration::ZERO, AHEAD).to,
        };
        self.quick().checkpoints(self.vpg.id(), window).await
    }

    /// A look is given time of its own, so that the last one, at the deadline, still happens.
    pub fn quick(&self) -> Zvm {
        self.zvm.by(Instant::now() + LOOK_TIMEOUT)
    }
}

/// The earliest that carries the tag.
pub(super) fn carrying(rows: &[Checkpoint], tag: &str) -> Option<Checkpoint> {
    let carries = |row: &&Checkpoint| {
        let listed = row.tag.as_deref();
        listed.is_some_and(|listed| tag::same(tag, listed))
    };
    rows.iter().find(carries).cloned()
}

/// The tagged checkpoints of others that were seen in a journal.
///
/// The ZVM drops a tagged insert while another is on its way, and says nothing. But when another's tag comes into the list that was not
/// there before ours was sent, and ours is not there after the time that the other one took, then that one was on its way, and ours was
/// dropped. Sooner it may still come: the other one may have been listed in the moment before ours was sent.
#[derive(Clone, Debug)]
pub(super) struct Others {
    /// What is older was not looked at.
    from: Timestamp,
    seen: HashSet<CheckpointId>,
}

impl Others {
    /// Those that are listed before anything is sent.
    pub fn listed(from: Timestamp, rows: &[Checkpoint]) -> Self {
        let mut this = Self {
            from,
            seen: HashSet::new(),
        };
        this.newly_listed(rows, from);
        this
    }

    /// How long at most it took until those were listed that were not seen before; None where all were. `now` is by the ZVM's clock.
    pub fn newly_listed(&mut self, rows: &[Checkpoint], now: Timestamp) -> Option<Duration> {
        let is_tagged = |row: &&Checkpoint| row.tag.as_deref().is_some_and(|tag| !tag.is_empty());
        let recent = |row: &&Checkpoint| row.time >= self.from;
        let new = rows.iter().filter(is_tagged).filter(recent);
        let new = new.filter(|row| self.seen.insert(row.id));
        let lag = |row: &Checkpoint| Duration::try_from(now.duration_since(row.time));
        new.map(|row| lag(row).unwrap_or_default()).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[(u64, i64, Option<&str>)]) -> Vec<Checkpoint> {
        let row = |&(id, second, tag): &(u64, i64, Option<&str>)| Checkpoint {
            id: CheckpointId(id),
            time: Timestamp::from_second(second).unwrap(),
            tag: tag.map(str::to_owned),
        };
        rows.iter().map(row).collect()
    }

    #[test]
    fn only_a_recent_tag_that_was_not_there_before_is_new() {
        let second = |second| Timestamp::from_second(second).unwrap();
        let mut others = Others::listed(second(100), &rows(&[(1, 110, Some("a")), (2, 120, None)]));
        let mut seen = |more: &[_]| others.newly_listed(&rows(more), second(133));
        assert_eq!(seen(&[(1, 110, Some("a; Used"))]), None);
        assert_eq!(seen(&[(3, 130, None), (4, 130, Some(""))]), None);
        assert_eq!(seen(&[(0, 99, Some("old"))]), None);
        let more = [
            (1, 110, Some("a")),
            (5, 131, Some("b")),
            (6, 132, Some("c")),
        ];
        assert_eq!(seen(&more), Some(Duration::from_secs(2)));
        assert_eq!(seen(&more), None);
        // Clocks that differ: it took no less than no time.
        assert_eq!(seen(&[(7, 140, Some("d"))]), Some(Duration::ZERO));
    }
}
