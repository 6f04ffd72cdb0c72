package retrieve

import (
	"context"
	"errors"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/index"
	"github.com/assay-rag/assay/llm"
)

// A candidate is a chunk that one of the searches found.
type candidate struct {
	id         string
	matched    []string
	bm25       *float64 // nil: words did not bring it
	similarity *float64 // nil: it has no vector
	fused      float64
}

// A pool is what the searches for one wording found.
type pool struct {
	list []*candidate
	text []*candidate // of list, by BM25
	near []*candidate // of list, by similarity
}

// hit is the candidate with its passage.
func (c *candidate) hit(p assay.Passage) assay.Hit {
	fused := c.fused
	hit := assay.Hit{
		Chunk:      p.Chunk,
		Text:       p.Text,
		Collection: p.Collection,
		URI:        p.URI,
		Title:      p.Title,
		Language:   p.Language,
		Line:       p.Line,
		Page:       p.Page,
		Matched:    c.matched,
		Scores:     assay.Scores{BM25: c.bm25, Vector: c.similarity, Fused: &fused},
	}
	if hit.Chunk.Headings == nil {
		hit.Chunk.Headings = []string{}
	}
	return hit
}

// embed returns a vector of each wording, the query's own first; nil where text
// has to do.
func (s *search) embed(ctx context.Context) ([]llm.Vector, error) {
	texts := append([]string{s.query.Text}, s.query.Rewrites...)
	none := make([]llm.Vector, len(texts))
	if s.Embedder == nil || s.query.Mode == assay.ModeText {
		return none, nil
	}
	vectors, err := s.Embedder.Embed(ctx, llm.Query, texts)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err == nil && len(vectors) != len(texts) {
		err = fmt.Errorf("%s made %d vectors of %d texts", s.Embedder.Model(), len(vectors), len(texts))
	}
	if err != nil {
		if s.query.Mode == assay.ModeVector {
			return nil, fmt.Errorf("embed the query: %w", err)
		}
		s.note("searched by text alone: " + err.Error())
		return none, nil
	}
	return vectors, nil
}

// candidates searches for one wording. The query's own, the first, also says what
// the results are of.
func (s *search) candidates(ctx context.Context, text string, v llm.Vector, first bool) (pool, error) {
	var p pool
	at := map[string]*candidate{}
	add := func(id string) *candidate {
		c := at[id]
		if c == nil {
			c = &candidate{id: id}
			at[id] = c
			p.list = append(p.list, c)
		}
		return c
	}
	q := s.query
	joined := compounds(text)
	q.Text = withCompounds(text, joined)
	if q.Limit > 0 { // else the index refuses it
		q.Limit = max(q.Limit, candidates)
	}
	found, err := s.Index.Search(ctx, s.access, q)
	if err != nil {
		return pool{}, err
	}
	if first {
		s.results.Terms, s.joined = splitTerms(text, found.Terms, joined)
		s.results.Chunks, s.results.Total, s.results.Index = found.Chunks, found.Total, found.Index
	}
	if s.query.Mode != assay.ModeVector {
		for _, h := range found.Hits {
			c := add(h.Chunk)
			c.bm25, c.matched = &h.BM25, h.Matched
			p.text = append(p.text, c)
		}
	}
	if v == nil || len(found.Terms) == 0 {
		return p, nil
	}
	near := index.Vector{Model: s.Embedder.Model(), Metric: index.Cosine, Values: v}
	nearest, err := s.Index.Nearest(ctx, s.access, q, near)
	if err != nil {
		return p, s.withoutVectors(ctx, err)
	}
	if first {
		s.results.Index = nearest.Index
		if note := CoverageNote(nearest.Index); note != "" && nearest.Chunks > 0 {
			s.note(note)
		}
	}
	for _, h := range nearest.Hits {
		c := add(h.Chunk)
		c.similarity = &h.Similarity
		p.near = append(p.near, c)
	}
	if s.query.Mode == assay.ModeVector {
		for _, h := range found.Hits { // to show what they hold
			if c := at[h.Chunk]; c != nil {
				c.bm25, c.matched = &h.BM25, h.Matched
			}
		}
	}
	var ids []string
	var unknown []*candidate
	for _, c := range p.list {
		if c.similarity == nil {
			ids, unknown = append(ids, c.id), append(unknown, c)
		}
	}
	similarities, err := s.Index.Similarities(ctx, s.access, near, ids)
	if err != nil {
		return p, s.withoutVectors(ctx, err)
	}
	for i, c := range unknown {
		c.similarity = similarities[i]
	}
	return p, nil
}

// withoutVectors takes note of what is wrong with the vectors. It returns the
// error where the search cannot do without them.
func (s *search) withoutVectors(ctx context.Context, err error) error {
	if ctx.Err() != nil || s.query.Mode == assay.ModeVector || errors.Is(err, context.Canceled) {
		return err
	}
	s.note("searched by text alone: " + err.Error())
	return nil
}
