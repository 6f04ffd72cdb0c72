// Package retrieve finds passages. It searches the index by words and by vectors, fuses the
// results, reads the passages from the store, gives each hit a calibrated relevance, reranks the
// best, and drops near-duplicates.
//
// Retriever is the pipeline; search.run lists its steps in order. The package does not plan and
// does not call a language model.
package retrieve

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/graph"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/llm"
)

// Content reads the chunks that the index refers to. The content of a store implements it.
type Content interface {
	// Passages returns the chunks with these IDs, in their order, with their text.
	Passages(ctx context.Context, ids []string) ([]assay.Passage, error)
}

// A Ranker scores the best hits of a search.
type Ranker interface {
	// Rank returns one finite score per hit of found, in their order; higher is better. Scores are
	// comparable only within one call. The hits have all their scores but Rerank; either all have
	// Scores.Vector or none has. found also has the query's terms and the number of chunks
	// searched. Rank is safe for concurrent use.
	Rank(ctx context.Context, q assay.Query, found assay.Results) ([]float64, error)
}

// A Decider is a Ranker whose order may be final. A Reader still rates the hits but does not
// reorder them.
type Decider interface {
	Ranker
	Decides() bool // Decides reports on the last call to Rank
}

// Config configures a Retriever. Optional parts may be nil.
type Config struct {
	Index   index.Index // required
	Content Content     // the content of the index; required

	Embedder llm.Embedder // model of the vectors to search; nil: text search only
	Graph    Walker       // over the graph of the index; nil: no walk
	Ranker   Ranker       // nil: fused order
	Reader   llm.Reader   // of the best ranked hits; nil: none

	// Relevance rates hits; nil means the model embedded in the program.
	Relevance *RelevanceModel

	Fill Filler // nil: missing vectors are not filled in
}

// A Filler makes vectors of passages that have none yet, best first. It returns one per passage,
// nil for those that it did not make. It bounds its own latency and fails only if ctx has ended.
type Filler = func(ctx context.Context, model string, ps []assay.Passage) ([]llm.Vector, error)

// A Retriever searches an index. It implements assay.Retriever.
type Retriever struct {
	config    Config
	analyzers *sync.Pool // of *analysis.Analyzers, which cache the words of earlier hits
}

// New returns a retriever. It panics if the features of c.Relevance are not those of this program.
func New(c Config) *Retriever {
	if c.Relevance != nil {
		if err := c.Relevance.check(); err != nil {
			panic("retrieve: relevance model: " + err.Error())
		}
	}
	return &Retriever{c, &sync.Pool{New: func() any { return new(analysis.Analyzers) }}}
}

// WithFill returns a copy of r with another Filler.
func (r *Retriever) WithFill(fill Filler) *Retriever {
	other := *r
	other.config.Fill = fill
	return &other
}

// WithRanker returns a copy of r with another Ranker.
func (r *Retriever) WithRanker(ranker Ranker) *Retriever {
	other := *r
	other.config.Ranker = ranker
	return &other
}

// Depth of a search, unless the query asks for more hits. With 60 candidates per search nDCG@10 is
// within 0.002 of that with 100 on each of eight shared sets. Reading and rating the candidates
// takes most of a search's time.
const (
	depth  = 60 // candidates of each search by words and by vector
	ranked = 50 // fused candidates that a Ranker scores
	filled = 40 // candidates found by words that get a vector at once

	// If removing near-duplicates leaves fewer hits than the limit, the search is repeated deeper
	// times as deep, up to deepest candidates per search.
	deeper, deepest = 4, 1000
)

// Retrieve implements assay.Retriever. Hits are sorted by the Ranker's score, followed by the hits
// that it did not score, sorted by their fused score. Ties keep the order of the previous step,
// initially that of chunk IDs.
//
// A passage without a vector, because it was not made yet or because the encoder does not support
// the passage's language, keeps the rank that its words give it. Vectors only reorder the other
// passages among their own ranks. So passages without vectors are found as well as by text alone.
func (r *Retriever) Retrieve(ctx context.Context, access assay.Access, q assay.Query) (assay.Results, error) {
	s, err := r.search(ctx, access, q, false)
	if err != nil {
		return assay.Results{}, err
	}
	return s.results, nil
}

