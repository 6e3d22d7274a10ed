-- Written under a VPG's lock right before an insert is sent: the ZVM drops what is inserted after it until it is listed.
CREATE TABLE insert_sent (
    id             INTEGER PRIMARY KEY,
    at             INTEGER NOT NULL,
    zvm            TEXT NOT NULL,
    vpg_identifier TEXT NOT NULL,
    tag            TEXT NOT NULL
) STRICT;
CREATE INDEX insert_sent_by_vpg ON insert_sent (zvm, vpg_identifier, id);

-- 'listed': its tag was seen in the journal. 'not_taken': it was not sent after all, or the ZVM said that it failed.
CREATE TABLE insert_settled (
    insert_sent INTEGER PRIMARY KEY REFERENCES insert_sent (id),
    at          INTEGER NOT NULL,
    outcome     TEXT NOT NULL CHECK (outcome IN ('listed', 'not_taken'))
) STRICT;

CREATE TRIGGER insert_sent_kept BEFORE UPDATE ON insert_sent BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER insert_sent_stays BEFORE DELETE ON insert_sent BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER insert_settled_kept BEFORE UPDATE ON insert_settled BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER insert_settled_stays BEFORE DELETE ON insert_settled BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;

-- Its owner gave up unmounting it: whoever comes next tries again. The newest reason counts.
CREATE TABLE flr_session_left (
    id      INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES flr_session (id),
    at      INTEGER NOT NULL,
    why     TEXT NOT NULL
) STRICT;
CREATE INDEX flr_session_left_by_session ON flr_session_left (session, id);

CREATE TRIGGER flr_session_left_kept BEFORE UPDATE ON flr_session_left BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER flr_session_left_stays BEFORE DELETE ON flr_session_left BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
