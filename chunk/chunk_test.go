package chunk

import (
	"context"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/parse"
)

func mustParse(t testing.TB, name, text string) parse.Document {
	t.Helper()
	doc, err := parse.Parse(context.Background(), parse.Input{Name: name, Data: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestSplitKeepsDeclarationsTogether(t *testing.T) {
	doc := mustParse(t, "a.go", "// Package a does things.\npackage a\n\n// F does one thing. It never fails.\nfunc F(n int) error { return nil }\n")
	chunks := Split(doc, "doc", "v1", Options{})
	if len(chunks) != 2 {
		t.Fatalf("got %d chunks, want 2: %+v", len(chunks), chunks)
	}
	c := chunks[1]
	if got, want := doc.Text[c.Start:c.End], "F does one thing. It never fails.\n\nfunc F(n int) error { return nil }"; got != want {
		t.Errorf("text is %q, want %q", got, want)
	}
	if c.ID != assay.ChunkID("doc", "v1", 1) || c.Headings[0] != "func F" || c.Kind != assay.ChunkProse || c.Parent != "" {
		t.Errorf("got %+v", c)
	}
}
