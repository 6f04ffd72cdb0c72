package engine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/assay-rag/assay"
)

// TestSearchRebuildsIndex checks that the first search rewrites a lost index and that the next
// process does not rebuild it.
func TestSearchRebuildsIndex(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	e, err := Open(ctx, Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Ingest(ctx, IngestRequest{Paths: []string{"testdata/handbook"}}); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, "tenants", DefaultTenant, "index")
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	search := func() assay.Results {
		t.Helper()
		e, err := Open(ctx, Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		found, err := e.Search(ctx, assay.Local(), assay.Query{Text: "annual leave", Limit: 1})
		if err != nil || len(found.Hits) != 1 {
			t.Fatalf("found %d hits, %v", len(found.Hits), err)
		}
		return found
	}

	// While another process writes, the index stays in memory.
	busy, err := Open(ctx, Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	w, err := busy.tenant.Writer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	search()
	if _, err := os.Stat(filepath.Join(folder, "MANIFEST")); err == nil {
		t.Error("the index was written while another was the writer")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	search()
	before, err := os.Stat(filepath.Join(folder, "MANIFEST"))
	if err != nil {
		t.Fatal(err)
	}
	search()
	if after, err := os.Stat(filepath.Join(folder, "MANIFEST")); err != nil || !os.SameFile(before, after) {
		t.Errorf("the index was written again: %v", err)
	}
}
