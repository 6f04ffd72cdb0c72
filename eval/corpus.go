package eval

import (
	"context"
	"fmt"
	"iter"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/language"
)

// A corpus holds a set's passages in memory, each one document of one chunk, as
// the sets define relevance. It is the source of an index and the content that
// a retriever reads.
type corpus struct {
	documents []assay.Document
	chunks    []assay.Chunk
	byChunk   map[string]int
}

func newCorpus(set Set) *corpus {
	c := &corpus{byChunk: map[string]int{}}
	for _, p := range set.Passages {
		m := assay.Metadata{}
		if code := language.Detect(p.Text); code != "" { // as ingest does
			m[assay.MetaLanguage] = assay.StringValue(code)
		}
		d := assay.Document{
			ID:         assay.DocumentID(set.Name, p.ID),
			Version:    assay.DocumentVersion(p.Text, m, "eval"),
			Collection: set.Name,
			URI:        p.ID,
			Title:      p.Title,
			Text:       p.Text,
			Metadata:   m,
		}
		ch := assay.Chunk{
			ID:       assay.ChunkID(d.ID, d.Version, 0),
			Document: d.ID,
			Version:  d.Version,
			Kind:     assay.ChunkProse,
			End:      len(p.Text),
		}
		c.byChunk[ch.ID] = len(c.documents)
		c.documents = append(c.documents, d)
		c.chunks = append(c.chunks, ch)
	}
	return c
}

// Sequence implements index.Source: each passage is one change.
func (c *corpus) Sequence(context.Context) (int64, error) { return int64(len(c.documents)), nil }

// Changes implements index.Source.
func (c *corpus) Changes(ctx context.Context, after int64) iter.Seq2[assay.Change, error] {
	return func(yield func(assay.Change, error) bool) {
		for i := int(after); i < len(c.documents); i++ {
			if err := ctx.Err(); err != nil {
				yield(assay.Change{}, err)
				return
			}
			d := c.documents[i]
			if !yield(assay.Change{Sequence: int64(i + 1), ID: d.ID, Document: &d, Chunks: c.chunks[i : i+1]}, nil) {
				return
			}
		}
	}
}

// Passages implements retrieve.Content.
func (c *corpus) Passages(_ context.Context, ids []string) ([]assay.Passage, error) {
	passages := make([]assay.Passage, len(ids))
	for i, id := range ids {
		at, ok := c.byChunk[id]
		if !ok {
			return nil, fmt.Errorf("chunk %s: %w", id, assay.ErrNotFound)
		}
		d := c.documents[at]
		passages[i] = assay.Passage{
			Chunk: c.chunks[at], Text: d.Text, Collection: d.Collection, URI: d.URI, Title: d.Title,
			Language: d.Metadata[assay.MetaLanguage].String,
		}
	}
	return passages, nil
}
