//! Finds a checkpoint by its id through time windows: ids rise with time, with gaps, and clocks tick in whole seconds.
use super::window::{earlier, later};
use jiff::Timestamp;
use std::time::Duration;
use zvm_client::{Checkpoint, CheckpointId, JournalStats, Window};

/// Checkpoints that a window aims to hold on each side of the guess.
const AIM: u64 = 32;
/// Added to both ends of a window: times may be truncated to seconds, and whether ends are inclusive is not documented.
const SECOND: Duration = Duration::from_secs(1);
/// More than a search of any journal takes; a journal that changes while it is searched must not go on for ever.
const STEPS_MAX: u32 = 100;

/// What a search knows.
#[derive(Debug)]
pub(super) enum Step {
    Found(Checkpoint),
    /// It is not in the journal.
    Gone,
    /// Ask for this window and tell what was in it.
    Ask(Window),
}

#[derive(Debug)]
pub(super) struct Search {
    wanted: CheckpointId,
    below: Point,
    above: Point,
    step: u32,
    /// The last window did not halve what is left.
    slow: bool,
    /// Doublings of the window since one last halved what is left.
    widened: u32,
}

#[derive(Clone, Copy, Debug)]
struct Point {
    id: u64,
    time: Timestamp,
}

impl From<&Checkpoint> for Point {
    fn from(checkpoint: &Checkpoint) -> Self {
        Self {
            id: checkpoint.id.0,
            time: checkpoint.time,
        }
    }
}

impl Search {
    /// Err: the answer is known from the ends of the journal.
    pub fn new(wanted: CheckpointId, stats: &JournalStats) -> Result<Self, Step> {
        let (Some(earliest), Some(latest)) = (&stats.earliest, &stats.latest) else {
            return Err(Step::Gone);
        };
        if let Some(end) = [earliest, latest].into_iter().find(|end| end.id == wanted) {
            return Err(Step::Found(end.clone()));
        }
        if wanted < earliest.id || wanted > latest.id {
            return Err(Step::Gone);
        }
        Ok(Self {
            wanted,
            below: earliest.into(),
            above: latest.into(),
            step: 0,
            slow: false,
            widened: 0,
        })
    }

    pub fn next(&mut self) -> Step {
        self.step += 1;
        if self.step > STEPS_MAX {
            return Step::Gone;
        }
        Step::Ask(self.window())
    }

    /// What was in the window that was asked for; ascending by id.
    pub fn learn(&mut self, window: Window, rows: &[Checkpoint]) -> Option<Step> {
        if let Some(row) = rows.iter().find(|row| row.id == self.wanted) {
            return Some(Step::Found(row.clone()));
        }
        let below = rows.iter().rfind(|row| row.id < self.wanted);
        let above = rows.iter().find(|row| row.id > self.wanted);
        let whole = window.from <= self.below.time && window.to >= self.above.time;
        if whole || (below.is_some() && above.is_some()) {
            return Some(Step::Gone);
        }
        let left = self.left();
        if let Some(below) = below
            .map(Point::from)
            .filter(|point| point.id > self.below.id)
        {
            self.below = below;
        }
        if let Some(above) = above
            .map(Point::from)
            .filter(|point| point.id < self.above.id)
        {
            self.above = above;
        }
        let halved = self.left() <= left / 2.0;
        self.widened = if halved { 0 } else { self.widened + 1 };
        self.slow = !halved && !self.slow;
        None
    }

    /// Seconds in which it may still be.
    fn left(&self) -> f64 {
        self.above
            .time
            .duration_since(self.below.time)
            .as_secs_f64()
            .max(0.0)
    }

    fn window(&self) -> Window {
        let gap = self.left();
        let ids = self.above.id.saturating_sub(self.below.id).max(1);
        // By proportion; by halves where that was slow, which bounds the search where checkpoints are unevenly spread.
        let share = if self.slow {
            0.5
        } else {
            self.wanted.0.saturating_sub(self.below.id) as f64 / ids as f64
        };
        let guess = later(self.below.time, Duration::from_secs_f64(gap * share));
        let half =
            (gap / ids as f64 * AIM as f64).max(1.0) * 2f64.powi(self.widened.min(40) as i32);
        let half = Duration::from_secs_f64(half.min(gap)) + SECOND;
        Window {
            from: earlier(guess, half).max(earlier(self.below.time, SECOND)),
            to: later(guess, half).min(later(self.above.time, SECOND)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(points: impl IntoIterator<Item = (u64, i64)>) -> Vec<Checkpoint> {
        points
            .into_iter()
            .map(|(id, second)| Checkpoint {
                id: CheckpointId(id),
                time: Timestamp::from_second(second).unwrap(),
                tag: None,
            })
            .collect()
    }

    /// Whether it was found, the windows asked for, and the rows that they held.
    fn search(journal: &[Checkpoint], wanted: u64) -> (bool, usize, usize) {
        let stats = JournalStats {
            earliest: journal.first().cloned(),
            latest: journal.last().cloned(),
        };
        let (mut asked, mut read) = (0, 0);
        let mut search = match Search::new(CheckpointId(wanted), &stats) {
            Ok(search) => search,
            Err(step) => return (matches!(step, Step::Found(_)), 0, 0),
        };
        loop {
            match search.next() {
                Step::Found(found) => return (found.id.0 == wanted, asked, read),
                Step::Gone => return (false, asked, read),
                Step::Ask(window) => {
                    let from = journal.partition_point(|row| row.time < window.from);
                    let to = journal.partition_point(|row| row.time <= window.to);
                    let rows = &journal[from..to];
                    asked += 1;
                    read += rows.len();
                    match search.learn(window, rows) {
                        Some(Step::Found(found)) => return (found.id.0 == wanted, asked, read),
                        Some(_) => return (false, asked, read),
                        None => {}
                    }
                }
            }
        }
    }

    #[test]
    fn an_even_journal_takes_one_window() {
        let journal = journal((0..500_000).map(|n| (1_000 + n, 1_700_000_000 + 5 * n as i64)));
        for wanted in [1_001, 1_500, 250_000, 500_998] {
            assert_eq!(
                search(&journal, wanted),
                (true, 1, search(&journal, wanted).2),
                "{wanted}"
            );
            assert!(search(&journal, wanted).2 <= 80);
        }
        for gone in [0, 999, 501_000, u64::MAX] {
            assert_eq!(search(&journal, gone), (false, 0, 0), "{gone}");
        }
    }

    #[test]
    fn every_checkpoint_is_found_where_they_are_unevenly_spread() {
        // Thinned long ago, a day without any, several a second in a burst, and then every five seconds.
        let thinned = (0..300).map(|n| (10 + 7 * n, 1_000_000 + 3_600 * n as i64));
        let burst = (0..200).map(|n| (5_000 + n, 2_200_000 + n as i64 / 20));
        let dense = (0..5_000).map(|n| (6_000 + 2 * n, 2_300_000 + 5 * n as i64));
        let journal = journal(thinned.chain(burst).chain(dense));
        let mut most = 0;
        for row in &journal {
            let (found, asked, _) = search(&journal, row.id.0);
            assert!(found, "{:?}", row.id);
            most = most.max(asked);
        }
        assert!(most <= 40, "{most} windows");
        for gone in [11, 2_500, 5_999, 6_001, 9_999] {
            assert!(!search(&journal, gone).0, "{gone}");
        }
    }

    #[test]
    fn an_empty_journal_has_none() {
        assert_eq!(search(&[], 1), (false, 0, 0));
        assert_eq!(search(&journal([(5, 100)]), 5), (true, 0, 0));
    }
}
