package retrieve_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/graph"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/retrieve"
)

func TestModes(t *testing.T) {
	l := newLibrary()
	l.put("/both", "", "en", assay.ACL{}, "the copper bridge over the river")
	l.put("/word", "", "en", assay.ACL{}, strings.Repeat("valley coast storm market barley lamp ", 6)+"bridge")
	l.put("/none", "", "en", assay.ACL{}, "a poet and a painter")
	e := newEncoder()
	l.embed(e.Hashing, all)
	r := l.open(t, retrieve.Config{Embedder: e})
	for _, test := range []struct {
		mode   assay.Mode
		want   []string
		vector bool
	}{
		{assay.ModeText, []string{"/both", "/word"}, false},
		{assay.ModeHybrid, []string{"/both", "/word", "/none"}, true},
		{assay.ModeVector, []string{"/both", "/word", "/none"}, true},
	} {
		for _, fusion := range []assay.Fusion{assay.FusionWeighted, assay.FusionRRF} {
			found := retrieved(t, r, assay.Query{Text: "copper bridge", Mode: test.mode, Fusion: fusion})
			if diff := cmp.Diff(test.want, uris(found)); diff != "" {
				t.Errorf("mode %q, fusion %q: -want +got\n%s", test.mode, fusion, diff)
			}
			for _, h := range found.Hits {
				if (h.Scores.Vector != nil) != test.vector || h.Scores.Fused == nil || h.Scores.Graph != nil || h.Scores.Rerank != nil {
					t.Errorf("mode %q: scores of %s are %+v", test.mode, h.URI, h.Scores)
				}
				if held := h.URI != "/none"; held != (h.Scores.BM25 != nil) || held != (len(h.Matched) > 0) || held != (h.Scores.Relevance > 0) {
					t.Errorf("mode %q: %s has scores %+v and matched %q", test.mode, h.URI, h.Scores, h.Matched)
				}
			}
			if want := map[bool]string{true: e.Model()}[test.vector]; found.Index.Model != want || len(found.Notes) > 0 {
				t.Errorf("mode %q: index %+v, notes %q", test.mode, found.Index, found.Notes)
			}
		}
	}
	if found := retrieved(t, r, assay.Query{Text: "the of and"}); len(found.Hits) != 0 {
		t.Errorf("text without a term found %q", uris(found))
	}
	if found := retrieved(t, r, assay.Query{Text: "copper bridge", Limit: 1}); len(found.Hits) != 1 {
		t.Errorf("limit 1: %q", uris(found))
	}
}

func TestInvalid(t *testing.T) {
	l := newLibrary()
	l.put("/1", "", "en", assay.ACL{}, "copper")
	r := l.open(t, retrieve.Config{})
	ok := assay.Query{Text: "copper", Limit: 1}
	for name, change := range map[string]func(*assay.Query){
		"limit":                  func(q *assay.Query) { q.Limit = 0 },
		"mode":                   func(q *assay.Query) { q.Mode = "both" },
		"vector, no encoder":     func(q *assay.Query) { q.Mode = assay.ModeVector },
		"fusion":                 func(q *assay.Query) { q.Fusion = "borda" },
		"diversity over 1":       func(q *assay.Query) { q.Diversity = 1.01 },
		"diversity under 0":      func(q *assay.Query) { q.Diversity = -0.01 },
		"diversity not a number": func(q *assay.Query) { q.Diversity = math.NaN() },
		"rewrites":               func(q *assay.Query) { q.Rewrites = make([]string, 9) },
	} {
		q := ok
		change(&q)
		if _, err := r.Retrieve(t.Context(), everyone, q); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: error %v, want ErrInvalid", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Retrieve(ctx, everyone, ok); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled search: %v", err)
	}
}

