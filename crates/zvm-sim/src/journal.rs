//! A VPG's journal: checkpoints with rising identifiers and times, and a configured history.
//!
//! Checkpoints from before the start are computed from their number, so that hundreds of thousands of them cost
//! nothing; those taken since then are kept. What is older than the history is gone, tagged or not.

use std::collections::{BTreeMap, VecDeque};

use crate::scenario::Vpg;
use crate::spread::millis;

/// What Zerto appends to the tag of a checkpoint that was used for FLR (measured on a 10.x ZVM).
pub(crate) const FLR_SUFFIX: &str = "; Used for File Level Restore";

#[derive(Clone, Debug)]
pub(crate) struct Tag {
    pub(crate) text: String,
    pub(crate) used_for_flr: bool,
    /// When it came into the list; nothing while it has not.
    pub(crate) listed_at: Option<i64>,
}

impl Tag {
    /// As the API shows it.
    pub(crate) fn shown(&self) -> String {
        if self.used_for_flr {
            format!("{}{FLR_SUFFIX}", self.text)
        } else {
            self.text.clone()
        }
    }
}

struct Checkpoint {
    id: u64,
    at: i64,
    zvm_at: i64,
    tag: Option<Box<Tag>>,
}

impl Checkpoint {
    fn is_listed(&self) -> bool {
        self.tag.as_ref().is_none_or(|tag| tag.listed_at.is_some())
    }

    fn row(&self) -> Row<'_> {
        Row {
            id: self.id,
            at: self.at,
            zvm_at: self.zvm_at,
            tag: self.tag.as_deref(),
        }
    }
}

/// One checkpoint of the list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    pub(crate) id: u64,
    /// The moment that its disks show.
    pub(crate) at: i64,
    /// The same by the ZVM's clock of that moment: what is written down does not move when a clock is set.
    pub(crate) zvm_at: i64,
    pub(crate) tag: Option<&'a Tag>,
}

struct Past {
    first_id: u64,
    count: u64,
    /// One interval after the last of them.
    end: i64,
    interval: i64,
    /// The ZVM's clock minus the host's.
    offset: i64,
    tags: BTreeMap<u64, Tag>,
}

impl Past {
    fn time(&self, index: u64) -> i64 {
        let before_end = i64::try_from(self.count.saturating_sub(index)).unwrap_or(i64::MAX);
        self.end
            .saturating_sub(before_end.saturating_mul(self.interval))
    }

