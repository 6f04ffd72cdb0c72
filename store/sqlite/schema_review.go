package sqlite

// reviewTables is the part of runs.db for reviews.
const reviewTables = `
CREATE TABLE reviews (
	run     INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
	open    INTEGER NOT NULL, -- 1: waits for a decision; 0: decided
	version INTEGER NOT NULL, -- counts the changes, from 1
	created INTEGER NOT NULL,
	state   TEXT NOT NULL,    -- JSON, see package review
	draft   TEXT NOT NULL     -- JSON; the answer that waits
) STRICT;
CREATE INDEX reviews_open ON reviews (open, created);
`