// Whatever part of the passages has vectors, one without keeps the place that
// words give it, and with all of them or none the order is that of the whole
// fusion or of text.
func TestUnknownKeepsItsPlace(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	e := newEncoder()
	for round := range 40 {
		share := []float64{0, 0.1, 0.5, 0.9, 1}[round%5]
		l := randomLibrary(r, 80)
		covered := map[string]bool{}
		l.embed(e.Hashing, func(_ int, p assay.Passage) bool {
			covered[p.Chunk.ID] = r.Float64() < share
			return covered[p.Chunk.ID]
		})
		searcher := l.open(t, retrieve.Config{Embedder: e})
		q := assay.Query{Text: "copper bridge by the river", Fusion: []assay.Fusion{assay.FusionWeighted, assay.FusionRRF}[round/5%2]}
		text, hybrid := q, q
		text.Mode = assay.ModeText
		byText, found := retrieved(t, searcher, text), retrieved(t, searcher, hybrid)
		if share == 0 {
			if diff := cmp.Diff(uris(byText), uris(found)); diff != "" {
				t.Errorf("without vectors: -text +hybrid\n%s", diff)
			}
		}
		place := map[string]int{}
		for i, h := range found.Hits {
			place[h.Chunk.ID] = i
			if (h.Scores.Vector != nil) != covered[h.Chunk.ID] {
				t.Fatalf("%s has the similarity %v, covered %v", h.URI, h.Scores.Vector, covered[h.Chunk.ID])
			}
		}
		for i, h := range byText.Hits {
			if got, ok := place[h.Chunk.ID]; !ok || !covered[h.Chunk.ID] && got != i {
				t.Errorf("round %d, share %v: %s has no vector and is at %d (found %v), want %d", round, share, h.URI, got, ok, i)
			}
		}
		if note := retrieve.CoverageNote(found.Index); share < 1 && (note == "" || !slices.Contains(found.Notes, note)) {
			t.Errorf("coverage %v: notes %q lack %q", found.Index.Coverage, found.Notes, note)
		}
		if share == 1 && (len(found.Notes) > 0 || found.Index.Coverage != 1) {
			t.Errorf("whole coverage: notes %q, %+v", found.Notes, found.Index)
		}
	}
}

// What may not be seen changes nothing of what is found.
func TestHidden(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	hidden, err := assay.RestrictTo("user:ann")
	if err != nil {
		t.Fatal(err)
	}
	e := newEncoder()
	for range 10 {
		seed := r.Uint64()
		open := func(secrets int) *retrieve.Retriever {
			l := randomLibrary(rand.New(rand.NewPCG(seed, 1)), 40)
			for i := range secrets {
				text := fmt.Sprintf("copper bridge by the river %s", randomText(r, 3))
				l.putLeaves(fmt.Sprintf("/secret%d", i), "Copper Bridge", "en", hidden, leaf{"", text, "s"}, leaf{"", text + " again", "s"})
			}
			l.embed(e.Hashing, all)
			return l.open(t, retrieve.Config{Embedder: e})
		}
		without, with := open(0), open(20)
		for _, q := range []assay.Query{
			{Text: "copper bridge by the river"},
			{Text: "copper bridge by the river", Mode: assay.ModeText},
			{Text: "copper bridge", Mode: assay.ModeVector},
			{Text: "the castle", Rewrites: []string{"copper bridge by the river"}},
		} {
			want, got := explained(t, without, q), explained(t, with, q)
			// A vector's code depends on those beside it, in its last digits, and so may
			// the order of what is nearly equal.
			ignore := cmp.Options{
				cmpopts.IgnoreFields(assay.IndexVersion{}, "Sequence"),
				cmpopts.IgnoreTypes([]retrieve.Stage{}, retrieve.Ranks{}),
				cmpopts.EquateApprox(0, 5e-3),
				cmpopts.SortSlices(func(a, b assay.Hit) bool { return a.Chunk.ID < b.Chunk.ID }),
				cmpopts.IgnoreFields(retrieve.Explanation{}, "Hits"),
			}
			if diff := cmp.Diff(want, got, ignore); diff != "" {
				t.Errorf("%+v: hidden documents change the result: -without +with\n%s", q, diff)
			}
			if found := retrievedBy(t, with, assay.Access{}, q); len(found.Hits) != 0 || found.Chunks != 0 {
				t.Errorf("nobody sees %q", uris(found))
			}
		}
		ann := assay.Principal{User: "ann"}.Access()
		if found := retrievedBy(t, with, ann, assay.Query{Text: "copper bridge"}); !strings.HasPrefix(found.Hits[0].URI, "/secret") {
			t.Errorf("ann finds %q first", found.Hits[0].URI)
		}
	}
}

