package relational

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"iter"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// content reads content.db. It implements store.Content.
type content struct {
	db Database
}

// errStop ends an iteration whose caller has stopped.
var errStop = errors.New("stop")

const sequenceQuery = `SELECT sequence FROM store`

// Sequence implements store.Content.
func (c content) Sequence(ctx context.Context) (int64, error) {
	var n int64
	err := c.db.Row(ctx, sequenceQuery, nil, &n)
	return n, wrap(err, "read the content's sequence")
}

// Identity implements store.Content.
func (c content) Identity(ctx context.Context) (string, error) {
	var word string
	err := c.db.Row(ctx, `SELECT tenant FROM store`, nil, &word)
	return word, wrap(err, "read the content's identity")
}

// documentColumns are the columns that scanDocument reads from documents d, collections c and
// versions v.
const documentColumns = `d.id, c.name, d.uri, d.container, v.number, v.version, v.title, v.metadata, v.acl,
	v.source_size, v.source_modified, v.source_hash, v.pages`

// scanDocument reads documentColumns, and the columns after them into more. It returns the number
// of the version.
func scanDocument(scan func(...any) error, d *assay.Document, more ...any) (number int64, err error) {
	var metadata, acl, modified, pages string
	dest := append([]any{
		&d.ID, &d.Collection, &d.URI, &d.Container, &number, &d.Version, &d.Title, &metadata, &acl,
		&d.Source.SizeBytes, &modified, &d.Source.Hash, &pages,
	}, more...)
	if err := scan(dest...); err != nil {
		return 0, err
	}
	if err := decodeJSON("metadata of document "+d.ID, metadata, &d.Metadata); err != nil {
		return 0, err
	}
	if err := decodeJSON("ACL of document "+d.ID, acl, &d.ACL); err != nil {
		return 0, err
	}
	if pages != "" {
		if err := decodeJSON("page counts of document "+d.ID, pages, &d.Pages); err != nil {
			return 0, err
		}
	}
	d.Source.Modified, err = decodeTime(modified)
	return number, err
}

const changesQuery = `
SELECT ` + documentColumns + `
FROM documents d
JOIN collections c ON c.number = d.collection
JOIN versions v ON v.number = d.version
WHERE d.number = ?`

const changedQuery = `
SELECT number, id, sequence, version IS NULL FROM documents WHERE sequence > ? ORDER BY sequence, number`

