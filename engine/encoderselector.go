package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/rerank"
	"github.com/assay-rag/assay/internal/retrieve"
	"github.com/assay-rag/assay/internal/role/prompted"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/store"
)

// encoderSelector decides which model's vectors are searched. It is the wanted model unless another
// model has embedded more passages. Then the other model serves until the wanted one has caught
// up.
type encoderSelector struct {
	tenant   store.Tenant
	content  store.Content
	encoders *encoderCache
	now      func() time.Time

	mu   sync.Mutex
	last *encoderSelection // nil: none yet
	seen string            // encoder setting and models that last is based on
	next time.Time         // when to compare the coverage of the models again
}

// encoderSelection is the decision of an encoderSelector.
type encoderSelection struct {
	wanted   string       // model that passages are embedded with; empty: none
	serving  string       // model whose vectors are searched; empty: text only
	embedder llm.Embedder // encoder of the serving model; nil: text only
	notes    []assay.Note // notes for the results
	problem  error        // why the wanted encoder cannot be used; nil: it can, or is not needed yet
}

// The coverage of two models is compared at most once per rechoose, and in at most
// 1/rechooseShare of the time, because a count reads every chunk. A dropped model is noticed
// immediately.
const (
	rechoose      = 10 * time.Second
	rechooseShare = 100
)

// selection returns the current selection. It is cheap while nothing has changed.
func (c *encoderSelector) selection(ctx context.Context) (*encoderSelection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.encoders.from == nil {
		return &encoderSelection{}, nil
	}
	models, err := c.content.Models(ctx)
	if err != nil {
		return nil, err
	}
	setting, err := c.tenant.Setting(ctx, encoderSetting)
	if err != nil {
		return nil, err
	}
	seen := string(setting) + "\n" + strings.Join(models, "\n")
	steady := c.last != nil && len(models) < 2 && c.last.problem == nil && c.last.serving == c.last.wanted
	if c.last != nil && c.seen == seen && (steady || c.now().Before(c.next)) {
		return c.last, nil
	}
	began := time.Now()
	next, err := c.decide(ctx, setting, models)
	if err != nil {
		return nil, err
	}
	c.last, c.seen = next, seen
	c.next = c.now().Add(max(rechoose, rechooseShare*time.Since(began)))
	return next, nil
}

// forget makes the next choose decide again.
func (c *encoderSelector) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = nil
}

// decide makes the selection. An error comes from the store or means that ctx has ended.
func (c *encoderSelector) decide(ctx context.Context, setting []byte, models []string) (*encoderSelection, error) {
	stored, err := decodeEncoder(setting)
	if err != nil {
		return &encoderSelection{problem: err, notes: []assay.Note{searchNote(textAlone(err))}}, nil
	}
	next := &encoderSelection{wanted: cmp.Or(stored.Model, c.encoders.standard())}
	if next.wanted == "" {
		return next, nil
	}
	ahead, err := c.ahead(ctx, next.wanted, models)
	if err != nil {
		return nil, err
	}
	for _, m := range ahead {
		e, err := c.encoders.open(ctx, m.model)
		if err != nil {
			continue // its vectors cannot be searched without the encoder
		}
		next.serving, next.embedder = m.model, e
		// The note does not state the coverage, because the reader may not see all passages.
		why := "are not all made yet"
		if err := c.encoders.failure(next.wanted); err != nil {
			why = fmt.Sprintf("cannot be made: %v", err)
		}
		next.notes = []assay.Note{searchNote(fmt.Sprintf("searched with the vectors of %s: those of %s %s", m.model, next.wanted, why))}
		return next, ctx.Err()
	}
	if next.embedder, next.problem = c.encoders.open(ctx, next.wanted); next.problem == nil {
		next.serving = next.wanted
	} else {
		next.notes = []assay.Note{searchNote(textAlone(next.problem))}
	}
	return next, ctx.Err()
}

// textAlone returns the text of a note that searches use no vectors because of err.
func textAlone(err error) string { return fmt.Sprintf("searched by text alone: %v", err) }

// A leader is a model with more vectors than the wanted one.
type leader struct {
	model    string
	embedded int
}

