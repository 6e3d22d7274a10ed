//! The kinds of rows: the tables whose rows are in the ledger.
//!
//! To add one: make its table in a new step of the schema (with an `INTEGER PRIMARY KEY` and the two triggers that all tables have; an
//! intent also with an indexed `owner`), describe it here, put it into [`ALL`], and call [`append`](super::append) in the transaction
//! that inserts its row. `verify` finds rows for which that was forgotten.

/// A table whose rows are in the ledger.
#[derive(Debug)]
pub(crate) struct Kind {
    /// The table, and the name in the ledger.
    pub table: &'static str,
    /// Its primary key.
    pub key: &'static str,
    /// Its rows are intents: something outside is about to be done by the process whose marker is in the column `owner`. A later row
    /// closes it, or it is closed as interrupted once its process is dead.
    pub intent: bool,
    /// Of interest by itself; the others are shown where all rows are wanted.
    pub headline: bool,
    /// For rows that are the outcome of an intent: the number in the ledger of the intent of row `?1`.
    pub closes: Option<&'static str>,
    /// Whom and what row `?1` concerns: `vm_identifier, vm, agent, change_id, tag, what`. Where there is a tag, what is null is taken from
    /// it, and its action is told; where nothing is known, it is that of the intent that the row closes. Several VMs stand on lines
    /// of their own.
    pub about: &'static str,
}

pub(crate) const GUARD_INTENT: Kind = Kind {
    table: "guard_intent",
    key: "id",
    intent: true,
    headline: false,
    closes: None,
    about: "SELECT vm_identifier, NULL, NULL, NULL, tag, 'about to pin' FROM guard_intent WHERE id = ?1",
};

pub(crate) const GUARD: Kind = Kind {
    table: "guard",
    key: "id",
    intent: false,
    headline: true,
    closes: Some(
        "SELECT l.seq FROM guard g
         JOIN guard_intent i ON i.zvm = g.zvm AND i.vm_identifier = lower(g.vm_identifier) AND i.tag = g.tag
         JOIN ledger l ON l.kind = 'guard_intent' AND l.row_id = i.id
         WHERE g.id = ?1",
    ),
    about: "SELECT vm_identifier, vm_name, agent, change_id, tag,
                coalesce('failed: ' || failure, (
                    SELECT 'pinned ' || group_concat('checkpoint ' || checkpoint_id || ' of ' || vpg_name, ', ')
                    FROM pin WHERE guard = g.id))
            FROM guard g WHERE id = ?1",
};

pub(crate) const PIN: Kind = Kind {
    table: "pin",
    key: "id",
    intent: false,
    headline: false,
    closes: None,
    about: "SELECT g.vm_identifier, g.vm_name, g.agent, g.change_id, g.tag, 'checkpoint ' || p.checkpoint_id || ' of ' || p.vpg_name
            FROM pin p JOIN guard g ON g.id = p.guard WHERE p.id = ?1",
};

pub(crate) const INSERT_SENT: Kind = Kind {
    table: "insert_sent",
    key: "id",
    intent: true,
    headline: false,
    closes: None,
    about: "SELECT NULL, NULL, NULL, NULL, tag, 'about to insert into VPG ' || vpg_identifier FROM insert_sent WHERE id = ?1",
};

pub(crate) const INSERT_SETTLED: Kind = Kind {
    table: "insert_settled",
    key: "insert_sent",
    intent: false,
    headline: false,
    closes: Some("SELECT seq FROM ledger WHERE kind = 'insert_sent' AND row_id = ?1"),
    about: "SELECT NULL, NULL, NULL, NULL, NULL, replace(outcome, '_', ' ') FROM insert_settled WHERE insert_sent = ?1",
};

