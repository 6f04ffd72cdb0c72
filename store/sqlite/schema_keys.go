package sqlite

// keyTables is the part of system.db for when API keys were last used.
const keyTables = `
CREATE TABLE uses (
	name TEXT PRIMARY KEY,
	used INTEGER NOT NULL -- seconds since 1970
) STRICT, WITHOUT ROWID;
`