// ahead returns the models that have more vectors than the wanted one, most vectors first.
func (c *encoderSelector) ahead(ctx context.Context, wanted string, models []string) ([]leader, error) {
	others := slices.DeleteFunc(slices.Clone(models), func(m string) bool { return m == wanted })
	if len(others) == 0 {
		return nil, nil
	}
	have, err := c.content.Coverage(ctx, wanted)
	if err != nil {
		return nil, err
	}
	var ahead []leader
	for _, m := range others {
		n, err := c.content.Coverage(ctx, m)
		if err != nil {
			return nil, err
		}
		if n.Embedded > have.Embedded {
			ahead = append(ahead, leader{m, n.Embedded})
		}
	}
	slices.SortStableFunc(ahead, func(a, b leader) int { return cmp.Compare(b.embedded, a.embedded) })
	return ahead, nil
}

// A searcher is a retriever that adds the notes of its encoder and reranker to all results.
type searcher struct {
	retriever *retrieve.Retriever
	notes     []assay.Note
	filler    func(*fillBudget) retrieve.Filler // nil: vectors are not filled in
	encoder   string                            // name of the encoder; empty: none
	remote    bool                              // the encoder is a service
	ranker    *rerank.Texts                     // reranker model; nil: none
	local     retrieve.Ranker                   // fallback for ranker
	domain    *prompted.Domain                  // vocabulary for query rewrites; nil: none
}

// variants is how many rewrites of a query in the domain's vocabulary are searched with it.
const variants = 2

// worded returns q with rewrites in the domain's vocabulary, unless q has rewrites.
func (s *searcher) worded(q assay.Query) assay.Query {
	if len(q.Rewrites) == 0 {
		q.Rewrites = s.domain.Variants(q.Text, variants)
	}
	return q
}

// forRun returns a searcher for one run. It waits for vectors no longer than the run's wall time
// allows, and not at all if the encoder is a service and the run has a limit on calls, tokens or
// cost.
func (s *searcher) forRun(req storedRequest) *searcher {
	b := req.Budget
	run := *s.within(newFillBudget(b.Wall))
	if counted := b.Calls > 0 || b.Tokens > 0 || b.CostMicros > 0; s.remote && counted {
		run.retriever = s.retriever.WithFill(nil)
	}
	if req.Local {
		run.ranker, run.domain = nil, nil
	}
	return &run
}

// services names the encoder and the reranker if they are services.
func (s *searcher) services() string {
	var names []string
	if s.remote {
		names = append(names, s.encoder)
	}
	if s.ranker != nil && isService(s.ranker.Model) {
		names = append(names, s.ranker.Model.Model())
	}
	return strings.Join(names, " + ")
}

// within returns a searcher that waits for vectors within a.
func (s *searcher) within(a *fillBudget) *searcher {
	other := *s
	if s.filler != nil {
		other.retriever = s.retriever.WithFill(s.filler(a))
	}
	return &other
}

// forOne returns the retriever for one search and the ranker of its hits, which is nil without a
// reranker model.
func (s *searcher) forOne() (*retrieve.Retriever, *modelRanker) {
	if s.ranker == nil {
		return s.retriever, nil
	}
	r := &modelRanker{texts: *s.ranker, local: s.local}
	return s.retriever.WithRanker(r), r
}

// Retrieve implements assay.Retriever.
func (s *searcher) Retrieve(ctx context.Context, access assay.Access, q assay.Query) (assay.Results, error) {
	retriever, ranker := s.forOne()
	r, err := retriever.Retrieve(ctx, access, s.worded(q))
	s.note(&r, q, ranker)
	return r, err
}

// Explain runs Retrieve and also returns how the results were found.
func (s *searcher) Explain(ctx context.Context, access assay.Access, q assay.Query) (retrieve.Explanation, error) {
	retriever, ranker := s.forOne()
	e, err := retriever.Explain(ctx, access, s.worded(q))
	s.note(&e.Results, q, ranker)
	return e, err
}

func (s *searcher) note(r *assay.Results, q assay.Query, ranker *modelRanker) {
	if q.Mode != assay.ModeText { // text searches use no encoder
		r.Notes = append(slices.Clone(s.notes), r.Notes...)
	}
	if ranker != nil && ranker.failed != "" {
		r.Notes = append(slices.Clone(r.Notes), assay.Note{Kind: assay.NoteReranker, Text: ranker.failed})
	}
}

func searchNote(text string) assay.Note { return assay.Note{Kind: assay.NoteSearch, Text: text} }