func explained(t *testing.T, r *retrieve.Retriever, q assay.Query) retrieve.Explanation {
	t.Helper()
	q.Limit = 100
	e, err := r.Explain(t.Context(), everyone, q)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// An encoder that breaks leaves the text search as it is, and a note; where vectors
// were asked for alone it is an error.
func TestHostileEncoder(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	l := randomLibrary(r, 40)
	e := newEncoder()
	l.embed(e.Hashing, all)
	text := retrieved(t, l.open(t, retrieve.Config{}), assay.Query{Text: "copper bridge"})
	for _, fault := range llmtest.Faults {
		if fault == llmtest.Blocks {
			continue
		}
		searcher := l.open(t, retrieve.Config{Embedder: llmtest.Hostile(e, fault)})
		found := retrieved(t, searcher, assay.Query{Text: "copper bridge", Rewrites: []string{"a bridge of copper"}})
		if fault == llmtest.HalfThenError || found.Index.Model == "" {
			plain := retrieved(t, searcher, assay.Query{Text: "copper bridge"})
			if diff := cmp.Diff(text.Hits, plain.Hits); diff != "" && fault != llmtest.OtherDimension {
				t.Errorf("%s: -text +got\n%s", fault, diff)
			}
		}
		if len(found.Notes) != 1 || !strings.HasPrefix(found.Notes[0], "searched by text alone: ") || found.Index.Model != "" {
			t.Errorf("%s: notes %q, model %q", fault, found.Notes, found.Index.Model)
		}
		if _, err := searcher.Retrieve(t.Context(), everyone, assay.Query{Text: "copper", Rewrites: []string{"bronze"}, Mode: assay.ModeVector, Limit: 1}); err == nil {
			t.Errorf("%s: a search by vectors alone found something", fault)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if _, err := l.open(t, retrieve.Config{Embedder: llmtest.Hostile(e, llmtest.Blocks)}).Retrieve(ctx, everyone, assay.Query{Text: "copper", Limit: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("an encoder that never answers: %v", err)
	}
	long := strings.Repeat("copper ", 600)
	found := retrieved(t, l.open(t, retrieve.Config{Embedder: e}), assay.Query{Text: long})
	if len(found.Hits) == 0 || len(found.Notes) != 1 || !strings.Contains(found.Notes[0], "602 tokens") {
		t.Errorf("a query over the limit: %d hits, notes %q", len(found.Hits), found.Notes)
	}
	other := encoder{&llmtest.Hashing{Name: e.Model(), Dimensions: 32}}
	found = retrieved(t, l.open(t, retrieve.Config{Embedder: other}), assay.Query{Text: "copper bridge"})
	if diff := cmp.Diff(text.Hits, found.Hits); diff != "" || len(found.Notes) != 1 {
		t.Errorf("vectors of another dimension: notes %q, -text +got\n%s", found.Notes, diff)
	}
}

func TestFill(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	l := randomLibrary(r, 120)
	e := newEncoder()
	l.embed(e.Hashing, func(i int, _ assay.Passage) bool { return i%4 == 0 })
	var asked [][]assay.Passage
	plain := l.open(t, retrieve.Config{Embedder: e})
	q := assay.Query{Text: "copper bridge by the river", Mode: assay.ModeText}
	text := retrieved(t, plain, q)
	q.Mode = assay.ModeHybrid
	found := retrieved(t, plain.WithFill(made(e, &asked)), q)
	var want []string // the best by words that have no vector
	has := map[string]bool{}
	for _, v := range l.vectors {
		has[v.Chunk] = true
	}
	for _, h := range text.Hits {
		if !has[h.Chunk.ID] && len(want) < 40 {
			want = append(want, h.URI)
		}
	}
	var got []string
	for _, p := range asked[0] {
		got = append(got, p.URI)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(asked) != 1 {
		t.Errorf("filled in, in %d calls: -want +got\n%s", len(asked), diff)
	}
	query := e.Vector(q.Text)
	for _, h := range found.Hits {
		filled := slices.Contains(want, h.URI)
		if (h.Scores.Vector != nil) != (filled || has[h.Chunk.ID]) {
			t.Errorf("%s, filled in %v, has the similarity %v", h.URI, filled, h.Scores.Vector)
		}
		if filled {
			sum := 0.0
			for i, x := range e.Vector(l.chunks[h.Chunk.ID].Words()) {
				sum += float64(x) * float64(query[i])
			}
			if math.Abs(sum-*h.Scores.Vector) > 1e-6 {
				t.Errorf("%s has the similarity %v, want %v", h.URI, *h.Scores.Vector, sum)
			}
		}
	}
	want40 := retrieved(t, plain, q)
	for name, fill := range map[string]retrieve.Filler{
		"nothing made": func(_ context.Context, _ string, ps []assay.Passage) ([][]float32, error) {
			return make([][]float32, len(ps)), nil
		},
		"other dimensions": func(_ context.Context, _ string, ps []assay.Passage) ([][]float32, error) {
			return slices.Repeat([][]float32{{1, 0}}, len(ps)), nil
		},
		"zeros": func(_ context.Context, _ string, ps []assay.Passage) ([][]float32, error) {
			return slices.Repeat([][]float32{make([]float32, 64)}, len(ps)), nil
		},
	} {
		if diff := cmp.Diff(want40.Hits, retrieved(t, plain.WithFill(fill), q).Hits); diff != "" {
			t.Errorf("%s: -without +with\n%s", name, diff)
		}
	}
	short := func(_ context.Context, _ string, ps []assay.Passage) ([][]float32, error) {
		return make([][]float32, 1), nil
	}
	if broken := retrieved(t, plain.WithFill(short), q); len(broken.Hits) == 0 || !strings.HasPrefix(strings.Join(broken.Notes, ""), "searched by text alone: 1 vectors filled in") {
		t.Errorf("too few filled in: %d hits, notes %q", len(broken.Hits), broken.Notes)
	}
}

func TestLanguages(t *testing.T) {
	l := newLibrary()
	german := []string{"Die Brücke über den Fluss wurde aus Kupfer gebaut.", "Der Turm der Burg stand am Hafen der Insel.", "Ein Maler malte den Winter im Tal."}
	for i, text := range german {
		l.put(fmt.Sprintf("/de%d", i), "", "de", assay.ACL{}, text)
	}
	l.put("/en0", "", "en", assay.ACL{}, "The bridge over the river was built of copper.")
	l.put("/en1", "", "en", assay.ACL{}, "A painter and the winter.")
	e := newEncoder()
	l.embed(e.Hashing, all)
	r := l.open(t, retrieve.Config{Embedder: e})
	for _, test := range []struct {
		question string
		note     string
		vectors  []string // that were used
	}{
		{"Aus welchem Material wurde die Brücke über den Fluss gebaut?", "the question is in German, the encoder hashing/64 was made for English", nil},
		{"Kupfer Turm Hafen", "the question is in German, the encoder hashing/64 was made for English", nil},
		{"What was the bridge built of?", "", []string{"/en0", "/en1"}},
		{"copper painter", "", []string{"/en0", "/en1"}},
	} {
		text := retrieved(t, r, assay.Query{Text: test.question, Mode: assay.ModeText})
		found := retrieved(t, r, assay.Query{Text: test.question})
		if test.note != "" {
			if diff := cmp.Diff(text.Hits, found.Hits); diff != "" || !slices.Contains(found.Notes, test.note) {
				t.Errorf("%q: notes %q, -text +got\n%s", test.question, found.Notes, diff)
			}
			continue
		}
		var vectors []string
		for _, h := range found.Hits {
			if h.Scores.Vector != nil {
				vectors = append(vectors, h.URI)
			}
		}
		slices.Sort(vectors)
		if diff := cmp.Diff(test.vectors, vectors); diff != "" {
			t.Errorf("%q: vectors that counted: -want +got\n%s", test.question, diff)
		}
		if len(found.Notes) != 1 || !strings.Contains(found.Notes[0], "passages in other languages were found by text alone") {
			t.Errorf("%q: notes %q", test.question, found.Notes)
		}
	}
}

// Other wordings find what the query's own does not, and what several find comes
// first.
func TestRewrites(t *testing.T) {
	l := newLibrary()
	l.put("/car", "", "en", assay.ACL{}, "car insurance for the winter")
	l.put("/motor", "", "en", assay.ACL{}, "motor vehicle cover")
	l.put("/both", "", "en", assay.ACL{}, "car insurance, that is motor vehicle cover")
	l.put("/a", "", "en", assay.ACL{}, "bread and barley, and a car far away")
	l.put("/b", "", "en", assay.ACL{}, "bread and barley, and a motor far away")
	l.put("/none", "", "en", assay.ACL{}, "bread and barley")
	r := l.open(t, retrieve.Config{})
	for _, fusion := range []assay.Fusion{assay.FusionWeighted, assay.FusionRRF} {
		found := retrieved(t, r, assay.Query{Text: "car insurance", Fusion: fusion, Rewrites: []string{"motor vehicle cover"}})
		got := uris(found)
		slices.Sort(got[1:3])
		slices.Sort(got[3:])
		if diff := cmp.Diff([]string{"/both", "/car", "/motor", "/a", "/b"}, got); diff != "" {
			t.Errorf("fusion %q: -want +got\n%s", fusion, diff)
		}
		for _, h := range found.Hits {
			if h.URI == "/motor" && (h.Scores.BM25 != nil || h.Scores.Relevance != 0) {
				t.Errorf("what only a rewrite found has scores of the query: %+v", h.Scores)
			}
		}
		if len(found.Terms) != 2 {
			t.Errorf("terms %+v are not the query's own", found.Terms)
		}
	}
}

// A Ranker sees hits that all have a similarity or all have none.
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
			want = nil // that the ranker did not see
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
		// By words the longest come first; those with a vector trade their places to
		// come shortest first.
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
			if n := len(found.Notes); n == 0 || !strings.HasPrefix(found.Notes[n-1], "the hits are not reranked: ") {
				t.Errorf("%s: notes %q", fault, found.Notes)
			}
		}
	}
}

// A walker that always leads to the same passages, or fails.
type walker struct {
	scores []graph.Score
	err    error
	seeds  []graph.Seed
}

func (w *walker) Walk(_ context.Context, _ assay.Access, _ assay.Query, seeds []graph.Seed) ([]graph.Score, error) {
	w.seeds = seeds
	return w.scores, w.err
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
	w.err = errors.New("lost the way")
	plain := retrieved(t, l.open(t, retrieve.Config{}), assay.Query{Text: "copper bridge"})
	found := retrieved(t, r, assay.Query{Text: "copper bridge"})
	if diff := cmp.Diff(plain.Hits, found.Hits); diff != "" || len(found.Notes) != 1 {
		t.Errorf("a walk that failed: notes %q, -without +with\n%s", found.Notes, diff)
	}
}

// A walk is not for languages in which every noun could be a name.
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

// Without vectors, and while the encoder speaks another language, the walk leads
// where it leads a search by words alone.
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

// Equal questions get equal answers, side by side.
func TestDeterminism(t *testing.T) {
	l := randomLibrary(rand.New(rand.NewPCG(4, 4)), 120)
	e := newEncoder()
	l.embed(e.Hashing, func(i int, _ assay.Passage) bool { return i%2 == 0 })
	r := l.open(t, retrieve.Config{Embedder: e, Ranker: &lengthRanker{}})
	q := assay.Query{Text: "copper bridge by the river", Rewrites: []string{"a castle", "the winter storm"}, Diversity: 0.4, Limit: 30}
	want := retrieved(t, r, q)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 5 {
				found, err := r.Retrieve(context.WithoutCancel(t.Context()), everyone, q)
				if diff := cmp.Diff(want, found); diff != "" || err != nil {
					t.Errorf("error %v, -first +now\n%s", err, diff)
					return
				}
			}
		})
	}
	group.Wait()
}
