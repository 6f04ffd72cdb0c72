package storetest

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

var writerTests = []contractTest{
	{"there is one", testOneWriter},
	{"put replaces and keeps", testPutReplaces},
	{"put again changes access and source", testPutAgain},
	{"put again as it stands", testPutSame},
	{"a version comes back", testVersionReturns},
	{"put stores all entries or none", testPutAtomic},
	{"put refuses what is wrong", testPutInvalid},
	{"a collection may require an ACL", testRequireACL},
	{"delete", testDelete},
	{"collections", testSetCollection},
	{"after close", testWriterClosed},
}

func testOneWriter(t *testing.T, h Harness) {
	a, b := openTenant(t, h, "acme"), openTenant(t, h, "acme")
	w, err := a.Writer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, tenant := range map[string]store.Tenant{"same handle": a, "another handle": b} {
		_, err := tenant.Writer(t.Context())
		wantErr(t, "Writer of "+name, err, assay.ErrLocked)
		if err != nil && !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
			t.Errorf("%s: error %q does not name process %d", name, err, os.Getpid())
		}
	}
	mustPut(t, w, Entry("c", "/a", "a"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w = openWriter(t, b)
	mustPut(t, w, Entry("c", "/b", "b"))
	wantSame(t, "Documents", uris(t, a.Content()), []string{"c:/a", "c:/b"})
	openWriter(t, openTenant(t, h, "other"))
}

func testPutReplaces(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	v1, v2 := Entry("c", "/a", "one\n"), Entry("c", "/a", "one\ntwo\n")
	mustPut(t, w, v1)
	n := mustPut(t, w, v2)
	got, err := w.Document(t.Context(), v2.Document.ID)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "Document", got, v2.Document)
	for _, e := range []store.Entry{v1, v2} {
		got, err := w.Version(t.Context(), e.Document.ID, e.Document.Version)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "Version", got, e.Document)
	}
	wantSame(t, "Changes", changes(t, w, 0), []assay.Change{change(n, v2)})
	collections, err := w.Collections(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "Collections", collections, []store.Collection{{Name: "c", Documents: 1, Chunks: 3}})
}

func testPutAgain(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	w := openWriter(t, tenant)
	e := Entry("c", "/a", "words\n")
	n := mustPut(t, w, e, Entry("c", "/b", "other"))

	var err error
	if e.Document.ACL, err = assay.RestrictTo("group:few"); err != nil {
		t.Fatal(err)
	}
	n2 := mustPut(t, w, e)
	if n2 <= n || sequence(t, tenant.Content()) != n2 {
		t.Errorf("a change of ACL has sequence %d after %d; Sequence = %d", n2, n, sequence(t, tenant.Content()))
	}
	wantSame(t, "Changes after a change of ACL", changes(t, tenant.Content(), n), []assay.Change{change(n2, e)})

	e.Document.Source = assay.SourceInfo{SizeBytes: 6, Modified: time.Unix(1, 2).UTC(), Hash: "h"}
	n3 := mustPut(t, w, e)
	got, err := tenant.Content().Document(t.Context(), e.Document.ID)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "Document after a change of source", got, e.Document)
	wantSame(t, "Changes after a change of source", changes(t, w, n2), []assay.Change{change(n3, e)})

	e.Document.ACL = assay.ACL{} // public again
	n4 := mustPut(t, w, e)
	wantSame(t, "Changes after the ACL is gone", changes(t, w, n3), []assay.Change{change(n4, e)})
	e.Document.ACL = assay.ACL{Restricted: true} // denies access to everyone
	n5 := mustPut(t, w, e)
	wantSame(t, "Changes after an ACL for nobody", changes(t, w, n4), []assay.Change{change(n5, e)})

	e.Document.ACL, e.Document.Source.Hash = assay.ACL{}, "h2"
	bare := e
	bare.Document.Text, bare.Document.Anchors, bare.Chunks = "", nil, nil
	n6 := mustPut(t, w, bare)
	wantSame(t, "Changes after a change without the text", changes(t, w, n5), []assay.Change{change(n6, e)})
}

