package indextest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
)

// An Opener opens the index of a source, stored in dir. The folder may have any content or not
// exist, and without Levels.Files it is only a name. The Opener is called several times for one
// dir, to simulate successive processes and a reader beside a writer.
type Opener func(t testing.TB, source index.Source, dir string) index.Index

// Run tests that an index meets the contract of index.Index at its levels.
func Run(t *testing.T, open Opener, levels Levels) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, contract)
		skip bool
	}{
		{"Fields", testFields, false},
		{"Order", testOrder, false},
		{"Limit", testLimit, false},
		{"Sections", testSections, false},
		{"Terms", testTerms, false},
		{"Identifiers", testIdentifiers, false},
		{"NoTerms", testNoTerms, false},
		{"Access", testAccess, false},
		{"Collections", testCollections, false},
		{"Filter", testFilter, false},
		{"FilterRandom", testFilterRandom, false},
		{"FilterErrors", testFilterErrors, false},
		{"Languages", testLanguages, false},
		{"LanguagesHidden", testLanguagesHidden, false},
		{"LanguagesModel", testLanguagesModel, false},
		{"Total", testTotal, false},
		{"TotalCap", testTotalCap, false},
		{"Best", testBest, false},
		{"IDs", testIDs, false},
		{"NearestOrder", testNearestOrder, false},
		{"NearestTies", testNearestTies, false},
		{"NearestInvalid", testNearestInvalid, false},
		{"NearestUnknownModel", testNearestUnknownModel, false},
		{"NearestLate", testNearestLate, false},
		{"NearestDropModel", testNearestDropModel, false},
		{"NearestShared", testNearestShared, false},
		{"NearestAccess", testNearestAccess, false},
		{"NearestReopen", testNearestReopen, false},
		{"NearestSourceFails", testNearestSourceFails, false},
		{"Similarities", testSimilarities, false},
		{"CatchUp", testCatchUp, false},
		{"Reopen", testReopen, false},
		{"Cancel", testCancel, false},
		{"SourceFails", testSourceFails, false},
		{"Close", testClose, false},
		{"Random", testRandom, false},
		{"DamagedFiles", testDamagedFiles, !levels.Files},
		{"ForeignFiles", testForeignFiles, false},
		{"OlderSource", testOlderSource, false},
		{"NoFolder", testNoFolder, !levels.Files},
		{"FolderDeleted", testFolderDeleted, !levels.Files},
		{"ReadersBesideWriter", testReadersBesideWriter, false},
		{"OpenBesideFlush", testOpenBesideFlush, false},
		{"ReaderFollowsWriter", testReaderFollowsWriter, false},
		{"CloseBesideSearches", testCloseBesideSearches, false},
		{"Settle", testSettle, false},
		{"Revoked", testRevoked, false},
		{"RevokedRandom", testRevokedRandom, false},
		{"Tenants", testTenants, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.skip {
				t.Skip("the index has no files")
			}
			test.run(t, newContract(open, levels))
		})
	}
}

// everyone is an access that sees all unrestricted documents.
var everyone = assay.Local().Access()

// search returns the result of a search. It fails the test on an error.
func search(t *testing.T, ix index.Index, q assay.Query) index.Result {
	t.Helper()
	return searchAs(t, ix, everyone, q)
}

func searchAs(t *testing.T, ix index.Index, access assay.Access, q assay.Query) index.Result {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 1000
	}
	result, err := ix.Search(t.Context(), access, q)
	if err != nil {
		t.Fatalf("Search(%+v): %v", q, err)
	}
	return result
}

// nearest returns the result of a vector search. It fails the test on an error.
func nearest(t *testing.T, ix index.Index, q assay.Query, v index.Vector) index.Result {
	t.Helper()
	return nearestAs(t, ix, everyone, q, v)
}

func nearestAs(t *testing.T, ix index.Index, access assay.Access, q assay.Query, v index.Vector) index.Result {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 1000
	}
	result, err := ix.Nearest(t.Context(), access, q, v)
	if err != nil {
		t.Fatalf("Nearest(%+v, %+v): %v", q, v, err)
	}
	return result
}

// documents returns the URIs of the hits' documents.
func documents(s *Source, result index.Result) []string {
	uris := []string{}
	for _, h := range result.Hits {
		uris = append(uris, s.uri(h.Document))
	}
	return uris
}

func wantDocuments(t *testing.T, s *Source, result index.Result, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, documents(s, result), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("documents found: -want +got\n%s", diff)
	}
}

