package retrieve_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/retrieve"
)

func TestDuplicates(t *testing.T) {
	const text = "The copper bridge over the river was opened by the queen in the winter of 1907, and it carries the road from the harbour to the market."
	for _, test := range []struct {
		name         string
		title, other string // of the second passage
		text         string
		same         bool
	}{
		{"word for word", "Bridges", "Bridges", text, true},
		{"under another title", "Bridges", "Rivers", text, true},
		{"in other spacing and case", "Bridges", "Bridges", "the  copper bridge over the river was opened by the queen in the winter of 1907 and it carries the road from the harbour to the market", true},
		{"a word more", "Bridges", "Bridges", "The old copper bridge over the river was opened by the queen in the winter of 1907, and it carries the road from the harbour to the market.", true},
		{"another year", "Bridges", "Bridges", "The copper bridge over the river was opened by the queen in the winter of 1917, and it carries the road from the harbour to the market.", false},
		{"negated", "Bridges", "Bridges", "The copper bridge over the river was not opened by the queen in the winter of 1907, and it carries the road from the harbour to the market.", false},
		{"another name", "Bridges", "Bridges", "The copper bridge over the Spree was opened by the queen in the winter of 1907, and it carries the road from the harbour to the market.", false},
		{"half of it", "Bridges", "Bridges", "The copper bridge over the river was opened by the queen in the winter of 1907.", false},
	} {
		l := newLibrary()
		l.put("/one", test.title, "en", assay.ACL{}, text)
		l.put("/two", test.other, "en", assay.ACL{}, test.text)
		l.put("/far", "", "en", assay.ACL{}, "a bridge")
		e := newEncoder()
		l.embed(e.Hashing, all)
		for _, c := range []retrieve.Config{{}, {Embedder: e}} {
			x := explained(t, l.open(t, c), assay.Query{Text: "copper bridge over the river"})
			dropped := len(x.Results.Hits) == 2 && len(x.Dropped) == 1 && slices.Contains(noteTexts(x.Results.Notes), "a near-duplicate of a better hit is left out")
			kept := len(x.Results.Hits) == 3 && len(x.Dropped) == 0 && len(x.Results.Notes) == 0
			if test.same && !dropped || !test.same && !kept {
				t.Errorf("%s: hits %q, dropped %+v, notes %q", test.name, uris(x.Results), x.Dropped, x.Results.Notes)
			}
			if dropped && x.Dropped[0].Of != x.Results.Hits[0].Chunk.ID {
				t.Errorf("%s: dropped as the same as %s", test.name, x.Dropped[0].Of)
			}
		}
	}

	// Short texts are compared together with their title and headings.
	l := newLibrary()
	l.putLeaves("/1", "Bridges", "en", assay.ACL{}, leaf{"Copper", "See the table.", ""}, leaf{"Silver", "See the table.", ""}, leaf{"Silver", "See the table.", ""})
	if found := retrieved(t, l.open(t, retrieve.Config{}), assay.Query{Text: "table of bridges"}); len(found.Hits) != 2 {
		t.Errorf("short texts under two headings: %d hits, want 2", len(found.Hits))
	}
}

// TestCrowded checks that the answer is found behind more near-duplicates than a search has
// candidates.
func TestCrowded(t *testing.T) {
	l := newLibrary()
	for i := range 150 {
		l.put(fmt.Sprintf("/copy/%03d", i), "Bridges", "en", assay.ACL{}, "The copper bridge carries the road from the harbour.")
	}
	for i := range 3 {
		l.put(fmt.Sprintf("/other/%d", i), "Bridges", "en", assay.ACL{}, fmt.Sprintf("In the year 190%d somebody who was asked by the council to look after the copper wrote a long letter about what was seen.", i))
	}
	e := newEncoder()
	l.embed(e.Hashing, all)
	for _, c := range []retrieve.Config{{}, {Embedder: e}} {
		x := explained(t, l.open(t, c), assay.Query{Text: "copper bridge"})
		want := "149 near-duplicates of better hits are left out"
		if len(x.Results.Hits) != 4 || !slices.Contains(noteTexts(x.Results.Notes), want) {
			t.Errorf("%d hits %q, notes %q, want 4 and %q", len(x.Results.Hits), uris(x.Results), x.Results.Notes, want)
		}
	}
}

