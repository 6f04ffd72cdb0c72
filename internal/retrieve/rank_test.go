package retrieve_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/graph"
	"github.com/assay-rag/assay/internal/retrieve"
)

// A lengthRanker is a Ranker that prefers long hits, or short ones if they have a similarity. It
// records its calls and can be made to fail.
type lengthRanker struct {
	mu    sync.Mutex
	calls [][]assay.Hit
	fault string
}

func (r *lengthRanker) Rank(_ context.Context, _ assay.Query, found assay.Results) ([]float64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, found.Hits)
	scores := make([]float64, len(found.Hits))
	for i, h := range found.Hits {
		scores[i] = float64(len(h.Text))
		if h.Scores.Vector != nil {
			scores[i] = -scores[i]
		}
	}
	switch r.fault {
	case "error":
		return nil, errors.New("out of order")
	case "few":
		return scores[1:], nil
	case "nan":
		scores[0] = math.NaN()
	}
	return scores, nil
}

// Account implements retrieve.Accountant.
func (r *lengthRanker) Account(found assay.Results) []map[string]float64 {
	accounts := make([]map[string]float64, len(found.Hits))
	for i, h := range found.Hits {
		accounts[i] = map[string]float64{"length": float64(len(h.Text))}
	}
	return accounts
}

func TestAccount(t *testing.T) {
	l := randomLibrary(rand.New(rand.NewPCG(2, 2)), 70)
	x := explained(t, l.open(t, retrieve.Config{Ranker: &lengthRanker{}}), assay.Query{Text: "copper bridge by the river"})
	if len(x.Hits) <= 50 {
		t.Fatalf("%d hits", len(x.Hits))
	}
	for i, h := range x.Hits {
		want := map[string]float64{"length": float64(len(x.Results.Hits[i].Text))}
		if i >= 50 {
			want = nil // not seen by the ranker
		}
		if diff := cmp.Diff(want, h.Rerank); diff != "" {
			t.Errorf("hit %d: -want +got\n%s", i, diff)
		}
	}
}

func TestRanker(t *testing.T) {
	rnd := rand.New(rand.NewPCG(11, 2))
	e := newEncoder()
	q := assay.Query{Text: "copper bridge by the river"}
	for _, share := range []float64{0, 0.5, 1} {
		l := randomLibrary(rnd, 90)
		covered := map[string]bool{}
		l.embed(e.Hashing, func(_ int, p assay.Passage) bool {
			covered[p.Chunk.ID] = rnd.Float64() < share
			return covered[p.Chunk.ID]
		})
		ranker := &lengthRanker{}
		found := retrieved(t, l.open(t, retrieve.Config{Embedder: e, Ranker: ranker}), q)
		if want := 1 + map[bool]int{true: 1}[share == 0.5]; len(ranker.calls) != want {
			t.Fatalf("share %v: %d calls of the ranker, want %d", share, len(ranker.calls), want)
		}
		for n, hits := range ranker.calls {
			for _, h := range hits {
				if want := share == 1 || n == 1; (h.Scores.Vector != nil) != want || h.Scores.Fused == nil {
					t.Errorf("share %v, call %d: scores %+v", share, n, h.Scores)
				}
			}
		}
		if len(ranker.calls[0]) != 50 {
			t.Errorf("the ranker saw %d hits, want 50", len(ranker.calls[0]))
		}
		// By words, the longest come first. The hits with a vector trade their places so that the
		// shortest of them comes first.
		var unknown, known []int
		for i, h := range found.Hits {
			if (h.Scores.Rerank != nil) != (i < 50) {
				t.Fatalf("hit %d has the rerank score %v", i, h.Scores.Rerank)
			}
			if i >= 50 {
				break
			}
			if i > 0 && *h.Scores.Rerank > *found.Hits[i-1].Scores.Rerank {
				t.Errorf("hit %d is out of order", i)
			}
			if covered[h.Chunk.ID] {
				known = append(known, len(h.Text))
			} else {
				unknown = append(unknown, -len(h.Text))
			}
		}
		if !slices.IsSorted(known) || !slices.IsSorted(unknown) {
			t.Errorf("share %v: known %v, unknown %v", share, known, unknown)
		}
		plain := retrieved(t, l.open(t, retrieve.Config{Embedder: e}), q)
		for _, fault := range []string{"error", "few", "nan"} {
			found := retrieved(t, l.open(t, retrieve.Config{Embedder: e, Ranker: &lengthRanker{fault: fault}}), q)
			if diff := cmp.Diff(plain.Hits, found.Hits); diff != "" {
				t.Errorf("%s: -without ranker +with\n%s", fault, diff)
			}
			if n := len(found.Notes); n == 0 || !strings.HasPrefix(found.Notes[n-1].Text, "the hits are not reranked: ") {
				t.Errorf("%s: notes %q", fault, found.Notes)
			}
		}
	}
}

