package storetest

import (
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// inside returns an entry of a document in a container.
func inside(collection, container, path, text string) store.Entry {
	e := Entry(collection, container+assay.PartSeparator+path, text)
	e.Document.Container = container
	return e
}

func testContainer(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	part := inside("c", "/a.zip", "b.tar!/c.md", "text")
	mustPut(t, w, part)
	got, err := w.Document(t.Context(), part.Document.ID)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "Document", got, part.Document)
	for d, err := range w.Documents(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Container != "/a.zip" {
			t.Errorf("Documents: container %q", d.Container)
		}
	}
	outside := part
	outside.Document.Container = "/other.zip"
	_, err = w.Put(t.Context(), outside)
	wantErr(t, "Put of a document outside its container", err, assay.ErrInvalid)
}

func sources(t *testing.T, c store.Content, collections ...string) []store.Source {
	t.Helper()
	var all []store.Source
	for s, err := range c.Sources(t.Context(), collections...) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

func testSources(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	w := openWriter(t, tenant)
	acl, err := assay.RestrictTo("group:legal")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2025, 1, 2, 3, 4, 5, 6, time.UTC)
	zip := store.Source{
		Collection: "c", URI: "/x/a.zip", Path: []string{"x", "a.zip"}, ACL: acl,
		Info: assay.SourceInfo{SizeBytes: 7, Modified: at, Hash: "h"},
		Failures: []store.Failure{
			{URI: "/x/a.zip!/1", Reason: "encoding", Detail: "ünreadable", Time: at}, {URI: "/x/a.zip!/2", Reason: "empty", Time: at},
		},
	}
	root := store.Source{Collection: "c", URI: "/b"}
	other := store.Source{Collection: "d", URI: "/b", SameAs: "/a"}
	if all := sources(t, w); len(all) != 0 {
		t.Errorf("Sources = %v, want none", all)
	}
	part := inside("c", "/x/a.zip", "3", "text")
	apply := func(b store.Batch) int64 {
		t.Helper()
		n, err := w.Apply(t.Context(), b)
		if err != nil {
			t.Fatalf("Apply: %v", err)
		}
		return n
	}
	n := apply(store.Batch{Put: []store.Entry{part}, Sources: []store.Source{zip, root, other}})
	wantSame(t, "Sources", sources(t, tenant.Content()), []store.Source{root, zip, other})
	wantSame(t, "Sources(d)", sources(t, tenant.Content(), "d"), []store.Source{other})
	for range w.Sources(t.Context()) {
		break
	}

	changed := zip
	changed.Failures = changed.Failures[:1]
	if got := apply(store.Batch{Sources: []store.Source{changed}, Forget: []store.Source{root, {Collection: "none", URI: "/such"}}}); got != n {
		t.Errorf("a change of sources moved the sequence from %d to %d", n, got)
	}
	wantSame(t, "Sources after a change", sources(t, w, "c"), []store.Source{changed})

	last := apply(store.Batch{Delete: []string{part.Document.ID}, Forget: []store.Source{zip}, Put: []store.Entry{Entry("c", "/new", "text")}})
	if last != n+1 {
		t.Errorf("Apply returned sequence %d, want %d", last, n+1)
	}
	wantSame(t, "Documents", uris(t, w), []string{"c:/new"})
	wantSame(t, "Sources(c)", sources(t, w, "c"), []store.Source(nil))

	for name, b := range map[string]store.Batch{
		"a source twice":     {Sources: []store.Source{root, root}},
		"no URI":             {Sources: []store.Source{{Collection: "c"}}},
		"the same as itself": {Sources: []store.Source{{Collection: "c", URI: "/b", SameAs: "/b"}}},
		"a failure twice":    {Sources: []store.Source{{Collection: "c", URI: "/b", Failures: []store.Failure{{URI: "/b"}, {URI: "/b"}}}}},
		"with a bad entry":   {Sources: []store.Source{root}, Put: []store.Entry{{}}},
	} {
		_, err := w.Apply(t.Context(), b)
		wantErr(t, name, err, assay.ErrInvalid)
	}
	wantSame(t, "Sources after bad batches", sources(t, w, "c"), []store.Source(nil))
}

