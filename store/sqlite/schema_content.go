package sqlite

// contentSchema is the layout of content.db.
//
// A document is a row of documents as long as the store lives: a deleted one
// keeps its row, without a version, so that Changes can report the deletion, and
// with the ACL of its last version, so that it stays known who may see what was
// read from it.
// Its texts are rows of versions, of which one is current and the others are
// kept until Prune. What is large stands apart in pieces, so that a listing does
// not read it and a passage takes no more than the pieces that it spans. Times are
// RFC 3339 text where they come from outside and nanoseconds since 1970 where the
// store reads the clock.
//
// A vector belongs to the words that were embedded, not to a chunk, so that it is
// found again when these come back in another version. It is there as long as some
// version has a chunk with these words.
var contentSchema = schema{
	applicationID: 0x41535943, // "ASYC"
	migrations: []string{`
CREATE TABLE store (
	id       INTEGER PRIMARY KEY CHECK (id = 1),
	tenant   TEXT NOT NULL,   -- the same random word in content.db and runs.db
	sequence INTEGER NOT NULL -- of the last change of a document or a vector
) STRICT;
CREATE TABLE collections (
	number      INTEGER PRIMARY KEY,
	name        TEXT NOT NULL UNIQUE,
	require_acl INTEGER NOT NULL
) STRICT;
CREATE TABLE documents (
	number     INTEGER PRIMARY KEY,
	id         TEXT NOT NULL UNIQUE,
	collection INTEGER NOT NULL REFERENCES collections,
	uri        TEXT NOT NULL,
	version    INTEGER,          -- number of the current version; NULL: deleted
	sequence   INTEGER NOT NULL, -- of its last change
	acl        TEXT,             -- JSON, of its last version if it is deleted; NULL: see versions
	UNIQUE (collection, uri)
) STRICT;
CREATE INDEX documents_sequence ON documents (sequence);
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
	replaced        INTEGER,       -- when it stopped being current; NULL while it is
	UNIQUE (document, version)
) STRICT;
CREATE INDEX versions_replaced ON versions (replaced) WHERE replaced IS NOT NULL;
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
	hash     BLOB, -- the 16 bytes of assay.Passage.Hash; NULL: it is not searched
	PRIMARY KEY (version, ordinal)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX chunks_id ON chunks (id);
CREATE INDEX chunks_hash ON chunks (hash) WHERE hash IS NOT NULL;
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
`},
}