// A walker is a Walker that returns fixed passages or fails.
type walker struct {
	scores []graph.Score
	err    error
	seeds  []graph.Seed
}

func (w *walker) Walk(_ context.Context, _ assay.Access, _ assay.Query, seeds []graph.Seed) ([]graph.Score, error) {
	w.seeds = seeds
	return w.scores, w.err
}

// TestUnranked checks that an unranked query keeps the fused order and does not call the Ranker.
func TestUnranked(t *testing.T) {
	l := randomLibrary(rand.New(rand.NewPCG(2, 2)), 70)
	ranker := &lengthRanker{}
	q := assay.Query{Text: "copper bridge by the river", Limit: 10}
	want := explained(t, l.open(t, retrieve.Config{}), q)
	q.Unranked = true
	got := explained(t, l.open(t, retrieve.Config{Ranker: ranker}), q)
	if diff := cmp.Diff(want.Results.Hits, got.Results.Hits); diff != "" || len(ranker.calls) > 0 {
		t.Errorf("asked %d times (-without a ranker +unranked):\n%s", len(ranker.calls), diff)
	}
}

// TestVectorWeight checks that a query's VectorWeight is used and that 0 means the default.
func TestVectorWeight(t *testing.T) {
	e := newEncoder()
	l := randomLibrary(rand.New(rand.NewPCG(2, 2)), 70)
	l.embed(e.Hashing, all)
	r := l.open(t, retrieve.Config{Embedder: e})
	at := func(weight float64) retrieve.Explanation {
		return explained(t, r, assay.Query{Text: "copper bridge by the river", Limit: 10, VectorWeight: weight})
	}
	if diff := cmp.Diff(at(0).Results.Hits, at(retrieve.VectorWeight).Results.Hits); diff != "" {
		t.Errorf("(-no weight +that of the default):\n%s", diff)
	}
	for _, h := range at(1).Hits {
		if h.Fusion.Words != 0 {
			t.Errorf("words have %v where vectors have all the weight", h.Fusion.Words)
		}
	}
	for _, weight := range []float64{-0.1, 1.1, math.NaN()} {
		if _, err := r.Retrieve(t.Context(), everyone, assay.Query{Text: "copper", Limit: 1, VectorWeight: weight}); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("a weight of %v: %v", weight, err)
		}
	}
}