// testOneSource reads single sources beside others whose names begin in the same way, and the settings of
// single collections.
func testOneSource(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	at := time.Date(2025, 1, 2, 3, 4, 5, 6, time.UTC)
	zip := store.Source{
		Collection: "c", URI: "/a.zip", Info: assay.SourceInfo{SizeBytes: 7, Modified: at, Hash: "h"},
		Failures: []store.Failure{{URI: "/a.zip!/1", Reason: "encoding", Time: at}, {URI: "/a.zip!/2", Reason: "empty", Time: at}},
	}
	alias := store.Source{Collection: "c", URI: "/b.zip", SameAs: "/a.zip"}
	_, err := w.Apply(t.Context(), store.Batch{
		Put: []store.Entry{
			inside("c", "/a.zip", "ü", "text"), inside("c", "/a.zip", "p", "text"), Entry("c", "/a.zip", "text"),
			Entry("c", "/a.zip!", "text"), Entry("c", "/a.zip b", "text"), Entry("c", "/a.zip2", "text"), Entry("d", "/a.zip", "text"),
			inside("c", "/a.zip ", "p", "text"), Entry("c", "/bare", "text"), Entry("c", "/gone", "text"),
		},
		Sources: []store.Source{zip, alias, {Collection: "d", URI: "/a.zip"}},
	})
	if err == nil {
		_, err = w.Delete(t.Context(), assay.DocumentID("c", "/gone"))
	}
	if err == nil {
		err = w.SetCollection(t.Context(), store.Collection{Name: "d", RequireACL: true, Chunker: "lines", ChunkSize: 100, ChunkOverlap: 10})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		collection, uri string
		source          store.Source
	}{
		{"c", "/a.zip", zip}, {"c", "/b.zip", alias}, {"c", "/bare", store.Source{}}, {"c", "/gone", store.Source{}},
		{"c", "/none", store.Source{}}, {"none", "/a.zip", store.Source{}}, {"d", "/a.zip", store.Source{Collection: "d", URI: "/a.zip"}},
	} {
		var want []assay.Document
		for d, err := range w.Documents(t.Context(), x.collection) {
			if err != nil {
				t.Fatal(err)
			}
			if d.SourceURI() == x.uri {
				want = append(want, d)
			}
		}
		got, documents, err := w.Source(t.Context(), x.collection, x.uri)
		if err != nil {
			t.Errorf("Source(%s, %s): %v", x.collection, x.uri, err)
		}
		wantSame(t, "Source "+x.uri, got, x.source)
		wantSame(t, "documents of "+x.uri, documents, want)
	}
	got, err := w.Collection(t.Context(), "d")
	if err != nil {
		t.Error(err)
	}
	wantSame(t, "Collection", got, store.Collection{Name: "d", RequireACL: true, Chunker: "lines", ChunkSize: 100, ChunkOverlap: 10})
	_, err = w.Collection(t.Context(), "none")
	wantErr(t, "Collection that does not exist", err, assay.ErrNotFound)
}

func testAliases(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	own, part := Entry("c", "/a.eml", "text"), inside("c", "/a.eml", "p.md", "part")
	same := func(collection, uri string) store.Source {
		return store.Source{Collection: collection, URI: uri, SameAs: "/a.eml"}
	}
	_, err := w.Apply(t.Context(), store.Batch{Put: []store.Entry{own, part},
		Sources: []store.Source{{Collection: "c", URI: "/a.eml"}, same("c", "/c.eml"), same("c", "/b.eml"), same("other", "/d.eml")}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"/a.eml": {"/b.eml", "/c.eml"}, "/a.eml!/p.md": {"/b.eml!/p.md", "/c.eml!/p.md"}}
	for d, err := range w.Documents(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "Documents: aliases of "+d.URI, d.Aliases, want[d.URI])
		whole, err := w.Document(t.Context(), d.ID)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "Document: aliases of "+d.URI, whole.Aliases, want[d.URI])
	}
}
