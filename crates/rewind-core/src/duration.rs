//! Durations as people write them: a number with a unit.

use std::{fmt, time::Duration};

use jiff::{Span, SpanRelativeTo};
use serde::{Deserialize, Deserializer, de};

/// Why a text is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DurationError {
    /// A number alone.
    #[error(
        "a duration needs a unit: write \"{0}s\" for seconds, \"{0}m\" for minutes or \"{0}h\" for hours"
    )]
    NoUnit(String),
    /// Not a number with a unit, or a unit that has no fixed length.
    #[error(
        "not a duration: write a number with a unit, such as \"60s\", \"4m\", \"24h\" or \"7d\""
    )]
    Unreadable,
    /// More than can be counted with.
    #[error("the duration is too long: write at most \"36500d\", a hundred years")]
    TooLong,
    /// Zero, or a time that goes backwards.
    #[error("a duration must be longer than zero")]
    NotPositive,
}

/// A hundred years: older than every journal, and far from where calendars end.
const MAX: Duration = Duration::from_secs(36_500 * 24 * 60 * 60);

/// Reads a duration such as `"60s"`, `"4m"`, `"1h 30m"`, `"500ms"` or `"7d"`. A day has 24 hours here; months and years have no fixed
/// length and are refused.
///
/// # Errors
///
/// A text without a unit, that cannot be read, that is not longer than zero, or longer than a hundred years.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let text = text.trim();
    if !text.is_empty() && text.parse::<f64>().is_ok() {
        return Err(DurationError::NoUnit(text.to_owned()));
    }
    let span: Span = text.parse().map_err(|_| match is_long(text) {
        true => DurationError::TooLong,
        false => DurationError::Unreadable,
    })?;
    let duration = span
        .to_duration(SpanRelativeTo::days_are_24_hours())
        .map_err(|_| DurationError::Unreadable)?;
    match Duration::try_from(duration) {
        Ok(duration) if duration > MAX => Err(DurationError::TooLong),
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(DurationError::NotPositive),
    }
}

/// Whether it would be a duration if its numbers were small.
fn is_long(text: &str) -> bool {
    let mut in_number = false;
    let small: String = text
        .chars()
        .filter(|c| {
            let more = in_number && c.is_ascii_digit();
            in_number = c.is_ascii_digit();
            !more
        })
        .collect();
    small.len() < text.len() && !small.starts_with('-') && small.parse::<Span>().is_ok()
}

/// A duration in a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WithUnit(pub(crate) Duration);

impl<'de> Deserialize<'de> for WithUnit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = WithUnit;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration such as \"60s\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<WithUnit, E> {
                parse(text).map(WithUnit).map_err(E::custom)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<WithUnit, E> {
                Err(E::custom(DurationError::NoUnit(number.to_string())))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<WithUnit, E> {
                Err(E::custom(DurationError::NoUnit(number.to_string())))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<WithUnit, E> {
                Err(E::custom(DurationError::NoUnit(number.to_string())))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_units_are_read() {
        for (text, millis) in [
            ("60s", 60_000),
            ("4m", 240_000),
            ("1h30m", 5_400_000),
            ("1h 30m", 5_400_000),
            ("500ms", 500),
            ("24h", 86_400_000),
            ("7d", 604_800_000),
            (" 2 minutes ", 120_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        assert_eq!(
            parse("60").unwrap_err().to_string(),
            "a duration needs a unit: write \"60s\" for seconds, \"60m\" for minutes or \"60h\" for hours"
        );
        for text in ["", "s", "1 month", "2y", "soon", "1x", "10m 5"] {
            assert_eq!(parse(text), Err(DurationError::Unreadable), "{text}");
        }
        for text in [
            "9999999d",
            "36501d",
            "99999999999999999999s",
            "1h 99999999999999999999999m",
        ] {
            assert_eq!(parse(text), Err(DurationError::TooLong), "{text}");
        }
        assert!(parse("36500d").is_ok());
        for text in ["0s", "-5s", "5s ago"] {
            assert_eq!(parse(text), Err(DurationError::NotPositive), "{text}");
        }
    }
}
