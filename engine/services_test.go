package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
)

// A remote is an encoder that is a service.
type remote struct {
	*llmtest.Hashing
	facts llm.Facts
	calls atomic.Int64

	mu  sync.Mutex
	err error // if set, its calls fail with this error
}

func (r *remote) Facts() llm.Facts { return r.facts }

func (r *remote) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func (r *remote) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	cost := assay.Usage{Calls: 1, InputTokens: 10 * len(texts)}
	if err := llm.Room(ctx, cost); err != nil {
		return nil, err
	}
	r.calls.Add(1)
	llm.Report(ctx, cost)
	r.mu.Lock()
	err := r.err
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return r.Hashing.Embed(ctx, p, texts)
}

// openRemote opens a data directory with documents and an encoder that is a service.
func openRemote(t *testing.T, models Models) (*Engine, *remote) {
	t.Helper()
	const name = "far/64"
	encoder := &remote{Hashing: &llmtest.Hashing{Name: name, Dimensions: 64}}
	encoders := someEncoders(name)
	encoders.byName[name] = encoder
	e := openConfig(t, Config{Dir: t.TempDir(), Encoders: encoders, NoBackground: true, Models: models})
	ingestPaths(t, e, "testdata/handbook")
	return e, encoder
}

// TestSearchesAreCharged checks that the usage of the encoder and the reranker in a search is
// charged to the run, and that a replay charges the same.
func TestSearchesAreCharged(t *testing.T) {
	t.Parallel()
	best := &reading{name: "far/rerank"}
	e, encoder := openRemote(t, Models{Reranker: best})
	if _, err := e.Embed(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	encoder.calls.Store(0)
	a, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion})
	if err != nil || a.Status != assay.Answered {
		t.Fatalf("%s, %v", a.Status, err)
	}
	if want := int(encoder.calls.Load() + best.calls.Load()); a.Usage.Calls != want || want != 2*a.Usage.Searches {
		t.Errorf("%d calls are charged, %d were made for %d searches", a.Usage.Calls, want, a.Usage.Searches)
	}
	if len(a.Notes) > 0 {
		t.Errorf("notes %q", a.Notes)
	}
	if last := a.Roles[len(a.Roles)-1]; last.Role != assay.SearchRole || last.Model != "far/64 + far/rerank" || last.Usage.Calls != a.Usage.Calls {
		t.Errorf("roles %+v, want what searched at the end", a.Roles)
	}
	replays(t, e, a.Run)
}

// TestSearchesArePriced checks that a search is charged at the configured price and keeps to the
// cost limit.
func TestSearchesArePriced(t *testing.T) {
	t.Parallel()
	best := &reading{name: "far/rerank", facts: llm.Facts{Priced: true}}
	e, encoder := openRemote(t, Models{Reranker: best})
	encoder.facts = llm.Facts{Priced: true, Input: 2_000_000}
	for _, cost := range []int64{5, 1000} {
		a, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion, Budget: assay.Budget{CostMicros: cost}})
		if err != nil || a.Status != assay.Answered {
			t.Fatalf("%s, %v", a.Status, err)
		}
		if want := int64(2 * a.Usage.InputTokens); a.Usage.CostMicros != want || want > cost || (cost == 1000) != (want > 0) {
			t.Errorf("of %d at most %d were spent, want %d", cost, a.Usage.CostMicros, want)
		}
		replays(t, e, a.Run)
	}
}

// TestSearchesKeepToTheBudget checks that a search runs without its encoder and reranker if the
// budget has no room for them.
func TestSearchesKeepToTheBudget(t *testing.T) {
	t.Parallel()
	for calls := 1; calls <= 4; calls++ {
		best := &reading{name: "far/rerank"}
		e, encoder := openRemote(t, Models{Reranker: best})
		a, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion, Strategy: "corrective", Budget: assay.Budget{Calls: calls}})
		if err != nil {
			t.Fatal(err)
		}
		if made := int(encoder.calls.Load() + best.calls.Load()); made > calls || a.Usage.Calls != made {
			t.Errorf("of %d calls %d were made and %d charged", calls, made, a.Usage.Calls)
		}
		if calls == 1 && (a.Status != assay.Answered || !slices.ContainsFunc(noteTexts(a.Notes), func(n string) bool { return strings.Contains(n, "left of the calls") })) {
			t.Errorf("%s, notes %q", a.Status, a.Notes)
		}
		replays(t, e, a.Run)
	}
}

