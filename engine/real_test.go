package engine

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/local"
)

// A folderEncoder is the encoder in a folder.
type folderEncoder struct {
	dir  string
	name string
}

func (f folderEncoder) Default() string { return f.name }

func (f folderEncoder) Open(ctx context.Context, _ string) (llm.Embedder, error) {
	return local.OpenDir(ctx, f.dir, local.Config{})
}

// realEncoder is gte-small, where the test data has it.
func realEncoder(t *testing.T) folderEncoder {
	t.Helper()
	data := os.Getenv("ASSAY_TESTDATA")
	if data == "" {
		t.Skip("ASSAY_TESTDATA names no folder with models")
	}
	dir := filepath.Join(data, "models", "gte-small")
	e, err := local.OpenDir(t.Context(), dir, local.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return folderEncoder{dir, e.Model()}
}

// The whole path with a real encoder on real documents: text first, vectors filled
// in by the first question, then all.
func TestRealEncoder(t *testing.T) {
	encoder := realEncoder(t)
	docs := filepath.Join(goRoot(t), "doc")
	if _, err := os.Stat(docs); err != nil {
		t.Skip("the documents are Go's own, which are not here: ", err)
	}
	began := time.Now()
	e := openWith(t, t.TempDir(), encoder)
	report, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{docs}})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("ingested %d documents in %v: %+v", report.Added, time.Since(began), report.Vectors)
	question := "What happens when I send on a closed channel?"
	for range 3 {
		asked := time.Now()
		a := ask(t, e, question)
		t.Logf("asked in %v, %v since the start: %s, %d citations, notes %q", time.Since(asked), time.Since(began), a.Status, len(a.Citations), a.Notes)
		if a.Status != assay.Answered || len(a.Notes) == 0 || !strings.Contains(a.Notes[len(a.Notes)-1], "vector") {
			t.Errorf("status %s, notes %q", a.Status, a.Notes)
		}
	}
	if os.Getenv("ASSAY_LONG") == "" {
		return
	}
	v, err := e.Embed(t.Context(), nil)
	if err != nil || v.Missing() > 0 || len(v.Failed) > 0 {
		t.Errorf("%+v, %v", v, err)
	}
	t.Logf("%d vectors in %v", v.Stored, time.Duration(v.ElapsedMS)*time.Millisecond)
	asked := time.Now()
	a := ask(t, e, question)
	t.Logf("asked in %v: %s, %d citations, notes %q", time.Since(asked), a.Status, len(a.Citations), a.Notes)
}
