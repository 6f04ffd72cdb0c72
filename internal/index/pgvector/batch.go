package pgvector

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/big"
	"runtime"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/entity"
	"github.com/assay-rag/assay/internal/index"
)

// A batch is a group of changes that become rows together.
type batch struct {
	ids     [][16]byte
	changes []assay.Change
	bytes   int // of text, about
}

func (b *batch) add(id [16]byte, c assay.Change) {
	b.ids = append(b.ids, id)
	b.changes = append(b.changes, c)
	b.bytes += 1000
	if !c.Deleted {
		b.bytes += len(c.Document.Text)
	}
}

// A documentRow is a document as stored, with its chunks.
type documentRow struct {
	id, version     [16]byte
	digest          []byte
	class           int32
	metadata, times []byte // JSON
	counts          documentCounts
	chunks          []chunkRow
}

// A chunkRow is a chunk with its terms and entities as stored.
type chunkRow struct {
	id          [16]byte
	length      int32
	terms       []int64
	frequencies []int32 // weighted, of each term

	entities []int64
	keys     []string // encoded
	titles   []bool
}

// write replaces the rows of the batch's documents.
func (u *updater) write(ctx context.Context, b *batch) error {
	if len(b.changes) == 0 {
		return nil
	}
	b, err := u.move(ctx, b)
	if err != nil {
		return err
	}
	documents, err := analyze(ctx, b.changes)
	if err != nil {
		return err
	}
	if err := u.remove(ctx, b.ids); err != nil {
		return err
	}
	for i, c := range b.changes {
		if c.Deleted {
			continue
		}
		if documents[i].class, err = u.class(ctx, c.Document.Collection, c.Document.ACL); err != nil {
			return err
		}
	}
	documents = slices.DeleteFunc(documents, func(d *documentRow) bool { return d == nil })
	if err := u.insert(ctx, documents); err != nil {
		return err
	}
	if u.counts.size() < u.settings.counts {
		return nil
	}
	return u.counts.write(ctx, u.tx)
}

// maxWorkers bounds the memory of analyze. Each worker caches words.
const maxWorkers = 4