// TestEncoderIsDown checks that an unavailable encoder prevents neither answers nor ingests and
// is not retried endlessly.
func TestEncoderIsDown(t *testing.T) {
	t.Parallel()
	for _, kind := range []llm.ErrorKind{llm.Unreachable, llm.RateLimited, llm.BadKey, llm.TimedOut} {
		e, encoder := openRemote(t, Models{})
		encoder.fail(&llm.Error{Model: "far/64", Kind: kind, Message: "not now"})
		a, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion})
		if err != nil || a.Status != assay.Answered {
			t.Fatalf("%s: %s, %v", kind, a.Status, err)
		}
		if want := "searched by text alone: far/64: " + string(kind) + ": not now"; !slices.Contains(noteTexts(a.Notes), want) {
			t.Errorf("%s: notes %q, want %q", kind, a.Notes, want)
		}
		if n := encoder.calls.Load(); n > int64(2*a.Usage.Searches) {
			t.Errorf("%s: %d calls for %d searches", kind, n, a.Usage.Searches)
		}
		replays(t, e, a.Run)

		encoder.calls.Store(0)
		report, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{writeNotes(t, 0, 40)}, Wait: true})
		if report.Added != 40 {
			t.Errorf("%s: %d documents added, %v", kind, report.Added, err)
		}
		if n := encoder.calls.Load(); n > 2 {
			t.Errorf("%s: %d calls of an encoder that is down", kind, n)
		}
		if !errors.Is(err, assay.ErrUnavailable) {
			t.Errorf("%s: who waited for the vectors is told %v", kind, err)
		}
		encoder.fail(nil)
		if _, err := e.Embed(t.Context(), nil); err != nil {
			t.Errorf("%s: once it is back: %v", kind, err)
		}
		if r := searchFor(t, e, "lantern7"); len(r.Hits) == 0 || r.Index.Coverage < 1 || len(r.Notes) > 0 {
			t.Errorf("%s: once it is back: %d hits, coverage %v, notes %q", kind, len(r.Hits), r.Index.Coverage, r.Notes)
		}
	}
}

// TestEncoderIsSlow checks that an encoder that does not reply delays a search only for a limited
// time.
func TestEncoderIsSlow(t *testing.T) {
	t.Parallel()
	slow := embedderFunc(func(ctx context.Context) ([]llm.Vector, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	_, err := (&timeoutEmbedder{slow, time.Millisecond}).Embed(t.Context(), llm.Query, []string{"x"})
	if !errors.Is(err, assay.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "within 1ms") {
		t.Errorf("error = %v, want ErrUnavailable", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&timeoutEmbedder{slow, time.Hour}).Embed(ctx, llm.Query, []string{"x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want Canceled", err)
	}
}

type embedderFunc func(context.Context) ([]llm.Vector, error)

func (embedderFunc) Model() string { return "slow" }
func (f embedderFunc) Embed(ctx context.Context, _ llm.Purpose, _ []string) ([]llm.Vector, error) {
	return f(ctx)
}

// A reading is a reranker that is a service and prefers short texts.
type reading struct {
	name  string
	facts llm.Facts
	calls atomic.Int64
	score func(texts []string) ([]float64, error) // nil: scores by length
}

func (r *reading) Model() string    { return r.name }
func (r *reading) Facts() llm.Facts { return r.facts }

func (r *reading) Rerank(ctx context.Context, _ string, texts []string) ([]float64, error) {
	if err := llm.Room(ctx, assay.Usage{Calls: 1}); err != nil {
		return nil, err
	}
	r.calls.Add(1)
	llm.Report(ctx, assay.Usage{Calls: 1})
	if r.score != nil {
		return r.score(texts)
	}
	scores := make([]float64, len(texts))
	for i, text := range texts {
		scores[i] = -float64(len(text))
	}
	return scores, nil
}

func TestReranker(t *testing.T) {
	t.Parallel()
	shortFirst := func(r assay.Results) bool {
		return slices.IsSortedFunc(r.Hits, func(a, b assay.Hit) int {
			length := func(h assay.Hit) int {
				return len(assay.Passage{Chunk: h.Chunk, Text: h.Text, Title: h.Title}.Words())
			}
			return length(a) - length(b)
		})
	}
	const query = "approved team days"
	best := &reading{name: "far/rerank"}
	e := openModels(t, Models{Reranker: best})
	r := searchFor(t, e, query)
	if len(r.Hits) < 3 || !shortFirst(r) || best.calls.Load() != 1 || len(r.Notes) > 0 {
		t.Errorf("%d hits, short ones first: %v, after %d calls, notes %q", len(r.Hits), shortFirst(r), best.calls.Load(), r.Notes)
	}
	for name, score := range map[string]func([]string) ([]float64, error){
		"fails": func([]string) ([]float64, error) {
			return nil, &llm.Error{Model: "far/rerank", Kind: llm.Overloaded, Message: "later"}
		},
		"too few": func([]string) ([]float64, error) { return []float64{1}, nil },
		"nothing": func([]string) ([]float64, error) { return nil, nil },
	} {
		local := searchFor(t, openModels(t, Models{}), query)
		best := &reading{name: "far/rerank", score: score}
		r := searchFor(t, openModels(t, Models{Reranker: best}), query)
		if len(r.Notes) != 1 || !strings.HasSuffix(r.Notes[0].Text, "; the local reranker stood in") || !strings.Contains(r.Notes[0].Text, "far/rerank") {
			t.Errorf("%s: notes %q", name, r.Notes)
		}
		if fmt.Sprint(titles(r)) != fmt.Sprint(titles(local)) {
			t.Errorf("%s: %q, want the local order %q", name, titles(r), titles(local))
		}
		if n := best.calls.Load(); n != 1 {
			t.Errorf("%s: %d calls for one search", name, n)
		}
	}
	a, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion, Local: true})
	if err != nil || a.Usage.Calls != 0 {
		t.Errorf("a local question made %d calls, %v", a.Usage.Calls, err)
	}
	if _, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion, Budget: assay.Budget{CostMicros: 9}}); !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), "far/rerank") {
		t.Errorf("its price is not known: %v", err)
	}
}

func titles(r assay.Results) []string {
	var list []string
	for _, h := range r.Hits {
		list = append(list, h.Title+" › "+strings.Join(h.Chunk.Headings, " › "))
	}
	return list
}