func testFields(t *testing.T, c contract) {
	s := NewSource("a")
	body := NewEntry("c", "body", "Other", "the needle is here", "nothing")
	title := NewEntry("c", "title", "Needle", "something else entirely, and longer")
	headings := NewEntry("c", "headings", "Other", "something else entirely")
	headings.Chunks[0].Headings = []string{"Tools", "The needle"}
	s.Put(body, title, headings)
	result := search(t, c.open(t, s, t.TempDir()), assay.Query{Text: "needles"})
	if result.Total != 3 || result.Chunks != 4 {
		t.Errorf("Total %d of %d chunks, want 3 of 4", result.Total, result.Chunks)
	}
	for _, h := range result.Hits {
		if diff := cmp.Diff([]string{"needl"}, h.Matched); diff != "" {
			t.Errorf("%s matched: -want +got\n%s", s.uri(h.Document), diff)
		}
	}
	for _, h := range result.Hits {
		if h.Document == body.Document.ID && (h.Chunk != body.Chunks[0].ID || h.Version != body.Document.Version) {
			t.Errorf("hit %+v is not chunk %+v", h, body.Chunks[0])
		}
	}
}

func testOrder(t *testing.T, c contract) {
	s := NewSource("a")
	s.Put(
		NewEntry("c", "both", "", "red fox, seen by many people on the road"),
		NewEntry("c", "rare", "", "fox, seen by many people on the road"),
		NewEntry("c", "common", "", "red cat, seen by many people on the road"),
		NewEntry("c", "common2", "", "red dog, seen by many people on the road"),
		NewEntry("c", "none", "", "nothing at all"),
	)
	result := search(t, c.open(t, s, t.TempDir()), assay.Query{Text: "red fox"})
	got := documents(s, result)
	if len(got) != 4 || got[0] != "both" || got[1] != "rare" {
		t.Errorf("found %v, want both, rare and then the common ones", got)
	}
	for i := 1; i < len(result.Hits); i++ {
		before, h := result.Hits[i-1], result.Hits[i]
		if before.BM25 < h.BM25 || before.BM25 == h.BM25 && before.Chunk >= h.Chunk {
			t.Errorf("hit %d (%s %v) comes before (%s %v)", i, before.Chunk, before.BM25, h.Chunk, h.BM25)
		}
	}
	if last := result.Hits[len(result.Hits)-1]; last.BM25 <= 0 {
		t.Errorf("a chunk with a term has the score %v", last.BM25)
	}
}

func testLimit(t *testing.T, c contract) {
	s := NewSource("a")
	for i := range 20 {
		s.Put(NewEntry("c", fmt.Sprint("d", i), "", "same words", strings.Repeat("same words and others ", i+1)))
	}
	ix := c.open(t, s, t.TempDir())
	all := search(t, ix, assay.Query{Text: "same word"})
	if all.Total != 40 || len(all.Hits) != 40 {
		t.Fatalf("Total %d, hits %d, want 40", all.Total, len(all.Hits))
	}
	for _, limit := range []int{1, 2, 7, 39, 40, 41} {
		some := search(t, ix, assay.Query{Text: "same word", Limit: limit})
		if diff := cmp.Diff(all.Hits[:min(limit, 40)], some.Hits, c.scores()); diff != "" || some.Total != 40 {
			t.Errorf("limit %d: total %d, -want +got\n%s", limit, some.Total, diff)
		}
	}
	for _, limit := range []int{0, -1} {
		if _, err := ix.Search(t.Context(), everyone, assay.Query{Text: "same", Limit: limit}); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("limit %d: error %v, want ErrInvalid", limit, err)
		}
	}
}

func testSections(t *testing.T, c contract) {
	s := NewSource("a")
	e := NewEntry("c", "d", "", "needle in a section", "needle in prose", "needle in code", "needle in a table")
	for i, kind := range []assay.ChunkKind{assay.ChunkSection, assay.ChunkProse, assay.ChunkCode, assay.ChunkTable} {
		e.Chunks[i].Kind = kind
	}
	s.Put(e)
	result := search(t, c.open(t, s, t.TempDir()), assay.Query{Text: "needle section"})
	if result.Chunks != 3 || result.Total != 3 || result.Terms[0].Chunks != 3 || result.Terms[1].Chunks != 0 {
		t.Errorf("%+v, want three chunks and none of the section", result)
	}
}

