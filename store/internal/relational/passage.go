package relational

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/assay-rag/assay"
)

// passagesQuery reads chunks together with the piece in which each begins.
func passagesQuery(d Dialect) string {
	return `
SELECT h.id, h.ordinal, h.kind, h.start, h."end", h.headings, h.parent, h.tokens, h.origin, j.key, h.version,
	d.id, v.version, c.name, d.uri, v.title,
	` + d.Member("v.metadata", "language") + `,
	COALESCE(p.start, -1), COALESCE(p.line, 0), COALESCE(p.page, 0), COALESCE(p.text, ''), p.anchors, p.hash
FROM ` + d.List("?1") + ` j
CROSS JOIN chunks h
JOIN versions v ON v.number = h.version
JOIN documents d ON d.number = v.document
JOIN collections c ON c.number = d.collection
LEFT JOIN pieces p ON p.version = h.version
	AND p.start = (SELECT max(start) FROM pieces WHERE version = h.version AND start <= h.start)
WHERE h.id = ` + d.Unhex("j.value")
}

// Passages implements store.Content.
func (c content) Passages(ctx context.Context, ids []string) ([]assay.Passage, error) {
	var passages []assay.Passage
	err := c.db.View(ctx, func(s Reader) (err error) {
		passages, err = c.loadPassages(ctx, s, ids)
		return err
	})
	if err != nil {
		return nil, wrap(err, "read passages")
	}
	return passages, nil
}

// loadPassages reads the chunks with these IDs.
func (c content) loadPassages(ctx context.Context, s Reader, ids []string) ([]assay.Passage, error) {
	for _, id := range ids {
		if chunkKey(id) == nil {
			return nil, fmt.Errorf("chunk %q: %w", id, assay.ErrNotFound)
		}
	}
	if len(ids) == 0 {
		return []assay.Passage{}, nil
	}
	keys, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	passages := make([]assay.Passage, len(ids))
	err = s.Each(ctx, passagesQuery(c.db.Dialect()), []any{string(keys)}, func(scan func(...any) error) error {
		i, p, err := scanPassage(ctx, s, scan)
		if err == nil {
			passages[i] = p
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, p := range passages {
		if p.Chunk.ID == "" {
			return nil, fmt.Errorf("chunk %s: %w", ids[i], assay.ErrNotFound)
		}
	}
	return passages, nil
}

// scanPassage reads a row of passagesQuery and the rest of its chunk from the following pieces. It
// returns the index of the ID that the row is for.
func scanPassage(ctx context.Context, s Reader, scan func(...any) error) (i int, p assay.Passage, err error) {
	c := &p.Chunk
	var version int64
	var first piece
	var hash []byte
	err = scanChunk(scan, c, &i, &version, &c.Document, &c.Version, &p.Collection, &p.URI, &p.Title, &p.Language,
		&first.start, &first.line, &first.page, &first.text, &first.anchors, &hash)
	if err != nil {
		return 0, p, err
	}
	if c.Start < 0 || c.Start > c.End || first.start < 0 || c.Start > first.end() {
		return 0, p, damaged("chunk %s is not a span of its document %s", c.ID, c.Document)
	}
	if err := first.verify(hash); err != nil {
		return 0, p, fmt.Errorf("chunk %s of %s: %w", c.ID, p.URI, err)
	}
	if p.Line, p.Page, err = first.position(c.Start); err != nil {
		return 0, p, fmt.Errorf("chunk %s: %w", c.ID, err)
	}
	p.Text = first.text[c.Start-first.start : min(c.End, first.end())-first.start]
	if c.End > first.end() {
		rest, err := loadSpan(ctx, s, version, first.end(), c.End)
		if err != nil {
			return 0, p, fmt.Errorf("chunk %s of %s: %w", c.ID, p.URI, err)
		}
		p.Text += rest
	}
	return i, p, nil
}
