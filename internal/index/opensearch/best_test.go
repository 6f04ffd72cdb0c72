package opensearch

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
)

var (
	every = scoring{all: math.MaxInt32} // scores all matching chunks
	some  = scoring{window: defaultScoring.window, factor: defaultScoring.factor, most: math.MaxInt}
)

// commonQueries returns n queries of two to four of the most frequent terms of texts.
func commonQueries(texts []string, n int) []string {
	holding := make(map[string]int)
	for _, text := range texts {
		seen := make(map[string]bool)
		for _, token := range analysis.Tokens(text, "en") {
			if len(token.Term) > 2 && !seen[token.Term] {
				seen[token.Term] = true
				holding[token.Term]++
			}
		}
	}
	terms := slices.SortedFunc(maps.Keys(holding), func(a, b string) int {
		return cmp.Or(cmp.Compare(holding[b], holding[a]), strings.Compare(a, b))
	})
	terms = terms[:min(80, len(terms))]
	random := rand.New(rand.NewPCG(3, 3))
	var queries []string
	for range n {
		var words []string
		for range 2 + random.IntN(3) {
			words = append(words, terms[random.IntN(len(terms))])
		}
		queries = append(queries, strings.Join(words, " "))
	}
	return queries
}

// TestCandidates checks on real texts that searches which score only candidates find the best chunks,
// with the scores that they have if all are scored.
func TestCandidates(t *testing.T) {
	entries, texts := indextest.RealChunks(t, indextest.Rounds(3_000, 20_000, 200_000))
	source := indextest.NewSource("a")
	source.Put(entries...)
	x := connect(t, nil).open(t, t.TempDir(), source)
	flush(t, x)
	n := indextest.Rounds(10, 50, 200)
	for name, queries := range map[string][]string{"questions": indextest.Questions(t, n/3), "common words": commonQueries(texts, n)} {
		for _, window := range []int{100, 1000} {
			s := some
			s.window, s.factor = window, 0
			ten, fifty := recallOfCandidates(t, x, s, queries)
			t.Logf("%d chunks, %s, window %d: recall@10 %.4f, recall@50 %.4f", len(texts), name, window, ten, fifty)
			if ten < 0.99 || fifty < 0.98 {
				t.Errorf("%s, window %d: recall@10 %.4f, want 0.99; recall@50 %.4f, want 0.98", name, window, ten, fifty)
			}
		}
	}
}

// recallOfCandidates returns the shares of the best ten and fifty hits that searches among candidates
// find. It checks their scores. Every second search has a filter, and half of them see all chunks.
func recallOfCandidates(t *testing.T, x *Index, s scoring, queries []string) (ten, fifty float64) {
	t.Helper()
	share := assay.Filter{Op: assay.OpLessThan, Key: "share", Value: assay.NumberValue(0.5)}
	for i, text := range queries {
		q := assay.Query{Text: text, Limit: 50}
		if i%2 == 0 {
			q.Filter = share
		}
		access := []assay.Access{everyone, assay.Principal{User: "ann"}.Access()}[i/2%2]
		x.scoring = every
		want, err := x.Search(t.Context(), access, q)
		if err != nil {
			t.Fatal(err)
		}
		x.scoring = s
		got, err := x.Search(t.Context(), access, q)
		if err != nil {
			t.Fatal(err)
		}
		all := make(map[string]index.Hit)
		for _, h := range want.Hits {
			all[h.Chunk] = h
		}
		for _, h := range got.Hits {
			if same, ok := all[h.Chunk]; ok {
				if diff := gocmp.Diff(same, h, cmpopts.EquateApprox(1e-6, 0)); diff != "" {
					t.Fatalf("%q: -all +candidates\n%s", text, diff)
				}
			}
		}
		if len(got.Hits) != len(want.Hits) || got.Total != want.Total {
			t.Fatalf("%q: %d hits of %d, want %d of %d", text, len(got.Hits), got.Total, len(want.Hits), want.Total)
		}
		ten += recall(want.Hits, got.Hits, 10) / float64(len(queries))
		fifty += recall(want.Hits, got.Hits, 50) / float64(len(queries))
	}
	return ten, fifty
}

// recall returns the share of the first n hits of got that score as the first n of want do.
func recall(want, got []index.Hit, n int) float64 {
	n = min(n, len(want))
	if n == 0 {
		return 1
	}
	found := 0
	for _, h := range got[:min(n, len(got))] {
		if h.BM25 >= want[n-1].BM25-1e-9 {
			found++
		}
	}
	return float64(found) / float64(n)
}

