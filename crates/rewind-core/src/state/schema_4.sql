-- Which certificate a ZVM is known by, where no authority vouches for it: SHA-256 of its DER form, as `openssl x509 -fingerprint` shows it.
-- 'first': remembered at the first use. 'accepted': by a person. The newest row of a ZVM (host and port) counts.
CREATE TABLE certificate (
    id          INTEGER PRIMARY KEY,
    at          INTEGER NOT NULL,
    zvm         TEXT NOT NULL,
    sha256      TEXT NOT NULL,
    event       TEXT NOT NULL CHECK (event IN ('first', 'accepted')),
    accepted_by TEXT
) STRICT;
CREATE INDEX certificate_by_zvm ON certificate (zvm, id);

CREATE TRIGGER certificate_kept BEFORE UPDATE ON certificate BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER certificate_stays BEFORE DELETE ON certificate BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