func testTerms(t *testing.T, c contract) {
	s := NewSource("a")
	s.Put(NewEntry("c", "d", "", "server alpha", "server beta", "server beta gamma"))
	ix := c.open(t, s, t.TempDir())
	result := search(t, ix, assay.Query{Text: "Is the Servers' BETA or Gamma, the server's unheard?"})
	want := []assay.Term{
		{Text: "Servers", Stem: "server", Chunks: 3, Weight: 0},
		{Text: "BETA", Stem: "beta", Chunks: 2},
		{Text: "Gamma", Stem: "gamma", Chunks: 1},
		{Text: "unheard", Stem: "unheard", Chunks: 0, Weight: 1},
	}
	ignoreWeight := cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Weight" }, cmp.Comparer(func(x, y float64) bool {
		return x == y || x > 0 && x < 1 || y > 0 && y < 1
	}))
	if diff := cmp.Diff(want, result.Terms, ignoreWeight); diff != "" {
		t.Fatalf("terms: -want +got\n%s", diff)
	}
	for i := 1; i < len(want); i++ {
		if result.Terms[i-1].Weight >= result.Terms[i].Weight {
			t.Errorf("weights %v do not grow as terms get rarer", result.Terms)
		}
	}
	if diff := cmp.Diff([]string{"server", "beta", "gamma"}, result.Hits[0].Matched); diff != "" {
		t.Errorf("the best hit matched: -want +got\n%s", diff)
	}
	nothing := search(t, ix, assay.Query{Text: "unheard"})
	if len(nothing.Hits) != 0 || nothing.Total != 0 || nothing.Chunks != 3 {
		t.Errorf("a term in no chunk: %+v", nothing)
	}
	empty := search(t, c.open(t, NewSource("b"), t.TempDir()), assay.Query{Text: "alpha"})
	if len(empty.Hits) != 0 || empty.Chunks != 0 || empty.Terms[0].Weight != 1 {
		t.Errorf("an empty index: %+v", empty)
	}
}

// testIdentifiers checks that a whole identifier scores more than its parts, and that each part is
// found.
func testIdentifiers(t *testing.T, c contract) {
	s := NewSource("a")
	s.Put(
		NewEntry("c", "whole", "", "call os.Open with a path"),
		NewEntry("c", "parts", "", "open the os with a path"),
		NewEntry("c", "camel", "", "set ReadHeaderTimeout before"),
		NewEntry("c", "error", "", "it ends with E1042 then"),
	)
	ix := c.open(t, s, t.TempDir())
	wantDocuments(t, s, search(t, ix, assay.Query{Text: "os.Open"}), "whole", "parts")
	wantDocuments(t, s, search(t, ix, assay.Query{Text: "header timeouts"}), "camel")
	wantDocuments(t, s, search(t, ix, assay.Query{Text: "readheadertimeout"}), "camel")
	wantDocuments(t, s, search(t, ix, assay.Query{Text: "e1042"}), "error")
}

func testNoTerms(t *testing.T, c contract) {
	s := NewSource("a")
	s.Put(NewEntry("c", "d", "", "the text is this"))
	ix := c.open(t, s, t.TempDir())
	for _, text := range []string{"", "  ", "is this the", "?!", "\xff"} {
		if result := search(t, ix, assay.Query{Text: text}); len(result.Hits) != 0 || result.Total != 0 || len(result.Terms) != 0 {
			t.Errorf("query %q: %+v, want nothing", text, result)
		}
	}
}

// restricted returns an entry that is visible only to the given names.
func restricted(uri string, names ...string) Entry {
	e := NewEntry("c", uri, "", "needle of "+uri)
	acl, err := assay.RestrictTo(names...)
	if err != nil {
		panic(err)
	}
	e.Document.ACL = acl
	return e
}

