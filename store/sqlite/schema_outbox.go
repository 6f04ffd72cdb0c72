package sqlite

// outboxTables is the part of runs.db for messages to be delivered. Times are nanoseconds since
// 1970.
const outboxTables = `
-- The sequence of the last act that messages were made of.
CREATE TABLE outbox_position (
	id  INTEGER PRIMARY KEY CHECK (id = 1),
	act INTEGER NOT NULL
) STRICT;
INSERT INTO outbox_position (id, act) VALUES (1, 0);
CREATE TABLE outbox (
	number   INTEGER PRIMARY KEY AUTOINCREMENT,
	id       TEXT NOT NULL UNIQUE,
	act      INTEGER NOT NULL,
	kind     TEXT NOT NULL,
	target   TEXT NOT NULL,
	body     TEXT NOT NULL,
	made     INTEGER NOT NULL,
	attempts INTEGER NOT NULL,
	due      INTEGER, -- NULL: dead
	error    TEXT NOT NULL,
	UNIQUE (act, target)
) STRICT;
CREATE INDEX outbox_due ON outbox (due) WHERE due IS NOT NULL;
CREATE TABLE outbox_targets (
	target    TEXT PRIMARY KEY,
	delivered INTEGER NOT NULL DEFAULT 0,
	last      INTEGER NOT NULL DEFAULT 0, -- time of the last delivery; 0: none
	failures  INTEGER NOT NULL DEFAULT 0, -- since then that postponed all its messages
	removed   INTEGER NOT NULL DEFAULT 0  -- messages that were not delivered
) STRICT, WITHOUT ROWID;
`
