package indextest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
)

// testTotal checks that past MaxTotal, where a search may skip chunks, it never skips one of the
// best: the results equal those of scoring everything, bit for bit.
func testTotal(t *testing.T, c contract) {
	r := rand.New(rand.NewPCG(5, 5))
	s := NewSource("a")
	dir := t.TempDir()
	ix := c.open(t, s, dir)
	vocabulary := strings.Fields("zero one two three four five six seven eight nine ten eleven twelve")
	for batch := range 3 {
		var entries []Entry
		for i := range 700 {
			texts := make([]string, 2)
			for j := range texts {
				for range 1 + r.IntN(30) {
					texts[j] += vocabulary[min(r.IntN(len(vocabulary)), r.IntN(len(vocabulary)), r.IntN(len(vocabulary)))] + " "
				}
			}
			e := NewEntry(fmt.Sprint("c", i%7), fmt.Sprint(batch, i), vocabulary[r.IntN(len(vocabulary))], texts...)
			if i%3 == 0 {
				e.Document.ACL = assay.ACL{Restricted: true, Allow: []string{"user:ann"}}
			}
			entries = append(entries, e)
		}
		s.Put(entries...)
		if err := ix.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 50 {
		s.Delete(assay.DocumentID(fmt.Sprint("c", i%7), fmt.Sprint(1, i)))
	}
	m := c.newModel(s)
	ann := assay.Principal{User: "ann"}.Access()
	for round := range rounds(20) {
		if round == 10 {
			settle(t, ix)
		}
		q := assay.Query{Text: vocabulary[r.IntN(len(vocabulary))]}
		for range r.IntN(5) {
			q.Text += " " + vocabulary[r.IntN(len(vocabulary))]
		}
		if r.IntN(4) == 0 {
			q.Collections = []string{"c1", "c2", "c3", "c5"}
		}
		access := []assay.Access{everyone, ann}[r.IntN(2)]
		q.Limit = 100_000
		all := searchAs(t, ix, access, q)
		checkSearch(t, m.search(access, q), q, all, nil)
		for _, limit := range []int{1, 3, 10, 50, 999, 1001} {
			q.Limit = limit
			some := searchAs(t, ix, access, q)
			if diff := cmp.Diff(all.Hits[:min(limit, len(all.Hits))], some.Hits, c.scores()); diff != "" || some.Total != all.Total {
				t.Errorf("%q in %v, limit %d: Total %d, want %d; hits: -all +limited\n%s", q.Text, q.Collections, limit, some.Total, all.Total, diff)
			}
		}
	}
}

// testTotalCap checks that Total is exact up to MaxTotal and never exceeds it.
func testTotalCap(t *testing.T, c contract) {
	s := NewSource("a")
	texts := make([]string, 100)
	for i := range texts {
		texts[i] = "needle"
	}
	ix := c.open(t, s, t.TempDir())
	for n := 1; n <= 12; n++ {
		if n == 10 { // 999 and then 1,000
			s.Put(NewEntry("c", fmt.Sprint(n), "", texts[1:]...))
			wantTotal(t, ix, 999, 999)
		}
		s.Put(NewEntry("c", fmt.Sprint(n), "", texts...))
		wantTotal(t, ix, min(100*n, index.MaxTotal), 100*n)
	}
}

func wantTotal(t *testing.T, ix index.Index, total, chunks int) {
	t.Helper()
	for _, limit := range []int{1, 2000} {
		result := search(t, ix, assay.Query{Text: "needle", Limit: limit})
		if result.Total != total || result.Terms[0].Chunks != chunks || len(result.Hits) != min(limit, chunks) {
			t.Errorf("limit %d: Total %d, %d hits, term in %d chunks; want %d of %d", limit, result.Total, len(result.Hits), result.Terms[0].Chunks, total, chunks)
		}
	}
}

// testIDs checks that an ID other than 32 lower-case hexadecimal digits is rejected, and that the
// index works again once the bad document is gone.
func testIDs(t *testing.T, c contract) {
	good := NewEntry("c", "good", "", "needle")
	for name, change := range map[string]func(*Entry){
		"document too short": func(e *Entry) { e.Document.ID = e.Document.ID[:31] },
		"document no hex":    func(e *Entry) { e.Document.ID = "g" + e.Document.ID[1:] },
		"document empty":     func(e *Entry) { e.Document.ID = "" },
		"version too long":   func(e *Entry) { e.Document.Version += "0" },
		"version upper case": func(e *Entry) { e.Document.Version = "A" + e.Document.Version[1:] },
		"chunk no hex":       func(e *Entry) { e.Chunks[0].ID = "chunk 1 of 2 in the third folder" },
		"chunk too short":    func(e *Entry) { e.Chunks[0].ID = "ab" },
	} {
		s := NewSource("a")
		s.Put(good)
		ix := c.open(t, s, t.TempDir())
		wantDocuments(t, s, search(t, ix, assay.Query{Text: "needle"}), "good")
		bad := NewEntry("c", "bad", "", "needle")
		change(&bad)
		s.Put(bad)
		if _, err := ix.Search(t.Context(), everyone, assay.Query{Text: "needle", Limit: 1}); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: error %v, want ErrInvalid", name, err)
		}
		s.Delete(bad.Document.ID, "an ID that never was")
		wantDocuments(t, s, search(t, ix, assay.Query{Text: "needle"}), "good")
	}
}
