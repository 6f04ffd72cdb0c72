package main

import (
	"testing"

	"github.com/assay-rag/assay/parse"
)

// TestParseWorker parses a document in a process of the program.
func TestParseWorker(t *testing.T) {
	t.Parallel()
	pool := newParsers()
	pool.Workers = 1
	defer pool.Close()
	for range 2 {
		text := ""
		err := pool.Walk(t.Context(), parse.Input{Name: "a.md", Data: []byte("# One\n\nsome *words*")}, func(p parse.Parsed) error {
			text = p.Document.Text
			return p.Err
		})
		if err != nil || text != "One\n\nsome words" {
			t.Errorf("%q, %v", text, err)
		}
	}
	if n := pool.Started(); n != 1 {
		t.Errorf("%d processes, want 1", n)
	}
}
