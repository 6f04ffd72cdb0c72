package retrieve_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/retrieve"
	"github.com/assay-rag/assay/llm/llmtest"
)

// TestUnknownKeepsItsPlace checks that a passage without a vector keeps its rank by words,
// whichever passages have vectors. If all or none have one, the order is that of the full fusion or
// of text.
func TestUnknownKeepsItsPlace(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	e := newEncoder()
	for round := range 40 {
		share := []float64{0, 0.1, 0.5, 0.9, 1}[round%5]
		l := randomLibrary(r, 80)
		covered := map[string]bool{}
		l.embed(e.Hashing, func(_ int, p assay.Passage) bool {
			covered[p.Chunk.ID] = r.Float64() < share
			return covered[p.Chunk.ID]
		})
		searcher := l.open(t, retrieve.Config{Embedder: e})
		q := assay.Query{Text: "copper bridge by the river", Fusion: []assay.Fusion{assay.FusionWeighted, assay.FusionRRF}[round/5%2]}
		text, hybrid := q, q
		text.Mode = assay.ModeText
		byText, found := retrieved(t, searcher, text), retrieved(t, searcher, hybrid)
		if share == 0 {
			if diff := cmp.Diff(uris(byText), uris(found)); diff != "" {
				t.Errorf("without vectors: -text +hybrid\n%s", diff)
			}
		}
		place := map[string]int{}
		for i, h := range found.Hits {
			place[h.Chunk.ID] = i
			if (h.Scores.Vector != nil) != covered[h.Chunk.ID] {
				t.Fatalf("%s has the similarity %v, covered %v", h.URI, h.Scores.Vector, covered[h.Chunk.ID])
			}
		}
		for i, h := range byText.Hits {
			if got, ok := place[h.Chunk.ID]; !ok || !covered[h.Chunk.ID] && got != i {
				t.Errorf("round %d, share %v: %s has no vector and is at %d (found %v), want %d", round, share, h.URI, got, ok, i)
			}
		}
		if note := retrieve.CoverageNote(found.Index); share < 1 && (note == "" || !slices.Contains(noteTexts(found.Notes), note)) {
			t.Errorf("coverage %v: notes %q lack %q", found.Index.Coverage, found.Notes, note)
		}
		if share == 1 && (len(found.Notes) > 0 || found.Index.Coverage != 1) {
			t.Errorf("whole coverage: notes %q, %+v", found.Notes, found.Index)
		}
	}
}

