package sqlite

// syncTables are the tables of content.db for the sources of documents. They are in the same
// database as the documents, so that the documents of a batch and the cursor after it are stored in
// one transaction. Secrets are not stored; credentials holds where they are read from.
const syncTables = `
CREATE TABLE sync_sources (
	number      INTEGER PRIMARY KEY,
	name        TEXT NOT NULL UNIQUE,
	kind        TEXT NOT NULL,
	target      TEXT NOT NULL,
	collection  TEXT NOT NULL,
	options     TEXT NOT NULL, -- JSON
	credentials TEXT NOT NULL, -- JSON
	cursor      TEXT NOT NULL,
	sweep_due   INTEGER NOT NULL,
	since_sweep INTEGER NOT NULL,
	last_sync   TEXT NOT NULL, -- empty: never
	last_try    TEXT NOT NULL, -- empty: never
	last_error  TEXT NOT NULL,
	report      TEXT           -- JSON
) STRICT;
CREATE TABLE sync_items (
	source  INTEGER NOT NULL REFERENCES sync_sources ON DELETE CASCADE,
	uri     TEXT NOT NULL,
	version TEXT NOT NULL,
	hash    TEXT NOT NULL,
	reason  TEXT NOT NULL,
	detail  TEXT NOT NULL,
	retry   TEXT,          -- JSON; NULL: not to be retried
	failures TEXT,         -- JSON; NULL: all documents could be parsed
	acl     TEXT,          -- JSON; NULL without failures
	PRIMARY KEY (source, uri)
) STRICT, WITHOUT ROWID;
`
