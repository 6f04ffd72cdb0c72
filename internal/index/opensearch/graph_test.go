package opensearch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/graph"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
)

// TestGraph checks that walks find the same as those over the index on one machine: only what the
// access may see counts.
func TestGraph(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	names := strings.Fields("Alice Bertrand Camille Dorothea Edmund Frederica Gustav Henrietta Isidore Josephine Klaus Leonora")
	s := indextest.NewSource("a")
	var entries []indextest.Entry
	for i := range 150 {
		texts := make([]string, 1+r.IntN(2))
		for j := range texts {
			for range 1 + r.IntN(4) {
				texts[j] += fmt.Sprintf("It was said that %s Stone-%d met them. ", names[r.IntN(len(names))], r.IntN(6))
			}
		}
		e := indextest.NewEntry(fmt.Sprint("c", i%2), fmt.Sprint("d", i), names[r.IntN(len(names))]+" Stone", texts...)
		if i%3 == 0 {
			e.Document.ACL = assay.ACL{Restricted: true, Allow: []string{"user:ann"}}
		}
		entries = append(entries, e)
	}
	s.Put(entries...)
	local, err := index.Open(t.Context(), t.TempDir(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	remote := connect(t, nil).open(t, t.TempDir(), s)
	flush(t, remote)
	changed := entries[10]
	changed.Document.ACL = assay.ACL{Restricted: true, Allow: []string{"user:ann"}}
	s.Put(changed)
	flush(t, remote)
	found := 0
	compare := func(when string) {
		t.Helper()
		for _, who := range []assay.Principal{assay.Local(), {User: "ann"}, {}} {
			for _, text := range []string{"Who met Alice Stone?", "Klaus", "nobody known"} {
				for _, collections := range [][]string{nil, {"c1"}} {
					q := assay.Query{Text: text, Collections: collections, Limit: 50}
					var seeds []graph.Seed
					for i := range 8 {
						seeds = append(seeds, graph.Seed{Chunk: entries[(i*37+r.IntN(5))%len(entries)].Chunks[0].ID, Score: 1 / float64(i+1)})
					}
					want, err := graph.New(local, graph.Options{}).Walk(t.Context(), who.Access(), q, seeds)
					if err != nil {
						t.Fatal(err)
					}
					got, err := graph.New(remote, graph.Options{}).Walk(t.Context(), who.Access(), q, seeds)
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s: %+v walks from %q in %v: -local +remote\n%s", when, who, text, collections, diff)
					}
					found += len(got)
				}
			}
		}
	}
	compare("first")
	compare("with cached counts")
	for _, e := range entries[20:40] {
		s.Delete(e.Document.ID)
	}
	compare("with deletions that are not flushed")
	flush(t, remote)
	compare("flushed")
	if found < 500 {
		t.Errorf("only %d passages were reached", found)
	}
	unknown := assay.Query{Text: "Alice", Filter: assay.Filter{Op: assay.OpEquals, Key: "none", Value: assay.NumberValue(1)}}
	if _, err := remote.Graph(t.Context(), assay.Local().Access(), unknown); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("a filter with an unknown key: %v, want ErrInvalid", err)
	}
}