func testPutSame(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	e := fullEntry(t)
	n := mustPut(t, w, e)
	again := mustPut(t, w, e)
	if again < n || again != sequence(t, w) {
		t.Errorf("Put again = %d after %d; Sequence = %d", again, n, sequence(t, w))
	}
	wantSame(t, "Changes", changes(t, w, 0), []assay.Change{change(again, e)})
	if none := mustPut(t, w); none != again {
		t.Errorf("Put() = %d, want %d", none, again)
	}
}

func testVersionReturns(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	v1, v2 := Entry("c", "/a", "one\n"), Entry("c", "/a", "two\n")
	mustPut(t, w, v1)
	mustPut(t, w, v2)
	v1.Document.Source.Hash = "new"
	n := mustPut(t, w, v1)
	wantSame(t, "Changes", changes(t, w, 0), []assay.Change{change(n, v1)})
	if _, err := w.Version(t.Context(), v2.Document.ID, v2.Document.Version); err != nil {
		t.Errorf("the version between: %v", err)
	}
	mustDelete(t, w, v1.Document.ID)
	n = mustPut(t, w, v1)
	wantSame(t, "Changes after it was deleted", changes(t, w, 0), []assay.Change{change(n, v1)})
}

func testPutAtomic(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	if err := w.SetCollection(t.Context(), store.Collection{Name: "strict", RequireACL: true}); err != nil {
		t.Fatal(err)
	}
	n := mustPut(t, w, Entry("c", "/old", "old"))
	_, err := w.Put(t.Context(), Entry("c", "/old", "new"), Entry("fresh", "/new", "new"), Entry("strict", "/x", "x"))
	wantErr(t, "Put", err, assay.ErrInvalid)
	wantSame(t, "Documents", uris(t, w), []string{"c:/old"})
	wantSame(t, "Changes", changes(t, w, 0), []assay.Change{change(n, Entry("c", "/old", "old"))})
	if got := sequence(t, w); got != n {
		t.Errorf("Sequence = %d after a Put that was refused, want %d", got, n)
	}
	collections, err := w.Collections(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "Collections", collections, []store.Collection{{Name: "c", Documents: 1, Chunks: 2}, {Name: "strict", RequireACL: true}})
}

func testPutInvalid(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	for name, spoil := range map[string]func(*store.Entry){
		"an ID of another document":   func(e *store.Entry) { e.Document.ID = assay.DocumentID("c", "/other") },
		"no version":                  func(e *store.Entry) { e.Document.Version = "" },
		"no URI":                      func(e *store.Entry) { e.Document.URI = "" },
		"no collection":               func(e *store.Entry) { e.Document.Collection = "" },
		"text that is not UTF-8":      func(e *store.Entry) { e.Document.Text = "\xff" + e.Document.Text[1:] },
		"a chunk past the end":        func(e *store.Entry) { e.Chunks[1].End = len(e.Document.Text) + 1 },
		"a chunk that ends first":     func(e *store.Entry) { e.Chunks[1].Start, e.Chunks[1].End = 2, 1 },
		"a chunk before the start":    func(e *store.Entry) { e.Chunks[1].Start = -1 },
		"a chunk that cuts ü":         func(e *store.Entry) { e.Chunks[1].End = 1 },
		"a chunk of another version":  func(e *store.Entry) { e.Chunks[1].Version = "x" },
		"a chunk of another document": func(e *store.Entry) { e.Chunks[1].Document = "x" },
		"a chunk out of order":        func(e *store.Entry) { e.Chunks[0], e.Chunks[1] = e.Chunks[1], e.Chunks[0] },
		"a chunk with a wrong ID":     func(e *store.Entry) { e.Chunks[1].ID = e.Chunks[0].ID },
		"a parent that is not there":  func(e *store.Entry) { e.Chunks[1].Parent = assay.ChunkID("a", "b", 1) },
		"metadata without a kind":     func(e *store.Entry) { e.Document.Metadata = assay.Metadata{"x": assay.Value{}} },
		"a time that cannot be written": func(e *store.Entry) {
			e.Document.Source.Modified = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
		},
		"metadata with such a time": func(e *store.Entry) {
			e.Document.Metadata = assay.Metadata{"x": assay.TimeValue(time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC))}
		},
		"anchors out of order":   func(e *store.Entry) { e.Document.Anchors = []assay.Anchor{{Start: 2, Line: 1}, {Start: 1, Line: 2}} },
		"an anchor past the end": func(e *store.Entry) { e.Document.Anchors = []assay.Anchor{{Start: 99, Line: 1}} },
	} {
		e := Entry("c", "/a", "übel\n")
		spoil(&e)
		_, err := w.Put(t.Context(), Entry("c", "/good", "good"), e)
		wantErr(t, "Put of "+name, err, assay.ErrInvalid)
	}
	twice := Entry("c", "/a", "a")
	_, err := w.Put(t.Context(), twice, twice)
	wantErr(t, "Put of a document twice", err, assay.ErrInvalid)
	if n := sequence(t, w); n != 0 || len(uris(t, w)) != 0 {
		t.Errorf("Sequence = %d with %v, want nothing stored", n, uris(t, w))
	}
}

