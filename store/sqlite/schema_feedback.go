package sqlite

// feedbackTables is the part of runs.db for shares, feedback and labelled questions.
const feedbackTables = `
CREATE TABLE shares (
	number  INTEGER PRIMARY KEY AUTOINCREMENT,
	run     INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
	id      TEXT NOT NULL,
	hash    TEXT NOT NULL UNIQUE, -- of the token
	created INTEGER NOT NULL,
	expires INTEGER NOT NULL,
	UNIQUE (run, id)
) STRICT;
CREATE TABLE feedback (
	run     INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
	user    TEXT NOT NULL,
	verdict TEXT NOT NULL,
	body    TEXT NOT NULL, -- JSON
	updated INTEGER NOT NULL,
	PRIMARY KEY (run, user)
) STRICT, WITHOUT ROWID;
CREATE INDEX feedback_updated ON feedback (updated);
-- Questions outlive runs that expire, so the run is named by its ID.
CREATE TABLE questions (
	number    INTEGER PRIMARY KEY AUTOINCREMENT,
	set_name  TEXT NOT NULL,
	run       TEXT NOT NULL,
	line      TEXT NOT NULL, -- JSON
	documents TEXT NOT NULL, -- JSON
	updated   INTEGER NOT NULL,
	UNIQUE (set_name, run)
) STRICT;
CREATE INDEX questions_run ON questions (run);
`