// TestHostileEncoder checks that a failing encoder leaves the text search unchanged and adds a
// note, and that it is an error in ModeVector.
func TestHostileEncoder(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	l := randomLibrary(r, 40)
	e := newEncoder()
	l.embed(e.Hashing, all)
	text := retrieved(t, l.open(t, retrieve.Config{}), assay.Query{Text: "copper bridge"})
	for _, fault := range llmtest.Faults {
		if fault == llmtest.Blocks {
			continue
		}
		searcher := l.open(t, retrieve.Config{Embedder: llmtest.Hostile(e, fault)})
		found := retrieved(t, searcher, assay.Query{Text: "copper bridge", Rewrites: []string{"a bridge of copper"}})
		if fault == llmtest.HalfThenError || found.Index.Model == "" {
			plain := retrieved(t, searcher, assay.Query{Text: "copper bridge"})
			if diff := cmp.Diff(text.Hits, plain.Hits); diff != "" && fault != llmtest.OtherDimension {
				t.Errorf("%s: -text +got\n%s", fault, diff)
			}
		}
		if len(found.Notes) != 1 || !strings.HasPrefix(found.Notes[0].Text, "searched by text alone: ") || found.Index.Model != "" {
			t.Errorf("%s: notes %q, model %q", fault, found.Notes, found.Index.Model)
		}
		if _, err := searcher.Retrieve(t.Context(), everyone, assay.Query{Text: "copper", Rewrites: []string{"bronze"}, Mode: assay.ModeVector, Limit: 1}); err == nil {
			t.Errorf("%s: a search by vectors alone found something", fault)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if _, err := l.open(t, retrieve.Config{Embedder: llmtest.Hostile(e, llmtest.Blocks)}).Retrieve(ctx, everyone, assay.Query{Text: "copper", Limit: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("an encoder that never answers: %v", err)
	}
	long := strings.Repeat("copper ", 600)
	found := retrieved(t, l.open(t, retrieve.Config{Embedder: e}), assay.Query{Text: long})
	if len(found.Hits) == 0 || len(found.Notes) != 2 || found.Notes[0].Text != "the question has 602 tokens, more than the 512 that hashing/64 takes" {
		t.Errorf("a query over the limit: %d hits, notes %q", len(found.Hits), found.Notes)
	}
	other := encoder{&llmtest.Hashing{Name: e.Model(), Dimensions: 32}}
	found = retrieved(t, l.open(t, retrieve.Config{Embedder: other}), assay.Query{Text: "copper bridge"})
	if diff := cmp.Diff(text.Hits, found.Hits); diff != "" || len(found.Notes) != 1 {
		t.Errorf("vectors of another dimension: notes %q, -text +got\n%s", found.Notes, diff)
	}
}

func TestFill(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	l := randomLibrary(r, 120)
	e := newEncoder()
	l.embed(e.Hashing, func(i int, _ assay.Passage) bool { return i%4 == 0 })
	var asked [][]assay.Passage
	plain := l.open(t, retrieve.Config{Embedder: e})
	q := assay.Query{Text: "copper bridge by the river", Mode: assay.ModeText}
	text := retrieved(t, plain, q)
	q.Mode = assay.ModeHybrid
	found := retrieved(t, plain.WithFill(fillerOf(e, &asked)), q)
	var want []string // the best by words without a vector
	has := map[string]bool{}
	for _, v := range l.vectors {
		has[v.Chunk] = true
	}
	for _, h := range text.Hits {
		if !has[h.Chunk.ID] && len(want) < 40 {
			want = append(want, h.URI)
		}
	}
	var got []string
	for _, p := range asked[0] {
		got = append(got, p.URI)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(asked) != 1 {
		t.Errorf("filled in, in %d calls: -want +got\n%s", len(asked), diff)
	}
	query := e.Vector(q.Text)
	for _, h := range found.Hits {
		filled := slices.Contains(want, h.URI)
		if (h.Scores.Vector != nil) != (filled || has[h.Chunk.ID]) {
			t.Errorf("%s, filled in %v, has the similarity %v", h.URI, filled, h.Scores.Vector)
		}
		if filled {
			sum := 0.0
			for i, x := range e.Vector(l.chunks[h.Chunk.ID].Words()) {
				sum += float64(x) * float64(query[i])
			}
			if math.Abs(sum-*h.Scores.Vector) > 1e-6 {
				t.Errorf("%s has the similarity %v, want %v", h.URI, *h.Scores.Vector, sum)
			}
		}
	}
	want40 := retrieved(t, plain, q)
	for name, fill := range map[string]retrieve.Filler{
		"nothing made": func(_ context.Context, _ string, ps []assay.Passage) ([][]float32, error) {
			return make([][]float32, len(ps)), nil
		},
		"other dimensions": func(_ context.Context, _ string, ps []assay.Passage) ([][]float32, error) {
			return slices.Repeat([][]float32{{1, 0}}, len(ps)), nil
		},
		"zeros": func(_ context.Context, _ string, ps []assay.Passage) ([][]float32, error) {
			return slices.Repeat([][]float32{make([]float32, 64)}, len(ps)), nil
		},
	} {
		if diff := cmp.Diff(want40.Hits, retrieved(t, plain.WithFill(fill), q).Hits); diff != "" {
			t.Errorf("%s: -without +with\n%s", name, diff)
		}
	}
	short := func(_ context.Context, _ string, ps []assay.Passage) ([][]float32, error) {
		return make([][]float32, 1), nil
	}
	if broken := retrieved(t, plain.WithFill(short), q); len(broken.Hits) == 0 || !strings.HasPrefix(strings.Join(noteTexts(broken.Notes), ""), "searched by text alone: 1 vectors filled in") {
		t.Errorf("too few filled in: %d hits, notes %q", len(broken.Hits), broken.Notes)
	}
}

func TestLanguages(t *testing.T) {
	l := newLibrary()
	german := []string{"Die Brücke über den Fluss wurde aus Kupfer gebaut.", "Der Turm der Burg stand am Hafen der Insel.", "Ein Maler malte den Winter im Tal."}
	for i, text := range german {
		l.put(fmt.Sprintf("/de%d", i), "", "de", assay.ACL{}, text)
	}
	l.put("/en0", "", "en", assay.ACL{}, "The bridge over the river was built of copper.")
	l.put("/en1", "", "en", assay.ACL{}, "A painter and the winter.")
	e := newEncoder()
	l.embed(e.Hashing, all)
	r := l.open(t, retrieve.Config{Embedder: e})
	for _, test := range []struct {
		question string
		note     string
		vectors  []string // that were used
	}{
		{"Aus welchem Material wurde die Brücke über den Fluss gebaut?", "the question is in German, the encoder hashing/64 was made for English", nil},
		{"Kupfer Turm Hafen", "the question is in German, the encoder hashing/64 was made for English", nil},
		{"橋は何で作られましたか", "the question is in another script, the encoder hashing/64 was made for English", nil},
		{"мост медь", "the question is in another script, the encoder hashing/64 was made for English", nil},
		{"Why does my program die in the bridge?", "", []string{"/en0", "/en1"}},
		{"What was the bridge built of?", "", []string{"/en0", "/en1"}},
		{"copper painter", "", []string{"/en0", "/en1"}},
	} {
		text := retrieved(t, r, assay.Query{Text: test.question, Mode: assay.ModeText})
		found := retrieved(t, r, assay.Query{Text: test.question})
		if test.note != "" {
			if diff := cmp.Diff(text.Hits, found.Hits); diff != "" || !slices.Contains(noteTexts(found.Notes), test.note) {
				t.Errorf("%q: notes %q, -text +got\n%s", test.question, found.Notes, diff)
			}
			continue
		}
		var vectors []string
		for _, h := range found.Hits {
			if h.Scores.Vector != nil {
				vectors = append(vectors, h.URI)
			}
		}
		slices.Sort(vectors)
		if diff := cmp.Diff(test.vectors, vectors); diff != "" {
			t.Errorf("%q: vectors that counted: -want +got\n%s", test.question, diff)
		}
		if len(found.Notes) != 1 || !strings.Contains(found.Notes[0].Text, "passages in other languages were found by text alone") {
			t.Errorf("%q: notes %q", test.question, found.Notes)
		}
	}

	// A short German question is recognized even if all documents are English.
	l = newLibrary()
	l.put("/1", "", "en", assay.ACL{}, "To resolve a merge conflict in git, edit the file and commit it.")
	l.put("/2", "", "en", assay.ACL{}, "The licence of git is the GPL.")
	l.embed(e.Hashing, all)
	r = l.open(t, retrieve.Config{Embedder: e})
	for question, foreign := range map[string]bool{
		"Wie löse ich einen Merge-Konflikt in git?": true,
		"Welche Lizenz hat git?":                    true,
		"git":                                       false,
		"merge conflict git":                        false,
		"How do I resolve a merge conflict?":        false,
		"Which licence does git have?":              false,
		"git commit 日本語":                            false,
	} {
		found := retrieved(t, r, assay.Query{Text: question})
		if (len(found.Notes) > 0) != foreign {
			t.Errorf("%q: notes %q, want some: %v", question, found.Notes, foreign)
		}
	}
}

// noteTexts returns the texts of notes.
func noteTexts(notes []assay.Note) []string {
	var texts []string
	for _, n := range notes {
		texts = append(texts, n.Text)
	}
	return texts
}
