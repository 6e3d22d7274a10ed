//! Points in time. ZVMs before 7 wrote `/Date(1479726853000)/`, later ones ISO 8601 with or without a fraction.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

/// Reads both forms. A time without zone is taken for UTC, which is what the fields are in.
pub(crate) fn timestamp(text: &str) -> Option<Timestamp> {
    let text = text.trim().trim_matches('"').trim();
    if let Some(inner) = text
        .strip_prefix("/Date(")
        .and_then(|rest| rest.strip_suffix(")/"))
    {
        // `+0300` after the milliseconds says where the ZVM stands; the milliseconds are UTC all the same.
        let sign_and_digits = inner.strip_prefix('-').unwrap_or(inner);
        let digits = sign_and_digits.split(['+', '-']).next()?;
        let milliseconds: i64 = digits.parse().ok()?;
        let negative = sign_and_digits.len() != inner.len();
        return Timestamp::from_millisecond(if negative {
            -milliseconds
        } else {
            milliseconds
        })
        .ok();
    }
    text.parse::<Timestamp>().ok().or_else(|| {
        let civil: DateTime = text.parse().ok()?;
        TimeZone::UTC.to_timestamp(civil).ok()
    })
}

/// As a query wants it: `2024-11-13T00:00:00.000Z`. Without the `Z` a ZVM would read its own local time.
pub(crate) fn query_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_time_is_read() {
        for (text, expected) in [
            ("2019-07-20T19:30:19Z", "2019-07-20T19:30:19Z"),
            ("2019-07-11T16:51:07.022Z", "2019-07-11T16:51:07.022Z"),
            (
                "2019-07-11T16:51:07.1234567Z",
                "2019-07-11T16:51:07.1234567Z",
            ),
            ("2019-07-11T16:51:07.1Z", "2019-07-11T16:51:07.1Z"),
            ("2019-07-11T16:51:07", "2019-07-11T16:51:07Z"),
            ("2019-07-11T16:51:07.0220000", "2019-07-11T16:51:07.022Z"),
            ("2019-07-11T19:51:07+03:00", "2019-07-11T16:51:07Z"),
            ("2019-07-11T19:51:07.5+0300", "2019-07-11T16:51:07.5Z"),
            ("2019-07-11 16:51:07", "2019-07-11T16:51:07Z"),
            ("\"2019-07-11T16:51:07Z\"", "2019-07-11T16:51:07Z"),
            ("/Date(1479726853000)/", "2016-11-21T11:14:13Z"),
            ("/Date(1479726853000+0300)/", "2016-11-21T11:14:13Z"),
            ("/Date(1479726853000-0500)/", "2016-11-21T11:14:13Z"),
            ("/Date(-1000)/", "1969-12-31T23:59:59Z"),
            ("0001-01-01T00:00:00", "0001-01-01T00:00:00Z"),
        ] {
            let expected: Timestamp = expected.parse().unwrap();
            assert_eq!(timestamp(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "soon",
            "/Date()/",
            "/Date(x)/",
            "/Date(--1)/",
            "/Date(99999999999999999)/",
            "2019-13-01T00:00:00Z",
            "1479726853000",
        ] {
            assert_eq!(timestamp(text), None, "{text}");
        }
    }

    #[test]
    fn queries_carry_milliseconds_and_z() {
        for (time, text) in [
            ("2024-11-13T00:00:00Z", "2024-11-13T00:00:00.000Z"),
            ("2024-11-13T01:02:03.0049Z", "2024-11-13T01:02:03.004Z"),
        ] {
            assert_eq!(query_time(time.parse().unwrap()), text);
        }
    }
}
