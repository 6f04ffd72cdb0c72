package relational

import (
	"context"
	"encoding/hex"
	"iter"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// pagePassages is the most passages that Unembedded reads at a time.
const pagePassages = 256

// A place is a position in a walk over the chunks of current versions, in the order of changes. A
// document that changes during the walk moves to the end, where the walk reaches it.
type place struct {
	sequence, document int64
	ordinal            int
}

// Unembedded implements store.Content.
func (c content) Unembedded(ctx context.Context, model string, after int64) iter.Seq2[assay.Passage, error] {
	return func(yield func(assay.Passage, error) bool) {
		at := place{sequence: max(after, 0) + 1}
		for {
			page, err := c.unembedded(ctx, model, &at)
			if err != nil {
				yield(assay.Passage{}, wrap(err, "read what %q has yet to embed", model))
				return
			}
			if len(page) == 0 {
				return
			}
			for _, p := range page {
				if !yield(p, nil) {
					return
				}
			}
		}
	}
}

const unembeddedQuery = `
SELECT d.sequence, d.number, h.ordinal, h.id, h.hash
FROM documents d
CROSS JOIN chunks h
WHERE h.version = d.version AND (d.sequence, d.number) >= (?2, ?3) AND (d.sequence > ?2 OR d.number > ?3 OR h.ordinal > ?4)
AND h.hash IS NOT NULL
AND NOT EXISTS (
	SELECT 1 FROM vectors x WHERE x.hash = h.hash AND x.model = (SELECT number FROM models WHERE name = ?1))
ORDER BY d.sequence, d.number, h.ordinal LIMIT ?5`

// unembedded reads the next passages, one per hash, and moves the place past them. If there is less
// than a page, it moves the place to the end.
func (c content) unembedded(ctx context.Context, model string, at *place) (page []assay.Passage, err error) {
	err = c.db.View(ctx, func(s Reader) error {
		var next place
		var ids []string
		rows, seen := 0, make(map[string]bool)
		args := []any{model, at.sequence, at.document, at.ordinal, pagePassages}
		err := s.Each(ctx, unembeddedQuery, args, func(scan func(...any) error) error {
			var id, hash []byte
			err := scan(&next.sequence, &next.document, &next.ordinal, &id, &hash)
			if !seen[string(hash)] {
				ids = append(ids, hex.EncodeToString(id))
			}
			rows, seen[string(hash)] = rows+1, true
			return err
		})
		if err == nil && rows < pagePassages {
			next = place{}
			err = s.Row(ctx, sequenceQuery, nil, &next.sequence)
			next.sequence = max(next.sequence+1, at.sequence)
		}
		if err != nil {
			return err
		}
		*at = next
		page, err = c.loadPassages(ctx, s, ids)
		return err
	})
	return page, err
}

const coverageQuery = `
SELECT count(*), count(x.number)
FROM documents d
CROSS JOIN chunks h
LEFT JOIN vectors x ON x.hash = h.hash AND x.model = (SELECT number FROM models WHERE name = ?)
WHERE h.version = d.version AND h.hash IS NOT NULL`

// Coverage implements store.Content.
func (c content) Coverage(ctx context.Context, model string) (store.Coverage, error) {
	var n store.Coverage
	err := c.db.Row(ctx, coverageQuery, []any{model}, &n.Chunks, &n.Embedded)
	return n, wrap(err, "count what %q has embedded", model)
}
