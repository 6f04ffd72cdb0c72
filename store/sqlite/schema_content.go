package sqlite

import "fmt"

// contentID is the application ID of content.db. It changes with a layout that cannot be migrated.
const contentID = 0x41535946

// Layout identifies the layout of content.db. Stores of another layout cannot be opened.
func Layout() string { return fmt.Sprintf("%x", contentID) }

// contentSchema is the layout of content.db.
//
// Every document that was ever stored has a row in documents. A deleted document keeps its row
// without a version, so that Changes can report the deletion, and with the ACL of its last version,
// so that access to text read from it can still be checked. Its texts belong to rows of versions,
// of which one is current and the others are kept until Prune. Large data is stored separately in
// pieces, so that a listing does not read it and a passage reads only the pieces that it spans.
// Times are RFC 3339 text if they come from outside, and nanoseconds since 1970 if the store read
// the clock.
//
// A vector belongs to the embedded words, not to a chunk, so that it is reused if the words
// reappear in another version. It is kept as long as some version has a chunk with these words.
//
// An original is the file that versions were read from, if its pages can be shown. It is kept as long
// as one of them is.
//
// A row of sources says in which state a file was ingested. It is written in the transaction that
// completes the file's documents.
var contentSchema = schema{
	applicationID: contentID, // "ASYF"; "ASYE" had no originals
	migrations: []string{`
CREATE TABLE store (
	id       INTEGER PRIMARY KEY CHECK (id = 1),
	tenant   TEXT NOT NULL,   -- the same random word in content.db and runs.db
	sequence INTEGER NOT NULL -- of the last change of a document or a vector
) STRICT;
CREATE TABLE collections (
	number        INTEGER PRIMARY KEY,
	name          TEXT NOT NULL UNIQUE,
	require_acl   INTEGER NOT NULL,
	chunker       TEXT NOT NULL DEFAULT '', -- empty: the default
	chunk_size    INTEGER NOT NULL DEFAULT 0,
	chunk_overlap INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE documents (
	number     INTEGER PRIMARY KEY,
	id         TEXT NOT NULL UNIQUE,
	collection INTEGER NOT NULL REFERENCES collections,
	uri        TEXT NOT NULL,
	container  TEXT NOT NULL,    -- URI of the source that contains it; empty: none
	version    INTEGER,          -- number of the current version; NULL: deleted
	sequence   INTEGER NOT NULL, -- of its last change
	acl        TEXT,             -- JSON, of its last version if it is deleted; NULL: see versions
	UNIQUE (collection, uri)
) STRICT;
CREATE INDEX documents_sequence ON documents (sequence);
CREATE TABLE originals (
	number INTEGER PRIMARY KEY AUTOINCREMENT,
	hash   BLOB NOT NULL UNIQUE, -- SHA-256 of data
	data   BLOB NOT NULL
) STRICT;
CREATE TABLE versions (
	number          INTEGER PRIMARY KEY AUTOINCREMENT,
	document        INTEGER NOT NULL REFERENCES documents,
	version         TEXT NOT NULL,
	title           TEXT NOT NULL,
	metadata        TEXT NOT NULL, -- JSON
	acl             TEXT NOT NULL, -- JSON
	source_size     INTEGER NOT NULL,
	source_modified TEXT NOT NULL,
	source_hash     TEXT NOT NULL,
	pages           TEXT NOT NULL, -- JSON of assay.PageCounts; empty: it has no pages
	original        INTEGER REFERENCES originals, -- that it was read from; NULL: none is kept
	media           TEXT NOT NULL, -- type of the original; empty: none
	replaced        INTEGER,       -- when it stopped being current; NULL while it is
	UNIQUE (document, version)
) STRICT;
CREATE INDEX versions_replaced ON versions (replaced) WHERE replaced IS NOT NULL;
CREATE INDEX versions_original ON versions (original) WHERE original IS NOT NULL;
CREATE TABLE pieces (
	version INTEGER NOT NULL REFERENCES versions ON DELETE CASCADE,
	start   INTEGER NOT NULL, -- of the piece in the version's text
	line    INTEGER NOT NULL, -- of the source at start; 0: not known
	page    INTEGER NOT NULL, -- of the source at start; 0: not known
	text    TEXT NOT NULL,    -- up to the next piece; the first is there even if it is empty
	anchors BLOB NOT NULL,    -- that are in the piece; see encodeAnchors
	hash    BLOB NOT NULL,    -- see piece.hash
	PRIMARY KEY (version, start)
) STRICT;
CREATE TABLE structures (
	version INTEGER PRIMARY KEY REFERENCES versions ON DELETE CASCADE,
	data    BLOB NOT NULL, -- see encodeStructure
	hash    BLOB NOT NULL  -- the first 16 bytes of the SHA-256 of data
) STRICT;
CREATE TABLE chunks (
	version  INTEGER NOT NULL REFERENCES versions ON DELETE CASCADE,
	ordinal  INTEGER NOT NULL,
	id       BLOB NOT NULL, -- the 16 bytes of assay.ChunkID
	kind     TEXT NOT NULL,
	start    INTEGER NOT NULL,
	end      INTEGER NOT NULL,
	headings TEXT NOT NULL, -- JSON
	parent   BLOB,          -- chunk ID; NULL: none
	tokens   INTEGER NOT NULL,
	origin   TEXT,          -- JSON of chunkOrigin; NULL: the source's own text
	hash     BLOB, -- the 16 bytes of assay.Passage.Hash; NULL: it is not searched
	PRIMARY KEY (version, ordinal)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX chunks_id ON chunks (id);
CREATE INDEX chunks_hash ON chunks (hash) WHERE hash IS NOT NULL;
CREATE TABLE sources (
	number     INTEGER PRIMARY KEY,
	collection INTEGER NOT NULL REFERENCES collections,
	uri        TEXT NOT NULL,
	path       TEXT NOT NULL, -- JSON
	size       INTEGER NOT NULL,
	modified   TEXT NOT NULL,
	hash       TEXT NOT NULL, -- empty: its documents are not complete
	acl        TEXT NOT NULL, -- JSON
	same_as    TEXT NOT NULL, -- URI of the source whose documents stand for it; empty: none
	UNIQUE (collection, uri)
) STRICT;
CREATE INDEX sources_same ON sources (collection, same_as) WHERE same_as <> '';
CREATE TABLE failures (
	source  INTEGER NOT NULL REFERENCES sources ON DELETE CASCADE,
	uri     TEXT NOT NULL,
	reason  TEXT NOT NULL,
	detail  TEXT NOT NULL,
	failed  TEXT NOT NULL, -- when
	PRIMARY KEY (source, uri)
) STRICT, WITHOUT ROWID;
CREATE TABLE models (
	number  INTEGER PRIMARY KEY,
	name    TEXT NOT NULL UNIQUE,
	dropped INTEGER NOT NULL DEFAULT 0 -- sequence at which vectors of it were last dropped; 0: never
) STRICT;
CREATE TABLE vectors (
	number   INTEGER PRIMARY KEY,
	model    INTEGER NOT NULL REFERENCES models,
	hash     BLOB NOT NULL,    -- of a passage that some chunk has
	sequence INTEGER NOT NULL, -- of the change that stored it
	data     BLOB NOT NULL,    -- see encodeVector
	UNIQUE (hash, model)
) STRICT;
CREATE INDEX vectors_sequence ON vectors (model, sequence);
-- Acts that are not yet in the audit log, which is in runs.db.
CREATE TABLE waiting_acts (
	number INTEGER PRIMARY KEY AUTOINCREMENT,
	act    TEXT NOT NULL -- JSON
) STRICT;
` + syncTables},
}
