package relational

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// writer is the only writer of a tenant's content. It implements store.Writer.
type writer struct {
	content
	tenant  *Tenant
	release func() error // releases the lock of the writer
	u       Updater

	mu     sync.Mutex
	closed bool
}

// Put implements store.Writer. An entry equal to the stored one changes nothing. If all are equal,
// Put returns the unchanged sequence.
func (w *writer) Put(ctx context.Context, entries ...store.Entry) (int64, error) {
	return w.apply(ctx, "put documents", store.Batch{Put: entries})
}

// Delete implements store.Writer.
func (w *writer) Delete(ctx context.Context, ids ...string) (int64, error) {
	return w.apply(ctx, "delete documents", store.Batch{Delete: ids})
}

// Apply implements store.Writer.
func (w *writer) Apply(ctx context.Context, b store.Batch) (int64, error) {
	return w.apply(ctx, "change documents", b)
}

func (w *writer) apply(ctx context.Context, doing string, b store.Batch) (int64, error) {
	rows, err := encodeEntries(b.Put)
	if err == nil {
		err = checkSources(b)
	}
	if err != nil {
		return 0, wrap(err, "%s", doing)
	}
	return w.change(ctx, doing, func(p *change) error {
		for _, id := range b.Delete {
			if err := p.delete(ctx, id); err != nil {
				return fmt.Errorf("document %s: %w", id, err)
			}
		}
		for _, r := range rows {
			if err := p.put(ctx, r); err != nil {
				return fmt.Errorf("%s: %w", r.doc.URI, err)
			}
		}
		for _, s := range b.Forget {
			if err := p.forget(ctx, s); err != nil {
				return fmt.Errorf("source %s: %w", s.URI, err)
			}
		}
		for _, s := range b.Sources {
			if err := p.setSource(ctx, s); err != nil {
				return fmt.Errorf("source %s: %w", s.URI, err)
			}
		}
		return p.dropRetitled(ctx)
	})
}

// SetCollection implements store.Writer. It does not count as a change of documents and does not
// change the sequence.
func (w *writer) SetCollection(ctx context.Context, c store.Collection) error {
	doing := fmt.Sprintf("set collection %q", c.Name)
	if err := checkName("collection", c.Name); err != nil {
		return wrap(err, "%s", doing)
	}
	return w.update(ctx, doing, func(t Tx) error {
		_, err := t.Exec(ctx, `
INSERT INTO collections (name, require_acl, chunker, chunk_size, chunk_overlap) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (name) DO UPDATE SET require_acl = ?2, chunker = ?3, chunk_size = ?4, chunk_overlap = ?5`,
			c.Name, c.RequireACL, c.Chunker, c.ChunkSize, c.ChunkOverlap)
		if err != nil {
			return err
		}
		return w.wait(ctx, t, w.tenant.now(), store.KindCollectionSet, c.Name, collectionSet{c.RequireACL, c.Chunker, c.ChunkSize, c.ChunkOverlap})
	})
}

// Close implements store.Writer. Closing twice is allowed.
func (w *writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	return errors.Join(w.u.Close(), w.release())
}

// update runs fn in one transaction.
func (w *writer) update(ctx context.Context, doing string, fn func(Tx) error) error {
	if err := w.open(doing); err != nil {
		return err
	}
	var unlock func() error
	err := w.u.Update(ctx, func(t Tx) (err error) {
		if err = fn(t); err == nil {
			unlock, err = w.dropMoved(ctx, t)
		}
		return err
	})
	if unlock != nil {
		_ = unlock() // the change is durable; a lock that stays ends with the process
	}
	if err != nil {
		return wrap(err, "%s", doing)
	}
	// The change is durable with its act, which the next use of the log brings there if this fails.
	_ = w.tenant.collectActs(ctx)
	return nil
}

// open returns an error if the writer is closed.
func (w *writer) open(doing string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return fmt.Errorf("%s: the writer of %s is closed", doing, w.tenant.name)
	}
	return nil
}

// change runs fn in one transaction and returns the sequence after it.
func (w *writer) change(ctx context.Context, doing string, fn func(*change) error) (int64, error) {
	var last int64
	err := w.update(ctx, doing, func(t Tx) error {
		if err := t.Row(ctx, sequenceQuery, nil, &last); err != nil {
			return err
		}
		p := &change{t: t, sequence: last + 1, now: w.tenant.now(), collections: make(map[string]collection)}
		if err := fn(p); err != nil {
			return err
		}
		if err := w.log(ctx, p); err != nil || !p.changed {
			return err
		}
		last = p.sequence
		_, err := t.Exec(ctx, `UPDATE store SET sequence = ?`, last)
		return err
	})
	if err != nil {
		return 0, err
	}
	return last, nil
}

// A change is one transaction on documents.
type change struct {
	t           Tx
	sequence    int64 // of this transaction
	now         time.Time
	changed     bool
	collections map[string]collection
	retitled    [][]byte // hashes of chunks from before their title changed
	created     []string // names of collections
	log         contentChanged
}

