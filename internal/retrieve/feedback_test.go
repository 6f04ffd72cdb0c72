package retrieve_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/retrieve"
)

// TestFeedback checks that feedback raises the rank of passages similar to the nearest ones,
// without changing their similarity to the query or their relevance. In a text search feedback has
// no effect.
func TestFeedback(t *testing.T) {
	e := newEncoder()
	l := newLibrary()
	for _, word := range []string{"pier", "mast", "sail"} {
		l.put("/"+word+".md", "", "en", assay.ACL{}, "zinc harbour lantern boat "+word)
	}
	l.put("/like.md", "", "en", assay.ACL{}, "harbour lantern boat rope")
	for i := range 30 {
		l.put(fmt.Sprintf("/other%d.md", i), "", "en", assay.ACL{}, fmt.Sprintf("copper%d bridge%d meadow%d tower%d", i, i, i, i))
	}
	l.embed(e.Hashing, all)
	r := l.open(t, retrieve.Config{Embedder: e})
	of := func(found assay.Results, uri string) (int, assay.Hit) {
		for i, h := range found.Hits {
			if h.URI == uri {
				return i, h
			}
		}
		t.Fatalf("%s is not found", uri)
		return 0, assay.Hit{}
	}
	q := assay.Query{Text: "zinc", Limit: 40}
	fed := q
	fed.Feedback = true
	before, plain := of(retrieved(t, r, q), "/like.md")
	after, moved := of(retrieved(t, r, fed), "/like.md")
	if before-after < 5 {
		t.Errorf("what is like the nearest is at %d, with feedback at %d", before, after)
	}
	if *plain.Scores.Vector != *moved.Scores.Vector || plain.Scores.Relevance != moved.Scores.Relevance {
		t.Errorf("feedback changed %+v into %+v", plain.Scores, moved.Scores)
	}
	q.Mode, fed.Mode = assay.ModeText, assay.ModeText
	if diff := cmp.Diff(retrieved(t, r, q), retrieved(t, r, fed)); diff != "" {
		t.Errorf("by words alone, -plain +feedback:\n%s", diff)
	}
}
