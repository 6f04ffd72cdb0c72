package retrieve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/llm"
)

// deepQuery returns the query for one search of the index, with its limit raised to the depth of
// the search.
func (s *search) deepQuery(text string) assay.Query {
	q := s.query
	q.Text = text
	if q.Limit > 0 { // the index rejects a limit below 1
		q.Limit = max(q.Limit, s.depth)
	}
	return q
}

// byWords finds the candidates that match words of the n-th wording. For the first wording it also
// fills in the terms and counts of the results.
func (s *search) byWords(ctx context.Context, n int) error {
	w := s.wordings[n]
	joined := compounds(w.text)
	q := s.deepQuery(withCompounds(w.text, joined))
	found, err := s.Index.Search(ctx, s.access, q)
	if err != nil {
		return err
	}
	s.more = s.more || len(found.Hits) == q.Limit
	terms, held := splitTerms(w.text, found.Terms, joined)
	w.rate = newRater(s.analyzers, w.text, terms, held, found.Chunks)
	if s.Relevance != nil {
		w.rate.model = s.Relevance
	}
	if n == 0 {
		s.results = assay.Results{Hits: []assay.Hit{}, Terms: terms, Chunks: found.Chunks, Total: found.Total, Index: found.Index}
	}
	for i, h := range found.Hits {
		c := s.add(h.Chunk)
		c.of[n].bm25, c.of[n].matched = &h.BM25, h.Matched
		if n == 0 {
			c.places.BM25 = i + 1
		}
	}
	s.endStage("text")
	return nil
}

// byVectors finds the candidates whose vectors are nearest to those of the wordings, and computes
// the similarities of the other candidates. If that fails, the results of the text search are kept
// and a note reports the reason.
func (s *search) byVectors(ctx context.Context) error {
	if s.Embedder == nil || s.query.Mode == assay.ModeText || len(s.results.Terms) == 0 {
		return nil
	}
	if language := s.unsupportedLanguage(); language != "" {
		s.note(s.unsupportedNote(language))
		if s.query.Mode != assay.ModeVector {
			s.note("searched by text alone")
			return nil
		}
	}
	err := s.embed(ctx)
	for n := 0; n < len(s.wordings) && err == nil; n++ {
		if s.wordings[n].moved {
			err = s.feedBack(ctx, s.wordings[n])
		}
		if err == nil {
			err = s.nearest(ctx, n)
		}
	}
	if err == nil {
		err = s.read(ctx)
	}
	if err == nil {
		err = s.compare(ctx)
	}
	if err == nil {
		err = s.fill(ctx)
	}
	return s.endVectors(ctx, err)
}

// endVectors ends a vector search, including a failed one. Unless the mode is ModeVector, a failure
// discards the vector results and adds a note.
func (s *search) endVectors(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		if s.query.Mode == assay.ModeVector {
			return err
		}
		s.discardVectors()
		if long := new(llm.TooLongError); errors.As(err, &long) && long.Text == 0 && long.Limit > 0 {
			s.note(fmt.Sprintf("the question has %d tokens, more than the %d that %s takes", long.Tokens, long.Limit, long.Model))
			s.note("searched by text alone")
			return nil
		}
		s.note("searched by text alone: " + trimmed(err))
		return nil
	}
	s.acceptSimilarities()
	return nil
}

// embed computes the vectors of the wordings.
func (s *search) embed(ctx context.Context) error {
	texts := make([]string, len(s.wordings))
	for i, w := range s.wordings {
		texts[i] = w.text
	}
	vectors, err := llm.Embed(ctx, s.Embedder, llm.Query, texts)
	if err != nil {
		return err
	}
	for i, w := range s.wordings {
		w.vector = vectors[i]
	}
	s.endStage("embed")
	return nil
}

// Parameters of pseudo-relevance feedback. The passages nearest to the query are assumed to be
// relevant, and the vector of a second wording is the query's vector moved towards them.
//
// Source: Rocchio, "Relevance feedback in information retrieval", in The SMART Retrieval System,
// 1971.
const (
	feedbackPassages = 3
	feedbackWeight   = 0.3 // weight of their mean; the query has weight 1
)

// feedBack moves the vector of a wording that repeats the query towards the passages nearest to the
// query.
func (s *search) feedBack(ctx context.Context, w *wording) error {
	var ids []string
	for _, c := range s.found {
		if at := c.of[0].nearest; 0 < at && at <= feedbackPassages {
			ids = append(ids, c.hit.Chunk.ID)
		}
	}
	vectors, err := s.Index.Vectors(ctx, s.access, s.Embedder.Model(), ids)
	if err != nil {
		return err
	}
	w.vector = slices.Clone(w.vector)
	for _, v := range vectors {
		if len(v) != len(w.vector) {
			continue // its vector was removed meanwhile
		}
		for i, x := range v {
			w.vector[i] += feedbackWeight / float32(len(vectors)) * x
		}
	}
	s.endStage("feedback")
	return nil
}

// near returns the vector of the n-th wording in the form that the index takes.
func (s *search) near(n int) index.Vector {
	return index.Vector{Model: s.Embedder.Model(), Metric: index.Cosine, Values: s.wordings[n].vector}
}

