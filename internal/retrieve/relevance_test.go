package retrieve

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
)

// found returns the results of a search for text over a hundred chunks. Each term occurs in ten of
// them and has weight 0.5.
func found(text string) assay.Results {
	r := assay.Results{Chunks: 100}
	for _, t := range analysis.Tokens(text, "") {
		r.Terms = append(r.Terms, assay.Term{Text: text[t.Start:t.End], Stem: t.Term, Chunks: 10, Weight: 0.5})
	}
	return r
}

func hitIn(heading, text string) assay.Hit {
	return assay.Hit{Text: text, URI: "/guide.md", Title: "Guide", Chunk: assay.Chunk{Kind: assay.ChunkProse, Headings: []string{heading}}}
}

// featuresOf returns the features of one hit.
func featuresOf(query string, h assay.Hit) []float64 {
	results := found(query)
	results.Hits = []assay.Hit{h}
	return Features(query, results)[0]
}

func TestFeatures(t *testing.T) {
	const query = "server timeout"
	far := strings.Repeat("and so on ", windowWords/2)
	tests := []struct {
		name string
		hit  assay.Hit
		want map[string]float64
	}{
		{
			"both words side by side", hitIn("Fruit", "The server timeout is long."),
			map[string]float64{
				"bias": 1, "coverage": 1, "coverage²": 1, "window": 1, "body_window": 1, "heading": 0, "focus": 0, "pairs": 1, "phrase": 1,
				"worst_missing": 0, "names_missing": 0, "matched": math.Log1p(1), "length": math.Log1p(2),
			},
		},
		{
			"the other way round", hitIn("Fruit", "The timeout server is old."),
			map[string]float64{"pairs": 1, "phrase": 0},
		},
		{
			"near", hitIn("Fruit", "The server has a timeout."),
			map[string]float64{"pairs": 1, "phrase": 0},
		},
		{
			"far apart", hitIn("Fruit", "The server is old "+far+" and a timeout is long."),
			map[string]float64{"coverage": 1, "window": 0.5, "body_window": 0.5, "pairs": 0, "phrase": 0},
		},
		{
			"one in the heading", hitIn("Timeout", "The server is old."),
			map[string]float64{"coverage": 1, "window": 1, "body_window": 0.5, "heading": 0.5, "focus": 1, "pairs": 0, "worst_missing": 0},
		},
		{
			"one is missing", hitIn("Fruit", "The server is old."),
			map[string]float64{"coverage": 0.5, "coverage²": 0.25, "worst_missing": 0.5, "matched": math.Log1p(0.5)},
		},
		{
			"in code", hitIn("Fruit", "server.timeout := f(x); g(y)"),
			map[string]float64{"coverage": 1, "window": 1, "body_window": 1, "pairs": 1},
		},
		{"none", hitIn("Fruit", "Bananas are yellow."), nil},
	}
	for _, tt := range tests {
		got := featuresOf(query, tt.hit)
		if tt.want == nil {
			if got != nil {
				t.Errorf("%s: features %v, want none", tt.name, got)
			}
			continue
		}
		if len(got) != len(FeatureNames) {
			t.Errorf("%s: %d features, want %d", tt.name, len(got), len(FeatureNames))
			continue
		}
		named := map[string]float64{}
		for i, name := range FeatureNames {
			if _, wanted := tt.want[name]; wanted {
				named[name] = got[i]
			}
		}
		if diff := cmp.Diff(tt.want, named, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestFeaturesOfNames(t *testing.T) {
	const query = "Does os.Open work in Berlin?"
	at := func(name string) int {
		for i, n := range FeatureNames {
			if n == name {
				return i
			}
		}
		t.Fatalf("no feature %s", name)
		return 0
	}
	for text, want := range map[string]float64{
		"In Berlin os.Open does work.": 0,
		"Here os.Open does work.":      0.5,
		"It does work.":                1,
	} {
		if got := featuresOf(query, hitIn("Fruit", text))[at("names_missing")]; got != want {
			t.Errorf("%q lacks %v of the names, want %v", text, got, want)
		}
	}
}

// rate returns the relevance of a hit to a query.
func rate(query string, h assay.Hit) float64 {
	r := newRater(new(analysis.Analyzers), query, found(query).Terms, nil, 100)
	return r.relevance(r.read(h))
}

func TestRelevance(t *testing.T) {
	const query = "server timeout"
	plain := hitIn("Fruit", "The server timeout is long.")
	with := func(change func(*assay.Hit)) assay.Hit {
		h := plain
		h.Chunk.Headings = []string{"Fruit"}
		change(&h)
		return h
	}
	if r := rate(query, hitIn("Fruit", "Bananas are yellow.")); r != 0 {
		t.Errorf("relevance %v without a word of the query, want 0", r)
	}
	if r := rate("", plain); r != 0 {
		t.Errorf("relevance %v for no query, want 0", r)
	}
	base := rate(query, plain)
	if base <= 0 || base >= 1 {
		t.Fatalf("relevance %v, want it between 0 and 1", base)
	}
	lower := map[string]assay.Hit{
		"a word less":               hitIn("Fruit", "The server is old."),
		"a test":                    with(func(h *assay.Hit) { h.URI = "/server_test.go" }),
		"a test in Java":            with(func(h *assay.Hit) { h.URI = "/ServerTest.java" }),
		"an unexported declaration": with(func(h *assay.Hit) { h.URI, h.Chunk.Headings = "/server.go", []string{"func fruit"} }),
		"an unexported method":      with(func(h *assay.Hit) { h.URI, h.Chunk.Headings = "/server.go", []string{"func (f *Fruit) peel"} }),
		"a file of release notes":   with(func(h *assay.Hit) { h.URI = "docs/CHANGELOG.md" }),
		"release notes by title":    with(func(h *assay.Hit) { h.Title = "Release notes of Fruit 2" }),
		"under a version":           with(func(h *assay.Hit) { h.Chunk.Headings = []string{"[1.2.0] - 2024-02-03", "Fruit"} }),
		"code and nothing else":     with(func(h *assay.Hit) { h.Text = "server, timeout := f(x); g(y)" }),
		"the words are far apart":   hitIn("Fruit", "The server is old "+strings.Repeat("and so on ", windowWords)+" and a timeout is long."),
	}
	for name, h := range lower {
		if r := rate(query, h); r >= base {
			t.Errorf("%s: relevance %v, want less than %v", name, r, base)
		}
	}
	same := map[string]assay.Hit{
		"an exported declaration": with(func(h *assay.Hit) { h.URI, h.Chunk.Headings = "/server.go", []string{"func Fruit"} }),
		"a folder of tests":       with(func(h *assay.Hit) { h.URI = "/tests/guide.md" }),
		"a name like a test's":    with(func(h *assay.Hit) { h.URI = "/latest.md" }),
		"a numbered section":      with(func(h *assay.Hit) { h.Chunk.Headings = []string{"3.1. Fruit", "Fruit"} }),
		"what names a version":    with(func(h *assay.Hit) { h.Chunk.Headings = []string{"Moving to v1.2", "Fruit"} }),
		"of another language":     with(func(h *assay.Hit) { h.URI, h.Chunk.Headings = "/server.c", []string{"func fruit"} }),
	}
	for name, h := range same {
		if r := rate(query, h); r != base {
			t.Errorf("%s: relevance %v, want %v", name, r, base)
		}
	}
}

// TestRelevanceOfCompounds checks that a compound counts for the words that it replaces.
func TestRelevanceOfCompounds(t *testing.T) {
	const query = "how do I shut the server down"
	h := hitIn("Fruit", "Call Shutdown on the server.")
	joined := compounds(query)
	terms := found(query).Terms
	rate := func(joined []compound) float64 {
		r := newRater(new(analysis.Analyzers), query, terms, joined, 100)
		return r.relevance(r.read(h))
	}
	without, with := rate(nil), rate(joined)
	if with <= without {
		t.Errorf("relevance %v with the compound, %v without", with, without)
	}
}

// TestRepeatedQuery checks that repetitions in a query do not change the features or create more
// compounds.
func TestRepeatedQuery(t *testing.T) {
	once, often := "log server on", strings.TrimSpace(strings.Repeat("log server on ", 600))
	if n := len(compounds(often)); n > 10 {
		t.Errorf("%d compounds of three words", n)
	}
	h := hitIn("Fruit", strings.Repeat("The server has a logon. ", 1000))
	distinct := found(once).Terms
	a := newRater(new(analysis.Analyzers), once, distinct, compounds(once), 100).read(h).features
	b := newRater(new(analysis.Analyzers), often, distinct, compounds(often), 100).read(h).features
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("features (-once +often):\n%s", diff)
	}
}

// TestPhrase checks that neighbours of a query match at the distance that they have in it.
func TestPhrase(t *testing.T) {
	const query = "timeout of the server"
	for text, want := range map[string]float64{
		"It is the timeout of a server.":         1,
		"It is the timeout of the old server.":   0,
		"The server timeout is long.":            0,
		"A timeout server is something else.":    1,
		"A timeout has nothing to do with that.": 0,
	} {
		r := newRater(new(analysis.Analyzers), query, found(query).Terms, nil, 100)
		f := r.read(hitIn("", text)).features
		if got := f[slices.Index(FeatureNames, "phrase")]; got != want {
			t.Errorf("phrase of %q = %v, want %v", text, got, want)
		}
	}
}

// TestRelevanceOfSimilarity checks that relevance depends on the similarity too if weights were
// fitted for the encoder, in any format.
func TestRelevanceOfSimilarity(t *testing.T) {
	const query = "server timeout"
	r := newRater(new(analysis.Analyzers), query, found(query).Terms, nil, 100)
	read, other := r.read(hitIn("Fruit", "The server timeout is long.")), r.read(hitIn("Fruit", "Bananas are yellow."))
	const own = "gte-small-int8@50b99043/384"
	last := 0.0
	for _, similarity := range []float64{-1, 0.7, 0.8, 0.85, 0.9, 1} {
		p := r.relevanceOf(read, own, similarity)
		if p <= last || p >= 1 {
			t.Errorf("relevance %v at similarity %v, %v at less", p, similarity, last)
		}
		last = p
		if wordless := r.relevanceOf(other, own, similarity); wordless >= p || wordless <= 0 {
			t.Errorf("relevance %v without a word at similarity %v, %v with all", wordless, similarity, p)
		}
	}
	if p := r.relevanceOf(other, own, 0.95); p < 0.5 {
		t.Errorf("relevance %v of what is all but the question, without a word of it", p)
	}
	for _, encoder := range []string{"gte-small", "gte-small@0a1b2c3d/384", "gte-small-int8@0a1b2c3d/384"} {
		if r.relevanceOf(read, encoder, 0.9) != r.relevanceOf(read, own, 0.9) {
			t.Errorf("%s is not rated as %s", encoder, own)
		}
	}
	for _, encoder := range []string{"gte-small-zh@0a1b2c3d/384", "all-MiniLM-L6-v2@0a1b2c3d/384", ""} {
		if r.relevanceOf(read, encoder, 0.9) != r.relevance(read) || r.relevanceOf(other, encoder, 0.9) != 0 {
			t.Errorf("%q is not rated by words alone", encoder)
		}
	}
	none := newRater(new(analysis.Analyzers), "", nil, nil, 100)
	if p := none.relevanceOf(none.read(hitIn("Fruit", "Bananas.")), own, 0.99); p != 0 {
		t.Errorf("relevance %v for no query, want 0", p)
	}
}
