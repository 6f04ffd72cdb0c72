package opensearch

import (
	"errors"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index/indextest"
)

func wantLags(t *testing.T, x *Index, when string, want bool) {
	t.Helper()
	if lags, err := x.Lags(t.Context()); err != nil || lags != want {
		t.Errorf("%s: lags %v, %v; want %v", when, lags, err, want)
	}
}

// TestLags checks when an index is said to lag behind its source, also one that was removed under it.
func TestLags(t *testing.T) {
	cluster := connect(t, nil)
	source := indextest.NewSource("lags")
	x := cluster.open(t, "lags", source)
	wantLags(t, x, "without documents", false)
	e := needle("a", 1)
	source.Put(e)
	wantLags(t, x, "before the first flush", true)
	flush(t, x)
	wantLags(t, x, "after a flush", false)
	source.PutVectors("m", map[string][]float32{e.Chunks[0].ID: {1, 0}})
	wantLags(t, x, "without vectors", true)
	flush(t, x)
	wantLags(t, x, "with vectors", false)
	source.Delete(e.Document.ID)
	wantLags(t, x, "after a deletion", true)
	source.Put(needle("b", 2))
	flush(t, x)
	wantNeedles(t, x, 2)

	if err := cluster.Remove(t.Context(), "lags"); err != nil {
		t.Fatal(err)
	}
	q := assay.Query{Text: "needle", Limit: 10}
	if _, err := x.Search(t.Context(), everyone, q); !errors.Is(err, assay.ErrUnavailable) || x.Sequence() != 0 {
		t.Errorf("search of a removed index: %v, sequence %d; want ErrUnavailable and 0", err, x.Sequence())
	}
	wantLags(t, x, "after it was removed", true)
	flush(t, x)
	wantNeedles(t, x, 2)
	wantLags(t, x, "written again", false)
}

// TestServer checks what the cluster says of itself.
func TestServer(t *testing.T) {
	s, err := connect(t, nil).Server(t.Context())
	if err != nil || s.Nodes != 3 || s.Version == "" || s.Status == "" {
		t.Errorf("%+v, %v; want three nodes", s, err)
	}
}
