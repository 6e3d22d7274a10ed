-- Whom an agreement to a look holds for: who asks from the same seat. Null in rows of earlier versions: for nobody.
ALTER TABLE plan ADD COLUMN seat TEXT;

-- Written before a checkpoint is mounted to look into it, for each path and pattern.
CREATE TABLE look (
    id             INTEGER PRIMARY KEY,
    zvm            TEXT NOT NULL,
    vm_identifier  TEXT NOT NULL,
    vm_name        TEXT NOT NULL,
    vpg_identifier TEXT NOT NULL,
    vpg_name       TEXT NOT NULL,
    checkpoint_id  TEXT NOT NULL,
    client         TEXT,
    change_id      TEXT NOT NULL,
    -- The name of the plan that was agreed to. Null: nobody had to agree.
    agreed         TEXT,
    path           TEXT NOT NULL,
    -- What it is compared with. Null: with nothing.
    compared_with  TEXT,
    owner          TEXT NOT NULL
) STRICT;
CREATE INDEX look_by_owner ON look (owner);

-- Null: it was done.
CREATE TABLE look_ended (
    look    INTEGER PRIMARY KEY REFERENCES look (id),
    failure TEXT
) STRICT;

CREATE TRIGGER look_kept BEFORE UPDATE ON look BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER look_stays BEFORE DELETE ON look BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER look_ended_kept BEFORE UPDATE ON look_ended BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER look_ended_stays BEFORE DELETE ON look_ended BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
