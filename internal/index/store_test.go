package index_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
	"github.com/assay-rag/assay/store/storetest"
)

var _ index.VectorSource = store.Content(nil)

// TestStore compares the index with a real store while documents and vectors come and go, a model
// is dropped, and the index is written, merged, opened again and deleted. A reader in another
// process follows.
func TestStore(t *testing.T) {
	t.Parallel()
	ctx, dir, rng := t.Context(), t.TempDir(), rand.New(rand.NewPCG(8, 3))
	s, err := sqlite.Open(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := s.Tenant(ctx, store.DefaultTenant)
	if err != nil {
		t.Fatal(err)
	}
	defer tenant.Close()
	w, err := tenant.Writer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	writer, reader := openSmall(t, w, dir).(*index.Searcher), openSmall(t, tenant.Content(), dir)
	for step := range indextest.Rounds(40, 120, 1200) {
		if err := storeStep(t, w, rng); err != nil {
			t.Fatal(err)
		}
		switch step % 8 {
		case 1, 3:
			err = writer.Flush(ctx)
		case 2:
			if err = writer.Settle(ctx); err == nil && rng.IntN(3) == 0 {
				err = os.RemoveAll(dir)
			}
		case 5:
			err = writer.Settle(ctx)
		case 7:
			if err = writer.Close(); err == nil {
				writer = openSmall(t, w, dir).(*index.Searcher)
				err = writer.Lost()
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		checkNearest(t, "the writer", w, writer)
		checkNearest(t, "a reader", w, reader)
		if t.Failed() {
			t.Fatalf("after %d steps", step+1)
		}
	}
}

// storeStep makes a random change to the content.
func storeStep(t *testing.T, w store.Writer, rng *rand.Rand) error {
	t.Helper()
	ctx := t.Context()
	switch n := rng.IntN(20); {
	case n < 9:
		var text strings.Builder
		for range rng.IntN(40) {
			fmt.Fprintf(&text, "words %d\n", rng.IntN(200))
		}
		_, err := w.Put(ctx, storetest.Entry("c", fmt.Sprint("/", rng.IntN(30)), text.String()))
		return err
	case n < 11:
		_, err := w.Delete(ctx, assay.DocumentID("c", fmt.Sprint("/", rng.IntN(30))))
		return err
	case n < 12 && rng.IntN(2) == 0:
		return w.DropModel(ctx, "m")
	default:
		var batch []store.Vector
		for p, err := range w.Unembedded(ctx, "m", 0) {
			if err != nil {
				return err
			}
			if rng.IntN(3) > 0 {
				values := []float32{rng.Float32() - 0.5, rng.Float32() - 0.5, rng.Float32() - 0.5}
				batch = append(batch, store.Vector{Hash: p.Hash(), Values: values})
			}
		}
		_, err := w.PutVectors(ctx, "m", batch...)
		return err
	}
}

// checkNearest compares the set and number of chunks with vectors in the index with those in the
// store.
func checkNearest(t *testing.T, who string, c store.Content, ix index.Index) {
	t.Helper()
	want, got := map[string]bool{}, map[string]bool{}
	for v, err := range c.Vectors(t.Context(), "m", 0) {
		if err != nil {
			t.Fatal(err)
		}
		want[v.Chunk] = true
	}
	coverage, err := c.Coverage(t.Context(), "m")
	if err != nil {
		t.Fatal(err)
	}
	q := assay.Query{Limit: 5000}
	result, err := ix.Nearest(t.Context(), assay.Principal{User: "ann"}.Access(), q, index.Vector{Model: "m", Metric: index.Cosine, Values: []float32{1, 2, 3}})
	if err != nil {
		t.Fatalf("%s: %v", who, err)
	}
	for _, h := range result.Hits {
		got[h.Chunk] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("%s: chunks with vectors differ (-want +got):\n%s", who, diff)
	}
	share := float64(0)
	if coverage.Chunks > 0 {
		share = float64(coverage.Embedded) / float64(coverage.Chunks)
	}
	if result.Total != coverage.Embedded || result.Chunks != coverage.Chunks || result.Index.Coverage != share {
		t.Errorf("%s: %d of %d chunks, coverage %g, want %d of %d, %g",
			who, result.Total, result.Chunks, result.Index.Coverage, coverage.Embedded, coverage.Chunks, share)
	}
}