pub(crate) const LISTED_CALL: Kind = Kind {
    table: "listed_call",
    key: "id",
    intent: true,
    headline: true,
    closes: None,
    about: "SELECT
                (SELECT group_concat(vm, char(10)) FROM (SELECT DISTINCT vm_identifier AS vm FROM claim WHERE call = c.id)),
                (SELECT group_concat(vm, char(10)) FROM (SELECT DISTINCT g.vm_name AS vm FROM claim m
                     JOIN claim_ended e ON e.claim = m.id JOIN guard g ON g.id = e.guard WHERE m.call = c.id)),
                agent, change_id, NULL,
                coalesce(server || '/', '') || tool || ': ' || coalesce(
                    (SELECT replace(outcome, '_', ' ') FROM call_outcome WHERE call = c.id),
                    (SELECT o.outcome FROM ledger l JOIN ledger e ON e.closes = l.seq AND e.kind = 'intent_closed'
                         JOIN intent_closed o ON o.id = e.row_id WHERE l.kind = 'listed_call' AND l.row_id = c.id),
                    (SELECT 'its outcome is not told yet' FROM call_handed_over WHERE call = c.id),
                    'under way')
            FROM listed_call c WHERE id = ?1",
};

pub(crate) const CLAIM: Kind = Kind {
    table: "claim",
    key: "id",
    intent: false,
    headline: false,
    closes: None,
    about: "SELECT m.vm_identifier, NULL, c.agent, c.change_id, NULL, 'to be pinned for ' || coalesce(c.server || '/', '') || c.tool
            FROM claim m JOIN listed_call c ON c.id = m.call WHERE m.id = ?1",
};

pub(crate) const CLAIM_ENDED: Kind = Kind {
    table: "claim_ended",
    key: "claim",
    intent: false,
    headline: false,
    closes: None,
    about: "SELECT m.vm_identifier, g.vm_name, c.agent, c.change_id, g.tag,
                coalesce('covered by guard ' || e.guard, 'not covered') || ' for ' || coalesce(c.server || '/', '') || c.tool
            FROM claim_ended e JOIN claim m ON m.id = e.claim JOIN listed_call c ON c.id = m.call LEFT JOIN guard g ON g.id = e.guard
            WHERE e.claim = ?1",
};

pub(crate) const CALL_HANDED_OVER: Kind = Kind {
    table: "call_handed_over",
    key: "call",
    intent: false,
    headline: false,
    closes: Some("SELECT seq FROM ledger WHERE kind = 'listed_call' AND row_id = ?1"),
    about: "SELECT NULL, NULL, NULL, NULL, NULL, 'another process tells its outcome' FROM call_handed_over WHERE call = ?1",
};

pub(crate) const CALL_OUTCOME: Kind = Kind {
    table: "call_outcome",
    key: "call",
    intent: false,
    headline: false,
    closes: Some("SELECT seq FROM ledger WHERE kind = 'listed_call' AND row_id = ?1"),
    about: "SELECT NULL, NULL, NULL, NULL, NULL, replace(outcome, '_', ' ') FROM call_outcome WHERE call = ?1",
};

pub(crate) const PLAN: Kind = Kind {
    table: "plan",
    key: "id",
    intent: false,
    headline: true,
    closes: None,
    about: "SELECT vm_identifier, vm_name, client, change_id, NULL,
                name || ': ' || CASE kind WHEN 'preview' THEN 'to look into' ELSE 'to recover from' END || ' checkpoint ' || checkpoint_id
                    || coalesce((SELECT ', ' || verdict FROM plan_decision WHERE plan = p.id), ', not decided')
                    || coalesce((SELECT ', ' || CASE outcome WHEN 'done' THEN 'carried out' WHEN 'not_all' THEN 'carried out in part' ELSE outcome END
                        FROM plan_ended WHERE plan = p.id), '')
            FROM plan p WHERE id = ?1",
};

pub(crate) const PLAN_DECISION: Kind = Kind {
    table: "plan_decision",
    key: "plan",
    intent: false,
    headline: true,
    closes: None,
    about: "SELECT p.vm_identifier, p.vm_name, p.client, p.change_id, NULL,
                p.name || ': ' || verdict || ' by ' || decided_by || ', asked by ' || how
            FROM plan_decision d JOIN plan p ON p.id = d.plan WHERE d.plan = ?1",
};

