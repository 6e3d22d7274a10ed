-- Times are milliseconds since 1970. Rows are only added: an outcome is a new row.

-- Listed calls as those saw them that stand in their way. Written before their guards begin.
CREATE TABLE listed_call (
    id               INTEGER PRIMARY KEY,
    at               INTEGER NOT NULL,
    zvm              TEXT NOT NULL,
    -- One proxy, or one run of a hook: it sees a call once.
    observer         TEXT NOT NULL,
    -- The marker of its process.
    owner            TEXT NOT NULL,
    server           TEXT,
    tool             TEXT NOT NULL,
    arguments_digest TEXT NOT NULL,
    agent            TEXT NOT NULL,
    change_id        TEXT NOT NULL,
    seen_by          TEXT NOT NULL CHECK (seen_by IN ('proxy', 'hook')),
    -- The harness's id of the call.
    correlation      TEXT
) STRICT;
CREATE INDEX listed_call_by_arguments ON listed_call (arguments_digest, id);
CREATE INDEX listed_call_by_time ON listed_call (zvm, at);

-- One VM of a listed call, about to be pinned for it, or to be covered by an earlier guard.
CREATE TABLE claim (
    id            INTEGER PRIMARY KEY,
    call          INTEGER NOT NULL REFERENCES listed_call (id),
    at            INTEGER NOT NULL,
    -- In lower case.
    vm_identifier TEXT NOT NULL,
    -- The claim of another that saw the same call: its guard is used.
    joins         INTEGER REFERENCES claim (id)
) STRICT;
CREATE INDEX claim_by_call ON claim (call);
CREATE INDEX claim_by_joined ON claim (joins);

CREATE TABLE claim_ended (
    claim INTEGER PRIMARY KEY REFERENCES claim (id),
    at    INTEGER NOT NULL,
    -- The guard that covers it. Null: none does.
    guard INTEGER REFERENCES guard (id)
) STRICT;

-- Calls whose outcome another process will tell, which finds them by the harness's id of the call where there is one.
CREATE TABLE call_handed_over (
    call        INTEGER PRIMARY KEY REFERENCES listed_call (id),
    at          INTEGER NOT NULL,
    correlation TEXT
) STRICT;
CREATE INDEX call_handed_over_by_correlation ON call_handed_over (correlation);

CREATE TABLE call_outcome (
    call    INTEGER PRIMARY KEY REFERENCES listed_call (id),
    at      INTEGER NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('ok', 'is_error', 'protocol_error', 'lost', 'not_forwarded'))
) STRICT;

-- How servers described their listed tools. 'first': remembered at the first use, and so accepted. 'seen': another one than before.
-- 'accepted': by a person. The server is '' while its name is unknown. Texts that are too long are not kept.
CREATE TABLE tool_definition (
    id               INTEGER PRIMARY KEY,
    at               INTEGER NOT NULL,
    server           TEXT NOT NULL,
    tool             TEXT NOT NULL,
    event            TEXT NOT NULL CHECK (event IN ('first', 'seen', 'accepted')),
    schema_sha256    TEXT NOT NULL,
    described_sha256 TEXT NOT NULL,
    schema           TEXT,
    described        TEXT,
    accepted_by      TEXT
) STRICT;
CREATE INDEX tool_definition_by_name ON tool_definition (tool, server, id);

CREATE INDEX guard_by_end ON guard (zvm, ended_at);

CREATE TRIGGER listed_call_kept BEFORE UPDATE ON listed_call BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER listed_call_stays BEFORE DELETE ON listed_call BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER claim_kept BEFORE UPDATE ON claim BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER claim_stays BEFORE DELETE ON claim BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER claim_ended_kept BEFORE UPDATE ON claim_ended BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER claim_ended_stays BEFORE DELETE ON claim_ended BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER call_handed_over_kept BEFORE UPDATE ON call_handed_over BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER call_handed_over_stays BEFORE DELETE ON call_handed_over BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER call_outcome_kept BEFORE UPDATE ON call_outcome BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER call_outcome_stays BEFORE DELETE ON call_outcome BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER tool_definition_kept BEFORE UPDATE ON tool_definition BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER tool_definition_stays BEFORE DELETE ON tool_definition BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
