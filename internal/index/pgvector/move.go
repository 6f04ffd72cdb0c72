package pgvector

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/assay-rag/assay"
)

// digestOf returns a hash of all that the rows of a document are made of, except its collection and
// ACL.
func digestOf(d *assay.Document, chunks []assay.Chunk) []byte {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %d:%s", d.Version, d.Title, len(d.Text), d.Text)
	for _, key := range slices.Sorted(maps.Keys(d.Metadata)) {
		v := d.Metadata[key]
		fmt.Fprintf(h, "%q %q %q %g %t %d.%d %q", key, v.Kind, v.String, v.Number, v.Boolean, v.Time.Unix(), v.Time.Nanosecond(), v.List)
	}
	for _, c := range chunks {
		fmt.Fprintf(h, "%q %q %d %d %q", c.ID, c.Kind, c.Start, c.End, c.Headings)
	}
	return h.Sum(nil)
}

// A moving is a document that differs from its rows at most by its class.
type moving struct {
	no     int64
	class  int32 // before
	counts documentCounts
}

// move gives documents whose rows are unchanged but for their class the new one, without reading
// their texts again and without new entries in the indexes on vectors. It returns the other changes.
func (u *updater) move(ctx context.Context, b *batch) (*batch, error) {
	if u.nextDocument == 1 {
		return b, nil
	}
	known, err := u.unchanged(ctx, b)
	if err != nil || len(known) == 0 {
		return b, err
	}
	rest := &batch{}
	moved := make(map[int32][]moving) // by the new class
	for i, id := range b.ids {
		m, ok := known[id]
		if !ok {
			rest.add(id, b.changes[i])
			continue
		}
		class, err := u.class(ctx, b.changes[i].Document.Collection, b.changes[i].Document.ACL)
		if err != nil {
			return nil, err
		}
		if class != m.class {
			moved[class] = append(moved[class], m)
		}
	}
	for class, list := range moved {
		if err := u.moveTo(ctx, class, list); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// unchanged returns the documents of a batch that have the digest of their rows, by ID.
func (u *updater) unchanged(ctx context.Context, b *batch) (map[[16]byte]moving, error) {
	rows, err := u.tx.Query(ctx, `SELECT id, no, class, digest, language, metadata, chunks, length FROM document WHERE id = ANY($1)`, b.ids)
	if err != nil {
		return nil, err
	}
	changes := make(map[[16]byte]assay.Change, len(b.ids))
	for i, id := range b.ids {
		changes[id] = b.changes[i]
	}
	known := make(map[[16]byte]moving)
	for rows.Next() {
		var id [16]byte
		var digest, metadata []byte
		var m moving
		if err := rows.Scan(&id, &m.no, &m.class, &digest, &m.counts.language, &metadata, &m.counts.chunks, &m.counts.length); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(metadata, &m.counts.metadata); err != nil {
			return nil, err
		}
		if c := changes[id]; !c.Deleted && bytes.Equal(digest, digestOf(c.Document, c.Chunks)) {
			known[id] = m
		}
	}
	return known, rows.Err()
}

// moveTo changes the class of documents.
func (u *updater) moveTo(ctx context.Context, class int32, list []moving) error {
	numbers := make([]int64, len(list))
	before := make(map[int64]int32, len(list))
	for i, m := range list {
		numbers[i], before[m.no] = m.no, m.class
		if err := u.counts.document(m.class, m.counts, -1); err != nil {
			return err
		}
		if err := u.counts.document(class, m.counts, 1); err != nil {
			return err
		}
	}
	if _, err := u.tx.Exec(ctx, `UPDATE document SET class = $2 WHERE no = ANY($1)`, numbers, class); err != nil {
		return err
	}
	for _, table := range []string{"chunk", "passage"} {
		rows, err := u.tx.Query(ctx, `UPDATE `+table+` SET class = $2 WHERE document = ANY($1) RETURNING document, terms`, numbers, class)
		if err != nil {
			return err
		}
		for rows.Next() {
			var document int64
			var terms []int64
			if err := rows.Scan(&document, &terms); err != nil {
				return err
			}
			u.counts.terms(before[document], terms, -1)
			u.counts.terms(class, terms, 1)
		}
		if err := rows.Err(); err != nil {
			return err
		}
	}
	return u.moveVectors(ctx, class, numbers, before)
}

// moveVectors counts the vectors of documents in another class. Their rows have no class, because
// PostgreSQL writes a changed row anew, with new entries in its HNSW indexes.
func (u *updater) moveVectors(ctx context.Context, class int32, numbers []int64, before map[int64]int32) error {
	for _, no := range u.models {
		rows, err := u.tx.Query(ctx, `SELECT document, count(*) FROM `+vectorTable(no)+` WHERE document = ANY($1) GROUP BY document`, numbers)
		if err != nil {
			return err
		}
		for rows.Next() {
			var document, n int64
			if err := rows.Scan(&document, &n); err != nil {
				return err
			}
			u.counts.add(countVectors, modelName(no), before[document], -n)
			u.counts.add(countVectors, modelName(no), class, n)
		}
		if err := rows.Err(); err != nil {
			return err
		}
	}
	return nil
}
