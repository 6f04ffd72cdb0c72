package indextest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
)

// testBest searches for the few best of many chunks. Words are as frequent as in texts: a few are in most
// chunks. Two of them are in half of the chunks each and never together.
func testBest(t *testing.T, c contract) {
	r := rand.New(rand.NewPCG(3, 4))
	frequent := rand.NewZipf(r, 1.1, 4, 3000)
	words := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("w%d", frequent.Uint64())
		}
		return strings.Join(list, " ")
	}
	s := NewSource("a")
	ix := c.open(t, s, t.TempDir())
	var entries []Entry
	for i := range 800 {
		var texts []string
		for range 3 {
			texts = append(texts, words(5+r.IntN(60))+[]string{" left", " right"}[i/2%2])
		}
		e := NewEntry("c", fmt.Sprint("doc ", i), words(3), texts...)
		if i%2 == 0 {
			e.Document.ACL = assay.ACL{Restricted: true, Allow: []string{"user:ann"}}
		}
		e.Document.Metadata = assay.Metadata{"n": assay.NumberValue(float64(i))}
		entries = append(entries, e)
	}
	s.Put(entries...)
	if err := ix.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := c.newModel(s)
	for i := range rounds(100) {
		q := assay.Query{Text: words(1 + r.IntN(20)), Limit: 1 + r.IntN(20)}
		if i%4 == 0 {
			q.Text = "left right " + words(r.IntN(3))
		}
		if i%3 == 0 {
			q.Filter = assay.Filter{Op: assay.OpLessThan, Key: "n", Value: assay.NumberValue(600)}
		}
		if i%5 == 0 {
			q.BM25 = assay.BM25{K1: 2, B: 0.9}
		}
		for _, access := range []assay.Access{everyone, assay.Principal{User: "ann"}.Access()} {
			got, err := ix.Search(t.Context(), access, q)
			checkSearch(t, m.search(access, q), q, got, err)
		}
	}
}
