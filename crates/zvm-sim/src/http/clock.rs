//! The ZVM's clock, and dates in requests.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

use super::reply::{Failure, Reply};
use super::request::Call;
use crate::app::App;
use crate::render::{Dialect, Writer};
use crate::switches::Switches;

pub(super) fn utc(app: &App) -> Reply {
    let dialect = Dialect::of(&app.world().switches);
    Reply::json(Writer::date(dialect, dialect.by_zvm(app.clock.now())))
}

pub(super) fn local(app: &App) -> Reply {
    let world = app.world();
    let now = Dialect::of(&world.switches).by_zvm(app.clock.now());
    let local = offset(&world.switches).to_datetime(crate::clock::timestamp(now));
    let minutes = world.switches.utc_offset_minutes;
    let text = if minutes == 0 {
        format!("{local:.3}Z")
    } else {
        let sign = if minutes < 0 { '-' } else { '+' };
        let minutes = minutes.abs();
        format!("{local:.3}{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    };
    Reply::json(Writer::string(&text))
}

/// Shows how a date in a request is understood.
pub(super) fn argument(app: &App, call: &Call) -> Result<Reply, Failure> {
    let world = app.world();
    let at = date(&world.switches, call, "dateTime")?
        .ok_or_else(|| Failure::bad("The parameter dateTime is missing."))?;
    Ok(Reply::json(Writer::date(Dialect::of(&world.switches), at)))
}

/// A date in the query, by the ZVM's clock: ISO 8601, milliseconds since 1970, or without a zone in the ZVM's own.
pub(super) fn date(switches: &Switches, call: &Call, name: &str) -> Result<Option<i64>, Failure> {
    let Some(text) = call.query(name) else {
        return Ok(None);
    };
    read(switches, text)
        .map(Some)
        .ok_or_else(|| Failure::bad(format!("The value '{text}' is not valid for {name}.")))
}

fn read(switches: &Switches, text: &str) -> Option<i64> {
    if let Ok(milliseconds) = text.parse::<i64>() {
        return Some(milliseconds);
    }
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Some(instant.as_millisecond());
    }
    let local: DateTime = text.parse().ok()?;
    offset(switches)
        .to_timestamp(local)
        .ok()
        .map(|instant| instant.as_millisecond())
}

fn offset(switches: &Switches) -> Offset {
    Offset::from_seconds(switches.utc_offset_minutes.saturating_mul(60)).unwrap_or(Offset::UTC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_the_vendor_says() {
        let switches = Switches {
            utc_offset_minutes: 120,
            ..Switches::default()
        };
        let expected = Some(1_740_823_205_000);
        assert_eq!(read(&switches, "1740823205000"), expected);
        assert_eq!(read(&switches, "2025-03-01T10:00:05Z"), expected);
        assert_eq!(read(&switches, "2025-03-01T10:00:05.000Z"), expected);
        assert_eq!(read(&switches, "2025-03-01T12:00:05"), expected);
        assert_eq!(read(&switches, "yesterday"), None);
    }
}
