package graph_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/graph"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
)

func openIndex(t *testing.T, source index.Source) *index.Searcher {
	t.Helper()
	ix, err := index.Open(t.Context(), t.TempDir(), source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ix.Close() })
	return ix
}

// TestWalker checks that the name in the best hit leads to the article about that person, which
// shares no word with the question, and that an article added later is found as well.
func TestWalker(t *testing.T) {
	source := indextest.NewSource("a")
	film := indextest.NewEntry("c", "film", "The Long Road", "The Long Road is a film. It was directed by Jane Q. Doe.")
	other := indextest.NewEntry("c", "other", "Roads", "A road is long.")
	source.Put(film, other)
	for i := range 20 {
		source.Put(indextest.NewEntry("c", fmt.Sprint(i), fmt.Sprint("Filler ", i), "Nothing of interest."))
	}
	ix := openIndex(t, source)
	w := graph.New(ix, graph.Options{})
	ask := func(access assay.Access, q assay.Query) []graph.Score {
		t.Helper()
		q.Text = "Where was the director of The Long Road born?"
		scores, err := w.Walk(t.Context(), access, q, []graph.Seed{{Chunk: film.Chunks[0].ID, Score: 1}, {Chunk: other.Chunks[0].ID, Score: 0.5}})
		if err != nil {
			t.Fatal(err)
		}
		return scores
	}
	local := assay.Local().Access()
	if got := ask(local, assay.Query{}); len(got) != 2 || got[0].Chunk != film.Chunks[0].ID {
		t.Errorf("before the article came: %+v", got)
	}
	article := indextest.NewEntry("c", "jane", "Jane Q. Doe", "She was born in Springfield.")
	source.Put(article)
	got := ask(local, assay.Query{})
	if len(got) < 2 || got[1].Chunk != article.Chunks[0].ID {
		t.Fatalf("%+v, want the article to be second", got)
	}
	if diff := gocmp.Diff([]graph.Step{{Entity: "jane q doe", Chunk: film.Chunks[0].ID}}, got[1].Path); diff != "" {
		t.Errorf("path: -want +got\n%s", diff)
	}
	mass := func(scores []graph.Score, e indextest.Entry) float64 { // relative to the best
		for _, s := range scores {
			if s.Chunk == e.Chunks[0].ID {
				return s.Mass / scores[0].Mass
			}
		}
		return 0
	}
	if far := ask(local, assay.Query{Walk: assay.WalkFar}); mass(far, article) <= mass(got, article) || mass(far, other) >= mass(got, other) {
		t.Errorf("a far walk leads to %+v, a near one to %+v: want more behind the best and less elsewhere", far, got)
	}
	if got := ask(assay.Access{}, assay.Query{}); len(got) != 0 {
		t.Errorf("the zero access gets %+v", got)
	}
	if got := ask(local, assay.Query{Collections: []string{"elsewhere"}}); len(got) != 0 {
		t.Errorf("another collection has %+v", got)
	}
	unknown := assay.Query{Filter: assay.Filter{Op: assay.OpEquals, Key: "none", Value: assay.StringValue("x")}}
	if _, err := w.Walk(t.Context(), local, unknown, nil); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("an unknown key: error %v, want ErrInvalid", err)
	}
}

// TestWalkerHidden checks that passages that access may not see carry no mass and are not counted.
// A walk is the same as without them.
func TestWalkerHidden(t *testing.T) {
	names := []string{"Ada Lovelace", "Charles Babbage", "Lord Byron", "Analytical Engine", "os.Open", "Menabrea X", "University of Turin", "Zürich"}
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 7))
		all, visible := indextest.NewSource("all"), indextest.NewSource("visible")
		var seeds []graph.Seed
		for i := range 60 {
			name := func() string { return names[random.IntN(len(names))] + fmt.Sprint(" ", random.IntN(4)+10) }
			e := indextest.NewEntry("c", fmt.Sprint(i), name(), "it is "+name()+" and "+name()+" there", "and "+name())
			hidden := random.IntN(3) == 0
			if hidden {
				e.Document.ACL = assay.ACL{Restricted: true, Allow: []string{"user:eve"}}
			} else {
				visible.Put(e)
			}
			all.Put(e)
			if i < 8 { // including hidden ones
				seeds = append(seeds, graph.Seed{Chunk: e.Chunks[0].ID, Score: 1})
			}
		}
		q := assay.Query{Text: "What has Ada Lovelace 11 to do with Zürich 12?"}
		walk := func(source index.Source, who assay.Principal) []graph.Score {
			scores, err := graph.New(openIndex(t, source), graph.Options{Seeds: 8}).Walk(t.Context(), who.Access(), q, seeds)
			if err != nil {
				t.Fatal(err)
			}
			return scores
		}
		want := walk(visible, assay.Local())
		if len(want) < 5 {
			t.Errorf("seed %d: a walk finds only %+v", seed, want)
		}
		if diff := gocmp.Diff(want, walk(all, assay.Local()), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("seed %d: -without what is hidden +with\n%s", seed, diff)
		}
		if gocmp.Equal(want, walk(all, assay.Principal{User: "eve"})) {
			t.Errorf("seed %d: who sees more gets the same", seed)
		}
	}
}
