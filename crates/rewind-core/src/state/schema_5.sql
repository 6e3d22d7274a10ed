-- Whose rows are open: a process that ends without closing them leaves its marker, and the next one closes them.
ALTER TABLE guard_intent ADD COLUMN owner TEXT;
CREATE INDEX guard_intent_by_owner ON guard_intent (owner);
ALTER TABLE login ADD COLUMN owner TEXT;
CREATE INDEX listed_call_by_owner ON listed_call (owner);
CREATE INDEX guard_by_tag ON guard (tag);

-- By the ZVM's clock, when the mount was asked for.
ALTER TABLE flr_session ADD COLUMN zvm_at INTEGER;

-- Written before a recovery makes anything in its folder: what is not complete there has a name that begins with the mark.
CREATE TABLE recovery_place (
    id     INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    owner  TEXT NOT NULL,
    folder TEXT NOT NULL,
    mark   TEXT NOT NULL,
    -- The outermost of the folders that had to be made for it. Null: none.
    made   TEXT
) STRICT;
CREATE INDEX recovery_place_by_owner ON recovery_place (owner);

-- Nothing incomplete is left there.
CREATE TABLE recovery_place_clean (
    place INTEGER PRIMARY KEY REFERENCES recovery_place (id),
    at    INTEGER NOT NULL
) STRICT;

CREATE TRIGGER recovery_place_kept BEFORE UPDATE ON recovery_place BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER recovery_place_stays BEFORE DELETE ON recovery_place BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER recovery_place_clean_kept BEFORE UPDATE ON recovery_place_clean BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER recovery_place_clean_stays BEFORE DELETE ON recovery_place_clean BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
