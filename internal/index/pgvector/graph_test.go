package pgvector

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/graph"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
)

// names are the entities in the documents of TestGraph.
var names = []string{
	"Ada Lovelace", "Charles Babbage", "Analytical Engine", "os.Open", "ReadHeaderTimeout", "University of Cambridge", "Zürich", "E1042", "Lord Byron", "Menabrea",
}

func randomEntry(r *rand.Rand) indextest.Entry {
	name := func() string { return names[r.IntN(len(names))] }
	var texts []string
	for range 1 + r.IntN(3) {
		texts = append(texts, "there is "+name()+" beside "+name()+" and so on.")
	}
	e := indextest.NewEntry(fmt.Sprint("c", r.IntN(2)), fmt.Sprint("d", r.IntN(40)), name(), texts...)
	if r.IntN(4) == 0 {
		e.Document.ACL = assay.ACL{Restricted: true, Allow: []string{"user:ann"}}
	}
	e.Document.Metadata = assay.Metadata{"year": assay.NumberValue(float64(2020 + r.IntN(3)))}
	return e
}

// TestGraph checks that the graph is that of the index of package index, after random changes and
// for several accesses and queries, and that a walk over it finds the same.
func TestGraph(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 9))
	source := indextest.NewSource("a")
	x := opener(t, smallSettings)(t, source, t.TempDir()).(*Index)
	own, err := index.Open(t.Context(), t.TempDir(), source)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	late := assay.Filter{Op: assay.OpGreaterThan, Key: "year", Value: assay.NumberValue(2020)}
	for range indextest.Rounds(4, 12, 500) {
		for range 8 {
			e := randomEntry(r)
			if r.IntN(5) == 0 {
				source.Delete(e.Document.ID)
			} else {
				source.Put(e)
			}
		}
		var chunks []string
		for change, err := range source.Changes(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range change.Chunks {
				chunks = append(chunks, c.ID)
			}
		}
		for _, who := range []assay.Principal{{User: "ann"}, assay.Local(), {}} {
			for _, q := range []assay.Query{{Text: "Ada Lovelace"}, {Text: "Zürich", Collections: []string{"c1"}}, {Filter: late}} {
				want, got := describe(t, own, who.Access(), q, chunks), describe(t, x, who.Access(), q, chunks)
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("%+v, %+v: -index +pgvector\n%s", who, q, diff)
				}
			}
		}
	}
}

// describe returns the content of a graph and the result of a walk over it.
func describe(t *testing.T, ix graph.Index, access assay.Access, q assay.Query, chunks []string) []string {
	t.Helper()
	g, err := ix.Graph(t.Context(), access, q)
	if errors.Is(err, assay.ErrInvalid) {
		return []string{"invalid"}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	lines := []string{fmt.Sprint(g.Passages(), " passages")}
	failed := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	var seeds []graph.Seed
	for i, chunk := range chunks {
		number, ok := g.Passage(chunk)
		if !ok {
			continue
		}
		if i%9 == 0 {
			seeds = append(seeds, graph.Seed{Chunk: g.Chunk(number), Score: 1 + float64(i%7)})
		}
		failed(g.Entities(number, func(entity uint32, title bool) {
			n, err := g.Count(entity)
			failed(err)
			lines = append(lines, fmt.Sprintf("%s names %s (%v) of %d", chunk, g.Key(entity), title, n))
		}))
	}
	for _, key := range []string{"ada lovelace", "zurich", "nobody"} {
		n, err := g.Count(g.Entity(key))
		failed(err)
		named := make(map[string]bool)
		failed(g.Named(g.Entity(key), func(passage uint64, title bool) { named[g.Chunk(passage)] = title }))
		lines = append(lines, fmt.Sprint(key, n, named))
	}
	scores, err := graph.New(ix, graph.Options{}).Walk(t.Context(), access, q, seeds)
	failed(err)
	return append(lines, fmt.Sprintf("%+v", scores))
}