pub(crate) const PLAN_BEGUN: Kind = Kind {
    table: "plan_begun",
    key: "plan",
    intent: true,
    headline: false,
    closes: None,
    about: "SELECT p.vm_identifier, p.vm_name, p.client, p.change_id, NULL, 'about to carry out ' || p.name
            FROM plan_begun b JOIN plan p ON p.id = b.plan WHERE b.plan = ?1",
};

pub(crate) const PLAN_ENDED: Kind = Kind {
    table: "plan_ended",
    key: "plan",
    intent: false,
    headline: false,
    closes: Some("SELECT seq FROM ledger WHERE kind = 'plan_begun' AND row_id = ?1"),
    about: "SELECT NULL, NULL, NULL, NULL, NULL,
                CASE outcome WHEN 'done' THEN 'carried out' WHEN 'not_all' THEN 'carried out in part' ELSE outcome END
            FROM plan_ended WHERE plan = ?1",
};

pub(crate) const LOOK: Kind = Kind {
    table: "look",
    key: "id",
    intent: true,
    headline: true,
    closes: None,
    about: "SELECT vm_identifier, vm_name, client, change_id, NULL,
                path || ' looked for in checkpoint ' || checkpoint_id || ' of ' || vpg_name
                    || coalesce(', compared with ' || compared_with, '') || coalesce(', as agreed with ' || agreed, '') || ': ' || coalesce(
                    (SELECT coalesce('failed: ' || failure, 'done') FROM look_ended WHERE look = k.id),
                    (SELECT o.outcome FROM ledger l JOIN ledger e ON e.closes = l.seq AND e.kind = 'intent_closed'
                         JOIN intent_closed o ON o.id = e.row_id WHERE l.kind = 'look' AND l.row_id = k.id),
                    'under way')
            FROM look k WHERE id = ?1",
};

pub(crate) const LOOK_ENDED: Kind = Kind {
    table: "look_ended",
    key: "look",
    intent: false,
    headline: false,
    closes: Some("SELECT seq FROM ledger WHERE kind = 'look' AND row_id = ?1"),
    about: "SELECT NULL, NULL, NULL, NULL, NULL, coalesce('failed: ' || failure, 'done') FROM look_ended WHERE look = ?1",
};

pub(crate) const RECOVERY: Kind = Kind {
    table: "recovery",
    key: "id",
    intent: true,
    headline: true,
    closes: None,
    about: "SELECT vm_identifier, vm_name, client, change_id, NULL,
                path || ' from checkpoint ' || checkpoint_id || ' of ' || vpg_name || ': ' || coalesce(
                    (SELECT coalesce('failed: ' || failure, 'done') FROM recovery_ended WHERE recovery = r.id),
                    (SELECT o.outcome FROM ledger l JOIN ledger e ON e.closes = l.seq AND e.kind = 'intent_closed'
                         JOIN intent_closed o ON o.id = e.row_id WHERE l.kind = 'recovery' AND l.row_id = r.id),
                    'under way')
            FROM recovery r WHERE id = ?1",
};

pub(crate) const RECOVERY_ENDED: Kind = Kind {
    table: "recovery_ended",
    key: "recovery",
    intent: false,
    headline: false,
    closes: Some("SELECT seq FROM ledger WHERE kind = 'recovery' AND row_id = ?1"),
    about: "SELECT NULL, NULL, NULL, NULL, NULL, coalesce('failed: ' || failure, 'done') FROM recovery_ended WHERE recovery = ?1",
};

pub(crate) const PLACING: Kind = Kind {
    table: "placing",
    key: "id",
    intent: true,
    headline: false,
    closes: None,
    about: "SELECT r.vm_identifier, r.vm_name, r.client, r.change_id, NULL, 'about to place ' || p.guest_path || ' at ' || p.destination
            FROM placing p JOIN recovery r ON r.id = p.recovery WHERE p.id = ?1",
};

