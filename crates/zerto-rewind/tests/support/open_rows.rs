//! Rows of the state that wait for another, which nobody will write once everybody is gone.

/// What the state may not hold once a dead process was cleaned up after.
pub const OPEN: [(&str, &str); 7] = [
    (
        "sessions",
        "SELECT count(*) FROM flr_session_opened o WHERE NOT EXISTS (SELECT 1 FROM flr_session_closed c WHERE c.session = o.session)",
    ),
    (
        "guards",
        "SELECT count(*) FROM guard_intent i WHERE NOT EXISTS (SELECT 1 FROM guard g WHERE g.tag = i.tag)",
    ),
    (
        "calls",
        "SELECT count(*) FROM listed_call l WHERE NOT EXISTS (SELECT 1 FROM call_outcome o WHERE o.call = l.id)
             AND NOT EXISTS (SELECT 1 FROM call_handed_over h WHERE h.call = l.id)",
    ),
    (
        "claims",
        "SELECT count(*) FROM claim c WHERE NOT EXISTS (SELECT 1 FROM claim_ended e WHERE e.claim = c.id)",
    ),
    (
        "plans",
        "SELECT count(*) FROM plan_begun b WHERE NOT EXISTS (SELECT 1 FROM plan_ended e WHERE e.plan = b.plan)",
    ),
    (
        "places",
        "SELECT count(*) FROM recovery_place p WHERE NOT EXISTS (SELECT 1 FROM recovery_place_clean c WHERE c.place = p.id)",
    ),
    (
        "intents",
        "SELECT count(*) FROM ledger l WHERE NOT EXISTS (SELECT 1 FROM ledger c WHERE c.closes = l.seq)
             AND kind IN ('guard_intent', 'insert_sent', 'listed_call', 'plan_begun', 'recovery', 'recovery_place', 'placing', 'flr_session', 'flr_unmount', 'guest_write')",
    ),
];
