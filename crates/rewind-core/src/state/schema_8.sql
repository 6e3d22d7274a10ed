-- The ledger: the rows of the tables that it names, in the order in which they were written, each with the hash of the one before
-- (docs/ledger.md). What happened stands in the row itself: of table `kind`, with the key `row_id`.
CREATE TABLE ledger (
    seq    INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    kind   TEXT NOT NULL,
    row_id INTEGER NOT NULL,
    -- The intent that this row is an outcome of.
    closes INTEGER REFERENCES ledger (seq),
    prev   BLOB NOT NULL,
    hash   BLOB NOT NULL,
    UNIQUE (kind, row_id)
) STRICT;
CREATE INDEX ledger_by_closed ON ledger (closes) WHERE closes IS NOT NULL;

-- An intent whose outcome nobody will tell. 'unknown': its owner gave up. 'interrupted': its owner died.
CREATE TABLE intent_closed (
    id      INTEGER PRIMARY KEY,
    intent  INTEGER NOT NULL REFERENCES ledger (seq),
    outcome TEXT NOT NULL CHECK (outcome IN ('unknown', 'interrupted'))
) STRICT;

-- The marker of the process that is about to act. Null in rows of earlier versions.
ALTER TABLE insert_sent ADD COLUMN owner TEXT;
CREATE INDEX insert_sent_by_owner ON insert_sent (owner);
CREATE INDEX flr_session_by_owner ON flr_session (owner);

-- A pin gets a key of its own.
CREATE TABLE pin_new (
    id             INTEGER PRIMARY KEY,
    guard          INTEGER NOT NULL REFERENCES guard (id),
    vpg_identifier TEXT NOT NULL,
    vpg_name       TEXT NOT NULL,
    checkpoint_id  TEXT NOT NULL,
    checkpoint_at  INTEGER NOT NULL
) STRICT;
INSERT INTO pin_new SELECT rowid, guard, vpg_identifier, vpg_name, checkpoint_id, checkpoint_at FROM pin ORDER BY rowid;
DROP TABLE pin;
ALTER TABLE pin_new RENAME TO pin;
CREATE INDEX pin_by_guard ON pin (guard);
-- Identifiers differ in letter case between sources, and ids are few per number.
CREATE INDEX pin_by_checkpoint ON pin (checkpoint_id);
CREATE INDEX insert_sent_by_tag ON insert_sent (tag);
CREATE INDEX claim_ended_by_guard ON claim_ended (guard);

-- Written before a checkpoint is mounted for a recovery, for each path of the plan.
CREATE TABLE recovery (
    id             INTEGER PRIMARY KEY,
    -- Its name.
    plan           TEXT NOT NULL,
    zvm            TEXT NOT NULL,
    vm_identifier  TEXT NOT NULL,
    vm_name        TEXT NOT NULL,
    vpg_identifier TEXT NOT NULL,
    vpg_name       TEXT NOT NULL,
    checkpoint_id  TEXT NOT NULL,
    checkpoint_at  INTEGER NOT NULL,
    tag            TEXT,
    client         TEXT,
    change_id      TEXT NOT NULL,
    path           TEXT NOT NULL,
    owner          TEXT NOT NULL
) STRICT;
CREATE INDEX recovery_by_checkpoint ON recovery (checkpoint_id);
CREATE INDEX recovery_by_owner ON recovery (owner);

-- Null: it was done.
CREATE TABLE recovery_ended (
    recovery INTEGER PRIMARY KEY REFERENCES recovery (id),
    failure  TEXT
) STRICT;

-- Written before a file or folder is downloaded: where it is about to be placed.
CREATE TABLE placing (
    id          INTEGER PRIMARY KEY,
    recovery    INTEGER NOT NULL REFERENCES recovery (id),
    guest_path  TEXT NOT NULL,
    destination TEXT NOT NULL,
    owner       TEXT NOT NULL
) STRICT;
CREATE INDEX placing_by_recovery ON placing (recovery);
CREATE INDEX placing_by_owner ON placing (owner);

-- What was placed. `sha256` is the file's; of a folder, that of its list of files (docs/ledger.md).
CREATE TABLE placed (
    placing INTEGER PRIMARY KEY REFERENCES placing (id),
    files   INTEGER,
    bytes   INTEGER,
    sha256  TEXT,
    failure TEXT
) STRICT;

-- Written before a session is unmounted.
CREATE TABLE flr_unmount (
    id      INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES flr_session (id),
    owner   TEXT NOT NULL
) STRICT;
CREATE INDEX flr_unmount_by_session ON flr_unmount (session, id);
CREATE INDEX flr_unmount_by_owner ON flr_unmount (owner);

-- What was asked for and not done: a listed call that was not let through, a guard that was not begun, a recovery that was not begun.
CREATE TABLE refusal (
    id               INTEGER PRIMARY KEY,
    zvm              TEXT NOT NULL,
    asked            TEXT NOT NULL CHECK (asked IN ('call', 'guard', 'recovery')),
    code             TEXT NOT NULL,
    vm               TEXT,
    agent            TEXT,
    client           TEXT,
    change_id        TEXT,
    server           TEXT,
    tool             TEXT,
    arguments_digest TEXT
) STRICT;

CREATE TRIGGER ledger_kept BEFORE UPDATE ON ledger BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER ledger_stays BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER intent_closed_kept BEFORE UPDATE ON intent_closed BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER intent_closed_stays BEFORE DELETE ON intent_closed BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER pin_kept BEFORE UPDATE ON pin BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER pin_stays BEFORE DELETE ON pin BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER recovery_kept BEFORE UPDATE ON recovery BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER recovery_stays BEFORE DELETE ON recovery BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER recovery_ended_kept BEFORE UPDATE ON recovery_ended BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER recovery_ended_stays BEFORE DELETE ON recovery_ended BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER placing_kept BEFORE UPDATE ON placing BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER placing_stays BEFORE DELETE ON placing BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER placed_kept BEFORE UPDATE ON placed BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER placed_stays BEFORE DELETE ON placed BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER flr_unmount_kept BEFORE UPDATE ON flr_unmount BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER flr_unmount_stays BEFORE DELETE ON flr_unmount BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER refusal_kept BEFORE UPDATE ON refusal BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER refusal_stays BEFORE DELETE ON refusal BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