// nearest finds the candidates with the most similar vectors.
func (s *search) nearest(ctx context.Context, n int) error {
	q := s.deepQuery(s.wordings[n].text)
	found, err := s.Index.Nearest(ctx, s.access, q, s.near(n))
	if err != nil {
		return err
	}
	s.more = s.more || len(found.Hits) == q.Limit
	if n == 0 {
		s.results.Index = found.Index
	}
	for i, h := range found.Hits {
		c := s.add(h.Chunk)
		c.of[n].similarity, c.of[n].nearest = &h.Similarity, i+1
		if n == 0 {
			c.places.Vector = i + 1
		}
	}
	s.endStage("nearest")
	return nil
}

// compare computes the similarities of the candidates that the nearest-vector searches did not
// return.
func (s *search) compare(ctx context.Context) error {
	for n := range s.wordings {
		var ids []string
		var rest []*rating
		for _, c := range s.found {
			if c.of[n].similarity == nil {
				ids, rest = append(ids, c.hit.Chunk.ID), append(rest, &c.of[n])
			}
		}
		similarities, err := s.Index.Similarities(ctx, s.access, s.near(n), ids)
		if err != nil {
			return err
		}
		for i, r := range rest {
			r.similarity = similarities[i]
		}
	}
	s.endStage("similarities")
	return nil
}

// fill requests vectors for the best candidates by words that have none, and computes their
// similarities.
func (s *search) fill(ctx context.Context) error {
	if s.Fill == nil {
		return nil
	}
	var lacking []*candidate
	for _, c := range s.found {
		if c.of[0].similarity == nil && c.of[0].bm25 != nil && s.encoderSupports(c.hit.Language) {
			lacking = append(lacking, c)
		}
	}
	slices.SortStableFunc(lacking, func(a, b *candidate) int { return cmp.Compare(b.of[0].words, a.of[0].words) })
	lacking = lacking[:min(len(lacking), filled)]
	if len(lacking) == 0 {
		return nil
	}
	passages := make([]assay.Passage, len(lacking))
	for i, c := range lacking {
		passages[i] = c.passage
	}
	vectors, err := s.Fill(ctx, s.Embedder.Model(), passages)
	if err != nil {
		return err
	}
	if len(vectors) != len(passages) {
		return fmt.Errorf("%d vectors filled in for %d passages", len(vectors), len(passages))
	}
	for i, c := range lacking {
		for n, w := range s.wordings {
			if x, ok := cosine(w.vector, vectors[i]); ok {
				c.of[n].similarity = &x
			}
		}
	}
	s.endStage("fill")
	return nil
}

// cosine returns the cosine of two vectors; ok is false if it is undefined.
func cosine(a, b []float32) (float64, bool) {
	if len(a) != len(b) {
		return 0, false
	}
	var product, aa, bb float64
	for i, x := range a {
		y := b[i]
		product += float64(x) * float64(y)
		aa += float64(x) * float64(x)
		bb += float64(y) * float64(y)
	}
	cos := product / math.Sqrt(aa*bb)
	if math.IsNaN(cos) || math.IsInf(cos, 0) {
		return 0, false
	}
	return max(-1, min(1, cos)), true
}

// acceptSimilarities decides which similarities count and adds the notes about them. Unless the
// mode is ModeVector, similarities of passages in languages that the encoder does not support do
// not count.
func (s *search) acceptSimilarities() {
	foreign := 0
	for _, c := range s.found {
		if !s.encoderSupports(c.hit.Language) && s.query.Mode != assay.ModeVector {
			foreign++
			for n := range c.of {
				c.of[n].similarity, c.of[n].nearest = nil, 0
			}
		}
		c.hit.Scores.Vector = c.of[0].similarity
	}
	if s.query.Mode == assay.ModeVector {
		s.drop(func(c *candidate) bool {
			return !slices.ContainsFunc(c.of, func(r rating) bool { return r.nearest > 0 })
		})
	} else {
		s.drop(func(c *candidate) bool { // found only by a vector that does not count
			return c.places.Graph == 0 && !slices.ContainsFunc(c.of, func(r rating) bool { return r.bm25 != nil || r.similarity != nil })
		})
	}
	if s.results.Chunks > 0 {
		s.noteOf(assay.NoteCoverage, CoverageNote(s.results.Index))
	}
	if foreign > 0 {
		s.note(s.mixedNote())
	}
}

// drop removes the candidates for which the predicate is true.
func (s *search) drop(which func(*candidate) bool) {
	s.found = slices.DeleteFunc(s.found, func(c *candidate) bool {
		gone := which(c)
		if gone {
			delete(s.at, c.hit.Chunk.ID)
		}
		return gone
	})
}

// discardVectors removes the results of a vector search that failed halfway.
func (s *search) discardVectors() {
	for _, w := range s.wordings {
		w.vector = nil
	}
	for _, c := range s.found {
		for n := range c.of {
			c.of[n].similarity, c.of[n].nearest = nil, 0
		}
		c.hit.Scores.Vector = nil
	}
	s.drop(func(c *candidate) bool {
		return c.places.Graph == 0 && !slices.ContainsFunc(c.of, func(r rating) bool { return r.bm25 != nil })
	})
	s.results.Index.Model, s.results.Index.Coverage = "", 0
}
