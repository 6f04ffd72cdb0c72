package retrieve

import (
	"context"
	"slices"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
)

// An Explanation describes how search results were computed.
type Explanation struct {
	Results assay.Results `json:"results"`
	Hits    []Explained   `json:"explained"` // one per hit of Results
	Dropped []Drop        `json:"dropped"`
	Stages  []Stage       `json:"stages"` // in the order in which each first ran
}

// Explained describes how one hit got its rank.
type Explained struct {
	Why    []Match     `json:"why"`
	Ranks  Ranks       `json:"ranks"`
	Fusion FusionTerms `json:"fusion"` // of the query's own wording; only for weighted fusion

	// Path is the path that contributed most of the walk's mass, from the hit back to a seed. It is
	// empty if no walk reached the hit or if the hit is a seed itself.
	Path []Step `json:"path,omitempty"`

	// Features are the features of the hit's relevance by words, keyed by FeatureNames; nil if the
	// hit contains no content word of the query.
	Features map[string]float64 `json:"features,omitempty"`

	// Rerank holds the components of the Ranker's score, if the Ranker is an Accountant and scored
	// the hit.
	Rerank map[string]float64 `json:"rerank,omitempty"`
}

// An Accountant is a Ranker that reports the components of its scores.
type Accountant interface {
	Ranker
	// Account returns the components of the scores that Rank gave to the hits of found, in their
	// order, keyed by name.
	Account(found assay.Results) []map[string]float64
}

// Ranks are a hit's ranks in the lists of the individual searches, from 1; 0 means not in the list.
// BM25 and Vector are ranks for the query's own wording.
type Ranks struct {
	BM25   int `json:"bm25,omitempty"`
	Vector int `json:"vector,omitempty"`
	Graph  int `json:"graph,omitempty"`
	Fused  int `json:"fused"`
}

// FusionTerms are the terms of a fused score, averaged over the wordings. In a weighted fusion each
// is between 0 and its weight; Words is up to 1 for a hit without a vector.
type FusionTerms struct {
	Words  float64 `json:"words"`
	Vector float64 `json:"vector"`
	Graph  float64 `json:"graph"`

	// Place replaces Words and Vector if some candidates have no vector. It is the score by words
	// of the place that the hit took.
	Place *float64 `json:"place,omitempty"`
}

// A Step is one step of a path back from a passage. The passage and Chunk both mention Entity.
type Step struct {
	Entity string `json:"entity"`
	Chunk  string `json:"chunk,omitempty"` // empty: the question names Entity
	Title  string `json:"title,omitempty"` // of Chunk's document; empty: not among the candidates
}

// A Match is a term of the query with the fields of a hit that contain it.
type Match struct {
	Term   string   `json:"term"`   // as in the query; for a compound, its stem in the index
	Weight float64  `json:"weight"` // see assay.Term; 0 for a compound
	Fields []string `json:"fields"` // "title", "headings", "body"
}

// A Drop is a passage that was left out because it nearly repeats a hit.
type Drop struct {
	Chunk string `json:"chunk"`
	URI   string `json:"uri"`
	Line  int    `json:"line,omitempty"`
	Of    string `json:"of"` // the chunk that it repeats
}

// A Stage is a part of a search and the time spent in it.
type Stage struct {
	Name   string `json:"name"`
	Micros int64  `json:"us"`
}

// Explain runs Retrieve and also returns how the results were computed.
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

// endStage adds the time since the end of the last stage to the named stage.
func (s *search) endStage(name string) {
	now := time.Now()
	i := slices.IndexFunc(s.stages, func(st Stage) bool { return st.Name == name })
	if i < 0 {
		i, s.stages = len(s.stages), append(s.stages, Stage{Name: name})
	}
	s.stages[i].Micros += now.Sub(s.since).Microseconds()
	s.since = now
}

// Why returns which of a query's terms a hit contains and in which fields, in the query's order.
// The compounds formed from the query's words follow (see Hit.Matched).
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
