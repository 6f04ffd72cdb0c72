package retrieve

import (
	"context"
	"slices"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
)

// An Explanation says how results came about.
type Explanation struct {
	Results assay.Results `json:"results"`
	Hits    []Explained   `json:"explained"` // of each hit of Results
	Dropped []Drop        `json:"dropped"`
	Stages  []Stage       `json:"stages"` // in the order in which each was first reached
}

// Explained says how a hit came to its place.
type Explained struct {
	Why    []Match     `json:"why"`
	Ranks  Ranks       `json:"ranks"`
	Fusion FusionTerms `json:"fusion"` // of the query's own wording, where scores are weighted

	// Path is the way by which most of the walk's mass came, from the hit back to a
	// start; empty: no walk led to it, or it is a start itself.
	Path []Step `json:"path,omitempty"`

	// Features of the relevance of its words, by FeatureNames; none when the hit
	// holds no content word of the query.
	Features map[string]float64 `json:"features,omitempty"`

	// Rerank is what the Ranker's score was made of, where it is an Accountant and saw
	// the hit.
	Rerank map[string]float64 `json:"rerank,omitempty"`
}

// An Accountant is a Ranker that says what its scores are made of.
type Accountant interface {
	Ranker
	// Account returns, for each hit of what Rank was given, in their order, what its
	// score was made of, by name.
	Account(found assay.Results) []map[string]float64
}

// Ranks are a hit's places in the lists of the searches, from 1; 0: not among
// them. Those by words and by similarity are of the query's own wording.
type Ranks struct {
	BM25   int `json:"bm25,omitempty"`
	Vector int `json:"vector,omitempty"`
	Graph  int `json:"graph,omitempty"`
	Fused  int `json:"fused"`
}

// FusionTerms are what a fusion adds up, means over the wordings. In a weighted one
// each is in [0, its weight]; that of words is up to 1 for what has no vector.
type FusionTerms struct {
	Words  float64 `json:"words"`
	Vector float64 `json:"vector"`
	Graph  float64 `json:"graph"`

	// Place is what stands for words and vector where some candidates have no vector:
	// the score of the place, among those that words give, that it took.
	Place *float64 `json:"place,omitempty"`
}

// A Step is one step back on the way to a passage: both it and Chunk name Entity.
type Step struct {
	Entity string `json:"entity"`
	Chunk  string `json:"chunk,omitempty"` // empty: the question names it
	Title  string `json:"title,omitempty"` // of Chunk's document; empty: the search did not read it
}

// A Match is a term of the query with the fields of a hit that hold it.
type Match struct {
	Term   string   `json:"term"`   // as it stands in the query; a compound of two of its words as it is indexed
	Weight float64  `json:"weight"` // see assay.Term; 0 of a compound
	Fields []string `json:"fields"` // "title", "headings", "body"
}

// A Drop is a passage that was left out because it says the same as a hit.
type Drop struct {
	Chunk string `json:"chunk"`
	URI   string `json:"uri"`
	Line  int    `json:"line,omitempty"`
	Of    string `json:"of"` // the chunk that says the same
}

// A Stage is a part of a search with the time that it took.
type Stage struct {
	Name   string `json:"name"`
	Micros int64  `json:"us"`
}

// Explain is Retrieve, and says how the results came about.
func (r *Retriever) Explain(ctx context.Context, access assay.Access, q assay.Query) (Explanation, error) {
	s, err := r.search(ctx, access, q, true)
	if err != nil {
		return Explanation{}, err
	}
	e := Explanation{Results: s.results, Hits: []Explained{}, Dropped: append([]Drop{}, s.drops...), Stages: s.stages}
	for _, c := range s.found {
		x := Explained{Why: Why(s.results.Terms, c.hit), Ranks: c.places, Fusion: c.terms, Rerank: c.account}
		for _, step := range c.path {
			way := Step{Entity: step.Entity, Chunk: step.Chunk}
			if from := s.at[step.Chunk]; from != nil {
				way.Title = from.passage.Title
			}
			x.Path = append(x.Path, way)
		}
		if own := c.of[0]; !own.read.wordless {
			x.Features = map[string]float64{}
			for i, name := range FeatureNames {
				x.Features[name] = own.read.features[i]
			}
		}
		e.Hits = append(e.Hits, x)
	}
	return e, nil
}

// ended adds the time since the last stage's end to a stage.
func (s *search) ended(name string) {
	now := time.Now()
	i := slices.IndexFunc(s.stages, func(st Stage) bool { return st.Name == name })
	if i < 0 {
		i, s.stages = len(s.stages), append(s.stages, Stage{Name: name})
	}
	s.stages[i].Micros += now.Sub(s.since).Microseconds()
	s.since = now
}

// Why says which of a query's terms a hit holds, and in which of its fields, in
// the query's order; then the compounds that its words made (see Hit.Matched).
func Why(terms []assay.Term, h assay.Hit) []Match {
	fields := []struct {
		name  string
		texts []string
	}{{"title", []string{h.Title}}, {"headings", h.Chunk.Headings}, {"body", []string{h.Text}}}
	held := make([]map[string]bool, len(fields))
	for i, f := range fields {
		held[i] = map[string]bool{}
		for _, text := range f.texts {
			for _, t := range analysis.Tokens(text, h.Language) {
				held[i][t.Term] = true
			}
		}
	}
	matches := []Match{}
	add := func(m Match, stems ...string) {
		for i, f := range fields {
			if slices.ContainsFunc(stems, func(stem string) bool { return held[i][stem] }) {
				m.Fields = append(m.Fields, f.name)
			}
		}
		if len(m.Fields) > 0 {
			matches = append(matches, m)
		}
	}
	own := map[string]bool{}
	for _, t := range terms {
		own[t.Stem] = true
		add(Match{Term: t.Text, Weight: t.Weight}, append([]string{t.Stem}, t.Forms...)...)
	}
	for _, stem := range h.Matched {
		if !own[stem] {
			add(Match{Term: stem}, stem)
		}
	}
	return matches
}
