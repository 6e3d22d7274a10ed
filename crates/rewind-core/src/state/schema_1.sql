-- Times are milliseconds since 1970. Rows are only added: an outcome is a new row.

CREATE TABLE installation (
    salt BLOB NOT NULL
) STRICT;
INSERT INTO installation (salt) VALUES (randomblob(16));

-- Written before the first insert: what a guard was about to put into the journals. No two guards get one tag.
CREATE TABLE guard_intent (
    id            INTEGER PRIMARY KEY,
    at            INTEGER NOT NULL,
    zvm           TEXT NOT NULL,
    vm_identifier TEXT NOT NULL,
    tag           TEXT NOT NULL,
    UNIQUE (zvm, vm_identifier, tag)
) STRICT;

CREATE TABLE guard (
    id               INTEGER PRIMARY KEY,
    zvm              TEXT NOT NULL,
    agent            TEXT NOT NULL,
    client           TEXT,
    change_id        TEXT NOT NULL,
    vm_identifier    TEXT NOT NULL,
    vm_name          TEXT NOT NULL,
    tag              TEXT NOT NULL,
    server           TEXT,
    tool             TEXT,
    arguments_digest TEXT,
    started_at       INTEGER NOT NULL,
    ended_at         INTEGER NOT NULL,
    failure          TEXT
) STRICT;
CREATE INDEX guard_by_vm ON guard (zvm, vm_identifier, id);

CREATE TABLE pin (
    guard          INTEGER NOT NULL REFERENCES guard (id),
    vpg_identifier TEXT NOT NULL,
    vpg_name       TEXT NOT NULL,
    checkpoint_id  TEXT NOT NULL,
    checkpoint_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX pin_by_guard ON pin (guard);
CREATE INDEX pin_by_checkpoint ON pin (vpg_identifier, checkpoint_id);

-- Written before the mount is asked for.
CREATE TABLE flr_session (
    id             INTEGER PRIMARY KEY,
    at             INTEGER NOT NULL,
    zvm            TEXT NOT NULL,
    vm_identifier  TEXT NOT NULL,
    vpg_identifier TEXT NOT NULL,
    checkpoint_id  TEXT NOT NULL,
    owner          TEXT NOT NULL,
    pid            INTEGER NOT NULL
) STRICT;

CREATE TABLE flr_session_opened (
    session            INTEGER PRIMARY KEY REFERENCES flr_session (id),
    at                 INTEGER NOT NULL,
    session_identifier TEXT NOT NULL
) STRICT;

CREATE TABLE flr_session_closed (
    session INTEGER PRIMARY KEY REFERENCES flr_session (id),
    at      INTEGER NOT NULL
) STRICT;

-- Events: 'attempt', its outcome 'accepted', 'refused', 'unsent' or 'unknown', and 'asked' when a person asked for one more attempt.
-- An outcome refers to its attempt; an attempt that a person asked for refers to the asking.
CREATE TABLE login (
    id      INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    zvm     TEXT NOT NULL,
    account TEXT NOT NULL,
    secret  BLOB,
    event   TEXT NOT NULL CHECK (event IN ('attempt', 'accepted', 'refused', 'unsent', 'unknown', 'asked')),
    refers  INTEGER UNIQUE REFERENCES login (id)
) STRICT;
CREATE INDEX login_by_account ON login (zvm, account, event, id);
CREATE INDEX login_by_secret ON login (zvm, account, secret, event, id);

CREATE TRIGGER guard_intent_kept BEFORE UPDATE ON guard_intent BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER guard_intent_stays BEFORE DELETE ON guard_intent BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER guard_kept BEFORE UPDATE ON guard BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER guard_stays BEFORE DELETE ON guard BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER pin_kept BEFORE UPDATE ON pin BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER pin_stays BEFORE DELETE ON pin BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER flr_session_kept BEFORE UPDATE ON flr_session BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER flr_session_stays BEFORE DELETE ON flr_session BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER flr_session_opened_kept BEFORE UPDATE ON flr_session_opened BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER flr_session_opened_stays BEFORE DELETE ON flr_session_opened BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER flr_session_closed_kept BEFORE UPDATE ON flr_session_closed BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER flr_session_closed_stays BEFORE DELETE ON flr_session_closed BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER login_kept BEFORE UPDATE ON login BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER login_stays BEFORE DELETE ON login BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