func testRequireACL(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	mustPut(t, w, Entry("hr", "/before", "x"))
	if err := w.SetCollection(t.Context(), store.Collection{Name: "hr", RequireACL: true, Documents: 99, Chunks: 99}); err != nil {
		t.Fatal(err)
	}
	e := Entry("hr", "/a", "pay")
	_, err := w.Put(t.Context(), e)
	wantErr(t, "Put without an ACL", err, assay.ErrInvalid)
	e.Document.ACL = assay.ACL{Restricted: true, Allow: []string{"group:hr"}}
	mustPut(t, w, e)
	e.Document.ACL = assay.ACL{}
	_, err = w.Put(t.Context(), e)
	wantErr(t, "Put that takes the ACL away", err, assay.ErrInvalid)
	got, err := w.Document(t.Context(), e.Document.ID)
	if err != nil || !got.ACL.Restricted {
		t.Errorf("Document = %v, %v, want it restricted", got.ACL, err)
	}
	if err := w.SetCollection(t.Context(), store.Collection{Name: "hr"}); err != nil {
		t.Fatal(err)
	}
	mustPut(t, w, e)
}

func testDelete(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	a, b := Entry("c", "/a", "a"), Entry("c", "/b", "b")
	n := mustPut(t, w, a, b)
	unknown := assay.DocumentID("c", "/never")
	if got := mustDelete(t, w, unknown); got != n {
		t.Errorf("Delete of nothing = %d, want %d", got, n)
	}
	n2 := mustDelete(t, w, unknown, a.Document.ID, a.Document.ID)
	wantSame(t, "Changes", changes(t, w, n), []assay.Change{gone(n2, a)})
	_, err := w.Document(t.Context(), a.Document.ID)
	wantErr(t, "Document", err, assay.ErrNotFound)
	got, err := w.Version(t.Context(), a.Document.ID, a.Document.Version)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "the deleted document's last version", got, a.Document)
	if _, err := w.Passages(t.Context(), []string{a.Chunks[1].ID}); err != nil {
		t.Errorf("a chunk of the deleted document's last version: %v", err)
	}
	wantSame(t, "Documents", uris(t, w), []string{"c:/b"})
	if got := mustDelete(t, w, a.Document.ID); got != n2 {
		t.Errorf("Delete again = %d, want %d", got, n2)
	}
}

