// Package retrieve finds passages: it searches the index by words and by vectors,
// fuses what both found, reads it from the store, gives each hit a calibrated
// relevance, and orders the best.
package retrieve

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/index"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/llm"
)

// Content reads what the index points to; a store's content is one.
type Content interface {
	// Passages returns the chunks with these IDs, in their order, with their text.
	Passages(ctx context.Context, ids []string) ([]assay.Passage, error)
}

// A Ranker orders the best hits of a search.
type Ranker interface {
	// Rank returns one finite score per hit of found, in their order; higher is
	// better, and they are comparable only within one call. The hits have all their
	// scores but Rerank, and come in fused order; found also has the query's terms
	// and how many chunks were searched. Rank is safe for concurrent use.
	Rank(ctx context.Context, q assay.Query, found assay.Results) ([]float64, error)
}

// A Config says what a Retriever searches and with what. A part that is nil is
// left out.
type Config struct {
	Index   index.Index // required
	Content Content     // that the index was made from; required

	Embedder llm.Embedder // of the vectors to search; nil: text alone
	Ranker   Ranker       // nil: the order of fusion, of text alone that of relevance

	// Fill makes vectors of passages that have none yet: one for each, nil where it
	// made none. It takes as long as a search may wait for it. It fails only when
	// ctx has ended. Nil: nothing is filled in.
	Fill func(ctx context.Context, model string, ps []assay.Passage) ([]llm.Vector, error)
}

// A Retriever searches an index. It implements assay.Retriever.
type Retriever struct {
	Config
	analyzers sync.Pool // of *analysis.Analyzers: they remember the words of earlier hits
}

// New returns a retriever.
func New(c Config) *Retriever {
	r := &Retriever{Config: c}
	r.analyzers.New = func() any { return new(analysis.Analyzers) }
	return r
}

// How deep searches go, if more hits are not asked for.
const (
	candidates = 100 // of each search by words and by vector
	ranked     = 50  // of the fused that a Ranker orders
)

// Retrieve implements assay.Retriever. Hits are ordered by the Ranker's score,
// those it did not see by their fused score; without a Ranker, by the fused
// score, where nothing but words was searched by relevance. Ties keep the order
// of the step before, at last that of chunk IDs.
func (r *Retriever) Retrieve(ctx context.Context, access assay.Access, q assay.Query) (assay.Results, error) {
	s := &search{Retriever: r, access: access, query: q}
	if err := s.run(ctx); err != nil {
		return assay.Results{}, fmt.Errorf("search %q: %w", q.Text, err)
	}
	return s.results, nil
}

// A search is one Retrieve under way.
type search struct {
	*Retriever
	access  assay.Access
	query   assay.Query
	joined  []compound
	results assay.Results
}

func (s *search) run(ctx context.Context) error {
	if err := s.check(); err != nil {
		return err
	}
	vectors, err := s.embed(ctx)
	if err != nil {
		return err
	}
	var pools []pool
	for i, text := range append([]string{s.query.Text}, s.query.Rewrites...) {
		p, err := s.candidates(ctx, text, vectors[i], i == 0)
		if err != nil {
			return err
		}
		pools = append(pools, p)
	}
	found := fuse(s.query.Fusion, pools)
	found = found[:min(len(found), max(s.query.Limit, candidates))]
	if err := s.read(ctx, found); err != nil {
		return err
	}
	if s.query.Mode == assay.ModeText || s.results.Index.Coverage == 0 {
		s.byRelevance()
	}
	if err := s.rank(ctx); err != nil {
		return err
	}
	s.results.Hits = s.results.Hits[:min(len(s.results.Hits), s.query.Limit)]
	return nil
}

func (s *search) check() error {
	switch s.query.Mode {
	case assay.ModeHybrid, assay.ModeText, assay.ModeVector:
	default:
		return fmt.Errorf("unknown mode %q: %w", s.query.Mode, assay.ErrInvalid)
	}
	switch s.query.Fusion {
	case assay.FusionWeighted, assay.FusionRRF:
	default:
		return fmt.Errorf("unknown fusion %q: %w", s.query.Fusion, assay.ErrInvalid)
	}
	if d := s.query.Diversity; !(0 <= d && d <= 1) {
		return fmt.Errorf("diversity %v is not in [0, 1]: %w", d, assay.ErrInvalid)
	}
	if s.query.Mode == assay.ModeVector && s.Embedder == nil {
		return fmt.Errorf("search by vectors without an encoder: %w", assay.ErrInvalid)
	}
	return nil
}

// note tells the reader something, once.
func (s *search) note(text string) {
	if !slices.Contains(s.results.Notes, text) {
		s.results.Notes = append(s.results.Notes, text)
	}
}

// read reads the passages of what was found and rates them.
func (s *search) read(ctx context.Context, found []*candidate) error {
	ids := make([]string, len(found))
	for i, c := range found {
		ids[i] = c.id
	}
	passages, err := s.Content.Passages(ctx, ids)
	if err != nil {
		return fmt.Errorf("read the passages found: %w", err)
	}
	analyzers := s.analyzers.Get().(*analysis.Analyzers)
	defer s.analyzers.Put(analyzers)
	rate := newRater(analyzers, s.query.Text, s.results.Terms, s.joined, s.results.Chunks)
	s.results.Hits = make([]assay.Hit, len(found))
	for i, c := range found {
		hit := c.hit(passages[i])
		hit.Scores.Relevance = rate.relevance(hit)
		s.results.Hits[i] = hit
	}
	return nil
}

// byRelevance orders the hits of a search by words: better than BM25 does. nDCG@10
// by BM25 and by relevance, on sets that it was not fitted on (assay eval
// calibrate): scifact 0.697 and 0.703, hotpotqa 0.806 and 0.838, musique 0.581 and
// 0.625, anthropic-docs 0.631 and 0.769, clapnq 0.944 and 0.951, pubmedqa 0.979
// and 0.977, xquad-en 0.972 and 0.974.
func (s *search) byRelevance() {
	slices.SortStableFunc(s.results.Hits, func(a, b assay.Hit) int {
		return cmp.Compare(b.Scores.Relevance, a.Scores.Relevance)
	})
}

// rank has the best hits ordered by the Ranker. One that fails has ordered
// nothing, and a note says so.
func (s *search) rank(ctx context.Context) error {
	if s.Ranker == nil || len(s.results.Hits) == 0 {
		return nil
	}
	best := s.results
	best.Hits = best.Hits[:min(len(best.Hits), ranked)]
	scores, err := s.Ranker.Rank(ctx, s.query, best)
	if err == nil {
		err = checkScores(scores, len(best.Hits))
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		s.note("the hits are not reranked: " + err.Error())
		return nil
	}
	for i := range best.Hits {
		best.Hits[i].Scores.Rerank = &scores[i]
	}
	slices.SortStableFunc(best.Hits, func(a, b assay.Hit) int { return cmp.Compare(*b.Scores.Rerank, *a.Scores.Rerank) })
	return nil
}

// checkScores refuses what is not one finite score for each of n hits.
func checkScores(scores []float64, n int) error {
	if len(scores) != n {
		return fmt.Errorf("%d scores for %d hits", len(scores), n)
	}
	for _, x := range scores {
		if x-x != 0 {
			return fmt.Errorf("a score of %v", x)
		}
	}
	return nil
}
