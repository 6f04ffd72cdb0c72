package relational

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
)

// The details of the acts on content. They name documents and files by hashes only, because these
// acts cannot be erased: content is checked against them.
type (
	// contentChanged is the detail of content.changed: one transaction.
	contentChanged struct {
		Sequence  int64         `json:"sequence"` // of the change
		Documents []documentAct `json:"documents,omitempty"`
		Files     []fileAct     `json:"files,omitempty"`
	}

	// A documentAct is what a change did to one document.
	documentAct struct {
		Document   string `json:"document"`
		Version    string `json:"version,omitempty"` // empty: deleted
		Row        string `json:"row"`               // see versionRow and deletedRow
		Restricted bool   `json:"restricted,omitempty"`
	}

	// A fileAct is what a change did to a row of sources.
	fileAct struct {
		File string `json:"file"`          // see fileID
		Row  string `json:"row,omitempty"` // see fileRow; empty: removed
	}

	// collectionSet is the detail of collection.set.
	collectionSet struct {
		RequireACL   bool   `json:"require_acl,omitempty"`
		Chunker      string `json:"chunker,omitempty"`
		ChunkSize    int    `json:"chunk_size,omitempty"`
		ChunkOverlap int    `json:"chunk_overlap,omitempty"`
	}

	// sourceSet is the detail of source.set.
	sourceSet struct {
		Row string `json:"row"` // see syncSourceRow
	}
)

// A rowHash is a SHA-256 over columns, each with its type and length, so that different rows are
// different bytes. It implements sql.Scanner for one column at a time.
type rowHash struct{ h hash.Hash }

func newRowHash(what string) *rowHash {
	r := &rowHash{sha256.New()}
	r.bytes('t', []byte(what))
	return r
}

func (r *rowHash) bytes(kind byte, b []byte) {
	var n [9]byte
	n[0] = kind
	binary.LittleEndian.PutUint64(n[1:], uint64(len(b)))
	r.h.Write(n[:])
	r.h.Write(b)
}

// Scan implements sql.Scanner.
func (r *rowHash) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		r.bytes('n', nil)
	case int64:
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(v))
		r.bytes('i', b[:])
	case string:
		r.bytes('t', []byte(v))
	case []byte:
		r.bytes('b', v)
	default:
		return damaged("a column holds a %T", v)
	}
	return nil
}

// columns returns n destinations that are all r. Columns are scanned in order.
func (r *rowHash) columns(n int) []any {
	dest := make([]any, n)
	for i := range dest {
		dest[i] = r
	}
	return dest
}

// rows hashes the n columns of each row of a query, and their number.
func (r *rowHash) rows(ctx context.Context, from Reader, n int, query string, args ...any) (rows int64, err error) {
	err = from.Each(ctx, query, args, func(scan func(...any) error) error {
		rows++
		return scan(r.columns(n)...)
	})
	if err == nil {
		err = r.Scan(rows)
	}
	return rows, err
}

func (r *rowHash) sum() string { return hex.EncodeToString(r.h.Sum(nil)) }

// versionRow returns the SHA-256 of a version with its document, text, structure, original and chunks,
// in hexadecimal. Of pieces, the structure and the original it uses their own hashes.
func versionRow(ctx context.Context, from Reader, version int64) (string, error) {
	r := newRowHash("version")
	for _, part := range []struct {
		columns int
		query   string
	}{
		{12, `
SELECT c.name, d.uri, d.container, v.version, v.title, v.metadata, v.acl, v.source_size, v.source_modified, v.source_hash, v.pages, d.id
FROM versions v JOIN documents d ON d.number = v.document JOIN collections c ON c.number = d.collection WHERE v.number = ?`},
		{2, `SELECT start, hash FROM pieces WHERE version = ? ORDER BY start`},
		{1, `SELECT hash FROM structures WHERE version = ?`},
		{2, `SELECT v.media, o.hash FROM versions v JOIN originals o ON o.number = v.original WHERE v.number = ?`},
		{10, `SELECT ordinal, id, kind, start, "end", headings, parent, tokens, origin, hash FROM chunks WHERE version = ? ORDER BY ordinal`},
	} {
		if _, err := r.rows(ctx, from, part.columns, part.query, version); err != nil {
			return "", err
		}
	}
	return r.sum(), nil
}

// deletedRow returns the SHA-256 of a document without a current version, in hexadecimal.
func deletedRow(ctx context.Context, from Reader, document int64) (string, error) {
	r := newRowHash("deleted document")
	_, err := r.rows(ctx, from, 5, `
SELECT c.name, d.uri, d.container, d.acl, d.id FROM documents d JOIN collections c ON c.number = d.collection WHERE d.number = ?`, document)
	return r.sum(), err
}

// fileID identifies a row of sources.
func fileID(collection, uri string) string {
	r := newRowHash("file")
	r.bytes('t', []byte(collection))
	r.bytes('t', []byte(uri))
	return r.sum()[:32]
}

// fileRow returns the SHA-256 of a row of sources with its failures, in hexadecimal.
func fileRow(ctx context.Context, from Reader, source int64) (string, error) {
	r := newRowHash("file row")
	_, err := r.rows(ctx, from, 6, `SELECT path, size, modified, hash, acl, same_as FROM sources WHERE number = ?`, source)
	if err == nil {
		_, err = r.rows(ctx, from, 4, `SELECT uri, reason, detail, failed FROM failures WHERE source = ? ORDER BY uri`, source)
	}
	return r.sum(), err
}

// syncSourceRow returns the SHA-256 of what an administrator decided about a source of documents,
// in hexadecimal, or the empty string if there is none of this name. The state of its sync is not
// included.
func syncSourceRow(ctx context.Context, from Reader, name string) (string, error) {
	r := newRowHash("source")
	n, err := r.rows(ctx, from, 6, `
SELECT name, kind, target, collection, options, credentials FROM sync_sources WHERE name = ?`, name)
	if errors.Is(err, sql.ErrNoRows) || n == 0 {
		return "", err
	}
	return r.sum(), err
}
