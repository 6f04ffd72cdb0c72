package storetest

import (
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

var syncTests = []contractTest{
	{"set, list and remove", testSetSource},
	{"invalid names", testSetSourceInvalid},
	{"a batch is one transaction", testApply},
	{"a refused batch changes nothing", testApplyRefused},
	{"a batch of an unknown source", testApplyUnknown},
	{"a batch without a source", testApplyPlain},
	{"items survive a change of the source", testSourceItemsStay},
}

func testSource(name string) store.SyncSource {
	return store.SyncSource{
		Name: name, Kind: "s3", Target: "s3://bucket/ü", Collection: "c", Options: map[string]string{"region": "eu"},
		Credentials: map[string]string{"key": "env:KEY"}, Cursor: "1", SweepDue: true, SinceSweep: 3,
		LastSync: time.Unix(5, 6).UTC(), LastTry: time.Unix(7, 8).UTC(), LastError: "none", Report: []byte(`{"added":1}`),
	}
}

func mustSetSource(t *testing.T, w store.Writer, s store.SyncSource) {
	t.Helper()
	if err := w.SetSyncSource(t.Context(), s); err != nil {
		t.Fatalf("SetSource: %v", err)
	}
}

func mustApply(t *testing.T, w store.Writer, b store.SyncBatch) int64 {
	t.Helper()
	n, err := w.ApplySync(t.Context(), b)
	if err != nil {
		t.Fatalf("Apply: %v", err)
	}
	return n
}

func syncSources(t *testing.T, c store.Content) []store.SyncSource {
	t.Helper()
	all, err := c.SyncSources(t.Context())
	if err != nil {
		t.Fatalf("Sources: %v", err)
	}
	return all
}

func sourceItems(t *testing.T, c store.Content, name string) []store.SyncItem {
	t.Helper()
	var all []store.SyncItem
	for item, err := range c.SyncItems(t.Context(), name) {
		if err != nil {
			t.Fatalf("SyncItems(%s): %v", name, err)
		}
		all = append(all, item)
	}
	return all
}

func testSetSource(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	w := openWriter(t, tenant)
	wantSame(t, "Sources of an empty store", syncSources(t, w), []store.SyncSource{})
	a, b := testSource("a"), store.SyncSource{Name: "b", Kind: "git", Collection: "default", Options: map[string]string{}, Credentials: map[string]string{}}
	mustSetSource(t, w, b)
	mustSetSource(t, w, a)
	wantSame(t, "Sources", syncSources(t, tenant.Content()), []store.SyncSource{a, b})
	a.Cursor, a.LastError, a.SweepDue, a.Report = "2", "", false, nil
	mustSetSource(t, w, a)
	wantSame(t, "Sources after a change", syncSources(t, tenant.Content()), []store.SyncSource{a, b})
	if err := w.RemoveSyncSource(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	wantSame(t, "Sources after a removal", syncSources(t, w), []store.SyncSource{b})
	wantErr(t, "RemoveSource again", w.RemoveSyncSource(t.Context(), "a"), assay.ErrNotFound)
	for _, err := range w.SyncItems(t.Context(), "a") {
		wantErr(t, "SourceItems of a removed source", err, assay.ErrNotFound)
	}
}

func testSetSourceInvalid(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	for _, name := range []string{"", "A", "a/b", "..", "a b"} {
		wantErr(t, "SetSource "+name, w.SetSyncSource(t.Context(), testSource(name)), assay.ErrInvalid)
	}
	s := testSource("a")
	s.Collection = ""
	wantErr(t, "SetSource without a collection", w.SetSyncSource(t.Context(), s), assay.ErrInvalid)
}

func testApply(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	w := openWriter(t, tenant)
	s := testSource("a")
	mustSetSource(t, w, s)
	old := Entry("c", "/old", "old")
	mustPut(t, w, old)
	fresh := Entry("c", "/new", "new")
	items := []store.SyncItem{
		{URI: "/bad", Version: "2", Reason: "unreadable", Detail: "broken", Retry: []byte(`{"uri":"/bad"}`)},
		{URI: "/new", Version: "1", Hash: "h", ACL: assay.ACL{Restricted: true, Allow: []string{"user:ann"}}, Failures: []store.Failure{
			{URI: "/new!/part", Reason: "damaged", Detail: "broken", Time: time.Date(2025, 1, 2, 3, 4, 5, 6, time.UTC)},
		}},
	}
	n := mustApply(t, w, store.SyncBatch{Put: []store.Entry{fresh}, Delete: []string{old.Document.ID}, Source: "a", Cursor: "9", Items: items})
	if got := sequence(t, w); got != n {
		t.Errorf("Apply = %d, Sequence = %d", n, got)
	}
	s.Cursor = "9"
	wantSame(t, "Sources", syncSources(t, tenant.Content()), []store.SyncSource{s})
	wantSame(t, "SourceItems", sourceItems(t, tenant.Content(), "a"), items)
	wantSame(t, "Documents", uris(t, w), []string{"c:/new"})

	items[0].Retry, items[0].Reason, items[0].Detail = nil, "", ""
	again := mustApply(t, w, store.SyncBatch{Source: "a", Items: items[:1], Gone: []string{"/new", "/never"}})
	if again != n {
		t.Errorf("Apply without a document = %d, want the sequence %d", again, n)
	}
	wantSame(t, "SourceItems", sourceItems(t, w, "a"), items[:1])
	wantSame(t, "Sources", syncSources(t, w), []store.SyncSource{s})
}

func testApplyRefused(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	s := testSource("a")
	mustSetSource(t, w, s)
	old := Entry("c", "/old", "old")
	mustPut(t, w, old)
	bad := Entry("c", "/bad", "bad")
	bad.Document.Version = ""
	_, err := w.ApplySync(t.Context(), store.SyncBatch{
		Put: []store.Entry{Entry("c", "/new", "new"), bad}, Delete: []string{old.Document.ID},
		Source: "a", Cursor: "9", Items: []store.SyncItem{{URI: "/new"}},
	})
	wantErr(t, "Apply", err, assay.ErrInvalid)
	wantSame(t, "Sources", syncSources(t, w), []store.SyncSource{s})
	wantSame(t, "Documents", uris(t, w), []string{"c:/old"})
	wantSame(t, "SourceItems", len(sourceItems(t, w, "a")), 0)
}

func testApplyUnknown(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	_, err := w.ApplySync(t.Context(), store.SyncBatch{Put: []store.Entry{Entry("c", "/new", "new")}, Source: "a", Cursor: "9"})
	wantErr(t, "Apply", err, assay.ErrNotFound)
	wantSame(t, "Documents", len(uris(t, w)), 0)
}

func testApplyPlain(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	old := Entry("c", "/a", "old")
	mustPut(t, w, old)
	mustApply(t, w, store.SyncBatch{Delete: []string{old.Document.ID}, Put: []store.Entry{Entry("c", "/a", "new")}})
	got, err := w.Document(t.Context(), old.Document.ID)
	if err != nil || got.Text != "new" {
		t.Errorf("Document = %q, %v, want the text that replaced it", got.Text, err)
	}
}

func testSourceItemsStay(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	s := testSource("a")
	mustSetSource(t, w, s)
	item := store.SyncItem{URI: "/new", Version: "1"}
	mustApply(t, w, store.SyncBatch{Source: "a", Items: []store.SyncItem{item}})
	s.LastError = "other"
	mustSetSource(t, w, s)
	wantSame(t, "SourceItems", sourceItems(t, w, "a"), []store.SyncItem{item})
}