func TestSections(t *testing.T) {
	first, second, third, fourth := "The copper bridge is old.", "The bridge is of copper and carries a road.", "A painter and a poet met a soldier in the valley.", "The novel is about bread."
	open := func(leaves ...leaf) *retrieve.Retriever {
		l := newLibrary()
		l.putLeaves("/doc", "Guide", "en", assay.ACL{}, leaves...)
		l.put("/other", "Guide", "en", assay.ACL{}, "One more bridge of copper.")
		return l.open(t, retrieve.Config{})
	}
	q := assay.Query{Text: "copper bridge"}

	parts := retrieved(t, open(leaf{"A", first, ""}, leaf{"A", second, ""}, leaf{"A", third, ""}), q)
	whole := retrieved(t, open(leaf{"A", first, "s"}, leaf{"A", second, "s"}, leaf{"A", third, "s"}), q)
	i := slices.IndexFunc(whole.Hits, func(h assay.Hit) bool { return h.URI == "/doc" })
	if len(whole.Hits) != 2 || len(parts.Hits) != 3 || i < 0 {
		t.Fatalf("hits %q of a section, %q of its parts", uris(whole), uris(parts))
	}
	h := whole.Hits[i]
	if want := first + "\n\n" + second + "\n\n" + third; h.Text != want || h.Chunk.Kind != assay.ChunkSection || h.Chunk.End-h.Chunk.Start != len(want) {
		t.Errorf("the section's hit is %+v", h)
	}
	if diff := cmp.Diff([]string{"A"}, h.Chunk.Headings); diff != "" {
		t.Errorf("headings: -want +got\n%s", diff)
	}
	var best assay.Scores
	for _, p := range parts.Hits {
		if p.URI == "/doc" {
			best.Relevance = math.Max(best.Relevance, p.Scores.Relevance)
			if best.BM25 == nil || *p.Scores.BM25 > *best.BM25 {
				best.BM25 = p.Scores.BM25
			}
		}
	}
	if len(h.Children) != 2 || h.Scores.Relevance != best.Relevance || math.Abs(*h.Scores.BM25-*best.BM25) > 1e-9 {
		t.Errorf("children %+v, scores %+v, want the best of two: %+v", h.Children, h.Scores, best)
	}
	if len(h.Matched) != 2 {
		t.Errorf("matched %q", h.Matched)
	}

	for name, test := range map[string]struct {
		leaves []leaf
		limit  int
		hits   int
	}{
		"one part is a hit":              {[]leaf{{"A", first, "s"}, {"A", third, "s"}}, 100, 2},
		"less than half of it":           {[]leaf{{"A", first, "s"}, {"A", second, "s"}, {"A", third + third + third, "s"}}, 100, 3},
		"of two sections":                {[]leaf{{"A", first, "s"}, {"B", second, "t"}, {"B", fourth, "t"}}, 100, 3},
		"the second is beyond the limit": {[]leaf{{"A", first, "s"}, {"A", second, "s"}}, 1, 1},
		"a section that is far too long": {[]leaf{{"A", first + long("word"), "s"}, {"A", second + long("term"), "s"}}, 100, 3},
	} {
		found := retrieved(t, open(test.leaves...), assay.Query{Text: "copper bridge", Limit: test.limit})
		if len(found.Hits) != test.hits || slices.ContainsFunc(found.Hits, func(h assay.Hit) bool { return len(h.Children) > 0 }) {
			t.Errorf("%s: hits %q", name, uris(found))
		}
	}
}

// long returns 700 distinct words.
func long(word string) string {
	text := ""
	for i := range 700 {
		text += fmt.Sprintf(" %s%d", word, i)
	}
	return text
}

func TestDiversity(t *testing.T) {
	l := newLibrary()
	l.put("/one", "", "en", assay.ACL{}, "the copper bridge over the river and the road to the harbour")
	l.put("/like", "", "en", assay.ACL{}, "the copper bridge over the river and the road to the market")
	l.put("/unlike", "", "en", assay.ACL{}, "copper is what the painter saw at a bridge in a novel by a soldier")
	e := newEncoder()
	l.embed(e.Hashing, all)
	for _, c := range []retrieve.Config{{}, {Embedder: e}} {
		r := l.open(t, c)
		q := assay.Query{Text: "copper bridge over the river road"}
		if diff := cmp.Diff("/unlike", retrieved(t, r, q).Hits[2].URI); diff != "" {
			t.Errorf("without diversity the unlike one is last: %s", diff)
		}
		q.Diversity = 0.7
		if diff := cmp.Diff("/unlike", retrieved(t, r, q).Hits[1].URI); diff != "" {
			t.Errorf("with diversity it is second: %s", diff)
		}
		q.Diversity = 1
		if found := retrieved(t, r, q); len(found.Hits) != 3 {
			t.Errorf("all of them are still there: %q", uris(found))
		}
	}
}

func TestWhy(t *testing.T) {
	l := newLibrary()
	l.putLeaves("/1", "Bridges", "en", assay.ACL{}, leaf{"Copper and silver", "The old bridge has a filename on it.", ""})
	x := explained(t, l.open(t, retrieve.Config{}), assay.Query{Text: "copper bridge file name zebra"})
	if len(x.Hits) != 1 {
		t.Fatalf("%d hits", len(x.Hits))
	}
	type held struct {
		Term   string
		Fields []string
	}
	var got []held
	for _, m := range x.Hits[0].Why {
		got = append(got, held{m.Term, m.Fields})
	}
	want := []held{{"copper", []string{"headings"}}, {"bridge", []string{"title", "body"}}, {"filenam", []string{"body"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if len(x.Stages) == 0 || x.Hits[0].Features["bias"] != 1 || x.Hits[0].Ranks != (retrieve.Ranks{BM25: 1, Fused: 1}) || x.Hits[0].Fusion.Words != 1 {
		t.Errorf("stages %+v, explained %+v", x.Stages, x.Hits[0])
	}
}

// TestManyHits checks a search for thousands of hits, which does not compare all pairs. Exact
// duplicates are still found, and the best hits are still diversified.
func TestManyHits(t *testing.T) {
	const documents = 2500
	l := newLibrary()
	for i := range documents {
		l.put(fmt.Sprintf("/%04d", i), "", "en", assay.ACL{}, fmt.Sprintf("common word%d other%d third%d", i, i, i%7))
	}
	for i := documents - 3; i < documents; i++ {
		l.put(fmt.Sprintf("/copy%d", i), "", "en", assay.ACL{}, fmt.Sprintf("common word%d other%d third%d", i, i, i%7))
	}
	r := l.open(t, retrieve.Config{})
	for _, d := range []float64{0, 0.5} {
		found := retrieved(t, r, assay.Query{Text: "common", Limit: 2 * documents, Diversity: d})
		if len(found.Hits) != documents || !slices.Contains(noteTexts(found.Notes), "3 near-duplicates of better hits are left out") {
			t.Errorf("diversity %v: %d hits, notes %q; want %d and three left out", d, len(found.Hits), found.Notes, documents)
		}
	}
}