pub(crate) const PLACED: Kind = Kind {
    table: "placed",
    key: "placing",
    intent: false,
    headline: true,
    closes: Some("SELECT seq FROM ledger WHERE kind = 'placing' AND row_id = ?1"),
    about: "SELECT NULL, NULL, NULL, NULL, NULL,
                p.guest_path || ' at ' || p.destination || ': ' || coalesce('failed: ' || d.failure,
                    d.files || iif(d.files = 1, ' file, ', ' files, ') || d.bytes || iif(d.bytes = 1, ' byte', ' bytes') || ', SHA-256 ' || d.sha256)
            FROM placed d JOIN placing p ON p.id = d.placing WHERE d.placing = ?1",
};

pub(crate) const RECOVERY_PLACE: Kind = Kind {
    table: "recovery_place",
    key: "id",
    intent: true,
    headline: false,
    closes: None,
    about: "SELECT NULL, NULL, NULL, NULL, NULL, 'about to work in ' || folder FROM recovery_place WHERE id = ?1",
};

pub(crate) const RECOVERY_PLACE_CLEAN: Kind = Kind {
    table: "recovery_place_clean",
    key: "place",
    intent: false,
    headline: false,
    closes: Some("SELECT seq FROM ledger WHERE kind = 'recovery_place' AND row_id = ?1"),
    about: "SELECT NULL, NULL, NULL, NULL, NULL, 'nothing incomplete is left in ' || folder
            FROM recovery_place_clean c JOIN recovery_place p ON p.id = c.place WHERE c.place = ?1",
};

pub(crate) const GUEST_WRITE: Kind = Kind {
    table: "guest_write",
    key: "id",
    intent: true,
    headline: true,
    closes: None,
    about: "SELECT vm_identifier, vm, NULL, NULL, NULL,
                name || ': ' || kind || ' ' || target || ' in the guest, from checkpoint ' || checkpoint_id || ': ' || coalesce(
                    (SELECT outcome || coalesce(', ' || why, '') FROM guest_write_ended WHERE write = w.id),
                    (SELECT 'not known: the guest was not reached any more' FROM guest_write_left WHERE write = w.id),
                    'under way')
            FROM guest_write w WHERE id = ?1",
};

pub(crate) const GUEST_WRITE_LEFT: Kind = Kind {
    table: "guest_write_left",
    key: "write",
    intent: false,
    headline: false,
    closes: Some("SELECT seq FROM ledger WHERE kind = 'guest_write' AND row_id = ?1"),
    about: "SELECT NULL, NULL, NULL, NULL, NULL, 'whoever reaches the guest next looks at what has come of ' || w.name
            FROM guest_write_left l JOIN guest_write w ON w.id = l.write WHERE l.write = ?1",
};

pub(crate) const GUEST_WRITE_ENDED: Kind = Kind {
    table: "guest_write_ended",
    key: "write",
    intent: false,
    headline: false,
    closes: Some("SELECT seq FROM ledger WHERE kind = 'guest_write' AND row_id = ?1"),
    about: "SELECT NULL, NULL, NULL, NULL, NULL, w.name || ': ' || e.outcome || coalesce(', ' || e.why, '')
            FROM guest_write_ended e JOIN guest_write w ON w.id = e.write WHERE e.write = ?1",
};

pub(crate) const FLR_SESSION: Kind = Kind {
    table: "flr_session",
    key: "id",
    intent: true,
    headline: true,
    closes: None,
    about: "SELECT vm_identifier,
                (SELECT vm_name FROM plan p WHERE lower(p.vm_identifier) = lower(s.vm_identifier) ORDER BY id DESC LIMIT 1),
                NULL, NULL, NULL,
                'checkpoint ' || checkpoint_id || ' of VPG ' || vpg_identifier || ': ' || CASE
                    WHEN EXISTS (SELECT 1 FROM flr_session_closed c WHERE c.session = s.id) AND o.session IS NULL THEN 'not mounted'
                    WHEN EXISTS (SELECT 1 FROM flr_session_closed c WHERE c.session = s.id) THEN 'mounted and unmounted again'
                    WHEN o.session IS NULL THEN 'about to be mounted'
                    ELSE 'mounted' END
            FROM flr_session s LEFT JOIN flr_session_opened o ON o.session = s.id WHERE s.id = ?1",
};

