//! Times and windows of a journal.
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;
use zvm_client::{Vpg, Window};

/// From `before` ahead of `at` until `after` behind it, within what a timestamp can hold.
pub(crate) fn around(at: Timestamp, before: Duration, after: Duration) -> Window {
    Window {
        from: earlier(at, before),
        to: later(at, after),
    }
}

pub(crate) fn earlier(at: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by)
        .ok()
        .and_then(|by| at.checked_sub(by).ok())
        .unwrap_or(Timestamp::MIN)
}

pub(crate) fn later(at: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by)
        .ok()
        .and_then(|by| at.checked_add(by).ok())
        .unwrap_or(Timestamp::MAX)
}

/// ISO 8601, UTC.
pub(crate) fn as_shown(at: Timestamp) -> String {
    at.to_string()
}

/// Until when a checkpoint of this time is expected to stay: an estimate, because a full journal or a resync removes
/// checkpoints earlier.
pub(crate) fn expected_until(vpg: &Vpg, time: Timestamp) -> Option<String> {
    let minutes = vpg.configured_history_minutes?;
    Some(as_shown(later(
        time,
        Duration::from_secs(minutes.saturating_mul(60)),
    )))
}

/// Goes through a journal from the newest window backwards; windows touch, because whether their ends belong to them
/// is not documented.
pub(crate) struct Backwards {
    floor: Timestamp,
    to: Option<Timestamp>,
    width: Duration,
}

impl Backwards {
    pub fn new(floor: Timestamp, to: Timestamp, width: Duration) -> Self {
        Self {
            floor,
            to: (floor <= to).then_some(to),
            width,
        }
    }
}

impl Iterator for Backwards {
    type Item = Window;

    fn next(&mut self) -> Option<Window> {
        let to = self.to?;
        let from = earlier(to, self.width).max(self.floor);
        self.to = (from > self.floor).then_some(from);
        Some(Window { from, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_go_backwards_without_a_gap_until_the_floor() {
        let at = |text: &str| -> Timestamp { text.parse().unwrap() };
        let day = Duration::from_secs(86_400);
        let (floor, to) = (at("2026-01-01T12:00:00Z"), at("2026-01-04T00:00:00Z"));
        let windows: Vec<_> = Backwards::new(floor, to, day)
            .map(|window| (window.from, window.to))
            .collect();
        assert_eq!(
            windows,
            [
                (at("2026-01-03T00:00:00Z"), to),
                (at("2026-01-02T00:00:00Z"), at("2026-01-03T00:00:00Z")),
                (floor, at("2026-01-02T00:00:00Z")),
            ]
        );
        assert_eq!(Backwards::new(to, floor, day).count(), 0);
        assert_eq!(Backwards::new(to, to, day).count(), 1);
    }

    #[test]
    fn times_beyond_the_calendar_are_held_at_its_ends() {
        assert_eq!(
            earlier(Timestamp::MIN, Duration::from_secs(1)),
            Timestamp::MIN
        );
        assert_eq!(later(Timestamp::MAX, Duration::MAX), Timestamp::MAX);
    }
}