// log makes the acts of a change wait for the audit log.
func (w *writer) log(ctx context.Context, p *change) error {
	for _, name := range p.created {
		if err := w.wait(ctx, p.t, p.now, store.KindCollectionSet, name, collectionSet{}); err != nil {
			return err
		}
	}
	if len(p.log.Documents) == 0 && len(p.log.Files) == 0 {
		return nil
	}
	p.log.Sequence = p.sequence
	return w.wait(ctx, p.t, p.now, store.KindContentChanged, "", p.log)
}

// A collection is a row of collections.
type collection struct {
	number     int64
	requireACL bool
}

// collection returns the named collection and creates it if necessary.
func (p *change) collection(ctx context.Context, name string) (collection, error) {
	if c, ok := p.collections[name]; ok {
		return c, nil
	}
	var c collection
	err := p.t.Row(ctx, `SELECT number, require_acl FROM collections WHERE name = ?`, []any{name}, &c.number, &c.requireACL)
	if errors.Is(err, sql.ErrNoRows) {
		c.number, err = p.t.Insert(ctx, `INSERT INTO collections (name, require_acl) VALUES (?, 0)`, name)
		p.created = append(p.created, name)
	}
	if err != nil {
		return collection{}, err
	}
	p.collections[name] = c
	return c, nil
}

// put stores one entry.
func (p *change) put(ctx context.Context, r entryRow) error {
	c, err := p.collection(ctx, r.doc.Collection)
	if err != nil {
		return err
	}
	if c.requireACL && !r.doc.ACL.Restricted {
		return invalid("collection %q takes no document without an ACL", r.doc.Collection)
	}
	document, current, err := p.find(ctx, r.doc.ID)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		document, err = p.t.Insert(ctx, `INSERT INTO documents (id, collection, uri, container, sequence) VALUES (?, ?, ?, ?, ?)`,
			r.doc.ID, c.number, r.doc.URI, r.doc.Container, p.sequence)
	case err == nil && current.Valid:
		var same bool
		if same, err = p.amend(ctx, document, current.Int64, r); same {
			return err
		}
		if err == nil {
			err = p.retire(ctx, current.Int64)
		}
	}
	if err != nil {
		return err
	}
	version, err := p.version(ctx, document, r)
	if err != nil {
		return err
	}
	return p.point(ctx, document, version, r)
}

// delete removes one document. It ignores a document that does not exist.
func (p *change) delete(ctx context.Context, id string) error {
	document, current, err := p.find(ctx, id)
	if errors.Is(err, sql.ErrNoRows) || err == nil && !current.Valid {
		return nil
	}
	if err != nil {
		return err
	}
	if err := p.retire(ctx, current.Int64); err != nil {
		return err
	}
	return p.remove(ctx, document, id)
}

// find returns the number of the document and that of its current version. The error is
// sql.ErrNoRows if the document never existed.
func (p *change) find(ctx context.Context, id string) (document int64, current sql.NullInt64, err error) {
	err = p.t.Row(ctx, `SELECT number, version FROM documents WHERE id = ?`, []any{id}, &document, &current)
	return document, current, err
}

// amend reports whether r has the document's current version. If so, it updates the fields that may
// change within a version.
func (p *change) amend(ctx context.Context, document, current int64, r entryRow) (same bool, err error) {
	var name, title, acl, modified, hash string
	var size int64
	err = p.t.Row(ctx, `
SELECT version, title, acl, source_size, source_modified, source_hash FROM versions WHERE number = ?`,
		[]any{current}, &name, &title, &acl, &size, &modified, &hash)
	if err != nil || name != r.doc.Version {
		return false, err
	}
	repaired := false
	if r.doc.Text != "" {
		if repaired, err = p.repair(ctx, current, r); err != nil {
			return true, err
		}
	}
	source := r.doc.Source
	sameSource := size == source.SizeBytes && modified == r.modified && hash == source.Hash
	if sameSource && title == r.doc.Title && acl == r.acl && !repaired {
		return true, nil
	}
	if err := p.describe(ctx, current, title, r); err != nil {
		return true, err
	}
	return true, p.point(ctx, document, current, r)
}

// repair stores the text of a version again if it is damaged, and reports whether it was.
func (p *change) repair(ctx context.Context, version int64, r entryRow) (bool, error) {
	_, err := loadPieces(ctx, p.t, version, 0, math.MaxInt64, func(piece) error { return nil })
	if err == nil {
		err = loadStructure(ctx, p.t, version, &assay.Document{})
	}
	if err == nil {
		return p.repairOriginal(ctx, version, r)
	}
	if !errors.Is(err, assay.ErrDamaged) {
		return false, err
	}
	if _, err := p.t.Exec(ctx, `DELETE FROM pieces WHERE version = ?`, version); err != nil {
		return false, err
	}
	if _, err := p.t.Exec(ctx, `DELETE FROM structures WHERE version = ?`, version); err != nil {
		return false, err
	}
	if err := p.insertText(ctx, version, r); err != nil {
		return false, err
	}
	_, err = p.repairOriginal(ctx, version, r)
	return true, err
}

