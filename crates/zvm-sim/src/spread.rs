//! Durations in scenarios: one fixed length, or a range that a seeded draw is taken from.

use std::time::Duration;

use rand::Rng;
use serde::{Deserialize, Serialize};

/// A duration, or a range of durations from which each use draws evenly.
///
/// In TOML and JSON: `"1s"` or `["400ms", "1500ms"]`. Units as in `2h 30m`, `5s`, `20ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Text", into = "Text")]
pub struct Spread {
    /// The shortest.
    pub min: Duration,
    /// The longest; equal to `min` for a fixed length.
    pub max: Duration,
}

impl Spread {
    /// Always this long.
    pub const fn fixed(length: Duration) -> Self {
        Self {
            min: length,
            max: length,
        }
    }

    /// Between the two, both included.
    pub const fn between(min: Duration, max: Duration) -> Self {
        Self { min, max }
    }

    /// Between so many milliseconds.
    pub const fn millis(min: u64, max: u64) -> Self {
        Self::between(Duration::from_millis(min), Duration::from_millis(max))
    }

    /// Draws a length in whole milliseconds.
    pub(crate) fn draw(self, rng: &mut impl Rng) -> i64 {
        let (min, max) = (millis(self.min), millis(self.max));
        if max <= min {
            min
        } else {
            rng.random_range(min..=max)
        }
    }
}

impl From<Duration> for Spread {
    fn from(length: Duration) -> Self {
        Self::fixed(length)
    }
}

/// A duration in whole milliseconds, as the simulator counts time.
pub(crate) fn millis(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX / 4)
}

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct One(
    #[serde(with = "jiff::fmt::serde::unsigned_duration::friendly::compact::required")] Duration,
);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Text {
    Fixed(One),
    Range([One; 2]),
}

impl From<Text> for Spread {
    fn from(text: Text) -> Self {
        match text {
            Text::Fixed(One(length)) => Self::fixed(length),
            Text::Range([One(min), One(max)]) => Self::between(min, max),
        }
    }
}

impl From<Spread> for Text {
    fn from(spread: Spread) -> Self {
        if spread.min == spread.max {
            Self::Fixed(One(spread.min))
        } else {
            Self::Range([One(spread.min), One(spread.max)])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_one_length_or_a_range() {
        #[derive(Deserialize)]
        struct Doc {
            a: Spread,
            b: Spread,
        }
        let doc: Doc = toml::from_str("a = '5s'\nb = ['20ms', '1m 30s']").unwrap();
        assert_eq!(doc.a, Spread::fixed(Duration::from_secs(5)));
        assert_eq!(doc.b, Spread::millis(20, 90_000));
        assert!(toml::from_str::<Doc>("a = 'soon'\nb = '1s'").is_err());
    }
}
