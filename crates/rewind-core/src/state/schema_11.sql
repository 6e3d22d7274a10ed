-- A refusal also of a look, and with the plan that was named.
CREATE TABLE refusal_new (
    id               INTEGER PRIMARY KEY,
    zvm              TEXT NOT NULL,
    asked            TEXT NOT NULL CHECK (asked IN ('call', 'guard', 'recovery', 'look')),
    code             TEXT NOT NULL,
    vm               TEXT,
    agent            TEXT,
    client           TEXT,
    change_id        TEXT,
    server           TEXT,
    tool             TEXT,
    arguments_digest TEXT,
    vm_identifier    TEXT,
    -- As it was named.
    plan             TEXT
) STRICT;
INSERT INTO refusal_new (id, zvm, asked, code, vm, agent, client, change_id, server, tool, arguments_digest)
    SELECT id, zvm, asked, code, vm, agent, client, change_id, server, tool, arguments_digest FROM refusal ORDER BY id;
DROP TABLE refusal;
ALTER TABLE refusal_new RENAME TO refusal;
CREATE TRIGGER refusal_kept BEFORE UPDATE ON refusal BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
CREATE TRIGGER refusal_stays BEFORE DELETE ON refusal BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
