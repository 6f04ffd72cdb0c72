package sqlite

// ledgerTables is the part of runs.db for what was spent.
const ledgerTables = `
-- What a subject (see package limit) has spent in a UTC day or month.
CREATE TABLE spending (
	subject  TEXT NOT NULL,
	period   TEXT NOT NULL, -- '2026-11-22' or '2026-11'
	requests INTEGER NOT NULL DEFAULT 0,
	calls    INTEGER NOT NULL DEFAULT 0,
	tokens   INTEGER NOT NULL DEFAULT 0,
	micros   INTEGER NOT NULL DEFAULT 0,
	-- The part of it that no record of a run has.
	other_calls  INTEGER NOT NULL DEFAULT 0,
	other_tokens INTEGER NOT NULL DEFAULT 0,
	other_micros INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (subject, period)
) STRICT, WITHOUT ROWID;
-- Admissions in progress, a row for each of their subjects.
CREATE TABLE admissions (
	subject TEXT NOT NULL,
	token   TEXT NOT NULL, -- random
	run     TEXT NOT NULL, -- ID of the run, which may not exist yet; empty: none
	-- The process, as in progress.
	owner   TEXT NOT NULL,
	pid     INTEGER NOT NULL,
	machine TEXT NOT NULL,
	boot    TEXT NOT NULL,
	expires INTEGER NOT NULL,
	PRIMARY KEY (subject, token)
) STRICT, WITHOUT ROWID;
-- Usage set aside for steps in progress, a row for each of their subjects.
CREATE TABLE reservations (
	subject TEXT NOT NULL,
	token   TEXT NOT NULL,    -- of an admission or of a run's lease
	path    TEXT NOT NULL,
	run     INTEGER NOT NULL, -- number of the run; 0: the token is that of an admission
	day     TEXT NOT NULL,
	calls   INTEGER NOT NULL,
	tokens  INTEGER NOT NULL,
	micros  INTEGER NOT NULL,
	PRIMARY KEY (subject, token, path)
) STRICT, WITHOUT ROWID;
`