    fn row(&self, index: u64) -> Row<'_> {
        let id = self.first_id + index;
        Row {
            id,
            at: self.time(index),
            zvm_at: self.time(index).saturating_add(self.offset),
            tag: self.tags.get(&id),
        }
    }

    /// The number of leading checkpoints for whose times this holds.
    fn leading(&self, holds: impl Fn(i64) -> bool) -> u64 {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(self.time(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

pub(crate) struct Journal {
    history: i64,
    /// What is older than this was dropped, and does not come back with a longer history.
    dropped_before: i64,
    past: Past,
    live: VecDeque<Checkpoint>,
    next_id: u64,
    /// The ZVM's clock minus the host's, now.
    offset: i64,
    /// The clock was set back: times by it do not rise.
    uneven: bool,
}

impl Journal {
    /// `first_id` is where the identifiers begin if the scenario does not say it.
    pub(crate) fn new(vpg: &Vpg, start: i64, offset: i64, first_id: u64) -> Self {
        let first_id = vpg.first_checkpoint.unwrap_or(first_id);
        let mut past = Past {
            first_id,
            count: vpg.past,
            end: start,
            interval: millis(vpg.past_interval).max(1),
            offset,
            tags: BTreeMap::new(),
        };
        for tagged in &vpg.tagged {
            let at = start - millis(tagged.age);
            let index = past.leading(|time| time < at);
            if index < past.count {
                past.tags.insert(
                    first_id + index,
                    Tag {
                        text: tagged.tag.clone(),
                        used_for_flr: false,
                        listed_at: Some(past.time(index)),
                    },
                );
            }
        }
        Self {
            history: millis(vpg.history),
            dropped_before: i64::MIN,
            next_id: first_id + past.count,
            past,
            live: VecDeque::new(),
            offset,
            uneven: false,
        }
    }

    /// The oldest moment that the journal still reaches.
    pub(crate) fn reach(&self, now: i64) -> i64 {
        self.dropped_before.max(now - self.history)
    }

    /// When a checkpoint that is taken now leaves the journal.
    pub(crate) fn leaves(&self, at: i64) -> i64 {
        at.saturating_add(self.history).saturating_add(1)
    }

    pub(crate) fn history(&self) -> i64 {
        self.history
    }

    pub(crate) fn set_history(&mut self, history: i64, now: i64) {
        // What the history so far has dropped is gone for good.
        self.trim(now);
        self.history = history;
        self.trim(now);
    }

    /// The ZVM's clock was set; what is in the journal keeps its times.
    pub(crate) fn set_offset(&mut self, offset: i64) {
        self.uneven |= offset < self.offset;
        self.offset = offset;
    }

    /// Adds a checkpoint; its tag, if it has one, is not listed yet.
    pub(crate) fn push(&mut self, at: i64, tag: Option<String>) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.live.push_back(Checkpoint {
            id,
            at,
            zvm_at: at.saturating_add(self.offset),
            tag: tag.map(|text| {
                Box::new(Tag {
                    text,
                    used_for_flr: false,
                    listed_at: None,
                })
            }),
        });
        id
    }

    /// Drops what the history no longer reaches.
    pub(crate) fn trim(&mut self, now: i64) {
        let reach = self.reach(now);
        self.dropped_before = reach;
        while self.live.front().is_some_and(|first| first.at < reach) {
            self.live.pop_front();
        }
    }

    pub(crate) fn latest_at(&self) -> Option<i64> {
        self.live.back().map(|last| last.at)
    }

    pub(crate) fn mark_listed(&mut self, id: u64, now: i64) {
        if let Some(tag) = self.tag_mut(id) {
            tag.listed_at = Some(now);
        }
    }

    pub(crate) fn mark_used_for_flr(&mut self, id: u64) {
        if let Some(tag) = self.tag_mut(id) {
            tag.used_for_flr = true;
        }
    }

    fn tag_mut(&mut self, id: u64) -> Option<&mut Tag> {
        if let Some(tag) = self.past.tags.get_mut(&id) {
            return Some(tag);
        }
        let index = self.live.binary_search_by_key(&id, |own| own.id).ok()?;
        self.live.get_mut(index)?.tag.as_deref_mut()
    }

    /// A listed checkpoint that the journal still holds.
    pub(crate) fn find(&self, id: u64, now: i64) -> Option<Row<'_>> {
        let reach = self.reach(now);
        let in_past = id
            .checked_sub(self.past.first_id)
            .filter(|&index| index < self.past.count)
            .map(|index| self.past.row(index));
        let row = match in_past {
            Some(row) => row,
            None => {
                let index = self.live.binary_search_by_key(&id, |own| own.id).ok()?;
                let found = self.live.get(index)?;
                found.is_listed().then(|| found.row())?
            }
        };
        (row.at >= reach).then_some(row)
    }

    pub(crate) fn earliest(&self, now: i64) -> Option<Row<'_>> {
        self.between(now, |_| false, |_| false).next()
    }

    pub(crate) fn latest(&self, now: i64) -> Option<Row<'_>> {
        let reach = self.reach(now);
        self.live
            .iter()
            .rev()
            .find(|own| own.is_listed())
            .map(Checkpoint::row)
            .or_else(|| {
                self.past
                    .count
                    .checked_sub(1)
                    .map(|last| self.past.row(last))
            })
            .filter(|row| row.at >= reach)
    }

    /// The listed checkpoints, oldest first, without those for whose times by the ZVM's clock `before` or `after` hold. Both must be
    /// monotonic; only the window itself is visited, unless that clock was set back.
    pub(crate) fn between(
        &self,
        now: i64,
        before: impl Fn(i64) -> bool,
        after: impl Fn(i64) -> bool,
    ) -> impl Iterator<Item = Row<'_>> {
        let reach = self.reach(now);
        let offset = self.past.offset;
        let first = self
            .past
            .leading(|at| at < reach || before(at.saturating_add(offset)));
        let end = self.past.leading(|at| !after(at.saturating_add(offset)));
        let too_old = |own: &Checkpoint| own.at < reach || before(own.zvm_at);
        let (live_first, live_end) = if self.uneven {
            (0, self.live.len())
        } else {
            let first = self.live.partition_point(too_old);
            let end = self.live.partition_point(|own| !after(own.zvm_at));
            (first, end.max(first))
        };
        let visited: Vec<Row<'_>> = self
            .live
            .range(live_first..live_end)
            .filter(|own| own.is_listed() && !too_old(own) && !after(own.zvm_at))
            .map(Checkpoint::row)
            .collect();
        (first..end)
            .map(|index| self.past.row(index))
            .chain(visited)
    }

    /// All tagged checkpoints that the journal holds, listed or not.
    pub(crate) fn tagged(&self, now: i64) -> impl Iterator<Item = Row<'_>> {
        let reach = self.reach(now);
        self.past
            .tags
            .keys()
            .filter_map(|id| id.checked_sub(self.past.first_id))
            .map(|index| self.past.row(index))
            .chain(
                self.live
                    .iter()
                    .filter(|own| own.tag.is_some())
                    .map(Checkpoint::row),
            )
            .filter(move |row| row.at >= reach)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::scenario::PastTag;

    fn journal(past: u64, history_seconds: u64) -> Journal {
        let vpg = Vpg {
            past,
            history: Duration::from_secs(history_seconds),
            first_checkpoint: Some(1000),
            tagged: vec![PastTag {
                tag: "old".to_owned(),
                age: Duration::from_secs(50),
            }],
            ..Vpg::default()
        };
        Journal::new(&vpg, 10_000_000, 0, 1)
    }

    fn ids(journal: &Journal, now: i64, from: i64, to: i64) -> Vec<u64> {
        journal
            .between(now, |at| at < from, |at| at > to)
            .map(|row| row.id)
            .collect()
    }

    #[test]
    fn a_long_past_is_computed() {
        let mut journal = journal(500_000, 5 * 600_000);
        assert_eq!(journal.earliest(10_000_000).unwrap().id, 1000);
        assert_eq!(journal.latest(10_000_000).unwrap().id, 500_999);
        assert_eq!(journal.latest(10_000_000).unwrap().at, 9_995_000);
        assert_eq!(journal.push(10_000_001, None), 501_000);
        assert_eq!(
            ids(&journal, 10_000_002, 9_990_000, 10_000_001),
            [500_998, 500_999, 501_000]
        );
        assert_eq!(journal.find(1000 + 7, 10_000_000).unwrap().id, 1007);
        assert_eq!(journal.tagged(10_000_000).next().unwrap().at, 9_950_000);
    }

    #[test]
    fn the_history_rolls_off_tags_too() {
        let mut journal = journal(100, 60);
        let start = 10_000_000;
        let id = journal.push(start, Some("ours".to_owned()));
        assert!(journal.find(id, start).is_none(), "not listed yet");
        assert_eq!(journal.latest(start).unwrap().id, 1099);
        journal.mark_listed(id, start + 5);
        assert_eq!(journal.latest(start).unwrap().id, id);
        assert_eq!(journal.tagged(start).count(), 2);
        assert_eq!(journal.earliest(start).unwrap().at, start - 60_000);
        assert_eq!(journal.earliest(start + 56_000).unwrap().id, 1100);
        assert!(journal.find(id, start + 60_000).is_some());
        assert!(journal.find(id, start + 60_001).is_none());
        journal.trim(start + 60_001);
        assert!(journal.earliest(start + 60_001).is_none());
        assert_eq!(journal.push(start + 60_002, None), 1101);
        journal.set_history(1_000_000, start + 60_003);
        assert_eq!(journal.earliest(start + 60_003).unwrap().id, 1101);
    }

    #[test]
    fn an_empty_or_reversed_window_is_empty() {
        let mut journal = journal(100, 3600);
        journal.push(10_000_000, None);
        journal.push(10_005_000, None);
        assert!(ids(&journal, 10_006_000, 10_001_000, 10_002_000).is_empty());
        assert!(ids(&journal, 10_006_000, 10_005_000, 10_000_000).is_empty());
        assert!(ids(&journal, 10_006_000, 9_000_000, 8_000_000).is_empty());
    }

    #[test]
    fn what_is_written_down_does_not_move_when_the_clock_is_set() {
        let mut journal = journal(0, 3600);
        journal.push(10_000_000, None);
        journal.set_offset(50_000);
        journal.push(10_001_000, None);
        let all = |journal: &Journal, from, to| ids(journal, 10_003_000, from, to);
        assert_eq!(all(&journal, 0, 10_000_000), [1000]);
        assert_eq!(all(&journal, 10_000_001, 20_000_000), [1001]);
        journal.set_offset(-50_000);
        journal.push(10_002_000, None);
        assert_eq!(all(&journal, 0, 9_999_999), [1002]);
        assert_eq!(all(&journal, 0, 20_000_000), [1000, 1001, 1002]);
    }

    #[test]
    fn flr_use_shows_in_the_tag() {
        let mut journal = journal(0, 60);
        let id = journal.push(10_000_000, Some("ours".to_owned()));
        journal.mark_listed(id, 10_000_000);
        journal.mark_used_for_flr(id);
        let row = journal.find(id, 10_000_000).unwrap();
        assert_eq!(
            row.tag.unwrap().shown(),
            "ours; Used for File Level Restore"
        );
    }

    /// The simplest journal there is: every listed checkpoint, in a list.
    fn naive(journal: &Journal, now: i64) -> Vec<(u64, i64)> {
        let past = (0..journal.past.count).map(|index| journal.past.row(index));
        let live = journal.live.iter().filter(|own| own.is_listed());
        past.chain(live.map(Checkpoint::row))
            .filter(|row| row.at >= now - journal.history)
            .map(|row| (row.id, row.at))
            .collect()
    }

    proptest::proptest! {
        #[test]
        fn windows_and_ends_are_those_of_a_plain_list(
            past in 0u64..30,
            history in 1u64..200,
            steps in proptest::collection::vec((1i64..9_000, proptest::option::of(proptest::bool::ANY)), 0..30),
            from in -200_000i64..300_000,
            length in -10_000i64..200_000,
        ) {
            let mut journal = journal(past, history);
            let mut now = 10_000_000;
            for (step, tag) in steps {
                now += step;
                let id = journal.push(now, tag.map(|_| "tag".to_owned()));
                if tag == Some(true) {
                    journal.mark_listed(id, now);
                }
            }
            let all = naive(&journal, now);
            let pair = |row: Row<'_>| (row.id, row.at);
            proptest::prop_assert_eq!(journal.earliest(now).map(pair), all.first().copied());
            proptest::prop_assert_eq!(journal.latest(now).map(pair), all.last().copied());
            let (from, to) = (10_000_000 + from, 10_000_000 + from + length);
            let window: Vec<_> = journal.between(now, |at| at < from, |at| at > to).map(pair).collect();
            let expected: Vec<_> = all.iter().copied().filter(|(_, at)| (from..=to).contains(at)).collect();
            proptest::prop_assert_eq!(window, expected);
            for (id, at) in &all {
                proptest::prop_assert_eq!(journal.find(*id, now).map(pair), Some((*id, *at)));
            }
            let trimmed = {
                journal.trim(now);
                naive(&journal, now)
            };
            proptest::prop_assert_eq!(trimmed, all);
        }
    }
}
