package sqlite

// runsSchema is the layout of runs.db.
//
// The columns that every step changes are in the separate table progress, so that appending a
// record does not rewrite the question or the answer. A record's header, payload, salt, leaf and
// values are those of package journal; header and leaf are in log. Times are nanoseconds since 1970.
var runsSchema = schema{
	applicationID: 0x41535955, // "ASYU"; "ASYS" had no shares, feedback and questions
	migrations:    []string{runsTables + auditTables + ledgerTables + reviewTables + outboxTables + keyTables + feedbackTables},
}

const runsTables = `
CREATE TABLE store (
	id       INTEGER PRIMARY KEY CHECK (id = 1),
	tenant   TEXT NOT NULL,   -- the same random word in content.db and runs.db
	sequence INTEGER NOT NULL, -- of the last entry of the audit log
	registry INTEGER NOT NULL DEFAULT 0, -- changes of registry
	moved    INTEGER NOT NULL DEFAULT 0  -- number of the last act of content.db in the audit log
) STRICT;
CREATE TABLE runs (
	number    INTEGER PRIMARY KEY AUTOINCREMENT,
	id        TEXT NOT NULL UNIQUE,
	principal TEXT NOT NULL, -- JSON
	question  TEXT NOT NULL,
	request   TEXT,          -- JSON
	created   INTEGER NOT NULL,
	answer    TEXT,          -- JSON; NULL: none
	error     TEXT NOT NULL
) STRICT;
CREATE INDEX runs_created ON runs (created);
CREATE TABLE progress (
	run     INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
	state   TEXT NOT NULL,
	steps   INTEGER NOT NULL, -- records in its journal
	updated INTEGER NOT NULL,
	cancelled INTEGER NOT NULL DEFAULT 0, -- 1: it is to end with what it has
	-- The lease; NULL: none.
	token   TEXT,    -- random, of this lease
	owner   TEXT,    -- leases/OWNER.lock is locked while its process lives
	pid     INTEGER, -- of that process
	machine TEXT,    -- that it runs on
	boot    TEXT,    -- which start of the machine's system
	expires INTEGER  -- for other machines
) STRICT;
CREATE TABLE records (
	sequence INTEGER PRIMARY KEY REFERENCES log,
	run      INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
	ordinal  INTEGER NOT NULL,
	path     TEXT NOT NULL,
	salt     BLOB, -- NULL as payload, once the run was erased
	payload  TEXT,
	UNIQUE (run, ordinal),
	UNIQUE (run, path)
) STRICT;
CREATE TABLE long_values (
	number INTEGER PRIMARY KEY AUTOINCREMENT,
	hash   BLOB NOT NULL UNIQUE, -- SHA-256 of data
	data   TEXT NOT NULL
) STRICT;
CREATE TABLE value_uses (
	value INTEGER NOT NULL REFERENCES long_values,
	run   INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
	PRIMARY KEY (run, value)
) STRICT, WITHOUT ROWID;
CREATE INDEX value_uses_value ON value_uses (value);
CREATE TABLE pins (
	document TEXT NOT NULL,
	version  TEXT NOT NULL,
	run      INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
	PRIMARY KEY (document, version, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX pins_run ON pins (run);
-- Runs whose answers may be given again, see store.Runs.
CREATE TABLE offers (
	run INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
	key TEXT NOT NULL
) STRICT;
CREATE INDEX offers_key ON offers (key, run);
-- Runs that a server promised to drive to their end, see store.Promise.
CREATE TABLE promises (
	run      INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
	slot     TEXT UNIQUE,      -- NULL: none
	request  TEXT NOT NULL,
	attempts INTEGER NOT NULL,
	steps    INTEGER NOT NULL  -- of the run when the last attempt began
) STRICT;
`
