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
	"github.com/assay-rag/assay/provider/embedded"
)

// embeddedEncoder provides the encoder in the binary.
type embeddedEncoder struct{}

func (embeddedEncoder) Default() string { return embedded.Model }

func (embeddedEncoder) Open(context.Context, string) (llm.Embedder, error) { return embedded.Open() }

// TestRealEncoder checks the whole pipeline with a real encoder and real documents: with text
// only, with vectors that the first question fills in, and with all vectors.
func TestRealEncoder(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	docs := filepath.Join(goRoot(t), "doc")
	if _, err := os.Stat(docs); err != nil {
		t.Skip("the documents are Go's own, which are not here: ", err)
	}
	began := time.Now()
	e := openWith(t, t.TempDir(), embeddedEncoder{})
	report, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{docs}})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("ingested %d documents in %v: %+v", report.Added, time.Since(began), report.Vectors)
	request := Request{Question: "What happens when I send on a closed channel?", Budget: assay.Budget{Wall: 10 * time.Minute}}
	for range 3 {
		start := time.Now()
		a := asked(t, e, request)
		t.Logf("asked in %v, %v since the start: %s, %d citations, notes %q", time.Since(start), time.Since(began), a.Status, len(a.Citations), a.Notes)
		if a.Status != assay.Answered || len(a.Notes) == 0 || !strings.Contains(a.Notes[len(a.Notes)-1].Text, "vector") {
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
	start := time.Now()
	a := asked(t, e, request)
	t.Logf("asked in %v: %s, %d citations, notes %q", time.Since(start), a.Status, len(a.Citations), a.Notes)
}

// TestRealEncoderFindsByMeaning checks that a passage that shares no word with the question is
// found by its vector.
func TestRealEncoderFindsByMeaning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"pets.md":   "# Household\n\nThe kitten sleeps on the sofa and purrs.\n",
		"money.md":  "# Finance\n\nInterest rates are set by the central bank.\n",
		"server.md": "# Operations\n\nThe machine reboots after the kernel was updated.\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	e := openWith(t, t.TempDir(), embeddedEncoder{})
	if _, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{dir}}); err != nil {
		t.Fatal(err)
	}
	if r := searchFor(t, e, "a young feline resting"); len(r.Hits) > 0 || len(r.Notes) == 0 {
		t.Errorf("before there are vectors: %d hits, notes %q; want none, and why", len(r.Hits), r.Notes)
	}
	if _, err := e.Embed(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if r := searchFor(t, e, "a young feline resting"); len(r.Hits) == 0 || !strings.HasSuffix(r.Hits[0].URI, "/pets.md") || len(r.Notes) > 0 {
		t.Errorf("%d hits, notes %q; want the kitten first", len(r.Hits), r.Notes)
	}
}