pub(crate) const FLR_SESSION_OPENED: Kind = Kind {
    table: "flr_session_opened",
    key: "session",
    intent: false,
    headline: false,
    closes: Some("SELECT seq FROM ledger WHERE kind = 'flr_session' AND row_id = ?1"),
    about: "SELECT NULL, NULL, NULL, NULL, NULL, 'session ' || session_identifier FROM flr_session_opened WHERE session = ?1",
};

pub(crate) const FLR_UNMOUNT: Kind = Kind {
    table: "flr_unmount",
    key: "id",
    intent: true,
    headline: false,
    closes: None,
    about: "SELECT s.vm_identifier,
                (SELECT vm_name FROM plan p WHERE lower(p.vm_identifier) = lower(s.vm_identifier) ORDER BY id DESC LIMIT 1),
                NULL, NULL, NULL, 'about to unmount checkpoint ' || s.checkpoint_id || ' of VPG ' || s.vpg_identifier
            FROM flr_unmount u JOIN flr_session s ON s.id = u.session WHERE u.id = ?1",
};

pub(crate) const FLR_SESSION_CLOSED: Kind = Kind {
    table: "flr_session_closed",
    key: "session",
    intent: false,
    headline: false,
    // The newest unmount of the session; where there was none, its mount.
    closes: Some(
        "SELECT coalesce(
             (SELECT l.seq FROM flr_unmount u JOIN ledger l ON l.kind = 'flr_unmount' AND l.row_id = u.id
              WHERE u.session = ?1 ORDER BY u.id DESC LIMIT 1),
             (SELECT seq FROM ledger WHERE kind = 'flr_session' AND row_id = ?1))",
    ),
    about: "SELECT NULL, NULL, NULL, NULL, NULL, 'gone' FROM flr_session_closed WHERE session = ?1",
};

pub(crate) const FLR_SESSION_LEFT: Kind = Kind {
    table: "flr_session_left",
    key: "id",
    intent: false,
    headline: true,
    closes: Some(
        "SELECT coalesce(
             (SELECT l.seq FROM flr_unmount u JOIN ledger l ON l.kind = 'flr_unmount' AND l.row_id = u.id
              WHERE u.session = f.session ORDER BY u.id DESC LIMIT 1),
             (SELECT seq FROM ledger WHERE kind = 'flr_session' AND row_id = f.session))
         FROM flr_session_left f WHERE f.id = ?1",
    ),
    about: "SELECT s.vm_identifier,
                (SELECT vm_name FROM plan p WHERE lower(p.vm_identifier) = lower(s.vm_identifier) ORDER BY id DESC LIMIT 1),
                NULL, NULL, NULL, 'a session is left open: ' || f.why
            FROM flr_session_left f JOIN flr_session s ON s.id = f.session WHERE f.id = ?1",
};

pub(crate) const REFUSAL: Kind = Kind {
    table: "refusal",
    key: "id",
    intent: false,
    headline: true,
    closes: None,
    about: "SELECT vm_identifier, vm, coalesce(agent, client), change_id, NULL,
                asked || coalesce(' of ' || coalesce(server || '/', '') || tool, '') || coalesce(' by plan ' || plan, '') || ': ' || code
            FROM refusal WHERE id = ?1",
};

pub(crate) const TOOL_DEFINITION: Kind = Kind {
    table: "tool_definition",
    key: "id",
    intent: false,
    headline: true,
    closes: None,
    about: "SELECT NULL, NULL, NULL, NULL, NULL, CASE event
                WHEN 'first' THEN 'remembered as it is described: '
                WHEN 'seen' THEN 'described in another way: '
                ELSE 'accepted by ' || coalesce(accepted_by, '?') || ': ' END || server || '/' || tool
            FROM tool_definition WHERE id = ?1",
};