// TestCandidatesModel compares searches among candidates with a model, after random changes.
func TestCandidatesModel(t *testing.T) {
	source := indextest.NewSource("a")
	x := connect(t, nil).open(t, t.TempDir(), source)
	x.scoring = some
	r := rand.New(rand.NewPCG(8, 8))
	for range indextest.Rounds(2, 10, 100) {
		for range 20 {
			indextest.Churn(source, r, 60)
		}
		flush(t, x)
		indextest.Check(t, x, source, r.Uint64(), 10)
	}
}

// TestCandidatesHidden checks that chunks which may not be seen do not displace candidates.
func TestCandidatesHidden(t *testing.T) {
	source := indextest.NewSource("a")
	x := connect(t, nil).open(t, t.TempDir(), source)
	x.scoring = scoring{window: 20, most: math.MaxInt}
	for i := range 100 {
		source.Put(indextest.NewEntry("c", fmt.Sprint("seen", i), "", strings.Repeat("red fox ", 1+i%7)+strings.Repeat("brown dog ", i)))
	}
	flush(t, x)
	ask := func() index.Result {
		t.Helper()
		result, err := x.Search(t.Context(), everyone, assay.Query{Text: "red dog os.Open", Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	before := ask()
	if len(before.Hits) != 10 || before.Total != 100 {
		t.Fatalf("%d hits of %d, want 10 of 100", len(before.Hits), before.Total)
	}
	var hidden []indextest.Entry
	for i := range 300 {
		e := indextest.NewEntry("c", fmt.Sprint("hidden", i), "", strings.Repeat("red ", 1+i%5)+"dog")
		e.Document.ACL = assay.ACL{Restricted: true, Allow: []string{"user:ann"}}
		hidden = append(hidden, e)
	}
	source.Put(hidden...)
	flush(t, x)
	if diff := gocmp.Diff(before, ask(), cmpopts.IgnoreFields(index.Result{}, "Sequence")); diff != "" {
		t.Errorf("hidden documents change the result: -without +with\n%s", diff)
	}
}

// searchLog counts searches for hits that score all matching chunks, and those that score candidates.
type searchLog struct {
	http.RoundTripper
	all, candidates atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (l *searchLog) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
		switch {
		case bytes.Contains(body, []byte(`"rescore"`)):
			l.candidates.Add(1)
		case bytes.Contains(body, []byte(`"script_score"`)):
			l.all.Add(1)
		}
	}
	return l.RoundTripper.RoundTrip(r)
}

// TestFewMatches checks that all chunks are scored if few match, or a filter keeps few of them.
func TestFewMatches(t *testing.T) {
	var log searchLog
	source := indextest.NewSource("a")
	x := connect(t, func(c *Config) {
		log.RoundTripper = c.Transport
		c.Transport = &log
	}).open(t, t.TempDir(), source)
	x.scoring = scoring{all: 40, window: 30, factor: 1, most: 100}
	for i := range 100 {
		source.Put(indextest.NewEntry(fmt.Sprint("c", i%3), fmt.Sprint(i), "", "fox "+[]string{"red", "brown"}[i/80]+strings.Repeat(" and", i/10)))
	}
	flush(t, x)
	for _, test := range []struct {
		text            string
		collections     []string
		limit           int
		hits, total     int
		all, candidates int64
	}{
		{text: "brown", limit: 20, hits: 20, total: 20, all: 1},
		{text: "fox", limit: 20, hits: 20, total: 100, candidates: 1},
		{text: "brown red fox", limit: 5, hits: 5, total: 100, candidates: 1},
		{text: "fox", collections: []string{"c0"}, limit: 20, hits: 20, total: 34, all: 1, candidates: 1},
		{text: "fox", limit: 200, hits: 100, total: 100, candidates: 1}, // no more than the visible chunks
		{text: "fox", limit: 200, collections: []string{"c1", "c2"}, hits: 66, total: 66, candidates: 1},
	} {
		log.all.Store(0)
		log.candidates.Store(0)
		result, err := x.Search(t.Context(), everyone, assay.Query{Text: test.text, Limit: test.limit, Collections: test.collections})
		if err != nil || result.Total != test.total || len(result.Hits) != test.hits {
			t.Errorf("%+v: %d hits of %d, %v", test, len(result.Hits), result.Total, err)
		}
		if all, candidates := log.all.Load(), log.candidates.Load(); all != test.all || candidates != test.candidates {
			t.Errorf("%+v: %d searches score all, %d candidates", test, all, candidates)
		}
	}
	x.scoring.most = 10
	if _, err := x.Search(t.Context(), everyone, assay.Query{Text: "fox", Limit: 20}); err != nil || log.all.Load() != 1 {
		t.Errorf("%d searches score all, %v, want 1 where there were too many candidates", log.all.Load(), err)
	}
}