// insertText stores the text of a version with its structure.
func (p *change) insertText(ctx context.Context, version int64, r entryRow) error {
	if err := p.insertPieces(ctx, version, r.pieces); err != nil || r.shape == nil {
		return err
	}
	_, err := p.t.Exec(ctx, `INSERT INTO structures (version, data, hash) VALUES (?, ?, ?)`, version, r.shape, structureHash(r.shape))
	return err
}

func (p *change) insertPieces(ctx context.Context, version int64, pieces []piece) error {
	rows := make([][]any, len(pieces))
	for i, part := range pieces {
		rows[i] = []any{version, part.start, part.line, part.page, part.text, part.anchors, part.hash()}
	}
	_, err := p.t.ExecAll(ctx, `INSERT INTO pieces (version, start, line, page, text, anchors, hash) VALUES (?, ?, ?, ?, ?, ?, ?)`, rows)
	return err
}

// describe updates the fields that may change within a version; title is its previous title.
func (p *change) describe(ctx context.Context, version int64, title string, r entryRow) error {
	_, err := p.t.Exec(ctx, `
UPDATE versions SET title = ?, acl = ?, source_size = ?, source_modified = ?, source_hash = ?, replaced = NULL
WHERE number = ?`,
		r.doc.Title, r.acl, r.doc.Source.SizeBytes, r.modified, r.doc.Source.Hash, version)
	if err != nil || title == r.doc.Title {
		return err
	}
	return p.rehash(ctx, version, r.doc.Title)
}

// retire marks a version as replaced now.
func (p *change) retire(ctx context.Context, version int64) error {
	_, err := p.t.Exec(ctx, `UPDATE versions SET replaced = ? WHERE number = ?`, p.now.UnixNano(), version)
	return err
}

// point makes version the document's current one. Its ACL then applies.
func (p *change) point(ctx context.Context, document, version int64, r entryRow) error {
	p.changed = true
	_, err := p.t.Exec(ctx, `UPDATE documents SET version = ?, acl = NULL, sequence = ? WHERE number = ?`,
		version, p.sequence, document)
	if err != nil {
		return err
	}
	row, err := versionRow(ctx, p.t, version)
	p.log.Documents = append(p.log.Documents, documentAct{
		Document: r.doc.ID, Version: r.doc.Version, Row: row, Restricted: r.doc.ACL.Restricted,
	})
	return err
}

// remove leaves the document without a current version but with its ACL.
func (p *change) remove(ctx context.Context, document int64, id string) error {
	p.changed = true
	_, err := p.t.Exec(ctx, `
UPDATE documents SET acl = (SELECT acl FROM versions WHERE number = documents.version), version = NULL, sequence = ?
WHERE number = ?`, p.sequence, document)
	if err != nil {
		return err
	}
	row, err := deletedRow(ctx, p.t, document)
	p.log.Documents = append(p.log.Documents, documentAct{Document: id, Row: row})
	return err
}

// version returns the number of the entry's version, which is an old version that is still kept or
// a new one.
func (p *change) version(ctx context.Context, document int64, r entryRow) (int64, error) {
	var kept int64
	var title string
	err := p.t.Row(ctx, `SELECT number, title FROM versions WHERE document = ? AND version = ?`,
		[]any{document, r.doc.Version}, &kept, &title)
	if err == nil {
		if _, err := p.repair(ctx, kept, r); err != nil {
			return 0, err
		}
		return kept, p.describe(ctx, kept, title, r)
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return 0, err
	}
	original, err := p.original(ctx, r.original)
	if err != nil {
		return 0, err
	}
	number, err := p.t.Insert(ctx, `
INSERT INTO versions (document, version, title, metadata, acl, source_size, source_modified, source_hash, pages, original, media)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		document, r.doc.Version, r.doc.Title, r.metadata, r.acl, r.doc.Source.SizeBytes, r.modified, r.doc.Source.Hash, r.pages, original, r.original.Media)
	if err != nil {
		return 0, err
	}
	if err := p.insertText(ctx, number, r); err != nil {
		return 0, err
	}
	rows := make([][]any, len(r.chunks))
	for i := range r.chunks {
		h := &r.chunks[i]
		rows[i] = []any{number, h.Ordinal, h.id, string(h.Kind), h.Start, h.End, h.headings, h.parent, h.Tokens, h.origin, h.hash}
	}
	_, err = p.t.ExecAll(ctx, `
INSERT INTO chunks (version, ordinal, id, kind, start, "end", headings, parent, tokens, origin, hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, rows)
	return number, err
}