func (r *Retriever) search(ctx context.Context, access assay.Access, q assay.Query, explain bool) (*search, error) {
	analyzers := r.analyzers.Get().(*analysis.Analyzers)
	defer r.analyzers.Put(analyzers)
	var stages []Stage
	for deep := depth; ; deep *= deeper {
		s := &search{
			Config: r.config, explain: explain, analyzers: analyzers, access: access, query: q, depth: deep,
			at: map[string]*candidate{}, since: time.Now(), stages: stages,
		}
		if err := s.run(ctx); err != nil {
			return nil, fmt.Errorf("search %q: %w", cut(q.Text, 80), err)
		}
		if !s.crowded() || deep*deeper > deepest {
			return s, nil
		}
		stages = s.stages
	}
}

// crowded reports whether near-duplicates took the place of hits that a deeper search could find.
func (s *search) crowded() bool {
	return len(s.drops) > 0 && s.more && len(s.results.Hits) < s.query.Limit
}

// A search is the state of one Retrieve.
type search struct {
	Config
	analyzers *analysis.Analyzers
	access    assay.Access
	query     assay.Query
	wordings  []*wording
	depth     int  // candidates of each search, unless the query asks for more hits
	more      bool // the searches may not have returned all matches
	code      bool // most candidates are code

	found   []*candidate // by any of the searches, in the order found; later best first
	at      map[string]*candidate
	results assay.Results
	drops   []Drop

	explain bool
	since   time.Time // end of the last stage
	stages  []Stage
}

// A wording is one formulation of the query: the query's own text, which comes first, or a rewrite.
type wording struct {
	text   string
	vector llm.Vector // nil: searched by words alone
	moved  bool       // its vector is moved towards the passages nearest to the query
	rate   *rater
}

// A candidate is a chunk found by one of the searches.
type candidate struct {
	passage assay.Passage
	hit     assay.Hit
	of      []rating
	fused   float64
	tie     int // breaks ties of fused scores; lower first
	terms   FusionTerms
	places  Ranks
	account map[string]float64 // components of its rerank score
	mass    float64            // of the walk
	path    []graph.Step       // of the walk to the chunk
	vector  llm.Vector         // nil until read
	section *assay.Passage     // that replaces it
}

// A rating holds a candidate's scores for one wording.
type rating struct {
	matched    []string
	bm25       *float64 // nil: not found by words
	similarity *float64 // nil: not known
	read       reading
	words      float64 // relevance by words alone
	among      float64 // score by words among the other candidates
	nearest    int     // rank among the nearest, from 1; 0: not among them
}

func (s *search) run(ctx context.Context) error {
	if err := s.check(); err != nil {
		return err
	}
	for _, text := range append([]string{s.query.Text}, s.query.Rewrites...) {
		s.wordings = append(s.wordings, &wording{text: text})
	}
	if s.query.Feedback {
		s.wordings = append(s.wordings, &wording{text: s.query.Text, moved: true})
	}
	for i := range s.wordings {
		if err := s.byWords(ctx, i); err != nil {
			return err
		}
	}
	if err := s.read(ctx); err != nil {
		return err
	}
	if err := s.byVectors(ctx); err != nil {
		return err
	}
	s.fuse()
	s.endStage("fuse")
	if err := s.walk(ctx); err != nil {
		return err
	}
	s.endStage("fuse")
	s.rateAll()
	if err := s.rank(ctx); err != nil {
		return err
	}
	if err := s.widen(ctx); err != nil {
		return fmt.Errorf("complete the lists of the passages found: %w", err)
	}
	if err := s.reread(ctx); err != nil {
		return err
	}
	s.endStage("rerank")
	if err := s.reduce(ctx); err != nil {
		return err
	}
	s.found = s.found[:min(len(s.found), s.query.Limit)]
	for _, c := range s.found {
		s.results.Hits = append(s.results.Hits, c.hit)
	}
	s.endStage("thin")
	return nil
}

