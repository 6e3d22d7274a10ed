-- What the ZVM said when it refused a login: one line, bounded, without the secret. Null for other events, and in rows of earlier versions.
ALTER TABLE login ADD COLUMN said TEXT;
