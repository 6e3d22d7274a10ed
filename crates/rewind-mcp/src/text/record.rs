//! What the ledger knows of a checkpoint, in few words.
use std::fmt::Write as _;

use rewind_core::{
    ListedCheckpoint,
    ledger::{RecordedGuard, RecordedRecovery, RecoveryKind},
    text::named,
};

/// Tool calls of a guard; more are counted.
const CALLS_SHOWN: usize = 3;
/// Characters of a tool's name and of a path.
const SHOWN: usize = 60;
/// `2026-11-30T10:02`
const TO_THE_MINUTE: usize = 16;

/// What the ledger knows of a checkpoint; empty where it knows nothing.
pub fn record(checkpoint: &ListedCheckpoint) -> String {
    let mut said: Vec<String> = checkpoint.guard.iter().map(guard).collect();
    said.extend(recovered(&checkpoint.recoveries));
    said.join("; ")
}

fn guard(guard: &RecordedGuard) -> String {
    let mut of = format!("guard {}", guard.row);
    if guard.outcome != "pinned" {
        let _ = write!(of, " ({})", words(&guard.outcome));
    }
    for call in guard.calls.iter().take(CALLS_SHOWN) {
        let tool = match &call.server {
            Some(server) => format!("{server}/{}", call.tool),
            None => call.tool.clone(),
        };
        let _ = write!(of, ", {}: {}", named(&tool, SHOWN), words(&call.outcome));
    }
    if let Some(more @ 1..) = guard.calls.len().checked_sub(CALLS_SHOWN) {
        let _ = write!(of, ", and {more} more");
    }
    of
}

/// A folder that came without some of what is in it.
const INCOMPLETE: &str = "incomplete";
const REPLACED: &str = "replaced in the guest";
const BESIDE: &str = "put beside in the guest";
const UNCHANGED: &str = "unchanged in the guest";
const TO_HOST: &str = "to this host";

/// Each that was recovered ended in one of these ways, so that their counts add up.
fn ended(recovery: &RecordedRecovery) -> &'static str {
    match (&*recovery.outcome, recovery.kind) {
        (INCOMPLETE, _) => INCOMPLETE,
        ("unchanged", _) => UNCHANGED,
        (_, RecoveryKind::Beside) => BESIDE,
        (_, RecoveryKind::Replace | RecoveryKind::Undo) => REPLACED,
        (_, RecoveryKind::Host) => TO_HOST,
    }
}

/// `recovered 12x, last 2026-11-30 10:02 (3 replaced in the guest, 9 to this host), 1 undone, 2 failed`
fn recovered(recoveries: &[RecordedRecovery]) -> Option<String> {
    let (undone, done): (Vec<_>, Vec<_>) = recoveries
        .iter()
        .filter(|recovery| recovery.is_done() || recovery.outcome == INCOMPLETE)
        .partition(|recovery| recovery.kind == RecoveryKind::Undo);
    let mut said = match done.as_slice() {
        [] => None,
        [one] => Some(format!(
            "recovered {}, {}",
            named(&one.path, SHOWN),
            minute(&one.at)
        )),
        [.., last] => Some(format!(
            "recovered {}x, last {}",
            done.len(),
            minute(&last.at)
        )),
    };
    let of = |what: &'static str| {
        let is_so = |recovery: &&&RecordedRecovery| ended(recovery) == what;
        (done.iter().filter(is_so).count(), what)
    };
    if let Some(said) = &mut said {
        // What is not said is recovered to this host.
        if of(TO_HOST).0 < done.len() {
            let each = counts([REPLACED, BESIDE, UNCHANGED, INCOMPLETE, TO_HOST].map(of));
            let _ = write!(said, " ({each})");
        }
        if !undone.is_empty() {
            let _ = write!(said, ", {} undone", undone.len());
        }
    }
    let not = |outcome: &str| {
        recoveries
            .iter()
            .filter(|recovery| recovery.outcome == outcome)
            .count()
    };
    let not = counts([
        (not("conflict"), "stopped by a conflict"),
        (not("failed"), "failed"),
        (not("interrupted"), "interrupted"),
        (not("under_way"), "under way"),
    ]);
    match (said, not.is_empty()) {
        (said, true) => said,
        (Some(said), false) => Some(format!("{said}, {not}")),
        (None, false) => Some(format!("not recovered: {not}")),
    }
}

/// Those of which there are any.
fn counts<const N: usize>(counts: [(usize, &str); N]) -> String {
    let said: Vec<_> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    said.join(", ")
}

/// ISO 8601, to the minute.
fn minute(iso: &str) -> String {
    iso.get(..TO_THE_MINUTE)
        .unwrap_or(iso)
        .replacen('T', " ", 1)
}

/// A name on the wire as words.
fn words(name: &str) -> String {
    name.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recovery(minute: u8, kind: RecoveryKind, outcome: &str) -> RecordedRecovery {
        RecordedRecovery {
            row: minute.into(),
            at: format!("2026-11-30T10:{minute:02}:07.123Z"),
            kind,
            path: "/etc/hosts".into(),
            outcome: outcome.into(),
            destination: None,
            sha256: None,
        }
    }

    #[test]
    fn recoveries_are_counted_by_where_they_ended_and_how() {
        use RecoveryKind::{Beside, Host, Replace, Undo};
        for (recoveries, said) in [
            (&[][..], None),
            (
                &[(Host, "recovered")],
                Some("recovered /etc/hosts, 2026-11-30 10:00"),
            ),
            (
                &[(Replace, "restored"), (Undo, "restored")],
                Some("recovered /etc/hosts, 2026-11-30 10:00 (1 replaced in the guest), 1 undone"),
            ),
            (
                &[
                    (Host, "recovered"),
                    (Beside, "beside"),
                    (Replace, "unchanged"),
                    (Replace, "conflict"),
                    (Host, "failed"),
                ],
                Some(
                    "recovered 3x, last 2026-11-30 10:02 (1 put beside in the guest, 1 unchanged in the guest, \
                     1 to this host), 1 stopped by a conflict, 1 failed",
                ),
            ),
            (
                &[(Host, "incomplete"), (Host, "failed")],
                Some("recovered /etc/hosts, 2026-11-30 10:00 (1 incomplete), 1 failed"),
            ),
            (
                &[
                    (Replace, "restored"),
                    (Host, "recovered"),
                    (Host, "incomplete"),
                    (Host, "recovered"),
                    (Undo, "restored"),
                    (Undo, "restored"),
                    (Host, "failed"),
                ],
                Some(
                    "recovered 4x, last 2026-11-30 10:03 (1 replaced in the guest, 1 incomplete, 2 to this host), 2 undone, 1 failed",
                ),
            ),
            (
                &[(Host, "recovered"), (Host, "recovered")],
                Some("recovered 2x, last 2026-11-30 10:01"),
            ),
            (
                &[(Host, "failed"), (Beside, "under_way")],
                Some("not recovered: 1 failed, 1 under way"),
            ),
        ] {
            let recoveries: Vec<_> = (0..)
                .zip(recoveries)
                .map(|(minute, (kind, outcome))| recovery(minute, *kind, outcome))
                .collect();
            assert_eq!(recovered(&recoveries).as_deref(), said);
        }
    }
}
