-- Files that were about to be written in guests: put down before anything is sent, so that what a broken connection leaves can be
-- found, and what was replaced can be put back. Of a file in a guest only its paths and hashes are here.
-- 'source' is renamed to 'target'; 'copy' is a second name of what was at 'target'.
CREATE TABLE guest_write (
    id              INTEGER PRIMARY KEY,
    at              INTEGER NOT NULL,
    name            TEXT NOT NULL UNIQUE,
    zvm             TEXT NOT NULL,
    vm_identifier   TEXT NOT NULL,
    vm              TEXT NOT NULL,
    guest           TEXT NOT NULL,
    kind            TEXT NOT NULL CHECK (kind IN ('beside', 'replace', 'undo')),
    undoes          TEXT,
    checkpoint_id   TEXT NOT NULL,
    path            TEXT NOT NULL,
    target          TEXT NOT NULL,
    source          TEXT NOT NULL,
    source_is_temporary INTEGER NOT NULL,
    copy            TEXT,
    copy_was_there  INTEGER NOT NULL,
    sha256          TEXT NOT NULL,
    previous_sha256 TEXT,
    -- The marker of the process.
    owner           TEXT NOT NULL,
    pid             INTEGER NOT NULL
) STRICT;
CREATE INDEX guest_write_by_owner ON guest_write (owner);
CREATE INDEX guest_write_by_vm ON guest_write (zvm, vm_identifier, id);

-- The connection broke: whoever reaches the guest next looks at what has come of it.
CREATE TABLE guest_write_left (
    write INTEGER PRIMARY KEY REFERENCES guest_write (id),
    at    INTEGER NOT NULL
) STRICT;

CREATE TABLE guest_write_ended (
    write   INTEGER PRIMARY KEY REFERENCES guest_write (id),
    at      INTEGER NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('restored', 'beside', 'unchanged', 'conflict', 'failed')),
    why     TEXT
) STRICT;

CREATE TRIGGER guest_write_kept BEFORE UPDATE ON guest_write BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER guest_write_stays BEFORE DELETE ON guest_write BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER guest_write_left_kept BEFORE UPDATE ON guest_write_left BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER guest_write_left_stays BEFORE DELETE ON guest_write_left BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER guest_write_ended_kept BEFORE UPDATE ON guest_write_ended BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER guest_write_ended_stays BEFORE DELETE ON guest_write_ended BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