// maxRewrites is the most rewrites that a query may have; each is a separate search.
const maxRewrites = 8

func (s *search) check() error {
	q := s.query
	switch {
	case q.Mode != assay.ModeHybrid && q.Mode != assay.ModeText && q.Mode != assay.ModeVector:
		return fmt.Errorf("mode %q is neither %q nor %q: %w", q.Mode, assay.ModeText, assay.ModeVector, assay.ErrInvalid)
	case q.Fusion != assay.FusionWeighted && q.Fusion != assay.FusionRRF:
		return fmt.Errorf("fusion %q is not %q: %w", q.Fusion, assay.FusionRRF, assay.ErrInvalid)
	case !(0 <= q.VectorWeight && q.VectorWeight <= 1):
		return fmt.Errorf("vector weight %v is not in [0, 1]: %w", q.VectorWeight, assay.ErrInvalid)
	case !(0 <= q.Diversity && q.Diversity <= 1):
		return fmt.Errorf("diversity %v is not in [0, 1]: %w", q.Diversity, assay.ErrInvalid)
	case q.Walk != assay.WalkNear && q.Walk != assay.WalkFar:
		return fmt.Errorf("walk %q is not %q: %w", q.Walk, assay.WalkFar, assay.ErrInvalid)
	case len(q.From) > maxFrom:
		return fmt.Errorf("%d chunks to follow, at most %d: %w", len(q.From), maxFrom, assay.ErrInvalid)
	case len(q.Rewrites) > maxRewrites:
		return fmt.Errorf("%d rewrites, at most %d: %w", len(q.Rewrites), maxRewrites, assay.ErrInvalid)
	case q.Mode == assay.ModeVector && s.Embedder == nil:
		return fmt.Errorf("there is no encoder to search by vectors with: %w", assay.ErrInvalid)
	}
	return q.BM25.Check()
}

// note adds a search note to the results unless it is already there.
func (s *search) note(text string) { s.noteOf(assay.NoteSearch, text) }

// noteOf adds a note of a kind unless it is already there.
func (s *search) noteOf(kind assay.NoteKind, text string) {
	n := assay.Note{Kind: kind, Text: text}
	if text != "" && !slices.Contains(s.results.Notes, n) {
		s.results.Notes = append(s.results.Notes, n)
	}
}

// add returns the candidate for a chunk and adds it if it is new.
func (s *search) add(id string) *candidate {
	c := s.at[id]
	if c == nil {
		c = &candidate{of: make([]rating, len(s.wordings))}
		c.hit.Chunk.ID = id
		s.at[id] = c
		s.found = append(s.found, c)
	}
	return c
}

// read reads the passages of the candidates that were not read yet and rates them by the words of
// every wording.
func (s *search) read(ctx context.Context) error {
	first := slices.IndexFunc(s.found, func(c *candidate) bool { return c.passage.Chunk.ID == "" })
	if first < 0 {
		return nil
	}
	fresh := s.found[first:]
	ids := make([]string, len(fresh))
	for i, c := range fresh {
		ids[i] = c.hit.Chunk.ID
	}
	passages, err := s.Content.Passages(ctx, ids)
	if err != nil {
		return fmt.Errorf("read the passages found: %w", err)
	}
	s.endStage("read")
	for i, c := range fresh {
		c.passage, c.hit = passages[i], hitOf(passages[i])
		for j, w := range s.wordings {
			c.hit.Scores.BM25 = c.of[j].bm25
			c.of[j].read = w.rate.read(c.hit)
			c.of[j].words = w.rate.relevance(c.of[j].read)
		}
		own := c.of[0]
		c.hit.Scores.BM25, c.hit.Matched, c.hit.Scores.Relevance = own.bm25, own.matched, own.words
	}
	s.endStage("rate")
	return nil
}