// analyze returns the rows of changes; nil for deletions.
func analyze(ctx context.Context, changes []assay.Change) ([]*documentRow, error) {
	rows := make([]*documentRow, len(changes))
	group, ctx := errgroup.WithContext(ctx)
	workers := min(runtime.GOMAXPROCS(0), maxWorkers, len(changes))
	for w := range workers {
		group.Go(func() error {
			var a analyzer
			for i := w; i < len(changes); i += workers {
				if changes[i].Deleted {
					continue
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				var err error
				if rows[i], err = a.document(changes[i].Document, changes[i].Chunks); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return rows, group.Wait()
}

// An analyzer makes rows of documents.
type analyzer struct {
	terms  index.TermCounter
	finder entity.Finder
}

func (a *analyzer) document(d *assay.Document, chunks []assay.Chunk) (*documentRow, error) {
	row := &documentRow{}
	var ok, okVersion bool
	row.id, ok = index.ParseID(d.ID)
	row.version, okVersion = index.ParseID(d.Version)
	if !ok || !okVersion {
		return nil, fmt.Errorf("document %q of version %q: an ID is 32 hexadecimal digits: %w", d.ID, d.Version, assay.ErrInvalid)
	}
	if err := row.setMetadata(d.Metadata); err != nil {
		return nil, fmt.Errorf("document %s: %w", d.ID, err)
	}
	row.digest = digestOf(d, chunks)
	row.counts.language = encode(index.Language(d))
	for i := range chunks {
		if chunks[i].Kind == assay.ChunkSection {
			continue
		}
		c, err := a.chunk(d, &chunks[i])
		if err != nil {
			return nil, err
		}
		row.chunks = append(row.chunks, c)
		row.counts.chunks++
		row.counts.length += int64(c.length)
	}
	return row, nil
}

func (a *analyzer) chunk(d *assay.Document, c *assay.Chunk) (chunkRow, error) {
	id, err := index.CheckChunk(d, c)
	if err != nil {
		return chunkRow{}, err
	}
	row := chunkRow{id: id, entities: []int64{}, keys: []string{}, titles: []bool{}}
	words, length := a.terms.Count(d, c)
	row.length = int32(length)
	type counted struct {
		term      int64
		frequency int32
	}
	list := make([]counted, 0, len(words))
	for word, n := range words {
		list = append(list, counted{termOf(word), int32(n)})
	}
	slices.SortFunc(list, func(x, y counted) int { return cmp.Compare(x.term, y.term) })
	row.terms, row.frequencies = make([]int64, len(list)), make([]int32, len(list))
	for i, t := range list {
		row.terms[i], row.frequencies[i] = t.term, t.frequency
	}
	for _, e := range a.finder.Passage(d.Title, c.Headings, d.Text[c.Start:c.End], index.Language(d)) {
		row.entities = append(row.entities, entityOf(e.Key))
		row.keys = append(row.keys, encode(e.Key))
		row.titles = append(row.titles, e.Title)
	}
	return row, nil
}

// setMetadata sets the columns of metadata, as described with the table.
func (r *documentRow) setMetadata(m assay.Metadata) error {
	values := make(map[string]any, len(m))
	times := make(map[string]json.Number)
	for key, v := range m {
		name := encode(key)
		switch v.Kind {
		case assay.KindString:
			values[name] = encode(v.String)
			if t, ok := assay.ParseDate(v.String); ok {
				times[name] = nanoseconds(t)
			}
		case assay.KindNumber:
			values[name] = v.Number
		case assay.KindBoolean:
			values[name] = v.Boolean
		case assay.KindTime:
			values[name] = nil
			times[name] = nanoseconds(v.Time)
		case assay.KindList:
			values[name] = encodeAll(v.List)
		default:
			return fmt.Errorf("metadata key %q has a value of the kind %q: %w", key, v.Kind, assay.ErrInvalid)
		}
	}
	var err error
	if r.metadata, err = json.Marshal(values); err != nil {
		return err
	}
	if r.times, err = json.Marshal(times); err != nil {
		return err
	}
	return json.Unmarshal(r.metadata, &r.counts.metadata)
}

// nanoseconds returns the nanoseconds since 1970, which may exceed 64 bits.
func nanoseconds(t time.Time) json.Number {
	n := big.NewInt(t.Unix())
	n.Mul(n, big.NewInt(1e9))
	n.Add(n, big.NewInt(int64(t.Nanosecond())))
	return json.Number(n.String())
}

// class returns the number of the class of the documents with a collection and an ACL.
func (u *updater) class(ctx context.Context, collection string, acl assay.ACL) (int32, error) {
	allow := slices.Compact(slices.Sorted(slices.Values(acl.Allow)))
	if !acl.Restricted {
		allow = nil
	}
	encoded, err := json.Marshal([]any{encode(collection), acl.Restricted, encodeAll(allow)})
	if err != nil {
		return 0, err
	}
	sum := sha256.Sum256(encoded)
	key := sum[:]
	if no, ok := u.classes[string(key)]; ok {
		return no, nil
	}
	const query = `INSERT INTO class (no, key, collection, restricted, allow) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (key) DO UPDATE SET key = excluded.key RETURNING no`
	var no int32
	if err := u.tx.QueryRow(ctx, query, u.nextClass, key, encode(collection), acl.Restricted, encodeAll(allow)).Scan(&no); err != nil {
		return 0, err
	}
	if no == u.nextClass {
		u.nextClass++
	}
	u.classes[string(key)] = no
	return no, nil
}

// insert writes the rows of new documents.
func (u *updater) insert(ctx context.Context, documents []*documentRow) error {
	var documentRows, chunkRows, passageRows [][]any
	for _, d := range documents {
		no := u.nextDocument
		u.nextDocument++
		documentRows = append(documentRows, []any{no, d.id, d.version, d.digest, d.class, d.counts.language, d.metadata, d.times, d.counts.chunks, d.counts.length})
		if err := u.counts.document(d.class, d.counts, 1); err != nil {
			return err
		}
		for _, c := range d.chunks {
			chunk := u.nextChunk
			u.nextChunk++
			chunkRows = append(chunkRows, []any{chunk, c.id, no, d.class, c.length, c.terms, c.frequencies})
			passageRows = append(passageRows, []any{chunk, c.id, no, d.class, c.entities, c.keys, c.titles})
			u.counts.terms(d.class, c.terms, 1)
			u.counts.terms(d.class, c.entities, 1)
		}
	}
	u.rows += len(chunkRows)
	for _, t := range []struct {
		table   string
		columns []string
		rows    [][]any
	}{
		{"document", []string{"no", "id", "version", "digest", "class", "language", "metadata", "times", "chunks", "length"}, documentRows},
		{"chunk", []string{"no", "id", "document", "class", "length", "terms", "frequencies"}, chunkRows},
		{"passage", []string{"chunk", "id", "document", "class", "terms", "keys", "titles"}, passageRows},
	} {
		if _, err := u.tx.CopyFrom(ctx, pgx.Identifier{t.table}, t.columns, pgx.CopyFromRows(t.rows)); err != nil {
			return fmt.Errorf("write rows of %s: %w", t.table, err)
		}
	}
	return nil
}
