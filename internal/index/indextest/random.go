package indextest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
)

// A settler merges in the background. Settle waits until no merge is due.
type settler interface {
	Settle(ctx context.Context) error
}

func settle(t testing.TB, ix index.Index) {
	t.Helper()
	if s, ok := ix.(settler); ok {
		if err := s.Settle(t.Context()); err != nil {
			t.Fatalf("Settle: %v", err)
		}
	}
}

// testRandom applies random operations to an index and compares random queries with the model.
// ASSAY_SEED repeats a failure.
func testRandom(t *testing.T, c contract) {
	for _, seed := range seeds(t, 5) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := newRandomRun(t, c, seed)
			for step := range rounds(300) {
				r.log = append(r.log, r.step())
				if t.Failed() {
					t.Fatalf("ASSAY_SEED=%d, step %d, after\n%s", seed, step, strings.Join(r.log[max(0, len(r.log)-30):], "\n"))
				}
			}
		})
	}
}

// A randomRun is an index with one writer and one reader, which act like separate processes.
type randomRun struct {
	t      *testing.T
	c      contract
	w      world
	source *Source
	model  *model
	dir    string
	writer index.Index
	reader index.Index
	log    []string
}

func newRandomRun(t *testing.T, c contract, seed uint64) *randomRun {
	s := NewSource("a")
	r := &randomRun{t: t, c: c, w: newWorld(seed, 4+12*int(seed)), source: s, model: c.newModel(s), dir: t.TempDir()}
	r.writer, r.reader = c.open(t, s, r.dir), c.open(t, s, r.dir)
	return r
}

// step performs one operation and returns its description.
func (r *randomRun) step() string {
	switch n := r.w.IntN(100); {
	case n < 37:
		return r.w.churn(r.source)
	case n < 43:
		if err := r.writer.Flush(r.t.Context()); err != nil {
			r.t.Fatal(err)
		}
		return "flush"
	case n < 46:
		settle(r.t, r.writer)
		return "settle"
	case n < 50:
		return r.reopen()
	case n < 75:
		access, q := r.w.access(), r.w.query()
		who, ix := r.whom()
		got, err := ix.Search(r.t.Context(), access, q)
		checkSearch(r.t, r.model.search(access, q), q, got, err)
		r.checkSequence(got, err)
		return fmt.Sprintf("%s searches %s for %+v", who, access.Key(), q)
	default:
		access, q, v := r.w.access(), r.w.query(), r.w.vectorQuery()
		who, ix := r.whom()
		got, err := ix.Nearest(r.t.Context(), access, q, v)
		checkNearest(r.t, r.model.nearest(access, q, v), q, v, got, err)
		r.checkSequence(got, err)
		if err == nil && !access.IsZero() {
			checkSimilarities(r.t, ix, r.model, access, v)
		}
		return fmt.Sprintf("%s searches %s for %+v near %+v", who, access.Key(), q, v)
	}
}

func (r *randomRun) whom() (string, index.Index) {
	if r.w.IntN(3) == 0 {
		return "the reader", r.reader
	}
	return "the writer", r.writer
}

func (r *randomRun) checkSequence(got index.Result, err error) {
	if want := sequence(r.t, r.source); err == nil && got.Sequence != want {
		r.t.Errorf("the result is of sequence %d, want %d", got.Sequence, want)
	}
}

// reopen opens the index again as the next process would, after a Close or after a crash.
func (r *randomRun) reopen() string {
	switch r.w.IntN(4) {
	case 0:
		if err := r.writer.Close(); err != nil {
			r.t.Fatal(err)
		}
		r.writer = r.c.open(r.t, r.source, r.dir)
		return "the writer closes and opens"
	case 1:
		settle(r.t, r.writer) // a process that crashed does not continue merging
		crashed := r.writer
		r.t.Cleanup(func() { _ = crashed.Close() })
		r.writer = r.c.open(r.t, r.source, r.dir)
		return "the writer crashes and opens"
	case 2:
		q := assay.Query{Text: r.w.text(5), Limit: 1000}
		got, err := r.writer.Search(r.t.Context(), everyone, q)
		fresh := r.c.open(r.t, r.source, r.t.TempDir())
		want, freshErr := fresh.Search(r.t.Context(), everyone, q)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), r.c.scores()); diff != "" || err != nil || freshErr != nil {
			r.t.Errorf("not what a fresh index finds (%v, %v): -fresh +got\n%s", freshErr, err, diff)
		}
		if err := fresh.Close(); err != nil {
			r.t.Error(err)
		}
		return "a fresh index is compared"
	}
	if err := r.reader.Close(); err != nil {
		r.t.Fatal(err)
	}
	r.reader = r.c.open(r.t, r.source, r.dir)
	return "the reader opens again"
}
