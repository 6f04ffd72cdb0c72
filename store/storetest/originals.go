package storetest

import (
	"bytes"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

var originalTests = []contractTest{
	{"an original comes back", testOriginal},
	{"an original stays that of its version", testOriginalStays},
	{"an original is dropped with the last of its versions", testOriginalPruned},
	{"an original belongs to its tenant", testOriginalIsolated},
	{"an original is stored with its document or not at all", testOriginalAtomic},
	{"the versions of a document", testVersions},
}

// withOriginal returns an entry with an original.
func withOriginal(collection, uri, text, original string) store.Entry {
	e := Entry(collection, uri, text)
	e.Original = assay.Original{Media: "application/pdf", Data: []byte(original)}
	return e
}

func wantOriginal(t *testing.T, what string, c store.Content, e store.Entry, want assay.Original) {
	t.Helper()
	got, err := c.Original(t.Context(), e.Document.ID, e.Document.Version)
	if err != nil {
		t.Errorf("%s: Original: %v", what, err)
		return
	}
	if got.Media != want.Media || !bytes.Equal(got.Data, want.Data) {
		t.Errorf("%s is %d bytes of %s, want %d of %s", what, len(got.Data), got.Media, len(want.Data), want.Media)
	}
}

func wantNoOriginal(t *testing.T, what string, c store.Content, e store.Entry) {
	t.Helper()
	_, err := c.Original(t.Context(), e.Document.ID, e.Document.Version)
	wantErr(t, what, err, assay.ErrNotFound)
}

func testOriginal(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	w := openWriter(t, tenant)
	large := withOriginal("c", "/large", "large", "")
	large.Original.Data = bytes.Repeat([]byte("0123456789abcdef\x00\xff"), 1<<18)
	e, same, none := withOriginal("c", "/a", "a", "%PDF-a"), withOriginal("d", "/a", "a", "%PDF-a"), Entry("c", "/none", "x")
	mustPut(t, w, e, same, none, large)
	for name, c := range map[string]store.Content{
		"the writer": w, "the tenant": tenant.Content(), "another handle": openTenant(t, h, "acme").Content(),
	} {
		for _, e := range []store.Entry{e, same, large} {
			wantOriginal(t, name, c, e, e.Original)
		}
		wantNoOriginal(t, name+": a document without one", c, none)
		wantNoOriginal(t, name+": no document", c, Entry("c", "/unknown", "x"))
		wantNoOriginal(t, name+": no version", c, Entry("c", "/a", "another"))
	}
	if err := tenant.Check(t.Context()); err != nil {
		t.Errorf("Check: %v", err)
	}
	for _, wrong := range []assay.Original{{Media: "application/pdf"}, {Data: []byte("x")}} {
		bad := Entry("c", "/bad", "bad")
		bad.Original = wrong
		_, err := w.Put(t.Context(), bad)
		wantErr(t, "an original that lacks a field", err, assay.ErrInvalid)
	}
}

func testOriginalStays(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	e := withOriginal("c", "/a", "one", "first file")
	mustPut(t, w, e)
	again := withOriginal("c", "/a", "one", "another file with the same text")
	again.Document.Source.Hash = "another"
	mustPut(t, w, again)
	wantOriginal(t, "after the version was put again", w, e, e.Original)
	amended := store.Entry{Document: e.Document}
	amended.Document.ACL = assay.ACL{Restricted: true}
	amended.Document.Text, amended.Document.Anchors = "", nil
	mustPut(t, w, amended)
	wantOriginal(t, "after its ACL changed", w, e, e.Original)
	mustPut(t, w, withOriginal("c", "/a", "two", "second file"))
	wantOriginal(t, "after the version was replaced", w, e, e.Original)
	mustDelete(t, w, e.Document.ID)
	wantOriginal(t, "after the document was deleted", w, e, e.Original)
}

func testOriginalPruned(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	old, shared, last := withOriginal("c", "/a", "one", "file"), withOriginal("c", "/b", "b", "file"), withOriginal("c", "/c", "c", "alone")
	mustPut(t, w, old, shared, last)
	mustPut(t, w, withOriginal("c", "/a", "two", "second file"))
	mustDelete(t, w, last.Document.ID)
	h.Advance(day)
	wantPrune(t, w, 2)
	wantNoOriginal(t, "a dropped version", w, old)
	wantNoOriginal(t, "a dropped version that had a file alone", w, last)
	wantOriginal(t, "a version with the same file", w, shared, shared.Original)
	mustDelete(t, w, shared.Document.ID)
	h.Advance(day)
	wantPrune(t, w, 1)
	wantNoOriginal(t, "the last version with the file", w, shared)
	mustPut(t, w, old)
	wantOriginal(t, "after it came back", w, old, old.Original)
}

func testOriginalIsolated(t *testing.T, h Harness) {
	a, b := openTenant(t, h, "a"), openTenant(t, h, "b")
	wa, wb := openWriter(t, a), openWriter(t, b)
	e := withOriginal("c", "/same", "the same words", "the file of a")
	mustPut(t, wa, e)
	wantNoOriginal(t, "b reading a's original", b.Content(), e)
	if all, err := b.Content().Versions(t.Context(), e.Document.ID); err != nil || len(all) != 0 {
		t.Errorf("b lists the versions %v, %v", all, err)
	}
	other := e
	other.Original.Data = []byte("the file of b")
	mustPut(t, wb, other)
	wantOriginal(t, "a's", a.Content(), e, e.Original)
	wantOriginal(t, "b's", b.Content(), e, other.Original)
}

func testOriginalAtomic(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	e := withOriginal("c", "/a", "a", "file")
	bad := Entry("", "/b", "b")
	_, err := w.Put(t.Context(), e, bad)
	wantErr(t, "Put with an invalid entry", err, assay.ErrInvalid)
	wantNoOriginal(t, "after a change that failed", w, e)
}

func testVersions(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	one, two, three := withOriginal("c", "/a", "one", "file"), Entry("c", "/a", "two"), Entry("c", "/a", "three")
	mustPut(t, w, one, Entry("c", "/other", "x"))
	h.Advance(day)
	mustPut(t, w, two)
	h.Advance(day)
	mustPut(t, w, three)
	versions := func() (list []string, replaced int) {
		t.Helper()
		all, err := w.Versions(t.Context(), one.Document.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range all {
			list = append(list, v.Version+" "+v.Original)
			if !v.Replaced.IsZero() {
				replaced++
			}
		}
		return list, replaced
	}
	got, replaced := versions()
	wantSame(t, "Versions", got, []string{three.Document.Version + " ", two.Document.Version + " ", one.Document.Version + " application/pdf"})
	wantSame(t, "replaced versions", replaced, 2)
	mustDelete(t, w, one.Document.ID)
	if _, replaced = versions(); replaced != 3 {
		t.Errorf("%d versions of a deleted document are replaced, want 3", replaced)
	}
	wantPrune(t, w, 1)
	got, _ = versions()
	wantSame(t, "Versions after Prune", got, []string{three.Document.Version + " ", two.Document.Version + " "})
	if all, err := w.Versions(t.Context(), assay.DocumentID("c", "/unknown")); err != nil || len(all) != 0 {
		t.Errorf("Versions of no document = %v, %v", all, err)
	}
}
