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
	"github.com/assay-rag/assay/internal/retrieve"
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

// TestHidden checks that documents hidden from the caller do not change the results.
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
			// The code of a vector depends in its last digits on the other vectors, and so may the
			// order of nearly equal hits.
			ignore := cmp.Options{
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

// TestRewrites checks that rewrites find passages that the query's own wording does not, and that
// passages found by several wordings come first.
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

// TestDeterminism checks that concurrent equal queries return equal results.
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
