-- What is sent through a client and comes back is sealed with this.
CREATE TABLE seal (
    key BLOB NOT NULL
) STRICT;
INSERT INTO seal (key) VALUES (randomblob(32));

-- What people decide on. The body is the canonical form, and the digest is of it.
CREATE TABLE plan (
    id             INTEGER PRIMARY KEY,
    at             INTEGER NOT NULL,
    expires_at     INTEGER NOT NULL,
    name           TEXT NOT NULL UNIQUE,
    zvm            TEXT NOT NULL,
    vm_identifier  TEXT NOT NULL,
    vm_name        TEXT NOT NULL,
    vpg_identifier TEXT NOT NULL,
    checkpoint_id  TEXT NOT NULL,
    client         TEXT,
    change_id      TEXT NOT NULL,
    kind           TEXT NOT NULL CHECK (kind IN ('preview', 'effects')),
    -- The same for plans that differ in their times and names alone.
    substance      TEXT NOT NULL,
    digest         TEXT NOT NULL UNIQUE,
    body           TEXT NOT NULL
) STRICT;
CREATE INDEX plan_by_expiry ON plan (zvm, expires_at);
CREATE INDEX plan_by_substance ON plan (zvm, substance, expires_at);
CREATE INDEX plan_by_checkpoint ON plan (zvm, vm_identifier, vpg_identifier, checkpoint_id, kind);

-- The first word counts. 'mistyped': the form came back without the VM's name. 'unanswered': the client answered it with an error.
CREATE TABLE plan_decision (
    plan       INTEGER PRIMARY KEY REFERENCES plan (id),
    at         INTEGER NOT NULL,
    verdict    TEXT NOT NULL CHECK (verdict IN ('approved', 'declined', 'cancelled', 'mistyped', 'unanswered')),
    how        TEXT NOT NULL CHECK (how IN ('form', 'approve', 'argument', 'terminal')),
    decided_by TEXT NOT NULL,
    digest     TEXT NOT NULL
) STRICT;

-- Written before anything is mounted for it: no plan begins twice.
CREATE TABLE plan_begun (
    plan  INTEGER PRIMARY KEY REFERENCES plan (id),
    at    INTEGER NOT NULL,
    owner TEXT NOT NULL
) STRICT;
CREATE INDEX plan_begun_by_owner ON plan_begun (owner);

-- 'interrupted': its process ended before it did.
CREATE TABLE plan_ended (
    plan    INTEGER PRIMARY KEY REFERENCES plan_begun (plan),
    at      INTEGER NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('done', 'not_all', 'failed', 'interrupted'))
) STRICT;

-- The approver's passphrase, as an Argon2id hash. The newest row counts; null: none is asked for.
CREATE TABLE approver (
    id     INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    hash   TEXT,
    set_by TEXT NOT NULL
) STRICT;

-- Written before a passphrase is compared, so that processes that try at once share one count.
CREATE TABLE approver_attempt (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL
) STRICT;

CREATE TABLE approver_right (
    attempt INTEGER PRIMARY KEY REFERENCES approver_attempt (id),
    at      INTEGER NOT NULL
) STRICT;

CREATE TRIGGER seal_kept BEFORE UPDATE ON seal BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER seal_stays BEFORE DELETE ON seal BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER plan_kept BEFORE UPDATE ON plan BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER plan_stays BEFORE DELETE ON plan BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER plan_decision_kept BEFORE UPDATE ON plan_decision BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER plan_decision_stays BEFORE DELETE ON plan_decision BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER plan_begun_kept BEFORE UPDATE ON plan_begun BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER plan_begun_stays BEFORE DELETE ON plan_begun BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER plan_ended_kept BEFORE UPDATE ON plan_ended BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER plan_ended_stays BEFORE DELETE ON plan_ended BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER approver_kept BEFORE UPDATE ON approver BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER approver_stays BEFORE DELETE ON approver BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER approver_attempt_kept BEFORE UPDATE ON approver_attempt BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER approver_attempt_stays BEFORE DELETE ON approver_attempt BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER approver_right_kept BEFORE UPDATE ON approver_right BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER approver_right_stays BEFORE DELETE ON approver_right BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