func testAccess(t *testing.T, c contract) {
	s := NewSource("a")
	s.Put(NewEntry("c", "public", "", "needle of public"), restricted("ann", "user:ann"), restricted("legal", "group:legal"), restricted("all", "*"), restricted("nobody"))
	ix := c.open(t, s, t.TempDir())
	check := func(p assay.Principal, want ...string) {
		t.Helper()
		result := searchAs(t, ix, p.Access(), assay.Query{Text: "needle"})
		got := documents(s, result)
		if diff := cmp.Diff(want, got, cmpopts.SortSlices(strings.Compare), cmpopts.EquateEmpty()); diff != "" || result.Total != len(want) {
			t.Errorf("%+v: Total %d, -want +got\n%s", p, result.Total, diff)
		}
	}
	check(assay.Principal{}) // sees nothing
	check(assay.Principal{Groups: []string{"legal"}})
	check(assay.Local(), "public", "all")
	check(assay.Principal{User: "ann"}, "public", "all", "ann")
	check(assay.Principal{User: "bob", Groups: []string{"legal", "hr"}}, "public", "all", "legal")
	if result := searchAs(t, ix, assay.Access{}, assay.Query{Text: "needle"}); len(result.Terms) != 0 || result.Chunks != 0 {
		t.Errorf("the zero access sees %+v", result)
	}

	// Invisible documents are not counted, and their keys do not exist.
	secret := restricted("secret", "user:eve")
	secret.Document.Metadata = assay.Metadata{"codename": assay.StringValue("x")}
	s.Put(secret)
	ask := assay.Query{Text: "needle secret ann"}
	before := searchAs(t, ix, assay.Local().Access(), ask)
	if before.Chunks != 2 || before.Terms[0].Chunks != 2 || before.Terms[1].Chunks != 0 || before.Terms[2].Chunks != 0 {
		t.Errorf("%d chunks are counted, want 2; terms %+v, want 2, 0 and 0 chunks", before.Chunks, before.Terms)
	}
	probe := assay.Query{Text: "needle", Limit: 1, Filter: assay.Filter{Op: assay.OpEquals, Key: "codename", Value: assay.StringValue("x")}}
	if _, err := ix.Search(t.Context(), assay.Local().Access(), probe); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("a key of a document that may not be seen: error %v, want ErrInvalid", err)
	}
	s.Delete(secret.Document.ID, restricted("ann").Document.ID, restricted("legal").Document.ID, restricted("nobody").Document.ID)
	if diff := cmp.Diff(searchAs(t, ix, assay.Local().Access(), ask), before, cmpopts.IgnoreFields(index.Result{}, "Index", "Sequence"), c.scores()); diff != "" {
		t.Errorf("documents that may not be seen change the result: -without +with\n%s", diff)
	}

	// The next search sees a change of an ACL.
	s.Put(restricted("ann", "user:bob"), restricted("nobody", "user:ann"))
	check(assay.Principal{User: "ann"}, "public", "all", "nobody")
	check(assay.Principal{User: "bob"}, "public", "all", "ann")
}

func testCollections(t *testing.T, c contract) {
	s := NewSource("a")
	s.Put(NewEntry("x", "1", "", "needle"), NewEntry("y", "2", "", "needle and more"), NewEntry("z", "3", "", "needle and much more"))
	ix := c.open(t, s, t.TempDir())
	wantDocuments(t, s, search(t, ix, assay.Query{Text: "needle"}), "1", "2", "3")
	wantDocuments(t, s, search(t, ix, assay.Query{Text: "needle", Collections: []string{"y"}}), "2")
	wantDocuments(t, s, search(t, ix, assay.Query{Text: "needle", Collections: []string{"z", "x"}}), "1", "3")
	wantDocuments(t, s, search(t, ix, assay.Query{Text: "needle", Collections: []string{"none"}}))
}

func testCatchUp(t *testing.T, c contract) {
	s := NewSource("a")
	ix := c.open(t, s, t.TempDir())
	wantDocuments(t, s, search(t, ix, assay.Query{Text: "needle"}))
	s.Put(NewEntry("c", "1", "", "needle"))
	sequence := s.Put(NewEntry("c", "2", "", "needle and thread"))
	result := search(t, ix, assay.Query{Text: "needle"})
	wantDocuments(t, s, result, "1", "2")
	if result.Sequence != sequence || ix.Sequence() != sequence {
		t.Errorf("sequences %d and %d, want %d", result.Sequence, ix.Sequence(), sequence)
	}
	s.Put(NewEntry("c", "1", "", "replaced by a pin"))
	wantDocuments(t, s, search(t, ix, assay.Query{Text: "needle"}), "2")
	wantDocuments(t, s, search(t, ix, assay.Query{Text: "pin"}), "1")
	s.Delete(assay.DocumentID("c", "2"), assay.DocumentID("c", "never there"))
	result = search(t, ix, assay.Query{Text: "needle thread"})
	wantDocuments(t, s, result)
	if result.Chunks != 1 || result.Terms[0].Chunks != 0 {
		t.Errorf("after the delete: %+v", result)
	}
	s.Put(NewEntry("c", "2", "", "needle again"))
	wantDocuments(t, s, search(t, ix, assay.Query{Text: "needle"}), "2")
	s.Skip()
	if got, want := search(t, ix, assay.Query{Text: "needle"}).Sequence, int64(6); got != want {
		t.Errorf("sequence %d, want %d", got, want)
	}
}