func TestWalk(t *testing.T) {
	l := newLibrary()
	l.put("/start", "", "en", assay.ACL{}, "the copper bridge of Anna Miller")
	l.put("/word", "", "en", assay.ACL{}, strings.Repeat("valley coast storm market barley lamp ", 6)+"bridge")
	l.put("/led", "", "en", assay.ACL{}, "she was a poet and painter")
	id := func(uri string) string {
		for _, p := range l.passages() {
			if p.URI == uri {
				return p.Chunk.ID
			}
		}
		t.Fatal(uri)
		return ""
	}
	way := []graph.Step{{Entity: "anna miller", Chunk: id("/start")}}
	w := &walker{scores: []graph.Score{{Chunk: id("/led"), Mass: 0.4, Path: way}, {Chunk: id("/start"), Mass: 0.1}}}
	r := l.open(t, retrieve.Config{Graph: w})
	e, err := r.Explain(t.Context(), everyone, assay.Query{Text: "copper bridge", Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/start", "/led", "/word"}, uris(e.Results)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	led := e.Results.Hits[1].Scores
	if led.Graph == nil || *led.Graph != 0.4 || led.BM25 != nil || led.Relevance != 0 || math.Abs(*led.Fused-0.7) > 1e-9 {
		t.Errorf("what the walk led to has the scores %+v", led)
	}
	want := []retrieve.Step{{Entity: "anna miller", Chunk: id("/start")}}
	if diff := cmp.Diff(want, e.Hits[1].Path); diff != "" || e.Hits[1].Ranks.Graph != 1 {
		t.Errorf("ranks %+v, path: -want +got\n%s", e.Hits[1].Ranks, diff)
	}
	if len(w.seeds) != 2 || w.seeds[0].Chunk != id("/start") || w.seeds[0].Score != 1 {
		t.Errorf("the walk started from %+v", w.seeds)
	}
	far := retrieved(t, r, assay.Query{Text: "copper bridge", Limit: 10, Walk: assay.WalkFar, From: []string{id("/led"), id("/start"), "elsewhere"}})
	if fused := *far.Hits[1].Scores.Fused; far.Hits[1].URI != "/led" || math.Abs(fused-1.3) > 1e-9 {
		t.Errorf("a far walk gives what it leads to %v, want 1.3", fused)
	}
	var starts []string
	for _, s := range w.seeds {
		starts = append(starts, s.Chunk)
	}
	if diff := cmp.Diff([]string{id("/led"), id("/start"), "elsewhere", id("/word")}, starts); diff != "" {
		t.Errorf("a far walk starts from: -want +got\n%s", diff)
	}
	w.err = errors.New("lost the way")
	plain := retrieved(t, l.open(t, retrieve.Config{}), assay.Query{Text: "copper bridge"})
	found := retrieved(t, r, assay.Query{Text: "copper bridge"})
	if diff := cmp.Diff(plain.Hits, found.Hits); diff != "" || len(found.Notes) != 1 {
		t.Errorf("a walk that failed: notes %q, -without +with\n%s", found.Notes, diff)
	}
}

// TestWalkOfNouns checks that questions in languages that capitalise all nouns are not walked.
func TestWalkOfNouns(t *testing.T) {
	l := newLibrary()
	l.put("/de", "", "de", assay.ACL{}, "Die Brücke über den Fluss wurde aus Kupfer gebaut.")
	l.put("/en", "", "en", assay.ACL{}, "The bridge over the river was built of copper.")
	for question, walks := range map[string]bool{
		"Woraus wurde die Brücke gebaut?": false,
		"Kupfer Fluss":                    false,
		"What was the bridge built of?":   true,
		"copper river":                    true,
	} {
		w := &walker{}
		retrieved(t, l.open(t, retrieve.Config{Graph: w}), assay.Query{Text: question})
		if (len(w.seeds) > 0) != walks {
			t.Errorf("%q: a walk from %v, want one: %v", question, w.seeds, walks)
		}
	}
}

// TestWalkWithoutVectors checks that a walk ranks as in a text search if there are no vectors or if
// the encoder does not support the language.
func TestWalkWithoutVectors(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 3))
	e := newEncoder()
	for round := range 10 {
		l := randomLibrary(r, 60)
		l.embed(e.Hashing, func(int, assay.Passage) bool { return false })
		w := &walker{}
		for i, p := range l.passages() {
			if r.IntN(3) == 0 {
				w.scores = append(w.scores, graph.Score{Chunk: p.Chunk.ID, Mass: 1 / float64(i+2)})
			}
		}
		searcher := l.open(t, retrieve.Config{Embedder: e, Graph: w})
		q := assay.Query{Text: "copper bridge by the river", Fusion: []assay.Fusion{assay.FusionWeighted, assay.FusionRRF}[round%2]}
		text := q
		text.Mode = assay.ModeText
		if diff := cmp.Diff(retrieved(t, searcher, text).Hits, retrieved(t, searcher, q).Hits); diff != "" {
			t.Fatalf("-text +hybrid\n%s", diff)
		}
	}
}

// TestFusionTerms checks that the fusion terms add up to the fused score.
func TestFusionTerms(t *testing.T) {
	l := randomLibrary(rand.New(rand.NewPCG(7, 7)), 30)
	e := newEncoder()
	l.embed(e.Hashing, all)
	r := l.open(t, retrieve.Config{Embedder: e})
	for _, fusion := range []assay.Fusion{assay.FusionWeighted, assay.FusionRRF} {
		for _, mode := range []assay.Mode{assay.ModeText, assay.ModeVector, assay.ModeHybrid} {
			x := explained(t, r, assay.Query{Text: "copper bridge", Rewrites: []string{"old river"}, Fusion: fusion, Mode: mode})
			for i, h := range x.Hits {
				got, want := h.Fusion.Words+h.Fusion.Vector+h.Fusion.Graph, *x.Results.Hits[i].Scores.Fused
				if math.Abs(got-want) > 1e-9 {
					t.Errorf("fusion %q, mode %q: %+v is %v together, the fused score is %v", fusion, mode, h.Fusion, got, want)
				}
			}
			if len(x.Hits) == 0 {
				t.Errorf("fusion %q, mode %q: no hits", fusion, mode)
			}
		}
	}
}