func hitOf(p assay.Passage) assay.Hit {
	hit := assay.Hit{
		Chunk:      p.Chunk,
		Text:       p.Text,
		Collection: p.Collection,
		URI:        p.URI,
		Title:      p.Title,
		Language:   p.Language,
		Line:       p.Line,
		Page:       p.Page,
	}
	if hit.Chunk.Headings == nil {
		hit.Chunk.Headings = []string{}
	}
	return hit
}

// reduce drops near-duplicates, diversifies the hits if the query asks for it, and merges passages
// into their sections.
func (s *search) reduce(ctx context.Context) error {
	for _, step := range []func(context.Context) error{s.dropDuplicates, s.diversify, s.collapse} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// rateAll computes each candidate's relevance from its words and its similarity.
func (s *search) rateAll() {
	for _, c := range s.found {
		own := c.of[0]
		c.hit.Scores.Relevance = own.words
		if own.similarity != nil {
			c.hit.Scores.Relevance = s.wordings[0].rate.relevanceOf(own.read, s.Embedder.Model(), *own.similarity)
		}
	}
	s.endStage("rate")
}

// rank sorts the best candidates by the Ranker's scores. If the Ranker fails, the order stays and a
// note reports it.
func (s *search) rank(ctx context.Context) error {
	best := s.found[:min(len(s.found), ranked)]
	if s.Ranker == nil || s.query.Unranked || len(best) == 0 {
		return nil
	}
	all := func(*candidate) bool { return true }
	scores, err := s.rankOf(ctx, best, all, !slices.ContainsFunc(best, unknown))
	for i, c := range best {
		c.tie = i
	}
	if err == nil && slices.ContainsFunc(best, unknown) && slices.ContainsFunc(best, known) {
		var full []float64
		if full, err = s.rankOf(ctx, best, known, true); err == nil {
			var of []int
			scores, of = trade(scores, full, best)
			for i, c := range best {
				c.tie = of[i]
			}
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		s.note("the hits are not reranked: " + trimmed(err))
		return nil
	}
	for i, c := range best {
		c.hit.Scores.Rerank = &scores[i]
	}
	slices.SortFunc(best, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(*b.hit.Scores.Rerank, *a.hit.Scores.Rerank), cmp.Compare(a.tie, b.tie))
	})
	return nil
}

// rankOf returns the Ranker's scores of the candidates that keep selects, with or without their
// vectors; 0 for the others.
func (s *search) rankOf(ctx context.Context, best []*candidate, keep func(*candidate) bool, vectors bool) ([]float64, error) {
	found := s.results
	found.Hits = nil
	var at []int
	for i, c := range best {
		if keep(c) {
			hit := c.hit
			if !vectors {
				hit.Scores.Vector = nil
			}
			found.Hits, at = append(found.Hits, hit), append(at, i)
		}
	}
	got, err := s.Ranker.Rank(ctx, s.query, found)
	if err != nil {
		return nil, err
	}
	if len(got) != len(at) {
		return nil, fmt.Errorf("%d scores for %d hits", len(got), len(at))
	}
	scores := make([]float64, len(best))
	for i, x := range got {
		if x-x != 0 {
			return nil, fmt.Errorf("a score of %v", x)
		}
		scores[at[i]] = x
	}
	if a, ok := s.Ranker.(Accountant); ok && s.explain {
		for i, account := range a.Account(found) {
			best[at[i]].account = account
		}
	}
	return scores, nil
}

// known reports whether the similarity of a candidate to the query is known.
func known(c *candidate) bool { return c.hit.Scores.Vector != nil }

func unknown(c *candidate) bool { return !known(c) }

// trimmed returns an error's message shortened for a note, on one line.
func trimmed(err error) string {
	return cut(strings.Join(strings.Fields(err.Error()), " "), 200)
}

// cut returns at most the given number of first bytes of a text, with an ellipsis if it is longer.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " …"
}
