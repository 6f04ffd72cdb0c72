package indextest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
)

// Check searches an index with random queries as different principals and compares the results with
// those of a model that reads every document. The source must be one that Churn has changed.
func Check(t testing.TB, ix index.Index, s *Source, seed uint64, questions int) {
	t.Helper()
	w, m := newWorld(seed, 1), newModel(s, Full)
	for range questions {
		access, q, v := w.access(), w.query(), w.vectorQuery()
		got, err := ix.Search(t.Context(), access, q)
		checkSearch(t, m.search(access, q), q, got, err)
		got, err = ix.Nearest(t.Context(), access, q, v)
		checkNearest(t, m.nearest(access, q, v), q, v, got, err)
	}
}

// checkSearch compares a result of Search with the expected answer.
func checkSearch(t testing.TB, want answer, q assay.Query, got index.Result, err error) {
	t.Helper()
	about := fmt.Sprintf("Search(%q in %v, %s, limit %d)", q.Text, q.Collections, q.Filter, q.Limit)
	if !accepted(t, about, want, err) {
		return
	}
	wantCounts(t, about, want, min(len(want.found), index.MaxTotal), q.Limit, got)
	if err := checkHits(want, len(got.Hits), got.Hits, func(h index.Hit) float64 { return h.BM25 }); err != nil {
		t.Errorf("%s: %v", about, err)
	}
	near := cmpopts.EquateApprox(1e-9, 0)
	if diff := cmp.Diff(want.terms, got.Terms, near, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s: terms: -want +got\n%s", about, diff)
	}
}

// exactUpTo is the largest number of eligible chunks for which Nearest must return exactly the
// nearest ones, up to chunks that are equally near within the tolerance. With more chunks it may
// miss some.
const exactUpTo = 100

// checkNearest compares a result of Nearest with the expected answer.
func checkNearest(t testing.TB, want answer, q assay.Query, v index.Vector, got index.Result, err error) {
	t.Helper()
	about := fmt.Sprintf("Nearest(%s %s %v, in %v, %s, limit %d)", v.Model, v.Metric, v.Values, q.Collections, q.Filter, q.Limit)
	if !accepted(t, about, want, err) {
		return
	}
	wantCounts(t, about, want, len(want.found), q.Limit, got)
	if math.Abs(got.Index.Coverage-want.coverage) > 1e-9 {
		t.Errorf("%s: coverage %v, want %v", about, got.Index.Coverage, want.coverage)
	}
	inOrder := len(got.Hits)
	if want.approximate || len(want.found) > exactUpTo {
		inOrder = 0
	}
	if err := checkHits(want, inOrder, got.Hits, func(h index.Hit) float64 { return h.Similarity }); err != nil {
		t.Errorf("%s: %v", about, err)
	}
}

// accepted reports whether the query was answered and was expected to be. It fails the test on an
// unexpected error or a missing one.
func accepted(t testing.TB, about string, want answer, err error) bool {
	t.Helper()
	switch {
	case want.invalid != nil && !errors.Is(err, assay.ErrInvalid):
		t.Errorf("%s: error %v, want %v", about, err, want.invalid)
	case want.invalid == nil && err != nil:
		t.Errorf("%s: %v", about, err)
	}
	return want.invalid == nil && err == nil
}

func wantCounts(t testing.TB, about string, want answer, total, limit int, got index.Result) {
	t.Helper()
	if hits := min(limit, len(want.found)); got.Total != total || got.Chunks != want.chunks || len(got.Hits) != hits {
		t.Errorf("%s: %d hits, Total %d of %d chunks, want %d, %d of %d", about, len(got.Hits), got.Total, got.Chunks, hits, total, want.chunks)
	}
}

// checkHits checks that each hit is one of the expected ones with the expected score, that the hits
// are in order, and that the first inOrder have the best scores. It returns the first violation.
func checkHits(want answer, inOrder int, hits []index.Hit, score func(index.Hit) float64) error {
	eligible := make(map[string]found, len(want.found))
	for _, f := range want.found {
		eligible[f.chunk] = f
	}
	for i, h := range hits {
		f, ok := eligible[h.Chunk]
		delete(eligible, h.Chunk)
		switch {
		case !ok:
			return fmt.Errorf("hit %d, chunk %s, should not be found, or is for the second time", i, h.Chunk)
		case h.Document != f.document || h.Version != f.version || !slices.Equal(f.matched, h.Matched):
			return fmt.Errorf("hit %d is %+v, want %+v", i, h, f)
		case !(math.Abs(score(h)-f.score) <= f.tolerance):
			return fmt.Errorf("hit %d, chunk %s, has the score %v, want %v within %v", i, h.Chunk, score(h), f.score, f.tolerance)
		case i > 0 && !(score(hits[i-1]) > score(h) || score(hits[i-1]) == score(h) && hits[i-1].Chunk < h.Chunk):
			return fmt.Errorf("hit %d (%s %v) comes before (%s %v)", i, hits[i-1].Chunk, score(hits[i-1]), h.Chunk, score(h))
		case i >= inOrder || i >= len(want.found):
			continue
		}
		if best := want.found[i]; f.score < best.score-f.tolerance-best.tolerance {
			return fmt.Errorf("hit %d, chunk %s, has the score %v, but the one due here, %s, has %v", i, h.Chunk, f.score, best.chunk, best.score)
		}
	}
	return nil
}