func testReopen(t *testing.T, c contract) {
	dir := t.TempDir()
	s := NewSource("a")
	ix := c.open(t, s, dir)
	s.Put(NewEntry("c", "1", "", "needle one"), NewEntry("c", "2", "", "needle two"))
	if err := ix.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ix.Sequence(); got != 1 {
		t.Errorf("Flush saw sequence %d, want 1", got)
	}
	s.Put(NewEntry("c", "1", "", "needle one again, with more words"), NewEntry("c", "3", "", "needle three"))
	s.Delete(assay.DocumentID("c", "2"))
	if err := ix.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := search(t, ix, assay.Query{Text: "needle one"})
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}

	read := s.Read()
	again := c.open(t, s, dir)
	if got := again.Sequence(); got != 3 {
		t.Errorf("opened at sequence %d, want 3", got)
	}
	if diff := cmp.Diff(want, search(t, again, assay.Query{Text: "needle one"}), c.scores()); diff != "" {
		t.Errorf("after reopening: -want +got\n%s", diff)
	}
	if n := s.Read() - read; n != 0 {
		t.Errorf("reopening read %d documents of the source again", n)
	}
	s.Put(NewEntry("c", "4", "", "needle four"))
	wantDocuments(t, s, search(t, c.open(t, s, dir), assay.Query{Text: "four"}), "4")
	if n := s.Read() - read; n != 1 {
		t.Errorf("catching up with one document read %d", n)
	}
}

func testCancel(t *testing.T, c contract) {
	s := NewSource("a")
	s.Put(NewEntry("c", "1", "", "needle"))
	ix := c.open(t, s, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ix.Search(ctx, everyone, assay.Query{Text: "needle", Limit: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled search: %v, want context.Canceled", err)
	}
	if _, err := ix.Nearest(ctx, everyone, assay.Query{Limit: 1}, near); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled vector search: %v, want context.Canceled", err)
	}
	if err := ix.Flush(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled flush: %v, want context.Canceled", err)
	}
	wantDocuments(t, s, search(t, ix, assay.Query{Text: "needle"}), "1")

	// A search that waits for another's update can be cancelled without affecting the other.
	s.Put(NewEntry("c", "2", "", "needle two"))
	s.Block()
	done := make(chan error)
	go func() {
		_, err := ix.Search(context.WithoutCancel(t.Context()), everyone, assay.Query{Text: "needle", Limit: 1})
		done <- err
	}()
	<-s.Blocked()
	ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := ix.Search(ctx, everyone, assay.Query{Text: "needle", Limit: 1}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("search that waits: %v, want context.DeadlineExceeded", err)
	}
	s.Unblock()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// testSourceFails checks that if the source fails midway, no part of the change is visible, and the
// next search tries again.
func testSourceFails(t *testing.T, c contract) {
	s := NewSource("a")
	s.Put(NewEntry("c", "1", "", "needle"))
	ix := c.open(t, s, t.TempDir())
	search(t, ix, assay.Query{Text: "needle"})
	before := ix.Sequence()
	s.Put(NewEntry("c", "2", "", "needle"), NewEntry("c", "1", "", "pin"), NewEntry("c", "3", "", "needle"))
	broken := errors.New("the disk is on fire")
	for _, after := range []int{0, 1, 2} {
		s.FailAfter(after, broken)
		if _, err := ix.Search(t.Context(), everyone, assay.Query{Text: "needle", Limit: 9}); !errors.Is(err, broken) {
			t.Errorf("the source failed after %d changes: %v", after, err)
		}
		if got := ix.Sequence(); got != before {
			t.Errorf("sequence %d after the failure, want %d", got, before)
		}
	}
	s.FailAfter(-1, nil)
	if got := search(t, ix, assay.Query{Text: "needle"}); got.Total != 2 {
		t.Errorf("after the failure %d found, want 2", got.Total)
	}
	bad := NewEntry("c", "4", "", "needle")
	bad.Chunks[0].End = 1000
	s.Put(bad)
	if _, err := ix.Search(t.Context(), everyone, assay.Query{Text: "needle", Limit: 9}); !errors.Is(err, assay.ErrDamaged) {
		t.Errorf("a chunk outside its document: %v, want ErrDamaged", err)
	}
}

func testClose(t *testing.T, c contract) {
	ix := c.open(t, NewSource("a"), t.TempDir())
	for range 2 {
		if err := ix.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if _, err := ix.Search(t.Context(), everyone, assay.Query{Text: "x", Limit: 1}); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Search after Close: %v, want fs.ErrClosed", err)
	}
	if _, err := ix.Nearest(t.Context(), everyone, assay.Query{Limit: 1}, near); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Nearest after Close: %v, want fs.ErrClosed", err)
	}
	if err := ix.Flush(t.Context()); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Flush after Close: %v, want fs.ErrClosed", err)
	}
}
