package main

import (
	"strings"
	"testing"

	"github.com/assay-rag/assay/ingest"
)

// What an ingest does last is shown, however short a time the line before stood.
func TestProgressOfTheIndex(t *testing.T) {
	var b strings.Builder
	p := &progress{w: &b, watched: true, escapes: true, width: 80}
	p.ingest(ingest.Progress{Found: 3, Done: 2, Walked: true, Current: "file:///a"})
	p.ingest(ingest.Progress{Found: 3, Done: 3, Walked: true, Current: "file:///a", Indexing: true})
	if want := "writing the index …"; !strings.HasSuffix(b.String(), want) {
		t.Errorf("%q, want %q at its end", b.String(), want)
	}
}