pub(crate) const CERTIFICATE: Kind = Kind {
    table: "certificate",
    key: "id",
    intent: false,
    headline: true,
    closes: None,
    about: "SELECT NULL, NULL, NULL, NULL, NULL, CASE event
                WHEN 'first' THEN 'remembered at the first use: '
                ELSE 'accepted by ' || coalesce(accepted_by, '?') || ': ' END || zvm || ', SHA-256 ' || sha256
            FROM certificate WHERE id = ?1",
};

pub(crate) const INTENT_CLOSED: Kind = Kind {
    table: "intent_closed",
    key: "id",
    intent: false,
    headline: true,
    closes: Some("SELECT intent FROM intent_closed WHERE id = ?1"),
    about: "SELECT NULL, NULL, NULL, NULL, NULL, replace(l.kind, '_', ' ') || ', row ' || l.seq || ': ' || c.outcome
            FROM intent_closed c JOIN ledger l ON l.seq = c.intent WHERE c.id = ?1",
};

/// Every kind.
pub(crate) const ALL: &[&Kind] = &[
    &GUARD_INTENT,
    &INSERT_SENT,
    &INSERT_SETTLED,
    &GUARD,
    &PIN,
    &LISTED_CALL,
    &CLAIM,
    &CLAIM_ENDED,
    &CALL_HANDED_OVER,
    &CALL_OUTCOME,
    &PLAN,
    &PLAN_DECISION,
    &RECOVERY_PLACE,
    &PLAN_BEGUN,
    &LOOK,
    &RECOVERY,
    &FLR_SESSION,
    &FLR_SESSION_OPENED,
    &PLACING,
    &PLACED,
    &GUEST_WRITE,
    &GUEST_WRITE_LEFT,
    &GUEST_WRITE_ENDED,
    &RECOVERY_PLACE_CLEAN,
    &RECOVERY_ENDED,
    &LOOK_ENDED,
    &PLAN_ENDED,
    &FLR_UNMOUNT,
    &FLR_SESSION_CLOSED,
    &FLR_SESSION_LEFT,
    &REFUSAL,
    &TOOL_DEFINITION,
    &CERTIFICATE,
    &INTENT_CLOSED,
];

/// The kind with this name.
pub(super) fn named(table: &str) -> Option<&'static Kind> {
    ALL.iter().find(|kind| kind.table == table).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::state::State;

    #[test]
    fn every_table_to_which_rows_are_only_added_is_a_kind_that_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::new(dir.path().join("state"));
        let tables: BTreeSet<String> = state
            .read(|database, _| {
                for kind in ALL {
                    let about = database.prepare(kind.about)?;
                    assert_eq!((about.column_count(), about.parameter_count()), (6, 1), "{kind:?}");
                    if let Some(closes) = kind.closes {
                        assert_eq!(database.prepare(closes)?.column_count(), 1, "{kind:?}");
                    }
                    if kind.intent {
                        database.prepare(&format!("SELECT owner FROM {}", kind.table))?;
                    }
                }
                let mut query = database.prepare(
                    "SELECT tbl_name FROM sqlite_schema WHERE type = 'trigger' AND name IN (tbl_name || '_kept', tbl_name || '_stays')
                     GROUP BY tbl_name HAVING count(*) = 2",
                )?;
                let tables = query.query_map([], |row| row.get(0))?;
                tables.collect()
            })
            .unwrap();
        let mut kinds: BTreeSet<_> = ALL.iter().map(|kind| kind.table.to_owned()).collect();
        assert_eq!(kinds.len(), ALL.len());
        // No part of it: logins, the key of seals, the approver's passphrase and who tried it, the chain itself.
        let others = [
            "ledger",
            "login",
            "seal",
            "approver",
            "approver_attempt",
            "approver_right",
        ];
        kinds.extend(others.map(str::to_owned));
        assert_eq!(tables, kinds);
    }
}
