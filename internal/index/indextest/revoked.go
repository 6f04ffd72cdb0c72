package indextest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
)

// testRevoked checks that an index never shows a deleted document, an old version or a document to
// a principal who lost the right to see it, however long ago its last Flush was. Such documents are
// not counted either.
func testRevoked(t *testing.T, c contract) {
	s := NewSource("a")
	dir := t.TempDir()
	putNear(s, NewEntry("c", "kept", "", "needle kept"), 10)
	putNear(s, NewEntry("c", "tightened", "", "needle tightened"), 20)
	putNear(s, restricted("lost", "user:local", "user:ann"), 30)
	putNear(s, NewEntry("c", "deleted", "", "needle deleted"), 40)
	putNear(s, NewEntry("c", "replaced", "", "needle replaced"), 50)
	writer, reader := c.opener(t, s, dir), c.opener(t, s, dir)
	if err := writer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	indexes := []index.Index{writer, reader, c.opener(t, s, dir)}
	for _, ix := range indexes {
		if result := search(t, ix, assay.Query{Text: "needle"}); result.Total != 5 || result.Terms[0].Chunks != 5 {
			t.Fatalf("%+v, want five chunks", result)
		}
	}

	tightened := NewEntry("c", "tightened", "", "needle tightened")
	tightened.Document.ACL = assay.ACL{Restricted: true, Allow: []string{"user:ann"}}
	s.Put(tightened, restricted("lost", "user:ann"), NewEntry("c", "replaced", "", "pin"))
	s.Delete(assay.DocumentID("c", "deleted"))
	gone := []string{
		tightened.Chunks[0].ID, restricted("lost").Chunks[0].ID,
		NewEntry("c", "deleted", "", "needle deleted").Chunks[0].ID, NewEntry("c", "replaced", "", "needle replaced").Chunks[0].ID,
	}
	for _, ix := range append(indexes, c.opener(t, s, dir)) {
		for range 2 {
			wantOnlyKept(t, s, ix, gone)
		}
	}
	if err := writer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, ix := range indexes {
		wantOnlyKept(t, s, ix, gone)
		if got := searchAs(t, ix, assay.Principal{User: "ann"}.Access(), assay.Query{Text: "needle"}); got.Total != 3 {
			t.Errorf("after the next flush, ann finds %d chunks, want 3", got.Total)
		}
	}
}

// wantOnlyKept checks that everyone finds only the document "kept" and nothing of the chunks that
// are gone.
func wantOnlyKept(t *testing.T, s *Source, ix index.Index, gone []string) {
	t.Helper()
	result := search(t, ix, assay.Query{Text: "needle"})
	wantDocuments(t, s, result, "kept")
	if result.Total != 1 || result.Terms[0].Chunks != 1 || result.Chunks > 2 {
		t.Errorf("Total %d of %d chunks, term %+v, want one", result.Total, result.Chunks, result.Terms[0])
	}
	result = nearest(t, ix, assay.Query{}, near)
	wantDocuments(t, s, result, "kept")
	if result.Total != 1 || result.Chunks > 2 {
		t.Errorf("Total %d of %d chunks near, want one", result.Total, result.Chunks)
	}
	similarities, err := ix.Similarities(t.Context(), everyone, near, gone)
	if err != nil {
		t.Fatal(err)
	}
	vectors, err := ix.Vectors(t.Context(), everyone, near.Model, gone)
	if err != nil {
		t.Fatal(err)
	}
	for i := range gone {
		if similarities[i] != nil || vectors[i] != nil {
			t.Errorf("chunk %d that may not be seen has the similarity %v and the vector %v", i, similarities[i], vectors[i])
		}
	}
}

// testRevokedRandom checks after random changes and few flushes that every hit is in the current
// version of a document that the principal may see now.
func testRevokedRandom(t *testing.T, c contract) {
	for _, seed := range seeds(t, 2) {
		w := newWorld(seed, 30)
		s := NewSource("a")
		dir := t.TempDir()
		writer, reader := c.opener(t, s, dir), c.opener(t, s, dir)
		s.Put(w.entries(60)...)
		for step := range rounds(60) {
			w.churn(s)
			if step%6 == 0 {
				if err := writer.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			ix := []index.Index{writer, reader}[w.IntN(2)]
			access, q, v := w.access(), w.query(), w.vectorQuery()
			q.Filter = assay.Filter{}
			text, err := ix.Search(t.Context(), access, q)
			near, nearErr := ix.Nearest(t.Context(), access, q, v)
			if err := errors.Join(err, nearErr); err != nil && !errors.Is(err, assay.ErrInvalid) {
				t.Fatal(err)
			}
			if err := errors.Join(onlyCurrent(s, access, text), onlyCurrent(s, access, near)); err != nil {
				t.Fatalf("ASSAY_SEED=%d, step %d: %v", seed, step, err)
			}
		}
	}
}

// onlyCurrent returns an error if a hit is not in the current state of a document that access may
// see.
func onlyCurrent(s *Source, access assay.Access, result index.Result) error {
	current := make(map[string]assay.Change)
	for _, c := range s.documents() {
		current[c.ID] = c
	}
	for _, h := range result.Hits {
		change, ok := current[h.Document]
		if !ok {
			return fmt.Errorf("hit %+v is in a deleted document", h)
		}
		if d := change.Document; d.Version != h.Version || !access.Allows(d.Collection, d.ACL) {
			return fmt.Errorf("hit %+v by %s, but the document is %s %s with %+v", h, access.Key(), d.Collection, d.Version, d.ACL)
		}
	}
	return nil
}

// testTenants checks that indexes with other folders have nothing in common, even if their
// documents have equal IDs.
func testTenants(t *testing.T, c contract) {
	a, b := NewSource("a"), NewSource("b")
	entry := NewEntry("c", "same", "", "needle")
	putNear(a, entry, 10)
	dirs := []string{t.TempDir(), t.TempDir()}
	of := []index.Index{c.open(t, a, dirs[0]), c.open(t, b, dirs[1])}
	check := func(source *Source, ix index.Index, want ...string) {
		t.Helper()
		wantDocuments(t, source, search(t, ix, assay.Query{Text: "needle"}), want...)
		wantDocuments(t, source, nearest(t, ix, assay.Query{}, near), want...)
		if err := ix.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	check(a, of[0], "same")
	check(b, of[1])
	before := search(t, of[0], assay.Query{Text: "needle other"})
	putNear(b, NewEntry("c", "other", "", "needle other"), 40)
	check(b, of[1], "other")
	check(a, of[0], "same")
	if diff := cmp.Diff(before, search(t, of[0], assay.Query{Text: "needle other"}), c.scores()); diff != "" {
		t.Errorf("another tenant changes the result: -without +with\n%s", diff)
	}
	putNear(b, entry, 30)
	check(b, of[1], "same", "other")
	b.Delete(entry.Document.ID)
	check(b, of[1], "other")
	check(a, of[0], "same")
}