// Changes implements store.Content.
func (c content) Changes(ctx context.Context, after int64) iter.Seq2[assay.Change, error] {
	return func(yield func(assay.Change, error) bool) {
		err := c.db.View(ctx, func(s Reader) error {
			return s.Each(ctx, changedQuery, []any{after}, func(scan func(...any) error) error {
				var document int64
				var change assay.Change
				if err := scan(&document, &change.ID, &change.Sequence, &change.Deleted); err != nil {
					return err
				}
				if change.Deleted && after <= 0 {
					return nil
				}
				if err := loadChange(ctx, s, document, &change); err != nil {
					return err
				}
				if !yield(change, nil) {
					return errStop
				}
				return nil
			})
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(assay.Change{}, wrap(err, "read the changes after %d", after))
		}
	}
}

// loadChange fills in the document and its chunks.
func loadChange(ctx context.Context, s Reader, document int64, change *assay.Change) error {
	if change.Deleted {
		return nil
	}
	d, number, err := loadDocument(ctx, s, changesQuery, document)
	if err != nil {
		return err
	}
	change.Document = d
	change.Chunks, err = versionChunks(ctx, s, number, d)
	return err
}

const versionChunksQuery = `
SELECT id, ordinal, kind, start, "end", headings, parent, tokens, origin FROM chunks WHERE version = ? ORDER BY ordinal`

// loadDocument reads the document whose documentColumns the query selects, with its text, and
// returns the number of its version.
func loadDocument(ctx context.Context, s Reader, query string, args ...any) (*assay.Document, int64, error) {
	d := new(assay.Document)
	number, err := scanDocument(func(dest ...any) error { return s.Row(ctx, query, args, dest...) }, d)
	if err != nil {
		return nil, 0, err
	}
	return d, number, loadText(ctx, s, number, d)
}

// versionChunks reads the chunks of one version of d.
func versionChunks(ctx context.Context, s Reader, number int64, d *assay.Document) ([]assay.Chunk, error) {
	var chunks []assay.Chunk
	err := s.Each(ctx, versionChunksQuery, []any{number}, func(scan func(...any) error) error {
		chunk := assay.Chunk{Document: d.ID, Version: d.Version}
		if err := scanChunk(scan, &chunk); err != nil {
			return err
		}
		if chunk.Start < 0 || chunk.Start > chunk.End || chunk.End > len(d.Text) {
			return damaged("chunk %s is not a span of its document %s", chunk.ID, d.ID)
		}
		chunks = append(chunks, chunk)
		return nil
	})
	return chunks, err
}

// scanChunk reads the columns of versionChunksQuery, and the columns after them into more.
func scanChunk(scan func(...any) error, c *assay.Chunk, more ...any) error {
	var id, parent []byte
	var headings string
	var origin sql.NullString
	dest := append([]any{&id, &c.Ordinal, &c.Kind, &c.Start, &c.End, &headings, &parent, &c.Tokens, &origin}, more...)
	if err := scan(dest...); err != nil {
		return err
	}
	c.ID, c.Parent = hex.EncodeToString(id), hex.EncodeToString(parent)
	if origin.Valid {
		var o chunkOrigin
		if err := decodeJSON("origin of chunk "+c.ID, origin.String, &o); err != nil {
			return err
		}
		c.Provenance, c.Confidence, c.Model = o.Provenance, o.Confidence, o.Model
	}
	return decodeJSON("headings of chunk "+c.ID, headings, &c.Headings)
}

const wholeDocument = `
SELECT ` + documentColumns + `
FROM documents d
JOIN collections c ON c.number = d.collection
JOIN versions v ON v.document = d.number
WHERE d.id = ? AND `

const (
	currentQuery = wholeDocument + `v.number = d.version`
	versionQuery = wholeDocument + `v.version = ?`
)

// Document implements store.Content.
func (c content) Document(ctx context.Context, id string) (assay.Document, error) {
	d, err := c.document(ctx, currentQuery, id)
	return d, wrap(err, "document %s", id)
}

// Version implements store.Content.
func (c content) Version(ctx context.Context, id, version string) (assay.Document, error) {
	d, err := c.document(ctx, versionQuery, id, version)
	return d, wrap(err, "document %s, version %s", id, version)
}

func (c content) document(ctx context.Context, query string, args ...any) (assay.Document, error) {
	var d *assay.Document
	err := c.db.View(ctx, func(s Reader) (err error) {
		var number int64
		if d, number, err = loadDocument(ctx, s, query, args...); err != nil {
			return err
		}
		if err := loadStructure(ctx, s, number, d); err != nil {
			return err
		}
		return loadAliases(ctx, s, d)
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = assay.ErrNotFound
	}
	if err != nil {
		return assay.Document{}, err
	}
	return *d, nil
}

// Chunks implements store.Content.
func (c content) Chunks(ctx context.Context, id, version string) ([]assay.Chunk, error) {
	var chunks []assay.Chunk
	err := c.db.View(ctx, func(s Reader) error {
		d, number, err := loadDocument(ctx, s, versionQuery, id, version)
		if err == nil {
			chunks, err = versionChunks(ctx, s, number, d)
		}
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = assay.ErrNotFound
	}
	return chunks, wrap(err, "chunks of document %s, version %s", id, version)
}

const aclQuery = `
SELECT coalesce(v.acl, d.acl) FROM documents d LEFT JOIN versions v ON v.number = d.version WHERE d.id = ?`

// ACL implements store.Content.
func (c content) ACL(ctx context.Context, id string) (assay.ACL, error) {
	var stored sql.NullString
	err := c.db.Row(ctx, aclQuery, []any{id}, &stored)
	if errors.Is(err, sql.ErrNoRows) || err == nil && !stored.Valid {
		err = assay.ErrNotFound
	}
	var acl assay.ACL
	if err == nil {
		err = decodeJSON("the ACL", stored.String, &acl)
	}
	if err != nil {
		return assay.ACL{}, wrap(err, "ACL of document %s", id)
	}
	return acl, nil
}

// documentsQuery selects the documents of the collections in a JSON array, NULL for all.
func documentsQuery(d Dialect) string {
	return `
SELECT ` + documentColumns + `
FROM documents d
JOIN collections c ON c.number = d.collection
JOIN versions v ON v.number = d.version
WHERE CAST(?1 AS TEXT) IS NULL OR c.name IN (SELECT value FROM ` + d.List("?1") + ` j)
ORDER BY c.name, d.uri`
}

// Documents implements store.Content.
func (c content) Documents(ctx context.Context, collections ...string) iter.Seq2[assay.Document, error] {
	return func(yield func(assay.Document, error) bool) {
		names, err := namesOf(collections)
		if err != nil {
			yield(assay.Document{}, wrap(err, "list documents"))
			return
		}
		err = c.db.View(ctx, func(s Reader) error {
			aliases, err := allAliases(ctx, s)
			if err != nil {
				return err
			}
			return s.Each(ctx, documentsQuery(c.db.Dialect()), []any{names}, func(scan func(...any) error) error {
				var d assay.Document
				if _, err := scanDocument(scan, &d); err != nil {
					return err
				}
				setAliases(&d, aliases[sourceKey{d.Collection, d.SourceURI()}])
				if !yield(d, nil) {
					return errStop
				}
				return nil
			})
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(assay.Document{}, wrap(err, "list documents"))
		}
	}
}

// namesOf returns collections as a query parameter: JSON, or NULL for all.
func namesOf(collections []string) (any, error) {
	if len(collections) == 0 {
		return nil, nil
	}
	b, err := json.Marshal(collections)
	return string(b), err
}

const collectionQuery = `
SELECT name, require_acl, chunker, chunk_size, chunk_overlap FROM collections WHERE name = ?`

// Collection implements store.Content.
func (c content) Collection(ctx context.Context, name string) (store.Collection, error) {
	var col store.Collection
	err := c.db.Row(ctx, collectionQuery, []any{name}, &col.Name, &col.RequireACL, &col.Chunker, &col.ChunkSize, &col.ChunkOverlap)
	if errors.Is(err, sql.ErrNoRows) {
		err = assay.ErrNotFound
	}
	return col, wrap(err, "collection %s", name)
}

const collectionsQuery = `
SELECT c.name, c.require_acl, c.chunker, c.chunk_size, c.chunk_overlap,
	(SELECT count(*) FROM documents d WHERE d.collection = c.number AND d.version IS NOT NULL),
	(SELECT count(*) FROM documents d JOIN chunks h ON h.version = d.version WHERE d.collection = c.number)
FROM collections c ORDER BY c.name`

// Collections implements store.Content.
func (c content) Collections(ctx context.Context) ([]store.Collection, error) {
	var all []store.Collection
	err := c.db.View(ctx, func(s Reader) error {
		return s.Each(ctx, collectionsQuery, nil, func(scan func(...any) error) error {
			var col store.Collection
			if err := scan(&col.Name, &col.RequireACL, &col.Chunker, &col.ChunkSize, &col.ChunkOverlap, &col.Documents, &col.Chunks); err != nil {
				return err
			}
			all = append(all, col)
			return nil
		})
	})
	return all, wrap(err, "list collections")
}