func testSetCollection(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	wantErr(t, "SetCollection without a name", w.SetCollection(t.Context(), store.Collection{}), assay.ErrInvalid)
	for _, c := range []store.Collection{{Name: "b", RequireACL: true}, {Name: "a", Documents: 5, Chunker: "fixed", ChunkSize: 300, ChunkOverlap: -1}} {
		if err := w.SetCollection(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	collections, err := w.Collections(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "Collections", collections, []store.Collection{{Name: "a", Chunker: "fixed", ChunkSize: 300, ChunkOverlap: -1}, {Name: "b", RequireACL: true}})
}

func testWriterClosed(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	for range 2 {
		if err := w.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if _, err := w.Put(t.Context(), Entry("c", "/a", "a")); err == nil {
		t.Error("Put after Close went through")
	}
	if _, err := w.Delete(t.Context(), "x"); err == nil {
		t.Error("Delete after Close went through")
	}
	if err := w.SetCollection(t.Context(), store.Collection{Name: "x"}); err == nil {
		t.Error("SetCollection after Close went through")
	}
	if _, err := w.Prune(t.Context()); err == nil {
		t.Error("Prune after Close went through")
	}
	if _, err := w.PutVectors(t.Context(), "m", embed(1, searched(Entry("c", "/a", "a"))...)...); err == nil {
		t.Error("PutVectors after Close went through")
	}
	if err := w.DropModel(t.Context(), "m"); err == nil {
		t.Error("DropModel after Close went through")
	}
}

var pruneTests = []contractTest{
	{"drops what nobody cites", testPruneDrops},
	{"keeps what a run cites", testPrunePins},
	{"many versions", testPruneMany},
}

// day exceeds the longest duration of a run.
const day = 25 * time.Hour

func testPruneDrops(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	v1, v2, deleted := Entry("c", "/a", "one"), Entry("c", "/a", "two"), Entry("c", "/b", "b")
	n := mustPut(t, w, v1, deleted)
	mustPut(t, w, v2)
	n2 := mustDelete(t, w, deleted.Document.ID)
	wantPrune(t, w, 0) // replaced a moment ago
	h.Advance(day)
	wantPrune(t, w, 2)
	wantPrune(t, w, 0)
	for _, e := range []store.Entry{v1, deleted} {
		_, err := w.Version(t.Context(), e.Document.ID, e.Document.Version)
		wantErr(t, "a pruned version", err, assay.ErrNotFound)
		_, err = w.Passages(t.Context(), []string{e.Chunks[0].ID})
		wantErr(t, "a pruned chunk", err, assay.ErrNotFound)
	}
	got, err := w.Document(t.Context(), v2.Document.ID)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "the current version", got, v2.Document)
	wantSame(t, "Changes", summary(changes(t, w, n)), summary([]assay.Change{change(n+1, v2), gone(n2, deleted)}))
	mustPut(t, w, v1, deleted)
	wantSame(t, "Documents after both came back", uris(t, w), []string{"c:/a", "c:/b"})
}

func wantPrune(t *testing.T, w store.Writer, want int) {
	t.Helper()
	if n, err := w.Prune(t.Context()); err != nil || n != want {
		t.Errorf("Prune = %d, %v, want %d", n, err, want)
	}
}

func testPrunePins(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	w := openWriter(t, tenant)
	cited, other := Entry("c", "/a", "cited"), Entry("c", "/b", "other")
	mustPut(t, w, cited, other)
	mustDelete(t, w, cited.Document.ID, other.Document.ID)
	l := mustCreate(t, tenant, "run")
	answer := &assay.Answer{Status: assay.Answered, Citations: []assay.Citation{
		{Number: 1, Document: cited.Document.ID, Version: cited.Document.Version, End: 5, Quote: "cited"},
	}}
	if err := l.Finish(t.Context(), assay.RunDone, answer, ""); err != nil {
		t.Fatal(err)
	}
	closeLease(t, l)
	h.Advance(day)
	wantPrune(t, w, 1)
	if _, err := w.Version(t.Context(), cited.Document.ID, cited.Document.Version); err != nil {
		t.Errorf("the cited version: %v", err)
	}
	_, err := w.Version(t.Context(), other.Document.ID, other.Document.Version)
	wantErr(t, "the version that was not cited", err, assay.ErrNotFound)
	if err := tenant.Runs().Delete(t.Context(), "run", store.Act{Kind: "run.deleted"}); err != nil {
		t.Fatal(err)
	}
	wantPrune(t, w, 1)
}

func testPruneMany(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	const n = 150
	for _, text := range []string{"one", "two"} {
		var entries []store.Entry
		for i := range n {
			entries = append(entries, Entry("c", "/"+strconv.Itoa(i), text))
		}
		mustPut(t, w, entries...)
	}
	h.Advance(day)
	wantPrune(t, w, n)
	if got := len(uris(t, w)); got != n {
		t.Errorf("%d documents are left, want %d", got, n)
	}
	for c, err := range w.Changes(t.Context(), 0) {
		if err != nil || c.Document.Text != "two" {
			t.Fatal(errors.Join(err, errors.New("a current version is gone")))
		}
	}
}
