package sqlite

// auditTables is the part of runs.db for the audit log and the registry. The system's own database
// has the same layout.
const auditTables = `
-- The leaves of the Merkle tree. They are never changed and never deleted.
CREATE TABLE log (
	sequence INTEGER PRIMARY KEY,
	header   TEXT NOT NULL, -- canonical JSON
	leaf     BLOB NOT NULL
) STRICT;
-- The hashes of the tree, by the position that tlog.StoredHashIndex gives.
CREATE TABLE tree (
	position INTEGER PRIMARY KEY,
	hash     BLOB NOT NULL
) STRICT;
-- The acts among the leaves. Salt and payload are NULL once they were erased.
CREATE TABLE acts (
	sequence INTEGER PRIMARY KEY REFERENCES log,
	kind     TEXT NOT NULL,
	subject  TEXT NOT NULL,
	salt     BLOB,
	payload  TEXT
) STRICT;
CREATE INDEX acts_subject ON acts (subject, kind);
CREATE TABLE registry (
	kind    TEXT NOT NULL,
	name    TEXT NOT NULL,
	value   TEXT NOT NULL, -- JSON
	updated INTEGER NOT NULL,
	PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
`
